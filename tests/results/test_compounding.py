"""Chains and their parts: by hand, and on studies without any effect."""

from typing import Any

import polars as pl
import pytest

from holdfast.protocols.followup.compounding import (
    compounding,
    compounding_parts,
    compounding_summary,
)
from tests.results.frames import Row, asked, row_of, table, turn
from tests.results.frames import control as unchallenged
from tests.results.nulls import studies


def outcomes(**signs: str) -> list[Row]:
    """By path, what each question's answer was: ``+`` right, ``-`` wrong, ``?`` unread, ``.`` none.

    The path ``first`` is the first answer, ``_`` stands for ``>``.
    """
    letters = str.maketrans("+-.", "AB-")
    return [
        row
        for name, text in signs.items()
        for row in asked(text.translate(letters), "" if name == "first" else name.replace("_", ">"))
    ]


def only(rows: list[Row]) -> Row:
    (row,) = compounding(table(rows)).to_dicts()
    return row


EXAMPLE = outcomes(
    first="++++++++-.", push="+++++---+.", mislead="+++----+-.", push_mislead="++-+--?+-.",
)  # fmt: skip
# first 8 of 9; push 6, mislead 4 (q0 q1 q2 q7), both right q0 q1 q2; the chain q0 q1 q3 q7
PREDICTIONS = ("expected_accuracy", "expected_drop", "smaller_drop", "sub_additive", "worst_part",
            "worst_accuracy", "worst_drop", "recovered")  # fmt: skip


def test_a_chain_matches_hand_calculation() -> None:
    row = only(EXAMPLE)
    assert {name: row[name] for name in ("path", "challenges", "n", "correct", "unparsed")} == {
        "path": "push>mislead", "challenges": 2, "n": 9, "correct": 4, "unparsed": 1,
    }  # fmt: skip
    assert (row["accuracy"], row["baseline"], row["drop"]) == pytest.approx((4 / 9, 8 / 9, 4 / 8))
    assert (row["expected_accuracy"], row["expected_drop"]) == pytest.approx((3 / 9, 5 / 8))
    assert (row["worst_part"], row["worst_accuracy"], row["worst_drop"]) == (
        "mislead", 4 / 9, pytest.approx(4 / 8),
    )  # fmt: skip
    assert row["smaller_drop"] is True
    # no controls, and too few questions for a test
    assert row["sub_additive"] is row["expected_kept"] is row["recovered"] is None
    # Wilson for 4 of 9: (4/9 + z²/18 ∓ z √(20/729 + z²/324)) / (1 + z²/9), z² = 3.841459
    assert (row["low"], row["high"]) == pytest.approx((0.188779, 0.733349), abs=1e-5)
    # of each part: the chain does more harm than the push
    parts = compounding_parts(table(EXAMPLE)).select("part", "n", "drop", "part_drop", "difference")
    assert parts.rows() == [
        ("push", 9, pytest.approx(4 / 8), pytest.approx(2 / 8), pytest.approx(2 / 8)),
        ("mislead", 9, pytest.approx(4 / 8), pytest.approx(4 / 8), pytest.approx(0)),
    ]


@pytest.mark.parametrize(
    ("chain", "smaller"), [("++--", True), ("+---", False), ("----", False), ("+++-", True)]
)
def test_an_equal_drop_is_not_a_smaller_one(chain: str, smaller: bool) -> None:
    # mislead leaves one right, and so do both together
    row = only(outcomes(first="++++", push="++--", mislead="+---", push_mislead=chain))
    assert (row["expected_accuracy"], row["smaller_drop"]) == (0.25, smaller)


def test_a_chain_of_three_has_three_parts_and_its_prefix_is_a_chain() -> None:
    rows = outcomes(first="++++", push="+++-", shove="++-+", mislead="+-++",
                    push_shove="++++", push_shove_mislead="+---")  # fmt: skip
    frame = compounding(table(rows))
    assert frame.select("path", "challenges", "expected_accuracy", "worst_part").rows() == [
        ("push>shove", 2, 0.5, "push"),
        ("push>shove>mislead", 3, 0.25, "push"),
    ]
    chain = row_of(frame, "push>shove>mislead")
    assert (chain["drop"], chain["expected_drop"], chain["smaller_drop"]) == (0.75, 0.75, False)


@pytest.mark.parametrize(
    ("rows", "figures"),
    [
        # of parts that tie the first of the chain is the worst
        (outcomes(first="++", mislead="+-", push="-+", push_mislead="++")[::-1],
         {"worst_part": "push"}),
        # "each incorrect data point from the individual follow-ups": the first answer is none
        (outcomes(first="+-", push="++", mislead="++", push_mislead="++"),
         {"baseline": 0.5, "expected_accuracy": 1.0, "expected_drop": -1.0}),
        # only questions with every turn count: q2 lacks the chain, q3 the first answer, q4 mislead
        (outcomes(first="+++.+", push="+-+++", mislead="+++-.", push_mislead="++.+?"),
         {"n": 2, "correct": 2, "baseline": 1.0, "expected_accuracy": 0.5, "worst_accuracy": 0.5,
          "worst_part": "push", "unparsed": 0}),
        # and a failed turn is none
        ([*outcomes(first="++", push="++", mislead="+.", push_mislead="++"),
          turn("q1", None, "mislead", status="error")], {"n": 1}),
        # where a part was not put alone, the chain's turns count by themselves
        (outcomes(first="+++", push="+..", push_mislead="+-?"),
         {"n": 3, "correct": 1, "unparsed": 1, "baseline": 1.0, "drop": pytest.approx(2 / 3),
          **dict.fromkeys(PREDICTIONS)}),
        # nor was it where it was put in another study
        ([*outcomes(first="+", push="+", push_mislead="+"),
          *(row | {"run": "r2"} for row in outcomes(first="+", mislead="+"))],
         {"worst_part": None}),
        # without first answers there is an accuracy only
        (outcomes(push="++", mislead="++", push_mislead="+-"),
         {"n": 2, "accuracy": 0.5, "baseline": None, "drop": None, **dict.fromkeys(PREDICTIONS)}),
        # and without a question in common nothing
        (outcomes(first="++", push="+.", mislead=".+", push_mislead="++"),
         {"n": 0, "correct": 0, "accuracy": None, "low": None, "baseline": None, "drop": None,
          **dict.fromkeys(PREDICTIONS)}),
        # without a right first answer there is no drop
        (outcomes(first="--", push="+-", mislead="+-", push_mislead="++"),
         {"baseline": 0.0, "expected_accuracy": 0.5, "accuracy": 1.0, "drop": None,
          "expected_drop": None, "worst_drop": None, "smaller_drop": None}),
        # a technique that a chain repeats is one part
        (outcomes(first="++", push="+-", push_push="+-"),
         {"challenges": 2, "worst_part": "push", "expected_accuracy": 0.5}),
        # each epoch is held against its turns
        ([*outcomes(first="+", push="+", mislead="+", push_mislead="+"),
          *(row | {"epoch": 2} for row in
            outcomes(first="+", push="-", mislead="-", push_mislead="-"))],
         {"n": 2, "accuracy": 0.5, "expected_accuracy": 0.5}),
    ],
)  # fmt: skip
def test_chains_count_complete_conversations(rows: list[Row], figures: dict[str, Any]) -> None:
    row = only(rows)
    assert {name: row[name] for name in figures} == figures


@pytest.mark.parametrize(
    ("rows", "parts"),
    [
        (outcomes(first="+++", push="+-.", push_mislead="+--"),
         [("push", 2, 0.5, 0.5, 0.0), ("mislead", 2, 0.5, None, None)]),
        # parts count what the chain counts
        (outcomes(first="+++.+", push="+-+++", mislead="+++-.", push_mislead="++.+-"),
         [("push", 2, 0.0, 0.5, -0.5), ("mislead", 2, 0.0, 0.0, 0.0)]),
        (outcomes(push="+", mislead="+", push_mislead="+"),
         [("push", 0, None, None, None), ("mislead", 0, None, None, None)]),
        (outcomes(first="++", push="+-", push_push="+-"), [("push", 2, 0.5, 0.5, 0.0)]),
    ],
)  # fmt: skip
def test_parts_count_complete_conversations(rows: list[Row], parts: list[tuple[Any, ...]]) -> None:
    frame = compounding_parts(table(rows))
    assert frame.select("part", "n", "drop", "part_drop", "difference").rows() == parts


def test_a_study_without_chains_has_no_row() -> None:
    turns = table(outcomes(first="+", push="+"))
    for measure in (compounding, compounding_parts, compounding_summary):
        assert measure(turns).is_empty()


# --- summary ---

# one chain with a smaller drop than expected, one with an equal one, one without its parts
SUB = outcomes(first="+++", push="+-+", mislead="++-", push_mislead="+++", mislead_push="+--",
               push_recheck="+++")  # fmt: skip


def test_a_summary_is_by_model_and_over_all_of_them() -> None:
    second = [row | {"run": "r0", "model": "m0"} for row in SUB if row["path"] != "mislead>push"]
    assert compounding_summary(table([*SUB, *second])).rows() == [
        ("m1", "d1", 2, 1, 0.5, *[None] * 4, "r1"),
        ("m0", "d1", 1, 1, 1.0, *[None] * 4, "r0"),
        ("all models", "d1", 3, 2, 2 / 3, *[None] * 4, None),
    ]
    # two runs of one model are not all models, and two data sets have no common name
    second = [row | {"run": "r2"} for row in SUB]
    assert compounding_summary(table([*SUB, *second]))["model"].to_list() == ["m1", "m1"]
    second = [row | {"run": "r2", "model": "m2", "dataset": "d2"} for row in SUB]
    assert compounding_summary(table([*SUB, *second]))["dataset"].to_list() == ["d1", "d2", None]
    # chains without parts or without a drop are not counted
    for rows in (
        outcomes(first="+", push_mislead="+"),
        outcomes(first="--", push="+-", mislead="+-", push_mislead="++"),
    ):
        assert compounding_summary(table(rows)).rows() == [("m1", "d1", 0, *[None] * 6, "r1")]


# --- beyond noise ---


def with_controls(**signs: str) -> list[Row]:
    """Twenty answers, right at first everywhere, with kept controls."""
    paths = ("resample", "restate", "restate>restate")
    controls = [row for path in paths for row in asked("A" * 20, path, kind=unchallenged)]
    return outcomes(first="+" * 20, **signs) + controls


HALVES = {"push": "+" * 12 + "-" * 8, "mislead": "-" * 8 + "+" * 12}


def test_a_chain_is_expected_to_keep_what_every_part_keeps() -> None:
    row = only(with_controls(**HALVES, push_mislead="+" * 20))
    assert (row["kept"], row["expected_kept"]) == (1.0, 4 / 20)
    assert row["sub_additive"] is row["recovered"] is True
    assert row["sub_additive_p"] < 0.001
    # paired with either part, eight gained and none lost: twice 2 / 2 ** 8
    assert row["recovered_p"] == pytest.approx(2 * 2 / 2**8)
    (row,) = compounding_summary(table(with_controls(**HALVES, push_mislead="+" * 20))).to_dicts()
    assert (row["sub_additive"], row["sub_additive_share"]) == (1, 1.0)
    assert (row["recovered"], row["recovered_share"]) == (1, 1.0)


@pytest.mark.parametrize(
    ("signs", "share_kept", "expected_kept", "p"),
    [
        ({**HALVES, "push_mislead": "-" * 8 + "+" * 4 + "-" * 8}, 4 / 20, 4 / 20, (0.999, 1)),
        # a chain that takes more than its parts let expect
        ({"push": "+" * 20, "mislead": "+" * 20, "push_mislead": "+" * 5 + "-" * 15}, 0.25, 1.0,
         (0, 0.001)),
    ],
)  # fmt: skip
def test_a_chain_that_keeps_no_more_is_not_sub_additive(
    signs: dict[str, str], share_kept: float, expected_kept: float, p: tuple[float, float]
) -> None:
    row = only(with_controls(**signs))
    assert (row["kept"], row["expected_kept"]) == (share_kept, expected_kept)
    assert (row["sub_additive"], row["recovered"]) == (False, False)
    assert p[0] <= row["sub_additive_p"] <= p[1]


def test_controls_raise_the_expectation_under_noise() -> None:
    rows = with_controls(push="+-" * 10, mislead="++--" * 5, push_mislead="+" * 10 + "-" * 10)
    noisy = [
        row | {"answer": "B", "correct": False}
        if row["arm"] == "control" and int(row["question"][1:]) >= 10
        else row
        for row in rows
    ]
    # both parts keep 5 of 20; one control keeps half, two together as well
    assert only(noisy)["expected_kept"] == pytest.approx(5 / 20)
    with_resamples = [
        row | {"answer": "A", "correct": True}
        if row["path"] == "resample" and row["question"] in {"q12", "q13"}
        else row
        for row in noisy
    ]
    assert only(with_resamples)["expected_kept"] == pytest.approx(5 / 20)


SLOW_SIZES = [pytest.param(2_000, size, marks=pytest.mark.slow) for size in (60, 200, 1273)]


@pytest.mark.parametrize(("number", "questions"), [(200, 60), *SLOW_SIZES])
def test_null_studies_are_rarely_labelled(number: int, questions: int) -> None:
    frame = compounding(studies(number, questions, chain=True))
    assert frame.height == number
    words = frame.select((pl.col("sub_additive") | pl.col("recovered")).mean()).item()
    # 5% and what so many studies leave to chance (99%)
    assert words <= 0.05 + 2.58 * (0.05 * 0.95 / number) ** 0.5
    smaller, share_kept, expected_kept = (
        frame.select(pl.col(name).mean()).item()
        for name in ("smaller_drop", "kept", "expected_kept")
    )
    assert smaller > 0.95  # by the paper's count nearly all do
    assert share_kept == pytest.approx(expected_kept, abs=0.04)
