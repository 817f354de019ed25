"""Sitting: a question asked by the project's runner, with its requests and log events."""

import json
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import anyio
from inspect_ai.event import Event, ModelEvent, SpanBeginEvent, SpanEndEvent
from inspect_ai.log import EventsData
from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ContentReasoning,
    GenerateConfig,
    Model,
    ModelAPI,
    ModelCall,
    ModelCost,
    ModelOutput,
    ModelUsage,
)
from inspect_ai.util import span
from tenacity import AsyncRetrying, RetryCallState

from .generations import generations
from .guarding import Asking, key_of, settings_of

CONNECTIONS = 100
"""Default number of pending requests to a server with ``direct`` requests."""

KEPT_AS = "kept_as"
"""Metadata key of a model event: key of its stored generation."""

_CONNECTION_SETTINGS = ("max_connections", "max_retries", "timeout", "attempt_timeout")
"""Settings of the study that also apply to its helpers."""


# events are copies of this one, because validating each new event is slow
_EMPTY_MODEL_EVENT = ModelEvent(
    model="",
    input=[],
    tools=[],
    tool_choice="none",
    config=GenerateConfig(),
    output=ModelOutput(model=""),
)
_EMPTY_SPAN_BEGIN = SpanBeginEvent(id="", type="branch", name="")
_EMPTY_SPAN_END = SpanEndEvent(id="")


class Connections:
    """Limit on pending requests to each server, over all questions of a run."""

    def __init__(self) -> None:
        """Start without requests."""
        self._of: dict[tuple[type, str], anyio.Semaphore] = {}

    def to(self, api: ModelAPI, limit: int | None) -> anyio.Semaphore:
        """Return the semaphore of a provider's server; the first caller sets its limit."""
        key = (type(api), api.connection_key())
        if key not in self._of:
            self._of[key] = anyio.Semaphore(limit or CONNECTIONS, fast_acquire=True)
        return self._of[key]


@dataclass
class Sitting:
    """Question that is being asked.

    Attributes:
        tested_model: the model under test.
        roles: helpers by role.
        config: generation settings of the study.
        connections: limits shared by all questions of a run.
        prices: known prices of the models with ``direct`` requests.
        events: events for the log. Requests contain the positions of their messages in
            ``messages``.
        usage: usage by model, including stored generations.
        role_usage: usage by role.
    """

    tested_model: Model
    roles: Mapping[str, Model]
    config: GenerateConfig
    connections: Connections
    prices: Mapping[Model, ModelCost] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)
    usage: dict[str, ModelUsage] = field(default_factory=dict)
    role_usage: dict[str, ModelUsage] = field(default_factory=dict)
    uuid: str = field(default_factory=lambda: uuid4().hex)
    began: float = field(default_factory=time.monotonic)
    _messages: dict[str, tuple[int, ChatMessage]] = field(default_factory=dict)
    _calls: dict[object, tuple[int, Any]] = field(default_factory=dict)
    _configs: dict[tuple[int, int], tuple[GenerateConfig, GenerateConfig, object]] = field(
        default_factory=dict
    )

    @property
    def events_data(self) -> EventsData:
        """Messages and parts of calls that the events refer to, each once."""
        return {
            "messages": [message for _, message in self._messages.values()],
            "calls": [part for _, part in self._calls.values()],
        }

    async def generate(
        self,
        model: Model,
        messages: Sequence[ChatMessage],
        config: GenerateConfig,
        generation: Asking,
    ) -> ModelOutput:
        """Generate a reply, or return the stored generation of the same request.

        Args:
            model: the model.
            messages: the whole conversation.
            config: settings that override those of the study.
            generation: the request. Its stored generation is set.
        """
        config, settings = self._resolve_config(model, config)
        messages_sent = _without_reasoning(messages, config, model.api)
        generation.key = key_of(model, messages_sent, settings, generation.looked_at)
        generation.stored_output = generations().get(generation.key)
        if generation.stored_output is not None:
            self._record(
                model,
                messages_sent,
                config,
                generation,
                generation.stored_output,
                datetime.now(UTC),
                0,
            )
            return generation.stored_output
        began, retries, output = datetime.now(UTC), 0, None
        failure: BaseException | None = None
        try:
            if getattr(model.api, "direct", False):
                if getattr(model.api, "offline", False):
                    output = await _attempt(model, messages_sent, config)
                else:
                    async with self.connections.to(model.api, config.max_connections):
                        began = datetime.now(UTC)
                        output, retries = await _generate_with_retries(model, messages_sent, config)
                if output.usage and (price := self.prices.get(model)):
                    output.usage.total_cost = _dollars(output.usage, price)
            else:
                output = await model.generate(messages_sent, config=config, cache=False)
            return output
        except Exception as error:
            failure = error
            raise
        finally:
            if output is not None or failure is not None:
                self._record(
                    model, messages_sent, config, generation, output, began, retries, failure
                )

    def _resolve_config(
        self, model: Model, config: GenerateConfig
    ) -> tuple[GenerateConfig, object]:
        """Return all settings of a request, merged as by Inspect, and those that affect replies."""
        key = id(model), id(config)
        if key not in self._configs:
            of_study = vars(self.config)
            if model is not self.tested_model:
                of_study = {name: of_study[name] for name in _CONNECTION_SETTINGS}
            # merges as Inspect does, but does not copy every value
            over = {name: value for layer in (of_study, vars(config))
                    for name, value in layer.items() if value is not None}  # fmt: skip
            config_used = model.config.model_copy(update=over)
            if config_used.max_tokens is None:
                limit = model.api.max_tokens_for_config(config_used)
                config_used.max_tokens = model.api.max_tokens() if limit is None else limit
            # stored with its source, which keeps the id of the source valid
            self._configs[key] = config, config_used, settings_of(config_used)
        return self._configs[key][1:]

    def _record(
        self,
        model: Model,
        messages: Sequence[ChatMessage],
        config: GenerateConfig,
        generation: Asking,
        output: ModelOutput | None,
        began: datetime,
        retries: int,
        failure: BaseException | None = None,
    ) -> None:
        name = str(model)
        role = next((role for role, candidate in self.roles.items() if candidate is model), None)
        if output is not None and output.usage is not None:
            for usage, by in ((self.usage, name), (self.role_usage, role)):
                if by is not None:
                    usage[by] = usage[by] + output.usage if by in usage else output.usage
        self.events.append(
            _EMPTY_MODEL_EVENT.model_copy(
                update={
                    **self.placed(),
                    "timestamp": began,
                    "metadata": {KEPT_AS: generation.key},
                    "model": name,
                    "role": role,
                    "input_refs": _ranges([self._place(message) for message in messages]),
                    "config": config,
                    "output": output or ModelOutput(model=name),
                    "retries": retries or None,
                    "error": str(failure) if failure else None,
                    "cache": "read" if generation.stored_output is not None else None,
                    "call": self._call(generation.call),
                    "completed": datetime.now(UTC),
                    "working_time": output.time if output else None,
                }
            )
        )

    def _place(self, message: ChatMessage) -> int:
        key = message.id or str(id(message))
        return self._messages.setdefault(key, (len(self._messages), message))[0]

    def _call(self, call: object) -> ModelCall | None:
        """Return a call with its messages replaced by their positions."""
        if not isinstance(call, ModelCall):
            return None
        for name in ("messages", "contents"):
            request_messages = call.request.get(name)
            if isinstance(request_messages, list):
                refs = [self._place_in_call(part) for part in request_messages]
                parameters = {key: value for key, value in call.request.items() if key != name}
                return call.model_copy(
                    update={"request": parameters, "call_refs": _ranges(refs), "call_key": name}
                )
        return call

    def _place_in_call(self, part: Any) -> int:
        plain = isinstance(part, dict) and all(isinstance(v, str) for v in part.values())
        key = tuple(part.items()) if plain else json.dumps(part, default=str)
        return self._calls.setdefault(key, (len(self._calls), part))[0]

    def placed(self) -> dict[str, Any]:
        """Return the fields of every event: id, span and time."""
        return {
            "uuid": f"{self.uuid}{len(self.events):x}",
            "span_id": _span.get(),
            "timestamp": datetime.now(UTC),
            "working_start": time.monotonic() - self.began,
        }


current_sitting: ContextVar[Sitting | None] = ContextVar("current_sitting", default=None)
"""Current question. None in Inspect's own loop."""

_span: ContextVar[str | None] = ContextVar("span", default=None)


@asynccontextmanager
async def branch(name: str) -> AsyncIterator[None]:
    """Open a span with this name in the log."""
    if (sitting := current_sitting.get()) is None:
        async with span(name=name, type="branch"):
            yield
        return
    id, outer = f"{sitting.uuid}{len(sitting.events):x}", _span.get()
    token = _span.set(id)
    event_fields = {**sitting.placed(), "id": id, "parent_id": outer, "name": name}
    sitting.events.append(_EMPTY_SPAN_BEGIN.model_copy(update=event_fields))
    try:
        yield
    finally:
        sitting.events.append(_EMPTY_SPAN_END.model_copy(update={**sitting.placed(), "id": id}))
        _span.reset(token)


async def _generate_with_retries(
    model: Model, messages: list[ChatMessage], config: GenerateConfig
) -> tuple[ModelOutput, int]:
    """Return a provider's reply after the permitted retries, and the number of retries."""
    began, tries, state = time.monotonic(), 0, None
    while True:
        try:
            return await _attempt(model, messages, config), tries
        except Exception as error:
            decision = model.api.should_retry(error)
            if not getattr(decision, "retry", decision):
                raise
            tries += 1
            late = config.timeout is not None and time.monotonic() - began >= config.timeout
            if late or (config.max_retries is not None and tries > config.max_retries):
                raise
            state = state or RetryCallState(AsyncRetrying(), None, (), {})
            state.attempt_number = tries
            state.set_exception((type(error), error, error.__traceback__))
            wait = model.api.retry_wait()
            await anyio.sleep(wait(state) if wait else 0.0)


async def _attempt(
    model: Model, messages: list[ChatMessage], config: GenerateConfig
) -> ModelOutput:
    began = time.perf_counter()
    result = await model.api.generate(messages, [], "none", config)
    output = result[0] if isinstance(result, tuple) else result
    if isinstance(output, Exception):
        raise output
    output.time = time.perf_counter() - began
    return output


def _dollars(usage: ModelUsage, price: ModelCost) -> float:
    return (
        usage.input_tokens * price.input
        + usage.output_tokens * price.output
        + (usage.input_tokens_cache_read or 0) * price.input_cache_read
        + (usage.input_tokens_cache_write or 0) * price.input_cache_write
    ) / 1e6


def _without_reasoning(
    messages: Sequence[ChatMessage], config: GenerateConfig, api: ModelAPI
) -> list[ChatMessage]:
    """Return the conversation with only the hidden reasoning that must be sent again."""
    reasoning_messages = [
        m for m in messages if isinstance(m, ChatMessageAssistant) and _reasons(m)
    ]
    how = api.force_reasoning_history() or config.reasoning_history or "auto"
    if not reasoning_messages or (api.auto_reasoning_history() if how == "auto" else how) == "all":
        return list(messages)
    last_reasoning = reasoning_messages[-1] if how != "none" else None
    return [
        _plain(m) if m in reasoning_messages and m is not last_reasoning else m for m in messages
    ]


def _reasons(message: ChatMessage) -> bool:
    content = message.content
    return isinstance(content, list) and any(isinstance(c, ContentReasoning) for c in content)


def _plain(message: ChatMessage) -> ChatMessage:
    parts = [part for part in message.content if not isinstance(part, ContentReasoning)]
    return message.model_copy(update={"id": f"{message.id}-said", "content": parts})


def _ranges(places: Sequence[int]) -> list[tuple[int, int]]:
    """Return positions as ranges, each with its end exclusive."""
    ranges: list[tuple[int, int]] = []
    for place in places:
        if ranges and ranges[-1][1] == place:
            ranges[-1] = ranges[-1][0], place + 1
        else:
            ranges.append((place, place + 1))
    return ranges
