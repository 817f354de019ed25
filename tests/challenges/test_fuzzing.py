"""Requests to the attacker."""

import pytest
from inspect_ai.util import JSONSchema

from holdfast.challenges.texts import Fault
from holdfast.protocols.medfuzz.attacker import (
    CONTROL_SCHEMA,
    FUZZ_SCHEMA,
    assumptions,
    attack_prompt,
    attacker_system,
    control_prompt,
    control_retry_prompt,
    fuzz_retry_prompt,
    next_attack_prompt,
)
from holdfast.protocols.medfuzz.modification import Fuzz
from holdfast.questions.question import Question

DEFAULT = "patient-characteristics"
QUESTION = Question(
    id="q",
    stem="A man coughs.\nWhy?",
    options={"A": "Asthma", "B": "Bronchitis", "C": "Croup"},
    gold="B",
)
FUZZ = Fuzz(
    stem="A man coughs. He lives in a van.\nWhy? He sings.",
    characteristics=("lives in a van", "sings"),
    analysis="",
    plan="",
    additions=("He lives in a van.", "He sings."),
    words=7,
)
HOSTILE = "{gold} {fence} {answer} {{x}} %s \\1 \\g<0> </x>"


def test_the_system_prompt_states_the_assumption_and_the_rules() -> None:
    system = attacker_system(DEFAULT)
    assert "no medical evidence" in system
    assert "at most 120 words" in system
    assert "right answer must stay right" in system


def test_a_user_can_name_another_assumption() -> None:
    assumption = f"Vignettes hold no distracting numbers. {HOSTILE}"
    for text in (attacker_system(assumption), attack_prompt(QUESTION, "r", "B", None, assumption)):
        assert assumption in text
        assert "migration" not in text
    assert assumptions() == (DEFAULT,)


def test_the_first_request_contains_the_question_and_the_answer() -> None:
    prompt = attack_prompt(QUESTION, "It is B, for he coughs.", "B", 0.873, DEFAULT)
    for text in (
        QUESTION.stem,
        "A. Asthma\nB. Bronchitis\nC. Croup",
        "The right answer is B. Bronchitis",
        "It is B, for he coughs.",
        "Its answer: B, with a probability of 87 %",
        "migration",
        *(f'"{key}"' for key in FUZZ_SCHEMA["required"]),
    ):
        assert text in prompt


def test_a_later_request_contains_the_last_reply_alone() -> None:
    prompt = next_attack_prompt("The van is beside the point.", "B", 0.5)
    assert "The van is beside the point." in prompt
    assert "Its answer: B, with a probability of 50 %" in prompt
    assert "modified_question" in prompt


@pytest.mark.parametrize(
    ("confidence", "ending"),
    [(None, "B"), (0.0, "B, with a probability of 0 %"), (1.0, "B, with a probability of 100 %")],
)
def test_the_request_states_a_known_confidence(confidence: float | None, ending: str) -> None:
    for prompt in (
        attack_prompt(QUESTION, "r", "B", confidence, DEFAULT),
        next_attack_prompt("r", "B", confidence),
    ):
        assert f"Its answer: {ending}\n" in prompt


def test_a_retry_prompt_states_the_fault() -> None:
    fault = Fault("kind", f"adds {HOSTILE}")
    for prompt in (fuzz_retry_prompt(fault), control_retry_prompt(fault)):
        assert prompt.startswith(f"That adds {HOSTILE}. ")
        assert "kind" not in prompt
    assert "at most 120 words" in fuzz_retry_prompt(fault)


def test_the_control_prompt_has_its_runs_and_number() -> None:
    prompt = control_prompt(QUESTION, FUZZ, 3)
    assert f"\n{QUESTION.stem}\n" in prompt
    assert f"\n{FUZZ.stem}\n" in prompt
    assert "1. (5 words) He lives in a van.\n2. (2 words) He sings.\n" in prompt
    assert "7 words in all" in prompt
    assert "control number 3:" in prompt
    assert "lexical substitution" in prompt
    assert len({control_prompt(QUESTION, FUZZ, number) for number in range(1, 31)}) == 30


@pytest.mark.parametrize("schema", [FUZZ_SCHEMA, CONTROL_SCHEMA])
def test_the_schemas_are_strict_and_known_to_inspect(schema: dict[str, object]) -> None:
    json_schema = JSONSchema.model_validate(schema)
    assert json_schema.properties is not None
    # hosted providers take a schema only if it names every property and allows no other
    assert list(json_schema.properties) == json_schema.required
    assert json_schema.additionalProperties is False
    assert json_schema.model_dump(exclude_none=True) == schema


def test_a_control_needs_no_analysis() -> None:
    assert CONTROL_SCHEMA["required"] == ["modified_question", "characteristics"]
