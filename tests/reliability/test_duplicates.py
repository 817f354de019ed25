"""A reply that a server or proxy sends twice is never taken for the reply to another request."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import pytest
from inspect_ai.model import ChatMessageUser, GenerateConfig

from holdfast.models.lean import Lean

REQUESTS = 1000
INTERVAL = 100
"""Each hundredth reply goes out twice."""


@dataclass
class Repeating:
    """A server that echoes the last message, and sends each hundredth reply twice.

    Attributes:
        when: ``at once`` with the reply, ``idle`` while the connection waits for a request, or
            ``late``, after the next request was read and before it is answered.
        unique: whether each reply has an id of its own.
    """

    when: str
    unique: bool = True
    requests: int = 0
    connections: int = 0
    repeats: int = 0
    port: int = 0
    tasks: list["asyncio.Task[None]"] = field(default_factory=list)

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        late = b""
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
                length = int(head.partition("content-length:")[2].split("\r\n")[0])
                request = json.loads(await reader.readexactly(length))
                self.requests += 1
                writer.write(late)
                late = b""
                reply = self._reply(request)
                writer.write(reply)
                if self.requests % INTERVAL == 0:
                    self.repeats += 1
                    if self.when == "at once":
                        writer.write(reply)
                    elif self.when == "idle":
                        self.tasks.append(asyncio.create_task(self._repeat(writer, reply)))
                    else:
                        late = reply
                await writer.drain()
        writer.close()

    async def _repeat(self, writer: asyncio.StreamWriter, reply: bytes) -> None:
        await asyncio.sleep(0.005)
        with suppress(ConnectionError):
            writer.write(reply)

    def _reply(self, request: dict[str, Any]) -> bytes:
        reply = {
            "id": f"chatcmpl-{self.requests if self.unique else 0}",
            "choices": [
                {
                    "message": {"content": request["messages"][-1]["content"]},
                    "finish_reason": "stop",
                }
            ],
        }
        body = json.dumps(reply).encode()
        return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)


@asynccontextmanager
async def served(site: Repeating) -> AsyncIterator[Lean]:
    server = await asyncio.start_server(site.talk, "127.0.0.1", 0)
    site.port = server.sockets[0].getsockname()[1]
    lean = Lean("echo", f"http://127.0.0.1:{site.port}/v1")
    yield lean
    await lean.aclose()
    server.close()


async def asked(lean: Lean, number: int) -> tuple[str, int]:
    """The reply to a numbered request, and how often it was tried again."""
    for retries in range(5):
        try:
            output, _ = await lean.generate(
                [ChatMessageUser(content=f"request {number}")], [], "none", GenerateConfig()
            )
        except Exception as error:
            if not lean.should_retry(error).retry:
                raise
        else:
            return output.completion, retries
    raise AssertionError(f"request {number} was never answered")


@pytest.mark.parametrize("connections", [1, 8])
@pytest.mark.parametrize("when", ["at once", "idle", "late"])
@pytest.mark.rest_slow
async def test_duplicate_replies_reach_no_other_request(when: str, connections: int) -> None:
    site, total_retries, numbers = Repeating(when), 0, iter(range(REQUESTS))

    async def ask_on() -> None:
        nonlocal total_retries
        for number in numbers:
            reply, retries = await asked(lean, number)
            assert reply == f"request {number}"
            total_retries += retries
            if when == "idle" and number % 10 == 0:
                await asyncio.sleep(0.01)

    async with served(site) as lean:
        await asyncio.gather(*(ask_on() for _ in range(connections)))
    assert site.repeats >= REQUESTS // INTERVAL
    if when == "late":
        assert total_retries > 0
    assert total_retries <= connections


async def test_a_server_without_ids_gets_new_connections() -> None:
    site = Repeating("at once", unique=False)
    async with served(site) as lean:
        for number in range(30):
            assert (await asked(lean, number))[0] == f"request {number}"
    # the first repeated id costs a retry, and from then on nothing can be repeated
    assert (site.requests, site.connections) == (31, 30)
