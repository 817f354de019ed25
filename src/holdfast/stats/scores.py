"""Score intervals of changes within questions.

An interval contains the values that a score test does not reject. The statistic is the sum of the
questions' deviations from the value, divided by its standard deviation from constrained maximum
likelihood. Each question is a draw from the observed outcomes. The probabilities are the nearest to
the observed ones at which the sum is zero on average. With one trial per question, these are the
intervals of Tango (1998) for a difference and of Nam and Blackwelder (2002) for a ratio. Half a
question is added on each side, in the variance alone. Without it, the interval would have no width
for sides that never differ.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

Counts = tuple[Floats, Floats]
"""Successes and trials of each cluster (question), both of shape (clusters,)."""

Pair = tuple[Counts, Counts]
"""Both sides of a figure, over the same clusters."""

_STEPS = 200
"""Upper limit of the steps of a search, which no search reaches."""

_HUGE = 1e300


@dataclass(frozen=True)
class Outcomes:
    """Counts of questions by outcome, for k figures at once.

    Attributes:
        first: successes of the first side, shape (k, outcomes).
        second: successes of the second side, same shape.
        trials: trials of each side, equal for both sides, same shape.
        questions: number of questions with the outcome, same shape; 0 pads short rows.
    """

    first: Floats
    second: Floats
    trials: Floats
    questions: Floats


def outcomes_of(pairs: Sequence[Pair]) -> Outcomes:
    """Count the outcomes of several figures, from both sides of each figure by question."""
    groups = []
    for first, second in pairs:
        counts = np.stack([first[0], second[0], first[1]])[:, first[1] > 0]
        # rounded, because weighted sums that are equal can differ in the last digits
        counts = counts.round(9)
        counts = counts[:, np.lexsort(counts[::-1])]
        is_new = np.ones(counts.shape[1], bool)
        is_new[1:] = (counts[:, 1:] != counts[:, :-1]).any(axis=0)
        starts = np.flatnonzero(is_new)
        questions = np.diff(starts, append=counts.shape[1])
        groups.append(np.vstack([counts[:, starts], questions]))
    return filled(groups)


def filled(groups: Sequence[Floats]) -> Outcomes:
    """Pad outcomes of several figures, each (4, outcomes): both sides, trials and questions."""
    parts = np.zeros((4, len(groups), max((group.shape[1] for group in groups), default=0)))
    for place, group in enumerate(groups):
        parts[:, place, : group.shape[1]] = group
    return Outcomes(*parts)


def design_effect(hits: Floats, trials: Floats, questions: Floats) -> Floats:
    """Compute the ratio of clustered to independent trials for the same precision.

    Half a question with only successes and half a question with only failures are added. Without
    them, equal trials would have no variance, and one failure among hundreds too little. The last
    axis is the axis of questions. Results are 1 or more, or NaN without trials.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        n = (questions * trials).sum(axis=-1)
        usual = n / (questions * (trials > 0)).sum(axis=-1)
        share = ((questions * hits).sum(axis=-1) + usual / 2) / (n + usual)
        off = (questions * (hits - share[..., None] * trials) ** 2).sum(axis=-1)
        off += usual**2 * (share**2 + (1 - share) ** 2) / 2
        effect: Floats = np.maximum(off / ((n + usual) * share * (1 - share)), 1.0)
        return effect


def paired_difference(of: Outcomes, level: float) -> tuple[Floats, Floats]:
    """Compute bounds of the first share less the second share, each of shape (k,)."""
    return _ends(_differences(of), (-1.0, 1.0), level)


def paired_change(of: Outcomes, level: float) -> tuple[Floats, Floats]:
    """Compute bounds of first / second - 1, each of shape (k,); NaN if the second side is 0."""
    under = (of.questions * of.second).sum(axis=1)
    # as a part of the total of both sides, which is bounded
    low, high = _ends(_parts(of), (0.0, 1.0), level)
    with np.errstate(invalid="ignore", divide="ignore"):
        low, high = (np.where(under > 0, end / (1 - end) - 1, math.nan) for end in (low, high))
    return low, high


def difference_statistic(of: Outcomes, value: float = 0.0) -> Floats:
    """Compute the score statistic of a difference, standard normal at the truth, shape (k,)."""
    start = np.zeros(len(of.first))
    return _statistic(_differences(of), start + value, start)[0]


@dataclass(frozen=True)
class _Deviations:
    """Deviations ``level - value * slope`` of outcomes from a value, each of shape (k, outcomes).

    Attributes:
        level: deviations from a value of 0.
        slope: what one more of the value takes off.
        observed: number of questions with the outcome.
        weights: the same with the added halves, which count in the variance alone.
    """

    level: Floats
    slope: Floats
    observed: Floats
    weights: Floats

    def take(self, at: NDArray[np.int64]) -> "_Deviations":
        """Select the outcomes of some figures."""
        return _Deviations(*(part[at] for part in vars(self).values()))


def _differences(of: Outcomes) -> _Deviations:
    """Return deviations of first less second side from a difference per trial."""
    of, observed = _with_halves(of)
    return _Deviations(of.first - of.second, of.trials, observed, of.questions)


def _parts(of: Outcomes) -> _Deviations:
    """Return deviations of the first side from a part of both sides."""
    of, observed = _with_halves(of)
    return _Deviations(of.first, of.first + of.second, observed, of.questions)


def _with_halves(of: Outcomes) -> tuple[Outcomes, Floats]:
    """Add half a question with successes on the first side alone, and half of the reverse.

    Returns:
        The outcomes with the two halves, and the observed questions alone, of the same shape.
    """
    ahead, behind = _added_trials(of, of.first, of.second), _added_trials(of, of.second, of.first)
    nothing, halves = np.zeros_like(ahead), np.full((len(ahead), 2), 0.5)
    pairs = ([ahead, nothing], [nothing, behind], [ahead, behind])
    more = (*(np.stack(pair, axis=1) for pair in pairs), halves)
    parts = (np.hstack([part, added]) for part, added in zip(vars(of).values(), more, strict=True))
    return Outcomes(*parts), np.hstack([of.questions, np.zeros_like(halves)])


def _added_trials(of: Outcomes, ahead: Floats, behind: Floats) -> Floats:
    """Compute the number of trials of an added question in which one side succeeds, shape (k,).

    It is the mean lead per differing trial, over questions in which this side leads. It is 1 if
    trials are independent. If a question differs in all trials or in none, it is the number of
    trials. One question that differs in every trial is added to the observed questions.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        counted_questions = of.questions * (ahead > behind)
        # expected number of differing trials in random pairs
        differing = ahead + behind - 2 * ahead * behind / of.trials
        usual = (of.questions * of.trials).sum(axis=1) / of.questions.sum(axis=1)
        by = np.nansum(counted_questions * (ahead - behind) ** 2, axis=1) + usual**2
        added_trials: Floats = np.maximum(
            by / (np.nansum(counted_questions * differing, axis=1) + usual), 1.0
        )
        return added_trials


def _sums(weights: Floats, values: Floats) -> Floats:
    """Sum the weighted values of each figure, shape (k,)."""
    sums: Floats = np.einsum("ij,ij->i", weights, values)
    return sums


def _statistic(of: _Deviations, value: Floats, start: Floats) -> tuple[Floats, Floats]:
    """Compute the score statistic at values, and the multiplier, from a start; each (k,)."""
    off = of.level - value[:, None] * of.slope
    with np.errstate(all="ignore"):
        tilt = _tilt(off, of.weights, start)
        spread = np.sqrt(_sums(of.weights * off, off / (1 + tilt[:, None] * off)))
        total = _sums(of.observed, off)
        return np.where(total == 0, 0.0, total / spread), tilt


def _tilt(off: Floats, weights: Floats, start: Floats) -> Floats:
    """Find the multiplier t of the constraint: a zero of sum(weights * off / (1 + t * off)).

    No outcome can have a probability above 1, so t is bounded on both sides. Without deviations to
    one side, no t fits, and the multiplier is so large that the spread is about 0.
    """
    ends = (weights / weights.sum(axis=1, keepdims=True) - 1) / off
    low = np.where(off > 0, ends, -math.inf).max(axis=1)
    high = np.where(off < 0, ends, math.inf).min(axis=1)
    is_final = np.isinf(low) | np.isinf(high)
    tilt = np.where((low < start) & (start < high), start, 0.0)
    tilt = np.where(is_final, np.where(np.isinf(high), _HUGE, -_HUGE), tilt)
    first, second = weights * off, weights * off**2
    for _ in range(_STEPS):
        if is_final.all():
            break
        share = 1 / (1 + tilt[:, None] * off)
        value = _sums(first, share)
        low, high = np.where(value > 0, tilt, low), np.where(value > 0, high, tilt)
        newton = tilt + value / _sums(second, share**2)
        is_between = (low <= newton) & (newton <= high)
        following = np.where(is_between, newton, (low + high) / 2)
        # the error after a step of Newton's is about the square of the step
        step = np.abs(following - tilt) / np.abs(following)
        is_last = ~(step > np.where(is_between, 1e-7, 1e-12))
        # a converged figure is frozen, so it does not depend on the other figures
        tilt = np.where(is_final, tilt, following)
        is_final |= is_last
    return tilt


def _ends(of: _Deviations, within: tuple[float, float], level: float) -> tuple[Floats, Floats]:
    """Find the values below and above the estimate at which the statistic reaches the quantile.

    The search uses secants for both ends at once, and bisects if a secant leaves the bracket.
    """
    # figures with few questions often have equal outcomes
    _, first, alike = np.unique(
        np.hstack(list(vars(of).values())), axis=0, return_index=True, return_inverse=True
    )
    k = len(first)
    of = of.take(np.concatenate([first, first]))
    side = np.repeat([1.0, -1.0], k)
    z = NormalDist().inv_cdf(0.5 + level / 2)
    with np.errstate(invalid="ignore", divide="ignore"):
        near = _sums(of.observed, of.level) / _sums(of.observed, of.slope)
    far = np.repeat(within, k)
    statistic, tilt = _statistic(of, far, np.zeros(2 * k))
    open_, end = side * statistic <= z, far
    before, at_before = near, np.full(2 * k, -z)
    value = near - side * z * _standard_error(of, near)
    is_closed = open_ | np.isnan(near)
    for _ in range(_STEPS):
        inside = (value - near) * (value - far) < 0
        value = np.where(inside, value, (near + far) / 2)
        # only for ends that have not converged
        left = np.flatnonzero(~is_closed)
        at = at_before.copy()
        statistic, tilt[left] = _statistic(of.take(left), value[left], tilt[left])
        at[left] = side[left] * statistic - z
        near, far = np.where(at <= 0, value, near), np.where(at > 0, value, far)
        close = ~(np.abs(value - before) > 1e-9 * np.abs(end - before))
        with np.errstate(invalid="ignore", divide="ignore"):
            secant = value - at * (value - before) / (at - at_before)
        before, at_before = np.where(is_closed, before, value), at
        value, is_closed = np.where(is_closed, before, secant), is_closed | close
        if is_closed.all():
            break
    # digits beyond the twelfth are rounding errors of sums
    ends = (np.where(open_, end, before) + 0 * before).round(12)
    return ends[:k][alike], ends[k:][alike]


def _standard_error(of: _Deviations, value: Floats) -> Floats:
    """Compute the unconstrained standard error of the estimate, shape (k,)."""
    off = of.level - value[:, None] * of.slope
    with np.errstate(invalid="ignore", divide="ignore"):
        error: Floats = np.sqrt(_sums(of.weights, off**2)) / _sums(of.weights, of.slope)
    return error
