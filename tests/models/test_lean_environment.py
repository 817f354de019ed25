"""Proxies and passwords of the environment reach the requests of the lean provider."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from inspect_ai.model import ChatMessageUser, GenerateConfig

from holdfast.models.lean import Lean

REPLY = {"choices": [{"message": {"content": "B"}, "finish_reason": "stop"}]}


class RecordingServer:
    """A server or proxy that notes its requests."""

    def __init__(self) -> None:
        self.targets: list[str] = []
        self.keys: list[str | None] = []
        server = self

        class NotingHandler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
                server.targets.append(self.path)
                server.keys.append(self.headers["Authorization"])
                body = json.dumps(REPLY).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), NotingHandler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[RecordingServer]:
    for name in ("HTTP_PROXY", "http_proxy", "NO_PROXY", "no_proxy", "LEAN_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    instance = RecordingServer()
    thread = threading.Thread(
        target=instance.server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
    )
    thread.start()
    yield instance
    instance.server.shutdown()
    instance.server.server_close()
    thread.join()


async def ask(base_url: str) -> None:
    api = Lean("m", base_url)
    try:
        await api.generate([ChatMessageUser(content="?")], [], "none", GenerateConfig())
    finally:
        await api.aclose()


@pytest.mark.anyio
async def test_a_proxy_is_asked_unless_the_host_needs_none(
    server: RecordingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", server.url)
    await ask("http://models.invalid/v1")
    monkeypatch.setenv("http_proxy", "http://proxy.invalid:1")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    await ask(f"{server.url}/v1")
    assert server.targets == ["http://models.invalid/v1/chat/completions", "/v1/chat/completions"]


@pytest.mark.anyio
async def test_a_netrc_password_is_sent(server: RecordingServer, tmp_path: Path) -> None:
    for text in ("machine 127.0.0.1 login me password planted\n",
                 "machine other login me password planted\n",
                 "machine 127.0.0.1 what is this\n"):  # fmt: skip
        (tmp_path / "netrc").write_text(text)
        await ask(f"{server.url}/v1")
    assert server.keys == ["Basic bWU6cGxhbnRlZA==", None, None]
