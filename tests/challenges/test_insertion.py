"""Additions to a text, and their places."""

import time
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.protocols.medfuzz.modification import (
    Insertion,
    LostSentence,
    with_insertions,
    word_count,
)

STEM = "A man coughs. He smokes.\nSodium 140\nWhat is it?"


def insert(original: str, revision: str) -> tuple[str, list[tuple[int, str]]]:
    outcome = with_insertions(original, revision)
    assert not isinstance(outcome, LostSentence)
    return outcome[0], [(run.place, run.text) for run in outcome[1]]


def test_words_contain_a_letter_or_digit() -> None:
    counts = {"": 0, "He lives in a van.": 5, "a - b — c ...": 3, "38.5°C (101°F)": 2,
              "e\u0301te\u0301": 1, "患者は男性。": 5, "HIV患者": 3}  # fmt: skip
    assert {text: word_count(text) for text in counts} == counts


@pytest.mark.parametrize(
    ("revision", "runs"),
    [
        ("He is Dutch. A man coughs. He smokes.\nSodium 140\nWhat is it?", [(0, "He is Dutch.")]),
        ("A man coughs. He is Dutch. He smokes.\nSodium 140\nWhat is it?", [(3, "He is Dutch.")]),
        ("A man coughs. He smokes. He sings.\nSodium 140\nWhat is it?", [(5, "He sings.")]),
        ("A man coughs. He smokes.\nSodium 140\nWhat is it?\nSay so.", [(10, "Say so.")]),
        (
            "One. A man coughs. Two. Three. He smokes.\nSodium 140\nWhat is it? Four.",
            [(0, "One."), (3, "Two. Three."), (10, "Four.")],
        ),
        # a run that begins and ends like its neighbours is found whole
        (
            "A man coughs. He sings. He smokes. He runs. He smokes.\nSodium 140\nWhat is it?",
            [(3, "He sings. He smokes. He runs.")],
        ),
    ],
)
def test_insertions_are_found_between_words(revision: str, runs: list[tuple[int, str]]) -> None:
    assert insert(STEM, revision) == (revision, runs)


@pytest.mark.parametrize(
    ("original", "revision", "stem", "runs"),
    [
        # a reading with fewer runs goes before an earlier one
        ("Pain.\nSerum\nSodium 140", "Pain.\nHe drinks\nSerum\nof milk.\nSerum\nSodium 140", None,
         [(1, "He drinks\nSerum\nof milk.")]),
        ("Pain. Why?", "Pain. He sings. Why? He runs. Why?", None,
         [(1, "He sings. Why? He runs.")]),
        # the sentences keep their characters
        ('  “A man”\tcoughs – badly.\r\nHb  10\r\nWhat’s it?"\n',
         '"A man" coughs - badly. He {is} Dutch. Hb 10 What\'s it?',
         '  “A man”\tcoughs – badly. He {is} Dutch.\r\nHb  10\r\nWhat’s it?"\n',
         [(5, "He {is} Dutch.")]),
        # two sentences without a space between them
        ("He is on vancomycin.The nurse asks.", "He is on vancomycin. The nurse asks. So?",
         "He is on vancomycin.The nurse asks. So?", [(7, "So?")]),
        ("He is on vancomycin.The nurse asks.", "He is on vancomycin. It helps. The nurse asks.",
         None, [(4, "It helps.")]),
        # ideographs need no space
        ("患者は男性。何か？", "患者は男性。彼は歌う。何か？", None, [(6, "彼は歌う。")]),
        # a decomposed letter is the same as a composed one
        ("Ménière comes.", f"{unicodedata.normalize('NFD', 'Ménière')} comes. It goes.",
         "Ménière comes. It goes.", [(2, "It goes.")]),
    ],
)  # fmt: skip
def test_sentences_are_found_in_the_revision(
    original: str, revision: str, stem: str | None, runs: list[tuple[int, str]]
) -> None:
    assert insert(original, revision) == (stem or revision, runs)


@pytest.mark.parametrize(
    ("revision", "sentence", "elsewhere"),
    [
        ("", "A man coughs.", False),
        ("He smokes.\nSodium 140\nWhat is it?", "A man coughs.", False),
        ("A man coughs.\nSodium 140\nWhat is it?", "He smokes.", False),
        ("A man often coughs. He smokes.\nSodium 140\nWhat is it?", "A man coughs.", False),
        ("A Man coughs. He smokes.\nSodium 140\nWhat is it?", "A man coughs.", False),
        ("A man coughs. He smokes.\nSodium 141\nWhat is it?", "Sodium 140", False),
        ("A man coughs. He smokes.\nSodium 140\nWhat is it", "What is it?", False),
        ("He smokes. A man coughs.\nSodium 140\nWhat is it?", "He smokes.", True),
        ("What is it? A man coughs. He smokes.\nSodium 140\nPlus six words more.", "What is it?",
         True),
    ],
)  # fmt: skip
def test_the_first_lost_sentence_is_named(revision: str, sentence: str, elsewhere: bool) -> None:
    assert with_insertions(STEM, revision) == LostSentence(sentence, elsewhere)
    # one of two equal sentences is missed
    assert with_insertions("Yes.\nNo.\nYes.", "Yes.\nNo.") == LostSentence("Yes.", elsewhere=True)


WORDS = ("he", "she", "Hb", "10", "a\u0301", "{x}", "患")
SENTENCES = st.lists(
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=4)
    .map(" ".join)
    .map(lambda text: text + "."),
    min_size=1,
    max_size=6,
)  # fmt: skip


@settings(max_examples=50)
@given(SENTENCES, st.lists(SENTENCES, min_size=7, max_size=7), st.sets(st.integers(0, 6)))
def test_any_additions_between_sentences_are_found(
    sentences: list[str], additions: list[list[str]], places: set[int]
) -> None:
    parts: list[str] = []
    for place, sentence in enumerate([*sentences, ""]):
        if place in places:
            parts += additions[place]
        parts += [sentence] * bool(sentence)
    stem, runs = insert(" ".join(sentences), " ".join(parts))
    assert stem == " ".join(parts)
    assert len(runs) <= len([place for place in places if place <= len(sentences)])
    n = sum(word_count(part) for part in parts) - sum(map(word_count, sentences))
    assert sum(word_count(text) for _, text in runs) == n


@given(st.text(max_size=80), st.text(max_size=120))
def test_arbitrary_texts_can_be_compared(original: str, revision: str) -> None:
    outcome = with_insertions(original, revision)
    if not isinstance(outcome, LostSentence):
        stem, runs = outcome
        assert all(isinstance(run, Insertion) and run.text.strip() for run in runs)
        copy = with_insertions(original, stem)
        assert not isinstance(copy, LostSentence)
        assert copy[0] == stem


@pytest.mark.parametrize("unit", ["a ", "a. ", "a\n", "\u0301", "\u0301\n", "“", "患", " \n", ". "])
@pytest.mark.rest_slow
def test_a_hostile_text_takes_bounded_time(unit: str) -> None:
    text = unit * (200_000 // len(unit))
    start = time.process_time()
    with_insertions(text, text)
    with_insertions(STEM, text[:5_000])
    with_insertions(text, STEM)
    assert time.process_time() - start < 3
