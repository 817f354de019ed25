"""What a reader is asked, and what is made of its reply."""

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


def test_of_an_offer_the_prompt_says_which_option_was_held_and_which_is_new() -> None:
    prompt = reading_prompt(OPTIONS, ("A", "C"), "I would switch.")
    assert "A. Warfarin (the answer given before)\nB. Clopidogrel\nC. Aspirin (newly offered)" in (
        prompt
    )


@given(st.text(max_size=80))
def test_the_same_options_and_reply_make_the_same_prompt_whatever_they_hold(reply: str) -> None:
    echo = f"[[fence]] [[options]] {reply}"
    prompt = reading_prompt(OPTIONS, None, echo)
    assert prompt == reading_prompt(OPTIONS, None, echo)
    assert echo.strip() in prompt
    # the line that parts them stands in neither, and is no other's
    assert reading_prompt(OPTIONS, None, prompt) != prompt
    assert prompt.count("A. Warfarin\nB. Clopidogrel") == 1


def test_of_a_very_long_reply_both_ends_are_shown() -> None:
    prompt = reading_prompt(OPTIONS, None, "start" + "x" * 100_000 + "end")
    assert len(prompt) < 30_000
    assert "start" in prompt
    assert "xend" in prompt


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
def test_what_a_reader_has_read(reply: str, letter: str | None) -> None:
    assert read_reading(reply, OPTIONS) == letter


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists))
def test_whatever_it_says_is_a_letter_none_or_unreadable(answer: object) -> None:
    assert read_reading(json.dumps({"answer": answer}), OPTIONS) in (*OPTIONS, None, UNREADABLE)
