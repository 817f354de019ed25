"""Connections to a server: each reply is its request's, and all together are of bounded size."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import Connection
from aiohttp.tracing import Trace

_MOST_REPLIES = 1000
"""Replies over a connection, which bounds the ids that are remembered."""


class RepeatedReplyError(aiohttp.ClientError):
    """A reply came over a connection that has brought one with its id before."""


@dataclass
class _History:
    """The replies that came over a connection.

    Attributes:
        ids: of the replies.
        is_accounted: whether the last request has a reply with an id of its own.
    """

    ids: set[str] = field(default_factory=set)
    is_accounted: bool = True


class Response(aiohttp.ClientResponse):
    """A response that knows its connection, which it gives back as soon as it is read."""

    protocol: ResponseHandler | None = None

    async def start(self, connection: Connection) -> aiohttp.ClientResponse:
        """Begin to read."""
        self.protocol = connection.protocol
        return await super().start(connection)


class Connector(aiohttp.TCPConnector):
    """A pool that uses a connection again only after a reply with a new id.

    HTTP/1.1 assigns replies to requests by their order alone. Where a server or a proxy sends a
    reply twice, the copy would be taken for the reply to the next request, whose own reply would
    be taken for that of the request after it.
    """

    def __init__(self) -> None:
        """Open no connection; Inspect says how many requests are in flight."""
        super().__init__(limit=0)
        self._histories: WeakKeyDictionary[ResponseHandler, _History] = WeakKeyDictionary()
        self._reuse = True

    async def connect(
        self, req: aiohttp.ClientRequest, traces: list[Trace], timeout: aiohttp.ClientTimeout
    ) -> Connection:
        """A connection of the pool that is fit for use, or a new one."""
        connection = await super().connect(req, traces, timeout)
        while connection.protocol is not None and not self._take(connection.protocol):
            connection.close()
            connection = await super().connect(req, traces, timeout)
        return connection

    def _take(self, protocol: ResponseHandler) -> bool:
        history = self._histories.setdefault(protocol, _History())
        # bytes that came while it was in the pool are why a protocol should close
        fit = (
            history.is_accounted and not protocol.should_close and len(history.ids) < _MOST_REPLIES
        )
        history.is_accounted = False
        return fit

    def account(self, response: aiohttp.ClientResponse, id: object) -> None:
        """Let the connection of a response be used again, if the reply has an id that is new on it.

        Raises:
            RepeatedReplyError: the connection has brought a reply with this id before.
        """
        if not isinstance(response, Response) or response.protocol is None:
            return
        if not isinstance(id, str) or not id:
            return
        history = self._histories[response.protocol]
        if id in history.ids:
            # repeated replies and repeated ids look the same: both are harmless on new connections
            self._reuse = False
            raise RepeatedReplyError(f"the server sent two replies with the id '{id[:100]}'")
        history.ids.add(id)
        history.is_accounted = self._reuse


class _InFlight:
    """The replies that are being read in an event loop.

    Attributes:
        size: bytes of them, unpacked.
        turn: of the only one that is read on where all together are too large.
    """

    def __init__(self) -> None:
        self.size = 0
        self.turn = asyncio.Lock()


_in_flight: WeakKeyDictionary[asyncio.AbstractEventLoop, _InFlight] = WeakKeyDictionary()

_MOST_IN_FLIGHT = 32 * 2**20
"""Bytes of all replies that are being read, beside the one that is read to its end."""

_CHUNK = 2**16


class LargeReplyError(Exception):
    """A reply is larger than a reply may be."""


@asynccontextmanager
async def body_of(response: aiohttp.ClientResponse, limit: int) -> AsyncIterator[bytearray]:
    """The unpacked body of a response, which counts as in flight for as long as the block lasts.

    A few kilobytes unpack to a gigabyte, and a hundred connections read at the same time. Where
    all together are too large they are read on one after the other.

    Args:
        response: a response that was not read.
        limit: bytes that it may have.

    Raises:
        LargeReplyError: it has more.
    """
    in_flight = _in_flight.setdefault(asyncio.get_running_loop(), _InFlight())
    content, has_turn = bytearray(), False
    try:
        async for chunk in response.content.iter_chunked(_CHUNK):
            content += chunk
            in_flight.size += len(chunk)
            if len(content) > limit:
                response.close()  # what is still to come is not waited for
                raise LargeReplyError
            if in_flight.size > _MOST_IN_FLIGHT and not has_turn:
                has_turn = await in_flight.turn.acquire()
        yield content
    finally:
        in_flight.size -= len(content)
        if has_turn:
            in_flight.turn.release()
