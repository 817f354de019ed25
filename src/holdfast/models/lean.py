"""``lean/MODEL``: servers that speak OpenAI's chat completions, at the lowest cost a call.

For vLLM, SGLang, llama.cpp, LiteLLM and the like, where the driver and not the server can be what
limits a study. Plain text in and out, no tools; hosted APIs go through Inspect's own providers.
"""

import asyncio
import base64
import json
import netrc
import os
import random
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any, cast
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
from inspect_ai.model import (
    ChatCompletionChoice,
    ChatMessage,
    ChatMessageAssistant,
    ContentReasoning,
    ContentText,
    GenerateConfig,
    Logprobs,
    ModelAPI,
    ModelOutput,
    ModelUsage,
    RetryDecision,
    StopReason,
)
from inspect_ai.tool import ToolChoice, ToolInfo
from tenacity import RetryCallState
from tenacity.wait import wait_base

from holdfast.errors import InputError

_SETTINGS = {
    "temperature": "temperature",
    "top_p": "top_p",
    "max_tokens": "max_tokens",
    "seed": "seed",
    "stop_seqs": "stop",
    "frequency_penalty": "frequency_penalty",
    "presence_penalty": "presence_penalty",
    "logprobs": "logprobs",
    "top_logprobs": "top_logprobs",
    "reasoning_effort": "reasoning_effort",
}
"""Generation settings of Inspect and what the API calls them."""

_STOP_REASONS: Mapping[str, StopReason] = {
    "stop": "stop",
    "length": "max_tokens",
    "content_filter": "content_filter",
}
_TRANSIENT = (408, 409, 425, 500, 502, 503, 504, 529)
_FILTERED = ("content_filter", "content_policy_violation")

ATTEMPT_SECONDS = 600
"""An attempt that takes longer has hung, unless ``attempt_timeout`` says otherwise."""

_FIRST_WAIT, _LONGEST_WAIT = 0.5, 300.0


class ServerError(Exception):
    """The server answered with an error, or with something that is no chat completion."""

    def __init__(self, status: int, message: str, retry_after: float | None = None) -> None:
        """Keep what decides whether to try again."""
        super().__init__(f"HTTP {status}: {message}" if status else message)
        self.status = status
        self.retry_after = retry_after


class Lean(ModelAPI):
    """A model behind an OpenAI-compatible server.

    The server's URL is ``--model-base-url`` or ``LEAN_BASE_URL``, up to and with ``/v1``; the key,
    where it wants one, is ``LEAN_API_KEY``, or for HTTP basic authentication a user and password in
    ``LEAN_BASE_URL``. Neither stands in a log or in an error.
    """

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
                f"'lean/{model_name}' has no server",
                field="--model",
                remedy="Give --model-base-url URL, up to and with /v1, or set LEAN_BASE_URL",
            )
        self._url = f"{base_url.rstrip('/')}/chat/completions"
        key = api_key or os.environ.get("LEAN_API_KEY")
        self._authorization = basic.header if basic else f"Bearer {key}" if key else None
        self._secrets = [*(basic.secrets if basic else ()), *([key] if key else ())]
        self._extra = model_args
        self._session: aiohttp.ClientSession | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def generate(
        self,
        input: list[ChatMessage],
        tools: list[ToolInfo],
        tool_choice: ToolChoice,
        config: GenerateConfig,
    ) -> ModelOutput:
        """One chat completion.

        Raises:
            ServerError: the server refused, or its reply is no chat completion.
        """
        values = {
            theirs: value
            for ours, theirs in _SETTINGS.items()
            if (value := getattr(config, ours)) is not None
        }
        body = {
            "model": self.model_name,
            "messages": [{"role": m.role, "content": m.text} for m in input],
            **values,
            **self._extra,
            **(config.extra_body or {}),
        }
        timeout = aiohttp.ClientTimeout(
            # with a limit of the user's own, Inspect holds it
            total=None if config.attempt_timeout else ATTEMPT_SECONDS,
            sock_connect=30,
        )
        try:
            async with self._client().post(self._url, json=body, timeout=timeout) as response:
                content = await response.read()
        except aiohttp.ClientConnectorError as error:
            raise error from None  # it names the host, what led to it does not
        if response.status == 200:
            return _output(content, self.model_name)
        message, code = _message(content)
        for secret in self._secrets:  # some servers quote the key that they refuse
            message = message.replace(secret, "[key]")
        if response.status == 400 and code in _FILTERED:
            # as Azure says it, and proxies before it: a reply of its kind, not an error
            return _filtered(message, self.model_name)
        raise ServerError(response.status, message, _seconds(response.headers.get("Retry-After")))

    def _client(self) -> aiohttp.ClientSession:
        # a session belongs to the event loop that made it
        loop = asyncio.get_running_loop()
        if self._session is None or self._session.closed or self._loop is not loop:
            self._loop = loop
            self._session = aiohttp.ClientSession(
                # Inspect says how many requests are in flight
                connector=aiohttp.TCPConnector(limit=0),
                headers={"Authorization": self._authorization} if self._authorization else None,
                trust_env=_environment_speaks_of(self._url),
            )
        return self._session

    def should_retry(self, ex: Exception) -> RetryDecision:
        """Rate limits, server faults and connections broken or not made pass; others last."""
        if isinstance(ex, ServerError):
            if ex.status == 429:
                return RetryDecision.rate_limit(retry_after=ex.retry_after)
            if ex.status in _TRANSIENT or ex.status == 0:
                return RetryDecision.transient(retry_after=ex.retry_after)
            return RetryDecision.no()
        if isinstance(ex, (aiohttp.InvalidURL, aiohttp.ClientConnectorCertificateError)):
            return RetryDecision.no()
        if isinstance(ex, (aiohttp.ClientError, TimeoutError, ConnectionError)):
            return RetryDecision.transient()
        return RetryDecision.no()

    def retry_wait(self) -> wait_base:
        """As long as the server asks for; else from half a second on, three times as long each.

        With eight retries an outage of thirteen minutes is ridden out.
        """
        return _Wait()

    def connection_key(self) -> str:
        """Connections are counted for each server."""
        return self._url

    async def aclose(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None


def _environment_speaks_of(url: str) -> bool:
    """Whether the environment names a proxy for the server, or ``.netrc`` a password.

    Asked once: where it may, aiohttp looks for both again in every request, in a thread.
    """
    parts = urlsplit(url)
    host = parts.hostname or ""
    if parts.scheme in getproxies() and not proxy_bypass(host):
        return True
    name = "_netrc" if os.name == "nt" else ".netrc"
    try:
        passwords = netrc.netrc(os.environ.get("NETRC") or Path.home() / name)
        return passwords.authenticators(host) is not None
    except (OSError, RuntimeError, netrc.NetrcParseError):  # no file, no home, no sense in it
        return False


class _Wait(wait_base):
    """Waits for what ``Retry-After`` says, if it says more than the backoff."""

    def __call__(self, retry_state: RetryCallState) -> float:
        """Seconds to wait."""
        error = retry_state.outcome.exception() if retry_state.outcome else None
        asked = error.retry_after if isinstance(error, ServerError) else None
        backoff = _FIRST_WAIT * 3.0 ** min(retry_state.attempt_number - 1, 9)
        # those refused together must not come back together; no result hangs on it
        jittered = backoff * (1 + random.random() / 2)
        return min(max(asked or 0.0, jittered), _LONGEST_WAIT)


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


def _seconds(retry_after: str | None) -> float | None:
    """Seconds that a ``Retry-After`` header names, as a number or a date."""
    if not retry_after:
        return None
    try:
        return max(0.0, float(retry_after))
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(retry_after).timestamp() - time.time())
    except ValueError:
        return None


def _message(content: bytes) -> tuple[str, str]:
    """What an error reply says, in a line, and its code."""
    text, code = content.decode("utf-8", "replace"), ""
    try:
        error = json.loads(text)["error"]
        if isinstance(error, dict):
            text, code = str(error.get("message", error)), str(error.get("code") or "")
        else:
            text = str(error)
    except (ValueError, KeyError, TypeError):
        pass
    return " ".join(text.split())[:500], code


def _filtered(message: str, model: str) -> ModelOutput:
    reply = ChatMessageAssistant(content=message, model=model, source="generate")
    return ModelOutput(
        model=model,
        choices=[ChatCompletionChoice(message=reply, stop_reason="content_filter")],
        usage=ModelUsage(),
    )


def _output(content: bytes, asked: str) -> ModelOutput:
    try:
        reply: dict[str, Any] = json.loads(content)
        choice = reply["choices"][0]
        message, finish = choice["message"], choice.get("finish_reason")
        usage = reply.get("usage") or {}
        text = message.get("content") or message.get("refusal") or ""
        thought = message.get("reasoning_content") or message.get("reasoning")
        if not isinstance(text, str):
            raise TypeError("its content is no text")
    except (ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
        # a cut-off or garbled reply: the fault is on the way, so it is tried again
        raise ServerError(0, f"no chat completion ({type(error).__name__}: {error})") from None
    if message.get("refusal") and not message.get("content"):
        finish = "content_filter"
    model = str(reply.get("model") or asked)
    logprobs = choice.get("logprobs")
    details = usage.get("prompt_tokens_details") or {}
    cached = details.get("cached_tokens") or 0
    read, said = usage.get("prompt_tokens") or 0, usage.get("completion_tokens") or 0
    reasoning = (usage.get("completion_tokens_details") or {}).get("reasoning_tokens")
    return ModelOutput(
        model=model,
        choices=[
            ChatCompletionChoice(
                message=ChatMessageAssistant(
                    content=[ContentReasoning(reasoning=thought), ContentText(text=text)]
                    if thought
                    else text,
                    model=model,
                    source="generate",
                ),
                stop_reason=_STOP_REASONS.get(cast(str, finish), "unknown"),
                logprobs=Logprobs.model_validate({"content": logprobs["content"]})
                if logprobs and logprobs.get("content")
                else None,
            )
        ],
        usage=ModelUsage(
            input_tokens=read - cached,
            input_tokens_cache_read=cached or None,
            output_tokens=said,
            reasoning_tokens=reasoning,
            total_tokens=read + said,
        ),
    )
