"""What passes between Inspect and a provider: replies that are kept, keys taken out of errors.

What a server refuses is left out, what it sends made sound, and noted where it went otherwise.
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
        stored_output: what this very request has generated before, None if it is made now.
        call: the provider's record of it.
    """

    looked_at: tuple[str, ...]
    key: str = ""
    stored_output: ModelOutput | None = None
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
        # what is asked directly is sent as it is
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

    # the provider is Inspect's or anybody's, and is set up before a conversation begins
    api.generate = generate  # type: ignore[method-assign]
    api.guarded = True  # type: ignore[attr-defined]


def _follow_no_redirect(api: ModelAPI) -> None:
    """Have a provider's HTTP client take a redirect as an error.

    Clients of httpx follow them, and prompts would go to a server that nobody named. Inspect makes
    a new client where one was closed, so each request looks again.
    """
    holders = (api, getattr(api, "client", None))
    for holder, name in zip(holders, ("http_client", "_client"), strict=True):
        client: Any = getattr(holder, name, None)
        if hasattr(client, "follow_redirects"):
            client.follow_redirects = False


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
        [(message.role, _dump_content(message.content)) for message in messages],
        *looked_at,
    )


def settings_of(config: GenerateConfig) -> dict[str, Any]:
    """The settings of generation that a reply hangs on."""
    return config.model_dump(exclude=_INERT, exclude_none=True)


def _dump_content(content: str | list[Content]) -> Any:
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
    secrets = {value for name, value in os.environ.items() if name.upper().endswith(_SECRET)}
    secrets.add(model.api.api_key or "")
    secrets |= {secret for value in os.environ.values() for secret in _basic(value)}
    return sorted((key for key in secrets if len(key) >= _SHORTEST), key=len, reverse=True)


def _basic(url: str) -> list[str]:
    """User and password in a URL, as they stand there and as they are sent."""
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
    if isinstance(value, Mapping):  # headers too, which cannot be written to
        return {key: _mask(inner, secrets) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        inner = [_mask(item, secrets) for item in value]
        # aiohttp's errors hold named tuples
        make = list if isinstance(value, list) else getattr(value, "_make", tuple)
        return make(inner)
    return value


def _mask_error(error: BaseException | None, secrets: list[str]) -> None:
    """Take keys out of an exception and of those that led to it."""
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
                with suppress(AttributeError):  # made of the arguments, which are masked
                    setattr(item, name, _mask(attribute, secrets))
        left += [item.__cause__, item.__context__]


_EXTRAS = {
    "log-probabilities": (("logprobs", "top_logprobs"), ("logprob",)),
    "JSON schemas": (("response_schema",), ("response_format", "json_schema", "json schema")),
}
"""By what a server may refuse: the settings that ask for it, and words that its refusals hold."""


async def asked_plainly(
    api: ModelAPI,
    ask: Callable[..., Awaitable[Any]],
    input: list[ChatMessage],
    tools: Any,
    tool_choice: Any,
    config: GenerateConfig,
) -> Any:
    """A provider's reply, asked for without log-probabilities or a schema once it refuses them.

    Without the one, measures go by answers alone; without the other, JSON is looked for in text.

    Args:
        api: the provider; what it has refused is noted there.
        ask: its own ``generate``, which may raise or return an error.
        input: the conversation.
        tools: passed on.
        tool_choice: passed on.
        config: settings of generation.
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
    """What a model's server has refused so far and is asked without, one line each."""
    refusals_seen: set[str] = getattr(model.api, "refused_extras", set())
    return [
        f"{model} rejects {extra}, so the request was sent without it"
        for extra in sorted(refusals_seen)
    ]


def _note(api: ModelAPI, error: Exception, config: GenerateConfig, refusals_seen: set[str]) -> bool:
    """Whether the error refuses something that was asked for and can be left out from now on."""
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
"""Names under which providers send a system message that stands outside the conversation."""


def note_difference(
    output: ModelOutput, call: object, messages: Sequence[ChatMessage], config: GenerateConfig
) -> None:
    """Leave in a generation's metadata what of its request went out otherwise than asked.

    Providers drop settings that a model does not take, and give messages other roles. Where the
    provider records no request nothing can be said.

    Args:
        output: what was generated; nothing is left in it where all went out as asked.
        call: the provider's record of the request.
        messages: the conversation that it was given.
        config: the settings that it was given.
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
    """Every name in a request with its value, those inside others first."""
    for name, inner in value.items():
        if isinstance(inner, Mapping):
            yield from _flatten(inner)
        yield name, inner


_MOST_TOKENS = 10**12
"""More is no count of tokens; a run of so many still fits the turns table."""


def make_sound(output: ModelOutput) -> None:
    """Replace lone surrogates in every text, and a usage that cannot be by an unknown one.

    Args:
        output: a provider's; changed in place.
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
        # a token may be some bytes of a character
        for token in choice.logprobs.content if choice.logprobs else ():
            for candidate in (token, *(token.top_logprobs or ())):
                candidate.token = encodable(candidate.token)
    if output.usage and not _possible(output.usage):
        output.usage = ModelUsage()


def make_call_sound(call: ModelCall) -> None:
    """Replace lone surrogates in a reply as it came in.

    Args:
        call: a provider's record; changed in place.
    """
    text = json.dumps(call.response, ensure_ascii=False, default=str)
    if encodable(text) != text:
        call.response = json.loads(encodable(text))


def encodable(text: str) -> str:
    """The text, with a replacement character for each half of a pair that stands alone."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _possible(usage: ModelUsage) -> bool:
    return all(0 <= n <= _MOST_TOKENS for n in vars(usage).values() if isinstance(n, int))
