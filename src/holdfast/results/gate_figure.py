"""A figure that a gate decides on: its interval at any level, and how many questions decide."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from .gate_rows import Row
from .intervals import Counts, wilson
from .power import further_questions, further_questions_for_interval

Bounds = Callable[[Counts, Counts, float], tuple[float, float]]
"""Interval, at a level, of what two sides of the same questions give."""

_LEVEL = 0.95
"""Coverage of the intervals in tables."""

_MOST = 500_000
"""Questions up to which an interval is asked itself; above, it narrows as their square root."""


@dataclass(frozen=True, eq=False)
class Figure:
    """A figure with its 95% interval, as a share; a loss is positive.

    Attributes:
        study: ``run``, ``model``, ``dataset`` and ``protocol``.
        of: what of the study it is of, as people read it.
        value: the figure, None where there is none.
        low: lower bound, None where there is none.
        high: upper bound.
        n: trials that it is of.
        questions: questions asked for them.
        pairs: both sides by question, of a figure that is computed from two; None for a share,
            whose interval is Wilson's.
        bounds: the interval of those.
    """

    study: Row
    of: str
    value: float | None
    low: float | None
    high: float | None
    n: int
    questions: int
    pairs: tuple[Counts, Counts] | None = None
    bounds: Bounds | None = None


def bounds_at(figure: Figure, level: float) -> tuple[float | None, float | None]:
    """The interval of a figure at another level, None where there is none."""
    if figure.value is None or figure.low is None or figure.high is None or level == _LEVEL:
        return figure.low, figure.high
    if figure.pairs is not None and figure.bounds is not None:
        return figure.bounds(*figure.pairs, level)
    n = np.array([wilson_n(figure.value, figure.low, figure.high)])
    low, high = wilson(figure.value * n, n, level)
    return float(low[0]), float(high[0])


def further(figure: Figure, threshold: float, level: float) -> int | None:
    """Further questions until the interval, around the same figure, leaves the threshold out.

    Args:
        figure: the figure, whose interval holds the threshold.
        threshold: what it is held against.
        level: coverage of the interval.

    Returns:
        1 or more; None where no number of questions would do, or there is no interval.
    """
    value, low, high = figure.value, figure.low, figure.high
    if value is None or low is None or high is None:
        return None
    if math.isclose(value, threshold, abs_tol=1e-12):
        return None
    if figure.pairs is not None and figure.bounds is not None:
        return _further_pairs(figure.pairs, figure.bounds, value, threshold, level)
    n = wilson_n(value, low, high)
    trials = further_questions(value, n, threshold, level)
    # one question more is not asked for what rounding has left
    return None if trials is None else max(math.ceil(trials * figure.questions / n - 1e-6), 1)


def _further_pairs(
    pairs: tuple[Counts, Counts], bounds: Bounds, value: float, threshold: float, level: float
) -> int | None:
    """Asks the interval of the same questions over again, twice, four times and so on."""
    n = len(pairs[0][0])

    def clearance(times: int) -> float:
        """How far the threshold is outside; negative inside."""
        repeated = [tuple(np.tile(part, times) for part in side) for side in pairs]
        low, high = bounds(repeated[0], repeated[1], level)  # type: ignore[arg-type]
        return low - threshold if value > threshold else threshold - high

    few, many = 1, 2
    while clearance(many) <= 0:
        few, many = many, 2 * many
        if n * many > _MOST:
            bound = threshold + clearance(few) * (1 if value > threshold else -1)
            more = further_questions_for_interval(value, bound, n * few, threshold)
            return None if more is None else more + n * (few - 1)
    while many - few > 1:
        middle = (few + many) // 2
        few, many = (few, middle) if clearance(middle) > 0 else (middle, many)
    # between the two, straight in one over the square root of the number of questions
    inside, outside = clearance(few), clearance(many)
    ends = 1 / math.sqrt(few), 1 / math.sqrt(many)
    at = ends[0] + (ends[1] - ends[0]) * inside / (inside - outside)
    return max(math.floor(n * (1 / at**2 - 1)) + 1, 1)


def wilson_n(share: float, low: float, high: float) -> float:
    """Trials that a 95% Wilson interval is of, fractional where turns of a question are alike.

    With u = z^2 / n, half its width is h = sqrt(share (1 - share) u + u^2 / 4) / (1 + u); this is
    the positive root of that for u.
    """
    h = ((high - low) / 2) ** 2
    a, b = h - 0.25, 2 * h - share * (1 - share)
    # the two roots have opposite signs, a being negative
    u = (b + math.sqrt(b * b - 4 * a * h)) / (-2 * a)
    return NormalDist().inv_cdf(0.5 + _LEVEL / 2) ** 2 / u


def known(number: float | None) -> float | None:
    """The number, None where it is none."""
    return None if number is None or math.isnan(number) else number
