"""Asking, branching, sharing, budgets and failures, without a protocol around them."""

from collections.abc import Callable
from functools import partial
from typing import Any

import anyio
import pytest
from inspect_ai.model import (
    ChatMessage,
    Model,
    ModelCost,
    ModelInfo,
    ModelOutput,
    ModelUsage,
    get_model,
    set_model_info,
)

from holdfast.dialogue import (
    BranchesFailedError,
    Budget,
    Conversation,
    GenerationFailedError,
    Intervention,
    gather,
    run_budget,
)
from holdfast.errors import BudgetExceededError
from holdfast.questions import Question, under_test

QUESTION = Question(id="q", stem="Which?", options={"A": "one", "B": "two"}, gold="A")
PUSH = Intervention("push", "family", "direct", "deep", "B")


class Script:
    """A model that answers from a function, slowly, and keeps what it was asked."""

    def __init__(self, reply: Callable[[str], str | ModelOutput]) -> None:
        self.reply = reply
        self.asked: list[list[str]] = []
        self.truths: list[Any] = []

    async def respond(self, messages: list[ChatMessage], *_: Any) -> ModelOutput:
        self.asked.append([message.text for message in messages])
        self.truths.append(under_test.get())
        await anyio.sleep(0.01)
        output = self.reply(messages[-1].text)
        if isinstance(output, str):
            output = ModelOutput.from_content("script", output)
        output.usage = ModelUsage(input_tokens=70, output_tokens=30, total_tokens=100)
        return output

    def model(self) -> Model:
        return get_model("mockllm/model", custom_outputs=self.respond, memoize=False)


async def test_a_branch_goes_on_from_its_root_and_leaves_it_alone() -> None:
    script = Script(lambda prompt: "Final Answer: (B)" if "sure" in prompt else "(A)")
    chat = Conversation(script.model(), QUESTION, system="Be exact.")
    first = await chat.ask("Which?", arm="baseline")
    branch = chat.branch(PUSH)
    second = await branch.ask("Are you sure?", arm="followup", target="A")
    assert script.asked == [
        ["Be exact.", "Which?"],
        ["Be exact.", "Which?", "(A)", "Are you sure?"],
    ]
    assert len(chat.messages) == 3
    assert [turn.answer for turn in chat.turns] == ["A", "B"] == [first.answer, second.answer]
    record = second.record()
    assert (record["path"], record["turn"], record["suggested"]) == ("push", 1, "B")
    assert (record["input_tokens"], record["output_tokens"]) == (70, 30)


async def test_the_model_is_told_the_truth_beside_the_request_not_in_it() -> None:
    script = Script(lambda _: "(A)")
    chat = Conversation(script.model(), QUESTION, replicate=3)
    await chat.ask("Which?", arm="baseline")
    await chat.branch(PUSH).ask("Sure?", arm="followup")
    first, second = script.truths
    assert (first.question, first.path, first.replicate) == (QUESTION, (), 3)
    assert (second.path, second.families, second.suggested) == (("push",), ("family",), ("B",))
    assert under_test.get() is None


async def test_identical_conversations_in_flight_wait_for_one_generation() -> None:
    script = Script(lambda _: "(A)")
    model = script.model()
    chats = [Conversation(model, QUESTION) for _ in range(10)]
    async with anyio.create_task_group() as group:
        for chat in chats:
            group.start_soon(partial(chat.ask, "Which?", arm="baseline"))
    assert len(script.asked) == 1
    assert {chat.turns[0].key for chat in chats} == {chats[0].turns[0].key}


async def test_what_was_asked_before_comes_from_the_cache_and_costs_nothing() -> None:
    script = Script(lambda _: "(A)")
    for expected in ((1, 0), (0, 1)):
        budget = Budget()
        token = run_budget.set(budget)
        await Conversation(script.model(), QUESTION).ask("Which?", arm="baseline")
        run_budget.reset(token)
        assert (budget.calls, budget.cached) == expected
    assert budget.tokens == 0


async def test_turns_stand_in_the_order_of_the_tree_however_they_end() -> None:
    script = Script(lambda _: "(A)")
    chat = Conversation(script.model(), QUESTION)
    await chat.ask("Which?", arm="baseline")
    left, right = chat.branch(Intervention("left")), chat.branch(Intervention("right"))
    await right.ask("r", arm="followup")
    await right.branch(Intervention("deep")).ask("rd", arm="compound")
    await left.ask("l", arm="followup")
    paths = [turn.record()["path"] for turn in chat.turns]
    assert paths == ["", "left", "right", "right>deep"]


async def test_a_failed_turn_is_kept_as_a_malfunction_with_its_cause() -> None:
    def fail(_: str) -> str:
        raise OSError("no\nroute")

    chat = Conversation(Script(fail).model(), QUESTION)
    with pytest.raises(GenerationFailedError, match="OSError: no route"):
        await chat.ask("Which?", arm="baseline")
    (turn,) = chat.turns
    assert (turn.extraction.status, turn.extraction.rule) == ("error", "OSError")
    assert (turn.reply, turn.answer) == ("", None)


@pytest.mark.parametrize(
    ("stop_reason", "text", "expected"),
    [
        ("content_filter", "", ("refused", "content-filter")),
        ("max_tokens", "The patient has", ("none", "cut-off")),
        ("max_tokens", "Final Answer: (B)", ("parsed", "final-answer")),
    ],
)
async def test_why_a_reply_ended_decides_how_it_is_read(
    stop_reason: Any, text: str, expected: tuple[str, str]
) -> None:
    output = ModelOutput.from_content("script", text, stop_reason=stop_reason)
    chat = Conversation(Script(lambda _: output).model(), QUESTION)
    turn = await chat.ask("Which?", arm="baseline")
    assert (turn.extraction.status, turn.extraction.rule) == expected


async def test_one_failing_branch_does_not_stop_its_siblings() -> None:
    done = []

    async def work(name: str, *, fails: bool) -> None:
        await anyio.sleep(0.01 if fails else 0.05)
        if fails:
            raise ValueError("broke")
        done.append(name)

    async def all_four() -> None:
        async with gather() as branches:
            for name in ("one", "two", "three", "four"):
                branches.start(name, partial(work, name, fails=name in ("two", "four")))

    with pytest.raises(BranchesFailedError, match="two, four: broke"):
        await all_four()
    assert sorted(done) == ["one", "three"]


async def spend(budget: Budget, script: Script, n: int) -> int:
    """How many of n different requests at once the budget refused."""
    refused = 0
    model = script.model()

    async def ask(i: int) -> None:
        nonlocal refused
        try:
            await Conversation(model, QUESTION).ask(f"Which? {i}", arm="baseline")
        except BudgetExceededError:
            refused += 1

    token = run_budget.set(budget)
    async with anyio.create_task_group() as group:
        for i in range(n):
            group.start_soon(ask, i)
    run_budget.reset(token)
    return refused


async def test_a_budget_of_calls_is_held_exactly_however_many_ask_at_once() -> None:
    script = Script(lambda _: "(A)")
    budget = Budget(call_limit=7)
    assert await spend(budget, script, 20) == 13
    assert len(script.asked) == budget.calls == 7


async def test_a_budget_of_tokens_is_held_to_within_the_requests_in_flight() -> None:
    script = Script(lambda _: "(A)")
    budget = Budget(token_limit=250)
    model = script.model()
    token = run_budget.set(budget)
    for i in range(3):
        await Conversation(model, QUESTION).ask(f"Which? {i}", arm="baseline")
    with pytest.raises(BudgetExceededError, match="300 of 250 tokens"):
        await Conversation(model, QUESTION).ask("Which? more", arm="baseline")
    run_budget.reset(token)


async def test_a_budget_of_dollars_counts_by_the_price_of_the_model() -> None:
    price = ModelCost(input=10_000, output=10_000, input_cache_read=0, input_cache_write=0)
    set_model_info("mockllm/model", ModelInfo(cost=price))
    script = Script(lambda _: "(A)")
    budget = Budget(cost_limit=2.5)
    token = run_budget.set(budget)
    model = script.model()
    for i in range(3):
        turn = await Conversation(model, QUESTION).ask(f"Which? {i}", arm="baseline")
        assert turn.record()["cost"] == pytest.approx(1.0)
    with pytest.raises(BudgetExceededError, match=r"3.0000 of 2.5 dollars"):
        await Conversation(model, QUESTION).ask("Which? more", arm="baseline")
    run_budget.reset(token)


async def test_replicates_never_share_a_generation_and_repeat_their_own() -> None:
    script = Script(lambda _: "(A)")
    model = script.model()
    for replicate in (1, 2, 3, 1, 2, 3):
        await Conversation(model, QUESTION, replicate=replicate).ask("Which?", arm="attack")
    assert len(script.asked) == 3


async def test_turns_are_numbered_by_their_place_in_the_conversation() -> None:
    chat = Conversation(Script(lambda _: "(A)").model(), QUESTION)
    for prompt in ("one", "two"):
        await chat.ask(prompt, arm="baseline")
    await chat.branch(PUSH).ask("three", arm="followup")
    assert [turn.record()["turn"] for turn in chat.turns] == [0, 1, 2]
