"""Connections that match replies to requests and limit the total size of replies in memory."""

import asyncio
from abc import abstractmethod
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import Connection
from aiohttp.tracing import Trace
from inspect_ai.model import ModelAPI, RetryDecision
from tenacity.wait import wait_base

from .server import RetryWait, ServerError


class RemoteModel(ModelAPI):
    """Model behind a server, with one aiohttp session for each event loop."""

    direct = True
    """Requests bypass the generation code of Inspect."""

    _session: aiohttp.ClientSession | None = None
    _loop: asyncio.AbstractEventLoop | None = None

    @abstractmethod
    def open_session(self) -> aiohttp.ClientSession:
        """Return a new session."""

    def client(self) -> aiohttp.ClientSession:
        """Return the session of the running event loop, because a session belongs to its loop."""
        loop = asyncio.get_running_loop()
        if self._session is None or self._session.closed or self._loop is not loop:
            self._loop, self._session = loop, self.open_session()
        return self._session

    def should_retry(self, ex: Exception) -> RetryDecision:
        """Return whether an error is temporary."""
        if isinstance(ex, ServerError):
            return ex.decision()
        if isinstance(ex, (aiohttp.InvalidURL, aiohttp.ClientConnectorCertificateError)):
            return RetryDecision.no()
        if isinstance(ex, (aiohttp.ClientError, TimeoutError, ConnectionError)):
            return RetryDecision.transient()
        return RetryDecision.no()

    def retry_wait(self) -> wait_base:
        """Return the waiting time: what the server asks for, otherwise a growing backoff.

        Eight retries last through an outage of thirteen minutes.
        """
        return RetryWait()

    async def aclose(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None


_MOST_REPLIES = 1000
"""Maximum number of replies over a connection, which limits the number of stored ids."""


class RepeatedReplyError(aiohttp.ClientError):
    """Error for a reply whose id already occurred on the same connection."""


@dataclass
class _History:
    """History of the replies received over a connection.

    Attributes:
        ids: ids of the replies.
        is_accounted: whether the last request received a reply with a new id.
    """

    ids: set[str] = field(default_factory=set)
    is_accounted: bool = True


class Response(aiohttp.ClientResponse):
    """Response that stores the protocol of its connection.

    The connection returns to the pool as soon as the response is read, but the protocol is kept.
    """

    protocol: ResponseHandler | None = None

    async def start(self, connection: Connection) -> aiohttp.ClientResponse:
        """Start to read the response."""
        self.protocol = connection.protocol
        return await super().start(connection)


class Connector(aiohttp.TCPConnector):
    """Pool that reuses a connection only after a reply with a new id.

    HTTP/1.1 matches replies to requests only by their order. If a server or proxy sends a reply
    twice, the copy would be matched to the next request, and all later replies would be off by one.
    """

    def __init__(self) -> None:
        """Create an unlimited pool, because Inspect limits the number of concurrent requests."""
        super().__init__(limit=0)
        self._histories: WeakKeyDictionary[ResponseHandler, _History] = WeakKeyDictionary()
        self._reuse = True

    async def connect(
        self, req: aiohttp.ClientRequest, traces: list[Trace], timeout: aiohttp.ClientTimeout
    ) -> Connection:
        """Return a reusable connection from the pool, or a new connection."""
        connection = await super().connect(req, traces, timeout)
        while connection.protocol is not None and not self._take(connection.protocol):
            connection.close()
            connection = await super().connect(req, traces, timeout)
        return connection

    def _take(self, protocol: ResponseHandler) -> bool:
        history = self._histories.setdefault(protocol, _History())
        # should_close is set if bytes arrived while the connection was in the pool
        fit = (
            history.is_accounted and not protocol.should_close and len(history.ids) < _MOST_REPLIES
        )
        history.is_accounted = False
        return fit

    def account(self, response: aiohttp.ClientResponse, id: object) -> None:
        """Allow reuse of the connection of a response if the reply's id is new on it.

        Args:
            response: response that contains the reply.
            id: id of the reply.

        Raises:
            RepeatedReplyError: an earlier reply over this connection had the same id.
        """
        if not isinstance(response, Response) or response.protocol is None:
            return
        if not isinstance(id, str) or not id:
            return
        history = self._histories[response.protocol]
        if id in history.ids:
            # repeated replies cannot be told from reused ids; both are harmless on new connections
            self._reuse = False
            raise RepeatedReplyError(f"the server sent two replies with the id '{id[:100]}'")
        history.ids.add(id)
        history.is_accounted = self._reuse


class _InFlight:
    """Replies that are being read in an event loop.

    Attributes:
        size: total decompressed size in bytes.
        turn: lock of the one reply that may be read further when the total size is too large.
    """

    def __init__(self) -> None:
        self.size = 0
        self.turn = asyncio.Lock()


_in_flight: WeakKeyDictionary[asyncio.AbstractEventLoop, _InFlight] = WeakKeyDictionary()

_MOST_IN_FLIGHT = 32 * 2**20
"""Maximum total bytes of replies being read, apart from the reply that holds the lock."""

_CHUNK = 2**16


class LargeReplyError(Exception):
    """Error for a reply that exceeds the size limit."""


@asynccontextmanager
async def body_of(response: aiohttp.ClientResponse, limit: int) -> AsyncIterator[bytearray]:
    """Read the decompressed body of a response, which counts as in flight until the block ends.

    A few kilobytes can decompress to a gigabyte, and a hundred connections may read at the same
    time. If the total size becomes too large, the remaining bodies are read one at a time.

    Args:
        response: response that has not been read.
        limit: maximum size of the body in bytes.

    Raises:
        LargeReplyError: the body is larger than the limit.
    """
    in_flight = _in_flight.setdefault(asyncio.get_running_loop(), _InFlight())
    content, has_turn = bytearray(), False
    try:
        async for chunk in response.content.iter_chunked(_CHUNK):
            content += chunk
            in_flight.size += len(chunk)
            if len(content) > limit:
                response.close()  # do not wait for the rest of the body
                raise LargeReplyError
            if in_flight.size > _MOST_IN_FLIGHT and not has_turn:
                has_turn = await in_flight.turn.acquire()
        yield content
    finally:
        in_flight.size -= len(content)
        if has_turn:
            in_flight.turn.release()
