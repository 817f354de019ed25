"""``http/NAME``: an assistant behind an HTTP endpoint that a target file describes."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar
from uuid import uuid4

import aiohttp
from inspect_ai.model import (
    ChatMessage,
    GenerateConfig,
    ModelCall,
    ModelOutput,
    ModelUsage,
)
from inspect_ai.tool import ToolChoice, ToolInfo
from jsonpath_ng import JSONPath
from tenacity import AsyncRetrying, RetryCallState

from holdfast.attachments import SENT_OTHERWISE, document_of, put_replays
from holdfast.encoding import json_value
from holdfast.errors import InputError, in_one_line, printable, redirected

from .connections import LargeReplyError, RemoteModel, body_of
from .offline import replied
from .server import (
    ServerError,
    at_most,
    environment_speaks_of,
    error_message,
    largest_reply,
    retry_seconds,
)
from .target import Call, named_target
from .templates import TemplateFaultError, Values


class TargetError(ServerError):
    """The assistant returned no readable reply.

    Attributes:
        concerns_all: whether every request is likely to fail in this way.
        is_repeated: whether the request may be retried.
        is_untouched: whether the server rejected the request without processing it.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int = 0,
        remedy: str | None = None,
        concerns_all: bool = False,
        is_repeated: bool = True,
        is_untouched: bool = False,
        retry_after: float | None = None,
    ) -> None:
        """Store the message and what decides about a retry."""
        super().__init__(status, message, retry_after, remedy)
        self.concerns_all, self.is_repeated = concerns_all, is_repeated
        self.is_untouched = is_untouched


@dataclass(frozen=True)
class UserTurn:
    """User message of a turn.

    Attributes:
        text: the message.
        document: document that the assistant retrieves with it; None without one.
        reply: earlier reply to the message; None for the newest turn.
    """

    text: str
    document: str | None
    reply: str | None


@dataclass(frozen=True)
class Received:
    """Reply of the assistant.

    Attributes:
        text: text of the reply.
        content: JSON body that contains it, or the text.
        is_refusal: whether the assistant refused to answer.
    """

    text: str
    content: Any
    is_refusal: bool = False


class Http(RemoteModel):
    """Model provider for an assistant behind an HTTP endpoint.

    If the target file sends the whole conversation, each generation is one request. If it sends
    only the newest turn, each generation opens a session and sends the earlier turns again. The
    replies to these turns are stored next to the first replies.

    Attributes:
        target: the target file.
        on_call: function that is called with each request, in which the values of variables are
            masked. None without one.
    """

    sent_as: ClassVar[dict[str, str]] = {}
    """Always empty, because the target file defines the request."""

    def __init__(
        self,
        model_name: str,
        base_url: str | None = None,
        api_key: str | None = None,
        config: GenerateConfig = GenerateConfig(),  # noqa: B008 (the framework's own signature)
        target: str = "",
        **model_args: object,
    ) -> None:
        """Look up the target by its fingerprint. This sends nothing.

        Raises:
            InputError: no target with this fingerprint was given.
        """
        named = named_target(target)
        if named is None:
            raise InputError(
                f"'http/{model_name}' has no target file",
                field="--model",
                remedy="Give --target FILE.toml, which says how the assistant is asked",
            )
        self.target, self._file = named
        super().__init__(model_name, self.target.origins[0], None, [], config)
        self._largest = largest_reply() * 2**20
        self._ids: set[str] = set()
        self._next_call = 0.0
        self.on_call: Callable[[str], None] | None = None
        self._writing: asyncio.Lock | None = None

    @property
    def is_stateful(self) -> bool:
        """Whether each generation sends the earlier turns again."""
        return self.target.is_stateful

    @property
    def takes_documents(self) -> bool:
        """Whether the target file has a place for a retrieved document."""
        return self.target.takes_documents

    @property
    def takes_system(self) -> bool:
        """Whether the request includes a system message."""
        return self.target.takes_system

    def describe(self) -> str:
        """Return the hosts of the requests and the environment variables that they use."""
        return self.target.describe()

    def calls_of(self, messages: Sequence[ChatMessage]) -> int:
        """Return the number of requests for a generation."""
        return sum(m.role == "user" for m in messages) if self.is_stateful else 1

    async def generate(
        self,
        input: list[ChatMessage],
        tools: list[ToolInfo],
        tool_choice: ToolChoice,
        config: GenerateConfig,
    ) -> tuple[ModelOutput, ModelCall]:
        """Return the reply to the newest turn, with its request and response.

        Raises:
            TargetError: the assistant returned no readable reply.
        """
        began = time.perf_counter()
        system = "\n\n".join(message.text for message in input if message.role == "system")
        turns = user_turns(input)
        replays: list[str | None] = []
        if self.is_stateful:
            async with self._conversation(system, config) as conversation:
                for turn in turns[:-1]:
                    reply = await conversation.say(turn)
                    replays.append(None if reply.text == turn.reply else reply.text)
                received = await conversation.say(turns[-1])
        else:
            values = self.target.values(
                messages=[{"role": m.role, "content": m.text} for m in input],
                last=turns[-1].text, system=system, document=turns[-1].document,
                session=uuid4().hex,
            )  # fmt: skip
            received = await self._ask(values, config)
        output = replied(
            self.model_name,
            received.text,
            ModelUsage(),
            stop_reason="content_filter" if received.is_refusal else "stop",
        )
        put_replays(output, replays)
        if system and not self.target.takes_system:
            lack = {SENT_OTHERWISE: "no system message was sent"}
            output.metadata = {**(output.metadata or {}), **lack}
        request: dict[str, Any] = {"messages": [{"role": m.role, "content": m.text} for m in input]}
        if turns[-1].document is not None:
            request["document"] = turns[-1].document
        content = received.content
        return output, ModelCall.model_construct(
            request=request,
            response=content if isinstance(content, dict) else {"body": content},
            time=time.perf_counter() - began,
        )

    async def converse(self, texts: Sequence[str]) -> list[str]:
        """Send messages as one conversation, in one session if there are sessions.

        Returns:
            The reply to each message.

        Raises:
            TargetError: the assistant returned no readable reply.
        """
        config, replies = GenerateConfig(), list[str]()
        if self.is_stateful:
            async with self._conversation("", config) as conversation:
                for text in texts:
                    replies.append((await conversation.say(UserTurn(text, None, None))).text)
            return replies
        messages: list[dict[str, str]] = []
        for text in texts:
            messages.append({"role": "user", "content": text})
            values = self.target.values(
                messages=[*messages], last=text, system="", session=uuid4().hex
            )
            replies.append((await self._ask(values, config)).text)
            messages.append({"role": "assistant", "content": replies[-1]})
        return replies

    @asynccontextmanager
    async def _conversation(
        self, system: str, config: GenerateConfig
    ) -> AsyncIterator["Conversation"]:
        """Open a new session and close it at the end, also after an error."""
        session = self.target.session
        conversation = Conversation(self, system, config)
        if session is None or not (session.open or session.id):
            conversation.id = uuid4().hex
        if session is not None and session.open is not None:
            values = self.target.values(system=system, session=conversation.id)
            status, content = await self.send(session.open, values, config)
            if status in self.target.refused:
                message = self.target.variables.masked(error_message(bytearray(content))[0])
                raise TargetError(
                    f"the assistant opens no session (status {status}): {message}",
                    status=status, concerns_all=True, is_repeated=False,
                    remedy=f"Check the call that opens a session in {self._file}",
                )  # fmt: skip
            if self.target.id_path is not None:
                conversation.id = self.new_id(self.target.id_path, content)
        try:
            yield conversation
        finally:
            if session is not None and session.close is not None and conversation.id:
                values = self.target.values(system=system, session=conversation.id)
                # the reply has arrived, so a session that cannot be closed is no error
                with suppress(TargetError, aiohttp.ClientError, TimeoutError, OSError):
                    await self.send(session.close, values, config)

    def new_id(self, path: JSONPath, content: bytes) -> str:
        """Return the id of a new session from a response.

        Raises:
            TargetError: the response has no id, or an earlier session had the same one.
        """
        id = _text_at(path, self._parse(content, "id of the session"), "session id")
        if id in self._ids:
            raise TargetError(
                f"the session id '{printable(id[:60])}' was used before, and conversations would "
                "mix"
            )
        self._ids.add(id)
        return id

    async def _ask(self, values: Values, config: GenerateConfig) -> Received:
        """Send a request and return its reply."""
        async with self._with_document(values["document"]):
            status, content = await self.send(self.target, values, config)
        return self.read(status, content)

    def read(self, status: int, content: bytes) -> Received:
        """Extract the reply from a response.

        Raises:
            TargetError: the response contains no reply.
        """
        if status in self.target.refused:
            text = self.target.variables.masked(error_message(bytearray(content))[0])
            return Received(text, text, is_refusal=True)
        path = self.target.reply_path
        if path is None:
            text = self.target.variables.masked(content.decode("utf-8", "replace"))
            return Received(text, text)
        value = self._parse(content, "reply")
        return Received(_text_at(path, value, "reply"), value)

    def _parse(self, content: bytes, noun: str) -> Any:
        text = self.target.variables.masked(content.decode("utf-8", "replace"))
        try:
            return json_value(text)
        except (ValueError, RecursionError):
            start = " ".join(text[:200].split())[:60]
            raise TargetError(
                f"the {noun} is not in JSON: the response begins with '{printable(start)}'",
                remedy=f"Check url in {self._file}, or leave out the JSONPath where the body is "
                "text",
                concerns_all=True,
            ) from None

    @asynccontextmanager
    async def _with_document(self, document: str | None) -> AsyncIterator[None]:
        """Write a document to where the assistant retrieves it, for the time of a request."""
        if self.target.document is None:
            yield
            return
        # other requests at the same time would also retrieve it
        self._writing = self._writing or asyncio.Lock()
        async with self._writing:
            if document is None:
                yield
                return
            path = Path(self._file).parent / self.target.document.file
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                with path.open("x", encoding="utf-8") as file:
                    file.write(document)
            except FileExistsError:
                raise TargetError(
                    f"{path} exists already, and is not written over", concerns_all=True,
                    remedy="Remove it, or name another file under [document]", is_repeated=False,
                ) from None  # fmt: skip
            try:
                yield
            finally:
                path.unlink(missing_ok=True)

    async def send(self, call: Call, values: Values, config: GenerateConfig) -> tuple[int, bytes]:
        """Send a request.

        Returns:
            The status and the body of the response.

        Raises:
            TargetError: the status is neither a success nor a refusal.
        """
        masked = self.target.variables.masked
        try:
            url, headers, body = call.filled(values)
        except TemplateFaultError as error:
            raise TargetError(
                f"the request cannot be filled ({in_one_line(error)})",
                remedy=f"Correct {self._file}", is_repeated=False,
            ) from None  # fmt: skip
        if self.on_call:
            text = (body or b"").decode("utf-8", "replace")
            self.on_call(masked(f"{call.method} {url} {text}".rstrip()))
        await self._wait_turn()
        seconds = self.target.timeout or config.attempt_timeout or 600
        try:
            async with (
                self.client().request(
                    call.method, url, data=body, headers=headers, timeout=at_most(seconds),
                    allow_redirects=False,
                ) as response,
                body_of(response, self._largest) as received,
            ):  # fmt: skip
                status, content = response.status, bytes(received)
        except LargeReplyError:
            raise TargetError(
                f"the reply is larger than {self._largest // 2**20} MiB",
                remedy="Set LEAN_MAX_REPLY_MIB", is_repeated=False,
            ) from None  # fmt: skip
        except TimeoutError:
            raise TargetError(f"no reply within {seconds:g} seconds") from None
        except aiohttp.ClientConnectionError as error:
            raise error from None  # this error names the host, its cause does not
        except (aiohttp.ClientError, ValueError) as error:  # a header that cannot be sent
            raise TargetError(
                masked(f"{type(error).__name__}: {in_one_line(error)}"),
                is_repeated=isinstance(error, aiohttp.ClientPayloadError),
            ) from None
        if 200 <= status < 300 or status in self.target.refused:
            return status, content
        if 300 <= status < 400 and (location := response.headers.get("Location")):
            reason, _ = redirected(url, location)
            raise TargetError(
                masked(reason), status=status, is_repeated=False, concerns_all=True,
                remedy="holdfast follows no redirects, because prompts and keys would go to a "
                f"server that you did not name. If you trust it, correct url in {self._file}",
            )  # fmt: skip
        is_again = status in self.target.again
        session = self.target.session
        is_expired = session is not None and status in session.expired
        raise TargetError(
            masked(error_message(bytearray(content))[0]) or "without a word",
            status=status,
            is_repeated=is_again or is_expired,
            is_untouched=is_again and status in (429, 503),
            retry_after=retry_seconds(response.headers.get("Retry-After")),
            concerns_all=status in (401, 403, 404, 405) and not is_again,
            remedy=None
            if is_again or is_expired
            else f"Check url, headers and body in {self._file}"
            ", or add the status to again or refused",
        )

    async def _wait_turn(self) -> None:
        """Wait until the rate limit allows another request."""
        if self.target.rate:
            now = time.monotonic()
            self._next_call = max(now, self._next_call + 1 / self.target.rate)
            if self._next_call > now:
                await asyncio.sleep(self._next_call - now)

    def open_session(self) -> aiohttp.ClientSession:
        """Return a new session, which keeps neither connections nor cookies."""
        self._writing = None
        return aiohttp.ClientSession(
            # a late or repeated response on a kept connection would be read as the next one
            connector=aiohttp.TCPConnector(limit=0, force_close=True),
            cookie_jar=aiohttp.DummyCookieJar(),  # cookies would connect conversations
            trust_env=environment_speaks_of(self.target.origins[0]),
        )

    def connection_key(self) -> str:
        """Return the key by which connections are limited: the target."""
        return f"{self.target.origins[0]} {self.target.fingerprint}"


class Conversation:
    """Session with the assistant.

    Attributes:
        id: id of the session; None until the first reply contains it.
    """

    def __init__(self, api: Http, system: str, config: GenerateConfig) -> None:
        """Prepare a session. This sends nothing."""
        self._api, self._system, self._config = api, system, config
        self.id: str | None = None
        self._said = 0

    async def say(self, turn: UserTurn) -> Received:
        """Send a turn.

        A request that the server rejects as busy is retried here, so that the earlier turns are
        not sent again. After any other error the state of the session is unknown, and the session
        is abandoned.
        """
        target = self._api.target
        values = target.values(
            last=turn.text, system=self._system, session=self.id, document=turn.document
        )
        async with self._api._with_document(turn.document):
            status, content = await self._send_patiently(values)
        path = target.id_path if self.id is None else None
        if path is not None:
            self.id = self._api.new_id(path, content)
        self._said += 1
        return self._api.read(status, content)

    async def _send_patiently(self, values: Values) -> tuple[int, bytes]:
        state = RetryCallState(AsyncRetrying(), None, (), {})
        tries, wait = 0, self._api.retry_wait()
        while True:
            try:
                return await self._api.send(self._api.target, values, self._config)
            except TargetError as error:
                most = self._config.max_retries
                # no turn precedes the first one, so the caller can retry
                if not error.is_untouched or not self._said:
                    raise
                tries += 1
                if most is not None and tries > most:
                    error.is_repeated = False  # the retries are used up
                    raise
                state.attempt_number = tries
                state.set_exception((type(error), error, error.__traceback__))
                await asyncio.sleep(wait(state))


def user_turns(messages: Sequence[ChatMessage]) -> list[UserTurn]:
    """Return the user messages of a conversation with their replies."""
    said = [message for message in messages if message.role != "system"]
    replies = [*(m.text if m.role == "assistant" else None for m in said[1:]), None]
    return [
        UserTurn(message.text, document_of(message), reply)
        for message, reply in zip(said, replies, strict=True)
        if message.role == "user"
    ]


def _text_at(path: JSONPath, value: Any, noun: str) -> str:
    """Return the text at a path. Several matches are joined.

    Raises:
        TargetError: nothing matches.
    """
    values = [match.value for match in path.find(value)]
    if not values:
        shown = (
            f"the keys {', '.join(map(str, value))[:100]}"
            if isinstance(value, dict)
            else (f"a {type(value).__name__}")
        )
        raise TargetError(
            f"the {noun} path {path} matches nothing in a reply with {printable(shown)}",
            remedy="Correct the JSONPath in the target file", concerns_all=True,
        )  # fmt: skip
    if any(isinstance(item, (dict, list)) or item is None for item in values):
        raise TargetError(
            f"the {noun} path {path} does not lead to text",
            remedy="Correct the JSONPath in the target file", concerns_all=True,
        )  # fmt: skip
    return "".join(str(item) for item in values)
