"""Where no connection can be made, the request is made again, and an outage leaves no trace."""

import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from inspect_ai.model import ChatMessageUser, GenerateConfig, get_model

from tests.faults import RESTART, Fault, faulty_server
from tests.studies import holdfast, holdfast_apart

from .driving import MARK, TURNS, Study, apart

KEY = "sk-planted-0123456789abcdef"


@pytest.mark.slow
def test_a_run_waits_for_a_server_that_is_down(
    sound: pl.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LEAN_API_KEY", KEY)
    with faulty_server() as server:
        study = Study(server, tmp_path)
        server.down(4)  # more than it takes to begin
        outcome = study.outcome()
        stats = server.stats()
    assert study.turns().equals(sound)
    assert (outcome["calls"], stats["attempts"], stats["repeated"]) == (3 * TURNS, 3 * TURNS, 0)


@pytest.mark.slow
def test_a_restart_of_the_server_leaves_no_trace(sound: pl.DataFrame, tmp_path: Path) -> None:
    restart = Fault(RESTART, after=TURNS, attempts=1, rate=0.5, seconds=1.0)
    with faulty_server(restart) as server:
        study = Study(server, tmp_path)
        outcome = study.outcome("--max-connections", "2")
        stats = server.stats()
    assert study.turns().equals(sound)
    assert stats["outages"] >= 1
    assert (outcome["calls"], stats["finished"], stats["repeated"]) == (3 * TURNS, 3 * TURNS, 0)


@contextmanager
def redirecting(status: int, target: str) -> Iterator[str]:
    """A server on loopback that sends everybody to another one; its API's base URL."""

    class RedirectHandler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(status)
            self.send_header("Location", target)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing on the terminal."""

    with ThreadingHTTPServer(("127.0.0.1", 0), RedirectHandler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/v1"
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize(
    ("provider", "status"),
    [*(("lean", status) for status in (301, 302, 303, 307, 308)), ("openai", 307)],
)
@pytest.mark.rest_slow
def test_a_redirect_is_refused_and_not_followed(
    provider: str, status: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("LEAN_API_KEY", KEY)
    with (
        faulty_server() as target,
        redirecting(status, f"{target.api}/chat/completions") as api,
    ):
        study = Study(target, tmp_path, provider=provider, n=1)
        command = [api if part == target.api else part for part in study.command()]
        run = holdfast(*command)
        assert target.stats()["attempts"] == 0
    assert run.returncode == 2
    last = run.stderr.strip().splitlines()[-1]
    assert f"{api.removesuffix('/v1')} redirects to {target.url}/v1/chat/completions" in last
    assert f"set the base URL to {target.api}" in last


def test_a_redirect_within_a_study_ends_its_branch_with_the_remedy(tmp_path: Path) -> None:
    with faulty_server(Fault("redirect", match=MARK)) as server:
        study = Study(server, tmp_path, n=1)
        run = study.run()
        stats = server.stats()
    assert run.returncode == 3
    last = run.stderr.strip().splitlines()[-1]
    assert f"HTTP 307: {server.url} redirects to {server.api}/chat/completions" in last
    assert f"set the base URL to {server.api}" in last
    assert stats["faults"] == {"redirect": 1}


def test_an_untrusted_certificate_is_reported_at_once(certificate: Path, tmp_path: Path) -> None:
    with faulty_server(certificate=certificate) as server:
        run = Study(server, tmp_path, n=1).run()
        assert server.stats()["attempts"] == 0
    assert run.returncode == 2
    last = run.stderr.strip().splitlines()[-1]
    assert "CERTIFICATE_VERIFY_FAILED" in last
    assert "SSL_CERT_FILE" in last


@pytest.mark.slow
def test_a_server_that_stays_down_ends_the_run_as_unfinished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LEAN_API_KEY", KEY)
    with faulty_server(Fault(RESTART, after=2, attempts=1, seconds=600)) as server:
        study = Study(server, tmp_path, n=1)
        run = study.run("--generate-config", "{max_retries: 1}", "--max-connections", "1")
    assert run.returncode == 3
    last = run.stderr.strip().splitlines()[-1]
    assert "Cannot connect to host 127.0.0.1" in last
    assert last.endswith("Repeat the command to resume.")


@pytest.mark.slow
async def test_a_failed_name_look_up_is_retried(monkeypatch: pytest.MonkeyPatch) -> None:
    look_up, look_ups = socket.getaddrinfo, 0

    def failing_twice(host: Any, *more: Any, **options: Any) -> Any:
        nonlocal look_ups
        if host != "model.test":
            return look_up(host, *more, **options)
        look_ups += 1
        if look_ups <= 2:
            raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")
        return look_up("127.0.0.1", *more, **options)

    monkeypatch.setattr(socket, "getaddrinfo", failing_twice)
    with faulty_server() as server:
        options = server.api.replace("127.0.0.1", "model.test")
        config = GenerateConfig(max_retries=2)
        async with get_model("lean/bench", base_url=options, memoize=False) as model:
            output = await model.generate([ChatMessageUser(content="Which?")], config=config)
        assert "Final Answer" in output.completion
        assert (look_ups, server.stats()["attempts"]) == (3, 1)


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """Key and certificate for 127.0.0.1, made on the spot."""
    if shutil.which("openssl") is None:
        pytest.skip("no openssl to make a certificate with")
    key, result, bundle = (tmp_path / name for name in ("key.pem", "cert.pem", "both.pem"))
    command: list[str | Path] = [
        "openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=127.0.0.1",
        "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", result,
    ]  # fmt: skip
    subprocess.run(command, check=True, capture_output=True)
    bundle.write_bytes(key.read_bytes() + result.read_bytes())
    return bundle


@pytest.mark.slow
def test_a_failed_tls_handshake_is_retried(
    certificate: Path, sound: pl.DataFrame, tmp_path: Path
) -> None:
    with faulty_server(certificate=certificate, handshakes_failed=2) as server:
        study = Study(server, tmp_path)
        # trust is settled as a process begins
        env = {**apart(), "SSL_CERT_FILE": str(certificate), "LEAN_API_KEY": KEY}
        run = holdfast_apart(*study.command("--json"), env=env)
        assert run.returncode == 0, run.stderr
        stats = server.stats()
    assert study.turns().equals(sound)
    assert (stats["attempts"], stats["repeated"]) == (3 * TURNS, 0)
