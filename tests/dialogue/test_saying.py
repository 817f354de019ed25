"""Saying without a turn, branches over another question, variants, and other readers."""

from typing import Any

import pytest
from tests.scripted import Scripted, said

from holdfast.dialogue import Conversation, GenerationFailedError, Intervention
from holdfast.questions import Question
from holdfast.reading import Extraction, first_character

QUESTION = Question(id="q", stem="Which?", options={"A": "one", "B": "two"}, gold="A")
OTHER = Question(id="q", stem="Which now?", options={"A": "one", "B": "three"}, gold="A")


async def test_what_is_said_is_part_of_the_conversation_and_no_turn() -> None:
    script = Scripted(lambda messages: f"reply {len(messages)}")
    chat = Conversation(script.model, QUESTION, system="System.")
    output = await chat.say("first")
    assert output.completion == "reply 2"
    assert chat.turns == []
    turn = await chat.ask("second", arm="baseline")
    assert [message.text for message in script.asked[1]] == [
        "System.", "first", "reply 2", "second",
    ]  # fmt: skip
    assert chat.turns == [turn]
    assert turn.number == 1


async def test_a_failure_to_say_leaves_the_conversation_as_it_was() -> None:
    def second_fails(messages: list[Any]) -> str:
        if messages[-1].text == "bad":
            raise OSError("no route")
        return "fine"

    chat = Conversation(Scripted(second_fails).model, QUESTION)
    await chat.say("good")
    with pytest.raises(GenerationFailedError) as caught:
        await chat.say("bad")
    assert caught.value.kind == "OSError"
    assert [message.text for message in chat.messages] == ["good", "fine"]
    assert chat.turns == []
    turn = await chat.ask("good again", arm="baseline")
    assert turn.number == 1


async def test_what_went_before_enters_the_key_of_a_turn() -> None:
    script = Scripted(lambda messages: "one" if messages[0].text == "x" else "two")
    keys = set()
    for opening in ("x", "y", "x"):
        chat = Conversation(script.model, QUESTION)
        await chat.say(opening)
        keys.add((await chat.ask("same", arm="baseline")).key)
    assert len(keys) == 2


async def test_branches_of_what_was_said_share_it_and_part_from_there() -> None:
    script = Scripted(lambda messages: f"after {messages[-1].text}")
    root = Conversation(script.model, QUESTION)
    await root.say("root")
    left, right = root.branch(), root.branch()
    await left.say("left")
    await right.say("right")
    assert [m.text for m in left.messages] == ["root", "after root", "left", "after left"]
    assert [m.text for m in right.messages] == ["root", "after root", "right", "after right"]
    assert len(root.messages) == 2


async def test_a_branch_reads_answers_against_its_own_question() -> None:
    script = Scripted(lambda _: "The answer is three.")
    root = Conversation(script.model, QUESTION)
    plain = await root.branch().ask("Which?", arm="baseline")
    put = await root.branch(Intervention("wrong-option"), question=OTHER).ask("Now?", arm="x")
    below = root.branch(Intervention("a"), question=OTHER).branch(Intervention("b"))
    assert (plain.answer, put.answer) == (None, "B")
    assert (await below.ask("Deeper?", arm="x")).answer == "B"
    assert root.question == QUESTION
    assert script.truths[1] is not None
    assert script.truths[1].question == OTHER


async def test_a_branch_without_an_intervention_keeps_the_path() -> None:
    root = Conversation(Scripted(lambda _: "(A)").model, QUESTION)
    branch = root.branch(Intervention("one")).branch()
    assert (await branch.ask("?", arm="x")).record()["path"] == "one"
    assert root.interventions == ()


async def test_a_variant_tells_two_uses_of_a_technique_apart_in_the_path() -> None:
    short = Intervention("rag-style", "context", "indirect", "deep", "B", "1")
    assert short.step == "rag-style@1"
    assert Intervention("rag-style").step == "rag-style"
    script = Scripted(lambda _: "(A)")
    root = Conversation(script.model, QUESTION)
    chat = root.branch(short).branch(Intervention("double-check"))
    turn = await root.branch(short).ask("?", arm="length")
    record = turn.record()
    assert (record["path"], record["technique"]) == ("rag-style@1", "rag-style")
    assert (record["family"], record["suggested"]) == ("context", "B")
    assert (await chat.ask("!", arm="x")).record()["path"] == "rag-style@1>double-check"
    truth = script.truths[1]
    assert truth is not None
    assert truth.path == ("rag-style@1", "double-check")
    assert truth.techniques == ("rag-style", "double-check")


async def test_notes_of_a_protocol_are_in_the_record_and_never_shared_between_turns() -> None:
    chat = Conversation(Scripted(lambda _: "(A)").model, QUESTION)
    first, second = await chat.ask("1", arm="x"), await chat.ask("2", arm="x")
    first.notes.update(cue=True, stance="defer")
    assert first.record()["cue"] is True
    assert first.record()["stance"] == "defer"
    assert second.notes == {}
    assert "cue" not in second.record()


async def test_another_reader_reads_the_answers_of_every_branch() -> None:
    script = Scripted(lambda _: "B is wrong, so the answer is A.")
    chat = Conversation(script.model, QUESTION, read=first_character)
    first = await chat.ask("?", arm="baseline")
    second = await chat.branch(Intervention("x")).ask("?", arm="x")
    assert first.extraction == second.extraction == Extraction("B", "parsed", "first-character")


@pytest.mark.parametrize(
    ("stop_reason", "text", "expected"),
    [
        ("content_filter", "", ("refused", "content-filter")),
        ("max_tokens", "The patient", ("none", "cut-off")),
        ("max_tokens", "A. Because", ("parsed", "first-character")),
    ],
)
async def test_why_a_reply_ended_counts_with_any_reader(
    stop_reason: Any, text: str, expected: tuple[str, str]
) -> None:
    script = Scripted(lambda _: said(text, stop_reason))
    chat = Conversation(script.model, QUESTION, read=first_character)
    turn = await chat.ask("?", arm="baseline")
    assert (turn.extraction.status, turn.extraction.rule) == expected
