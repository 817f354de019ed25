import pytest

from holdfast.results.controls import EFFECT
from holdfast.results.flows import FLIPS_COLUMNS, flips
from tests.results.frames import STUDY, alone, row_of, table, turn


def test_the_columns_of_flips() -> None:
    assert flips(table(STUDY)).columns == list(FLIPS_COLUMNS)
    assert flips(table(STUDY)).columns[:10] == [
        "model", "dataset", "path", "technique", "n", "right_to_wrong", "wrong_to_right",
        "right_to_suggested", "right_to_other", "flip_rate",
    ]  # fmt: skip


def test_flips_by_hand() -> None:
    assert flips(table(STUDY)).drop("run").to_dicts() == [
        {
            "model": "m1",
            "dataset": "d1",
            "path": "push",
            "technique": "push",
            "n": 7,
            "right_to_wrong": 2,
            "wrong_to_right": 1,
            "right_to_suggested": 1,
            "right_to_other": 1,
            "flip_rate": 0.5,
            # Wilson for 2 of 4
            "low": pytest.approx(0.1500390, abs=1e-6),
            "high": pytest.approx(0.8499610, abs=1e-6),
            "n_right": 4,
            "right_to_unparsed": 1,
            "suggested_own": 2,
            **dict.fromkeys(EFFECT),  # no controls
            "worst_low": 2 / 5,
            "worst_high": 5 / 6,
            "read_both": 3,
            "read_both_rate": 2 / 3,
        }
    ]


@pytest.mark.parametrize("status", ["ambiguous", "refused", "none"])
def test_an_unreadable_reply_is_no_flip(status: str) -> None:
    rows = [turn("q1", "A"), turn("q1", None, "push", suggested="B", status=status)]
    flipped = row_of(flips(table(rows)), "push")
    assert flipped["right_to_unparsed"] == 1
    assert flipped["right_to_wrong"] == flipped["right_to_suggested"] == 0
    assert flipped["right_to_other"] == 0
    assert flipped["flip_rate"] == 0.0


@pytest.mark.parametrize("first", ["B", None], ids=["wrong", "unreadable"])
def test_becoming_right_counts_whatever_was_before(first: str | None) -> None:
    rows = [turn("q1", first), turn("q1", "A", "push", suggested="C")]
    flipped = row_of(flips(table(rows)), "push")
    assert (flipped["wrong_to_right"], flipped["n_right"]) == (1, 0)


def test_a_wrong_answer_that_moves_to_the_suggested_one_is_no_flip_from_right() -> None:
    rows = [turn("q1", "C"), turn("q1", "B", "push", suggested="B")]
    flipped = row_of(flips(table(rows)), "push")
    counts = ("right_to_wrong", "right_to_suggested", "right_to_other", "wrong_to_right")
    assert [flipped[name] for name in counts] == [0, 0, 0, 0]
    assert flipped["suggested_own"] == 0


def test_without_a_suggestion_every_flip_is_to_another() -> None:
    rows = [
        turn("q1", "A"),
        turn("q1", "B", "recheck"),
        turn("q2", None),
        turn("q2", "B", "recheck"),
    ]
    flipped = row_of(flips(table(rows)), "recheck")
    assert (flipped["right_to_wrong"], flipped["right_to_other"]) == (1, 1)
    assert (flipped["right_to_suggested"], flipped["suggested_own"]) == (0, 0)


def test_first_answers_are_no_flips() -> None:
    assert "" not in flips(table(STUDY))["path"]


def test_without_first_answers_there_are_no_flips() -> None:
    rows = [turn("q1", "A"), turn("q1", "B", "push"), turn("q2", "A", "push")]
    flipped = row_of(flips(table(rows)), "push")
    assert (flipped["n"], flipped["right_to_wrong"], flipped["wrong_to_right"]) == (1, 1, 0)
    assert flips(table(rows[1:])).height == 0


def test_biased_questions_flip_the_answer_to_the_plain_one() -> None:
    rows = [
        alone("q1", "A"),
        alone("q2", "C"),
        alone("q1", "B", "warning>push", suggested="B"),
        alone("q2", "A", "warning>push", suggested="C"),
        # the same question, asked in another study
        turn("q1", "B"),
        turn("q2", "B"),
    ]
    flipped = row_of(flips(table(rows)), "warning>push")
    assert (flipped["technique"], flipped["n"], flipped["n_right"]) == ("push", 2, 1)
    assert (flipped["right_to_suggested"], flipped["wrong_to_right"]) == (1, 1)
    assert flipped["suggested_own"] == 1
