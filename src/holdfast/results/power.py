"""Power: the number of questions that a difference, or a decision, needs."""

import math
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import InputError
from holdfast.stats.intervals import Floats
from holdfast.stats.pvalues import log_factorials

MOST_QUESTIONS = 20_000
"""Largest number of questions with exact power; above it, Connor's formula is used."""


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
    """Compute the number of questions that a paired comparison needs to detect a difference.

    The comparison is McNemar's exact test of two accuracies. The power is exact, over the number
    and direction of discordant questions. The result is the smallest number with enough power.
    Above ``MOST_QUESTIONS`` it comes from the formula of Connor (1987).

    Args:
        baseline: accuracy of one side, in 0 to 1.
        difference: accuracy of this side less accuracy of the other side, in -1 to 1.
        discordant: share of discordant questions. None assumes that the sides err independently,
            which gives more discordant questions than real pairs have, and so a larger result.
        power: probability of detecting the difference.
        alpha: probability of a false detection, two-sided.
        tests: number of tests. Each has level ``alpha / tests`` (Bonferroni, the first step of
            Holm's correction).

    Raises:
        InputError: a share is out of range, the difference is 0, or the share of discordant
            questions is too small or too large for the difference.
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
    # part of the discordant questions in the direction of the difference
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
    """Compute the power of McNemar's exact test at a two-sided level, for a number of pairs.

    ``discordant`` is the probability that a pair is discordant. ``part`` is the probability that a
    discordant pair has the direction of the difference.
    """
    logs = log_factorials(questions)
    m = np.arange(questions + 1)
    how_many = _binomial(logs, questions, m, discordant)
    # skip terms with negligible weight
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
    """Compute the number of further questions until a Wilson interval excludes a threshold.

    The share is assumed to stay the same. The interval contains the shares that a score test does
    not reject, so the required number is (z / (share - threshold))^2 * threshold * (1 - threshold).

    Args:
        share: the share so far, in 0 to 1.
        n: number of trials, or their effective number (``effective_n``).
        threshold: value to exclude, in 0 to 1.
        level: coverage of the interval.

    Returns:
        0 or more. None if the share equals the threshold, which no number of questions excludes.
    """
    if share == threshold:
        return None
    z = NormalDist().inv_cdf(0.5 + level / 2)
    return _further((z / (share - threshold)) ** 2 * threshold * (1 - threshold), n)


def further_questions_for_interval(
    estimate: float, bound: float, n: float, threshold: float
) -> int | None:
    """Compute the number of further questions until a bound of any interval passes a threshold.

    The distance of a bound from its estimate decreases with the square root of the number of
    questions. ``bound`` is the bound on the side of the threshold. The result is None if the
    estimate equals the threshold.
    """
    if estimate == threshold:
        return None
    return _further(n * ((estimate - bound) / (estimate - threshold)) ** 2, n)


def _further(total_needed: float, n: float) -> int:
    """Return the smallest whole number of further questions that exceeds the need."""
    return 0 if n > total_needed else math.floor(total_needed - n) + 1


def _connor(difference: float, discordant: float, power: float, alpha: float) -> int:
    """Compute the number of pairs for McNemar's test (Connor, 1987)."""
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
