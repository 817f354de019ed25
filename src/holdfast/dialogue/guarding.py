"""What passes between Inspect and a provider: replies that are kept, keys taken out of errors."""

import base64
import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from inspect_ai.model import (
    ChatMessage,
    Content,
    ContentText,
    GenerateConfig,
    Model,
    ModelCall,
    ModelOutput,
)

from .digest import digest
from .falling_back import asked_plainly
from .generations import generations
from .probing import ProbedError, probing
from .sent import note_difference
from .soundness import make_sound

MASK = "[key]"
"""What stands where a key stood."""

_SHORTEST = 8
_SECRET = ("_API_KEY", "_KEY", "_TOKEN", "_SECRET", "_PASSWORD")

_INERT = {
    "max_connections", "adaptive_connections", "max_retries", "timeout", "attempt_timeout",
    "stream_idle_timeout", "cache", "cache_prompt", "batch", "fail_on_refusal",
}  # fmt: skip
"""Settings of generation that no reply hangs on."""


@dataclass
class Asking:
    """A request on its way.

    Attributes:
        looked_at: what the reply hangs on beside model, settings and messages.
        key: digest of all of it; empty until the request comes to the provider.
        kept: what this very request has generated before, None if it is made now.
        call: the provider's record of it.
    """

    looked_at: tuple[str, ...]
    key: str = ""
    kept: ModelOutput | None = None
    call: object = None


asking: ContextVar[Asking | None] = ContextVar("asking", default=None)
"""Set around each request."""


def guard(model: Model) -> None:
    """Stand between a model and its provider from now on; a second time does nothing.

    What has been generated before is returned in the provider's place. Its usage is left out,
    or Inspect would count as spent what was not.

    A server may quote the key that it refuses. The errors of a provider go into the log, each
    attempt's with its traceback, so a key is taken out of them before Inspect sees them.
    """
    api = model.api
    if getattr(api, "guarded", False):
        return
    ask = api.generate

    async def generate(
        input: list[ChatMessage], tools: Any, tool_choice: Any, config: GenerateConfig
    ) -> Any:
        request = asking.get()
        if request is not None and not request.key:
            request.key = key_of(model, input, settings_of(config), request.looked_at)
            request.kept = generations().get(request.key)
            if request.kept is not None:
                return request.kept.model_copy(update={"usage": None})
        try:
            result = await asked_plainly(api, ask, input, tools, tool_choice, config)
        except Exception as error:
            _mask_error(error, _secrets(model))
            _end_probe(error)
            raise
        output, call = result if isinstance(result, tuple) else (result, None)
        if request is not None:
            request.call = call
        # what is asked directly is sent as it is
        if isinstance(output, ModelOutput) and not getattr(api, "direct", False):
            note_difference(output, call, input, config)
        if isinstance(output, Exception):
            _mask_error(output, _secrets(model))
            if isinstance(call, ModelCall):
                call.response = _masked(call.response, _secrets(model))
            _end_probe(output)
        else:
            make_sound(output)
        return result

    # the provider is Inspect's or anybody's, and is set up before a conversation begins
    api.generate = generate  # type: ignore[method-assign]
    api.guarded = True  # type: ignore[attr-defined]


def _end_probe(error: Exception) -> None:
    """Let the first request of a study be tried once only."""
    if (probe := probing.get()) is not None:
        probe.error = error
        raise ProbedError from None


def key_of(
    model: Model, messages: Sequence[ChatMessage], settings: object, looked_at: Sequence[str]
) -> str:
    """Digest of what the provider is about to be sent, and whose provider it is.

    Args:
        model: who is asked.
        messages: the whole conversation.
        settings: those that a reply hangs on, as ``settings_of`` has them.
        looked_at: what else it hangs on.
    """
    return digest(
        str(model),
        model.api.base_url,
        model.model_args,
        settings,
        [(message.role, _said(message.content)) for message in messages],
        *looked_at,
    )


def settings_of(config: GenerateConfig) -> dict[str, Any]:
    """The settings of generation that a reply hangs on."""
    return config.model_dump(exclude=_INERT, exclude_none=True)


def _said(content: str | list[Content]) -> Any:
    if isinstance(content, str):
        return content
    return [part.model_dump(exclude={"cache_breakpoint"}, exclude_none=True) for part in content]


def with_refusals(output: ModelOutput) -> ModelOutput:
    """The output, a refusal's stop reason the same for all providers."""
    for choice in output.choices:
        if _is_refused(choice.message.content):
            choice.stop_reason = "content_filter"
    return output


def _is_refused(content: str | list[Content]) -> bool:
    """Whether the API says so in a field of its own; Inspect then calls it a reply that stopped."""
    parts = [] if isinstance(content, str) else content
    return any(isinstance(part, ContentText) and bool(part.refusal) for part in parts)


def _secrets(model: Model) -> list[str]:
    """The keys that this process knows, the longest first."""
    known = {value for name, value in os.environ.items() if name.upper().endswith(_SECRET)}
    known.add(model.api.api_key or "")
    known |= {secret for value in os.environ.values() for secret in _basic(value)}
    return sorted((key for key in known if len(key) >= _SHORTEST), key=len, reverse=True)


def _basic(url: str) -> list[str]:
    """User and password in a URL, as they stand there and as they are sent."""
    found = re.match(r"https?://([^/@]*):([^/@]*)@", url)
    if not found:
        return []
    user, password = map(unquote, found.groups())
    token = base64.b64encode(f"{user}:{password}".encode()).decode()
    return [found[0].rpartition("/")[2], f"{user}:{password}", password, token]


def _masked(value: Any, secrets: list[str]) -> Any:
    if isinstance(value, str):
        for secret in secrets:
            value = value.replace(secret, MASK)
        return value
    if isinstance(value, Mapping):  # headers too, which cannot be written to
        return {key: _masked(inner, secrets) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        inner = [_masked(one, secrets) for one in value]
        # aiohttp's errors hold named tuples
        make = list if isinstance(value, list) else getattr(value, "_make", tuple)
        return make(inner)
    return value


def _mask_error(error: BaseException | None, secrets: list[str]) -> None:
    """Take keys out of an exception and of those that led to it."""
    seen: set[int] = set()
    left = [error]
    while left:
        one = left.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        one.args = _masked(one.args, secrets)
        for name in ("message", "body", "request_info"):
            if isinstance(held := getattr(one, name, None), (str, dict, tuple)):
                with suppress(AttributeError):  # made of the arguments, which are masked
                    setattr(one, name, _masked(held, secrets))
        left += [one.__cause__, one.__context__]
