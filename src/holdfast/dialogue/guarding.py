"""Layer between Inspect and a provider: stored replies, and secrets removed from errors.

Settings that a server refuses are left out, invalid replies are repaired, and changed requests are
recorded.
"""

import base64
import json
import os
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from inspect_ai.model import (
    ChatMessage,
    Content,
    ContentReasoning,
    ContentText,
    GenerateConfig,
    Model,
    ModelAPI,
    ModelCall,
    ModelOutput,
    ModelUsage,
)

from holdfast.attachments import SENT_OTHERWISE

from .generations import digest, generations
from .probing import ProbedError, probing, refused_request

MASK = "[key]"
"""Replacement for a secret."""

_SHORTEST = 8
_SECRET = ("_API_KEY", "_KEY", "_TOKEN", "_SECRET", "_PASSWORD")

_INERT = {
    "max_connections", "adaptive_connections", "max_retries", "timeout", "attempt_timeout",
    "stream_idle_timeout", "cache", "cache_prompt", "batch", "fail_on_refusal",
}  # fmt: skip
"""Generation settings that cannot affect a reply."""


@dataclass
class Asking:
    """Pending request.

    Attributes:
        looked_at: texts that determine the reply in addition to model, settings and messages.
        key: digest of the whole request. Empty until the request reaches the provider.
        stored_output: stored generation of the same request, None if it is generated now.
        call: record of the request by the provider.
    """

    looked_at: tuple[str, ...]
    key: str = ""
    stored_output: ModelOutput | None = None
    call: object = None


asking: ContextVar[Asking | None] = ContextVar("asking", default=None)
"""Current request."""


def guard(model: Model) -> None:
    """Wrap the provider of a model; repeated calls have no effect.

    Stored generations are returned instead of asking the provider. Their usage is removed, because
    Inspect would count it as spent.

    A server may quote the key that it refuses. Inspect logs the errors of a provider with the
    traceback of each attempt. Secrets are therefore removed before Inspect receives the errors.
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
            request.stored_output = generations().get(request.key)
            if request.stored_output is not None:
                return request.stored_output.model_copy(update={"usage": None})
        _follow_no_redirect(api)
        try:
            result = await asked_plainly(api, ask, input, tools, tool_choice, config)
        except Exception as error:
            _mask_error(error, _secrets(model))
            _end_probe(error)
            raise
        output, call = result if isinstance(result, tuple) else (result, None)
        if request is not None:
            request.call = call
        # providers with ``direct`` send requests unchanged
        if isinstance(output, ModelOutput) and not getattr(api, "direct", False):
            note_difference(output, call, input, config)
        if isinstance(output, Exception):
            _mask_error(output, _secrets(model))
            if isinstance(call, ModelCall):
                call.response = _mask(call.response, _secrets(model))
            _end_probe(output)
        else:
            make_sound(output)
        return result

    # the provider can be any, and exists before a conversation starts
    api.generate = generate  # type: ignore[method-assign]
    api.guarded = True  # type: ignore[attr-defined]


def _follow_no_redirect(api: ModelAPI) -> None:
    """Make a provider's HTTP client treat a redirect as an error.

    Clients of httpx follow redirects, which would send prompts to a server that the user has not
    named. Inspect replaces closed clients, so this is repeated for each request.
    """
    holders = (api, getattr(api, "client", None))
    for holder, name in zip(holders, ("http_client", "_client"), strict=True):
        client: Any = getattr(holder, name, None)
        if hasattr(client, "follow_redirects"):
            client.follow_redirects = False


def _end_probe(error: Exception) -> None:
    """End the first request of a study after its first attempt."""
    if (probe := probing.get()) is not None:
        probe.error = error
        raise ProbedError from None


def key_of(
    model: Model, messages: Sequence[ChatMessage], settings: object, looked_at: Sequence[str]
) -> str:
    """Return the digest of a request and its provider.

    Args:
        model: the model.
        messages: the whole conversation.
        settings: settings that affect the reply, from ``settings_of``.
        looked_at: further texts that affect the reply.
    """
    return digest(
        str(model),
        model.api.base_url,
        model.model_args,
        settings,
        [(message.role, _dump_content(message.content)) for message in messages],
        *looked_at,
    )


def settings_of(config: GenerateConfig) -> dict[str, Any]:
    """Return the generation settings that can affect a reply."""
    return config.model_dump(exclude=_INERT, exclude_none=True)


def _dump_content(content: str | list[Content]) -> Any:
    if isinstance(content, str):
        return content
    return [part.model_dump(exclude={"cache_breakpoint"}, exclude_none=True) for part in content]


def with_refusals(output: ModelOutput) -> ModelOutput:
    """Return the output with the same stop reason for refusals by any provider."""
    for choice in output.choices:
        if _is_refused(choice.message.content):
            choice.stop_reason = "content_filter"
    return output


def _is_refused(content: str | list[Content]) -> bool:
    """Whether the API reports a refusal in a separate field, which Inspect ignores."""
    parts = [] if isinstance(content, str) else content
    return any(isinstance(part, ContentText) and bool(part.refusal) for part in parts)


def _secrets(model: Model) -> list[str]:
    """Return the secrets known to this process, longest first."""
    secrets = {value for name, value in os.environ.items() if name.upper().endswith(_SECRET)}
    secrets.add(model.api.api_key or "")
    secrets |= {secret for value in os.environ.values() for secret in _basic(value)}
    return sorted((key for key in secrets if len(key) >= _SHORTEST), key=len, reverse=True)


def _basic(url: str) -> list[str]:
    """Return user and password in a URL, as written and as sent."""
    match = re.match(r"https?://([^/@]*):([^/@]*)@", url)
    if not match:
        return []
    user, password = map(unquote, match.groups())
    token = base64.b64encode(f"{user}:{password}".encode()).decode()
    return [match[0].rpartition("/")[2], f"{user}:{password}", password, token]


def _mask(value: Any, secrets: list[str]) -> Any:
    if isinstance(value, str):
        for secret in secrets:
            value = value.replace(secret, MASK)
        return value
    if isinstance(value, Mapping):  # also headers, which are read-only
        return {key: _mask(inner, secrets) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        inner = [_mask(item, secrets) for item in value]
        # errors of aiohttp contain named tuples
        make = list if isinstance(value, list) else getattr(value, "_make", tuple)
        return make(inner)
    return value


def _mask_error(error: BaseException | None, secrets: list[str]) -> None:
    """Remove secrets from an exception and its causes."""
    visited_ids: set[int] = set()
    left = [error]
    while left:
        item = left.pop()
        if item is None or id(item) in visited_ids:
            continue
        visited_ids.add(id(item))
        item.args = _mask(item.args, secrets)
        for name in ("message", "body", "request_info"):
            if isinstance(attribute := getattr(item, name, None), (str, dict, tuple)):
                with suppress(AttributeError):  # read-only; derived from ``args``, which are masked
                    setattr(item, name, _mask(attribute, secrets))
        left += [item.__cause__, item.__context__]


_EXTRAS = {
    "log-probabilities": (("logprobs", "top_logprobs"), ("logprob",)),
    "JSON schemas": (("response_schema",), ("response_format", "json_schema", "json schema")),
}
"""Optional features that a server may refuse: settings that request them, and words in refusals."""


async def asked_plainly(
    api: ModelAPI,
    ask: Callable[..., Awaitable[Any]],
    input: list[ChatMessage],
    tools: Any,
    tool_choice: Any,
    config: GenerateConfig,
) -> Any:
    """Request a reply, without log-probabilities or a schema if the provider refuses them.

    Without log-probabilities, measures use answers alone. Without a schema, JSON is extracted from
    the text.

    Args:
        api: the provider. Refused features are recorded on it.
        ask: its original ``generate``, which may raise or return an error.
        input: the conversation.
        tools: passed on.
        tool_choice: passed on.
        config: generation settings.
    """
    refusals_seen: set[str] = vars(api).setdefault("refused_extras", set())
    while True:
        left_out = {name: None for extra in refusals_seen for name in _EXTRAS[extra][0]}
        plain = config.model_copy(update=left_out) if refusals_seen else config
        try:
            result = await ask(input, tools, tool_choice, plain)
        except Exception as error:
            if not _note(api, error, plain, refusals_seen):
                raise
            continue
        output = result[0] if isinstance(result, tuple) else result
        if not (isinstance(output, Exception) and _note(api, output, plain, refusals_seen)):
            return result


def refusals(model: Model) -> list[str]:
    """Return a line for each feature that the model's server has refused and that is left out."""
    refusals_seen: set[str] = getattr(model.api, "refused_extras", set())
    return [
        f"{model} rejects {extra}, so the request was sent without it"
        for extra in sorted(refusals_seen)
    ]


def _note(api: ModelAPI, error: Exception, config: GenerateConfig, refusals_seen: set[str]) -> bool:
    """Whether an error refuses a requested feature that can be left out from now on."""
    if not refused_request(error):
        return False
    message = str(error).lower()
    for extra, (names, words) in _EXTRAS.items():
        if getattr(config, names[0]) and any(word in message for word in words):
            refusals_seen.add(extra)
            return True
    return False


_SETTINGS = ("temperature", "seed", "top_p", "top_k")
_MESSAGES = ("messages", "input", "contents")
_SYSTEM = ("system", "system_instruction", "systemInstruction", "instructions")
"""Request fields in which providers send a system message outside the conversation."""


def note_difference(
    output: ModelOutput, call: object, messages: Sequence[ChatMessage], config: GenerateConfig
) -> None:
    """Record in a generation's metadata how its request differed from the requested settings.

    Providers drop settings that a model does not accept, and change the roles of messages. Without
    a record of the request, nothing is known.

    Args:
        output: the generation. It stays unchanged without differences.
        call: record of the request by the provider.
        messages: the requested conversation.
        config: the requested settings.
    """
    if isinstance(call, ModelCall) and (
        differences := "; ".join(_differences(call, messages, config))
    ):
        output.metadata = {**(output.metadata or {}), SENT_OTHERWISE: differences}


def _differences(
    call: ModelCall, messages: Sequence[ChatMessage], config: GenerateConfig
) -> Iterator[str]:
    request = call.request
    request_values = dict(_flatten({k: v for k, v in request.items() if k not in _MESSAGES}))
    for name in _SETTINGS:
        setting = getattr(config, name)
        if setting is not None and request_values.get(name) is None:
            yield f"{name} {setting:g} was not sent"
        elif setting is not None and request_values[name] != setting:
            yield f"{name} {setting:g} was sent as {request_values[name]}"
    if not any(message.role == "system" for message in messages) or request_values.keys() & {
        *_SYSTEM
    }:
        return
    request_messages = next((request[name] for name in _MESSAGES if name in request), [])
    roles = (
        [
            request_message.get("role")
            for request_message in request_messages
            if isinstance(request_message, dict)
        ]
        if (isinstance(request_messages, list))
        else []
    )
    if "system" not in roles:
        system_role = "developer" if "developer" in roles else roles[0] if roles else None
        yield (
            f"the system message was sent as {system_role}"
            if system_role
            else "no system message was sent"
        )


def _flatten(value: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield every name in a request with its value, nested ones first."""
    for name, inner in value.items():
        if isinstance(inner, Mapping):
            yield from _flatten(inner)
        yield name, inner


_MOST_TOKENS = 10**12
"""Largest plausible number of tokens; the sum of a run then fits the turns table."""


def make_sound(output: ModelOutput) -> None:
    """Replace lone surrogates in every text, and an impossible usage by an unknown one.

    Args:
        output: output of a provider, changed in place.
    """
    output.model, output.completion = encodable(output.model), encodable(output.completion)
    for choice in output.choices:
        message = choice.message
        message.model = encodable(message.model) if message.model else None
        if isinstance(message.content, str):
            message.content = encodable(message.content)
        else:
            for part in message.content:
                if isinstance(part, ContentText):
                    part.text = encodable(part.text)
                elif isinstance(part, ContentReasoning):
                    part.reasoning = encodable(part.reasoning)
        # a token may be a part of a character's bytes
        for token in choice.logprobs.content if choice.logprobs else ():
            for candidate in (token, *(token.top_logprobs or ())):
                candidate.token = encodable(candidate.token)
    if output.usage and not _possible(output.usage):
        output.usage = ModelUsage()


def make_call_sound(call: ModelCall) -> None:
    """Replace lone surrogates in the recorded response.

    Args:
        call: record of a request by a provider, changed in place.
    """
    text = json.dumps(call.response, ensure_ascii=False, default=str)
    if encodable(text) != text:
        call.response = json.loads(encodable(text))


def encodable(text: str) -> str:
    """Return the text with a replacement character for each lone surrogate."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _possible(usage: ModelUsage) -> bool:
    return all(0 <= n <= _MOST_TOKENS for n in vars(usage).values() if isinstance(n, int))
