"""Characteristics that a reply mentions."""

import tomllib
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.protocols.medfuzz.characteristics import mentions, stem, telling_stems

LABELS = tomllib.loads((Path(__file__).parent / "mention_replies.toml").read_text("utf-8"))


def agreement(half: str) -> tuple[float, float]:
    """Precision and recall."""
    pairs: list[tuple[bool, bool]] = []
    for row in LABELS[half]:
        readings = mentions(row["reply"], row["characteristics"])
        pairs += zip(readings, row["mentioned"], strict=True)
    agreeing = sum(reading and true for reading, true in pairs)
    positives, true = sum(positives for positives, _ in pairs), sum(true for _, true in pairs)
    return agreeing / positives, agreeing / true


def test_there_are_enough_labels_of_either_kind() -> None:
    sizes = {half: len(replies) for half, replies in LABELS.items()}
    assert sizes == {"held_out": 22, "working": 22, "fresh": 10}
    for half in LABELS.values():
        labels = [label for row in half for label in row["mentioned"]]
        assert min(labels.count(True), labels.count(False)) >= 9


@pytest.mark.parametrize(
    ("half", "precision", "recall"),
    [("held_out", 19 / 20, 19 / 20), ("working", 17 / 18, 1.0), ("fresh", 7 / 8, 7 / 9)],
)
def test_the_reading_agrees_with_the_labels(half: str, precision: float, recall: float) -> None:
    scores = agreement(half)
    assert scores[0] >= precision
    assert scores[1] >= recall


def read_mentions(reply: str, *characteristics: str) -> list[bool]:
    return mentions(reply, characteristics)


@pytest.mark.parametrize(
    "reply",
    [
        "His parents immigrated.",
        "Being an immigrant, like his PARENTS, he …",
        "The parents’ **immigration** is irrelevant.",
        "There is no sign that his parents are immigrants.",
        "<think>parents are immigrants</think> Answer: B",
    ],
)
def test_words_count_in_any_form_and_also_where_they_are_denied(reply: str) -> None:
    assert read_mentions(reply, "immigrant parents") == [True]


def test_one_of_two_telling_words_is_not_enough() -> None:
    assert read_mentions("Both parents are carriers.", "immigrant parents") == [False]


def test_half_of_many_telling_words_is_enough() -> None:
    characteristic = "grandmother swears by fermented turnip juice"
    assert read_mentions("The turnip and its fermented juice do nothing.", characteristic) == [True]
    assert read_mentions("The turnip does nothing.", characteristic) == [False]


@pytest.mark.parametrize(
    ("words", "is_mention"), [(8, True), (9, False)], ids=["within ten words", "in eleven"]
)
def test_the_words_stand_within_ten_words_of_each_other(words: int, is_mention: bool) -> None:
    reply = f"The vegan {'and ' * words}yogi."
    assert read_mentions(reply, "vegan yogi") == [is_mention]


def test_the_end_of_a_sentence_sets_words_apart() -> None:
    assert read_mentions("The vegan and and and. A yogi.", "vegan yogi") == [True]
    assert read_mentions("The vegan and and and and. A yogi.", "vegan yogi") == [False]


def test_a_word_said_twice_counts_once() -> None:
    assert read_mentions("Vegan, vegan, vegan.", "vegan yogi") == [False]


def test_each_characteristic_has_its_value() -> None:
    assert read_mentions("He is a vegan.", "yogi", "vegan", "the", "") == [
        False,
        True,
        False,
        False,
    ]
    assert read_mentions("He is a vegan.") == []


def test_words_of_every_vignette_tell_only_where_there_are_no_others() -> None:
    assert telling_stems("patient lives alone") == telling_stems("lives alone") != frozenset()
    assert telling_stems("the patient is a weaver") == telling_stems("weavers")
    assert telling_stems("who is he") == frozenset()


@pytest.mark.parametrize(
    "forms",
    [
        ("immigrant", "immigrants", "immigrated", "immigration", "immigrating"),
        ("religion", "religions", "religious"),
        ("smoke", "smokes", "smoked", "smoking", "smoker", "smokers"),
        ("travel", "travels", "traveled", "travelled", "travelling"),
        ("homeless", "homelessness"),
        ("obese", "obesity"),
        ("anxious", "anxiety"),
        ("vaccine", "vaccines", "vaccinated", "vaccination"),
    ],
)
def test_forms_of_a_word_have_one_stem(forms: Sequence[str]) -> None:
    assert len(set(map(stem, forms))) == 1


@pytest.mark.parametrize(
    ("first", "second"),
    [("live", "liver"), ("immigrant", "imminent"), ("vegan", "vegetable"), ("work", "word")],
)
def test_other_words_have_other_stems(first: str, second: str) -> None:
    assert stem(first) != stem(second)


def test_scripts_without_spaces_are_read_by_pairs_of_characters() -> None:
    assert read_mentions("父母是农村移民。", "农村移民") == [True]
    assert read_mentions("父母是医生。", "农村移民") == [False]


@given(st.text(max_size=200), st.lists(st.text(max_size=40), max_size=4))
def test_any_texts_are_read(reply: str, characteristics: list[str]) -> None:
    assert len(mentions(reply, characteristics)) == len(characteristics)
