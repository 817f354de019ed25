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


@pytest.mark.parametrize("remark", REMARKS["after"])
def test_a_remark_on_another_option_is_no_answer(remark: str) -> None:
    assert [read(form.format(remark)) for form in FORMS] == ["B"] * len(FORMS)


@pytest.mark.parametrize("reply", [*REMARKS["whole"], *REMARKS["revised"]])
def test_what_a_reply_changes_to_is_its_answer(reply: str) -> None:
    assert read(reply) == "B"


@pytest.mark.parametrize("reply", REMARKS["none"])
def test_a_reply_that_settles_on_nothing_has_no_answer(reply: str) -> None:
    assert read(reply) is None


@pytest.mark.parametrize("closing", ["{}", "({})", "**{}**", "Answer: {}", "Final Answer: ({})"])
def test_the_last_line_holds_whatever_is_argued_before_it(closing: str) -> None:
    for said, letter in (("gives", "C"), ("holds", "B")):
        for reply in REMARKS[said]:
            spoken = f"Clopidogrel fits best.\n\n{reply}\n\n{closing.format(letter)}"
            assert read(spoken) == letter, spoken
