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
    result = []
    for model, shares in right.items():
        rows: list[Row] = []
        for path, share in zip(PATHS, shares, strict=True):
            mixture = np.where(rng.random(questions) < 0.6, ease, rng.random(questions))
            rows += [
                turn(f"q{n}", "A" if first < share else "B", path, model=model, run=f"r-{model}")
                for n, first in enumerate(mixture)
            ]
        result.append(table(rows))
    return result


SPREAD = {
    "x": (0.9, 0.6, 0.6, 0.7), "y": (0.9, 0.6, 0.6, 0.7), "z": (0.9, 0.2, 0.3, 0.3),
}  # fmt: skip


@pytest.mark.slow
def test_pairs_match_comparisons_of_two_with_holm() -> None:
    studies = drawn(np.random.default_rng(1), SPREAD, 30)
    rows = standing(studies).rows
    assert tuple(rows.columns) == STANDING_COLUMNS
    first = compare(studies[0], studies[2]).rows
    part = rows.filter(pl.col("side_a") == "x", pl.col("side_b") == "z", pl.col("arm") != WORST)
    columns = ("arm", "path", "n", "a", "b", "difference", "p_value", "gained_questions")
    keys = ["arm", "path"]
    assert part.select(columns).sort(keys).equals(first.select(columns).sort(keys))
    for _, figure in rows.group_by(FIGURE):
        assert figure.height == 3
        p_values = multipletests(figure["p_value"].to_numpy(), method="holm")[1]
        assert figure["p_adjusted"].to_list() == pytest.approx(p_values)
    # for all three pairs together
    wider = part.join(first, on=["arm", "path", "family"])
    assert (wider["low"] < wider["low_right"]).all()


def test_ranks_follow_from_the_pairs() -> None:
    studies = drawn(np.random.default_rng(1), SPREAD, 200)
    rows = standing(studies).rows
    after = rows.filter(pl.col("arm") == WORST)
    of_table = {row["model"]: row for row in worst(pl.concat(studies)).to_dicts()}
    for row in after.to_dicts():
        assert row["low"] < row["b"] - row["a"] == row["difference"] < row["high"]
        for end in "ab":
            row_of_table = of_table[row[f"side_{end}"]]
            assert row[end] == pytest.approx(row_of_table["after"])
            assert row[f"path_{end}"] == row_of_table["challenge"]
            ranks = (row[f"rank_low_{end}"], row[f"rank_high_{end}"])
            assert ranks == (row_of_table["rank_low"], row_of_table["rank_high"])
    average = rows.filter(pl.col("arm") == FAMILY_AVERAGE, pl.col("side_b") == "z")
    assert average.select("rank_low_b", "rank_high_b").unique().row(0) == (3, 3)
    assert average.select("rank_low_a", "rank_high_a").unique().row(0) == (1, 2)


@pytest.mark.slow
@pytest.mark.parametrize("number", [8, 120])
def test_equal_models_are_rarely_ranked_apart(number: int) -> None:
    figures = {WORST: 0, FAMILY_AVERAGE: 0, "baseline": 0}
    rng = np.random.default_rng(60)
    alike = dict.fromkeys("wxyz", (0.9, 0.6, 0.6, 0.6))
    for _ in range(number):
        rows = standing(drawn(rng, alike, 60)).rows
        for arm in figures:
            part = rows.filter(pl.col("arm") == arm)
            figures[arm] += not (part["rank_low_a"].max() == 1 and part["rank_high_b"].min() == 4)
    assert max(figures.values()) / number <= 0.05 + 2.58 * (0.05 * 0.95 / number) ** 0.5


def test_the_worst_cases_interval_inverts_its_test() -> None:
    rng = np.random.default_rng(2)
    for _ in range(50):
        first, second = ((rng.random((3, 40)) < share).astype(float) for share in (0.7, 0.5))
        p, higher = lowest_apart(first, second)
        low, high = least_above(first, second), -least_above(second, first)
        assert (p < 0.05) == (not low <= 0 <= high)
        assert low <= first.mean(axis=1).min() - second.mean(axis=1).min() <= high
        assert p == 1 or higher == (low + high > 0) or p > 0.05


@pytest.mark.parametrize("questions", [30, 200])
def test_the_worst_cases_interval_covers_the_true_difference(questions: int) -> None:
    rng = np.random.default_rng(questions)
    a, b = np.array([[0.8], [0.6], [0.65]]), np.array([[0.5], [0.45], [0.9]])
    inside = 0
    for _ in range(400):
        ease = rng.random(questions)
        first, second = (
            (np.where(rng.random((3, questions)) < 0.6, ease, rng.random((3, questions))) < share)
            .astype(float)
            for share in (a, b)
        )  # fmt: skip
        inside += least_above(first, second) <= 0.15 <= -least_above(second, first)
    assert inside / 400 >= 0.95 - 2.58 * (0.05 * 0.95 / 400) ** 0.5


def test_only_questions_of_all_models_count() -> None:
    x, y, z = drawn(np.random.default_rng(1), SPREAD, 30)
    fewer = y.filter(~pl.col("question").is_in(["q1", "q2"]))
    result = standing([x, fewer, z])
    assert set(result.rows.filter(pl.col("arm") == WORST)["questions"]) == {28}
    assert result.notes == ("followup on d1: 28 questions in common to all. 2 skipped.",)


def test_a_refused_pair_is_named() -> None:
    x, y, z = drawn(np.random.default_rng(1), SPREAD, 8)
    second = z.with_columns(question=pl.lit("other ") + pl.col("question"))
    golds = z.with_columns(gold=pl.lit("B"))
    new_name = z.with_columns(dataset=pl.lit("d2"))
    for sources, message in (
        ([x, y, second], "x (A) and z (B): A and B have no question in common"),
        ([x, y, golds], "x (A) and z (B): followup: the ids of d1 (A) and d1 (B) name different"),
        ([x, y, new_name], "x (A) and z (B): the data sets have different names, d1 and d2"),
        ([x, y, x], "x (run r-x) (A) and x (run r-x) (B): A and B are the same run"),
        ([x, y, z.clear()], "x (A) and no model (B): B has no turns"),
    ):
        with pytest.raises(InputError) as error:
            standing(sources)
        assert str(error.value).startswith(message)
        assert "\n" not in str(error.value)


@pytest.mark.slow
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


@pytest.mark.slow
def test_every_measure_and_protocol_in_every_format() -> None:
    three = [table(study(f"run of {name}", f"simulated/{name}")) for name in "xyz"]
    rows = standing(three).rows
    assert set(rows["protocol"]) >= {"followup", "single-turn", "stick-or-switch", "medfuzz"}
    for format in ("md", "latex", "csv", "json"):
        text = render_comparison(rows, format, ["A note."], with_changes=True, all_challenges=True)
        assert "simulated/x" in text
    assert "SIMULATED, not a measurement of a model: simulated/x, simulated/y, simulated/z." in (
        render_comparison(rows, "md")
    )
    assert "z minus simulated/x" in comparison_page(rows)
