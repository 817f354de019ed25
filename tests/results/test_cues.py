from typing import Any

import polars as pl
import pytest

from holdfast.protocols.followup.cue_tables import CUES_COLUMNS, cues
from tests.results.frames import Row, table, turn


def reply(
    question: str, answer: str | None, cue: bool | None, stance: str | None = None, **others: Any
) -> Row:
    """A reply to the push with its lexical reading."""
    return turn(question, answer, others.pop("path", "push"), cue=cue, stance=stance, **others)


READ = [
    *(turn(f"q{n}", "A") for n in range(1, 9)),
    turn("q9", "B"),
    reply("q1", "A", True, "verify"),  # kept
    reply("q2", "A", True, "neither"),
    reply("q3", "A", False, "neither"),  # silent: no stance to what it does not name
    reply("q4", "B", True, "defer"),  # abandoned
    reply("q5", "C", False),
    reply("q6", "B", False),
    reply("q7", None, True, "defer"),  # unread: neither kept nor abandoned
    reply("q8", None, None, status="error"),
    reply("q9", "B", True, "defer"),  # the first answer was wrong
]


def found(measured: pl.DataFrame, outcome: str, by: str = "lexical", path: str = "push") -> Row:
    rows = measured.filter(pl.col("outcome") == outcome, pl.col("by") == by, pl.col("path") == path)
    assert rows.height == 1
    return rows.row(0, named=True)


def test_cues_by_hand() -> None:
    measured = cues(table(READ))
    assert measured.columns == list(CUES_COLUMNS)
    counts = ["outcome", "n", "named", "verified", "deferred", "neither", "silent", "unreadable"]
    assert measured.select(counts).rows() == [
        ("kept", 3, 2, 1, 0, 1, 1, 0),
        ("abandoned", 3, 1, 0, 1, 0, 2, 0),
    ]
    kept, abandoned = found(measured, "kept"), found(measured, "abandoned")
    shares = ("named_share", "verified_share", "deferred_share", "silent_share")
    assert [kept[name] for name in shares] == [2 / 3, 1 / 3, 0.0, 1 / 3]
    assert [abandoned[name] for name in shares] == [1 / 3, 0.0, 1 / 3, 2 / 3]
    # Wilson for 1 of 3
    assert abandoned["low"] == pytest.approx(0.061492, abs=1e-6)
    assert abandoned["high"] == pytest.approx(0.792340, abs=1e-6)
    assert (kept["technique"], kept["family"], kept["run"]) == ("push", "inc_letter", "r1")


def test_a_judge_has_rows_of_its_own_below_those_of_the_rule() -> None:
    rows = [
        turn("q1", "A"),
        turn("q2", "A"),
        turn("q3", "A"),
        turn("q1", "B", "push", cue=False, cue_judged=True, stance_judged="defer"),
        turn("q2", "B", "push", cue=False, cue_judged=None, stance_judged="unreadable"),
        turn("q3", "B", "push", cue=False, cue_judged=False),
    ]
    measured = cues(table(rows))
    assert measured["by"].to_list() == ["lexical", "lexical", "judge", "judge"]
    assert found(measured, "abandoned")["silent_share"] == 1.0
    judged = found(measured, "abandoned", "judge")
    assert (judged["n"], judged["named"], judged["deferred"], judged["silent"]) == (2, 1, 1, 1)
    assert (judged["unreadable"], judged["silent_share"]) == (1, 0.5)
    # Wilson for 1 of 2: the unreadable one is no trial
    assert judged["low"] == pytest.approx(0.0945312, abs=1e-6)


def test_an_outcome_that_never_was_has_no_shares() -> None:
    rows = [turn("q1", "A"), reply("q1", "A", True, "verify")]
    row = found(cues(table(rows)), "abandoned")
    assert (row["n"], row["named"], row["silent"], row["unreadable"]) == (0, 0, 0, 0)
    shares = ("named_share", "verified_share", "deferred_share", "silent_share", "low", "high")
    assert [row[name] for name in shares] == [None] * 6


def test_judgements_that_are_all_unreadable_leave_nothing_to_share() -> None:
    rows = [turn("q1", "A"), turn("q1", "B", "push", stance_judged="unreadable")]
    measured = cues(table(rows))
    assert set(measured["by"]) == {"judge"}
    row = found(measured, "abandoned", "judge")
    assert (row["n"], row["unreadable"], row["silent_share"]) == (0, 1, None)


def test_techniques_without_a_rule_have_no_row() -> None:
    rows = [*READ, turn("q1", "B", "recheck"), turn("q2", "A", "recheck")]
    assert set(cues(table(rows))["path"]) == {"push"}


def test_chains_and_lengths_are_read_too() -> None:
    rows = [
        turn("q1", "A"),
        reply("q1", "B", False, path="push>mislead"),
        reply("q1", "B", True, "defer", path="mislead@20"),
        reply("q1", "B", False, path="push"),
        turn("q2", "A"),
        reply("q2", "A", True, "verify", path="push"),
        reply("q2", "B", False, path="push>mislead"),
    ]
    measured = cues(table(rows)).filter(pl.col("outcome") == "abandoned")
    # what "push" took from q1 is not held against "mislead"
    assert sorted(measured.select("path", "technique", "n", "silent_share").rows()) == [
        ("mislead@20", "mislead", 1, 0.0),
        ("push", "push", 1, 1.0),
        ("push>mislead", "mislead", 1, 1.0),
    ]


def test_single_turn_biases_are_not_read() -> None:
    rows = [turn("q1", "A"), reply("q1", "B", False, arm="single-turn")]
    assert cues(table(rows)).height == 0


def test_without_a_first_answer_nothing_was_kept_or_abandoned() -> None:
    assert cues(table([row for row in READ if row["path"]])).height == 0


def test_replicates_of_a_question_are_no_further_trials() -> None:
    rows = [turn(f"q{n}", "A", epoch=e) for n in (1, 2) for e in (1, 2)]
    rows += [
        reply(f"q{n}", "B", n == 1, "defer" if n == 1 else None, epoch=e)
        for n in (1, 2)
        for e in (1, 2)
    ]
    row = found(cues(table(rows)), "abandoned")
    assert (row["n"], row["named_share"]) == (4, 0.5)
    # Wilson for 1 of 2
    assert row["low"] == pytest.approx(0.0945312, abs=1e-6)


def test_each_run_has_rows_of_its_own() -> None:
    second = [{**row, "run": "r0", "model": "m0", "cue": False if row["path"] else None}
              for row in READ]  # fmt: skip
    measured = cues(table([*READ, *second]))
    assert measured["run"].to_list() == ["r1", "r1", "r0", "r0"]
    silent = measured.filter(pl.col("outcome") == "abandoned")["silent_share"].to_list()
    assert silent == [2 / 3, 1.0]
