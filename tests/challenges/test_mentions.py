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


def test_labels_of_both_kinds_suffice() -> None:
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


def is_mentioned(reply: str, characteristic: str) -> bool:
    (reading,) = mentions(reply, [characteristic])
    return reading


@pytest.mark.parametrize(
    ("characteristic", "is_mention", "replies"),
    [
        # words count in any form, and also in a denial
        ("immigrant parents", True,
         ["His parents immigrated.", "Being an immigrant, like his PARENTS, he …",
          "The parents’ **immigration** is irrelevant.",
          "There is no sign that his parents are immigrants.",
          "<think>parents are immigrants</think> Answer: B"]),
        # one of two telling words is not enough, half of many is
        ("immigrant parents", False, ["Both parents are carriers."]),
        ("grandmother swears by fermented turnip juice", True,
         ["The turnip and its fermented juice do nothing."]),
        ("grandmother swears by fermented turnip juice", False, ["The turnip does nothing."]),
        # the words are within ten words of each other; the end of a sentence counts more
        ("vegan yogi", True, [f"The vegan {'and ' * 8}yogi.", "The vegan and and and. A yogi."]),
        ("vegan yogi", False, [f"The vegan {'and ' * 9}yogi.", "The vegan and and and and. A yogi.",
                               "Vegan, vegan, vegan."]),
        # scripts without spaces are read by pairs of characters
        ("农村移民", True, ["父母是农村移民。"]),
        ("农村移民", False, ["父母是医生。"]),
    ],
)  # fmt: skip
def test_distinctive_words_mention_a_characteristic(
    characteristic: str, is_mention: bool, replies: list[str]
) -> None:
    readings = {reply: is_mentioned(reply, characteristic) for reply in replies}
    assert readings == dict.fromkeys(replies, is_mention)


def test_every_characteristic_has_its_value() -> None:
    characteristics = ["yogi", "vegan", "the", ""]
    assert mentions("He is a vegan.", characteristics) == [False, True, False, False]
    assert mentions("He is a vegan.", []) == []


def test_words_of_all_vignettes_are_ignored() -> None:
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
def test_word_forms_share_a_stem(forms: Sequence[str]) -> None:
    assert len(set(map(stem, forms))) == 1


@pytest.mark.parametrize(
    ("first", "second"),
    [("live", "liver"), ("immigrant", "imminent"), ("vegan", "vegetable"), ("work", "word")],
)
def test_other_words_have_other_stems(first: str, second: str) -> None:
    assert stem(first) != stem(second)


@given(st.text(max_size=200), st.lists(st.text(max_size=40), max_size=4))
def test_any_texts_are_read(reply: str, characteristics: list[str]) -> None:
    assert len(mentions(reply, characteristics)) == len(characteristics)
