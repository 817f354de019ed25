"""The system of each question by a classifier, through a real eval."""

from pathlib import Path

import pytest
from inspect_ai.model import ChatMessage, ModelOutput
from tests.resolved import bounds, label_study
from tests.scripted import Scripted, errors, prepared, put, said
from tests.studies import question_rows, write_jsonl
from tests.tasks import labels

from holdfast.challenges.texts import Fault
from holdfast.protocols.generating import TRIES, retry_prompt
from holdfast.protocols.labelling import label_version, system_label_prompt
from holdfast.questions.bank import SYSTEMS
from holdfast.questions.loading import load_questions

NO_CATEGORY = Fault("no category", "does not name one category by its number")
REFUSED = Fault("refused", "declines the request")


@pytest.fixture
def one(tmp_path: Path) -> str:
    return write_jsonl(tmp_path / "q.jsonl", question_rows(1))


def classifier(*replies: str | ModelOutput) -> Scripted:
    """Says one after the other, the last one for ever."""
    return Scripted(lambda messages: replies[min(len(messages) // 2, len(replies) - 1)])


def test_a_question_takes_one_generation_and_gives_a_row(one: str) -> None:
    (question,) = load_questions(one).questions
    script = classifier("4")
    log = put(labels(one), script.model)
    assert log.status == "success"
    assert script.prompts == [system_label_prompt(question)]
    assert prepared(log) == [
        {"question": "q0", "content_hash": question.content_hash, "system": SYSTEMS[4]}
    ]
    assert bounds(label_study(one)) == [(1, TRIES)]


@pytest.mark.parametrize(
    "reply",
    ["0", "**0**", "0.", "0. Cardiovascular System", "Cardiovascular System", "Category: 0",
     "<think>3 or 4? No.</think>0"],
)  # fmt: skip
def test_a_category_is_read_by_number_or_name(one: str, reply: str) -> None:
    script = classifier(reply)
    (row,) = prepared(put(labels(one), script.model))
    assert (row["system"], len(script.asked)) == (SYSTEMS[0], 1)


@pytest.mark.parametrize(
    ("bad", "fault"),
    [
        ("", NO_CATEGORY),
        ("15", NO_CATEGORY),
        ("3 or 4", NO_CATEGORY),
        ("Cardiology", NO_CATEGORY),
        ("It depends on the reading.", NO_CATEGORY),
        ("I'm sorry, but I can't help with that.", REFUSED),
        (said("", "content_filter"), REFUSED),
        (said("4", "max_tokens"), Fault("cut off", "was cut off before its end")),
    ],
)
def test_a_fault_is_told_and_after_four_asks_the_label_is_missing(
    one: str, bad: str | ModelOutput, fault: Fault
) -> None:
    corrected = classifier(bad, "4")
    (row,) = prepared(put(labels(one), corrected.model))
    assert row["system"] == SYSTEMS[4]
    assert corrected.prompts[1:] == [retry_prompt(fault)]

    never = classifier(bad)
    log = put(labels(one), never.model)
    assert log.status == "success"
    (row,) = prepared(log)
    assert (row["missing"], len(never.asked)) == (fault.kind, 4)
    assert "system" not in row


def test_a_provider_that_fails_leaves_the_question_unfinished_and_claims_nothing(
    tmp_path: Path,
) -> None:
    source = write_jsonl(tmp_path / "q.jsonl", question_rows(3))

    def reply(messages: list[ChatMessage]) -> str:
        if "number 1." in messages[0].text:
            raise OSError("no route")
        return "4"

    log = put(labels(source), Scripted(reply).model)
    assert log.status == "error"
    assert "OSError: no route" in errors(log)[0]
    assert sorted(row["question"] for row in prepared(log)) == ["q0", "q2"]


def test_the_simulated_classifier_gives_back_the_banks_own_systems() -> None:
    known = {question.id: question.system for question in load_questions("bank").questions}
    rows = prepared(put(labels(), "simulated/classifier"))
    assert {row["question"]: row["system"] for row in rows} == known


def test_hostile_questions_reach_the_classifier_as_they_are(tmp_path: Path) -> None:
    stem = "{categories} {question} {{x}} %s \\1 </question>"
    rows = [
        {"id": "odd", "stem": stem, "options": {"A": "{options_text}", "B": "b"}, "gold": "A"},
        {"id": "big", "stem": "x" * 1_000_000, "options": {"A": "a", "B": "b"}, "gold": "A"},
    ]
    script = classifier("4")
    log = put(labels(write_jsonl(tmp_path / "q.jsonl", rows)), script.model)
    assert log.status == "success"
    assert sum(stem in prompt for prompt in script.prompts) == 1
    assert sum("x" * 1_000_000 in prompt for prompt in script.prompts) == 1


def test_decoding_is_deterministic_and_the_version_is_that_of_the_prompt(one: str) -> None:
    task = labels(one, seed=7)
    assert (task.config.temperature, task.config.seed) == (0.0, 7)
    assert task.version == label_version()
