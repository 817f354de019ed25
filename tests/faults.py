"""A chat-completions server that goes wrong on purpose, the same way in any order.

Usage: python -m tests.faults [--port N] [--faults JSON] [--latency JSON] [--seed N] [--lifetime S]

It answers what ``benchmarks/server.py`` answers, unless a fault is due.  Whether one is due hangs
on the request and on how often it was asked before, never on when it comes.  It runs in a process
of its own and ends with the one that started it::

    with faulty_server(Fault("status-503", attempts=1)) as server:
        ...  # ask server.url + "/v1"
        assert server.stats()["repeated"] == 0

A fault is ``{"kind": NAME}`` with what narrows it (see ``Fault``).  The first that fits counts.
The server can be down for a while (``FaultyServer.down``), and speak TLS, badly at first.
"""

import argparse
import asyncio
import base64
import hashlib
import http.client
import json
import math
import os
import socket
import ssl
import subprocess
import sys
import zlib
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import NormalDist
from typing import Any, cast

from benchmarks.server import COMPLETIONS, HOST, completion, request_hash

Json = dict[str, Any]

LARGE = 10_000_000
"""Characters of a large reply."""

ENDLESS_MIB = 1024
"""MiB of a reply that has no end, or of one that is packed into one."""


@dataclass(frozen=True)
class Fault:
    """What goes wrong, and for which requests.

    Attributes:
        kind: one of ``KINDS``; several, joined by ``|``, share the requests evenly.
        match: text that the last message holds.
        rate: share of the requests concerned, drawn anew for each attempt.
        attempts: only the first so many attempts of each request; None for all.
        after: only once so many generations were finished.
        seconds: how long a hung connection stays open, or a slow reply takes.
    """

    kind: str
    match: str = ""
    rate: float = 1.0
    attempts: int | None = None
    after: int = 0
    seconds: float = 30.0


@dataclass(frozen=True)
class Latency:
    """Milliseconds from a request to its reply, drawn by request and attempt.

    Attributes:
        shape: ``fixed``; ``uniform`` from half to one and a half times the median; ``lognormal``.
        median_ms: the median.
        sigma: of the logarithm.
    """

    shape: str = "fixed"
    median_ms: float = 0.0
    sigma: float = 1.0

    def seconds(self, u: float) -> float:
        """The quantile at ``u``, in seconds."""
        median = self.median_ms / 1000
        if self.shape == "uniform":
            return median * (0.5 + u)
        if self.shape == "lognormal":
            return median * math.exp(self.sigma * NormalDist().inv_cdf(u))
        return median


@dataclass(frozen=True)
class Call:
    """A request about to be answered."""

    request: Json
    digest: str
    attempt: int
    authorization: str
    seconds: float


Writer = asyncio.StreamWriter
Kind = Callable[[Writer, Call], Awaitable[bool]]
"""Sends what goes wrong; True where a generation was finished all the same."""


async def _send(writer: Writer, status: int, body: bytes, **fields: str) -> None:
    headers = {"Content-Type": "application/json", "Content-Length": str(len(body)), **fields}
    lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    reason = http.client.responses.get(status, "Unknown")
    writer.write(f"HTTP/1.1 {status} {reason}\r\n{lines}\r\n".encode() + body)
    await writer.drain()


def _error(message: str, code: str | None = None) -> bytes:
    return json.dumps({"error": {"message": message, "type": "server", "code": code}}).encode()


def _status(status: int, **fields: str) -> Kind:
    async def send(writer: Writer, call: Call) -> bool:
        await _send(writer, status, _error(f"told to answer {status}"), **fields)
        return False

    return send


def _reply(change: Callable[[Json], object] | None = None, **message: Any) -> Kind:
    """A whole reply that says something else."""

    async def send(writer: Writer, call: Call) -> bool:
        reply = completion(call.request, call.digest)
        reply["choices"][0]["message"].update(message)
        if change:
            change(reply)
        await _send(writer, 200, json.dumps(reply).encode())
        return True

    return send


def _bytes(change: Callable[[bytes], bytes], *, whole: bool = False) -> Kind:
    """A reply whose body is changed: spoilt, or whole all the same."""

    async def send(writer: Writer, call: Call) -> bool:
        await _send(writer, 200, change(json.dumps(completion(call.request, call.digest)).encode()))
        return whole

    return send


def _refusing(applies: Callable[[Json], bool], message: str, code: str | None = None) -> Kind:
    """Refuses requests for what they ask for, and answers the others."""

    async def send(writer: Writer, call: Call) -> bool:
        if not applies(call.request):
            return await _reply()(writer, call)
        await _send(writer, 400, _error(message, code))
        return False

    return send


async def _busy_with_logprobs(writer: Writer, call: Call) -> bool:
    await _send(writer, 503, _error("the worker for logprobs is restarting"))
    return False


def _in_200(error: Json) -> Kind:
    """An error with the status of a reply."""
    return _bytes(lambda body: json.dumps({"error": error}).encode())


def _in_parts(reply: Json) -> None:
    message = reply["choices"][0]["message"]
    half = len(message["content"]) // 2
    parts = message["content"][:half], message["content"][half:]
    message["content"] = [{"type": "text", "text": part} for part in parts]


_DEPTH = 100_000
_DEEP = b'"created": ' + b'[{"a":' * _DEPTH + b"0" + b"}]" * _DEPTH
_DIGITS = b'"created": 1' + b"0" * 5000


async def _endless(writer: Writer, call: Call) -> bool:
    body = json.dumps(completion(call.request, call.digest)).encode()
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n")
    writer.write(b"Transfer-Encoding: chunked\r\n\r\n")
    piece = body[:-1] + b" " * 2**20
    with suppress(ConnectionError):
        for _ in range(ENDLESS_MIB):
            writer.write(b"%x\r\n%b\r\n" % (len(piece), piece))
            await writer.drain()
    writer.transport.abort()
    return False


async def _gzip_bomb(writer: Writer, call: Call) -> bool:
    packer = zlib.compressobj(9, wbits=31)
    content = b"".join(
        [*(packer.compress(b" " * 2**20) for _ in range(ENDLESS_MIB)), packer.flush()]
    )
    await _send(writer, 200, content, Content_Encoding="gzip")
    return False


async def _no_content(writer: Writer, call: Call) -> bool:
    writer.write(b"HTTP/1.1 204 No Content\r\n\r\n")
    await writer.drain()
    return False


async def _reset_before(writer: Writer, call: Call) -> bool:
    writer.transport.abort()
    return False


async def _reset_inside(writer: Writer, call: Call) -> bool:
    body = json.dumps(completion(call.request, call.digest)).encode()
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n")
    writer.write(f"Content-Length: {len(body)}\r\n\r\n".encode() + body[: len(body) // 2])
    await writer.drain()
    writer.transport.abort()
    return False


async def _hang(writer: Writer, call: Call) -> bool:
    await asyncio.sleep(call.seconds)
    writer.transport.abort()
    return False


async def _drip(writer: Writer, call: Call) -> bool:
    body = json.dumps(completion(call.request, call.digest)).encode()
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n")
    writer.write(f"Content-Length: {len(body)}\r\n\r\n".encode())
    pieces = 20
    size = -(-len(body) // pieces)
    for start in range(0, len(body), size):
        writer.write(body[start : start + size])
        await writer.drain()
        await asyncio.sleep(call.seconds / pieces)
    return True


async def _echo_key(writer: Writer, call: Call) -> bool:
    key = call.authorization.partition(" ")[2]
    await _send(writer, 401, _error(f"Incorrect API key provided: {key}."))
    return False


async def _echo_key_busy(writer: Writer, call: Call) -> bool:
    await _send(writer, 503, _error(f"no worker for {call.authorization}"))
    return False


async def _echo_url(writer: Writer, call: Call) -> bool:
    user = base64.b64decode(call.authorization.partition(" ")[2]).decode()
    await _send(writer, 401, _error(f"http://{user}@{HOST} is not for you"))
    return False


async def _filtered_request(writer: Writer, call: Call) -> bool:
    await _send(writer, 400, _error("The prompt was filtered.", "content_filter"))
    return True


def _finish(reason: str) -> Callable[[Json], object]:
    return lambda reply: reply["choices"][0].update(finish_reason=reason)


_HALF = "The findings are best read together with the time over which they"

KINDS: Mapping[str, Kind] = {
    "status-429": _status(429),
    "status-429-after": _status(429, Retry_After="1"),
    **{f"status-{code}": _status(code) for code in (400, 401, 404, 500, 502, 503)},
    "redirect": _status(307, Location=COMPLETIONS),
    "no-content": _no_content,
    "reset-before": _reset_before,
    "reset-inside": _reset_inside,
    "hang": _hang,
    "slow-drip": _drip,
    "truncated-json": _bytes(lambda body: body[: len(body) // 2]),
    "malformed-json": _bytes(lambda body: b"<html>busy</html>"),
    "invalid-utf8": _bytes(lambda body: body.replace(b"presentation", b"pr\xff\xfesentation")),
    "empty-content": _reply(content=""),
    "null-content": _reply(content=None),
    "cut-off": _reply(_finish("length"), content=_HALF),
    "content-filter": _reply(_finish("content_filter"), content=None),
    "filtered-request": _filtered_request,
    "refusal": _reply(content=None, refusal="That is nothing I take part in."),
    "large": _reply(content="word " * (LARGE // 5) + "\n\nFinal Answer: (A)"),
    "half-emoji": _reply(content="So be it \ud83d\n\nFinal Answer: (A)"),
    "half-emoji-model": _reply(lambda reply: reply.update(model="bench\ud83d")),
    "huge-usage": _reply(lambda reply: reply["usage"].update(prompt_tokens=10**30)),
    "endless-digits": _bytes(lambda body: body.replace(b'"created": 0', _DIGITS), whole=True),
    "negative-usage": _reply(lambda reply: reply["usage"].update(completion_tokens=-5)),
    "no-usage": _reply(lambda reply: reply.pop("usage")),
    "usage-as-text": _reply(lambda reply: reply.update(usage="many")),
    "usage-of-texts": _reply(lambda reply: reply["usage"].update(prompt_tokens="50")),
    "finish-as-list": _reply(lambda reply: reply["choices"][0].update(finish_reason=["stop"])),
    "logprobs-as-text": _reply(lambda reply: reply["choices"][0].update(logprobs="-1.5")),
    "logprobs-of-texts": _reply(
        lambda reply: reply["choices"][0].update(logprobs={"content": ["A", {"token": 1}]})
    ),
    "reasoning-as-object": _reply(reasoning_content={"steps": [1, 2]}),
    "model-as-object": _reply(lambda reply: reply.update(model={"name": "bench"})),
    "content-in-parts": _reply(_in_parts),
    "deep": _bytes(lambda body: body.replace(b'"created": 0', _DEEP), whole=True),
    "error-in-200": _in_200({"message": "the worker is restarting", "type": "server"}),
    "lasting-error-in-200": _in_200({"message": "no such adapter", "code": 404}),
    "endless": _endless,
    "gzip-bomb": _gzip_bomb,
    "retry-after-infinity": _status(429, Retry_After="Infinity"),
    "retry-after-9999": _status(429, Retry_After="Fri, 31 Dec 9999 23:59:59 GMT"),
    "too-long": _refusing(
        lambda request: True,
        "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens.",
        "context_length_exceeded",
    ),
    "no-system": _refusing(
        lambda request: request["messages"][0]["role"] in ("system", "developer"),
        "System role not supported",
    ),
    "no-logprobs": _refusing(
        lambda request: "logprobs" in request, "logprobs are not supported by this model"
    ),
    "logprobs-busy": _busy_with_logprobs,
    "no-schema": _refusing(
        lambda request: "response_format" in request,
        "response_format of type json_schema is not supported",
    ),
    "wrong-model": _reply(lambda reply: reply.update(model="another-model-7b")),
    "echo-key": _echo_key,
    "echo-key-busy": _echo_key_busy,
    "echo-url": _echo_url,
}  # fmt: skip
"""Everything that can go wrong, by name."""

TRANSIENT = (
    "status-429", "status-429-after", "status-500", "status-502", "status-503", "no-content",
    "reset-before", "reset-inside", "truncated-json", "malformed-json", "invalid-utf8", "hang",
)  # fmt: skip
"""Kinds after which no generation was finished, so that it is asked for again."""


RESTART = "restart"
"""A fault of the whole server: it breaks every connection, and is down for ``seconds``."""


def drawn(*parts: object) -> float:
    """A number between 0 and 1, never either, that hangs on the parts alone."""
    number = hashlib.sha256(json.dumps(parts).encode()).digest()[:6]
    return (int.from_bytes(number, "big") + 0.5) / 2**48


class FaultySite:
    """What is counted, and what is due."""

    def __init__(self, faults: Sequence[Fault], latency: Latency, seed: int) -> None:
        """Start from zero."""
        self.faults, self.latency, self.seed = list(faults), latency, seed
        self.attempts: Counter[tuple[str, object]] = Counter()
        self.finished: Counter[tuple[str, object]] = Counter()
        self.went_wrong: Counter[str] = Counter()
        self.keys: Counter[str] = Counter()
        self.outages = 0
        self.tls: ssl.SSLContext | None = None
        self.listener: asyncio.Server | None = None
        self._open: set[Writer] = set()

    async def listen(self, port: int) -> int:
        """Take connections from now on.

        Args:
            port: 0 for a free one.

        Returns:
            The port.
        """
        self.listener = await asyncio.start_server(
            self.talk, HOST, port, family=socket.AF_INET, backlog=1024, limit=2**20, ssl=self.tls
        )
        return int(self.listener.sockets[0].getsockname()[1])

    async def go_down(self, seconds: float) -> None:
        """Break every connection and refuse new ones for a while, as a server that restarts does.

        Args:
            seconds: how long.
        """
        if self.listener is None:  # down already
            return
        self.outages += 1
        listener, self.listener = self.listener, None
        port = listener.sockets[0].getsockname()[1]
        listener.close()
        for writer in self._open:
            writer.transport.abort()
        await asyncio.sleep(seconds)
        await self.listen(port)

    def due(self, request: Json, digest: str, attempt: int) -> tuple[str, float] | None:
        """What goes wrong with this attempt, and for how long."""
        prompt = str(request["messages"][-1].get("content"))
        for number, fault in enumerate(self.faults):
            if fault.attempts is not None and attempt >= fault.attempts:
                continue
            if fault.match not in prompt or self.finished.total() < fault.after:
                continue
            if drawn(self.seed, number, digest, attempt) < fault.rate:
                kinds = fault.kind.split("|")
                draw = drawn(self.seed, number, digest, attempt, "kind")
                return kinds[int(draw * len(kinds))], fault.seconds
        return None

    def stats(self) -> Json:
        """Attempts, finished generations, how many of these were finished before, faults."""
        completions, distinct = self.finished.total(), len(self.finished)
        return {
            "attempts": self.attempts.total(),
            "finished": completions,
            "distinct": distinct,
            "repeated": completions - distinct,
            "faults": dict(self.went_wrong),
            "keys": dict(self.keys),
            "outages": self.outages,
        }

    async def talk(self, reader: asyncio.StreamReader, writer: Writer) -> None:
        """Answer one keep-alive connection."""
        self._open.add(writer)
        with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            while not writer.is_closing():
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
                fields = {
                    name.strip().lower(): value.strip()
                    for name, _, value in (line.partition(":") for line in head[1:])
                }
                body = await reader.readexactly(int(fields.get("content-length", "0")))
                method, path = head[0].split(" ")[:2]
                await self._answer(writer, method, path, body, fields.get("authorization", ""))
        self._open.discard(writer)
        writer.transport.abort()

    async def _answer(
        self, writer: Writer, method: str, path: str, body: bytes, authorization: str
    ) -> None:
        if (method, path) == ("POST", "/faults"):
            self.faults = [Fault(**fault) for fault in json.loads(body)]
        elif (method, path) == ("POST", "/reset"):
            for counts in (self.attempts, self.finished, self.went_wrong, self.keys):
                counts.clear()
        elif (method, path) == ("POST", "/down"):
            self.background = asyncio.create_task(self.go_down(json.loads(body)))
        elif (method, path) == ("POST", COMPLETIONS):
            await self._complete(writer, json.loads(body), authorization)
            return
        elif path != "/stats":
            await _send(writer, 404, _error(f"no such endpoint: {method} {path}"))
            return
        await _send(writer, 200, json.dumps(self.stats()).encode())

    async def _complete(self, writer: Writer, request: Json, authorization: str) -> None:
        digest = request_hash(request)
        asked_for = (digest, request.get("seed"))
        attempt = self.attempts[asked_for]
        self.attempts[asked_for] += 1
        self.keys[authorization] += 1
        due = self.due(request, digest, attempt)
        if wait := self.latency.seconds(drawn(self.seed, digest, attempt, "latency")):
            await asyncio.sleep(wait)
        call = Call(request, digest, attempt, authorization, due[1] if due else 0.0)
        if due:
            self.went_wrong[due[0]] += 1
            if due[0] == RESTART:
                await self.go_down(due[1])
                return
        if await (KINDS[due[0]] if due else _reply())(writer, call):
            self.finished[asked_for] += 1


def speaking_tls(certificate: str, handshakes_failed: int) -> ssl.SSLContext:
    """TLS with a certificate, whose first handshakes fail.

    Args:
        certificate: PEM file of key and certificate.
        handshakes_failed: so many are ended with an alert.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    left = iter(range(handshakes_failed))

    def greet(*_: object) -> int | None:
        return None if next(left, None) is None else ssl.ALERT_DESCRIPTION_INTERNAL_ERROR

    context.sni_callback = greet
    return context


async def serve(site: FaultySite, port: int, lifetime: float) -> None:
    """Serve until the process that started this one is gone, or the time is up.

    Args:
        site: what answers.
        port: port to listen on, 0 for a free one.
        lifetime: seconds to serve at most.
    """
    parent = os.getppid()
    loop = asyncio.get_running_loop()
    end = loop.time() + lifetime
    scheme = "https" if site.tls else "http"
    print(f"{scheme}://{HOST}:{await site.listen(port)}", flush=True)
    while os.getppid() == parent and loop.time() < end:
        await asyncio.sleep(0.5)


@dataclass(frozen=True)
class FaultyServer:
    """A faulty server in a process of its own.

    Attributes:
        url: ``http://127.0.0.1:PORT``; the API's base URL is this and ``/v1``.
        certificate: what it shows where it speaks TLS; PEM file.
    """

    url: str
    certificate: Path | None = None

    @property
    def api(self) -> str:
        """The API's base URL."""
        return f"{self.url}/v1"

    def stats(self) -> Json:
        """``attempts``, ``finished``, ``distinct``, ``repeated``, ``faults`` by kind, ``keys``."""
        return self._ask("GET", "/stats", [])

    def reset(self) -> None:
        """Count from zero again; every request is at its first attempt."""
        self._ask("POST", "/reset", [])

    def set(self, *faults: Fault) -> None:
        """Other faults from now on; none mends the server."""
        self._ask("POST", "/faults", [asdict(fault) for fault in faults])

    def down(self, seconds: float) -> None:
        """Break every connection, and refuse all for a while."""
        self._ask("POST", "/down", seconds)

    def _ask(self, method: str, path: str, body: Any) -> Json:
        address = self.url.partition("://")[2]
        connection = (
            http.client.HTTPSConnection(
                address, timeout=30, context=ssl.create_default_context(cafile=self.certificate)
            )
            if self.certificate
            else http.client.HTTPConnection(address, timeout=30)
        )
        try:
            connection.request(method, path, json.dumps(body).encode())
            return cast(Json, json.load(connection.getresponse()))
        finally:
            connection.close()


@contextmanager
def faulty_server(
    *faults: Fault,
    latency: Latency | None = None,
    seed: int = 42,
    lifetime: float = 1800,
    certificate: Path | None = None,
    handshakes_failed: int = 0,
) -> Iterator[FaultyServer]:
    """A faulty server in a process of its own, for as long as the block lasts.

    Args:
        faults: what goes wrong; the first that fits counts.
        latency: how long replies take.
        seed: of every draw.
        lifetime: seconds to serve at most.
        certificate: PEM file of key and certificate, to speak TLS with.
        handshakes_failed: so many of the first TLS handshakes fail.

    Yields:
        The server, which takes requests.

    Raises:
        RuntimeError: it did not start.
    """
    command = [sys.executable, "-m", "tests.faults", "--seed", str(seed)]
    command += ["--faults", json.dumps([asdict(fault) for fault in faults])]
    command += ["--latency", json.dumps(asdict(latency or Latency())), "--lifetime", str(lifetime)]
    if certificate:
        command += ["--tls", str(certificate), "--handshakes-failed", str(handshakes_failed)]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        cwd=Path(__file__).parents[1],
    )
    assert process.stdout is not None
    try:
        url = process.stdout.readline().decode().strip()
        if not url:
            raise RuntimeError(f"the server did not start: {' '.join(command)}")
        yield FaultyServer(url, certificate)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve.

    Args:
        arguments: command-line arguments; by default those of the process.

    Returns:
        The exit status.
    """
    parser = argparse.ArgumentParser(description="A chat-completions server that goes wrong.")
    parser.add_argument("--port", type=int, default=0, help="0 for a free one")
    parser.add_argument("--faults", default="[]", metavar="JSON", help="list of faults")
    parser.add_argument("--latency", default="{}", metavar="JSON", help="of each completion")
    parser.add_argument("--seed", type=int, default=42, help="of every draw")
    parser.add_argument("--lifetime", type=float, default=1800, help="seconds at most")
    parser.add_argument("--tls", metavar="PEM", help="key and certificate, to speak TLS with")
    parser.add_argument("--handshakes-failed", type=int, default=0, help="first ones to fail")
    options = parser.parse_args(arguments)
    site = FaultySite(
        [Fault(**fault) for fault in json.loads(options.faults)],
        Latency(**json.loads(options.latency)),
        options.seed,
    )
    if options.tls:
        site.tls = speaking_tls(options.tls, options.handshakes_failed)
    with suppress(KeyboardInterrupt):
        asyncio.run(serve(site, options.port, options.lifetime))
    return 0


if __name__ == "__main__":
    sys.exit(main())
