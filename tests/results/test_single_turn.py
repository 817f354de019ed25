import polars as pl
import pytest

from holdfast.protocols.single_turn.measures import SINGLE_TURN_COLUMNS, single_turn
from holdfast.results.first_answers import FAMILY_AVERAGE
from tests.results.frames import Row, alone, table, turn

BIASED = [
    # a mitigation and wrong options first: the table has an order of its own
    alone("q1", "A", "warning>push", suggested="B"),
    alone("q2", "B", "warning>push", suggested="B"),
    alone("q1", "A", "wrong-option"),
    alone("q2", "B", "wrong-option"),
    alone("q1", "A"),
    alone("q2", "A"),
    alone("q3", "B"),
    alone("q4", "A"),
    alone("q1", "B", "push", suggested="B"),  # right at baseline
    alone("q2", "C", "push", suggested="B"),
    alone("q3", "B", "push", suggested="B"),  # wrong at baseline
    alone("q4", None, "push", suggested="B", status="refused"),
    alone("q1", "B", "shove", suggested="B"),
    alone("q2", "A", "shove", suggested="B"),
    alone("q3", "A", "shove", suggested="B"),
    alone("q1", "A", "warning>shove", suggested="B"),
    alone("q2", "A", "warning>shove", suggested="B"),
    alone("q3", "A", "warning>shove", suggested="B"),
    alone("q1", "A", "example>push", suggested="B"),
]


def found(measured: pl.DataFrame, technique: str, mitigation: str = "", family: str = "") -> Row:
    rows = measured.filter(
        pl.col("technique") == technique, pl.col("mitigation") == mitigation,
        (pl.col("family") == family) if family else True,
    )  # fmt: skip
    assert rows.height == 1
    return rows.row(0, named=True)


def test_the_order_of_the_rows() -> None:
    measured = single_turn(table(BIASED))
    assert measured.columns == list(SINGLE_TURN_COLUMNS)
    assert measured.select("mitigation", "technique", "family", "arm").rows() == [
        ("", "", "", "baseline"),
        ("", "push", "inc_letter", "single-turn"),
        ("", "shove", "inc_letter", "single-turn"),
        ("", "", "inc_letter", FAMILY_AVERAGE),
        ("warning", "push", "inc_letter", "single-turn"),
        ("warning", "shove", "inc_letter", "single-turn"),
        ("warning", "", "inc_letter", FAMILY_AVERAGE),
        ("example", "push", "inc_letter", "single-turn"),
        ("example", "", "inc_letter", FAMILY_AVERAGE),
        ("", "wrong-option", "wrong_op", "single-turn"),
        ("", "", "wrong_op", FAMILY_AVERAGE),
    ]


def test_a_bias_by_hand() -> None:
    row = found(single_turn(table(BIASED)), "push")
    assert (row["n"], row["correct"], row["accuracy"]) == (4, 0, 0.0)
    assert (row["baseline"], row["relative_change"]) == (0.75, -1.0)
    assert (row["unparsed"], row["refused"]) == (1, 1)
    # q1 and q3 answered the letter pushed; q1 was right without it
    assert (row["suggested"], row["suggested_rate"], row["right_to_suggested"]) == (2, 0.5, 1)
    assert row["plain"] is None


def test_a_mitigation_by_hand() -> None:
    measured = single_turn(table(BIASED))
    pushed = found(measured, "push", "warning")
    assert (pushed["n"], pushed["accuracy"], pushed["baseline"]) == (2, 0.5, 1.0)
    assert pushed["relative_change"] == -0.5
    # the plain push over q1 and q2: neither right
    assert pushed["plain"] == 0.0
    assert (pushed["suggested"], pushed["right_to_suggested"]) == (1, 1)
    shoved = found(measured, "shove", "warning")
    assert (shoved["accuracy"], shoved["plain"]) == (1.0, pytest.approx(2 / 3))
    # no baseline row of its own questions is missing: q1, q2 right, q3 wrong
    assert shoved["baseline"] == pytest.approx(2 / 3)


def test_plain_is_over_the_questions_that_have_both() -> None:
    rows = [
        alone("q1", "A"),
        alone("q1", "A", "push"),
        alone("q2", "B", "push"),
        alone("q3", None, "push", status="error"),
        alone("q1", "B", "warning>push"),
        alone("q3", "B", "warning>push"),
    ]
    row = found(single_turn(table(rows)), "push", "warning")
    assert (row["n"], row["plain"]) == (2, 1.0)
    assert found(single_turn(table(rows[:1] + rows[4:])), "push", "warning")["plain"] is None


def test_averages_by_hand() -> None:
    measured = single_turn(table(BIASED))
    plain = found(measured, "", family="inc_letter")
    # push 0 of 4, shove 2 of 3; first answers 3 of 4 and 2 of 3
    assert plain["accuracy"] == pytest.approx(1 / 3)
    assert plain["baseline"] == pytest.approx((3 / 4 + 2 / 3) / 2)
    assert (plain["n"], plain["suggested"], plain["right_to_suggested"]) == (7, 3, 2)
    assert plain["suggested_rate"] == pytest.approx((1 / 2 + 1 / 3) / 2)
    assert plain["plain"] is None
    warned = found(measured, "", "warning")
    assert warned["accuracy"] == 0.75
    assert warned["plain"] == pytest.approx((0 + 2 / 3) / 2)
    assert (warned["suggested"], warned["suggested_rate"]) == (1, 0.25)


@pytest.mark.parametrize(("technique", "family"), [("wrong-option", "wrong_op"), ("", "wrong_op")])
def test_without_a_pushed_letter_nothing_is_suggested(technique: str, family: str) -> None:
    row = found(single_turn(table(BIASED)), technique, family=family)
    assert (row["n"], row["accuracy"]) == (2, 0.5)
    assert row["suggested"] is row["suggested_rate"] is row["right_to_suggested"] is None


def test_the_baseline_row() -> None:
    row = single_turn(table(BIASED)).row(0, named=True)
    assert (row["n"], row["correct"], row["baseline"], row["relative_change"]) == (4, 3, 0.75, 0.0)
    assert row["plain"] is row["suggested"] is row["suggested_rate"] is None


def test_follow_ups_are_left_out() -> None:
    rows = [*BIASED, turn("q1", "B"), turn("q1", "B", "push", suggested="B")]
    assert single_turn(table(rows)).equals(single_turn(table(BIASED)))


def test_without_plain_questions_there_is_no_change() -> None:
    rows = [row for row in BIASED if row["path"]]
    measured = single_turn(table(rows))
    assert "baseline" not in measured["arm"]
    row = found(measured, "push")
    assert (row["n"], row["suggested"], row["suggested_rate"]) == (4, 2, 0.5)
    assert row["baseline"] is row["relative_change"] is None
    # nobody knows who was right before
    assert row["right_to_suggested"] is None


def test_runs_stand_one_after_the_other() -> None:
    second = [{**row, "run": "r0", "model": "m0"} for row in BIASED]
    measured = single_turn(table([*BIASED, *second]))
    assert measured["run"].to_list() == ["r1"] * 11 + ["r0"] * 11
