"""Replies in pairs of opposite meaning, and replies in wording that the rules were not made for."""

import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.reading.answers import extract_answer
from holdfast.reading.decisions import read_decision

FOLDER = Path(__file__).parent
PAIRS: dict[str, Any] = tomllib.loads((FOLDER / "minimal_pairs.toml").read_text("utf-8"))
WRITTEN: dict[str, Any] = tomllib.loads((FOLDER / "written_replies.toml").read_text("utf-8"))
SETTINGS = PAIRS.pop("settings") | WRITTEN.pop("settings")


def replies() -> Iterator[tuple[str, str, str, str]]:
    for group, pairs in PAIRS.items():
        for setting, *sides in pairs:
            yield from ((group, setting, label, reply) for label, reply in sides)
    for group, rows in WRITTEN.items():
        yield from ((f"written {group}", *row) for row in rows)


def read(setting: str, reply: str) -> str:
    known = SETTINGS[setting]
    is_decision = "held_letter" in known
    read_reply = read_decision if is_decision else extract_answer
    return read_reply(reply, **known).answer or "none"


def test_no_reply_gets_a_wrong_letter() -> None:
    wrong = [row for row in replies() if read(row[1], row[3]) not in (row[2], "none")]
    assert not wrong


@pytest.mark.parametrize(
    ("group", "at_least"),
    [
        ("comparatives", 74),
        ("abstentions", 72),
        ("standing", 79),
        ("written decisions", 41),
        ("written abstentions", 22),
        ("written standing", 23),
        ("written forms", 46),
        ("written denials", 130),
    ],
)
def test_most_replies_are_read_as_labelled(group: str, at_least: int) -> None:
    of_group = [row for row in replies() if row[0] == group]
    assert sum(read(setting, reply) == label for _, setting, label, reply in of_group) >= at_least


def test_each_pair_has_two_meanings_and_each_kind_forty_pairs() -> None:
    assert Counter(map(len, PAIRS.values())) == {40: 3}
    assert all(first[0] != second[0] for group in PAIRS.values() for _, first, second in group)
