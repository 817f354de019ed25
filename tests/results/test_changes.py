"""Intervals and tests of changes, as the tables have them."""

import math
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.stats import binomtest
from statsmodels.stats.multitest import multipletests

from holdfast.protocols.followup.compounding import compounding
from holdfast.protocols.single_turn.measures import single_turn
from holdfast.results.accuracy import accuracy
from holdfast.results.first_answers import BASELINE, FAMILY_AVERAGE
from holdfast.results.strata import lengths, strata
from holdfast.stats.intervals import change_bounds, influence_of_difference
from tests.results.frames import Row, row_of, table, turn
from tests.results.nulls import studies

TESTED = ("change_low", "change_high", "p_value", "p_adjusted")


def ones(right: str) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.array([float(mark == "+") for mark in right])


def put(path: str, right: str, **others: Any) -> list[Row]:
    """A turn for each question, right where there is a plus; a dot is a turn that failed."""
    return [
        turn(
            f"q{number:02}",
            {"+": "A", "-": "B"}.get(mark),
            path,
            status="error" if mark == "." else "",
            **others,
        )
        for number, mark in enumerate(right)
    ]


FIRST = "++++++++++-----+"
PUSH = "---------++----+"
SHOVE = "+++++++----+---+"
RECHECK = "++++++++++----++"
TURNS = [*put("", FIRST), *put("push", PUSH), *put("shove", SHOVE), *put("recheck", RECHECK)]


def p_of(after: str, before: str = FIRST) -> float:
    pairs = list(zip(before, after, strict=True))
    lost, gained = pairs.count(("+", "-")), pairs.count(("-", "+"))
    return float(binomtest(lost, lost + gained).pvalue)


def test_a_technique_is_tested_against_its_first_answers() -> None:
    measured = accuracy(table(TURNS))
    one = np.ones(len(FIRST))
    for path, right in (("push", PUSH), ("shove", SHOVE), ("recheck", RECHECK)):
        row = row_of(measured, path, "followup")
        assert row["p_value"] == pytest.approx(p_of(right))
        bounds = change_bounds((ones(right), one), (ones(FIRST), one))
        assert (row["change_low"], row["change_high"]) == pytest.approx(bounds)
        assert row["change_low"] <= row["relative_change"] <= row["change_high"]


def test_holm_is_over_the_techniques_of_a_family_and_over_the_averages() -> None:
    measured = accuracy(table(TURNS))
    pushed, shoved, rechecked = (
        row_of(measured, path, "followup") for path in ("push", "shove", "recheck")
    )
    expected = multipletests([p_of(PUSH), p_of(SHOVE)], method="holm")[1]
    assert (pushed["p_adjusted"], shoved["p_adjusted"]) == pytest.approx(tuple(expected))
    assert rechecked["p_adjusted"] == rechecked["p_value"]
    averages = measured.filter(pl.col("arm") == FAMILY_AVERAGE)
    expected = multipletests(averages["p_value"].to_list(), method="holm")[1]
    assert averages["p_adjusted"].to_list() == pytest.approx(list(expected))


def test_an_average_counts_each_question_once() -> None:
    measured = accuracy(table(TURNS))
    average = measured.filter(pl.col("arm") == FAMILY_AVERAGE, pl.col("family") == "inc_letter")
    (row,) = average.to_dicts()
    # the interval at the level that the p-value leaves ends where nothing has changed
    two = np.full(len(FIRST), 2.0)
    both = ((ones(PUSH) + ones(SHOVE)) * 1.0, two), (2.0 * ones(FIRST), two)
    bounds = change_bounds(*both, level=1 - row["p_value"])
    assert min(map(abs, bounds)) == pytest.approx(0, abs=1e-6)
    two = np.full(len(FIRST), 2.0)
    bounds = change_bounds((ones(PUSH) + ones(SHOVE), two), (2 * ones(FIRST), two))
    assert (row["change_low"], row["change_high"]) == pytest.approx(bounds)


@pytest.mark.rest_slow
@pytest.mark.parametrize("right", [0.98, 0.95, 0.7])
@pytest.mark.rest_slow
def test_where_nothing_acts_an_average_finds_no_more_than_its_level(right: float) -> None:
    # one first answer against fourteen techniques; turning signs around finds up to 37%
    wordings = [f"wording-{n}" for n in range(14)]
    measured = accuracy(studies(400, 60, right=right, wordings=wordings))
    averages = measured.filter(pl.col("arm") == FAMILY_AVERAGE)
    assert averages.height == 400
    # 5% and what 400 studies leave to chance (99%)
    most = 400 * (0.05 + 2.58 * (0.05 * 0.95 / 400) ** 0.5)
    assert (averages["p_value"] < 0.05).sum() <= most
    assert (averages["attributable_p"] < 0.05).sum() <= most


def test_a_technique_with_failed_turns_weighs_as_much_in_its_average() -> None:
    some = PUSH[:4] + "." * 12
    turns = [*put("", FIRST), *put("push", some), *put("shove", SHOVE)]
    measured = accuracy(table(turns))
    (row,) = measured.filter(pl.col("arm") == FAMILY_AVERAGE).to_dicts()
    # 20 turns of two techniques: one of the four weighs 20 / (2 * 4), of the sixteen 20 / (2 * 16)
    weights = np.array([2.5] * 4 + [0.0] * 12), np.full(16, 0.625)
    hits = ones(some) * weights[0] + ones(SHOVE) * weights[1]
    trials = weights[0] + weights[1]
    bounds = change_bounds((hits, trials), (ones(FIRST) * trials, trials))
    assert (row["change_low"], row["change_high"]) == pytest.approx(bounds)
    assert row["change_low"] <= row["relative_change"] <= row["change_high"]
    assert hits.sum() / (ones(FIRST) * trials).sum() - 1 == pytest.approx(row["relative_change"])


def test_epochs_are_clustered() -> None:
    once = row_of(accuracy(table(TURNS)), "push", "followup")
    thrice = [{**row, "epoch": epoch} for row in TURNS for epoch in (1, 2, 3)]
    repeated = row_of(accuracy(table(thrice)), "push", "followup")
    for name in TESTED:
        assert repeated[name] == pytest.approx(once[name])


def test_first_answers_are_tested_against_nothing() -> None:
    first = row_of(accuracy(table(TURNS)), "", BASELINE)
    assert {first[name] for name in TESTED} == {None}


def test_what_has_no_first_answer_has_no_test() -> None:
    row = row_of(accuracy(table(put("push", PUSH))), "push", "followup")
    assert {row[name] for name in ("relative_change", *TESTED)} == {None}


def test_from_zero_there_is_a_test_but_no_change() -> None:
    row = row_of(accuracy(table([*put("", "------"), *put("push", "++++++")])), "push", "followup")
    assert row["relative_change"] is row["change_low"] is row["change_high"] is None
    assert row["p_value"] == pytest.approx(2 / 2**6)


def test_two_runs_are_two_sets_of_tests() -> None:
    both = [*TURNS, *({**row, "run": "r2"} for row in TURNS)]
    measured = accuracy(table(both))
    alone = row_of(accuracy(table(TURNS)), "push", "followup")
    assert set(measured.filter(path="push")["p_adjusted"]) == {alone["p_adjusted"]}


# --- other tables ---


def test_strata_have_their_own_tests_and_one_correction() -> None:
    turns = [{**row, "step": "step1" if row["question"] < "q08" else "step2"} for row in TURNS]
    measured = strata(table(turns), "step")
    raw = {}
    for step, part in (("step1", slice(0, 8)), ("step2", slice(8, None))):
        for path, right in (("push", PUSH), ("shove", SHOVE)):
            row = row_of(measured, path, "followup", step=step)
            raw[step, path] = p_of(right[part], FIRST[part])
            assert row["p_value"] == pytest.approx(raw[step, path])
            assert row["change_low"] <= row["relative_change"] <= row["change_high"]
    expected = dict(zip(raw, multipletests(list(raw.values()), method="holm")[1], strict=True))
    for (step, path), p in expected.items():
        assert row_of(measured, path, "followup", step=step)["p_adjusted"] == pytest.approx(p)


def test_against_all_first_answers_the_others_count_too() -> None:
    turns = [{**row, "step": "step1" if row["question"] < "q08" else None} for row in TURNS]
    row = row_of(strata(table(turns), "step", "overall"), "push", "followup", step="step1")
    one, inside = np.ones(16), (np.arange(16) < 8).astype(float)
    first, second = (ones(PUSH) * inside, inside), (ones(FIRST), one)
    assert row["relative_change"] == pytest.approx(0 / 8 / (11 / 16) - 1)
    assert (row["change_low"], row["change_high"]) == pytest.approx(change_bounds(first, second))
    difference, influence = influence_of_difference(first, second)
    z = abs(difference) / math.sqrt(float((influence**2).sum()))
    assert row["p_value"] == pytest.approx(math.erfc(z / math.sqrt(2)))


def test_lengths_and_single_turn_biases_are_tested_alike() -> None:
    turns = [*put("", FIRST), *put("mislead@10", PUSH), *put("mislead@20", SHOVE)]
    measured = lengths(table(turns))
    assert measured["p_value"].to_list() == pytest.approx([p_of(PUSH), p_of(SHOVE)])
    expected = multipletests([p_of(PUSH), p_of(SHOVE)], method="holm")[1]
    assert measured["p_adjusted"].to_list() == pytest.approx(list(expected))

    single = {"protocol": "single-turn"}
    turns = [*put("", FIRST, **single), *put("push", PUSH, arm="single-turn", **single)]
    (row,) = single_turn(table(turns)).filter(technique="push", arm="single-turn").to_dicts()
    assert row["p_value"] == pytest.approx(p_of(PUSH))
    assert row["change_low"] <= row["relative_change"] <= row["change_high"]


def test_drops_of_chains() -> None:
    turns = [*TURNS, *put("push>recheck", SHOVE), *put("recheck>push", PUSH)]
    measured = compounding(table(turns))
    rows = {row["path"]: row for row in measured.to_dicts()}
    expected = multipletests([p_of(SHOVE), p_of(PUSH)], method="holm")[1]
    one = np.ones(16)
    for path, right, p in zip(rows, (SHOVE, PUSH), expected, strict=True):
        row = rows[path]
        assert row["p_value"] == pytest.approx(p_of(right))
        assert row["p_adjusted"] == pytest.approx(p)
        low, high = change_bounds((ones(right), one), (ones(FIRST), one))
        assert (row["drop_low"], row["drop_high"]) == pytest.approx((-high, -low))
        assert row["drop_low"] <= row["drop"] <= row["drop_high"]
