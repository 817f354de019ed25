"""A dry run knows what a protocol asks before a model is asked: bounds, paths, what is left out."""

import asyncio
import random
import tempfile
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, seed, settings
from hypothesis import strategies as st
from inspect_ai.model import (
    ChatMessage,
    GenerateConfig,
    Logprob,
    Logprobs,
    Model,
    ModelOutput,
    ModelUsage,
    TopLogprob,
    get_model,
)
from tests.scripted import Scripted
from tests.studies import question_rows, write_jsonl

from holdfast.defences.defence import ABSTAIN, NO_DEFENCE, bundled
from holdfast.defences.defended import DefendedLive
from holdfast.dialogue.conversation import TESTED_ARM, Run, Turn
from holdfast.dialogue.generations import keeping
from holdfast.dialogue.live_run import Live
from holdfast.dialogue.turn import Intervention
from holdfast.protocols.dry_run import CallPlanner, QuestionPlan
from holdfast.protocols.installed import PROTOCOLS
from holdfast.protocols.protocol import CallCount, Protocol, Study
from holdfast.protocols.settings import QuestionSettings
from holdfast.questions.question import Question
from holdfast.reading.extraction import Fault

QUESTION = Question(id="q", stem="Which?", options={"A": "one", "B": "two", "C": "three"}, gold="A")
Method = Callable[[Run], Awaitable[None]]


def planned(method: Method, *roles: str, **more: Any) -> QuestionPlan:
    return CallPlanner(method, frozenset(roles), **more).plan(QUESTION)


def ask(turn: Turn, prompt: str, step: str = "", arm: str = "x") -> Awaitable[Turn]:
    steps = Intervention(step) if step else ()
    return turn.ask(prompt, arm=arm, step=steps, target=QUESTION.gold)


# --- protocols of the tests ---


async def straight(run: Run) -> None:
    """Decides nothing."""
    first = await ask(run.chat(), "Which?")
    await ask(first, "Sure?", "sure")
    await ask(first, "Sure?", "again")  # the same request


async def until_left(run: Run) -> None:
    """Stops at the first departure."""
    turn = await ask(run.chat(), "Which?")
    for number in range(4):
        if not turn.kept:
            return
        turn = await ask(turn, f"{number}?", str(number))


async def by_answer(run: Run) -> None:
    """Asks most where nothing can be read, and nothing more of who is right."""
    turn = await ask(run.chat(), "Which?")
    if turn.answer == run.question.gold:
        return
    if turn.answer is None:
        turn = await ask(turn, "Please name a letter.", "name")
    await ask(turn, "Sure?", "sure")


async def two_branches(run: Run) -> None:
    """Branches that decide each for themselves, and one inside another."""
    first = await ask(run.chat(), "Which?")

    async def push(name: str, times: int) -> None:
        turn = first
        for number in range(times):
            turn = await ask(turn, f"{name} {number}", f"{name}-{number}")
            if not turn.kept:
                break
        else:
            ends = {end: ask(turn, f"{name} {end}", end) for end in ("l", "r")}
            await run.side_by_side(ends)

    await run.side_by_side({"a": push("a", 1), "b": push("b", 3)})


async def joint_decision(run: Run) -> None:
    """Two branches look at the same first answer: not both can ask."""
    first = await ask(run.chat(), "Which?")
    holds = first.kept

    async def where(*, is_kept: bool, times: int) -> None:
        if holds is is_kept:
            turn = first
            for number in range(times):
                turn = await ask(turn, f"{is_kept} {number}")

    await run.side_by_side(
        {"yes": where(is_kept=True, times=2), "no": where(is_kept=False, times=3)}
    )


def number(output: ModelOutput) -> int | Fault:
    """What a helper writes; the third letter is a refusal, the second is of no use."""
    faults = {"B": Fault("nothing", "is nothing"), "C": Fault("refused", "is refused")}
    return faults.get(output.completion.strip("() "), 1)


async def helped(run: Run, refusals: int) -> None:
    """A helper writes what is asked; without it nothing is, and another text is tried."""
    for attempt in range(2):
        turn, value = await run.chat(role="writer", resample=attempt).obtain(
            "Write.", number, lambda fault: f"Again: {fault.detail}", lambda reply: 1,
            tries=2, refusals=refusals, arm="writer",
        )  # fmt: skip
        if isinstance(value, Fault):
            await ask(run.chat(), "Which, without?", f"bare-{attempt}")
            if value.kind == "refused":
                return
            continue
        turn_with_text = await ask(run.chat(), f"Which? {turn.reply!s}", f"put-{attempt}")
        if not turn_with_text.kept:
            return


async def alike_at_first(run: Run) -> None:
    """Branches that are alike where answers are kept, and no others."""
    first = await ask(run.chat(), "Which?")

    async def mend(name: str, times: int) -> None:
        if first.answer == run.question.gold:
            return
        turn = first
        for number in range(times):
            turn = await ask(turn, f"{name} {number}")

    await run.side_by_side({name: mend(name, times) for times, name in enumerate("abcd")})


async def equal_branches(run: Run) -> None:
    """Branches that ask the same of one turn, where its answer is right."""
    first = await ask(run.chat(), "Which?")

    async def push(name: str) -> None:
        if first.kept:
            await ask(await ask(first, "Sure?", "sure"), name, name)

    await run.side_by_side({name: push(name) for name in "ab"})


async def generated(run: Run) -> None:
    """The model under test writes what it is asked."""
    chat = run.chat(purpose="context")
    turn, value = await chat.obtain(
        "Write.", number, lambda fault: "Again.", lambda reply: 1, tries=3, arm="x"
    )
    for count in range(4 if isinstance(value, int) else 1):
        await ask(turn, f"{count}?", str(count))


# --- bounds, beside every way that the answers can come out ---

READABLE, ALL_REPLIES = ("(A)", "(B)"), ("(A)", "(B)", "Hm.")
"""Replies that a protocol may get; to a helper they are ``number``'s."""


def outcomes(
    method: Method, replies: tuple[str, ...], helper_replies: tuple[str, ...] = ()
) -> Iterator[dict[str, int]]:
    """Requests by role, for every script of replies, by brute force."""
    scripts: list[tuple[int, ...]] = [()]
    models = []  # no two models may share a place in memory, and with it their generations
    while scripts:
        script = scripts.pop()
        left, missing = list(script), list[int]()

        def reply(of: tuple[str, ...], _: object) -> str:
            if not left:  # noqa: B023
                missing.append(len(of))  # noqa: B023
                return "(A)"
            return of[left.pop(0)]  # noqa: B023

        model, writer = Scripted(partial(reply, replies)), Scripted(partial(reply, helper_replies))
        models += [model, writer]
        live = Live(model.model, lambda role, by=writer.model: by if helper_replies else None)  # type: ignore[misc]
        asyncio.run(_finish(method, Run(QUESTION, live)))
        if missing:
            scripts += [(*script, item) for item in range(missing[0])]
        else:
            yield {TESTED_ARM: len(model.asked), "writer": len(writer.asked)}


async def _finish(method: Method, run: Run) -> None:
    await method(run)


@pytest.mark.parametrize(
    ("method", "replies", "bounds"),
    [
        (straight, READABLE, (2, 2)),
        (until_left, READABLE, (1, 5)),
        (by_answer, ALL_REPLIES, (1, 3)),
        (two_branches, READABLE, (3, 9)),
        (joint_decision, READABLE, (3, 4)),
        (alike_at_first, ALL_REPLIES, (1, 7)),
        (equal_branches, READABLE, (1, 4)),
        (generated, ("(A)", "(B)"), (4, 7)),
    ],
)
@pytest.mark.rest_slow
def test_bounds_match_all_scripts_of_answers(
    method: Method, replies: tuple[str, ...], bounds: tuple[int, int]
) -> None:
    plan = planned(method)
    call_counts = {counts[TESTED_ARM] for counts in outcomes(method, replies)}
    assert (
        (plan.fewest_calls[TESTED_ARM], plan.most_calls[TESTED_ARM])
        == (min(call_counts), max(call_counts))
        == bounds
    )


@pytest.mark.parametrize("refusals", [1, 2])
@pytest.mark.rest_slow
def test_bounds_hold_for_a_helper_too(refusals: int) -> None:
    method = partial(helped, refusals=refusals)
    plan = planned(method, "writer")
    script_counts = list(outcomes(method, READABLE, ("(A)", "(B)", "(C)")))
    for role in (TESTED_ARM, "writer"):
        counts = {item[role] for item in script_counts}
        assert (plan.fewest_calls[role], plan.most_calls[role]) == (min(counts), max(counts)), role


def test_branches_reading_an_answer_may_widen_the_bounds() -> None:
    async def method(run: Run) -> None:
        first = await ask(run.chat(), "Which?")

        async def where(prompt: str, *, is_kept: bool) -> None:
            if first.kept is is_kept:
                await ask(first, prompt)

        await run.side_by_side({"a": where("a", is_kept=True), "b": where("b", is_kept=False)})

    plan = planned(method)
    assert {counts[TESTED_ARM] for counts in outcomes(method, READABLE)} == {2}
    assert plan.fewest_calls[TESTED_ARM] <= 2 <= plan.most_calls[TESTED_ARM]


# --- what a reply may not be used for ---


@pytest.mark.parametrize(
    "look",
    [
        lambda reply: "A" in reply,
        lambda reply: reply == "(A)",
        lambda reply: reply > "(A)",
        bool,
        len,
        list,
        lambda reply: reply[0],
        lambda reply: reply.strip(),
    ],
)
def test_deciding_by_the_text_of_a_reply_is_refused(
    look: Callable[[str], Any],
) -> None:
    async def method(run: Run) -> None:
        turn = await ask(run.chat(), "Which?")
        if look(turn.reply):
            await ask(turn, "Sure?")

    with pytest.raises(TypeError, match=r"only by turn.answer, turn.kept or turn.obtain,"):
        planned(method)


def test_a_reply_can_be_quoted_later() -> None:
    async def method(run: Run) -> None:
        turn = await ask(run.chat(), "Which?")
        await ask(run.chat(), f"You said: {turn.reply!s}. Sure?", "quoted")

    assert planned(method).most_calls == {TESTED_ARM: 2}


def test_other_readings_take_the_declared_value() -> None:
    async def method(run: Run) -> None:
        turn = await ask(run.chat(), "Which?")
        observations.append(turn.observe(lambda output: "live", "dry"))
        observations.append(await run.chat(role="judge").consult("How?", str, "dry too"))

    observations: list[str] = []
    assert planned(method, "judge").most_calls == {TESTED_ARM: 1, "judge": 1}
    assert observations == ["dry", "dry too"]


def test_a_protocol_waiting_for_something_else_is_refused() -> None:
    async def method(run: Run) -> None:
        await asyncio.sleep(0)

    with pytest.raises(RuntimeError, match="may wait only for its own requests"):
        planned(method)


def test_a_protocol_with_too_many_paths_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    async def method(run: Run) -> None:
        turn = await ask(run.chat(), "Which?")
        for number in range(9):
            turn = await ask(turn, f"{number} {turn.kept}?")

    monkeypatch.setattr("holdfast.protocols.dry_run.MOST_SCRIPTS", 100)
    with pytest.raises(RuntimeError, match="too many branches"):
        planned(method)


# --- paths, and what cannot be asked ---


def test_every_possible_path_is_planned() -> None:
    assert planned(straight).paths == (("x", ""), ("x", "sure"), ("x", "again"))
    assert set(planned(by_answer).paths) == {
        ("x", ""), ("x", "name"), ("x", "name>sure"),
    }  # fmt: skip
    assert planned(until_left).paths[-1] == ("x", "0>1>2>3")


def test_only_requests_of_an_arm_are_paths() -> None:
    async def method(run: Run) -> None:
        await (await run.chat().ask("First.")).ask("Then.", arm="x")
        await run.chat(role="judge").ask("How?", arm="judge")
        run.skip("context", "no context")

    plan = planned(method, "judge")
    assert plan.paths == (("x", ""),)
    assert plan.most_calls == {TESTED_ARM: 2, "judge": 1}
    assert plan.skipped_paths == {"context": "no context"}


@pytest.mark.parametrize(("method", "goes_on"), [(straight, True), (None, False)])
def test_requests_after_an_answer_are_recognised(method: Method | None, *, goes_on: bool) -> None:
    async def once(run: Run) -> None:
        await ask(run.chat(), "Which?")

    assert planned(method or once).goes_on is goes_on


# --- what is the same request ---


def study(method: Callable[[Run, QuestionSettings], Awaitable[None]], **settings: Any) -> Study:
    return Protocol("x", method, QuestionSettings, version=1).study(**settings)


async def plain(run: Run, settings: QuestionSettings) -> None:
    first = await ask(run.chat(), run.question.stem)
    await ask(first, "Sure?", "sure")


async def pushed(run: Run, settings: QuestionSettings) -> None:
    first = await ask(run.chat(), run.question.stem)
    await ask(first, "Really?", "really")


def test_studies_of_a_command_share_equal_requests() -> None:
    plans = [study(method).plan(5) for method in (plain, pushed, pushed)]
    calls = [plan.tested(plans[:place], 1) for place, plan in enumerate(plans)]
    assert [(count.fewest_calls, count.most_calls) for count in calls] == [(10, 10), (5, 5), (0, 0)]


@pytest.mark.parametrize(
    ("opening", "requests"),
    [
        ({}, 1),
        ({"system": "Be exact."}, 2),
        ({"seed": 7}, 2),
        ({"resample": 1}, 2),
        ({"examples": (("1 + 1?", "2"),)}, 2),
        ({"replicate": 2}, 2),
        ({"purpose": "context"}, 1),
    ],
    ids=str,
)
def test_requests_are_distinguished_by_their_settings(
    opening: dict[str, Any], requests: int
) -> None:
    async def method(run: Run) -> None:
        await ask(run.chat(), "Which?")
        await ask(run.chat(**opening), "Which?")

    assert planned(method).most_calls[TESTED_ARM] == requests
    call_counts = {counts[TESTED_ARM] for counts in outcomes(method, ("(A)",))}
    assert call_counts == {requests}


def test_a_request_of_all_epochs_counts_once() -> None:
    async def method(run: Run, settings: QuestionSettings) -> None:
        await ask(run.chat(), "Which?")
        await ask(run.chat(replicate=1), "What is shared?")

    for epochs, calls in ((1, 2), (3, 3 + 1)):
        plan = study(method).with_args().protocol.study(epochs=epochs).plan(1)
        count = plan.counts[TESTED_ARM]
        assert (count.fewest_calls, count.most_calls >= calls) == (calls, True)


# --- the plan is the run ---


def answered(
    messages: list[ChatMessage], _: object, __: object, config: GenerateConfig
) -> ModelOutput:
    """Any answer, drawn by what is asked, with a probability of each letter; or none."""
    rng = random.Random(repr((config.seed, [message.text for message in messages])))
    last, letter = messages[-1].text, rng.choice("AAABCD")
    if '"warranted"' in last:
        text = rng.choice(['{"warranted": true}', '{"warranted": false}', "Hm."])
    elif '"verdict"' in last:
        verdict = rng.choice(["supported", "contradicted", "unclear"])
        text = f'{{"verdict": "{verdict}", "option": "{letter}"}}'
    else:
        text = rng.choice([f"Final Answer: ({letter})"] * 6 + ["Hm."])
    output = ModelOutput.from_content("scripted", text)
    at = len(text) - 2
    tops = [TopLogprob(token=item, logprob=-rng.random()) for item in "ABCD"]
    output.choices[0].logprobs = Logprobs(content=[
        Logprob(token=text[:at], logprob=0.0, top_logprobs=[]),
        Logprob(token=text[at : at + 1], logprob=-0.1, top_logprobs=tops),
        Logprob(token=text[at + 1 :], logprob=0.0, top_logprobs=[]),
    ])  # fmt: skip
    output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
    return output


def counting(role: str, calls: Counter[str]) -> Model:
    def respond(*arguments: Any) -> ModelOutput:
        calls[role] += 1
        return answered(*arguments)

    return get_model(f"mockllm/{role}", custom_outputs=respond, memoize=False)


def made(*studies: Study, roles: frozenset[str]) -> Counter[str]:
    """Calls by role that studies make of all their questions in all their epochs."""
    calls: Counter[str] = Counter()
    models = {role: counting(role, calls) for role in (TESTED_ARM, *roles)}

    async def each() -> None:
        for study in studies:
            for question in study.questions.questions:
                for epoch in range(1, study.epochs + 1):
                    live = DefendedLive(models[TESTED_ARM], models.get, defence=study.defence)
                    await study.method(Run(question, live, epoch, study.epochs))

    with tempfile.TemporaryDirectory() as folder, keeping(Path(folder)):
        asyncio.run(each())
    return calls


SETTINGS: dict[str, st.SearchStrategy[dict[str, Any]]] = {
    "followup": st.fixed_dictionaries(
        {
            "contexts": st.sampled_from(["none", "synthetic"]),
            "techniques": st.sampled_from(["none", "inc_letter", "rethink,context", "all"]),
            "chains": st.sampled_from(
                ["none", "authority-prior>rag-style", "double-check>authority-prior>double-check"]
            ),
            "suggest": st.sampled_from(["per-question", "per-technique", "not-own"]),
            "lengths": st.sampled_from(["none", "1,4"]),
            "controls": st.booleans(),
            "corrections": st.booleans(),
        }
    ),
    "single-turn": st.fixed_dictionaries(
        {
            "biases": st.sampled_from(["none", "recency", "all"]),
            "mitigations": st.sampled_from(["none", "education,one-shot"]),
            "suggest": st.sampled_from(["per-question", "per-technique"]),
            "controls": st.booleans(),
        }
    ),
    "stick-or-switch": st.fixed_dictionaries(
        {
            "shots": st.sampled_from([0, 2]),
            "exemplar_answers": st.sampled_from(["paper", "balanced"]),
            "beliefs": st.booleans(),
            "controls": st.booleans(),
        }
    ),
}
DEFENCES = (NO_DEFENCE, *bundled(), ABSTAIN, f"vote+{ABSTAIN}")
OF_EACH_KIND = {NO_DEFENCE, "label", "verify", "quarantine", f"vote+{ABSTAIN}"}


@pytest.mark.rest_slow
@pytest.mark.parametrize(
    "defence",
    [
        pytest.param(name, marks=[] if name in OF_EACH_KIND else [pytest.mark.slow])
        for name in DEFENCES
    ],
)
def test_calls_of_a_run_stay_within_its_plan(defence: str, tmp_path: Path) -> None:
    @seed(DEFENCES.index(defence))
    @settings(max_examples=5, database=None)
    @given(
        st.sampled_from(sorted(SETTINGS)).flatmap(
            lambda name: st.tuples(st.just(name), SETTINGS[name])
        ),
        st.integers(1, 3),
        st.integers(2, 5),
        st.sets(st.sampled_from(["judge"])),
    )
    def hold(of: tuple[str, dict[str, Any]], epochs: int, options: int, roles: set[str]) -> None:
        name, values = of
        source = write_jsonl(tmp_path / f"{options}.jsonl", question_rows(2, options))
        study = PROTOCOLS[name].study(questions=source, epochs=epochs, defence=defence, **values)
        bound = frozenset({*roles, "verifier"})
        calls, plan = made(study, roles=bound), study.plan(None, bound)
        for role in (TESTED_ARM, *bound):
            count = plan.counts.get(role, CallCount())
            assert count.fewest_calls <= calls[role] <= count.most_calls, role

    hold()


@pytest.mark.parametrize(("first", "second"), [("rederive", "verify"), *pairwise(DEFENCES)])
@pytest.mark.rest_slow
def test_calls_of_two_studies_stay_within_their_plan(
    first: str, second: str, tmp_path: Path
) -> None:
    source = write_jsonl(tmp_path / "q.jsonl", question_rows(1))
    settings: dict[str, Any] = {
        "questions": source, "techniques": "authority-prior,double-check", "corrections": True,
        "chains": "double-check>authority-prior",
    }  # fmt: skip
    studies = [PROTOCOLS["followup"].study(defence=name, **settings) for name in (first, second)]
    roles = frozenset({"verifier"})
    plans = [study.plan(None, roles) for study in studies]
    counts = [plan.tested(plans[:place], 1) for place, plan in enumerate(plans)]
    calls = made(*studies, roles=roles)[TESTED_ARM]
    fewest = sum(count.fewest_calls for count in counts)
    assert fewest <= calls <= sum(count.most_calls for count in counts)
