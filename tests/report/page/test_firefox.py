"""The report in Firefox, driven over Marionette, its own remote protocol."""

import json
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.report.page.test_report_page import reported, study
from tests.results.frames import table

pytestmark = pytest.mark.slow

PREFERENCES = {
    "marionette.port": 0,  # any that is free; the profile says which
    "browser.shell.checkDefaultBrowser": False,
    "datareporting.policy.dataSubmissionEnabled": False,
    "app.update.disabledForTesting": True,
    "network.proxy.type": 1,  # a proxy that does not exist: nothing is fetched
    "network.proxy.http": "127.0.0.1",
    "network.proxy.http_port": 1,
    "network.proxy.ssl": "127.0.0.1",
    "network.proxy.ssl_port": 1,
}


class Firefox:
    """A headless Firefox with one page."""

    def __init__(self, program: str, profile: Path) -> None:
        lines = [f"user_pref({json.dumps(k)}, {json.dumps(v)});" for k, v in PREFERENCES.items()]
        (profile / "user.js").write_text("\n".join(lines), "utf-8")
        self.process = subprocess.Popen(
            [program, "--headless", "--marionette", "--no-remote", "--profile", str(profile)],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={"HOME": str(profile)},
        )  # fmt: skip
        port = profile / "MarionetteActivePort"
        until = time.monotonic() + 90
        while not (port.is_file() and port.read_text().strip()):
            assert self.process.poll() is None, "Firefox has ended"
            assert time.monotonic() < until, "Firefox did not start"
            time.sleep(0.2)
        self.socket = socket.create_connection(("127.0.0.1", int(port.read_text())), timeout=60)
        self.said = self.socket.makefile("rb")
        self._read()
        self.command("WebDriver:NewSession", {})

    def _read(self) -> Any:
        length = b""
        while not length.endswith(b":"):
            length += self.said.read(1)
        return json.loads(self.said.read(int(length[:-1])))

    def command(self, name: str, arguments: dict[str, Any]) -> Any:
        """What a command of WebDriver gives."""
        message = json.dumps([0, 1, name, arguments]).encode()
        self.socket.sendall(b"%d:%s" % (len(message), message))
        _, _, error, value = self._read()
        assert error is None, error
        return value

    def run(self, script: str) -> Any:
        """What a script in the page returns."""
        return self.command("WebDriver:ExecuteScript", {"script": script, "args": []})["value"]

    def until(self, script: str) -> None:
        """Waits until a script in the page returns something that is true."""
        end = time.monotonic() + 20
        while not self.run(script):
            assert time.monotonic() < end, script
            time.sleep(0.1)


@pytest.fixture
def firefox(tmp_path: Path) -> Iterator[Firefox]:
    program = next(filter(None, map(shutil.which, ("firefox-esr", "firefox"))), None)
    if program is None:
        pytest.skip("no Firefox here: make browser")
    profile = tmp_path / "profile"
    profile.mkdir()
    driver = Firefox(program, profile)
    yield driver
    driver.process.terminate()
    driver.process.wait(30)


def test_the_report_opens_in_firefox(tmp_path: Path, firefox: Firefox) -> None:
    page = reported(tmp_path, table([*study(), *study("m2", run="r2")]))
    firefox.command("WebDriver:Navigate", {"url": page.as_uri()})
    assert "m1" in firefox.run("return document.querySelector('h1').textContent")
    firefox.run("document.querySelector('#models > summary').click()")
    firefox.until("return document.querySelector('#models table')")
    width = "return document.querySelector('#models table').getBoundingClientRect().width"
    assert firefox.run(width) > 100
    firefox.until("return document.querySelector('#ex-count').textContent.includes('16 of 16')")
    assert firefox.run("return document.querySelector('#ex-old').hidden")
    # a conversation is opened and read, and the texts are searched
    firefox.run("document.querySelector('#ex-tool > summary').click()")
    firefox.until("return document.querySelector('#ex-list [role=option]')")
    firefox.run("document.querySelector('#ex-list [role=option]').click()")
    firefox.until("return document.querySelector('.ex-outcome')")
    assert "flipped" in firefox.run(
        "return document.querySelector('.ex-outcome').textContent.toLowerCase()"
    )
    firefox.run("location.hash = '#conversations?text=nowhere'")
    firefox.until("return !document.querySelector('#ex-empty').hidden")
    # a table is sorted
    firefox.run("document.querySelector('#models th button').click()")
    assert firefox.run("return document.querySelectorAll('[aria-sort]').length") == 1
