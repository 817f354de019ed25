"""Texts of others inside a prompt."""

from hypothesis import given
from hypothesis import strategies as st

from holdfast.challenges.texts import excerpt, fence


def test_texts_of_up_to_24000_characters_are_kept() -> None:
    assert excerpt("x" * 24_000) == "x" * 24_000


def test_longer_texts_keep_their_ends() -> None:
    text = "a" * 8_000 + "b" * 10_000 + "c" * 16_000
    assert excerpt(text) == f"{'a' * 8_000}\n\n{'c' * 16_000}"


@given(st.lists(st.text(max_size=50), max_size=4))
def test_a_fence_is_fixed_and_occurs_in_no_text(texts: list[str]) -> None:
    line = fence(*texts)
    assert fence(*texts) == line
    assert not any(line in text for text in texts)
    assert "\n" not in line


def test_a_text_with_its_own_fence_gets_another() -> None:
    first = fence("text")
    assert fence("text", first) != first
    assert fence(first) not in first
