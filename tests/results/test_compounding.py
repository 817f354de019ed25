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
from tests.results.frames import Row, control, row_of, table, turn
from tests.results.nulls import studies

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
    assert row["smaller_drop"] is True
    assert row["sub_additive"] is row["expected_kept"] is None  # no controls
    assert (row["worst_part"], row["worst_accuracy"]) == ("mislead", 4 / 9)
    assert row["worst_drop"] == pytest.approx(4 / 8)
    assert row["recovered"] is None  # too few questions for a test
    # Wilson for 4 of 9: (4/9 + z²/18 ∓ z √(20/729 + z²/324)) / (1 + z²/9), z² = 3.841459
    assert row["low"] == pytest.approx(0.188779, abs=1e-5)
    assert row["high"] == pytest.approx(0.733349, abs=1e-5)


def test_a_first_answer_that_was_wrong_can_be_expected_right() -> None:
    # "each incorrect data point from the individual follow-ups": the first answer is none
    (row,) = compounding(table(outcomes(first="+-", push="++", mislead="++", push_mislead="++")))\
        .to_dicts()  # fmt: skip
    assert (row["baseline"], row["expected_accuracy"], row["expected_drop"]) == (0.5, 1.0, -1.0)


@pytest.mark.parametrize(
    ("chain", "smaller"), [("++--", True), ("+---", False), ("----", False), ("+++-", True)]
)
def test_an_equal_drop_is_no_smaller_one(chain: str, smaller: bool) -> None:
    # mislead leaves one right, and so do both together
    rows = outcomes(first="++++", push="++--", mislead="+---", push_mislead=chain)
    (row,) = compounding(table(rows)).to_dicts()
    assert row["expected_accuracy"] == 0.25
    assert row["smaller_drop"] is smaller


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
    assert (last["drop"], last["expected_drop"], last["smaller_drop"]) == (0.75, 0.75, False)


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
    unknown = ("expected_accuracy", "expected_drop", "smaller_drop", "sub_additive", "worst_part",
               "worst_accuracy", "worst_drop", "recovered")  # fmt: skip
    assert [row[name] for name in unknown] == [None] * 8


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
    assert (row["baseline"], row["expected_accuracy"], row["accuracy"]) == (0.0, 0.5, 1.0)
    assert row["drop"] is row["expected_drop"] is row["worst_drop"] is row["smaller_drop"] is None


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
"""One chain with a smaller drop than expected, one with an equal one, one without its parts."""


def test_a_summary_by_hand() -> None:
    measured = compounding_summary(table(SUB))
    assert measured.columns == list(SUMMARY_COLUMNS)
    assert measured.rows() == [("m1", "d1", 2, 1, 0.5, *[None] * 4, "r1")]


def test_a_summary_over_all_models() -> None:
    second = [{**row, "run": "r0", "model": "m0"} for row in SUB if row["path"] != "mislead>push"]
    measured = compounding_summary(table([*SUB, *second]))
    assert measured.rows() == [
        ("m1", "d1", 2, 1, 0.5, *[None] * 4, "r1"),
        ("m0", "d1", 1, 1, 1.0, *[None] * 4, "r0"),
        ("all models", "d1", 3, 2, 2 / 3, *[None] * 4, None),
    ]


def test_data_sets_that_differ_have_no_common_name() -> None:
    second = [{**row, "run": "r2", "model": "m2", "dataset": "d2"} for row in SUB]
    assert compounding_summary(table([*SUB, *second]))["dataset"].to_list() == ["d1", "d2", None]


def test_two_runs_of_one_model_are_not_all_models() -> None:
    second = [{**row, "run": "r2"} for row in SUB]
    assert compounding_summary(table([*SUB, *second]))["model"].to_list() == ["m1", "m1"]


def test_a_summary_counts_what_the_tests_say() -> None:
    more = controlled(push="+" * 12 + "-" * 8, mislead="-" * 8 + "+" * 12, push_mislead="+" * N)
    (row,) = compounding_summary(table(more)).to_dicts()
    assert (row["chains"], row["sub_additive"], row["sub_additive_share"]) == (1, 1, 1.0)
    assert (row["recovered"], row["recovered_share"]) == (1, 1.0)


def test_chains_with_nothing_to_compare_have_no_share() -> None:
    measured = compounding_summary(table(outcomes(first="+", push_mislead="+")))
    assert measured.rows() == [("m1", "d1", 0, *[None] * 6, "r1")]


def test_chains_without_a_drop_are_not_counted() -> None:
    rows = outcomes(first="--", push="+-", mislead="+-", push_mislead="++")
    assert compounding_summary(table(rows)).rows() == [("m1", "d1", 0, *[None] * 6, "r1")]


def test_a_study_without_chains_has_no_row() -> None:
    rows = table(outcomes(first="+", push="+"))
    for measure in (compounding, compounding_parts, compounding_summary):
        assert measure(rows).height == 0
    assert isinstance(compounding(rows).schema["sub_additive"], pl.Boolean)


# --- beyond noise ---

N = 20


def controlled(**signs: str) -> list[Row]:
    """Answers as in ``outcomes``, right at first everywhere, with kept controls."""
    rows = outcomes(first="+" * N, **signs)
    names = {f"q{n}" for n in range(N)}
    return rows + [
        control(name, "A", path)
        for name in sorted(names)
        for path in ("resample", "restate", "restate>restate")
    ]


def test_without_noise_a_chain_is_expected_to_keep_what_every_part_keeps() -> None:
    rows = controlled(push="+" * 12 + "-" * 8, mislead="-" * 8 + "+" * 12, push_mislead="+" * N)
    (row,) = compounding(table(rows)).to_dicts()
    assert (row["kept"], row["expected_kept"]) == (1.0, 4 / 20)
    assert row["sub_additive"] is row["recovered"] is True
    assert row["sub_additive_p"] < 0.001
    # paired with either part, eight gained and none lost: twice 2 / 2 ** 8
    assert row["recovered_p"] == pytest.approx(2 * 2 / 2**8)


def test_what_the_parts_let_expect_is_neither() -> None:
    rows = controlled(push="+" * 12 + "-" * 8, mislead="-" * 8 + "+" * 12,
                      push_mislead="-" * 8 + "+" * 4 + "-" * 8)  # fmt: skip
    (row,) = compounding(table(rows)).to_dicts()
    assert row["kept"] == row["expected_kept"] == 4 / 20
    assert (row["sub_additive"], row["recovered"]) == (False, False)
    assert row["sub_additive_p"] == pytest.approx(1.0)


def test_a_chain_that_takes_more_is_not_sub_additive() -> None:
    rows = controlled(push="+" * N, mislead="+" * N, push_mislead="+" * 5 + "-" * 15)
    (row,) = compounding(table(rows)).to_dicts()
    assert (row["kept"], row["expected_kept"]) == (0.25, 1.0)
    assert row["sub_additive_p"] < 0.001
    assert row["sub_additive"] is False


def test_the_controls_raise_what_noise_alone_lets_expect() -> None:
    rows = controlled(push="+-" * 10, mislead="++--" * 5, push_mislead="+" * 10 + "-" * 10)
    half = {f"q{n}" for n in range(10)}
    kept = [row if row["question"] in half or row["arm"] != "control" else
            row | {"answer": "B", "correct": False} for row in rows]  # fmt: skip
    (row,) = compounding(table(kept)).to_dicts()
    # both parts keep 5 of 20; one control keeps half, two together as well
    assert row["expected_kept"] == pytest.approx(5 / 20)
    drawn = [row | {"answer": "A", "correct": True} if row["path"] == "resample" and
             row["question"] in {"q12", "q13"} else row for row in kept]  # fmt: skip
    (row,) = compounding(table(drawn)).to_dicts()
    assert row["expected_kept"] == pytest.approx(5 / 20)


def carried(number: int, questions: int, causal: float) -> float:
    """Share of the chains of so many drawn studies that carry either word."""
    rows = compounding(studies(number, questions, causal=causal, chain=True))
    assert rows.height == number
    return float(rows.select((pl.col("sub_additive") | pl.col("recovered")).mean()).item())


def test_of_studies_without_any_effect_few_chains_carry_a_word() -> None:
    rows = compounding(studies(200, 60, chain=True))
    smaller, kept, expected = (
        rows.select(pl.col(name).mean()).item()
        for name in ("smaller_drop", "kept", "expected_kept")
    )
    assert smaller > 0.95  # by the paper's count nearly all do
    assert kept == pytest.approx(expected, abs=0.04)
    # 5% and what 200 studies leave to chance (99%)
    assert carried(200, 60, 0.0) <= 0.09


@pytest.mark.slow
@pytest.mark.parametrize("questions", [60, 200, 1273])
def test_of_2000_null_studies_at_most_one_in_twenty_carries_a_word(questions: int) -> None:
    assert carried(2000, questions, 0.0) <= 0.05 + 2.58 * (0.05 * 0.95 / 2000) ** 0.5
