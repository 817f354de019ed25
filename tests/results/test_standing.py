"""Many models: every pair as two are compared, and ranks whose truth is known."""

from collections.abc import Mapping

import numpy as np
import polars as pl
import pytest
from statsmodels.stats.multitest import multipletests

import holdfast
from holdfast.errors import InputError
from holdfast.report.comparison_page import comparison_page, render_comparison
from holdfast.results.comparison import compare
from holdfast.results.first_answers import FAMILY_AVERAGE
from holdfast.results.standing import FIGURE, STANDING_COLUMNS, WORST, standing
from holdfast.results.worst import least_above, lowest_apart, worst
from tests.results.frames import Row, table, turn
from tests.results.test_every_table import study

PATHS = ("", "push", "shove", "recheck")


def drawn(
    rng: np.random.Generator, right: Mapping[str, tuple[float, ...]], questions: int
) -> list[pl.DataFrame]:
    """Studies of models, whose answers to hard questions are alike."""
    ease = rng.random(questions)
    found = []
    for model, shares in right.items():
        rows: list[Row] = []
        for path, share in zip(PATHS, shares, strict=True):
            mixed = np.where(rng.random(questions) < 0.6, ease, rng.random(questions))
            rows += [
                turn(f"q{n}", "A" if one < share else "B", path, model=model, run=f"r-{model}")
                for n, one in enumerate(mixed)
            ]
        found.append(table(rows))
    return found


SPREAD = {
    "x": (0.9, 0.6, 0.6, 0.7), "y": (0.9, 0.6, 0.6, 0.7), "z": (0.9, 0.2, 0.3, 0.3),
}  # fmt: skip


@pytest.mark.slow
def test_pairs_are_those_of_two_with_holm_over_the_pairs_of_a_figure() -> None:
    studies = drawn(np.random.default_rng(1), SPREAD, 60)
    rows = standing(studies).rows
    assert tuple(rows.columns) == STANDING_COLUMNS
    one = compare(studies[0], studies[2]).rows
    own = rows.filter(pl.col("side_a") == "x", pl.col("side_b") == "z", pl.col("arm") != WORST)
    same = ("arm", "path", "n", "a", "b", "difference", "p_value", "gained_questions")
    assert own.select(same).sort("arm", "path").equals(one.select(same).sort("arm", "path"))
    for _, figure in rows.group_by(FIGURE):
        assert figure.height == 3
        expected = multipletests(figure["p_value"].to_numpy(), method="holm")[1]
        assert figure["p_adjusted"].to_list() == pytest.approx(expected)
    # for all three pairs together
    wider = own.join(one, on=["arm", "path", "family"])
    assert (wider["low"] < wider["low_right"]).all()


def test_ranks_follow_from_the_pairs_and_worst_is_that_of_the_table() -> None:
    studies = drawn(np.random.default_rng(1), SPREAD, 200)
    rows = standing(studies).rows
    after = rows.filter(pl.col("arm") == WORST)
    of_table = {row["model"]: row for row in worst(pl.concat(studies)).to_dicts()}
    for row in after.to_dicts():
        for end in "ab":
            known = of_table[row[f"side_{end}"]]
            assert row[end] == pytest.approx(known["after"])
            assert row[f"path_{end}"] == known["challenge"]
            ranks = (row[f"rank_low_{end}"], row[f"rank_high_{end}"])
            assert ranks == (known["rank_low"], known["rank_high"])
    average = rows.filter(pl.col("arm") == FAMILY_AVERAGE, pl.col("side_b") == "z")
    assert average.select("rank_low_b", "rank_high_b").unique().row(0) == (3, 3)
    assert average.select("rank_low_a", "rank_high_a").unique().row(0) == (1, 2)


def wrongly_ranked(number: int, questions: int, figures: dict[str, int]) -> None:
    rng = np.random.default_rng(questions)
    alike = dict.fromkeys("wxyz", (0.9, 0.6, 0.6, 0.6))
    for _ in range(number):
        rows = standing(drawn(rng, alike, questions)).rows
        for arm in figures:
            own = rows.filter(pl.col("arm") == arm)
            figures[arm] += not (own["rank_low_a"].max() == 1 and own["rank_high_b"].min() == 4)


@pytest.mark.slow
def test_alike_models_are_ranked_in_at_most_a_twentieth() -> None:
    figures = {WORST: 0, FAMILY_AVERAGE: 0}
    wrongly_ranked(8, 60, figures)
    # more than 2 of 8 have a chance of 0.6% at 5%
    assert max(figures.values()) <= 2


@pytest.mark.slow
def test_alike_models_are_ranked_in_at_most_a_twentieth_of_many_studies() -> None:
    figures = {WORST: 0, FAMILY_AVERAGE: 0, "baseline": 0}
    number = 120
    wrongly_ranked(number, 80, figures)
    assert max(figures.values()) / number <= 0.05 + 2.58 * (0.05 * 0.95 / number) ** 0.5


def test_the_interval_of_the_worst_is_what_its_test_does_not_reject() -> None:
    rng = np.random.default_rng(2)
    for _ in range(50):
        one, other = ((rng.random((3, 40)) < share).astype(float) for share in (0.7, 0.5))
        p, higher = lowest_apart(one, other)
        low, high = least_above(one, other), -least_above(other, one)
        assert (p < 0.05) == (not low <= 0 <= high)
        assert low <= one.mean(axis=1).min() - other.mean(axis=1).min() <= high
        assert p == 1 or higher == (low + high > 0) or p > 0.05


def covered(number: int, questions: int) -> float:
    rng = np.random.default_rng(questions)
    a, b = np.array([[0.8], [0.6], [0.65]]), np.array([[0.5], [0.45], [0.9]])
    held = 0
    for _ in range(number):
        ease = rng.random(questions)
        one, other = (
            (np.where(rng.random((3, questions)) < 0.6, ease, rng.random((3, questions))) < share)
            .astype(float)
            for share in (a, b)
        )  # fmt: skip
        held += least_above(one, other) <= 0.15 <= -least_above(other, one)
    return held / number


@pytest.mark.parametrize("questions", [30, 200])
def test_the_interval_of_the_worst_holds_the_true_difference(questions: int) -> None:
    assert covered(400, questions) >= 0.95 - 2.58 * (0.05 * 0.95 / 400) ** 0.5


def test_only_questions_that_all_have_count() -> None:
    x, y, z = drawn(np.random.default_rng(1), SPREAD, 30)
    fewer = y.filter(~pl.col("question").is_in(["q1", "q2"]))
    found = standing([x, fewer, z])
    assert set(found.rows.filter(pl.col("arm") == WORST)["questions"]) == {28}
    assert found.notes == ("followup on d1: 28 questions in common to all. 2 skipped.",)


def test_what_two_refuse_many_refuse_with_the_names_of_the_pair() -> None:
    x, y, z = drawn(np.random.default_rng(1), SPREAD, 8)
    other = z.with_columns(question=pl.lit("other ") + pl.col("question"))
    golds = z.with_columns(gold=pl.lit("B"))
    named = z.with_columns(dataset=pl.lit("d2"))
    for sources, said in (
        ([x, y, other], "x (A) and z (B): A and B have no question in common"),
        ([x, y, golds], "x (A) and z (B): followup: the ids of d1 (A) and d1 (B) name different"),
        ([x, y, named], "x (A) and z (B): the data sets have different names, d1 and d2"),
        ([x, y, x], "x (run r-x) (A) and x (run r-x) (B): A and B are the same run"),
        ([x, y, z.clear()], "x (A) and no model (B): B has no turns"),
    ):
        with pytest.raises(InputError) as raised:
            standing(sources)
        assert str(raised.value).startswith(said)
        assert "\n" not in str(raised.value)


def test_a_log_dir_of_several_models_and_sides_that_cannot_be_chosen() -> None:
    studies = drawn(np.random.default_rng(1), SPREAD, 20)
    together = pl.concat(studies)
    assert holdfast.compare(together).rows.equals(standing(studies).rows)
    assert holdfast.compare(together.filter(pl.col("model") != "z")).rows.equals(
        compare(studies[0], studies[1]).rows
    )
    two = holdfast.compare(together, model_a="x", model_b="z").rows
    assert two.equals(compare(studies[0], studies[2]).rows)
    with pytest.raises(InputError, match="contain only one model"):
        holdfast.compare(studies[0])
    with pytest.raises(InputError, match="exactly two sources"):
        holdfast.compare(*studies, model_a="x")


def test_every_measure_and_protocol_in_every_format() -> None:
    three = [table(study(f"run of {name}", f"simulated/{name}")) for name in "xyz"]
    rows = standing(three).rows
    assert set(rows["protocol"]) >= {"followup", "single-turn", "stick-or-switch", "medfuzz"}
    for format in ("md", "latex", "csv", "json"):
        shown = render_comparison(rows, format, ["A note."], with_changes=True, all_challenges=True)
        assert "simulated/x" in shown
    assert "SIMULATED, not a measurement of a model: simulated/x, simulated/y, simulated/z." in (
        render_comparison(rows, "md")
    )
    assert "z minus simulated/x" in comparison_page(rows)
