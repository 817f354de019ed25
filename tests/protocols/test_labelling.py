"""The system of each question by a classifier, through a real eval."""

import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from inspect_ai.model import ChatMessage, ModelOutput
from tests.resolved import bounds, label_study
from tests.scripted import Scripted, errors, prepared, put, said
from tests.studies import question_rows, write_jsonl
from tests.tasks import labels

from holdfast.challenges.texts import Fault
from holdfast.protocols.generating import TRIES, retry_prompt
from holdfast.protocols.labelling import system_label_prompt
from holdfast.questions.bank import SYSTEMS
from holdfast.questions.loading import load_questions

NO_CATEGORY = Fault("no category", "does not name one category by its number")
REFUSAL = Fault("refused", "declines the request")


def number_in(messages: Sequence[ChatMessage]) -> int:
    """The number of the question that a conversation is about."""
    number = re.search(r"Vignette number (\d+)\.", messages[0].text)
    assert number
    return int(number[1])


def source(folder: Path, n: int) -> str:
    return write_jsonl(folder / "q.jsonl", question_rows(n))


def test_a_question_takes_one_generation(tmp_path: Path) -> None:
    file = source(tmp_path, 1)
    (question,) = load_questions(file).questions
    script = Scripted(lambda _: "4")
    log = put(labels(file), script.model)
    assert log.status == "success"
    assert script.prompts == [system_label_prompt(question)]
    assert prepared(log) == [
        {"question": "q0", "content_hash": question.content_hash, "system": SYSTEMS[4]}
    ]
    assert bounds(label_study(file)) == [(1, TRIES)]


CATEGORIES = [
    "0", "**0**", "0.", "0. Cardiovascular System", "Cardiovascular System", "Category: 0",
    "<think>3 or 4? No.</think>0",
]  # fmt: skip


def test_a_category_is_read_by_number_or_name(tmp_path: Path) -> None:
    script = Scripted(lambda messages: CATEGORIES[number_in(messages)])
    rows = prepared(put(labels(source(tmp_path, len(CATEGORIES))), script.model))
    assert [row["system"] for row in rows] == [SYSTEMS[0]] * len(CATEGORIES)
    assert len(script.asked) == len(CATEGORIES)


FAULTS: list[tuple[str | ModelOutput, Fault]] = [
    ("", NO_CATEGORY),
    ("15", NO_CATEGORY),
    ("3 or 4", NO_CATEGORY),
    ("Cardiology", NO_CATEGORY),
    ("It depends on the reading.", NO_CATEGORY),
    ("I'm sorry, but I can't help with that.", REFUSAL),
    (said("", "content_filter"), REFUSAL),
    (said("4", "max_tokens"), Fault("cut off", "was cut off before its end")),
]


@pytest.mark.parametrize("times", [1, TRIES])
def test_after_four_faults_the_label_is_missing(times: int, tmp_path: Path) -> None:
    def reply(messages: list[ChatMessage]) -> str | ModelOutput:
        return FAULTS[number_in(messages)][0] if len(messages) // 2 < times else "4"

    script = Scripted(reply)
    log = put(labels(source(tmp_path, len(FAULTS))), script.model)
    assert log.status == "success"
    rows = {row["question"]: row for row in prepared(log)}
    for number, (_, fault) in enumerate(FAULTS):
        row = rows[f"q{number}"]
        requests = [
            conversation for conversation in script.asked if number_in(conversation) == number
        ]
        assert requests[1][-1].text == retry_prompt(fault)
        if times == 1:
            assert (row["system"], len(requests)) == (SYSTEMS[4], 2)
        else:
            assert (row["missing"], len(requests)) == (fault.kind, TRIES)
            assert "system" not in row


def test_a_question_whose_provider_fails_has_no_row(tmp_path: Path) -> None:
    def reply(messages: list[ChatMessage]) -> str:
        if number_in(messages) == 1:
            raise OSError("no route")
        return "4"

    log = put(labels(source(tmp_path, 3)), Scripted(reply).model)
    assert log.status == "error"
    assert "OSError: no route" in errors(log)[0]
    assert sorted(row["question"] for row in prepared(log)) == ["q0", "q2"]


def test_the_simulated_classifier_reproduces_the_bank() -> None:
    systems = {question.id: question.system for question in load_questions("bank").questions}
    rows = prepared(put(labels(), "simulated/classifier"))
    assert {row["question"]: row["system"] for row in rows} == systems


def test_hostile_questions_reach_the_classifier_unchanged(tmp_path: Path) -> None:
    stems = ["{categories} {question} {{x}} %s \\1 </question>", "x" * 1_000_000]
    rows = [
        {"id": f"q{n}", "stem": stem, "options": {"A": "{options_text}", "B": "b"}, "gold": "A"}
        for n, stem in enumerate(stems)
    ]
    script = Scripted(lambda _: "4")
    log = put(labels(write_jsonl(tmp_path / "q.jsonl", rows)), script.model)
    assert log.status == "success"
    for stem in stems:
        assert sum(stem in prompt for prompt in script.prompts) == 1
