"""One request to a model: never made twice, counted, and inside the run's budget."""

from collections.abc import Sequence

import anyio
from inspect_ai.event import ModelEvent
from inspect_ai.log import transcript
from inspect_ai.model import (
    ChatMessage,
    GenerateConfig,
    Model,
    ModelOutput,
    ModelUsage,
    get_model_info,
)

from holdfast.questions.truth import Truth, under_test

from .budget import Budget, run_budget
from .generations import generations
from .guarding import Asking, asking, guard, with_refusals
from .probing import ProbedError, probing
from .sitting import current_sitting


async def request(
    model: Model,
    messages: Sequence[ChatMessage],
    *,
    key: str,
    truth: Truth,
    config: GenerateConfig,
) -> ModelOutput:
    """Generate, or return what this very request has generated before.

    Identical requests in flight wait for one generation, finished ones are kept.

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
    # responders without a network look at more than messages
    looked_at = getattr(model.api, "looked_at", None)
    generation = Asking((truth.drawn, looked_at(truth) if looked_at else ""))
    budget, sitting = run_budget.get() or Budget(), current_sitting.get()
    guard(model)
    calls_of = getattr(model.api, "calls_of", None)
    calls = calls_of(messages) if calls_of else 1
    while key in _under_way:  # whoever is first asks, the others then find it kept
        finish = _under_way[key] = _under_way[key] or anyio.Event()
        await finish.wait()
    _under_way[key] = None
    tokens = under_test.set(truth), asking.set(generation)
    try:
        await budget.admit(calls)
        try:
            if sitting is not None:
                output = await sitting.generate(model, messages, config, generation)
            else:
                # Inspect's cache keeps a file each, at a cost of a fifth of a call
                output = await model.generate(list(messages), config=config, cache=False)
            if not output.choices:
                raise RuntimeError(output.error or "the provider returned no choice")
            if generation.stored_output is None:
                generations().put(generation.key, output)
            elif sitting is None:
                _mark_kept(output, generation.stored_output)
            token_usage = output.usage if output.usage and output.usage.total_tokens > 0 else None
            usage = token_usage or _estimate(model, messages, output)
            budget.count(
                usage,
                from_cache=generation.stored_output is not None,
                is_estimated=token_usage is None,
                calls=calls,
            )
        finally:
            budget.settle(calls)
    finally:
        under_test.reset(tokens[0])
        asking.reset(tokens[1])
        if (waited_for := _under_way.pop(key)) is not None:
            waited_for.set()
    if generation.stored_output is None and not getattr(model.api, "offline", False):
        # who waits for the connection asks before this is read; an interrupt finds it kept
        await anyio.sleep(0)
    if (probe := probing.get()) is not None:
        probe.seconds = output.time or 0.0
        raise ProbedError
    return with_refusals(output)


_under_way: dict[str, anyio.Event | None] = {}
"""Requests by their key, with what those wait for that would make the same."""


def _estimate(model: Model, messages: Sequence[ChatMessage], output: ModelOutput) -> ModelUsage:
    """What a request may have taken, at four characters a token, where the server does not say."""
    input_tokens = sum(len(message.text) for message in messages) // 4
    output_tokens = sum(len(choice.message.text) for choice in output.choices) // 4
    info = get_model_info(model)
    price = info.cost if info else None
    cost = (input_tokens * price.input + output_tokens * price.output) / 1e6 if price else None
    return ModelUsage(
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        total_tokens=input_tokens + output_tokens,
        total_cost=cost,
    )


def _mark_kept(output: ModelOutput, original: ModelOutput) -> None:
    """Say what a generation took when it was made, in the log too, and that it was not made now."""
    output.usage, output.time = original.usage, original.time
    for event in reversed(transcript().events):
        if isinstance(event, ModelEvent) and event.output.choices:
            if event.output.choices[0].message.id == output.message.id:
                event.cache = "read"
                event.output.usage, event.output.time = original.usage, original.time
                return
