"""``lean/MODEL``: servers that speak OpenAI's chat completions, at the lowest cost a call.

For vLLM, SGLang, llama.cpp, LiteLLM and the like, where the driver and not the server can be what
limits a study. Plain text in and out, no tools; hosted APIs go through Inspect's own providers.
"""

import asyncio
import json
import os
from collections.abc import Mapping
from typing import Any, cast

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
    where it wants one, is ``LEAN_API_KEY``.
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
        super().__init__(model_name, base_url, api_key, ["LEAN_API_KEY"], config)
        if not base_url:
            raise InputError(
                f"'lean/{model_name}' has no server",
                field="--model",
                remedy="Give --model-base-url URL, up to and with /v1, or set LEAN_BASE_URL",
            )
        self._url = f"{base_url.rstrip('/')}/chat/completions"
        self._key = api_key or os.environ.get("LEAN_API_KEY")
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
        async with self._client().post(self._url, json=body) as response:
            content = await response.read()
        if response.status != 200:
            wait = response.headers.get("Retry-After", "")
            raise ServerError(
                response.status, _message(content), float(wait) if wait.isdigit() else None
            )
        return _output(content, self.model_name)

    def _client(self) -> aiohttp.ClientSession:
        # a session belongs to the event loop that made it
        loop = asyncio.get_running_loop()
        if self._session is None or self._session.closed or self._loop is not loop:
            self._loop = loop
            self._session = aiohttp.ClientSession(
                # Inspect says how many requests are in flight
                connector=aiohttp.TCPConnector(limit=0),
                headers={"Authorization": f"Bearer {self._key}"} if self._key else None,
                timeout=aiohttp.ClientTimeout(total=600, sock_connect=30),
                trust_env=True,
            )
        return self._session

    def should_retry(self, ex: Exception) -> RetryDecision:
        """Rate limits, server faults and broken connections pass; anything else lasts."""
        if isinstance(ex, ServerError):
            if ex.status == 429:
                return RetryDecision.rate_limit(retry_after=ex.retry_after)
            if ex.status in _TRANSIENT or ex.status == 0:
                return RetryDecision.transient(retry_after=ex.retry_after)
            return RetryDecision.no()
        if isinstance(ex, (aiohttp.ClientError, TimeoutError, ConnectionError)):
            return RetryDecision.transient()
        return RetryDecision.no()

    def connection_key(self) -> str:
        """Connections are counted for each server."""
        return self._url

    async def aclose(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None


def _message(content: bytes) -> str:
    """What an error reply says, in a line."""
    text = content.decode("utf-8", "replace")
    try:
        error = json.loads(text)["error"]
        text = str(error.get("message", error)) if isinstance(error, dict) else str(error)
    except (ValueError, KeyError, TypeError):
        pass
    return " ".join(text.split())[:500]


def _output(content: bytes, asked: str) -> ModelOutput:
    try:
        reply: dict[str, Any] = json.loads(content)
        choice = reply["choices"][0]
        message, finish = choice["message"], choice.get("finish_reason")
        usage = reply.get("usage") or {}
        text = message.get("content") or message.get("refusal") or ""
        thought = message.get("reasoning_content") or message.get("reasoning")
    except (ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
        # a cut-off or garbled reply: the fault is on the way, so it is tried again
        raise ServerError(0, f"no chat completion ({type(error).__name__}: {error})") from error
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
