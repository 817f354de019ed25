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
from holdfast.stats.intervals import Floats, change_bounds, influence_of_difference
from tests.results.frames import Row, asked, row_of, table
from tests.results.nulls import studies

COLUMNS = ("change_low", "change_high", "p_value", "p_adjusted")
FIRST = "AAAAAAAAAABBBBBA"
PUSH = "BBBBBBBBBAABBBBA"
SHOVE = "AAAAAAABBBBABBBA"
RECHECK = "AAAAAAAAAABBBBAA"
TURNS = [*asked(FIRST), *asked(PUSH, "push"), *asked(SHOVE, "shove"), *asked(RECHECK, "recheck")]
ONES = np.ones(16)


def right(letters: str) -> Floats:
    return np.array([float(letter == "A") for letter in letters])


def p_of(after: str, before: str = FIRST) -> float:
    pairs = list(zip(before, after, strict=True))
    losses, gains = pairs.count(("A", "B")), pairs.count(("B", "A"))
    return float(binomtest(losses, losses + gains).pvalue)


def holm(*texts: str) -> Any:
    return pytest.approx(list(multipletests([p_of(text) for text in texts], method="holm")[1]))


def in_steps(rows: list[Row], second: str | None) -> pl.DataFrame:
    return table([
        row | {"step": "step1" if int(row["question"][1:]) < 8 else second} for row in rows
    ])  # fmt: skip


@pytest.mark.slow
def test_a_technique_is_tested_against_its_first_answers() -> None:
    rows = accuracy(table(TURNS))
    for path, letters in (("push", PUSH), ("shove", SHOVE), ("recheck", RECHECK)):
        row = row_of(rows, path, "followup")
        assert row["p_value"] == pytest.approx(p_of(letters))
        bounds = change_bounds((right(letters), ONES), (right(FIRST), ONES))
        assert (row["change_low"], row["change_high"]) == pytest.approx(bounds)
    # Holm's correction is within a family, and over the averages
    techniques = rows.filter(arm="followup")["p_adjusted"].to_list()
    assert techniques[:2] == holm(PUSH, SHOVE)
    assert techniques[2] == p_of(RECHECK)
    averages = rows.filter(arm=FAMILY_AVERAGE)
    p_values = multipletests(averages["p_value"].to_list(), method="holm")[1]
    assert averages["p_adjusted"].to_list() == pytest.approx(list(p_values))
    # first answers are tested against nothing
    first = row_of(rows, "", BASELINE)
    assert {first[name] for name in COLUMNS} == {None}


def test_an_average_counts_each_question_once() -> None:
    (row,) = accuracy(table(TURNS)).filter(arm=FAMILY_AVERAGE, family="inc_letter").to_dicts()
    twice = 2 * ONES
    sides = (right(PUSH) + right(SHOVE), twice), (2 * right(FIRST), twice)
    assert (row["change_low"], row["change_high"]) == pytest.approx(change_bounds(*sides))
    # the interval at the level that the p-value leaves ends where nothing has changed
    bounds = change_bounds(*sides, level=1 - row["p_value"])
    assert min(map(abs, bounds)) == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("share", [0.98, 0.7])
@pytest.mark.slow
def test_averages_keep_their_level_without_an_effect(share: float) -> None:
    # one first answer against fourteen techniques; turning signs around finds up to 37%
    wordings = [f"wording-{n}" for n in range(14)]
    rows = accuracy(studies(400, 60, right=share, wordings=wordings))
    averages = rows.filter(arm=FAMILY_AVERAGE)
    assert averages.height == 400
    # 5% and what 400 studies leave to chance (99%)
    limit = 400 * (0.05 + 2.58 * (0.05 * 0.95 / 400) ** 0.5)
    assert (averages["p_value"] < 0.05).sum() <= limit
    significant = averages["attributable_p"] < 0.05
    assert significant.sum() <= limit
    # p-value and interval say the same
    outside = (averages["attributable_low"] > 0) | (averages["attributable_high"] < 0)
    assert significant.equals(outside, check_names=False)


def test_a_technique_with_failed_turns_weighs_as_much_in_its_average() -> None:
    incomplete = PUSH[:4] + "!" * 12
    rows = [*asked(FIRST), *asked(incomplete, "push"), *asked(SHOVE, "shove")]
    row = row_of(accuracy(table(rows)), "", FAMILY_AVERAGE)
    # 20 turns of two techniques: one of the four weighs 20 / (2 * 4), of the sixteen 20 / (2 * 16)
    weights = np.array([2.5] * 4 + [0.0] * 12), np.full(16, 0.625)
    hits = right(incomplete) * weights[0] + right(SHOVE) * weights[1]
    trials = weights[0] + weights[1]
    firsts = right(FIRST) * trials
    assert row["relative_change"] == pytest.approx(hits.sum() / firsts.sum() - 1)
    bounds = change_bounds((hits, trials), (firsts, trials))
    assert (row["change_low"], row["change_high"]) == pytest.approx(bounds)


def test_epochs_are_clustered_and_runs_are_tested_apart() -> None:
    once = row_of(accuracy(table(TURNS)), "push", "followup")
    thrice = [row | {"epoch": epoch} for row in TURNS for epoch in (1, 2, 3)]
    twice = [*TURNS, *(row | {"run": "r2"} for row in TURNS)]
    for rows in (thrice, twice):
        for row in accuracy(table(rows)).filter(path="push").to_dicts():
            assert [row[name] for name in COLUMNS] == pytest.approx([once[n] for n in COLUMNS])


def test_tests_without_first_answers_or_right_ones() -> None:
    row = row_of(accuracy(table(asked(PUSH, "push"))), "push", "followup")
    assert {row[name] for name in ("relative_change", *COLUMNS)} == {None}
    # from zero there is a test but no change
    rows = table([*asked("BBBBBB"), *asked("AAAAAA", "push")])
    row = row_of(accuracy(rows), "push", "followup")
    assert row["relative_change"] is row["change_low"] is row["change_high"] is None
    assert row["p_value"] == pytest.approx(2 / 2**6)


# --- other tables ---


def test_strata_are_tested_apart_with_one_correction() -> None:
    rows = strata(in_steps(TURNS, "step2"), "step")
    p_values = {
        (step, path): p_of(text[part], FIRST[part])
        for step, part in (("step1", slice(0, 8)), ("step2", slice(8, None)))
        for path, text in (("push", PUSH), ("shove", SHOVE))
    }
    corrections = multipletests(list(p_values.values()), method="holm")[1]
    for ((step, path), p), correction in zip(p_values.items(), corrections, strict=True):
        row = row_of(rows, path, "followup", step=step)
        assert (row["p_value"], row["p_adjusted"]) == pytest.approx((p, correction))
        assert row["change_low"] <= row["relative_change"] <= row["change_high"]


def test_relative_changes_use_all_first_answers() -> None:
    frame = strata(in_steps(TURNS, None), "step", "overall")
    row = row_of(frame, "push", "followup", step="step1")
    inside = (np.arange(16) < 8).astype(float)
    sides = (right(PUSH) * inside, inside), (right(FIRST), ONES)
    assert row["relative_change"] == pytest.approx(0 / 8 / (11 / 16) - 1)
    assert (row["change_low"], row["change_high"]) == pytest.approx(change_bounds(*sides))
    difference, influence = influence_of_difference(*sides)
    z = abs(difference) / math.sqrt(float((influence**2).sum()))
    assert row["p_value"] == pytest.approx(math.erfc(z / math.sqrt(2)))


def test_lengths_and_biases_are_tested_alike() -> None:
    rows = [*asked(FIRST), *asked(PUSH, "mislead@10"), *asked(SHOVE, "mislead@20")]
    frame = lengths(table(rows))
    assert frame["p_value"].to_list() == pytest.approx([p_of(PUSH), p_of(SHOVE)])
    assert frame["p_adjusted"].to_list() == holm(PUSH, SHOVE)
    rows = [*asked(FIRST), *asked(PUSH, "push", arm="single-turn")]
    frame = single_turn(table([row | {"protocol": "single-turn"} for row in rows]))
    (row,) = frame.filter(technique="push", arm="single-turn").to_dicts()
    assert row["p_value"] == pytest.approx(p_of(PUSH))
    assert row["change_low"] <= row["relative_change"] <= row["change_high"]


def test_drops_of_chains_are_tested_alike() -> None:
    rows = [*TURNS, *asked(SHOVE, "push>recheck"), *asked(PUSH, "recheck>push")]
    frame = compounding(table(rows))
    assert frame["p_adjusted"].to_list() == holm(SHOVE, PUSH)
    for row, letters in zip(frame.to_dicts(), (SHOVE, PUSH), strict=True):
        assert row["p_value"] == pytest.approx(p_of(letters))
        low, high = change_bounds((right(letters), ONES), (right(FIRST), ONES))
        assert (row["drop_low"], row["drop_high"]) == pytest.approx((-high, -low))
        assert row["drop_low"] <= row["drop"] <= row["drop_high"]
