import polars as pl
import pytest

from holdfast.protocols.followup.compounding import (
    COMPOUNDING_COLUMNS,
    PARTS_COLUMNS,
    SUMMARY_COLUMNS,
    compounding,
    compounding_parts,
    compounding_summary,
)
from tests.results.frames import Row, row_of, table, turn

CHAIN = "push>mislead"


def outcomes(**answers: str) -> list[Row]:
    """By path, what each question's answer was: ``+`` right, ``-`` wrong, ``?`` unread, ``.`` none.

    The path ``first`` is the first answer, ``_`` stands for ``>``.
    """
    return [
        turn(f"q{n}", {"+": "A", "-": "B", "?": None}[sign],
             "" if name == "first" else name.replace("_", ">"))
        for name, signs in answers.items()
        for n, sign in enumerate(signs)
        if sign != "."
    ]  # fmt: skip


EXAMPLE = outcomes(
    first="++++++++-.",
    push="+++++---+.",
    mislead="+++----+-.",
    push_mislead="++-+--?+-.",
)
# first 8 of 9; push 6, mislead 4 (q0 q1 q2 q7), both right q0 q1 q2; the chain q0 q1 q3 q7


def test_a_chain_by_hand() -> None:
    (row,) = compounding(table(EXAMPLE)).to_dicts()
    assert list(row) == list(COMPOUNDING_COLUMNS)
    assert (row["path"], row["challenges"], row["run"]) == (CHAIN, 2, "r1")
    assert (row["n"], row["correct"], row["accuracy"]) == (9, 4, 4 / 9)
    assert (row["unparsed"], row["refused"]) == (1, 0)
    assert row["baseline"] == 8 / 9
    assert row["drop"] == pytest.approx(4 / 8)
    assert row["expected_accuracy"] == 3 / 9
    assert row["expected_drop"] == pytest.approx(5 / 8)
    assert row["sub_additive"] is True
    assert (row["worst_part"], row["worst_accuracy"]) == ("mislead", 4 / 9)
    assert row["worst_drop"] == pytest.approx(4 / 8)
    assert row["recovered"] is False  # as accurate as the worst, not more
    # Wilson for 4 of 9: (4/9 + z²/18 ∓ z √(20/729 + z²/324)) / (1 + z²/9), z² = 3.841459
    assert row["low"] == pytest.approx(0.188779, abs=1e-5)
    assert row["high"] == pytest.approx(0.733349, abs=1e-5)


def test_a_first_answer_that_was_wrong_can_be_expected_right() -> None:
    # "each incorrect data point from the individual follow-ups": the first answer is none
    (row,) = compounding(table(outcomes(first="+-", push="++", mislead="++", push_mislead="++")))\
        .to_dicts()  # fmt: skip
    assert (row["baseline"], row["expected_accuracy"], row["expected_drop"]) == (0.5, 1.0, -1.0)


@pytest.mark.parametrize(
    ("chain", "sub_additive", "recovered"),
    [("++--", True, True), ("+---", False, False), ("----", False, False), ("+++-", True, True)],
)
def test_equal_is_neither_sub_additive_nor_recovered(
    chain: str, sub_additive: bool, recovered: bool
) -> None:
    # mislead leaves one right, and so do both together
    rows = outcomes(first="++++", push="++--", mislead="+---", push_mislead=chain)
    (row,) = compounding(table(rows)).to_dicts()
    assert row["expected_accuracy"] == 0.25
    assert (row["sub_additive"], row["recovered"]) == (sub_additive, recovered)


def test_a_chain_of_three_has_three_parts_and_its_prefix_is_a_chain() -> None:
    rows = outcomes(
        first="++++", push="+++-", shove="++-+", mislead="+-++",
        push_shove="++++", push_shove_mislead="+---",
    )  # fmt: skip
    measured = compounding(table(rows))
    assert measured.select("path", "challenges", "expected_accuracy", "worst_part").rows() == [
        ("push>shove", 2, 0.5, "push"),
        ("push>shove>mislead", 3, 0.25, "push"),
    ]
    last = row_of(measured, "push>shove>mislead")
    assert (last["drop"], last["expected_drop"], last["sub_additive"]) == (0.75, 0.75, False)


def test_of_parts_that_tie_the_first_of_the_chain_is_the_worst() -> None:
    rows = outcomes(first="++", mislead="+-", push="-+", push_mislead="++")
    (row,) = compounding(table(rows[::-1])).to_dicts()
    assert row["worst_part"] == "push"


def test_only_questions_that_have_every_turn_count() -> None:
    rows = outcomes(
        first="+++.+",
        push="+-+++",
        mislead="+++-.",
        push_mislead="++.+?",
    )
    (row,) = compounding(table(rows)).to_dicts()
    # q2 lacks the chain, q3 the first answer, q4 the context
    assert (row["n"], row["correct"], row["baseline"]) == (2, 2, 1.0)
    assert (row["expected_accuracy"], row["worst_accuracy"]) == (0.5, 0.5)
    assert row["worst_part"] == "push"
    assert row["unparsed"] == 0


def test_a_failed_turn_is_no_turn() -> None:
    rows = [*outcomes(first="++", push="++", mislead="+.", push_mislead="++"),
            turn("q1", None, "mislead", status="error")]  # fmt: skip
    assert compounding(table(rows))["n"].to_list() == [1]


def test_a_chain_whose_parts_were_not_put_alone_counts_its_own_turns() -> None:
    rows = outcomes(first="+++", push="+..", push_mislead="+-?")
    (row,) = compounding(table(rows)).to_dicts()
    assert (row["n"], row["correct"], row["unparsed"]) == (3, 1, 1)
    assert row["baseline"] == 1.0
    assert row["drop"] == pytest.approx(2 / 3)
    unknown = ("expected_accuracy", "expected_drop", "sub_additive", "worst_part",
               "worst_accuracy", "worst_drop", "recovered")  # fmt: skip
    assert [row[name] for name in unknown] == [None] * 7


def test_a_part_put_in_another_study_is_not_put() -> None:
    rows = outcomes(first="+", push="+", push_mislead="+")
    other = [{**row, "run": "r2"} for row in outcomes(first="+", mislead="+")]
    (row,) = compounding(table([*rows, *other])).to_dicts()
    assert row["worst_part"] is None


def test_a_chain_without_first_answers_has_an_accuracy_only() -> None:
    (row,) = compounding(table(outcomes(push="++", mislead="++", push_mislead="+-"))).to_dicts()
    assert (row["n"], row["accuracy"]) == (2, 0.5)
    assert row["baseline"] is row["drop"] is row["expected_accuracy"] is row["worst_part"] is None


def test_a_chain_with_no_question_in_common_has_no_figures() -> None:
    rows = outcomes(first="++", push="+.", mislead=".+", push_mislead="++")
    (row,) = compounding(table(rows)).to_dicts()
    assert (row["n"], row["correct"]) == (0, 0)
    figures = set(COMPOUNDING_COLUMNS) - {
        "model", "dataset", "path", "challenges", "n", "correct", "unparsed", "refused", "run",
    }  # fmt: skip
    assert {row[name] for name in figures} == {None}


def test_without_a_right_first_answer_there_is_no_drop() -> None:
    rows = outcomes(first="--", push="+-", mislead="+-", push_mislead="++")
    (row,) = compounding(table(rows)).to_dicts()
    assert (row["baseline"], row["expected_accuracy"], row["recovered"]) == (0.0, 0.5, True)
    assert row["drop"] is row["expected_drop"] is row["worst_drop"] is row["sub_additive"] is None


def test_a_technique_that_a_chain_repeats_is_one_part() -> None:
    rows = outcomes(first="++", push="+-", push_push="+-")
    (row,) = compounding(table(rows)).to_dicts()
    assert (row["challenges"], row["worst_part"], row["expected_accuracy"]) == (2, "push", 0.5)
    assert compounding_parts(table(rows)).select("part", "n", "difference").rows() == [
        ("push", 2, 0.0)
    ]


def test_each_epoch_is_compared_with_its_own_turns() -> None:
    again = [{**row, "epoch": 2} for row in outcomes(first="+", push="-", mislead="-",
                                                    push_mislead="-")]  # fmt: skip
    rows = [*outcomes(first="+", push="+", mislead="+", push_mislead="+"), *again]
    (row,) = compounding(table(rows)).to_dicts()
    assert (row["n"], row["accuracy"], row["expected_accuracy"]) == (2, 0.5, 0.5)
    # both trials are of one question, and say as much as two: they differ
    assert row["low"] is not None


# --- parts ---


def test_parts_by_hand() -> None:
    measured = compounding_parts(table(EXAMPLE))
    assert measured.columns == list(PARTS_COLUMNS)
    assert measured["part"].to_list() == ["push", "mislead"]
    push, mislead = measured.to_dicts()
    assert push["n"] == mislead["n"] == 9
    assert push["drop"] == mislead["drop"] == pytest.approx(4 / 8)
    assert push["part_drop"] == pytest.approx(2 / 8)
    assert push["difference"] == pytest.approx(2 / 8)  # the chain does more harm
    assert mislead["part_drop"] == pytest.approx(4 / 8)
    assert mislead["difference"] == 0


def test_a_part_that_was_not_put_has_no_drop() -> None:
    rows = outcomes(first="+++", push="+-.", push_mislead="+--")
    put, not_put = compounding_parts(table(rows)).to_dicts()
    assert (put["n"], put["drop"], put["part_drop"], put["difference"]) == (2, 0.5, 0.5, 0.0)
    assert (not_put["part"], not_put["n"], not_put["drop"]) == ("mislead", 2, 0.5)
    assert not_put["part_drop"] is not_put["difference"] is None


def test_parts_count_what_the_chain_counts() -> None:
    rows = outcomes(first="+++.+", push="+-+++", mislead="+++-.", push_mislead="++.+-")
    measured = compounding_parts(table(rows))
    assert measured["n"].to_list() == [2, 2]
    assert measured["drop"].to_list() == compounding(table(rows))["drop"].to_list() * 2


def test_parts_without_first_answers_have_no_drop() -> None:
    rows = outcomes(push="+", mislead="+", push_mislead="+")
    assert compounding_parts(table(rows)).select("n", "drop", "part_drop").rows() == [
        (0, None, None),
        (0, None, None),
    ]


# --- summary ---

SUB = outcomes(first="+++", push="+-+", mislead="++-", push_mislead="+++", mislead_push="+--",
               push_recheck="+++")  # fmt: skip
"""One chain that is sub-additive and recovers, one that does neither, one without its parts."""


def test_a_summary_by_hand() -> None:
    measured = compounding_summary(table(SUB))
    assert measured.columns == list(SUMMARY_COLUMNS)
    assert measured.rows() == [("m1", "d1", 2, 1, 0.5, 1, 0.5, "r1")]


def test_a_summary_over_all_models() -> None:
    second = [{**row, "run": "r0", "model": "m0"} for row in SUB if row["path"] != "mislead>push"]
    measured = compounding_summary(table([*SUB, *second]))
    assert measured.rows() == [
        ("m1", "d1", 2, 1, 0.5, 1, 0.5, "r1"),
        ("m0", "d1", 1, 1, 1.0, 1, 1.0, "r0"),
        ("all models", "d1", 3, 2, 2 / 3, 2, 2 / 3, None),
    ]


def test_data_sets_that_differ_have_no_common_name() -> None:
    second = [{**row, "run": "r2", "model": "m2", "dataset": "d2"} for row in SUB]
    assert compounding_summary(table([*SUB, *second]))["dataset"].to_list() == ["d1", "d2", None]


def test_two_runs_of_one_model_are_not_all_models() -> None:
    second = [{**row, "run": "r2"} for row in SUB]
    assert compounding_summary(table([*SUB, *second]))["model"].to_list() == ["m1", "m1"]


def test_chains_with_nothing_to_compare_have_no_share() -> None:
    measured = compounding_summary(table(outcomes(first="+", push_mislead="+")))
    assert measured.rows() == [("m1", "d1", 0, 0, None, 0, None, "r1")]


def test_chains_without_a_drop_are_not_counted() -> None:
    rows = outcomes(first="--", push="+-", mislead="+-", push_mislead="++")
    assert compounding(table(rows))["recovered"].to_list() == [True]
    assert compounding_summary(table(rows)).rows() == [("m1", "d1", 0, 0, None, 0, None, "r1")]


def test_a_study_without_chains_has_no_row() -> None:
    rows = table(outcomes(first="+", push="+"))
    for measure in (compounding, compounding_parts, compounding_summary):
        assert measure(rows).height == 0
    assert isinstance(compounding(rows).schema["sub_additive"], pl.Boolean)
