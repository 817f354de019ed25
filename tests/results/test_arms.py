"""What protocols declare of their turns, and what shared measures make of it."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast import registry
from holdfast.lookups import forget
from holdfast.results.accuracy import accuracy
from holdfast.results.arms import TurnsOf, turns_of
from holdfast.results.comparison import outcomes
from holdfast.results.records import sent_otherwise
from holdfast.transcripts.dialogues import dialogues
from tests.results.frames import Row, table, turn

OUTSIDE = """
import polars as pl
from holdfast.results.arms import TurnsOf

def kept(turns):
    own = turns.filter(pl.col("protocol") == "asking", pl.col("arm") == "again")
    return own.with_columns(measure=pl.lit("kept"), hit=pl.col("correct"), path=pl.lit(""))

TURNS = TurnsOf(
    "asking",
    apart={"helper": "of a helper"},
    helpers=("helper",),
    continues={"again": "before"},
    plain=("before",),
    outcomes=kept,
)
"""


@pytest.fixture
def asking(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A module of somebody else that declares the turns of a protocol."""
    (tmp_path / "asking.py").write_text(OUTSIDE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "asking", raising=False)
    modules = (*registry.declaring(), "asking")
    monkeypatch.setattr("holdfast.results.arms.declaring", lambda: modules)
    forget()
    yield
    forget()


def put(arm: str, at: int = 0, protocol: str = "asking", **columns: Any) -> Row:
    return turn("q1", "A", protocol=protocol, **columns) | {"arm": arm, "turn": at}


def test_a_protocol_that_declares_nothing_has_plain_turns() -> None:
    assert turns_of("nobody's") == TurnsOf("nobody's")


@pytest.mark.usefixtures("asking")
def test_declarations_of_a_package_hold_for_its_protocol() -> None:
    turns = table([put("helper"), put("helper", protocol="others"), put("control")])
    rows = accuracy(turns).select("protocol", "arm").rows()
    assert rows == [("others", "helper"), ("asking", "control")]
    turns = table([put("control", protocol="medfuzz"), put("control")])
    assert accuracy(turns)["protocol"].to_list() == ["asking"]
    settings = [put(arm, sent_otherwise="seed") for arm in ("helper", "before", "again")]
    assert sent_otherwise(table(settings))["n"].to_list() == [2]


@pytest.mark.usefixtures("asking")
def test_a_comparison_uses_the_protocols_outcomes() -> None:
    turns = table([put("before"), put("again", 1), put("helper"), put("again", protocol="others")])
    rows = outcomes(turns).select("protocol", "measure", "arm", "hit").rows()
    assert rows == [
        ("asking", "accuracy", "before", True),
        ("others", "accuracy", "again", True),
        ("asking", "kept", "again", True),
    ]


@pytest.mark.usefixtures("asking")
def test_an_arm_continues_the_one_its_protocol_names() -> None:
    rows = [put("before"), put("other"), put("again", 1, path="x>y"), put("helper", 1)]
    assert dialogues(table(rows)).before == [None, None, 0, None]
