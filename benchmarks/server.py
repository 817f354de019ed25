"""A chat-completions server on loopback, with answers that depend on the messages alone.

Usage: python benchmarks/server.py [--port N] [--latency-ms N] [--log FILE] [--lifetime S]

The first line on standard output is its URL.  It ends with the process that started it, and
after an hour at the latest.  In a program::

    with running_server(latency_ms=50) as server:
        ...  # ask server.url + "/v1"
        assert server.stats()["repeated"] == 0

POST /v1/chat/completions    an OpenAI-compatible reply of about 150 words and one letter, A to D
GET /stats                   requests received since the start or the last reset
GET /clock                   seconds from the first completion's request to the last reply sent
POST /reset                  counts from zero again

Everything else, the Responses API too, is 404.
"""

import argparse
import asyncio
import hashlib
import http.client
import itertools
import json
import os
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

HOST = "127.0.0.1"
COMPLETIONS = "/v1/chat/completions"
LIFETIME = 3600.0
"""Seconds after which a server ends by itself."""

LETTERS = "ABCD"

REASONS = (
    "The presentation is best read together with the time over which it came on.",
    "The examination narrows the differential more than the laboratory values do.",
    "A single finding outside the reference range does not change the working diagnosis.",
    "The history makes an acute process more likely than a chronic one here.",
    "The risk factors listed fit the mechanism that the question is after.",
    "Two of the options share that mechanism but differ in their timing.",
    "One option would be reasonable as a later step, after the first has failed.",
    "Another would be expected to show a different pattern on imaging.",
    "The age of the patient speaks against the remaining alternative.",
    "What distinguishes the choices is the finding that only one of them explains.",
    "Guidelines put this step first because it is safe, quick and informative.",
    "The other measures treat a consequence and leave the cause in place.",
    "Taken together, one choice accounts for every finding in the vignette.",
)

Json = dict[str, Any]


def request_hash(request: Json) -> str:
    """Digest of a request's model and messages, whatever the order of their keys.

    Args:
        request: The body of a chat-completions request.

    Returns:
        32 hexadecimal digits.
    """
    asked = [request.get("model"), request.get("messages")]
    canonical = json.dumps(asked, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()[:32]


def reply_text(digest: str) -> str:
    """What the server says to a request.

    Args:
        digest: The request's ``request_hash``.

    Returns:
        About 150 words that end in ``Final Answer: (X)``.
    """
    number = int(digest, 16)
    first = number % len(REASONS)
    reasons = (*REASONS[first:], *REASONS[:first])
    return f"{' '.join(reasons)}\n\nFinal Answer: ({LETTERS[number // 2**64 % len(LETTERS)]})"


def completion(request: Json, digest: str) -> Json:
    """The reply to a chat-completions request, tokens counted at four characters each.

    Args:
        request: The body of the request.
        digest: Its ``request_hash``.

    Returns:
        The body of the reply.
    """
    text = reply_text(digest)
    read = sum(len(_text(message.get("content"))) for message in request["messages"]) // 4
    written = len(text) // 4
    return {
        "id": f"chatcmpl-{digest}-{next(_replies)}",
        "object": "chat.completion",
        "created": 0,
        "model": request["model"],
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": text},
                "logprobs": None,
                "finish_reason": "stop",
            }
        ],
        "usage": {
            "prompt_tokens": read,
            "completion_tokens": written,
            "total_tokens": read + written,
        },
    }


_replies = itertools.count()


def _text(content: object) -> str:
    """The text of a message, also where it comes in parts."""
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content)
    return str(content or "")


class Site:
    """What is counted, and what answers each path."""

    def __init__(self, latency: float, log: Path | None) -> None:
        """Start from zero.

        Args:
            latency: Seconds from a completion's request to its reply.
            log: File that gets one line per completion, None for none.
        """
        self.latency = latency
        self.paths: Counter[str] = Counter()
        self.asked: Counter[tuple[str, object]] = Counter()
        self.began: float | None = None
        self.ended = 0.0
        # unbuffered and appended to, so that a line is whole and there at once
        self._log = log.open("ab", buffering=0) if log else None

    def answer(self, method: str, path: str, body: bytes) -> tuple[int, Json, str]:
        """Answer a request.

        Args:
            method: The HTTP method.
            path: The path, without its query.
            body: The request's body.

        Returns:
            The HTTP status, the reply's body, and the digest of what was generated, empty where
            nothing was.
        """
        if (method, path) == ("GET", "/stats"):
            return 200, self.stats(), ""
        if (method, path) == ("GET", "/clock"):
            return 200, {"seconds": self.seconds()}, ""
        if (method, path) == ("POST", "/reset"):
            self.paths.clear()
            self.asked.clear()
            self.began = None
            return 200, self.stats(), ""
        self.paths[path] += 1
        if self.began is None:
            self.began = self.ended = time.perf_counter()
        if (method, path) != ("POST", COMPLETIONS):
            return 404, _error(f"no such endpoint: {method} {path}"), ""
        try:
            request = json.loads(body)
            if request.get("stream"):
                return 400, _error("stream: replies come whole from this server"), ""
            digest = request_hash(request)
            reply = completion(request, digest)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            return 400, _error(f"no chat-completions request: {error!r}"), ""
        self.asked[digest, request.get("seed")] += 1
        return 200, reply, digest

    def stats(self) -> Json:
        """Completions asked for, how many of them differ, and requests by path."""
        calls, distinct = self.asked.total(), len(self.asked)
        return {
            "calls": calls,
            "distinct": distinct,
            "repeated": calls - distinct,
            "paths": dict(self.paths),
        }

    def seconds(self) -> float:
        """Seconds from the first request to the last reply sent, 0 before the first."""
        return self.ended - self.began if self.began is not None else 0.0

    def delivered(self, digest: str) -> None:
        """Note that a completion has left for the client."""
        self.ended = time.perf_counter()
        if self._log:
            self._log.write(f"{digest}\n".encode())


def _error(message: str) -> Json:
    return {"error": {"message": message, "type": "invalid_request_error", "code": None}}


class Connection(asyncio.Protocol):
    """One keep-alive connection; a request that comes early waits for the one before."""

    def __init__(self, site: Site) -> None:
        """Serve a site.

        Args:
            site: What answers.
        """
        self.site = site
        self._received = bytearray()
        self._answering = False
        self._leaving: list[str] = []  # written, and not yet out of the buffer

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take note of the transport."""
        self._transport = cast(asyncio.Transport, transport)
        # so that resume_writing says when a reply has left
        self._transport.set_write_buffer_limits(high=0)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget what did not leave."""
        self._leaving.clear()

    def data_received(self, data: bytes) -> None:
        """Read what came."""
        self._received += data
        if not self._answering:
            self._next()

    def resume_writing(self) -> None:
        """Everything written has left."""
        for digest in self._leaving:
            self.site.delivered(digest)
        self._leaving.clear()

    def _next(self) -> None:
        """Answer the next request, if all of it is there."""
        end = self._received.find(b"\r\n\r\n")
        if end < 0:
            return
        first, *fields = bytes(self._received[:end]).decode("latin-1").split("\r\n")
        named = {name.strip().lower(): value.strip() for name, _, value in map(_field, fields)}
        length, start = named.get("content-length", "0"), end + 4
        if "transfer-encoding" in named or not length.isdecimal() or first.count(" ") != 2:
            self._send(400, _error("a request needs a first line and a Content-Length"), False, "")
            return
        if len(self._received) < start + int(length):
            return
        body = bytes(self._received[start : start + int(length)])
        del self._received[: start + int(length)]
        method, target, _ = first.split(" ")
        status, reply, digest = self.site.answer(method, target.partition("?")[0], body)
        keep = named.get("connection", "").lower() != "close"
        self._answering = True
        if digest and self.site.latency:
            loop = asyncio.get_running_loop()
            loop.call_later(self.site.latency, self._send, status, reply, keep, digest)
        else:
            self._send(status, reply, keep, digest)

    def _send(self, status: int, reply: Json, keep: bool, digest: str) -> None:
        self._answering = False
        if self._transport.is_closing():
            return
        body = json.dumps(reply).encode()
        head = (
            f"HTTP/1.1 {status} {http.client.responses[status]}\r\n"
            "Content-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n"
            f"Connection: {'keep-alive' if keep else 'close'}\r\n\r\n"
        )
        if digest:
            self._leaving.append(digest)
        self._transport.write(head.encode() + body)
        if self._transport.get_write_buffer_size() == 0 and not self._transport.is_closing():
            self.resume_writing()
        if not keep:
            self._transport.close()
        elif self._received:
            self._next()


def _field(line: str) -> tuple[str, str, str]:
    return line.partition(":")


async def serve(port: int, latency_ms: float, log: Path | None, lifetime: float) -> None:
    """Serve until the process that started this one is gone, or the time is up.

    Args:
        port: Port to listen on, 0 for a free one.
        latency_ms: Milliseconds from a completion's request to its reply.
        log: File that gets one line per completion, None for none.
        lifetime: Seconds to serve at most.
    """
    parent = os.getppid()
    loop = asyncio.get_running_loop()
    end = loop.time() + lifetime
    site = Site(latency_ms / 1000, log)
    server = await loop.create_server(
        lambda: Connection(site), HOST, port, family=socket.AF_INET, backlog=1024
    )
    print(f"http://{HOST}:{server.sockets[0].getsockname()[1]}", flush=True)
    while os.getppid() == parent and loop.time() < end:
        await asyncio.sleep(min(0.5, max(0.0, end - loop.time())))


@dataclass(frozen=True)
class Server:
    """A server in a process of its own.

    Attributes:
        url: ``http://127.0.0.1:PORT``; the API's base URL is this and ``/v1``.
        pid: Its process.
        log: File with one line per completion, None where none was asked for.
    """

    url: str
    pid: int
    log: Path | None

    def stats(self) -> Json:
        """Requests received since the start or the last reset.

        Returns:
            ``calls`` (completions asked for), ``distinct`` (how many of them differ in model,
            messages or seed), ``repeated`` (the rest), and ``paths`` (all requests by path).
        """
        return self._ask("GET", "/stats")

    def seconds(self) -> float:
        """Seconds from the first request to the last reply sent, 0 before the first."""
        return float(self._ask("GET", "/clock")["seconds"])

    def reset(self) -> None:
        """Count from zero again; the log file is left as it is."""
        self._ask("POST", "/reset")

    def answered(self) -> list[str]:
        """Digests of the completions that have left for a client, in order.

        A client that is killed may not have read the last one of each of its connections.
        """
        if self.log is None:
            return []
        # a line follows its reply: once the server answers this, the lines of earlier ones are in
        self.stats()
        return self.log.read_text("ascii").split()

    def _ask(self, method: str, path: str) -> Json:
        connection = http.client.HTTPConnection(self.url.removeprefix("http://"), timeout=30)
        try:
            connection.request(method, path)
            return cast(Json, json.load(connection.getresponse()))
        finally:
            connection.close()


@contextmanager
def running_server(
    latency_ms: float = 0, *, port: int = 0, log: Path | None = None, lifetime: float = LIFETIME
) -> Iterator[Server]:
    """A server in a process of its own, for as long as the block lasts.

    Args:
        latency_ms: Milliseconds from a completion's request to its reply.
        port: Port to listen on, 0 for a free one.
        log: File that gets one line per completion, the digest of its request, written once the
            reply has been handed to the network; None for none.
        lifetime: Seconds to serve at most.

    Yields:
        The server, which takes requests.

    Raises:
        RuntimeError: It did not start.
    """
    command = [sys.executable, __file__, "--port", str(port), "--latency-ms", str(latency_ms)]
    command += ["--lifetime", str(lifetime)]
    if log is not None:
        log.touch()
        command += ["--log", str(log)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
    assert process.stdout is not None
    try:
        url = process.stdout.readline().decode().strip()
        if not url:
            raise RuntimeError(f"the server did not start: {' '.join(command)}")
        yield Server(url, process.pid, log)
    finally:
        process.terminate()
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve.

    Args:
        arguments: Command-line arguments; by default those of the process.

    Returns:
        The exit status.
    """
    parser = argparse.ArgumentParser(description="A chat-completions server on loopback.")
    parser.add_argument("--port", type=int, default=0, help="0 for a free one")
    parser.add_argument("--latency-ms", type=float, default=0, help="of each completion")
    parser.add_argument("--log", type=Path, metavar="FILE", help="one line per completion")
    parser.add_argument("--lifetime", type=float, default=LIFETIME, help="seconds at most")
    parsed = parser.parse_args(arguments)
    try:
        asyncio.run(serve(parsed.port, parsed.latency_ms, parsed.log, parsed.lifetime))
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
