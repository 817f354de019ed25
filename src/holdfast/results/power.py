"""Power: how many questions a difference, or a decision, needs."""

import math
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import InputError
from holdfast.stats.intervals import Floats
from holdfast.stats.pvalues import log_factorials

MOST_QUESTIONS = 20_000
"""Questions up to which the power is computed in full; above, by the formula."""


_LEAST_LEVEL, _LEAST_DIFFERENCE = 1e-12, 1e-5
"""Smaller values are typing errors, and floating point cannot distinguish them from 0."""


def questions_needed(
    baseline: float,
    difference: float,
    discordant: float | None = None,
    power: float = 0.8,
    alpha: float = 0.05,
    tests: int = 1,
) -> int:
    """Questions that a paired comparison needs to find a difference of two accuracies.

    The comparison is McNemar's exact test. Its power is computed in full, over how many questions
    come out differently and which way, and the smallest number of questions that has enough of
    it is searched for; above ``MOST_QUESTIONS`` questions it is that of Connor (1987).

    Args:
        baseline: accuracy of one side, in 0 to 1.
        difference: by how much the other side is lower, in -1 to 1; negative where it is higher.
        discordant: share of the questions that come out differently; without it that of two sides
            that err independently, which is more than real pairs have and so asks for more.
        power: chance of finding the difference.
        alpha: chance of finding one where there is none, two-sided.
        tests: how many such tests are made; each has ``alpha / tests`` (Bonferroni, which Holm's
            correction is at its first step).

    Raises:
        InputError: a share outside its range, no difference, or too few or too many discordant
            questions for it.
    """
    accuracy_after = baseline - difference
    _check(baseline, difference, discordant, power, alpha, tests)
    share = (
        baseline * (1 - accuracy_after) + accuracy_after * (1 - baseline)
        if discordant is None
        else discordant
    )
    level = alpha / tests
    guess = _connor(abs(difference), share, power, level)
    if guess > MOST_QUESTIONS:
        return guess
    # of those that differ, the part that goes the way of the difference
    part = (share + abs(difference)) / (2 * share)
    low, high = 1, max(guess, 8)
    while power_of(high, share, part, level) < power:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        enough = power_of(middle, share, part, level) >= power
        low, high = (low, middle) if enough else (middle, high)
    return high


def power_of(questions: int, discordant: float, part: float, alpha: float = 0.05) -> float:
    """Chance that McNemar's exact test of so many pairs finds a difference at a two-sided level.

    ``discordant`` is the chance that a pair comes out differently, ``part`` the chance that one
    that does goes the way of the difference.
    """
    logs = log_factorials(questions)
    m = np.arange(questions + 1)
    how_many = _binomial(logs, questions, m, discordant)
    # what is left out weighs nothing
    likely = m[how_many > 1e-12]
    power = 0.0
    for differing in likely.tolist():
        b = np.arange(differing + 1)
        tail = 2 * np.cumsum(_binomial(logs, differing, b[: differing // 2 + 1], 0.5))
        rejected_count = int((tail <= alpha).sum())
        way = _binomial(logs, differing, b, part)
        inside = float(way[rejected_count : differing + 1 - rejected_count].sum())
        power += float(how_many[differing]) * (1 - inside)
    return power


def further_questions(share: float, n: float, threshold: float, level: float = 0.95) -> int | None:
    """Further questions until the Wilson interval around the same share excludes a threshold.

    The interval holds exactly the shares that a score test would not reject, so that the number
    is (z / (share - threshold))^2 * threshold * (1 - threshold).

    Args:
        share: the share so far, in 0 to 1.
        n: trials that it is of, or as many as they are worth (``effective_n``).
        threshold: what the interval is held against, in 0 to 1.
        level: coverage of the interval.

    Returns:
        0 or more; None where the share is the threshold, which no number of questions excludes.
    """
    if share == threshold:
        return None
    z = NormalDist().inv_cdf(0.5 + level / 2)
    return _further((z / (share - threshold)) ** 2 * threshold * (1 - threshold), n)


def further_questions_for_interval(
    estimate: float, bound: float, n: float, threshold: float
) -> int | None:
    """Further questions until a bound of any interval is past a threshold.

    What a bound is off its estimate falls with the square root of the number of questions. The
    bound is that on the side of the threshold; None where the estimate is the threshold.
    """
    if estimate == threshold:
        return None
    return _further(n * ((estimate - bound) / (estimate - threshold)) ** 2, n)


def _further(total_needed: float, n: float) -> int:
    """Whole questions after which there are more than what is needed."""
    return 0 if n > total_needed else math.floor(total_needed - n) + 1


def _connor(difference: float, discordant: float, power: float, alpha: float) -> int:
    """Pairs for McNemar's test (Connor, 1987)."""
    normal = NormalDist()
    root = normal.inv_cdf(1 - alpha / 2) * math.sqrt(discordant)
    root += normal.inv_cdf(power) * math.sqrt(max(discordant - difference**2, 0.0))
    return math.ceil((root / difference) ** 2)


def _binomial(logs: Floats, n: int, k: NDArray[np.int64], p: float) -> Floats:
    if p >= 1:
        return np.where(k == n, 1.0, 0.0)
    chances: Floats = np.exp(
        logs[n] - logs[k] - logs[n - k] + k * math.log(p) + (n - k) * math.log1p(-p)
    )
    return chances


def _check(
    baseline: float,
    difference: float,
    discordant: float | None,
    power: float,
    alpha: float,
    tests: int,
) -> None:
    for field, value in (("power", power), ("alpha", alpha)):
        if not 0 < value < 1:
            raise InputError(f"{value} is not between 0 and 1", field=field)
    if tests < 1:
        raise InputError(f"{tests} tests", field="tests", remedy="Give 1 or more")
    if alpha / tests < _LEAST_LEVEL:
        problem = f"{alpha:g} over {tests} tests is too small"
        raise InputError(problem, field="alpha", remedy=f"Give {_LEAST_LEVEL * tests:g} or more")
    if not 0 <= baseline <= 1:
        raise InputError(f"{100 * baseline:g}% is not in 0% to 100%", field="baseline")
    if not 0 <= round(baseline - difference, 12) <= 1:
        problem = f"{100 * baseline:g}% less {100 * difference:g} points is not in 0% to 100%"
        raise InputError(problem, field="difference")
    if not abs(difference) >= _LEAST_DIFFERENCE:
        remedy = f"Give {100 * _LEAST_DIFFERENCE:g} points or more"
        problem = "no number of questions can find so small a difference"
        raise InputError(problem, field="difference", remedy=remedy)
    if discordant is None:
        return
    accuracy_after = baseline - difference
    most_discordant = min(baseline + accuracy_after, 2 - baseline - accuracy_after)
    if not abs(difference) - 1e-12 <= discordant <= most_discordant + 1e-12:
        problem = f"{100 * discordant:g}% of the questions cannot differ"
        remedy = (
            f"With these accuracies {100 * abs(difference):g}% to {100 * most_discordant:g}% can"
        )
        raise InputError(problem, field="discordant", remedy=remedy)
