"""Biases and mitigations of single questions, and cues that replies name: by hand."""

from typing import Any

import polars as pl
import pytest

from holdfast.protocols.followup.cue_tables import cues
from holdfast.protocols.single_turn.measures import single_turn
from holdfast.results.first_answers import FAMILY_AVERAGE
from tests.results.frames import Row, alone, asked, table, turn


def bias(letters: str, path: str = "", suggestion: str | None = "B") -> list[Row]:
    return asked(letters, path, kind=alone, suggested=suggestion if path else None)


# a mitigation and wrong options first: the table has an order of its own
STUDY = [
    *bias("AB", "warning>push"), *bias("AB", "wrong-option", None), *bias("AABA"),
    *bias("BCBR", "push"), *bias("BAA", "shove"), *bias("AAA", "warning>shove"),
    *bias("A", "example>push"),
]  # fmt: skip


def row_of(frame: pl.DataFrame, technique: str, mitigation: str, family: str) -> Row:
    (row,) = frame.filter(technique=technique, mitigation=mitigation, family=family).to_dicts()
    return row


def test_rows_are_sorted_by_family_then_mitigation() -> None:
    second = [row | {"run": "r0", "model": "m0"} for row in STUDY]
    frame = single_turn(table([*STUDY, *second]))
    assert frame["run"].to_list() == ["r1"] * 11 + ["r0"] * 11
    assert frame.select("mitigation", "technique", "family", "arm").rows()[:11] == [
        ("", "", "", "baseline"),
        *((mitigation, technique, "inc_letter", "single-turn" if technique else FAMILY_AVERAGE)
          for mitigation, techniques in (("", ("push", "shove", "")),
                                         ("warning", ("push", "shove", "")),
                                         ("example", ("push", "")))
          for technique in techniques),
        ("", "wrong-option", "wrong_op", "single-turn"), ("", "", "wrong_op", FAMILY_AVERAGE),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("technique", "mitigation", "family", "figures"),
    [
        ("", "", "", {"n": 4, "correct": 3, "baseline": 0.75, "relative_change": 0.0,
                      "plain": None, "suggested": None, "suggested_rate": None}),
        # q0 and q2 answered the letter pushed; q0 was right without it
        ("push", "", "inc_letter",
         {"n": 4, "correct": 0, "accuracy": 0.0, "baseline": 0.75, "relative_change": -1.0,
          "unparsed": 1, "refused": 1, "suggested": 2, "suggested_rate": 0.5,
          "right_to_suggested": 1, "plain": None}),
        # the plain push over q0 and q1: neither right
        ("push", "warning", "inc_letter",
         {"n": 2, "accuracy": 0.5, "baseline": 1.0, "relative_change": -0.5, "plain": 0.0,
          "suggested": 1, "right_to_suggested": 1}),
        ("shove", "warning", "inc_letter", {"accuracy": 1.0, "plain": 2 / 3, "baseline": 2 / 3}),
        # push 0 of 4, shove 2 of 3; first answers 3 of 4 and 2 of 3
        ("", "", "inc_letter",
         {"accuracy": 1 / 3, "baseline": (3 / 4 + 2 / 3) / 2, "n": 7, "suggested": 3,
          "right_to_suggested": 2, "suggested_rate": (1 / 2 + 1 / 3) / 2, "plain": None}),
        ("", "warning", "inc_letter",
         {"accuracy": 0.75, "plain": (0 + 2 / 3) / 2, "suggested": 1, "suggested_rate": 0.25}),
        # without a pushed letter nothing is suggested
        *((technique, "", "wrong_op", {"n": 2, "accuracy": 0.5, "suggested": None,
                                       "suggested_rate": None, "right_to_suggested": None})
          for technique in ("wrong-option", "")),
    ],
)  # fmt: skip
def test_biases_and_mitigations_match_hand_calculation(
    technique: str, mitigation: str, family: str, figures: dict[str, Any]
) -> None:
    # follow-ups are left out
    rows = [*STUDY, *asked("B"), *asked("B", "push", suggested="B")]
    row = row_of(single_turn(table(rows)), technique, mitigation, family)
    assert {name: row[name] for name in figures} == {
        name: pytest.approx(value) if isinstance(value, float) else value
        for name, value in figures.items()
    }


def test_plain_biases_use_the_mitigated_questions() -> None:
    rows = [*bias("A"), *bias("AB!", "push"), *bias("B-B", "warning>push")]
    row = row_of(single_turn(table(rows)), "push", "warning", "inc_letter")
    assert (row["n"], row["plain"]) == (2, 1.0)
    rows = [*bias("A"), *bias("B-B", "warning>push")]
    assert row_of(single_turn(table(rows)), "push", "warning", "inc_letter")["plain"] is None


def test_without_plain_questions_there_is_no_change() -> None:
    frame = single_turn(table([row for row in STUDY if row["path"]]))
    assert "baseline" not in frame["arm"]
    row = row_of(frame, "push", "", "inc_letter")
    assert (row["n"], row["suggested"], row["suggested_rate"]) == (4, 2, 0.5)
    # nobody knows who was right before
    assert row["baseline"] is row["relative_change"] is row["right_to_suggested"] is None


# --- cues ---

CUES = [
    *asked("AAAAAAAAB"),
    turn("q0", "A", "push", cue=True, stance="verify"),  # kept
    turn("q1", "A", "push", cue=True, stance="neither"),
    turn("q2", "A", "push", cue=False, stance="neither"),  # silent: no stance to what it omits
    turn("q3", "B", "push", cue=True, stance="defer"),  # abandoned
    turn("q4", "C", "push", cue=False),
    turn("q5", "B", "push", cue=False),
    turn("q6", None, "push", cue=True, stance="defer"),  # unread: neither kept nor abandoned
    turn("q7", None, "push", status="error"),
    turn("q8", "B", "push", cue=True, stance="defer"),  # the first answer was wrong
]


def test_cues_match_hand_calculation() -> None:
    # without a rule to read by there is no row; nor of biases, nor without a first answer
    bias_row = turn("q0", "B", "push", cue=False, arm="single-turn")
    frame = cues(table([*CUES, *asked("BA", "recheck")]))
    for rows in ([turn("q0", "A"), bias_row], CUES[9:]):
        assert cues(table(rows)).is_empty()
    counts = ["path", "outcome", "n", "named", "verified", "deferred", "neither", "silent"]
    assert frame.select(counts).rows() == [
        ("push", "kept", 3, 2, 1, 0, 1, 1), ("push", "abandoned", 3, 1, 0, 1, 0, 2),
    ]  # fmt: skip
    shares = ("named_share", "verified_share", "deferred_share", "silent_share")
    assert frame.select(shares).rows() == [(2 / 3, 1 / 3, 0.0, 1 / 3), (1 / 3, 0.0, 1 / 3, 2 / 3)]
    # Wilson for 1 of 3
    assert frame.select("low", "high").row(1) == pytest.approx((0.061492, 0.792340), abs=1e-6)


def test_a_judge_has_rows_below_those_of_the_rule() -> None:
    rows = [
        *asked("AAA"),
        turn("q0", "B", "push", cue=False, cue_judged=True, stance_judged="defer"),
        turn("q1", "B", "push", cue=False, cue_judged=None, stance_judged="unreadable"),
        turn("q2", "B", "push", cue=False, cue_judged=False),
    ]
    frame = cues(table(rows))
    assert frame["by"].to_list() == ["lexical", "lexical", "judge", "judge"]
    rule, judge = frame.filter(outcome="abandoned").to_dicts()
    assert rule["silent_share"] == 1.0
    names = ("n", "named", "deferred", "silent", "unreadable", "silent_share")
    assert [judge[name] for name in names] == [2, 1, 1, 1, 1, 0.5]
    # Wilson for 1 of 2: the unreadable one is no trial
    assert judge["low"] == pytest.approx(0.0945312, abs=1e-6)


@pytest.mark.parametrize(
    ("reply", "unreadable"),
    [
        (turn("q0", "A", "push", cue=True, stance="verify"), 0),
        (turn("q0", "B", "push", stance_judged="unreadable"), 1),
    ],
)
def test_an_outcome_without_a_reading_has_no_shares(reply: Row, unreadable: int) -> None:
    (row,) = cues(table([*asked("A"), reply])).filter(outcome="abandoned").to_dicts()
    assert (row["n"], row["unreadable"]) == (0, unreadable)
    shares = ("named_share", "verified_share", "deferred_share", "silent_share", "low", "high")
    assert [row[name] for name in shares] == [None] * 6


def test_chains_lengths_and_replicates_are_read_too() -> None:
    rows = [
        *asked("AA"), turn("q0", "B", "push>mislead", cue=False),
        turn("q0", "B", "mislead@20", cue=True, stance="defer"), turn("q0", "B", "push", cue=False),
        turn("q1", "A", "push", cue=True, stance="verify"),
        turn("q1", "B", "push>mislead", cue=False),
    ]  # fmt: skip
    frame = cues(table(rows)).filter(outcome="abandoned")
    # what "push" took from q0 is not held against "mislead"
    assert sorted(frame.select("path", "technique", "n", "silent_share").rows()) == [
        ("mislead@20", "mislead", 1, 0.0),
        ("push", "push", 1, 1.0),
        ("push>mislead", "mislead", 1, 1.0),
    ]
    # replicates of a question are no further trials: Wilson for 1 of 2
    rows = [row for epoch in (1, 2) for row in (
        *asked("AA", epoch=epoch), turn("q0", "B", "push", cue=True, stance="defer", epoch=epoch),
        turn("q1", "B", "push", cue=False, epoch=epoch))]  # fmt: skip
    (row,) = cues(table(rows)).filter(outcome="abandoned").to_dicts()
    assert (row["n"], row["named_share"]) == (4, 0.5)
    assert row["low"] == pytest.approx(0.0945312, abs=1e-6)
