"""Asking without a turn, branches over another question, variants, and other readers."""

from typing import Any

import pytest
from inspect_ai.model import ModelOutput
from tests.scripted import Scripted, said

from holdfast.dialogue.conversation import Run, Turn
from holdfast.dialogue.live_run import GenerationFailedError, Live
from holdfast.dialogue.turn import Intervention
from holdfast.questions.question import Question
from holdfast.reading.answers import first_character
from holdfast.reading.extraction import Extraction, Fault

QUESTION = Question(id="q", stem="Which?", options={"A": "one", "B": "two"}, gold="A")
VARIANT = Question(id="q", stem="Which now?", options={"A": "one", "B": "three"}, gold="A")


def begin(script: Scripted, **opening: Any) -> Turn:
    """A conversation of a run of its own."""
    return Run(QUESTION, Live(script.model)).chat(**opening)


async def test_requests_without_an_arm_are_not_turns() -> None:
    script = Scripted(lambda messages: f"reply {len(messages)}")
    chat = begin(script, system="System.")
    first = await chat.ask("first")
    assert first.reply == "reply 2"
    assert chat.run.ordered == []
    turn = await first.ask("second", arm="baseline")
    assert [message.text for message in script.asked[1]] == [
        "System.", "first", "reply 2", "second",
    ]  # fmt: skip
    assert chat.run.ordered == [turn]
    assert turn.number == 1


async def test_a_failed_request_leaves_the_conversation_unchanged() -> None:
    def second_fails(messages: list[Any]) -> str:
        if messages[-1].text == "bad":
            raise OSError("no route")
        return "fine"

    good = await begin(Scripted(second_fails)).ask("good")
    with pytest.raises(GenerationFailedError) as caught:
        await good.ask("bad")
    assert caught.value.kind == "OSError"
    assert [message.text for message in good.messages] == ["good", "fine"]
    turn = await good.ask("good again", arm="baseline")
    assert turn.number == 1
    assert [message.text for message in turn.messages] == ["good", "fine", "good again", "fine"]


async def test_the_history_enters_the_key_of_a_turn() -> None:
    script = Scripted(lambda messages: "one" if messages[0].text == "x" else "two")
    keys = set()
    for opening in ("x", "y", "x"):
        turn = await begin(script).ask(opening)
        keys.add((await turn.ask("same", arm="baseline")).key)
    assert len(keys) == 2


async def test_a_changed_question_holds_for_later_turns() -> None:
    script = Scripted(lambda _: "The answer is three.")
    root = begin(script)
    plain = await root.ask("Which?", arm="baseline")
    changed_turn = await root.ask(
        "Now?", arm="x", step=Intervention("wrong-option"), question=VARIANT
    )
    below = await changed_turn.ask("Deeper?", arm="x", step=Intervention("b"))
    assert (plain.answer, changed_turn.answer, below.answer) == (None, "B", "B")
    assert (root.question, below.question) == (QUESTION, VARIANT)
    assert [turn.record().get("options") for turn in (plain, changed_turn)] == [
        None,
        ["one", "three"],
    ]
    assert [truth and truth.question for truth in script.truths] == [QUESTION, VARIANT, VARIANT]
    # what a simulated model knows follows the question that it began with
    assert [truth and truth.origin for truth in script.truths] == [QUESTION.content_hash] * 3


async def test_a_turn_takes_no_step_or_several_at_once() -> None:
    root = begin(Scripted(lambda _: "(A)"))
    steps = [Intervention("education", "mitigation"), Intervention("recency", "bias")]
    turn = await root.ask("?", arm="x", step=steps)
    record = turn.record()
    assert (record["path"], record["technique"], record["turn"]) == (
        "education>recency", "recency", 0,
    )  # fmt: skip
    assert (await turn.ask("!", arm="x")).record()["path"] == "education>recency"
    assert root.interventions == ()


async def test_a_variant_distinguishes_paths_of_a_technique() -> None:
    short = Intervention("rag-style", "context", "indirect", "deep", "B", "1")
    assert short.step == "rag-style@1"
    assert Intervention("rag-style").step == "rag-style"
    script = Scripted(lambda _: "(A)")
    turn = await begin(script).ask("?", arm="length", step=short)
    record = turn.record()
    assert (record["path"], record["technique"]) == ("rag-style@1", "rag-style")
    assert (record["family"], record["suggested"]) == ("context", "B")
    second = await turn.ask("!", arm="x", step=Intervention("double-check"))
    assert second.record()["path"] == "rag-style@1>double-check"
    truth = script.truths[1]
    assert truth is not None
    assert truth.path == ("rag-style@1", "double-check")
    assert truth.techniques == ("rag-style", "double-check")


async def test_notes_are_recorded_turn_by_turn() -> None:
    chat, notes = begin(Scripted(lambda _: "(A)")), {"mutation": 3}
    first = await chat.ask("1", arm="x", notes=notes)
    second = await chat.ask("2", arm="x")
    first.notes.update(cue=True, stance="defer")
    assert first.record()["mutation"] == 3
    assert notes == {"mutation": 3}
    assert first.record()["cue"] is True
    assert first.record()["stance"] == "defer"
    assert second.notes == {}
    assert "cue" not in second.record()


async def test_another_reader_reads_the_answers_of_every_branch() -> None:
    script = Scripted(lambda _: "B is wrong, so the answer is A.")
    first = await begin(script, parse=first_character).ask("?", arm="baseline")
    second = await first.ask("?", arm="x", step=Intervention("x"))
    assert first.extraction == second.extraction == Extraction("B", "parsed", "first-character")


async def test_observers_and_consultants_read_the_reply() -> None:
    helper = Scripted(lambda _: "7", name="helper")
    script = Scripted(lambda _: "(A)")
    run = Run(QUESTION, Live(script.model, {"judge": helper.model}.get))
    turn = await run.chat().ask("Which?", arm="baseline")
    assert turn.observe(lambda output: output.completion, "") == "(A)"
    chat = run.chat(role="judge", replicate=1, purpose="judgement")
    assert await chat.consult(f"How sure is {turn.reply!s}?", int, 0, named=True) == 7
    assert helper.prompts == ["How sure is (A)?"]
    (truth,) = helper.truths
    assert truth is not None
    assert (truth.purpose, truth.given) == ("judgement", (("named", True),))
    assert run.ordered == [turn]


@pytest.mark.parametrize(
    ("replies", "tries", "refusals", "outcome"),
    [
        (["x", "4"], 4, 4, (4, ["How many?", "It is no number."])),
        (["x", "y", "z"], 3, 3, ("no-number", ["How many?"] + ["It is no number."] * 2)),
        (["no", "no", "4"], 4, 2, ("refused", ["How many?", "It is no."])),
    ],
)
async def test_a_helper_is_corrected_until_its_reply_is_usable(
    replies: list[str], tries: int, refusals: int, outcome: tuple[object, list[str]]
) -> None:
    helper = Scripted(lambda messages: replies[len(messages) // 2])

    def number(output: ModelOutput) -> int | Fault:
        if output.completion == "no":
            return Fault("refused", "is no")
        text = output.completion
        return int(text) if text.isdigit() else Fault("no-number", "is no number")

    run = Run(QUESTION, Live(Scripted(lambda _: "").model, lambda role: helper.model))
    turn, value = await run.chat(role="attacker").obtain(
        "How many?", number, lambda fault: f"It {fault.detail}.", lambda reply: 1,
        tries=tries, refusals=refusals, arm="attacker",
    )  # fmt: skip
    assert (value.kind if isinstance(value, Fault) else value) == outcome[0]
    assert helper.prompts == outcome[1]
    statuses = [turn.record()["status"] for turn in run.ordered]
    last = {"refused": "refused", "no-number": "none"}.get(str(outcome[0]), "parsed")
    assert statuses[-1] == last
    assert len(statuses) == len(outcome[1])
    assert turn is run.ordered[-1]


@pytest.mark.parametrize(
    ("stop_reason", "text", "readings"),
    [
        ("content_filter", "", [("refused", "content-filter")] * 2),
        ("max_tokens", "The patient", [("none", "cut-off")] * 2),
        ("max_tokens", "A. Final Answer: (B)",
         [("parsed", "final-answer"), ("parsed", "first-character")]),
    ],
)  # fmt: skip
async def test_every_parser_respects_the_stop_reason(
    stop_reason: Any, text: str, readings: list[tuple[str, str]]
) -> None:
    script = Scripted(lambda _: said(text, stop_reason))
    extractions = []
    for opening in ({}, {"parse": first_character}):
        turn = await begin(script, **opening).ask("?", arm="baseline")
        assert turn.extraction is not None
        extractions.append((turn.extraction.status, turn.extraction.rule))
    assert extractions == readings
