"""``lean/MODEL``: servers that speak OpenAI's chat completions, at the lowest cost a call.

For vLLM, SGLang, llama.cpp, LiteLLM and the like, where the driver and not the server can be what
limits a study. Plain text in and out, no tools; hosted APIs go through Inspect's own providers.
"""

import base64
import json
import math
import os
import re
import time
from collections.abc import Mapping
from typing import Any, ClassVar, TypeVar
from urllib.parse import unquote, urlsplit

import aiohttp
from inspect_ai.model import (
    ChatMessage,
    GenerateConfig,
    Logprobs,
    ModelCall,
    ModelOutput,
    ModelUsage,
    ResponseSchema,
    StopReason,
)
from inspect_ai.tool import ToolChoice, ToolInfo
from pydantic import ValidationError

from holdfast.encoding import json_bytes, json_value
from holdfast.errors import InputError, redirected

from .connections import Connector, LargeReplyError, RemoteModel, Response, body_of
from .offline import replied
from .server import (
    MAX_REPLY,
    ServerError,
    at_most,
    environment_speaks_of,
    error_message,
    largest_reply,
    retry_seconds,
)  # fmt: skip

_STOP_REASONS: Mapping[str, StopReason] = {
    "stop": "stop",
    "length": "max_tokens",
    "content_filter": "content_filter",
}
_FILTER_CODES = ("content_filter", "content_policy_violation")

HANDLED_SETTINGS = frozenset(
    {
        "max_retries", "timeout", "attempt_timeout", "stream_idle_timeout", "max_connections",
        "adaptive_connections", "cache", "fail_on_refusal", "system_message", "reasoning_history",
        "parallel_tool_calls", "internal_tools", "max_tool_output", "extra_body", "extra_headers",
    }
)  # fmt: skip
"""Settings of Inspect's that no field stands for: how requests are made, messages, and tools."""

ATTEMPT_SECONDS = 600
"""An attempt that takes longer has hung, unless ``attempt_timeout`` says otherwise."""


class Lean(RemoteModel):
    """A model behind an OpenAI-compatible server.

    The server's URL is ``--model-base-url`` or ``LEAN_BASE_URL``, up to and with ``/v1``; the key,
    where it wants one, is ``LEAN_API_KEY``, or for HTTP basic authentication a user and password in
    ``LEAN_BASE_URL``. Neither stands in a log or in an error. A reply of more than 64 MiB, or of
    what ``LEAN_MAX_REPLY_MIB`` says, is a malfunction.
    """

    sent_as: ClassVar[Mapping[str, str]] = {
        "temperature": "temperature",
        "top_p": "top_p",
        "top_k": "top_k",
        "max_tokens": "max_tokens",
        "seed": "seed",
        "stop_seqs": "stop",
        "frequency_penalty": "frequency_penalty",
        "presence_penalty": "presence_penalty",
        "logit_bias": "logit_bias",
        "logprobs": "logprobs",
        "top_logprobs": "top_logprobs",
        "reasoning_effort": "reasoning_effort",
        "response_schema": "response_format",
    }
    """Inspect's settings of generation, and the field of the API that each is sent as."""

    def __init__(
        self,
        model_name: str,
        base_url: str | None = None,
        api_key: str | None = None,
        config: GenerateConfig = GenerateConfig(),  # noqa: B008 (the framework's own signature)
        **model_args: object,
    ) -> None:
        """Keep where the server is; nothing is sent.

        Raises:
            InputError: no base URL is known.
        """
        base_url = base_url or os.environ.get("LEAN_BASE_URL")
        base_url, basic = _without_password(base_url)
        super().__init__(model_name, base_url, api_key, ["LEAN_API_KEY"], config)
        if not base_url:
            raise InputError(
                f"'lean/{model_name}' has no server address",
                field="--model",
                remedy="Give --model-base-url URL, which ends in /v1, or set LEAN_BASE_URL",
            )
        self._url = f"{base_url.rstrip('/')}/chat/completions"
        key = api_key or os.environ.get("LEAN_API_KEY")
        authorization = basic.header if basic else f"Bearer {key}" if key else None
        self._headers = {"Content-Type": "application/json"}
        if authorization:
            self._headers["Authorization"] = authorization
        self._secrets = [*(basic.secrets if basic else ()), *([key] if key else ())]
        self._largest = largest_reply()
        self._extra = model_args

    async def generate(
        self,
        input: list[ChatMessage],
        tools: list[ToolInfo],
        tool_choice: ToolChoice,
        config: GenerateConfig,
    ) -> tuple[ModelOutput, ModelCall]:
        """One chat completion, and the request and reply that it was.

        Raises:
            ServerError: the server refused, or its reply is no chat completion or too large.
        """
        body = {
            "model": self.model_name,
            "messages": [{"role": m.role, "content": m.text} for m in input],
            **self._fields(config),
            **self._extra,
            **(config.extra_body or {}),
        }
        began = time.perf_counter()
        response, content, reply = await self._post(body, config)
        status = response.status
        if status == 200:
            if not isinstance(reply, dict) or "choices" in reply or not reply.get("error"):
                output = _output(reply, self.model_name)
                return output, _call(body, reply, time.perf_counter() - began)
            status = _status_within(reply["error"])
        if 200 < status < 300:
            raise ServerError(0, f"HTTP {status}: a reply without a completion")
        if 300 <= status < 400 and (location := response.headers.get("Location")):
            reason, remedy = redirected(self._url, location)
            raise ServerError(status, reason, remedy=remedy)
        message, code = error_message(content)
        for secret in self._secrets:  # some servers quote the key that they refuse
            message = message.replace(secret, "[key]")
        if status == 400 and code in _FILTER_CODES:
            # as Azure says it, and proxies before it: a reply of its kind, not an error
            reply_data = {"status": status, "body": message}
            output = replied(self.model_name, message, ModelUsage(), stop_reason="content_filter")
            return output, _call(body, reply_data, None)
        raise ServerError(status, message, retry_seconds(response.headers.get("Retry-After")))

    async def _post(
        self, body: dict[str, Any], config: GenerateConfig
    ) -> tuple[aiohttp.ClientResponse, bytearray, Any]:
        """A response, its content, and the JSON in it where it may be a completion."""
        try:
            async with (
                self.client().post(
                    self._url,
                    data=json_bytes(body),
                    headers=config.extra_headers,
                    timeout=at_most(config.attempt_timeout or ATTEMPT_SECONDS),
                    allow_redirects=False,
                ) as response,
                body_of(response, self._largest * 2**20) as content,
            ):
                reply = _parse_reply(content) if response.status == 200 else None
                self._connector.account(response, _id(reply))
                return response, content, reply
        except LargeReplyError:
            raise ServerError(
                0,
                f"the reply is larger than {self._largest} MiB",
                remedy=f"Limit replies with max_tokens of --generate-config, or set {MAX_REPLY}",
            ) from None
        except aiohttp.ClientError as error:
            raise error from None  # it names the host, what led to it does not

    def _fields(self, config: GenerateConfig) -> dict[str, Any]:
        """The fields of a request that settings of generation are sent as."""
        fields = {}
        for setting, value in vars(config).items():
            if value is None or setting in HANDLED_SETTINGS:
                continue
            if setting not in self.sent_as:
                raise InputError(
                    f"'lean/{self.model_name}' does not support it",
                    field=setting,
                    remedy="Remove it, or give -M NAME=VALUE with the server's own name",
                )
            value = _schema(value) if setting == "response_schema" else value
            fields[self.sent_as[setting]] = value
        return fields

    def open_session(self) -> aiohttp.ClientSession:
        """Return a new session with its own pool of connections."""
        self._connector = Connector()
        return aiohttp.ClientSession(
            connector=self._connector,
            response_class=Response,
            headers=self._headers,
            trust_env=environment_speaks_of(self._url),
        )

    def connection_key(self) -> str:
        """Connections are counted for each server."""
        return self._url


class _Basic:
    """HTTP basic authentication."""

    def __init__(self, user: str, password: str) -> None:
        token = base64.b64encode(f"{user}:{password}".encode()).decode()
        self.header = f"Basic {token}"
        self.secrets = [secret for secret in (password or user, token) if secret]


def _without_password(url: str | None) -> tuple[str | None, _Basic | None]:
    """The URL without user and password, and what was in it."""
    parts = urlsplit(url or "")
    if "@" not in parts.netloc:
        return url, None
    user, _, password = parts.netloc.rpartition("@")[0].partition(":")
    clean = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
    return clean, _Basic(unquote(user), unquote(password))


def _schema(schema: ResponseSchema) -> dict[str, Any]:
    """A schema as the API has it."""
    fields = schema.model_dump(exclude_none=True)
    fields["schema"] = fields.pop("json_schema")
    return {"type": "json_schema", "json_schema": fields}


def _call(request: dict[str, Any], response: Any, seconds: float | None) -> ModelCall:
    # it is JSON already, and needs no second look
    return ModelCall.model_construct(
        request=request,
        response=response if isinstance(response, dict) else {"body": response},
        time=seconds,
    )


def _parse_reply(content: bytearray) -> Any:
    """A reply's JSON, null where it is nested deeper than any reply.

    Raises:
        ServerError: it is none. The fault is on the way, so it is tried again.
    """
    try:
        try:
            if not _LONG_NUMBER.search(content):
                return json_value(content)
            return json.loads(content, parse_int=_whole_number)
        except RecursionError:
            return json.loads(_shallow(bytes(content)), parse_int=_whole_number)
    except ValueError as error:
        raise _no_completion(error) from None


_DEEPEST = 100
_BRACKETS = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[\]{}]', re.DOTALL)


def _shallow(content: bytes) -> bytes:
    """JSON with null for what is nested too deep."""
    pieces, start, depth = [], 0, 0
    for bracket in _BRACKETS.finditer(content):
        if bracket[0] in (b"[", b"{"):
            depth += 1
            if depth == _DEEPEST:
                pieces += [content[start : bracket.start()], b"null"]
        elif bracket[0] in (b"]", b"}"):
            if depth == _DEEPEST:
                start = bracket.end()
            depth -= 1
    return b"".join([*pieces, content[start:]])


def _whole_number(digits: str) -> float:
    """The number; one of more than twelve digits counts nothing here, and Python may refuse it."""
    return int(digits) if len(digits) <= _MOST_DIGITS else math.inf


_MOST_DIGITS = 12
_LONG_NUMBER = re.compile(rb"\d{13}")


def _id(reply: object) -> object:
    return reply.get("id") if isinstance(reply, dict) else None


def _no_completion(error: Exception) -> ServerError:
    return ServerError(0, f"not a chat completion ({type(error).__name__}: {error})")


def _status_within(error: object) -> int:
    """The HTTP status that an error names which came with the status 200; 0 where it names none."""
    code = error.get("code") if isinstance(error, dict) else None
    return code if isinstance(code, int) and 400 <= code < 600 else 0


def _output(reply: Any, model_requested: str) -> ModelOutput:
    """What a reply says; what it need not have is unknown where it makes no sense.

    Raises:
        ServerError: it has no message. The fault is on the way, so it is tried again.
    """
    try:
        choice = reply["choices"][0]
        message = choice["message"]
        text = _text(message.get("content")) or _optional(message.get("refusal"), str) or ""
    except (KeyError, IndexError, TypeError, AttributeError) as error:
        raise _no_completion(error) from None
    finish = _optional(choice.get("finish_reason"), str)
    if message.get("refusal") and not message.get("content"):
        finish = "content_filter"
    reasoning = _optional(message.get("reasoning_content"), str) or _optional(
        message.get("reasoning"), str
    )
    # every part has been looked at above
    return replied(
        _optional(reply.get("model"), str) or model_requested,
        text,
        _usage(reply.get("usage")),
        reasoning=reasoning,
        stop_reason=_STOP_REASONS.get(finish or "", "unknown"),
        logprobs=_logprobs(choice.get("logprobs")),
    )


T = TypeVar("T")


def _optional(value: object, kind: type[T]) -> T | None:
    """The value, None where it is of another kind."""
    return value if isinstance(value, kind) else None


def _text(content: object) -> str:
    """A message's content, which some servers give in parts."""
    if isinstance(content, list):
        parts = [part.get("text") if isinstance(part, dict) else part for part in content]
        return "".join(part for part in parts if isinstance(part, str))
    if content is not None and not isinstance(content, str):
        raise TypeError("its content is not text")
    return content or ""


def _logprobs(raw: object) -> Logprobs | None:
    content = raw.get("content") if isinstance(raw, dict) else None
    try:
        return Logprobs.model_validate({"content": content}) if content else None
    except ValidationError:
        return None


def _usage(raw: object) -> ModelUsage:
    """Tokens by kind; those that cannot be are not counted."""

    def count(name: str, within: str | None = None) -> int:
        source = raw if isinstance(raw, dict) else {}
        if within:
            source = _optional(source.get(within), dict) or {}
        n = source.get(name)
        return n if isinstance(n, int) and n >= 0 else 0

    input_tokens, output_tokens = count("prompt_tokens"), count("completion_tokens")
    cache_reads = min(count("cached_tokens", "prompt_tokens_details"), input_tokens)
    return ModelUsage(
        input_tokens=input_tokens - cache_reads,
        input_tokens_cache_read=cache_reads or None,
        output_tokens=output_tokens,
        reasoning_tokens=count("reasoning_tokens", "completion_tokens_details") or None,
        total_tokens=input_tokens + output_tokens,
    )
