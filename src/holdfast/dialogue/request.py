"""Request to a model: never made twice, counted, and within the run's budget."""

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
    """Generate a reply, or return the stored generation of the same request.

    Identical pending requests share a generation. Finished generations are stored.

    Args:
        model: the model.
        messages: the whole conversation.
        key: digest of model, settings and conversation. Equal requests have equal keys.
        truth: truth of the turn, for models that need no network.
        config: generation settings that override those of the task.

    Raises:
        BudgetExceededError: the run's budget is spent, or the disk for replies is full.
        RuntimeError: the provider returned no choice.
    """
    # offline models use more than the messages
    looked_at = getattr(model.api, "looked_at", None)
    generation = Asking((truth.drawn, looked_at(truth) if looked_at else ""))
    budget, sitting = run_budget.get() or Budget(), current_sitting.get()
    guard(model)
    calls_of = getattr(model.api, "calls_of", None)
    calls = calls_of(messages) if calls_of else 1
    while key in _under_way:  # the first one asks, and the others then use its stored reply
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
                # Inspect's cache writes a file for each call, which takes a fifth of the call
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
        # let waiting requests start before this reply is parsed; it is stored in case of an
        # interrupt
        await anyio.sleep(0)
    if (probe := probing.get()) is not None:
        probe.seconds = output.time or 0.0
        raise ProbedError
    return with_refusals(output)


_under_way: dict[str, anyio.Event | None] = {}
"""Pending requests by key, each with the event that identical requests wait for."""


def _estimate(model: Model, messages: Sequence[ChatMessage], output: ModelOutput) -> ModelUsage:
    """Estimate the usage at four characters per token, if the server reports none."""
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
    """Restore the original usage of a stored generation, also in the log, and mark it as cached."""
    output.usage, output.time = original.usage, original.time
    for event in reversed(transcript().events):
        if isinstance(event, ModelEvent) and event.output.choices:
            if event.output.choices[0].message.id == output.message.id:
                event.cache = "read"
                event.output.usage, event.output.time = original.usage, original.time
                return
