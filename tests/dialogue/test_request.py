"""One request: made once, counted, cached by everything it depends on."""

import traceback
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest
from inspect_ai.model import ChatMessageUser, ContentText, GenerateConfig, ModelOutput
from tests.scripted import Scripted, said

from holdfast.dialogue.budget import Budget, run_budget
from holdfast.dialogue.conversation import Run, Turn
from holdfast.dialogue.live_run import GenerationFailedError, Live
from holdfast.dialogue.sitting import Connections, Sitting, current_sitting
from holdfast.errors import BudgetExceededError
from holdfast.questions.question import Question
from holdfast.questions.truth import under_test

QUESTION = Question(id="q", stem="Which?", options={"A": "one", "B": "two"}, gold="A")


def begin(model: Any, **opening: Any) -> Turn:
    """A conversation of a run of its own."""
    return Run(QUESTION, Live(model)).chat(**opening)


async def say(model: Any, prompt: str = "Which?", **opening: Any) -> ModelOutput:
    output = (await begin(model, **opening).ask(prompt)).output
    assert output is not None
    return output


@pytest.mark.parametrize(
    "settings",
    [
        {"config": GenerateConfig(temperature=0.5)},
        {"config": GenerateConfig(seed=7)},
        {"config": GenerateConfig(max_tokens=9)},
        {"system": "Be exact."},
        {"replicate": 2},
    ],
    ids=["temperature", "seed", "max-tokens", "system", "replicate"],
)
async def test_another_setting_is_another_request(settings: dict[str, Any]) -> None:
    script = Scripted(lambda _: "(A)")
    async with anyio.create_task_group() as group:
        for _ in range(2):
            group.start_soon(say, script.model)
            group.start_soon(partial(say, script.model, **settings))
    await say(script.model, **settings)
    assert len(script.asked) == 2


async def test_a_server_at_another_address_is_asked_anew_and_patience_changes_nothing() -> None:
    script = Scripted(lambda _: "(A)")
    patient = GenerateConfig(max_retries=3, timeout=9, max_connections=2)
    for url in ("http://one/v1", "http://two/v1", "http://one/v1"):
        script.model.api.base_url = url
        await say(script.model)
        await say(script.model, config=patient)
    assert len(script.asked) == 2


async def test_two_models_of_one_name_with_other_arguments_share_nothing() -> None:
    first, second = Scripted(lambda _: "(A)"), Scripted(lambda _: "(B)")
    assert str(first.model) == str(second.model)
    for script, reply in ((first, "(A)"), (second, "(B)"), (first, "(A)")):
        assert (await say(script.model)).completion == reply
    assert (len(first.asked), len(second.asked)) == (1, 1)


async def test_neither_purpose_nor_truth_changes_a_request() -> None:
    script = Scripted(lambda _: "(A)")
    await begin(script.model, purpose="context").ask("Which?", attempt=1)
    await begin(script.model, purpose="context").ask("Which?", attempt=2)
    await begin(script.model).ask("Which?")
    assert len(script.asked) == 1
    (truth,) = script.truths
    assert truth is not None
    assert (truth.purpose, truth.given) == ("context", (("attempt", 1),))


def first_fails() -> Scripted:
    """A model whose first request fails."""

    def reply(_: Any) -> str:
        if len(model.asked) == 1:
            raise OSError("no route")
        return "(A)"

    model = Scripted(reply)
    return model


async def test_failures_are_neither_kept_nor_counted() -> None:
    script, budget = first_fails(), Budget(call_limit=1)
    token = run_budget.set(budget)
    with pytest.raises(GenerationFailedError, match="OSError: no route"):
        await say(script.model)
    assert under_test.get() is None
    assert (await say(script.model)).completion == "(A)"
    run_budget.reset(token)
    assert (len(script.asked), budget.calls) == (2, 1)


async def test_a_failed_request_leaves_the_others_in_flight() -> None:
    script, failures = first_fails(), []

    async def ask() -> None:
        try:
            await say(script.model)
        except GenerationFailedError as error:
            failures.append(error.kind)

    async with anyio.create_task_group() as group:
        for _ in range(5):
            group.start_soon(ask)
    assert failures == ["OSError"]
    assert len(script.asked) == 2


@pytest.mark.parametrize("field", ["stop reason", "refusal"])
async def test_a_filtered_reply_is_kept_like_any_other(field: str) -> None:
    def refuse(_: Any) -> ModelOutput:
        if field == "stop reason":
            return said("", stop_reason="content_filter")
        output = said("")
        output.choices[0].message.content = [ContentText(text="Not that.", refusal=True)]
        return output

    script = Scripted(refuse)
    for _ in range(2):
        assert (await say(script.model)).stop_reason == "content_filter"
    assert len(script.asked) == 1


async def test_a_key_is_removed_from_an_error_and_its_causes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    key = "-".join(("sk", "planted", "0123"))  # a traceback shows the lines of this file
    monkeypatch.setenv("OPENAI_API_KEY", key)

    def fail(_: Any) -> str:
        try:
            raise OSError(f"refused {key}")
        except OSError as cause:
            raise RuntimeError(f"no route with {key}") from cause

    with pytest.raises(GenerationFailedError) as caught:
        await say(Scripted(fail).model)
    trace = "".join(traceback.format_exception(caught.value))
    assert "refused [key]" in trace
    assert key not in trace


async def test_a_full_disk_ends_a_run_like_a_spent_budget(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = Scripted(lambda _: "(A)")
    token = run_budget.set(Budget(folder=str(tmp_path)))
    await say(script.model, "one")
    monkeypatch.setattr("holdfast.dialogue.budget.ROOM", 2**60)
    with pytest.raises(BudgetExceededError, match=f"are free at {tmp_path}. Free some space"):
        await say(script.model, "two")
    run_budget.reset(token)
    assert len(script.asked) == 1


async def test_a_provider_that_returns_no_choice_has_failed() -> None:
    script = Scripted(lambda _: ModelOutput(model="m", choices=[], error="overloaded"))
    with pytest.raises(GenerationFailedError, match="overloaded"):
        await say(script.model)


async def test_messages_reach_the_model_in_order_unchanged() -> None:
    hostile = "{question} {{x}} \x00 </s> %s"
    script = Scripted(lambda _: hostile)
    await (await begin(script.model, system=hostile).ask(hostile)).ask("again")
    assert [message.text for message in script.asked[1]] == [hostile] * 3 + ["again"]
    assert isinstance(script.asked[1][-1], ChatMessageUser)


async def test_an_interruption_keeps_replies_that_arrived() -> None:
    scope = anyio.CancelScope()

    def interrupted(_: Any) -> str:
        scope.cancel()  # takes effect where the request next lets others run
        return "(A)"

    script = Scripted(interrupted)
    script.model.api.direct = True  # type: ignore[attr-defined]
    current_sitting.set(Sitting(script.model, {}, GenerateConfig(), Connections()))
    with scope:
        await say(script.model)
    assert scope.cancelled_caught
    assert (await say(script.model)).completion == "(A)"
    assert len(script.asked) == 1
