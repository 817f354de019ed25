"""Requests to a second reader, and its replies."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.protocols.second_reading import UNREADABLE, read_reading, reading_prompt

OPTIONS = {"A": "Warfarin", "B": "Clopidogrel", "C": "Aspirin"}


def test_the_prompt_shows_the_options_and_the_reply_between_fences() -> None:
    prompt = reading_prompt(OPTIONS, None, "I take B.")
    (fence,) = {line for line in prompt.splitlines() if line.startswith("=====")}
    before, options, between, reply, after = prompt.split(f"\n{fence}\n")
    assert options == "A. Warfarin\nB. Clopidogrel\nC. Aspirin"
    assert reply == "I take B."
    assert not any(text in before + between + after for text in OPTIONS.values())
    assert "given before)" not in options


def test_the_prompt_of_an_offer_marks_the_earlier_answer_and_the_new_option() -> None:
    prompt = reading_prompt(OPTIONS, ("A", "C"), "I would switch.")
    assert "A. Warfarin (the answer given before)\nB. Clopidogrel\nC. Aspirin (newly offered)" in (
        prompt
    )


@pytest.mark.parametrize(
    ("reply", "letter"),
    [
        ('{"answer": "B"}', "B"),
        ('{"answer": "b"}', "B"),
        ('{"answer": "(B)."}', "B"),
        ('{"answer": null}', None),
        ('```json\n{"answer": "B"}\n```', "B"),
        ('It reports A. {"answer": "A"} No: {"answer": "B"}', "B"),
        ('{"answer": "B"} {"note": "A"}', "B"),
        # neither a letter of the list nor null
        ('{"answer": "D"}', UNREADABLE),
        ('{"answer": "Clopidogrel"}', UNREADABLE),
        ('{"answer": ""}', UNREADABLE),
        ('{"answer": 1}', UNREADABLE),
        ('{"answer": ["B"]}', UNREADABLE),
        ('{"letter": "B"}', UNREADABLE),
        ('{"answer": "B"', UNREADABLE),
        ("B", UNREADABLE),
        ("", UNREADABLE),
        ("I cannot help with medical questions.", UNREADABLE),
        ("{" * 100_000, UNREADABLE),
    ],
)
def test_the_reply_of_a_reader_is_a_letter_or_none(reply: str, letter: str | None) -> None:
    assert read_reading(reply, OPTIONS) == letter


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists))
def test_any_reply_is_a_letter_none_or_unreadable(answer: object) -> None:
    assert read_reading(json.dumps({"answer": answer}), OPTIONS) in (*OPTIONS, None, UNREADABLE)
