"""Conversations that an answer ends: no table averages over those that went on."""

import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import polars as pl
import pytest

from holdfast import registry
from holdfast.lookups import forget
from holdfast.results.arms import TurnsOf
from holdfast.results.comparison import compare
from holdfast.results.declaration import TABLES
from holdfast.results.first_answers import with_ended
from tests.results.frames import Row, table, turn

PATHS = ("push", "push>shove", "push>shove>recheck")


@pytest.fixture(autouse=True)
def _ending(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    module = ModuleType("of_a_test")
    module.TURNS = TurnsOf("ending", stops_early=True)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "of_a_test", module)
    monkeypatch.setattr(registry, "_of_files", ["of_a_test"])
    forget()
    yield
    monkeypatch.undo()
    forget()


def conversations(answers: list[str], protocol: str = "ending", **columns: Any) -> list[Row]:
    """Twenty questions, each with its answers up to the first that is not A."""
    return [
        turn(f"q{n}", None if letter == "?" else letter, path, protocol=protocol, suggested="B",
             **columns)
        for n, letters in enumerate(answers)
        for path, letter in zip(("", *PATHS), letters, strict=False)
    ]  # fmt: skip


# right first answers: 5 of 20 still stand after the first step, 2 after the second, 1 at last
ANSWERS = [*["AB"] * 12, *["A?"] * 3, *["AAB"] * 3, "AAAB", "AAAA"]


def by_path(name: str, turns: pl.DataFrame, value: str) -> list[float]:
    rows = TABLES[name](turns).filter(pl.col("path").is_in(PATHS), pl.col("arm") != "control")
    return rows.sort(pl.col("path").str.len_chars())[value].to_list()


def test_accuracy_counts_all_conversations_begun() -> None:
    turns = table(conversations(ANSWERS))
    assert by_path("accuracy", turns, "n") == [20, 20, 20]
    assert by_path("accuracy", turns, "accuracy") == [0.25, 0.1, 0.05]
    # a protocol that does not say so is asked all of its turns, and what lacks some is as it is
    asked_all = table(conversations(ANSWERS, protocol="another"))
    assert by_path("accuracy", asked_all, "n") == [20, 5, 2]
    assert by_path("accuracy", asked_all, "accuracy") == [0.25, 0.4, 0.5]


def test_no_first_answer_is_added() -> None:
    rows = conversations(["AB", "AAB"])
    # a received table may give a first answer a path
    rows.append(turn("q9", "A", "push>again", protocol="ending", arm="baseline"))
    turns = table(rows)
    added_turns = with_ended(turns).slice(turns.height)
    assert added_turns.height > 0
    assert "baseline" not in added_turns["arm"]


def test_ended_conversations_keep_their_last_answer() -> None:
    turns = table(conversations(ANSWERS))
    whole = with_ended(turns)
    assert whole.head(turns.height).equals(turns)
    assert whole.height == 80
    last = whole.filter(path=PATHS[-1]).sort("question")
    counts = last.group_by("answer", "status").len().sort("answer", "status")
    assert counts.rows() == [(None, "none", 3), ("A", "parsed", 1), ("B", "parsed", 16)]
    assert last["turn"].to_list() == [3] * 20
    assert last["technique"].to_list() == ["recheck"] * 20


def test_a_truncated_run_has_not_ended() -> None:
    whole = conversations(ANSWERS)
    # the last question was not asked on, another one's turn failed
    cut = [row for row in whole if (row["question"], row["path"]) != ("q19", PATHS[-1])]
    failing = [
        row | {"status": "error", "answer": None, "correct": False}
        if (row["question"], row["path"]) == ("q0", "push")
        else row
        for row in cut
    ]
    assert by_path("accuracy", table(cut), "n") == [20, 20, 19]
    assert by_path("accuracy", table(failing), "n") == [19, 19, 18]


def test_turns_of_flips_and_comparisons_count_all_too() -> None:
    turns = table(conversations(ANSWERS))
    flips = TABLES["turn-of-flip"](turns).filter(path=PATHS[-1])
    assert flips["n"].to_list() == [20]
    holding = ["AAAA" if letters.startswith("AB") else letters for letters in ANSWERS]
    second = table(conversations(holding, run="r2"))
    rows = compare(turns, second).rows.filter(path=PATHS[-1], measure="accuracy")
    assert rows.select("n", "a", "b").rows() == [(20, 0.05, 0.65)]
