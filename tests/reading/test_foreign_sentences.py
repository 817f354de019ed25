"""Sentences of other languages, and texted ones, get the option that they answer or none."""

import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.reading.answers import extract_answer

SENTENCES: dict[str, dict[str, list[str]]] = tomllib.loads(
    Path(__file__).with_name("foreign_sentences.toml").read_text("utf-8")
)
OPTIONS = {"A": "Warfarin", "B": "Clopidogrel", "C": "Aspirin", "D": "Heparin"}
CHINESE = {"A": "华法林", "B": "氯吡格雷", "C": "阿司匹林", "D": "肝素"}
PAIRS = (("B", "C"), ("D", "B"))
# Sentences read with their option, of 280 that answer one.
AT_LEAST = {"german": 256, "french": 252, "spanish": 262, "chinese": 262, "texted": 234}


def replies(language: str, kind: str) -> Iterator[tuple[str, str | None]]:
    """Yield the replies of a kind with what they answer."""
    options = CHINESE if language == "chinese" else OPTIONS
    for sentence in SENTENCES[language][kind]:
        for x, y in PAIRS:
            names = [] if kind == "texts" else [(x, y)]
            names += [] if kind == "letters" else [(options[x], options[y])]
            for name_x, name_y in names:
                small = str.lower if language == "texted" else str
                reply = sentence.replace("{X}", small(name_x)).replace("{Y}", small(name_y))
                yield reply, {"none": None, "other": y}.get(kind, x)


def answer(reply: str, language: str) -> str | None:
    return extract_answer(reply, CHINESE if language == "chinese" else OPTIONS).answer


@pytest.mark.parametrize("language", SENTENCES)
def test_no_sentence_gets_another_option(language: str) -> None:
    rows = [row for kind in SENTENCES[language] for row in replies(language, kind)]
    wrong = [row for row in rows if answer(row[0], language) not in (row[1], None)]
    assert not wrong


@pytest.mark.parametrize("language", SENTENCES)
def test_most_sentences_are_read(language: str) -> None:
    rows = [*replies(language, "letters"), *replies(language, "texts")]
    assert len(rows) == 280
    assert sum(answer(reply, language) == option for reply, option in rows) >= AT_LEAST[language]
