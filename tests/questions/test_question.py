import string
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from holdfast.questions.question import LETTERS, Question, faults

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


def by_letter(options: list[str]) -> dict[str, str]:
    return dict(zip(LETTERS, options, strict=False))


def test_distractors_are_the_wrong_letters_in_order() -> None:
    assert LETTERS == string.ascii_uppercase
    assert question().distractors == ("A", "C")
    assert question(gold="A").distractors == ("B", "C")
    # texts that differ in case alone are two options
    assert question(options={"A": "pH", "B": "PH"}).distractors == ("A",)
    for n in (2, 4, 5, 26):
        options = by_letter([f"Finding {number}" for number in range(n)])
        assert len(question(options=options, gold="A").distractors) == n - 1


SURROGATE = "\ud800"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"id": " \t"}, "id: is empty"),
        ({"stem": "\n"}, "stem: is empty"),
        ({"options": {"A": "Asthma"}, "gold": "A"}, "options: has 1 options"),
        ({"options": {}}, "options: has 0 options"),
        ({"options": {**by_letter([f"{n}" for n in range(26)]), "AA": "26"}}, "has 27 options"),
        ({"options": {"A": "Asthma", "C": "Croup"}, "gold": "A"}, "letters are not A, B, C"),
        ({"options": {"B": "Asthma", "A": "Croup"}, "gold": "A"}, "letters are not A, B, C"),
        ({"options": {"a": "Asthma", "b": "Croup"}, "gold": "a"}, "letters are not A, B, C"),
        ({"options": {"A": "Asthma", "B": " "}}, "options: option B is empty"),
        ({"options": {"A": "Asthma", "B": "Croup", "C": " Asthma\n"}},
         "options: options A and C have the same text"),
        ({"gold": "D"}, "gold: 'D' is not one of the options A, B, C"),
        ({"gold": "b"}, "gold: 'b' is not one of the options"),
        ({"options": {"A": "Asthma", "B": f"x{SURROGATE}"}}, "options: contains a lone surrogate"),
        *(({field: SURROGATE}, "lone surrogate")
          for field in ("id", "stem", "step", "system", "specialty", "subject")),
        ({"weight": 3}, "Extra inputs are not permitted"),
    ],
)  # fmt: skip
def test_an_invalid_question_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError) as caught:
        question(**changes)
    assert message in str(caught.value)


def test_faults_are_named_together() -> None:
    question_faults = faults("", " ", {"A": "x", "B": "x", "D": ""}, "E")
    assert question_faults == [
        ("id", "is empty"),
        ("stem", "is empty"),
        ("options", "letters are not A, B, C, ... without a gap"),
        ("options", "option D is empty"),
        ("options", "options A and B have the same text"),
        ("gold", "'E' is not one of the options A, B, D"),
    ]


def test_a_question_cannot_be_changed() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        question().stem = "Another"  # type: ignore[misc]


def test_the_content_hash_of_a_known_question_never_changes() -> None:
    assert question().content_hash == (
        "3bf9757211c5d6453c8d97c7495bd7dd5b3c8e8eab7772044dc6cb5e0804c4b5"
    )


def test_the_content_hash_ignores_labels() -> None:
    labels = {"id": "another", "step": "step1", "system": "Respiratory System",
              "specialty": "Pulmonology", "subject": "Physiology", "source": "f.csv"}  # fmt: skip
    assert question(**labels).content_hash == question().content_hash


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
def test_texts_are_kept_unchanged(stem: str, options: list[str]) -> None:
    value = question(stem=stem, options=by_letter(options), gold="A")
    assert value.stem == stem
    assert list(value.options.values()) == options
    assert len(value.content_hash) == 64
