"""One request to a model: never made twice, counted, and inside the run's budget."""

import hashlib
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import anyio
from inspect_ai.event import ModelEvent
from inspect_ai.log import transcript
from inspect_ai.model import CachePolicy, ChatMessage, GenerateConfig, Model, ModelOutput

from holdfast.questions import Truth, under_test

from .budget import Budget, run_budget
from .guarding import guard, unguarded


async def request(
    model: Model,
    messages: Sequence[ChatMessage],
    *,
    key: str,
    truth: Truth,
    config: GenerateConfig,
) -> ModelOutput:
    """Generate, or return what this very request has generated before.

    Identical requests in flight wait for one generation, finished ones come from Inspect's cache.

    Args:
        model: the model asked.
        messages: the whole conversation.
        key: digest of model, settings and conversation; equal requests have equal keys.
        truth: what is true of the turn, for the responders that need no network.
        config: generation settings over those of the task.

    Raises:
        BudgetExceededError: the run's budget is spent, or there is no room left for replies.
        RuntimeError: the provider returned no choice.
    """
    # Inspect's cache is not single-flight, and its key holds neither the model's arguments nor
    # the replicate, nor what else a responder without a network looks at
    looked_at = getattr(model.api, "looked_at", None)
    policy = CachePolicy(
        expiry=None,
        scopes={
            "model_args": digest(model.model_args),
            "replicate": str(truth.replicate),
            "looked_at": looked_at(truth) if looked_at else "",
        },
    )
    budget = run_budget.get() or Budget()
    guard(model)
    token = under_test.set(truth)
    try:
        async with _alone(key), budget.request() as spending:
            output = await model.generate(list(messages), config=config, cache=policy)
            if not output.choices:
                raise RuntimeError(output.error or "the provider returned no choice")
            spending.usage = output.usage
            spending.cached = _from_cache(output)
    finally:
        under_test.reset(token)
    return unguarded(output)


def digest(*parts: object) -> str:
    """SHA-256 of the parts (hex, 32 characters)."""
    return hashlib.sha256(json.dumps(parts, default=str).encode()).hexdigest()[:32]


_asking: dict[str, tuple[anyio.Lock, int]] = {}


@asynccontextmanager
async def _alone(key: str) -> AsyncIterator[None]:
    """Let one request with this key through at a time; the others then find it in the cache."""
    lock, waiting = _asking.get(key, (anyio.Lock(), 0))
    _asking[key] = (lock, waiting + 1)
    try:
        async with lock:
            yield
    finally:
        lock, waiting = _asking[key]
        if waiting == 1:
            del _asking[key]
        else:
            _asking[key] = (lock, waiting - 1)


def _from_cache(output: ModelOutput) -> bool:
    """Whether the generation just returned was read from the cache, by its event in the log."""
    for event in reversed(transcript().events):
        if isinstance(event, ModelEvent) and event.output.choices:
            if event.output.choices[0].message.id == output.message.id:
                return event.cache == "read"
    return False
