"""Numbers of questions: against the formulas, the intervals themselves, and simulation."""

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.stats import binom, binomtest

from holdfast.errors import InputError
from holdfast.results.power import (
    further_questions,
    further_questions_for_interval,
    power_of,
    questions_needed,
)
from holdfast.stats.intervals import wilson

# --- to find a difference ---


@pytest.mark.parametrize(("questions", "discordant", "part"), [(12, 0.4, 0.8), (30, 0.2, 0.6)])
def test_power_matches_all_outcomes(questions: int, discordant: float, part: float) -> None:
    power = 0.0
    for differing in range(1, questions + 1):
        for losses in range(differing + 1):
            if binomtest(losses, differing).pvalue <= 0.05:
                power += binom.pmf(differing, questions, discordant) * binom.pmf(
                    losses, differing, part
                )
    assert power_of(questions, discordant, part) == pytest.approx(power, abs=1e-9)


def test_power_covers_one_sided_differences() -> None:
    # six or more must differ, and all of one kind are then enough
    assert power_of(20, 0.3, 1.0) == pytest.approx(binom.sf(5, 20, 0.3))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("baseline", "difference", "discordant", "tests"),
    [(0.9, 0.05, 0.2, 1), (0.9, 0.1, 0.12, 1), (0.7, 0.05, 0.1, 14), (0.5, -0.1, 0.3, 1)],
)
def test_the_number_of_questions_matches_simulation(
    baseline: float, difference: float, discordant: float, tests: int
) -> None:
    number = questions_needed(baseline, difference, discordant, tests=tests)
    losses = (discordant + difference) / 2
    rng = np.random.default_rng(number)

    def found(questions: int) -> float:
        samples = rng.multinomial(
            questions, [losses, discordant - losses, 1 - discordant], size=20_000
        )
        p = 2 * binom.cdf(samples[:, :2].min(axis=1), samples[:, :2].sum(axis=1), 0.5)
        return float((p <= 0.05 / tests).mean())

    assert found(number) == pytest.approx(0.8, abs=0.015)
    assert found(round(0.9 * number)) < 0.8 < found(round(1.1 * number))


def test_questions_are_near_the_formula() -> None:
    # Connor (1987): ((1.959964 sqrt(.2) + .841621 sqrt(.2 - .0025)) / .05)^2 = 625.6
    assert 626 <= questions_needed(0.9, 0.05, 0.2) <= 626 * 1.06
    # above what is computed in full it is the formula
    assert questions_needed(0.9, 0.001, 0.2) == 1_569_774


def test_independent_sides_need_more_questions() -> None:
    # .9 * .15 + .1 * .85
    assert questions_needed(0.9, 0.05) == questions_needed(0.9, 0.05, 0.22)
    assert questions_needed(0.9, 0.05) > questions_needed(0.9, 0.05, 0.1)
    assert questions_needed(0.9, 0.05, tests=14) > questions_needed(0.9, 0.05)
    assert questions_needed(0.9, 0.05, power=0.9) > questions_needed(0.9, 0.05)


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"baseline": 1.2}, "baseline"),
        ({"baseline": math.nan}, "baseline"),
        ({"difference": 0.0}, "difference"),
        ({"difference": 0.95}, "difference"),
        ({"difference": -0.2}, "difference"),
        ({"discordant": 0.01}, "discordant"),
        ({"discordant": 0.9}, "discordant"),
        ({"power": 1.0}, "power"),
        ({"alpha": 0.0}, "alpha"),
        ({"tests": 0}, "tests"),
    ],
)
def test_impossible_settings_are_refused_by_field(values: dict[str, float], field: str) -> None:
    settings = {"baseline": 0.9, "difference": 0.05} | values
    with pytest.raises(InputError) as error:
        questions_needed(**settings)  # type: ignore[arg-type]
    assert error.value.field == field


# --- to decide ---


def excluded(share: float, n: float, threshold: float, level: float = 0.95) -> bool:
    (low,), (high,) = wilson(np.array([share * n]), np.array([n]), level)
    return not low <= threshold <= high


@given(st.floats(0, 1), st.floats(1, 3000), st.floats(0.01, 0.99))
def test_the_further_questions_exclude_the_threshold(
    share: float, n: float, threshold: float
) -> None:
    assume(abs(share - threshold) > 0.002)
    more = further_questions(share, n, threshold)
    assert more is not None
    assert excluded(share, n + more + 1e-6 * n, threshold)
    assert more == 0 or not excluded(share, n + more - 1 - 1e-6 * n, threshold)


def test_a_share_at_its_threshold_is_never_decided() -> None:
    assert further_questions(0.8, 100, 0.8) is None
    assert further_questions_for_interval(0.1, 0.2, 100, 0.1) is None


def test_further_questions_match_hand_calculation() -> None:
    # (1.959964 / .05)^2 * .16 = 245.85
    assert further_questions(0.85, 100, 0.8) == 146
    assert further_questions(0.85, 245, 0.8) == 1
    assert further_questions(0.85, 246, 0.8) == 0
    # up to rounding: a bound 0.2 off at 100 questions is 0.1 off at 400
    assert further_questions_for_interval(0.3, 0.5, 100, 0.4) in (300, 301)
    assert further_questions_for_interval(0.3, 0.39, 100, 0.4) == 0
