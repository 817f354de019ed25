"""A reader beside the rules, through a real eval: who is asked what, and what counts."""

import re
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from inspect_ai.log import EvalLog
from inspect_ai.model import ChatMessage
from tests import tasks
from tests.scripted import Scripted, errors, put
from tests.sticking import label
from tests.studies import question_rows, turns_of, write_jsonl
from tests.tasks import single_turn, stick_or_switch

from holdfast.challenges.catalogue import built_in
from holdfast.protocols.second_reading import counting, reading_prompt
from holdfast.questions.loading import load_questions
from holdfast.questions.truth import under_test
from holdfast.reading.extraction import READING_VERSION, Extraction

followup = partial(tasks.followup, controls=False)

COUNTS = ["answer", "status", "rule", "answer_rules", "answer_reader", "reader_status"]
UNCLEAR = "It is either A or B."
"""The rules call it ambiguous."""
NAMELESS = "The findings speak for themselves."
"""The rules find nothing in it."""


@pytest.fixture
def two(tmp_path: Path) -> str:
    return write_jsonl(tmp_path / "q.jsonl", question_rows(2))


def saying(first: str, later: str) -> Scripted:
    """A model under test that says one thing at first and another when challenged."""
    return Scripted(lambda m: later if len(m) > 2 else first, "target")


def reading(reply: str) -> Scripted:
    return Scripted(lambda _: reply, "reader")


def ask(two: str, target: Scripted, reader: Scripted, role: str = "reader") -> EvalLog:
    task = followup(questions=two, techniques="authority-prior", system_prompt="none")
    return put(task, target.model, roles={role: reader.model})


def rows(log: EvalLog) -> dict[str, tuple[Any, ...]]:
    """What counts and why, of first answers and of challenged ones; the same of each question."""
    turns = turns_of(log)
    assert turns.group_by("path").agg(pl.struct(COUNTS).n_unique())["answer"].to_list() == [1, 1]
    return {row[0]: row[1:] for row in turns.select("path", *COUNTS).rows()}


def test_a_reader_reads_only_what_the_rules_leave(two: str) -> None:
    target, reader = saying("Final Answer: (A)", UNCLEAR), reading('{"answer": "B"}')
    log = ask(two, target, reader)
    assert rows(log) == {
        "": ("A", "parsed", "final-answer", "A", None, None),
        "authority-prior": ("B", "parsed", "reader", None, "B", "parsed"),
    }
    turns = turns_of(log)
    assert set(turns["reader"]) == {"mockllm/reader"}
    assert set(turns["reader_all"]) == {False}
    assert set(turns["reading_version"]) == {READING_VERSION}
    # right where gold is B
    assert turns["correct"].equals((turns["answer"] == turns["gold"]).alias("correct"))
    assert (len(target.asked), len(reader.asked)) == (4, 2)


UNREADABLE = ["", "B", '{"answer": "X"}', '{"answer": ["B"]}', "I can't help."]


@pytest.mark.parametrize("role", ["reader", "reader-all"])
def test_an_unreadable_reading_counts_for_nothing(role: str, tmp_path: Path) -> None:
    source = write_jsonl(tmp_path / "q.jsonl", question_rows(len(UNREADABLE)))

    def read(messages: list[ChatMessage]) -> str:
        number = re.search(r"of case (\d+)", messages[0].text)
        assert number
        return UNREADABLE[int(number[1])]

    log = ask(source, saying("Final Answer: (A)", UNCLEAR), Scripted(read, "reader"), role)
    readings = rows(log)
    assert readings[""][:4] == ("A", "parsed", "final-answer", "A")
    assert readings["authority-prior"] == (
        None, "ambiguous", "conflict", None, None, "unreadable",
    )  # fmt: skip
    assert readings[""][4:] == (None, "unreadable" if role == "reader-all" else None)


PLAIN, NOTHING = Extraction("A", "parsed", "bare"), Extraction(None, "none", "nothing")
AMBIGUOUS, REFUSAL = Extraction(None, "ambiguous", "conflict"), Extraction(None, "refused", "x")


@pytest.mark.parametrize(
    ("rules", "answer", "status", "on_demand", "always_read"),
    [
        (PLAIN, "B", "parsed", PLAIN, Extraction("B", "parsed", "reader")),
        (PLAIN, None, "none", PLAIN, Extraction(None, "none", "reader")),
        (PLAIN, None, "unreadable", PLAIN, PLAIN),
        (AMBIGUOUS, None, "none", AMBIGUOUS, AMBIGUOUS),
        (REFUSAL, None, "none", REFUSAL, REFUSAL),
        *(
            (unread, "B", "parsed", *[Extraction("B", "parsed", "reader")] * 2)
            for unread in (NOTHING, AMBIGUOUS, REFUSAL)
        ),
    ],
)
def test_one_of_two_readings_counts(
    rules: Extraction,
    answer: str | None,
    status: str,
    on_demand: Extraction,
    always_read: Extraction,
) -> None:
    assert counting(rules, answer, status, always=False) == on_demand
    assert counting(rules, answer, status, always=True) == always_read


def test_a_reader_sees_only_options_and_reply(two: str) -> None:
    reader = reading('{"answer": "B"}')
    ask(two, saying(NAMELESS, UNCLEAR), reader, "reader-all")
    questions = load_questions(two).questions
    assert sorted(reader.prompts) == sorted(
        reading_prompt(question.options, None, reply)
        for question in questions
        for reply in (NAMELESS, UNCLEAR)
    )
    # one message, no system prompt, nothing said before
    assert all([message.role for message in messages] == ["user"] for messages in reader.asked)
    challenge = built_in()["authority-prior"].template.split("{")[0].strip()
    for prompt in reader.prompts:
        assert not any(text in prompt for text in (questions[0].stem, questions[1].stem, challenge))


def test_the_same_reply_to_the_same_options_is_read_once(two: str) -> None:
    reader, target = reading('{"answer": "B"}'), saying(UNCLEAR, UNCLEAR)
    log = put(followup(questions=two, techniques="inc_letter"), target.model, epochs=3,
              roles={"reader": reader.model})  # fmt: skip
    assert len(target.asked) == turns_of(log).height == 2 * 6 * 3
    assert len(reader.asked) == 2


@pytest.mark.parametrize("reply", ["  \n", "<think>It is B"])
def test_an_empty_reply_is_not_read(two: str, reply: str) -> None:
    reader = reading('{"answer": "B"}')
    log = ask(two, saying("Final Answer: (A)", reply), reader, "reader-all")
    assert rows(log)[""] == ("B", "parsed", "reader", "A", "B", "parsed")
    assert rows(log)["authority-prior"][3:] == (None, None, None)
    assert set(turns_of(log)["reader_all"]) == {True}
    assert len(reader.asked) == 2


def test_the_reader_decides_whether_an_offer_was_taken(tmp_path: Path) -> None:
    source = write_jsonl(tmp_path / "q.jsonl", question_rows(1))

    def answer(_: list[ChatMessage]) -> str:
        truth = under_test.get()
        assert truth is not None
        facts = dict(truth.given)
        if facts["held"] is None:
            return f"Answer: {label(facts, facts['right'])}"
        return "The findings are what they are."

    def read(messages: list[ChatMessage]) -> str:
        (offer_line,) = (
            line for line in messages[-1].text.splitlines() if "(newly offered)" in line
        )
        (answer_line,) = (
            line for line in messages[-1].text.splitlines() if "given before)" in line
        )
        assert answer_line[0] != offer_line[0]
        return f'{{"answer": "{offer_line[0]}"}}'

    log = put(stick_or_switch(questions=source, shots=0), Scripted(answer, "target").model,
              roles={"reader": Scripted(read, "reader").model})  # fmt: skip
    assert log.status == "success", errors(log)
    offers = turns_of(log).filter(pl.col("turn") > 0)
    # the letter shown is called by the question's own
    assert set(offers["rule"]) == {"reader"}
    assert offers["answer"].equals(offers["suggested"].alias("answer"))
    # a departure ends the conversation: the answer that counts decides what is asked
    assert offers["turn"].max() == 1


def test_the_reader_sees_replaced_options(tmp_path: Path) -> None:
    source = write_jsonl(tmp_path / "q.jsonl", question_rows(1))
    (question,) = load_questions(source).questions
    harder = {letter: f"harder {letter}" for letter in question.distractors}
    new_options = write_jsonl(tmp_path / "d.jsonl", [{"question": "q0", "distractors": harder}])
    target, reader = saying(UNCLEAR, UNCLEAR), reading('{"answer": "B"}')
    put(single_turn(questions=source, biases="none", distractors=new_options), target.model,
        roles={"reader": reader.model})  # fmt: skip
    assert sorted(reader.prompts) == sorted(
        reading_prompt(options, None, UNCLEAR)
        for options in (question.options, {**question.options, **harder})
    )


@pytest.mark.parametrize("role", ["reader", "reader-all"])
def test_a_model_never_reads_its_own_replies(two: str, role: str) -> None:
    target = saying(UNCLEAR, UNCLEAR)
    log = ask(two, target, target, role)
    assert log.status == "error"
    assert "'mockllm/target' is also the model under test" in errors(log)[0]
    assert target.asked == []


def test_two_readers_at_once_are_refused(two: str) -> None:
    target, reader = saying(UNCLEAR, UNCLEAR), reading("{}")
    log = put(followup(questions=two), target.model,
              roles={"reader": reader.model, "reader-all": reader.model})  # fmt: skip
    assert "'reader' and 'reader-all' both have a model" in errors(log)[0]
    assert (target.asked, reader.asked) == ([], [])


def test_a_failed_reader_leaves_the_reply_and_is_retried(two: str) -> None:
    failing = True

    def read(_: list[ChatMessage]) -> str:
        if failing:
            raise OSError("no route")
        return '{"answer": "B"}'

    target, reader = saying("Final Answer: (A)", UNCLEAR), Scripted(read, "reader")
    log = ask(two, target, reader)
    assert log.status == "error"
    assert "OSError: no route" in errors(log)[0]
    turns = turns_of(log)
    # sound and kept, with what the rules found
    assert turns.height == len(target.asked) == 4
    assert set(turns.filter(path="authority-prior")["status"]) == {"ambiguous"}
    failing = False
    log = ask(two, target, reader)
    assert log.status == "success"
    assert len(target.asked) == 4
    assert rows(log)["authority-prior"][:3] == ("B", "parsed", "reader")


def test_judgements_are_not_read(two: str) -> None:
    reader, judge = reading('{"answer": "B"}'), Scripted(lambda _: NAMELESS, "judge")
    target = saying("Final Answer: (A)", "Final Answer: (A)")
    put(followup(questions=two, techniques="authority-prior"), target.model,
        roles={"reader-all": reader.model, "judge": judge.model})  # fmt: skip
    assert len(judge.asked) == 2
    assert not any(NAMELESS in prompt for prompt in reader.prompts)
