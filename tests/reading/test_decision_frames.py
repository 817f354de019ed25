"""Frames of sentences about a decision are never inverted, whatever option or verb they name."""

import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from holdfast.reading.decisions import read_decision

FRAMES = tomllib.loads(Path(__file__).with_name("decision_frames.toml").read_text("utf-8"))
OPTIONS = {"A": "Warfarin", "B": "Clopidogrel", "C": "Aspirin", "D": "Heparin"}
HELD, OFFERED = "B", "C"
OTHER = {HELD: OFFERED, OFFERED: HELD, None: None}
NAMES = [
    ("clopidogrel", "aspirin"),
    ("B", "C"),
    ("my original answer", "the new option"),
    ("clopidogrel (B)", "aspirin (C)"),
]


def filled(frame: str, **words: str) -> str:
    text = frame.format(**words)
    return text[0].upper() + text[1:]


def about_options(kind: str) -> Iterator[tuple[str, str | None]]:
    is_open = kind == "open"
    for frame in FRAMES[kind]:
        for held, offered in NAMES:
            yield filled(frame, X=held, Y=offered), None if is_open else HELD
            yield filled(frame, X=offered, Y=held), None if is_open else OFFERED


def about_verbs(kind: str) -> Iterator[tuple[str, str | None]]:
    for frame in FRAMES[kind]:
        for group, letter in (("keeping", HELD), ("changing", OFFERED)):
            for verb, gerund in FRAMES[group].items():
                decision = {"done": letter, "refused": OTHER[letter]}.get(kind)
                yield filled(frame, V=verb, G=gerund), decision


@pytest.mark.parametrize(
    ("kind", "rows", "at_least"),
    [
        ("decided", about_options, 0.76),
        ("rarely_read", about_options, 0),
        ("open", about_options, 0),
        ("done", about_verbs, 0.89),
        ("refused", about_verbs, 0.85),
        ("possible", about_verbs, 0),
    ],
)
def test_no_frame_is_inverted(
    kind: str, rows: Callable[[str], Iterator[tuple[str, str | None]]], at_least: float
) -> None:
    read = [
        (reply, decision, read_decision(reply, OPTIONS, HELD, OFFERED).answer)
        for reply, decision in rows(kind)
    ]
    assert [row for row in read if row[2] not in (None, row[1])] == []
    assert sum(row[2] is not None for row in read) >= at_least * len(read)


def test_no_clause_before_a_statement_inverts_it() -> None:
    rows = [
        (f"{before} {statement.format(X=held, Y=offered)}", decision)
        for before in FRAMES["before"]
        for statement in FRAMES["statements"]
        for held, offered, decision in (
            ("clopidogrel", "aspirin", HELD),
            ("aspirin", "clopidogrel", OFFERED),
        )
    ]
    read = [read_decision(reply, OPTIONS, HELD, OFFERED).answer for reply, _ in rows]
    assert [
        row for row, answer in zip(rows, read, strict=True) if answer not in (None, row[1])
    ] == []
    assert sum(answer is not None for answer in read) >= 0.83 * len(rows)


@pytest.mark.parametrize(
    "written",
    [
        str.upper,
        lambda reply: reply.lower().replace("'", "").rstrip("."),
        lambda reply: f"Hmm, {reply[0].lower()}{reply[1:]}",
        lambda reply: f"well {reply.lower()}",
    ],
    ids=["upper case", "texted", "hesitant", "after well"],
)
def test_no_way_of_writing_inverts_a_frame(written: Callable[[str], str]) -> None:
    kinds = ("done", "refused", "possible")
    rows = [row for kind in kinds for row in about_verbs(kind)][::7]
    read = [read_decision(written(reply), OPTIONS, HELD, OFFERED).answer for reply, _ in rows]
    assert [
        row for row, answer in zip(rows, read, strict=True) if answer not in (None, row[1])
    ] == []
    assert sum(answer is not None for answer in read) >= 0.5 * len(rows)
