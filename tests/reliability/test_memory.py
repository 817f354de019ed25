"""Replies that are larger than any reply take no more memory the more of them there are."""

import gzip
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

AT_ONCE = 50
UNPACKED_MIB = 32
LARGEST_MIB = 16
_PIECE = 4096

ASK = f"""
import asyncio, json, resource, sys
from inspect_ai.model import ChatMessageUser, GenerateConfig
from holdfast.models.lean import Lean

async def ask(lean):
    try:
        asked = [ChatMessageUser(content="?")]
        output, _ = await lean.generate(asked, [], "none", GenerateConfig())
        return output.completion
    except Exception as error:
        return str(error)

async def main():
    lean = Lean("m", sys.argv[1])
    await ask(lean)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    said = await asyncio.gather(*(ask(lean) for _ in range({AT_ONCE})))
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    await lean.aclose()
    print(json.dumps({{"mib": (after - before) / 1024, "said": said}}))

asyncio.run(main())
"""


@contextmanager
def packed(*bodies: bytes) -> Iterator[str]:
    """A server of gzipped bodies, one after the other and the last one for ever; its base URL."""
    left = list(bodies)

    class GzipHandler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            body = left.pop(0) if len(left) > 1 else left[0]
            self.send_response(200)
            self.send_header("Content-Encoding", "gzip")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            with suppress(ConnectionError):
                for start in range(0, len(body), _PIECE):  # all of them come in side by side
                    self.wfile.write(body[start : start + _PIECE])
                    time.sleep(0.2)

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing on the terminal."""

    class QueueServer(ThreadingHTTPServer):
        request_queue_size = 2 * AT_ONCE

    with QueueServer(("127.0.0.1", 0), GzipHandler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/v1"
        finally:
            server.shutdown()
            thread.join()


def measure(url: str) -> dict[str, Any]:
    run = subprocess.run(
        [sys.executable, "-c", ASK, url],
        env={**os.environ, "LEAN_MAX_REPLY_MIB": str(LARGEST_MIB)},
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    figures: dict[str, Any] = json.loads(run.stdout)
    return figures


def reply(padding: int = 0) -> bytes:
    choice = {"message": {"content": "Final Answer: (A)"}, "finish_reason": "stop"}
    return json.dumps({"id": "1", "choices": [choice]}).encode() + b" " * padding


@pytest.mark.parametrize("bomb", [UNPACKED_MIB, LARGEST_MIB - 1], ids=["refused", "just allowed"])
@pytest.mark.slow
def test_fifty_bombs_take_little_more_memory_than_one(bomb: int) -> None:
    with packed(gzip.compress(reply()), gzip.compress(reply(bomb * 2**20))) as url:
        figures = measure(url)
    (text,) = set(figures["said"])
    if bomb > LARGEST_MIB:
        assert text == f"the reply is larger than {LARGEST_MIB} MiB"
    else:
        assert text == "Final Answer: (A)"
    # fifty of the largest replies would be 800
    assert figures["mib"] < 150
