import string
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from holdfast.questions.question import LETTERS, Question, faults

LONE_SURROGATE = "\ud800"

texts = st.text(min_size=1).filter(str.strip)
"""Any text but lone surrogates and blanks."""


def question(**changes: Any) -> Question:
    values = {
        "id": "0000",
        "stem": "A man coughs. Why?",
        "options": {"A": "Asthma", "B": "Bronchitis", "C": "Croup"},
        "gold": "B",
    }
    return Question.model_validate(values | changes)


def lettered(options: list[str]) -> dict[str, str]:
    return dict(zip(LETTERS, options, strict=False))


def test_letters_run_from_a_to_z() -> None:
    assert LETTERS == string.ascii_uppercase


def test_distractors_are_the_wrong_letters_in_order() -> None:
    assert question().distractors == ("A", "C")
    assert question(gold="A").distractors == ("B", "C")


@pytest.mark.parametrize("n", [2, 4, 5, 26])
def test_2_to_26_options_are_a_question(n: int) -> None:
    options = lettered([f"Finding {number}" for number in range(n)])
    assert len(question(options=options, gold="A").distractors) == n - 1


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        pytest.param({"id": " \t"}, "id: is empty", id="blank-id"),
        pytest.param({"stem": "\n"}, "stem: is empty", id="blank-stem"),
        pytest.param(
            {"options": {"A": "Asthma"}, "gold": "A"}, "options: has 1 options", id="one-option"
        ),
        pytest.param({"options": {}}, "options: has 0 options", id="no-option"),
        pytest.param(
            {"options": {**lettered([f"{n}" for n in range(26)]), "AA": "26"}},
            "options: has 27 options",
            id="27-options",
        ),
        pytest.param(
            {"options": {"A": "Asthma", "C": "Croup"}, "gold": "A"},
            "options: letters are not A, B, C",
            id="gap",
        ),
        pytest.param(
            {"options": {"B": "Asthma", "A": "Croup"}, "gold": "A"},
            "options: letters are not A, B, C",
            id="out-of-order",
        ),
        pytest.param(
            {"options": {"a": "Asthma", "b": "Croup"}, "gold": "a"},
            "options: letters are not A, B, C",
            id="lower-case-letters",
        ),
        pytest.param(
            {"options": {"A": "Asthma", "B": " "}}, "options: option B is empty", id="blank-option"
        ),
        pytest.param(
            {"options": {"A": "Asthma", "B": "Croup", "C": " Asthma\n"}},
            "options: options A and C have the same text",
            id="same-text",
        ),
        pytest.param({"gold": "D"}, "gold: 'D' is not one of the options A, B, C", id="gold"),
        pytest.param({"gold": "b"}, "gold: 'b' is not one of the options", id="lower-case-gold"),
        pytest.param({"id": LONE_SURROGATE}, "id: contains a lone surrogate", id="surrogate-id"),
        pytest.param(
            {"stem": LONE_SURROGATE}, "stem: contains a lone surrogate", id="surrogate-stem"
        ),
        pytest.param(
            {"options": {"A": "Asthma", "B": f"x{LONE_SURROGATE}"}},
            "options: contains a lone surrogate",
            id="surrogate-option",
        ),
        pytest.param({"weight": 3}, "Extra inputs are not permitted", id="unknown-field"),
    ],
)
def test_what_is_no_question_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError) as caught:
        question(**changes)
    assert message in str(caught.value)


@pytest.mark.parametrize("field", ["step", "system", "specialty", "subject"])
def test_a_stratum_with_a_lone_surrogate_is_refused(field: str) -> None:
    with pytest.raises(ValidationError):
        question(**{field: LONE_SURROGATE})


def test_faults_are_named_together() -> None:
    found = faults("", " ", {"A": "x", "B": "x", "D": ""}, "E")
    assert found == [
        ("id", "is empty"),
        ("stem", "is empty"),
        ("options", "letters are not A, B, C, ... without a gap"),
        ("options", "option D is empty"),
        ("options", "options A and B have the same text"),
        ("gold", "'E' is not one of the options A, B, D"),
    ]


def test_options_that_differ_in_case_only_are_two_options() -> None:
    assert question(options={"A": "pH", "B": "PH"}).distractors == ("A",)


def test_a_question_cannot_be_changed() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        question().stem = "Another"  # type: ignore[misc]


def test_the_content_hash_of_a_known_question_never_changes() -> None:
    assert question().content_hash == (
        "3bf9757211c5d6453c8d97c7495bd7dd5b3c8e8eab7772044dc6cb5e0804c4b5"
    )


@pytest.mark.parametrize(
    "change",
    [
        {"id": "another"},
        {"step": "step1"},
        {"system": "Respiratory System"},
        {"specialty": "Pulmonology"},
        {"subject": "Physiology"},
        {"source": "file.csv"},
    ],
    ids=lambda change: next(iter(change)),
)
def test_the_content_hash_ignores_what_is_not_content(change: dict[str, str]) -> None:
    assert question(**change).content_hash == question().content_hash


@pytest.mark.parametrize(
    "change",
    [
        {"stem": "A man coughs. Why? "},
        {"gold": "A"},
        {"options": {"A": "Bronchitis", "B": "Asthma", "C": "Croup"}},
        {"options": {"A": "Asthma", "B": "Bronchitis"}},
    ],
    ids=["stem", "gold", "order-of-options", "number-of-options"],
)
def test_the_content_hash_changes_with_the_content(change: dict[str, Any]) -> None:
    assert question(**change).content_hash != question().content_hash


@given(stem=texts, options=st.lists(texts, min_size=2, max_size=26, unique_by=str.strip))
def test_any_text_is_kept_as_it_is(stem: str, options: list[str]) -> None:
    asked = question(stem=stem, options=lettered(options), gold="A")
    assert asked.stem == stem
    assert list(asked.options.values()) == options
    assert len(asked.content_hash) == 64
