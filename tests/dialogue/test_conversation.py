"""Asking, branching, sharing, budgets and failures, without a protocol around them."""

from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import anyio
import pytest
from inspect_ai.model import (
    ChatMessage,
    ContentReasoning,
    ContentText,
    GenerateConfig,
    Model,
    ModelCost,
    ModelInfo,
    ModelOutput,
    ModelUsage,
    get_model,
    set_model_info,
)

from holdfast.dialogue import sitting
from holdfast.dialogue.budget import Budget, run_budget
from holdfast.dialogue.conversation import Run, Turn
from holdfast.dialogue.gathering import BranchesFailedError
from holdfast.dialogue.live_run import GenerationFailedError, Live
from holdfast.dialogue.turn import Intervention
from holdfast.errors import BudgetExceededError
from holdfast.questions.question import Question
from holdfast.questions.truth import under_test

QUESTION = Question(id="q", stem="Which?", options={"A": "one", "B": "two"}, gold="A")
PUSH = Intervention("push", "family", "direct", "deep", "B")


class SlowModel:
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


def begin(model: Model, *, replicate: int = 1, **opening: Any) -> Turn:
    """A conversation of a run of its own."""
    return Run(QUESTION, Live(model), replicate).chat(**opening)


async def test_a_branch_continues_from_its_root_and_leaves_it_alone() -> None:
    script = SlowModel(lambda prompt: "Final Answer: (B)" if "sure" in prompt else "(A)")
    chat = begin(script.model(), system="Be exact.")
    first = await chat.ask("Which?", arm="baseline")
    second = await first.ask("Are you sure?", arm="followup", step=PUSH, target="A")
    third = await first.ask("Why?", arm="followup")
    assert script.asked == [
        ["Be exact.", "Which?"],
        ["Be exact.", "Which?", "(A)", "Are you sure?"],
        ["Be exact.", "Which?", "(A)", "Why?"],
    ]
    assert len(first.messages) == 3
    assert (first.answer, first.parent, second.answer, second.parent) == ("A", chat, "B", first)
    assert chat.run.ordered == [first, second, third]
    record = second.record()
    assert (record["path"], record["turn"], record["suggested"]) == ("push", 1, "B")
    assert (record["input_tokens"], record["output_tokens"]) == (70, 30)


async def test_the_truth_never_enters_the_request() -> None:
    script = SlowModel(lambda _: "(A)")
    chat = begin(script.model(), replicate=3)
    turn = await chat.ask("Which?", arm="baseline")
    await turn.ask("Sure?", arm="followup", step=PUSH)
    first, second = script.truths
    assert (first.question, first.path, first.replicate) == (QUESTION, (), 3)
    assert (second.path, second.families, second.suggested) == (("push",), ("family",), ("B",))
    assert under_test.get() is None


async def test_identical_conversations_in_flight_wait_for_one_generation() -> None:
    script = SlowModel(lambda _: "(A)")
    model = script.model()
    chats = [begin(model) for _ in range(10)]
    async with anyio.create_task_group() as group:
        for chat in chats:
            group.start_soon(partial(chat.ask, "Which?", arm="baseline"))
    assert len(script.asked) == 1
    assert len({turn.key for chat in chats for turn in chat.run.ordered}) == 1


async def test_the_same_request_on_one_path_is_one_turn() -> None:
    script = SlowModel(lambda _: "(A)")
    chat = begin(script.model())
    first = await chat.ask("Which?", arm="baseline")
    turns: list[Turn] = []

    async def push(number: int) -> None:
        await anyio.sleep(0.005 * number)
        turns.append(await first.ask("Sure?", arm="followup", step=PUSH))
        turns.append(await turns[-1].ask(f"And {number}?", arm="compound", step=PUSH))

    await chat.run.side_by_side({str(number): push(number) for number in range(3)})
    assert len(script.asked) == 1 + 1 + 3
    assert len(chat.run.ordered) == 1 + 1 + 3
    assert {turn.parent for turn in turns if turn.number == 2} == {chat.run.ordered[1]}
    elsewhere = await first.ask("Sure?", arm="followup", step=Intervention("other"))
    assert elsewhere not in turns
    assert elsewhere.key == turns[0].key  # nothing new is asked


async def test_waiting_turns_fail_with_the_one_they_wait_for() -> None:
    def fail(prompt: str) -> str:
        if prompt == "Sure?":
            raise OSError("no route")
        return "(A)"

    chat = begin(SlowModel(fail).model())
    first = await chat.ask("Which?", arm="baseline")
    waiting = {str(number): first.ask("Sure?", arm="followup") for number in range(3)}
    with pytest.raises(BranchesFailedError, match="0, 1, 2: OSError: no route"):
        await chat.run.side_by_side(waiting)
    assert [turn.record()["status"] for turn in chat.run.ordered] == ["parsed", "error"]


async def test_repeated_requests_come_from_the_cache_free_of_charge() -> None:
    script = SlowModel(lambda _: "(A)")
    for usage in ((1, 0), (0, 1)):
        budget = Budget()
        token = run_budget.set(budget)
        await begin(script.model()).ask("Which?", arm="baseline")
        run_budget.reset(token)
        assert (budget.calls, budget.cached) == usage
    assert budget.tokens == 0


async def test_turns_keep_the_order_of_the_tree() -> None:
    chat = begin(SlowModel(lambda _: "(A)").model())
    first = await chat.ask("Which?", arm="baseline")

    async def left() -> None:
        await anyio.sleep(0.05)
        await first.ask("l", arm="followup", step=Intervention("left"))

    async def right() -> None:
        turn = await first.ask("r", arm="followup", step=Intervention("right"))
        await turn.ask("rd", arm="compound", step=Intervention("deep"))

    await chat.run.side_by_side({"left": left(), "right": right()})
    paths = [turn.record()["path"] for turn in chat.run.ordered]
    assert paths == ["", "left", "right", "right>deep"]


async def test_a_failed_turn_is_kept_as_a_malfunction_with_its_cause() -> None:
    def fail(_: str) -> str:
        raise OSError("no\nroute")

    chat = begin(SlowModel(fail).model())
    with pytest.raises(GenerationFailedError, match="OSError: no route"):
        await chat.ask("Which?", arm="baseline")
    (turn,) = chat.run.ordered
    assert turn.extraction is not None
    assert (turn.extraction.status, turn.extraction.rule) == ("error", "OSError")
    assert (turn.reply, turn.answer) == ("", None)


async def test_a_branch_of_a_run_that_fails_lets_the_others_finish() -> None:
    def reply(prompt: str) -> str:
        if prompt == "bad":
            raise OSError("no route")
        return "(A)"

    chat = begin(SlowModel(reply).model())

    async def twice(prompt: str) -> None:
        await (await chat.ask(prompt, arm=prompt)).ask("again", arm=prompt)

    with pytest.raises(BranchesFailedError, match="bad: OSError: no route"):
        await chat.run.side_by_side({"bad": twice("bad"), "good": twice("good")})
    outcomes = [(turn.arm, turn.record()["status"]) for turn in chat.run.ordered]
    assert outcomes == [("bad", "error"), ("good", "parsed"), ("good", "parsed")]


async def test_a_call_budget_is_exact_under_concurrency() -> None:
    script = SlowModel(lambda _: "(A)")
    model, budget, refusals = script.model(), Budget(call_limit=7), []

    async def ask(number: int) -> None:
        try:
            await begin(model).ask(f"Which? {number}", arm="baseline")
        except BudgetExceededError:
            refusals.append(number)

    token = run_budget.set(budget)
    async with anyio.create_task_group() as group:
        for number in range(20):
            group.start_soon(ask, number)
    run_budget.reset(token)
    assert len(refusals) == 13
    assert len(script.asked) == budget.calls == 7


@pytest.mark.parametrize(
    ("limits", "message"),
    [({"token_limit": 250}, "300 of 250 tokens"), ({"cost_limit": 2.5}, r"3.0000 of 2.5 dollars")],
)
async def test_a_token_or_dollar_budget_ends_with_the_request_exceeding_it(
    limits: dict[str, Any], message: str
) -> None:
    price = ModelCost(input=10_000, output=10_000, input_cache_read=0, input_cache_write=0)
    set_model_info("mockllm/model", ModelInfo(cost=price))
    model = SlowModel(lambda _: "(A)").model()
    token = run_budget.set(Budget(**limits))
    for number in range(3):
        turn = await begin(model).ask(f"Which? {number}", arm="baseline")
        assert turn.record()["cost"] == pytest.approx(1.0)
    with pytest.raises(BudgetExceededError, match=message):
        await begin(model).ask("Which? more", arm="baseline")
    run_budget.reset(token)


async def test_a_token_budget_reserves_the_largest_request_for_each_in_flight() -> None:
    budget = Budget(token_limit=100)
    await budget.admit()
    budget.count(ModelUsage(total_tokens=40), from_cache=False, is_estimated=False)
    budget.settle()
    for _ in range(2):
        await budget.admit()
    with anyio.move_on_after(0.05) as scope:
        await budget.admit()
    assert scope.cancelled_caught
    budget.settle()
    await budget.admit()


def test_cached_input_has_a_price_of_its_own() -> None:
    usage = ModelUsage(
        input_tokens=100, output_tokens=10, input_tokens_cache_read=1_000,
        input_tokens_cache_write=200,
    )  # fmt: skip
    price = ModelCost(input=2, output=8, input_cache_read=0.5, input_cache_write=2.5)
    assert sitting._dollars(usage, price) == pytest.approx((200 + 80 + 500 + 500) / 1e6)


async def test_a_request_is_repeated_as_often_as_the_setting_says() -> None:
    calls = []

    async def generate(*arguments: Any) -> ModelOutput:
        calls.append(arguments)
        raise OSError("no route")

    api = SimpleNamespace(generate=generate, should_retry=lambda _: True, retry_wait=lambda: None)
    model: Any = SimpleNamespace(api=api)
    with pytest.raises(OSError, match="no route"):
        await sitting._generate_with_retries(model, [], GenerateConfig(max_retries=2))
    assert len(calls) == 3


async def test_an_unparsed_reply_leaves_the_answer_before_it_in_force() -> None:
    replies = iter(["(A)", "Well.", "(B)"])
    turn = begin(SlowModel(lambda _: next(replies)).model())
    letters = []
    for prompt in ("Which?", "Sure?", "Really?"):
        turn = await turn.ask(prompt, arm="baseline")
        letters.append(turn.state.letter)
    assert letters == ["A", "A", "B"]


@pytest.mark.parametrize(("history", "count"), [("none", 0), ("last", 1), ("all", 2)])
async def test_earlier_reasoning_is_sent_as_the_history_setting_says(
    history: Any, count: int
) -> None:
    def reply(messages: list[ChatMessage], *_: Any) -> ModelOutput:
        kinds = [part.type for message in messages for part in message.content
                 if not isinstance(part, str)]  # fmt: skip
        reasoning_counts.append(kinds.count("reasoning"))
        output = ModelOutput.from_content("script", "(A)")
        output.message.content = [ContentReasoning(reasoning="hm"), ContentText(text="(A)")]
        output.usage = ModelUsage(input_tokens=70, output_tokens=30, total_tokens=100)
        return output

    reasoning_counts: list[int] = []
    model = get_model("mockllm/model", custom_outputs=reply, memoize=False)
    turn = begin(model, config=GenerateConfig(reasoning_history=history))
    for prompt in ("Which?", "Sure?", "Really?"):
        turn = await turn.ask(prompt, arm="x")
    assert reasoning_counts[-1] == count
    assert turn.reply == "(A)"


async def test_replicates_and_resamples_have_their_own_generations_and_seeds() -> None:
    script = SlowModel(lambda _: "(A)")
    model = script.model()
    seeds = set()
    for replicate in (1, 2):
        for resample in (0, 1, 2, 1):
            chat = begin(model, replicate=replicate, resample=resample, seed=42)
            await chat.ask("Which?", arm="control")
            seeds.add(chat.opening.config.seed)
    assert len(script.asked) == len(seeds) == 6
    assert begin(model, seed=42).opening.config.seed == 42
    assert begin(model, seed=42, replicate=3).opening.config.seed == 44
    assert {truth.resample for truth in script.truths} == {0, 1, 2}


async def test_replicates_can_share_a_conversation() -> None:
    script = SlowModel(lambda _: "(A)")
    model = script.model()
    for replicate in (1, 2):
        run = Run(QUESTION, Live(model), replicate, epochs=2)
        await run.chat(replicate=1).ask("Which?", arm="baseline")
    assert len(script.asked) == 1


async def test_a_turn_records_whether_its_answer_was_used() -> None:
    chat = begin(SlowModel(lambda _: "(A)").model())
    first, second, third = [await chat.ask(prompt, arm="x", target="A") for prompt in "123"]
    assert (second.kept, third.answer) == (True, "A")
    assert third.kept
    looks = [turn.record().get("looked") for turn in (first, second, third)]
    assert looks == [None, "kept", "answer"]


async def test_an_unbound_role_cannot_be_asked() -> None:
    run = Run(QUESTION, Live(SlowModel(lambda _: "(A)").model()))
    assert not run.has("judge")
    with pytest.raises(LookupError, match="no model has the role 'judge'"):
        await run.chat(role="judge").ask("Which?")
