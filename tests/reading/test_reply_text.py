"""Replies without their reasoning, and as plain text."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.reading.reply_text import plain_text, without_reasoning


@pytest.mark.parametrize(
    ("reply", "text"),
    [
        ("No tags.", "No tags."),
        ("<think>Hm.</think>Text.", "Text."),
        ("<thinking>\nHm.\n</thinking>\n\nText.", "\n\nText."),
        ("Hm.</think>Text.", "Text."),
        ("Before <reasoning>Hm.</reasoning>after.", "Before after."),
        ("<think>a</think>One. <think>b</think>Two.", "One. Two."),
        ("One. <think>a</think>b</think>Two.", "Two."),
        ("<think>never closed", ""),
        ("<THINK>Hm.</THINK>Text.", "Text."),
        ("Less <thin> than.", "Less <thin> than."),
        ('<think>{"a": 1}</think>{"a": 2}', '{"a": 2}'),
        ("", ""),
    ],
)
def test_text_between_thinking_tags_is_left_out(reply: str, text: str) -> None:
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


def test_plain_text_keeps_the_ends_of_a_long_reply() -> None:
    text = plain_text("<think>no</think>**HEAD**" + "x" * 1_000_000 + "\u2018TAIL\u2019")
    assert text.startswith("HEAD")
    assert text.endswith("'TAIL'")
    assert len(text) < 24_010


def test_plain_text_has_no_emphasis_no_typography_and_single_blanks() -> None:
    assert plain_text("## **It\u2019s**\u00a0  `B`\u200b \u2014 \\textbf{\uff22}") == "It's B - {B}"
