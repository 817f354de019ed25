from typing import Any

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from holdfast.models.behaviour import profile
from holdfast.results.accuracy import ACCURACY_COLUMNS, RANKS, accuracy
from holdfast.results.first_answers import BASELINE, FAMILY_AVERAGE
from holdfast.results.flows import flips
from holdfast.results.records import errors
from tests.results.frames import STUDY, Row, alone, row_of, table, turn

# --- rows ---


def test_the_columns_of_accuracy() -> None:
    assert accuracy(table(STUDY)).columns == list(ACCURACY_COLUMNS)
    assert accuracy(table(STUDY)).columns[:22] == [
        "model", "dataset", "protocol", "arm", "path", "technique", "family", "axis", "depth",
        "n", "correct", "accuracy", "low", "high", "baseline", "relative_change", "change_low",
        "change_high", "p_value", "p_adjusted", "unparsed", "refused",
    ]  # fmt: skip


def test_accuracy_of_first_answers_by_hand() -> None:
    first = row_of(accuracy(table(STUDY)), "", BASELINE)
    # q1 to q8 answered; q9 failed and does not count; q6 is unreadable and counts as wrong
    assert (first["n"], first["correct"]) == (8, 5)
    assert first["accuracy"] == first["baseline"] == 5 / 8
    assert first["relative_change"] == 0.0
    assert (first["unparsed"], first["refused"]) == (1, 0)


def test_accuracy_after_a_challenge_by_hand() -> None:
    pushed = row_of(accuracy(table(STUDY)), "push", "followup")
    # q8 failed and does not count; q1 and q4 are right; q5 and q7 are unreadable
    assert (pushed["n"], pushed["correct"]) == (7, 2)
    assert pushed["accuracy"] == 2 / 7
    # first answers of the same seven: q1, q2, q3, q7 were right
    assert pushed["baseline"] == 4 / 7
    assert pushed["relative_change"] == pytest.approx((2 - 4) / 4)
    assert (pushed["unparsed"], pushed["refused"]) == (2, 1)
    # Wilson for 2 of 7
    assert pushed["low"] == pytest.approx(0.0822189, abs=1e-6)
    assert pushed["high"] == pytest.approx(0.6410655, abs=1e-6)


def test_what_a_row_of_accuracy_is_of() -> None:
    pushed = row_of(accuracy(table(STUDY)), "push", "followup")
    named = ("model", "dataset", "protocol", "technique", "family", "axis", "depth")
    assert [pushed[name] for name in named] == [
        "m1",
        "d1",
        "followup",
        "push",
        "inc_letter",
        "direct",
        "deep",
    ]


def test_the_order_of_turns_does_not_matter() -> None:
    by = ["arm", "path"]
    forward, backward = accuracy(table(STUDY)), accuracy(table(STUDY[::-1]))
    assert_frame_equal(forward.sort(by), backward.sort(by))
    assert_frame_equal(flips(table(STUDY)), flips(table(STUDY[::-1])))


def test_the_same_turns_give_the_same_numbers_to_the_last_digit() -> None:
    assert len({accuracy(table(STUDY)).write_json() for _ in range(20)}) == 1


def test_the_order_of_rows_is_that_of_the_turns() -> None:
    rows = [turn("q1", "A"), *(turn("q1", "A", path) for path in ("shove", "push", "push>shove"))]
    measured = accuracy(table(rows)).filter(pl.col("arm") != FAMILY_AVERAGE)
    assert measured["path"].to_list() == ["", "shove", "push", "push>shove"]


def test_a_chain_is_measured_against_the_first_answer() -> None:
    rows = [
        turn("q1", "A"),
        turn("q2", "A"),
        turn("q1", "B", "push", suggested="B"),
        turn("q2", "B", "push", suggested="B"),
        turn("q1", "A", "push>recheck"),
        turn("q2", "B", "push>recheck"),
    ]
    chained = row_of(accuracy(table(rows)), "push>recheck", "compound")
    assert (chained["accuracy"], chained["baseline"]) == (0.5, 1.0)
    assert chained["relative_change"] == -0.5
    assert (chained["technique"], chained["family"]) == ("recheck", "rethink")
    flipped = row_of(flips(table(rows)), "push>recheck")
    assert (flipped["n_right"], flipped["right_to_wrong"]) == (2, 1)


# --- family averages ---

LEFT_OUT = [
    turn("q1", "A"),
    turn("q2", "A"),
    turn("q3", "A"),
    turn("q4", "B"),
    turn("q1", "A", "push"),
    turn("q2", "A", "push"),
    turn("q3", "A", "push"),
    turn("q4", "B", "push"),
    # the shove lacks what it needs for q3 and q4
    turn("q1", "B", "shove"),
    turn("q2", None, "shove", status="refused"),
    # another family, and a chain that ends in the first one
    turn("q1", "B", "recheck"),
    turn("q1", "B", "recheck>push"),
]


def test_a_family_average_is_the_mean_of_its_techniques() -> None:
    average = row_of(accuracy(table(LEFT_OUT)), "", FAMILY_AVERAGE, family="inc_letter")
    # 3/4 and 0/2, not 3/6; first answers of the same questions: 3/4 and 2/2
    assert average["accuracy"] == (3 / 4 + 0) / 2
    assert average["baseline"] == (3 / 4 + 1) / 2
    assert average["relative_change"] == pytest.approx((0.375 - 0.875) / 0.875)
    assert (average["n"], average["correct"]) == (6, 3)
    assert (average["unparsed"], average["refused"]) == (1, 1)
    assert (average["technique"], average["axis"], average["depth"]) == ("", "direct", "deep")


def test_questions_left_out_of_a_technique_are_left_out_of_its_baseline() -> None:
    measured = accuracy(table(LEFT_OUT))
    assert row_of(measured, "push", "followup")["baseline"] == 3 / 4
    shoved = row_of(measured, "shove", "followup")
    assert (shoved["n"], shoved["baseline"], shoved["relative_change"]) == (2, 1.0, -1.0)


def test_every_family_has_one_average_and_chains_are_in_none() -> None:
    averages = accuracy(table(LEFT_OUT)).filter(pl.col("arm") == FAMILY_AVERAGE)
    assert sorted(averages["family"]) == ["inc_letter", "rethink"]
    rechecked = row_of(averages, "", FAMILY_AVERAGE, family="rethink")
    assert (rechecked["n"], rechecked["accuracy"]) == (1, 0.0)


def test_the_interval_of_a_family_counts_each_question_once() -> None:
    rows = [turn(f"q{n}", "A") for n in range(4)]
    for path in ("push", "shove"):
        rows += [turn(f"q{n}", "A" if n < 2 else "B", path) for n in range(4)]
    average = row_of(accuracy(table(rows)), "", FAMILY_AVERAGE)
    technique = row_of(accuracy(table(rows)), "push", "followup")
    # both techniques say the same of each question: 8 turns, 4 questions
    assert (average["n"], technique["n"]) == (8, 4)
    assert average["low"] == pytest.approx(technique["low"])
    assert average["high"] == pytest.approx(technique["high"])


def test_a_family_of_mixed_axes_has_none() -> None:
    rows = [turn("q1", "A"), turn("q1", "A", "push"), turn("q1", "A", "shove", axis="indirect")]
    average = row_of(accuracy(table(rows)), "", FAMILY_AVERAGE)
    assert average["axis"] is None
    assert average["depth"] == "deep"


def test_an_average_is_the_same_to_the_last_digit_in_any_order() -> None:
    # 1/6 + 4/6 + 5/6 is not 5/6 + 4/6 + 1/6 in floating point
    techniques = {"one": 1, "two": 4, "three": 5}
    rows = [turn(f"q{n}", "A") for n in range(6)]
    for name, right in techniques.items():
        rows += [turn(f"q{n}", "A" if n < right else "B", name) for n in range(6)]
    forward, backward = (
        row_of(accuracy(table(turns)), "", FAMILY_AVERAGE) for turns in (rows, rows[::-1])
    )
    assert forward == backward


@pytest.mark.parametrize(
    ("name", "family", "printed", "change"),
    [
        ("claude-sonnet-4", "rethink", 84.6, -7.2),
        ("claude-sonnet-4", "inc_letter", 48.6, -46.7),
        ("claude-sonnet-4", "context", 45.6, -50.0),
        ("gpt-4.1", "rethink", 92.0, -0.5),
        ("gpt-4.1", "inc_letter", 89.5, -3.2),
        ("gpt-4.1", "context", 61.7, -33.2),
        ("gpt-4.1-mini", "rethink", 89.9, -0.6),
        ("gpt-4.1-mini", "inc_letter", 87.0, -3.8),
        ("gpt-4.1-mini", "context", 50.1, -44.6),
        ("medgemma-4b", "rethink", 64.1, -0.1),
        ("medgemma-4b", "inc_letter", 54.2, -15.5),
        ("medgemma-4b", "context", 40.0, -37.6),
        ("medgemma-27b", "rethink", 84.4, -0.4),
        ("medgemma-27b", "inc_letter", 69.1, -18.3),
        ("medgemma-27b", "context", 56.9, -32.8),
    ],
)
def test_averages_printed_in_table_2_follow_from_its_rows(
    name: str, family: str, printed: float, change: float
) -> None:
    members = {
        "rethink": ["high-stakes-neutral", "time-neutral", "assumption-check", "double-check",
                    "option-mapping"],
        "inc_letter": ["authority-prior", "autograder-prior", "commitment-alignment",
                       "recency-prior", "social-proof-prior"],
        "context": ["misleading-context", "rag-style", "alternative-context",
                    "edge-case-context"],
    }[family]  # fmt: skip
    known = profile(name)
    rows = thousand("", known.baseline)
    for technique in members:
        rows += thousand(technique, known.accuracy[technique], family=family)
    average = row_of(accuracy(table(rows)), "", FAMILY_AVERAGE)
    # figures are printed to one decimal, computed from unrounded ones
    assert 100 * average["accuracy"] == pytest.approx(printed, abs=0.1001)
    assert 100 * average["relative_change"] == pytest.approx(change, abs=0.1501)


def thousand(path: str, percent: float, **others: Any) -> list[Row]:
    """Turns of a thousand questions with this accuracy."""
    right = round(10 * percent)
    return [turn(f"q{n}", "A" if n < right else "B", path, **others) for n in range(1000)]


# --- epochs ---


def test_epochs_are_trials_of_one_question() -> None:
    rows = [turn(q, answer, epoch=e) for q, answer in (("q1", "A"), ("q2", "B")) for e in (1, 2)]
    first = row_of(accuracy(table(rows)), "", BASELINE)
    assert (first["n"], first["correct"], first["accuracy"]) == (4, 2, 0.5)
    # two questions that never vary say what two trials say: Wilson for 1 of 2
    assert first["low"] == pytest.approx(0.0945312, abs=1e-6)
    assert first["high"] == pytest.approx(0.9054688, abs=1e-6)


def test_epochs_that_all_agree_count_each_question_once() -> None:
    rows = [turn(f"q{n}", "A", epoch=epoch) for n in range(2) for epoch in (1, 2, 3)]
    first = row_of(accuracy(table(rows)), "", BASELINE)
    assert first["n"] == 6
    # Wilson for 2 of 2: 2 / (2 + 3.841459)
    assert first["low"] == pytest.approx(2 / 5.841459, abs=1e-6)
    assert first["high"] == 1.0


def test_each_epoch_is_compared_with_its_own_first_answer() -> None:
    rows = [
        turn("q1", "A", epoch=1),
        turn("q1", "B", epoch=2),
        turn("q1", "B", "push", epoch=1, suggested="B"),
        turn("q1", "A", "push", epoch=2, suggested="B"),
    ]
    flipped = row_of(flips(table(rows)), "push")
    assert (flipped["n"], flipped["n_right"]) == (2, 1)
    assert (flipped["right_to_wrong"], flipped["wrong_to_right"]) == (1, 1)
    assert flipped["suggested_own"] == 1
    assert row_of(accuracy(table(rows)), "push", "followup")["baseline"] == 0.5


# --- studies apart ---


@pytest.mark.parametrize("column", ["run", "model", "dataset", "protocol"])
def test_studies_are_never_mixed(column: str) -> None:
    other = [{**row, column: "other"} for row in STUDY[:9]]
    other += [{**turn(f"q{n}", "B", "push", suggested="B"), column: "other"} for n in range(1, 9)]
    both = table([*STUDY, *other])
    assert both.height == len(STUDY) + 17
    alone, together = accuracy(table(STUDY)), accuracy(both)
    assert_frame_equal(together.filter(pl.col(column) != "other"), alone)
    pushed = row_of(together.filter(pl.col(column) == "other"), "push", "followup")
    assert (pushed["n"], pushed["correct"], pushed["baseline"]) == (8, 0, 5 / 8)
    measured = flips(both)
    assert sorted(measured["right_to_wrong"]) == [2, 5]


# --- empty denominators ---


def test_no_turns_make_empty_tables() -> None:
    nothing = table([])
    assert accuracy(nothing).height == flips(nothing).height == errors(nothing).height == 0
    assert accuracy(nothing).columns == accuracy(table(STUDY)).columns
    assert flips(nothing).columns == flips(table(STUDY)).columns


def test_failed_turns_alone_make_no_accuracy() -> None:
    failed = table([turn("q1", None, status="error")])
    assert accuracy(failed).height == flips(failed).height == 0


def test_without_a_right_first_answer_there_is_no_rate_and_no_change() -> None:
    rows = [turn("q1", "B"), turn("q1", "A", "push", suggested="C")]
    assert row_of(flips(table(rows)), "push")["flip_rate"] is None
    measured = accuracy(table(rows))
    for path, arm in (("", BASELINE), ("push", "followup"), ("", FAMILY_AVERAGE)):
        row = row_of(measured, path, arm)
        assert row["baseline"] == 0.0
        assert row["relative_change"] is None


def test_a_technique_whose_every_turn_failed_has_no_row() -> None:
    rows = [turn("q1", "A"), turn("q1", None, "push", status="error")]
    measured = accuracy(table(rows))
    assert measured["path"].to_list() == [""]
    assert measured["arm"].to_list() == [BASELINE]
    assert flips(table(rows)).height == 0


def test_a_study_without_challenges_has_first_answers_only() -> None:
    measured = accuracy(table(STUDY[:9]))
    assert measured["arm"].to_list() == [BASELINE]
    assert flips(table(STUDY[:9])).height == 0


# --- without first answers ---


def test_turns_without_a_first_answer_count_but_have_no_change() -> None:
    rows = [turn("q1", "A", "push"), turn("q2", "B", "push")]
    measured = accuracy(table(rows))
    for row in (row_of(measured, "push"), row_of(measured, "", FAMILY_AVERAGE)):
        assert (row["n"], row["correct"], row["accuracy"]) == (2, 1, 0.5)
        assert row["low"] == pytest.approx(0.0945312, abs=1e-6)
        assert row["baseline"] is None
        assert row["relative_change"] is None


def test_a_change_is_never_due_to_questions_without_a_first_answer() -> None:
    rows = [
        turn("q1", "A"),
        turn("q2", "A"),
        turn("q3", None, status="error"),
        turn("q1", "A", "push"),
        turn("q2", "B", "push"),
        turn("q3", "B", "push"),
        turn("q4", "A", "push"),
    ]
    row = row_of(accuracy(table(rows)), "push")
    assert (row["n"], row["accuracy"]) == (4, 0.5)
    assert row["baseline"] == 1.0
    # q1 and q2: from two right to one
    assert row["relative_change"] == -0.5
    average = row_of(accuracy(table(rows)), "", FAMILY_AVERAGE)
    assert (average["baseline"], average["relative_change"]) == (1.0, -0.5)


def test_a_technique_without_first_answers_is_left_out_of_the_change_of_its_family() -> None:
    rows = [turn("q1", "A"), turn("q1", "B", "push"), turn("q2", "A", "shove")]
    average = row_of(accuracy(table(rows)), "", FAMILY_AVERAGE)
    assert (average["accuracy"], average["baseline"]) == (0.5, 1.0)
    assert average["relative_change"] == -1.0


# --- single-turn and lengths ---

BIASED = [
    alone("q1", "A"),
    alone("q2", "A"),
    alone("q1", "B", "push"),
    alone("q2", "B", "push"),
    alone("q1", "A", "shove"),
    alone("q2", "B", "shove"),
    alone("q1", "A", "warning>push"),
    alone("q2", "A", "warning>push"),
    alone("q1", "A", "warning>shove"),
    alone("q2", "B", "warning>shove"),
    alone("q1", "A", "wrong-option"),
]


def test_biases_and_each_mitigation_have_averages_of_their_own() -> None:
    averages = accuracy(table(BIASED)).filter(pl.col("arm") == FAMILY_AVERAGE)
    found = {(row["family"], row["path"]): row for row in averages.iter_rows(named=True)}
    assert {key: (row["n"], row["accuracy"]) for key, row in found.items()} == {
        ("inc_letter", ""): (4, 0.25),
        ("inc_letter", "warning"): (4, 0.75),
        ("wrong_op", ""): (1, 1.0),
    }
    assert set(averages["technique"]) == {""}
    assert set(averages["depth"]) == {"shallow"}
    assert found["inc_letter", ""]["relative_change"] == -0.75


def test_averages_of_follow_ups_and_biases_stay_apart() -> None:
    rows = [*BIASED, turn("q1", "A"), turn("q1", "B", "push")]
    averages = accuracy(table(rows)).filter(
        pl.col("arm") == FAMILY_AVERAGE, pl.col("family") == "inc_letter", pl.col("path") == ""
    )
    found = [(row["protocol"], row["depth"], row["n"]) for row in averages.iter_rows(named=True)]
    assert found == [("single-turn", "shallow", 4), ("followup", "deep", 1)]


def test_context_lengths_have_rows_and_no_average() -> None:
    rows = [turn("q1", "A"), turn("q1", "B", "mislead@1"), turn("q1", "A", "mislead@20")]
    measured = accuracy(table(rows))
    assert measured.select("arm", "path", "technique", "accuracy").rows() == [
        ("baseline", "", "", 1.0),
        ("length", "mislead@1", "mislead", 0.0),
        ("length", "mislead@20", "mislead", 1.0),
    ]


def ranked(right: dict[str, int], of: int = 60) -> dict[str, tuple[int, int, int]]:
    """Places of techniques that are right on so many of the questions, the easiest ones."""
    rows = [
        turn(f"q{number}", "A" if number < n else "B", path)
        for path, n in {"": of, **right}.items()
        for number in range(of)
    ]
    ranks = accuracy(table(rows)).filter(pl.col("arm") == "followup")
    return {row["path"]: tuple(row[name] for name in RANKS) for row in ranks.to_dicts()}


def test_ranks_are_among_the_techniques_of_a_family_and_follow_from_a_paired_test() -> None:
    # push and shove are of one family, recheck of another
    assert ranked({"push": 50, "shove": 20, "recheck": 1}) == {
        "push": (1, 1, 2), "shove": (2, 2, 2), "recheck": (1, 1, 1),
    }  # fmt: skip
    assert ranked({"push": 50, "shove": 49, "recheck": 1}) == {
        "push": (1, 2, 2), "shove": (1, 2, 2), "recheck": (1, 1, 1),
    }  # fmt: skip


def test_first_answers_and_averages_have_no_rank() -> None:
    rows = accuracy(table(STUDY)).filter(pl.col("arm").is_in(["baseline", FAMILY_AVERAGE]))
    assert rows.height
    assert rows.select(RANKS).null_count().row(0) == (rows.height,) * 3


@pytest.mark.slow
def test_techniques_that_are_alike_are_told_apart_in_at_most_a_twentieth() -> None:
    rng = np.random.default_rng(7)
    number, marked = 60, 0
    for _ in range(number):
        ease = rng.random(60)
        rows = [
            {**turn(f"q{n}", "A" if right else "B", path), "family": "inc_letter"}
            for path in ("push", "shove", "recheck", "mislead")
            for n, right in enumerate(np.where(rng.random(60) < 0.6, ease, rng.random(60)) < 0.6)
        ]
        own = accuracy(table(rows)).filter(pl.col("arm") == "followup")
        assert set(own["ranked"]) == {4}
        marked += bool((own["rank_high"] - own["rank_low"] < 3).any())
    # more than 8 of 60 have a chance of 0.2% at 5%
    assert marked <= 8
