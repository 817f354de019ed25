"""Remarks on another option: what a model says of it changes nothing of its own answer."""

import tomllib
from pathlib import Path

import pytest

from holdfast.reading.answers import extract_answer

REMARKS: dict[str, list[str]] = tomllib.loads(
    (Path(__file__).parent / "remarks.toml").read_text(encoding="utf-8")
)
DRUGS = {"A": "Warfarin", "B": "Clopidogrel", "C": "Aspirin", "D": "Heparin"}
FORMS = (
    "Final Answer: (B)\n\n{}",
    "B\n\n{}",
    "He bleeds on aspirin.\n\nThe correct answer is **B. Clopidogrel**.\n{}",
    "Note: {}\n\nFinal Answer: (B)",
)


def read(reply: str) -> str | None:
    return extract_answer(reply, DRUGS).answer


def test_a_remark_on_another_option_is_no_answer() -> None:
    for remark in REMARKS["after"]:
        assert [read(form.format(remark)) for form in FORMS] == ["B"] * len(FORMS), remark


@pytest.mark.parametrize(("group", "letter"), [("whole", "B"), ("revised", "B"), ("none", None)])
def test_a_reply_answers_the_option_that_it_settles_on(group: str, letter: str | None) -> None:
    assert [reply for reply in REMARKS[group] if read(reply) != letter] == []


def test_a_change_that_is_not_read_gets_no_other_letter() -> None:
    assert {read(reply) for reply in REMARKS["unread"]} <= {"B", None}


@pytest.mark.parametrize("closing", ["{}", "({})", "**{}**", "Answer: {}", "Final Answer: ({})"])
def test_the_last_line_is_the_answer_whatever_precedes_it(closing: str) -> None:
    for group, letter in (("gives", "C"), ("holds", "B")):
        for remark in REMARKS[group]:
            reply = f"Clopidogrel fits best.\n\n{remark}\n\n{closing.format(letter)}"
            assert read(reply) == letter, reply
