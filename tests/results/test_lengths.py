import polars as pl

from holdfast.results.accuracy import accuracy
from holdfast.results.strata import LENGTHS_COLUMNS, lengths
from tests.results.frames import row_of, table, turn

LONG = [
    turn("q1", "A"),
    turn("q2", "A"),
    turn("q3", "B"),
    # 20 before 1: as other settings order them
    turn("q1", "B", "mislead@20"),
    turn("q2", "B", "mislead@20"),
    turn("q3", None, "mislead@20", status="refused"),
    turn("q1", "A", "mislead@1"),
    turn("q2", "B", "mislead@1"),
    turn("q3", None, "mislead@1", status="error"),
    turn("q1", "A", "recheck@10", family="context"),
    # neither the usual length nor chains
    turn("q1", "A", "mislead"),
    turn("q1", "A", "push>mislead"),
]


def test_lengths_by_hand() -> None:
    measured = lengths(table(LONG))
    assert measured.columns == list(LENGTHS_COLUMNS)
    assert measured["sentences"].dtype == pl.Int64
    columns = ["technique", "sentences", "n", "correct", "accuracy", "baseline",
               "relative_change", "unparsed", "refused"]  # fmt: skip
    assert measured.select(columns).rows() == [
        ("mislead", 1, 2, 1, 0.5, 1.0, -0.5, 0, 0),
        ("mislead", 20, 3, 0, 0.0, 2 / 3, -1.0, 1, 1),
        ("recheck", 10, 1, 1, 1.0, 1.0, 0.0, 0, 0),
    ]
    assert set(measured["family"]) == {"context"}


def test_the_interval_is_that_of_accuracy() -> None:
    row = lengths(table(LONG)).row(0, named=True)
    same = row_of(accuracy(table(LONG)), "mislead@1", "length")
    assert (row["low"], row["high"]) == (same["low"], same["high"])
    # Wilson for 1 of 2
    assert abs(row["low"] - 0.0945312) < 1e-6


def test_runs_stand_one_after_the_other() -> None:
    second = [{**row, "run": "r0", "model": "m0"} for row in LONG]
    turn_by_turn = [row for pair in zip(LONG, second, strict=True) for row in pair]
    for rows in ([*LONG, *second], turn_by_turn):
        assert lengths(table(rows))["run"].to_list() == ["r1"] * 3 + ["r0"] * 3


def test_lengths_without_first_answers_have_an_accuracy_and_no_change() -> None:
    (row,) = lengths(table(LONG[3:4])).to_dicts()
    assert (row["n"], row["accuracy"]) == (1, 0.0)
    assert row["baseline"] is row["relative_change"] is None
