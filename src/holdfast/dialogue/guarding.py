"""What passes between Inspect and a provider: keys taken out of errors, filtered replies kept."""

import os
from typing import Any

from inspect_ai.model import Content, ContentText, Model, ModelCall, ModelOutput

MASK = "[key]"
"""What stands where a key stood."""

_FILTERED = "content_filter"
_SHORTEST = 8
_SECRET = ("_API_KEY", "_KEY", "_TOKEN", "_SECRET", "_PASSWORD")


def guard(model: Model) -> None:
    """Stand between a model and its provider from now on; a second time does nothing.

    A server may quote the key that it refuses. The errors of a provider go into the log, each
    attempt's with its traceback, so a key is taken out of them before Inspect sees them.

    Inspect's cache does not keep a filtered reply, so that a loop can try again. Here it is a
    reply like any other, and a resumed run must not ask for it again: it is handed on with the
    stop reason ``unknown`` and a note, and ``unguarded`` puts it right.
    """
    api = model.api
    if getattr(api, "guarded", False):
        return
    ask = api.generate

    async def generate(*args: Any, **named: Any) -> Any:
        try:
            result = await ask(*args, **named)
        except Exception as error:
            _mask_error(error, _secrets(model))
            raise
        output, call = result if isinstance(result, tuple) else (result, None)
        if isinstance(output, Exception):
            _mask_error(output, _secrets(model))
            if isinstance(call, ModelCall):
                call.response = _masked(call.response, _secrets(model))
        elif any(choice.stop_reason == _FILTERED for choice in output.choices):
            output.metadata = {**(output.metadata or {}), "stop_reason": _FILTERED}
            for choice in output.choices:
                choice.stop_reason = "unknown"
        return result

    # the provider is Inspect's or anybody's, and is set up before a conversation begins
    api.generate = generate  # type: ignore[method-assign]
    api.guarded = True  # type: ignore[attr-defined]


def unguarded(output: ModelOutput) -> ModelOutput:
    """The output with the stop reason that the provider gave, a refusal's the same for all."""
    filtered = (output.metadata or {}).get("stop_reason") == _FILTERED
    for choice in output.choices:
        if filtered or _is_refused(choice.message.content):
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
    return sorted((key for key in known if len(key) >= _SHORTEST), key=len, reverse=True)


def _masked(value: Any, secrets: list[str]) -> Any:
    if isinstance(value, str):
        for secret in secrets:
            value = value.replace(secret, MASK)
        return value
    if isinstance(value, dict):
        return {key: _masked(inner, secrets) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_masked(inner, secrets) for inner in value)
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
        for name in ("message", "body"):
            if isinstance(held := getattr(one, name, None), (str, dict)):
                setattr(one, name, _masked(held, secrets))
        left += [one.__cause__, one.__context__]
