"""What the environment says of proxies and passwords still reaches the lean provider's requests."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from inspect_ai.model import ChatMessageUser, GenerateConfig

from holdfast.models.lean import Lean

REPLY = {"choices": [{"message": {"content": "B"}, "finish_reason": "stop"}]}


class Asked:
    """A server or proxy that notes what it is asked."""

    def __init__(self) -> None:
        self.targets: list[str] = []
        self.keys: list[str | None] = []
        asked = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
                asked.targets.append(self.path)
                asked.keys.append(self.headers["Authorization"])
                body = json.dumps(REPLY).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Asked]:
    for name in ("HTTP_PROXY", "http_proxy", "NO_PROXY", "no_proxy", "LEAN_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    server = Asked()
    thread = threading.Thread(target=server.server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.server.shutdown()
    server.server.server_close()
    thread.join()


async def ask(base_url: str) -> None:
    api = Lean("m", base_url)
    try:
        await api.generate([ChatMessageUser(content="?")], [], "none", GenerateConfig())
    finally:
        await api.aclose()


@pytest.mark.anyio
async def test_a_proxy_is_asked(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", asked.url)
    await ask("http://models.invalid/v1")
    assert asked.targets == ["http://models.invalid/v1/chat/completions"]


@pytest.mark.anyio
async def test_a_host_without_proxy_is_asked_itself(
    asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://proxy.invalid:1")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    await ask(f"{asked.url}/v1")
    assert asked.targets == ["/v1/chat/completions"]


@pytest.mark.anyio
async def test_a_password_in_netrc_is_given(asked: Asked, tmp_path: Path) -> None:
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login me password planted\n")
    await ask(f"{asked.url}/v1")
    assert asked.keys == ["Basic bWU6cGxhbnRlZA=="]


@pytest.mark.anyio
async def test_one_for_another_host_or_without_sense_is_not(asked: Asked, tmp_path: Path) -> None:
    for text in ("machine other login me password planted\n", "machine 127.0.0.1 what is this\n"):
        (tmp_path / "netrc").write_text(text)
        await ask(f"{asked.url}/v1")
    assert asked.keys == [None, None]
