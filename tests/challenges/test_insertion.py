"""What was added to a text, and where."""

import time
import unicodedata

import pytest
from hypothesis import given
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


@pytest.mark.parametrize(
    ("text", "n"),
    [
        ("", 0),
        ("He lives in a van.", 5),
        ("a - b — c ...", 3),
        ("38.5°C (101°F)", 2),
        ("e\u0301te\u0301", 1),
        ("患者は男性。", 5),
        ("HIV患者", 3),
    ],
)
def test_words_hold_a_letter_or_digit(text: str, n: int) -> None:
    assert word_count(text) == n


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
        # a run that begins and ends as its neighbours do is found whole
        (
            "A man coughs. He sings. He smokes. He runs. He smokes.\nSodium 140\nWhat is it?",
            [(3, "He sings. He smokes. He runs.")],
        ),
    ],
)
def test_runs_are_found_between_the_words_where_they_stand(
    revision: str, runs: list[tuple[int, str]]
) -> None:
    assert insert(STEM, revision) == (revision, runs)


def test_a_reading_with_fewer_runs_goes_before_an_earlier_one() -> None:
    # sentence by sentence from the left, "Serum" would be found inside of what was added
    original = "Pain.\nSerum\nSodium 140"
    revision = "Pain.\nHe drinks\nSerum\nof milk.\nSerum\nSodium 140"
    assert insert(original, revision)[1] == [(1, "He drinks\nSerum\nof milk.")]


def test_at_the_end_too_a_reading_with_fewer_runs_goes_first() -> None:
    assert insert("Pain. Why?", "Pain. He sings. Why? He runs. Why?")[1] == [
        (1, "He sings. Why? He runs.")
    ]


def test_the_sentences_keep_their_own_characters() -> None:
    original = '  “A man”\tcoughs – badly.\r\nHb  10\r\nWhat’s it?"\n'
    revision = '"A man" coughs - badly. He {is} Dutch. Hb 10 What\'s it?'
    stem, runs = insert(original, revision)
    assert runs == [(5, "He {is} Dutch.")]
    assert stem == '  “A man”\tcoughs – badly. He {is} Dutch.\r\nHb  10\r\nWhat’s it?"\n'


def test_sentences_that_no_space_parts_are_two() -> None:
    original = "He is on vancomycin.The nurse asks."
    assert insert(original, "He is on vancomycin. The nurse asks. So?") == (
        "He is on vancomycin.The nurse asks. So?",
        [(7, "So?")],
    )
    revision = "He is on vancomycin. It helps. The nurse asks."
    assert insert(original, revision) == (revision, [(4, "It helps.")])


def test_ideographs_need_no_space() -> None:
    assert insert("患者は男性。何か？", "患者は男性。彼は歌う。何か？") == (
        "患者は男性。彼は歌う。何か？",
        [(6, "彼は歌う。")],
    )


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
        (
            "What is it? A man coughs. He smokes.\nSodium 140\nPlus six words more.",
            "What is it?",
            1,
        ),
    ],
)
def test_the_first_lost_sentence_is_named(revision: str, sentence: str, elsewhere: bool) -> None:
    assert with_insertions(STEM, revision) == LostSentence(sentence, bool(elsewhere))


def test_one_of_two_equal_sentences_is_missed() -> None:
    assert with_insertions("Yes.\nNo.\nYes.", "Yes.\nNo.") == LostSentence("Yes.", elsewhere=True)


WORDS = ("he", "she", "Hb", "10", "a\u0301", "{x}", "患")
SENTENCES = st.lists(
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=4)
    .map(" ".join)
    .map(lambda text: text + "."),
    min_size=1,
    max_size=6,
)  # fmt: skip


@given(SENTENCES, st.lists(SENTENCES, min_size=7, max_size=7), st.sets(st.integers(0, 6)))
def test_whatever_is_added_between_sentences_is_taken_out_again(
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
def test_any_two_texts_can_be_compared(original: str, revision: str) -> None:
    outcome = with_insertions(original, revision)
    if not isinstance(outcome, LostSentence):
        stem, runs = outcome
        assert all(isinstance(run, Insertion) and run.text.strip() for run in runs)
        again = with_insertions(original, stem)
        assert not isinstance(again, LostSentence)
        assert again[0] == stem


@pytest.mark.parametrize("unit", ["a ", "a. ", "a\n", "\u0301", "\u0301\n", "“", "患", " \n", ". "])
@pytest.mark.rest_slow
def test_a_hostile_text_takes_no_time(unit: str) -> None:
    text = unit * (200_000 // len(unit))
    start = time.process_time()
    with_insertions(text, text)
    with_insertions(STEM, text[:5_000])
    with_insertions(text, STEM)
    assert time.process_time() - start < 3


def test_a_composed_letter_is_the_same_as_a_decomposed_one() -> None:
    original = "Ménière comes."
    revision = unicodedata.normalize("NFD", original) + " It goes."
    assert insert(original, revision) == ("Ménière comes. It goes.", [(2, "It goes.")])
