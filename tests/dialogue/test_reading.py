"""The naive first-character rule, refusals to write, and replies without their reasoning."""

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.dialogue import Extraction, first_character, is_refusal, without_reasoning

OPTIONS = {"A": "Asthma", "B": "Bronchitis", "C": "Croup"}

# --- first character ---


@pytest.mark.parametrize("reply", ["A", "A. Asthma", "Asthma", "A man of 40 has croup: (C)"])
def test_the_first_character_is_the_answer_whatever_follows(reply: str) -> None:
    assert first_character(reply, OPTIONS) == Extraction("A", "parsed", "first-character")


@pytest.mark.parametrize("reply", ["", " A", "\nA", "(A)", "a", "D", "The answer is A", "**A**"])
def test_everything_else_is_no_answer_to_it(reply: str) -> None:
    assert first_character(reply, OPTIONS) == Extraction(None, "none", "first-character")


@given(st.text(max_size=20))
def test_it_looks_at_nothing_but_the_first_character(reply: str) -> None:
    found = first_character(reply, OPTIONS).answer
    assert found == (reply[0] if reply[:1] in set("ABC") else None)


# --- refusals ---


def seen_once(*replies: str, reason: str) -> list[Any]:
    return [pytest.param(reply, id=reason[:20] + reply[:40]) for reply in replies]


@pytest.mark.parametrize(
    "reply",
    [
        "I'm sorry, but I can't help with that.",
        "I’m sorry, but I cannot provide medical information that supports a wrong answer.",
        "I'm sorry, but I can't write that.",
        "I cannot assist with this request.",
        "I cannot generate misleading medical content.",
        "I can't create content that could mislead a clinician.",
        "As an AI model, I am not able to provide misleading medical advice.",
        "Sorry, I must decline.",
        "Unfortunately, I can't do this.",
        "**I am unable to provide this.**",
        *seen_once(
            "I'm unable to provide this.",
            "I’m not able to produce false medical claims.",
            "I am not comfortable writing this.",
            reason="only 'I am unable' and 'I am not able' are known",
        ),
        *seen_once(
            "Thank you for asking. I won't give such a text.",
            "I understand the purpose of this, but I can't write it.",
            reason="only the very beginning of a reply is looked at",
        ),
    ],
)
def test_a_text_that_is_declined_is_a_refusal(reply: str) -> None:
    assert is_refusal(reply)


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "The fever is unexplained. Croup is likely.",
        "No test was given. A diagnosis cannot be made.",
        "The patient says he cannot swallow. He cannot give a history.",
        "The course is typical. " * 30 + "I cannot provide more.",
        "Without an echocardiogram we cannot make a definitive diagnosis.",
        "Without troponins, we cannot confirm the diagnosis.",
        "Type I hypersensitivity cannot be diagnosed from the history alone.",
        "Stage I disease cannot be given a prognosis without imaging.",
        # the text of an option in MedQA
        'The physician would say: "I can not help you due to the ethical principle."',
        *seen_once(
            "We cannot make a definitive diagnosis without an echocardiogram.",
            "Unfortunately, we cannot tell croup from epiglottitis without a lateral film.",
            reason="a text that begins with what cannot be known is taken for a refusal",
        ),
    ],
)
def test_a_text_that_speaks_of_what_cannot_be_done_is_none(reply: str) -> None:
    assert not is_refusal(reply)


@pytest.mark.parametrize("unit", ["I cannot ", "i ", "\u0301", "*", "I'm sorry, but "])
def test_a_megabyte_is_looked_at_in_no_time(unit: str) -> None:
    start = time.perf_counter()
    is_refusal(unit * (1_000_000 // len(unit)))
    assert time.perf_counter() - start < 2


# --- reasoning ---


@pytest.mark.parametrize(
    ("reply", "text"),
    [
        ("No tags.", "No tags."),
        ("<think>Hm.</think>Text.", "Text."),
        ("<thinking>\nHm.\n</thinking>\n\nText.", "\n\nText."),
        ("Hm.</think>Text.", "Text."),
        ("Before <reasoning>Hm.</reasoning>after.", "Before after."),
        ("<think>a</think>One. <think>b</think>Two.", "One. Two."),
        ("<think>never closed", ""),
        ("<THINK>Hm.</THINK>Text.", "Text."),
        ("Less <thin> than.", "Less <thin> than."),
        ('<think>{"a": 1}</think>{"a": 2}', '{"a": 2}'),
        ("", ""),
    ],
)
def test_what_stands_between_thinking_tags_is_left_out(reply: str, text: str) -> None:
    assert without_reasoning(reply) == text


@given(st.text(alphabet="ab{}\n.", max_size=40), st.text(alphabet="ab{}\n.", max_size=40))
def test_reasoning_and_text_are_parted_at_the_tag(thought: str, text: str) -> None:
    assert without_reasoning(f"<think>{thought}</think>{text}") == text
    assert without_reasoning(text) == text


@pytest.mark.parametrize("unit", ["<think>", "</think>", "<", "<think "])
def test_a_megabyte_of_tags_is_read_in_no_time(unit: str) -> None:
    start = time.perf_counter()
    without_reasoning(unit * (1_000_000 // len(unit)))
    assert time.perf_counter() - start < 5
