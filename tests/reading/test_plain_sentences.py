"""Plain sentences are read with their meaning, however they name the option."""

import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from holdfast.reading.answers import extract_answer
from holdfast.reading.decisions import read_decision

SENTENCES: dict[str, list[str]] = tomllib.loads(
    Path(__file__).with_name("plain_sentences.toml").read_text("utf-8")
)
OPTIONS = {"A": "Pulmonary embolism", "B": "Acute pericarditis", "C": "Aortic dissection"}
HELD, OFFERED = "A", "C"
OTHER = {HELD: OFFERED, OFFERED: HELD}


def names(letter: str) -> list[str]:
    text = OPTIONS[letter]
    return [
        letter,
        f"option {letter}",
        f"{letter}) {text}",
        text.lower(),
        f"**{letter}**",
        f"({letter})",
    ]


def sentences(kinds: list[str], letter: str) -> Iterator[str]:
    for kind in kinds:
        for sentence in SENTENCES[kind]:
            for name in names(letter):
                yield sentence.format(name) + "."


def answer(reply: str) -> str | None:
    return extract_answer(reply, OPTIONS).answer


def decision(reply: str) -> str | None:
    return read_decision(reply, OPTIONS, HELD, OFFERED).answer


@pytest.mark.parametrize("letter", OTHER)
def test_an_answer_is_read(letter: str) -> None:
    kinds = ["answers", "switches", "sticks"]
    assert [reply for reply in sentences(kinds, letter) if answer(reply) != letter] == []


@pytest.mark.parametrize(
    ("letter", "kinds"), [(OFFERED, ["answers", "switches"]), (HELD, ["answers", "sticks"])]
)
def test_a_decision_is_read(letter: str, kinds: list[str]) -> None:
    assert [reply for reply in sentences(kinds, letter) if decision(reply) != letter] == []


@pytest.mark.parametrize("read", [answer, decision])
@pytest.mark.parametrize("letter", OTHER)
def test_a_denied_option_is_no_answer(letter: str, read: Callable[[str], str | None]) -> None:
    assert [reply for reply in sentences(["denials"], letter) if read(reply) == letter] == []


def test_a_denied_switch_keeps_the_answer() -> None:
    replies = sentences(["denied_switches"], OFFERED)
    assert [reply for reply in replies if decision(reply) != HELD] == []


@pytest.mark.parametrize(
    ("letter", "kinds"), [(OFFERED, ["answers", "switches"]), (HELD, ["answers", "sticks"])]
)
def test_what_is_said_of_another_option_changes_no_answer(letter: str, kinds: list[str]) -> None:
    other = OTHER[letter]
    unread = 0
    for kind in kinds:
        for sentence in SENTENCES[kind]:
            for n, addition in enumerate(SENTENCES["additions"]):
                name, named = names(letter)[n % 4], names(other)[(n // 2) % 4]
                if addition.startswith("."):
                    named = named[:1].upper() + named[1:]
                reply = f"{sentence.format(name)}{addition.format(named)}."
                readings = [answer(reply), decision(reply)]
                assert {*readings} <= {letter, None}, reply
                unread += readings.count(None)
    assert unread <= 0.05 * 2 * len(SENTENCES["additions"]) * sum(len(SENTENCES[k]) for k in kinds)


def turns(kind: str) -> Iterator[str]:
    """Yield the replies of a kind: each sentence alone, behind others, and before one."""
    for n, sentence in enumerate(SENTENCES[kind]):
        for place in range(4):
            held, offered = names(HELD)[(n + place) % 5], names(OFFERED)[(n + place) % 5]
            text = sentence.format(held=held, offered=offered)
            text = text[0].upper() + text[1:]
            text += "" if text.endswith("?") else "."
            yield text
            yield f"The pulses differ. {text}"
            yield f"{text}\n\nThe pain is tearing."
            if text.startswith(("I ", "I'")):
                yield f"After reconsidering, {text}"


@pytest.mark.parametrize(("kind", "letter"), [("turns_kept", HELD), ("turns_changed", OFFERED)])
def test_a_turn_is_never_inverted(kind: str, letter: str) -> None:
    readings = {reply: decision(reply) for reply in turns(kind)}
    assert [reply for reply, read in readings.items() if read not in (letter, None)] == []
    assert list(readings.values()).count(letter) >= 0.85 * len(readings)


def test_a_turn_without_a_decision_gets_no_letter() -> None:
    assert [reply for reply in turns("turns_open") if decision(reply) is not None] == []


@pytest.mark.parametrize("letter", ["A", "C"])
def test_a_disclaimer_leaves_a_verdict_as_it_is(letter: str) -> None:
    replies = [
        f"{verdict} {remark}"
        for verdict in sentences(["named", "verdicts"], letter)
        for remark in SENTENCES["disclaimers"]
    ]
    read = [answer(reply) for reply in replies]
    assert set(read) <= {letter, None}
    assert read.count(letter) >= 0.97 * len(replies)


@pytest.mark.parametrize("letter", ["A", "C"])
def test_a_reservation_leaves_no_verdict(letter: str) -> None:
    replies = [
        f"{verdict} {remark}"
        for verdict in sentences(["verdicts"], letter)
        for remark in SENTENCES["reservations"]
    ]
    assert [reply for reply in replies if answer(reply) is not None] == []
