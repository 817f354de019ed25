"""Asking for the system of a question, and reading the reply."""

import pytest

from holdfast.challenges.texts import Fault
from holdfast.protocols.labelling import read_system, system_label_prompt
from holdfast.questions.bank import SYSTEMS
from holdfast.questions.loading import load_questions
from holdfast.questions.question import Question


@pytest.mark.parametrize(("number", "system"), list(enumerate(SYSTEMS)))
def test_a_system_is_read_by_its_number_and_by_its_name(number: int, system: str) -> None:
    for reply in (
        f"{number}",
        f" {number}.\n",
        f"**{number}**",
        f"Category {number}",
        f"({number})",
    ):
        assert read_system(reply) == system
    for reply in (system, system.upper(), f"It belongs to {system}.", f"{number}. {system}"):
        assert read_system(reply) == system


@pytest.mark.parametrize(
    "reply",
    ["", "I cannot say.", "15", "99", "3 or 4", "100", "3.5", "Cardiology",
     "Cardiovascular System or Respiratory System", "²", "{}", "None of these"],
)  # fmt: skip
def test_a_reply_without_a_single_system_is_a_fault(reply: str) -> None:
    fault = read_system(reply)
    assert isinstance(fault, Fault)
    assert fault.kind == "no category"


def test_a_name_outweighs_unrelated_numbers() -> None:
    assert read_system("At 45 years, with 3 of 5 signs: Renal/Urinary System") == SYSTEMS[3]


@pytest.mark.parametrize("reply", ["3. Cardiovascular System", "-1"])
def test_conflicting_number_and_name_give_no_system(reply: str) -> None:
    assert isinstance(read_system(reply), Fault)


def test_the_prompt_numbers_the_fifteen_systems_and_shows_the_question() -> None:
    question = load_questions("bank").questions[0]
    prompt = system_label_prompt(question)
    for number, system in enumerate(SYSTEMS):
        assert f"\n{number}. {system}\n" in prompt
    assert question.stem in prompt
    for letter, option in question.options.items():
        assert f"\n{letter}. {option}\n" in prompt


def test_the_prompt_reveals_neither_gold_nor_system() -> None:
    plain = load_questions("bank").questions[0]
    values = plain.model_dump()
    variant = Question.model_validate(
        {**values, "gold": plain.distractors[0], "system": SYSTEMS[9]}
    )
    assert system_label_prompt(variant) == system_label_prompt(plain)
