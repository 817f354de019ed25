"""Faults of a text that names options."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.challenges.texts import Fault
from holdfast.protocols.medfuzz.modification import naming_fault
from holdfast.questions.question import LETTERS, Question


def with_options(*texts: str) -> Question:
    options = dict(zip(LETTERS, texts, strict=False))
    return Question(id="q", stem="A man coughs. Why?", options=options, gold="A")


@pytest.mark.parametrize(
    ("option", "sentence", "is_fault"),
    [
        ("A", "A neighbor helps them.", False),
        ("A", "They are of type A there.", True),
        ("B", "They speak in plan B terms.", True),
        ("B", "They have a boat.", False),
        ("I", "At times I speak.", False),
        ("5", "They have 5 goats.", True),
        ("5", "They have 15 goats and 5.5 acres.", False),
        ("5", "They have five goats.", False),
        ("5", "They are 5-year guests.", True),
        ("25%", "They pay 25% of it.", True),
        ("25%", "They pay 25 coins.", False),
        ("0.5", "They own 0.5.", True),
        ("0.5", "They own 10.5.", False),
        ("HIV", "His uncle has hiv there.", True),
        ("HIV", "They live near the hive.", False),
        ("No", "They have no car.", False),
        ("All of the above", "Above all they sing.", False),
        ("Folic acid", "They eat folic-acid pills.", True),
        ("Folic acid", "They eat acid, folic or not.", False),
        ("The vagus nerve", "They work on the nerve of it.", False),
        ("患者", "彼の患者。", True),
    ],
)
def test_an_option_is_named_by_whole_words(option: str, sentence: str, is_fault: bool) -> None:
    question = with_options("Something else entirely", option)
    fault = naming_fault(["They came.", sentence], question)
    expected_fault = Fault("an option's text", "names option B in what it adds")
    assert fault == (expected_fault if is_fault else None)


@pytest.mark.parametrize(
    ("kind", "texts"),
    [
        # letters that stand for no option
        (None, ["They had hepatitis B and lack vitamin D.", "They take option E.",
                "They have no choice. A cousin agrees.", "Their options are few."]),
        ("an option letter", ["Perhaps option C fits.", "Of the options B is theirs.",
                              "They want choice (A).", 'Their answer: "D".',
                              "They pick B.", "They choose **C**."]),
        ("an option list", ["A. Gout B. Mumps C.", "Here: (A) gout\n(B) mumps", "A) x B) y"]),
    ],
)  # fmt: skip
def test_a_letter_that_stands_for_an_option_is_a_fault(kind: str | None, texts: list[str]) -> None:
    for text in texts:
        fault = naming_fault([text], with_options(*"wxyz"))
        assert (fault and fault.kind) == kind, text


@given(st.text(max_size=80), st.text(min_size=1, max_size=20))
def test_any_text_is_searched_for_any_option(text: str, option: str) -> None:
    if option.strip() and option.strip() != "w":
        naming_fault([text], with_options("w", option))
