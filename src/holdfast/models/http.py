"""``http/NAME``: an assistant behind HTTP, asked as its target file says."""

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
    ModelAPI,
    ModelCall,
    ModelOutput,
    ModelUsage,
    RetryDecision,
)
from inspect_ai.tool import ToolChoice, ToolInfo
from jsonpath_ng import JSONPath
from tenacity import AsyncRetrying, RetryCallState
from tenacity.wait import wait_base

from holdfast.attachments import SENT_OTHERWISE, document_of, put_replays
from holdfast.encoding import json_value
from holdfast.errors import InputError, in_one_line, printable, redirected

from .connections import LargeReplyError, body_of
from .offline import replied
from .server import (
    RetryWait,
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
    """An assistant gave no reply that can be read.

    Attributes:
        concerns_all: whether every request is likely to end so.
        is_repeated: whether the call may be repeated.
        is_untouched: whether the assistant has refused the call without looking at it.
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
        """Keep what decides whether to try again."""
        super().__init__(status, message, retry_after, remedy)
        self.concerns_all, self.is_repeated = concerns_all, is_repeated
        self.is_untouched = is_untouched


@dataclass(frozen=True)
class UserTurn:
    """What the user says in a turn.

    Attributes:
        text: the message.
        document: what the assistant is to retrieve beside it; None for nothing.
        reply: what was answered before; None for the turn that is to be answered.
    """

    text: str
    document: str | None
    reply: str | None


@dataclass(frozen=True)
class Received:
    """A reply of the assistant.

    Attributes:
        text: what it says.
        content: the JSON that it stands in, or the text.
        is_refusal: whether the assistant has refused to answer.
    """

    text: str
    content: Any
    is_refusal: bool = False


class Http(ModelAPI):
    """An assistant behind HTTP.

    Where its target file sends the whole conversation, each generation is one call. Where it sends
    the newest turn alone, each generation has a session of its own, in which the earlier turns are
    sent again; what is answered to them then is kept beside what was answered before.

    Attributes:
        target: its target file.
        on_call: is told each request, without the values of variables; None for nobody.
    """

    direct = True
    """Nothing of Inspect's is needed around a request."""

    sent_as: ClassVar[dict[str, str]] = {}
    """The target file says what is sent."""

    def __init__(
        self,
        model_name: str,
        base_url: str | None = None,
        api_key: str | None = None,
        config: GenerateConfig = GenerateConfig(),  # noqa: B008 (the framework's own signature)
        target: str = "",
        **model_args: object,
    ) -> None:
        """Take the target of that fingerprint; nothing is sent.

        Raises:
            InputError: the user has named no such target.
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
        self._session: aiohttp.ClientSession | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._writing: asyncio.Lock | None = None

    @property
    def is_stateful(self) -> bool:
        """Whether earlier turns are sent again in each generation."""
        return self.target.is_stateful

    @property
    def takes_documents(self) -> bool:
        """Whether a document can be put where the assistant's retrieval would."""
        return self.target.takes_documents

    @property
    def takes_system(self) -> bool:
        """Whether a system message is sent."""
        return self.target.takes_system

    def describe(self) -> str:
        """Where requests go, and what of the environment they carry."""
        return self.target.describe()

    def calls_of(self, messages: Sequence[ChatMessage]) -> int:
        """How many replies a generation takes."""
        return sum(m.role == "user" for m in messages) if self.is_stateful else 1

    async def generate(
        self,
        input: list[ChatMessage],
        tools: list[ToolInfo],
        tool_choice: ToolChoice,
        config: GenerateConfig,
    ) -> tuple[ModelOutput, ModelCall]:
        """The reply to the newest turn, and the request and reply that it was.

        Raises:
            TargetError: the assistant gave no reply that can be read.
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
        """The replies to messages of one conversation, in a session where there are sessions.

        Raises:
            TargetError: the assistant gave no reply that can be read.
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
        """A fresh session, which is closed at the end whatever has become of it."""
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
                # the reply is there: a session that stays open is no fault of it
                with suppress(TargetError, aiohttp.ClientError, TimeoutError, OSError):
                    await self.send(session.close, values, config)

    def new_id(self, path: JSONPath, content: bytes) -> str:
        """The id of a session in the reply that began it.

        Raises:
            TargetError: there is none, or an earlier session had it.
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
        """One reply."""
        async with self._with_document(values["document"]):
            status, content = await self.send(self.target, values, config)
        return self.read(status, content)

    def read(self, status: int, content: bytes) -> Received:
        """What a response says.

        Raises:
            TargetError: there is no reply in it.
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
                f"the {noun} stands in no JSON: it begins with '{printable(start)}'",
                remedy=f"Check url in {self._file}, or leave out the JSONPath where the body is "
                "text",
                concerns_all=True,
            ) from None

    @asynccontextmanager
    async def _with_document(self, document: str | None) -> AsyncIterator[None]:
        """Have a document stand where the assistant retrieves it, for the time of a call."""
        if self.target.document is None:
            yield
            return
        # whoever asks meanwhile would retrieve it too
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
        """Make a call: the status of its response, and the body.

        Raises:
            TargetError: the server has not answered it with success or a refusal.
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
                self._client().request(
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
            raise error from None  # it names the host, what led to it does not
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
        """Wait until the rate allows another call."""
        if self.target.rate:
            now = time.monotonic()
            self._next_call = max(now, self._next_call + 1 / self.target.rate)
            if self._next_call > now:
                await asyncio.sleep(self._next_call - now)

    def _client(self) -> aiohttp.ClientSession:
        # a session belongs to the event loop that made it
        loop = asyncio.get_running_loop()
        if self._session is None or self._session.closed or self._loop is not loop:
            self._loop, self._writing = loop, None
            self._session = aiohttp.ClientSession(
                # a late or repeated reply on a connection would be taken for the next one's
                connector=aiohttp.TCPConnector(limit=0, force_close=True),
                cookie_jar=aiohttp.DummyCookieJar(),  # a cookie would join conversations
                trust_env=environment_speaks_of(self.target.origins[0]),
            )
        return self._session

    def should_retry(self, ex: Exception) -> RetryDecision:
        """Whether an error passes."""
        if isinstance(ex, TargetError):
            if not ex.is_repeated:
                return RetryDecision.no()
            if ex.status == 429:
                return RetryDecision.rate_limit(retry_after=ex.retry_after)
            return RetryDecision.transient(retry_after=ex.retry_after)
        if isinstance(ex, (aiohttp.InvalidURL, aiohttp.ClientConnectorCertificateError)):
            return RetryDecision.no()
        if isinstance(ex, (aiohttp.ClientError, TimeoutError, ConnectionError)):
            return RetryDecision.transient()
        return RetryDecision.no()

    def retry_wait(self) -> wait_base:
        """As long as the server asks for; else from half a second on, three times as long each."""
        return RetryWait()

    def connection_key(self) -> str:
        """Connections are counted for each target."""
        return f"{self.target.origins[0]} {self.target.fingerprint}"

    async def aclose(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None


class Conversation:
    """A session with the assistant.

    Attributes:
        id: its id; None where the first reply brings it.
    """

    def __init__(self, api: Http, system: str, config: GenerateConfig) -> None:
        """Begin it; nothing is sent."""
        self._api, self._system, self._config = api, system, config
        self.id: str | None = None
        self._said = 0

    async def say(self, turn: UserTurn) -> Received:
        """Send a turn.

        A call that the server turned away is repeated here, so that the turns before it need not
        be sent again. After any other fault nobody knows what the session holds: it is left.
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
                # the first turn has nothing before it: who asks repeats it
                if not error.is_untouched or not self._said:
                    raise
                tries += 1
                if most is not None and tries > most:
                    error.is_repeated = False  # it was, as often as it may be
                    raise
                state.attempt_number = tries
                state.set_exception((type(error), error, error.__traceback__))
                await asyncio.sleep(wait(state))


def user_turns(messages: Sequence[ChatMessage]) -> list[UserTurn]:
    """What the user says in a conversation, with what was answered."""
    said = [message for message in messages if message.role != "system"]
    replies = [*(m.text if m.role == "assistant" else None for m in said[1:]), None]
    return [
        UserTurn(message.text, document_of(message), reply)
        for message, reply in zip(said, replies, strict=True)
        if message.role == "user"
    ]


def _text_at(path: JSONPath, value: Any, noun: str) -> str:
    """The text at a path; several are joined.

    Raises:
        TargetError: there is none.
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
            f"the {noun} path {path} leads to no text",
            remedy="Correct the JSONPath in the target file", concerns_all=True,
        )  # fmt: skip
    return "".join(str(item) for item in values)
