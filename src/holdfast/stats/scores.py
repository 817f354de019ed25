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
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

Counts = tuple[Floats, Floats]
"""Successes and trials of each cluster (question), both of shape (clusters,)."""

Pair = tuple[Counts, Counts]
"""Both sides of a figure, over the same clusters."""

_Contrast = Callable[[Floats, Floats, Floats, Floats], Floats]
"""Deviation of outcomes from values: a function of both sides, trials and values (k, 1)."""

_STEPS = 200
"""Upper limit of the steps of a search, which no search reaches."""


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
    n = (of.questions * of.trials).sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        estimate = (of.questions * (of.first - of.second)).sum(axis=1) / n
    low, high = _ends(of, _off_difference, (-1.0, estimate, 1.0), level)
    return low, high


def paired_change(of: Outcomes, level: float) -> tuple[Floats, Floats]:
    """Compute bounds of first / second - 1, each of shape (k,); NaN if the second side is 0."""
    over, under = ((of.questions * side).sum(axis=1) for side in (of.first, of.second))
    with np.errstate(invalid="ignore", divide="ignore"):
        # as a part of the total of both sides, which is bounded
        estimate = np.where(under > 0, over / (over + under), math.nan)
        low, high = _ends(of, _off_part, (0.0, estimate, 1.0), level)
        return low / (1 - low) - 1, high / (1 - high) - 1


def difference_statistic(of: Outcomes, value: float = 0.0) -> Floats:
    """Compute the score statistic of a difference, standard normal at the truth, shape (k,)."""
    return _statistic(of, _off_difference, _build_added(of), np.full(len(of.first), value))


def _off_difference(first: Floats, second: Floats, trials: Floats, value: Floats) -> Floats:
    return first - second - value * trials


def _off_part(first: Floats, second: Floats, _: Floats, value: Floats) -> Floats:
    return (1 - value) * first - value * second


def _build_added(of: Outcomes) -> Outcomes:
    """Build half a question with successes on the first side alone, and half of the reverse."""
    first_trials, second_trials = (
        _added_trials(of, of.first, of.second),
        _added_trials(of, of.second, of.first),
    )
    nothing = np.zeros_like(first_trials)
    halves = np.full((len(first_trials), 2), 0.5)
    return Outcomes(
        np.stack([first_trials, nothing], axis=1), np.stack([nothing, second_trials], axis=1),
        np.stack([first_trials, second_trials], axis=1), halves,
    )  # fmt: skip


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


def _statistic(
    of: Outcomes, contrast: _Contrast, added_outcomes: Outcomes, value: Floats
) -> Floats:
    off, more = (
        contrast(part.first, part.second, part.trials, value[:, None])
        for part in (of, added_outcomes)
    )
    all_values = np.concatenate([off, more], axis=1)
    weights = np.concatenate([of.questions, added_outcomes.questions], axis=1)
    with np.errstate(all="ignore"):
        tilted_weights = (
            weights * all_values / (1 + _tilt(all_values, weights)[:, None] * all_values)
        )
        spread = np.sqrt((tilted_weights * all_values).sum(axis=1))
        total = (of.questions * off).sum(axis=1)
        return np.where(total == 0, 0.0, total / spread)


def _tilt(off: Floats, weights: Floats) -> Floats:
    """Find the multiplier t of the constraint: a zero of sum(weights * off / (1 + t * off)).

    No outcome can have a probability above 1, so t is bounded on both sides.
    """
    slack = 1 - weights / weights.sum(axis=1, keepdims=True)
    ends = -slack / off
    low = np.where(off > 0, ends, -math.inf).max(axis=1)
    high = np.where(off < 0, ends, math.inf).min(axis=1)
    tilt, left = np.zeros(len(off)), np.arange(len(off))
    for _ in range(_STEPS):
        # a converged figure is frozen, so it does not depend on the other figures
        now = tilt[left]
        parts = off / (1 + now[:, None] * off)
        value, slope = (weights * parts).sum(axis=1), (weights * parts**2).sum(axis=1)
        low, high = np.where(value > 0, now, low), np.where(value > 0, high, now)
        newton = now + value / slope
        following = np.where((newton > low) & (newton < high), newton, (low + high) / 2)
        tilt[left] = following
        # without deviations to one side, t does not exist and is not bounded
        more = (np.abs(following - now) > 1e-12 * np.abs(following)) & np.isfinite(following)
        left, low, high = left[more], low[more], high[more]
        off, weights = off[more], weights[more]
        if not len(left):
            break
    return tilt


def _ends(
    of: Outcomes, contrast: _Contrast, within: tuple[float, Floats, float], level: float
) -> tuple[Floats, Floats]:
    """Find the values below and above the estimate at which the statistic reaches the quantile.

    The search uses secants for both ends at once, and bisects if a secant leaves the bracket.
    """
    low_end, estimates, high_end = within
    # figures with few questions often have equal outcomes
    _, first, alike = np.unique(
        np.concatenate(list(vars(of).values()), axis=1), axis=0, return_index=True,
        return_inverse=True,
    )  # fmt: skip
    of, estimate = _take(of, first), estimates[first]
    k = len(estimate)
    both_ends = Outcomes(*(np.concatenate([part, part]) for part in vars(of).values()))
    added_outcomes = _build_added(both_ends)
    side = np.repeat([1.0, -1.0], k)
    z = NormalDist().inv_cdf(0.5 + level / 2)

    def clearance(value: Floats, of: NDArray[np.int64]) -> Floats:
        group_outcomes, more = (_take(part, of) for part in (both_ends, added_outcomes))
        return side[of] * _statistic(group_outcomes, contrast, more, value[of]) - z

    near, far = np.concatenate([estimate, estimate]), np.repeat([low_end, high_end], k)
    open_, end = clearance(far, np.arange(2 * k)) <= 0, far
    before, at_before = near, np.full(2 * k, -z)
    value = near - side * z * _standard_error(both_ends, contrast, added_outcomes, near)
    is_closed = open_ | np.isnan(near)
    for _ in range(_STEPS):
        inside = (value - near) * (value - far) < 0
        value = np.where(inside, value, (near + far) / 2)
        # only for ends that have not converged
        left = np.flatnonzero(~is_closed)
        at = at_before.copy()
        at[left] = clearance(value, left)
        near, far = np.where(at <= 0, value, near), np.where(at > 0, value, far)
        close = ~(np.abs(value - before) > 1e-9 * np.abs(end - before))
        with np.errstate(invalid="ignore", divide="ignore"):
            secant = value - at * (value - before) / (at - at_before)
        before, at_before = np.where(is_closed, before, value), at
        value, is_closed = np.where(is_closed, before, secant), is_closed | close
        if is_closed.all():
            break
    # digits beyond the twelfth are rounding errors of sums
    ends = (np.where(open_, end, before) + 0 * np.concatenate([estimate, estimate])).round(12)
    return ends[:k][alike], ends[k:][alike]


def _take(of: Outcomes, at: NDArray[np.int64]) -> Outcomes:
    """Select the outcomes of some figures."""
    return Outcomes(*(part[at] for part in vars(of).values()))


def _standard_error(
    of: Outcomes, contrast: _Contrast, added_outcomes: Outcomes, value: Floats
) -> Floats:
    """Compute the unconstrained standard error of the estimate, shape (k,)."""
    total, variance = np.zeros((2, len(value)))
    for part in (of, added_outcomes):
        off, further = (
            contrast(part.first, part.second, part.trials, at[:, None]) for at in (value, value + 1)
        )
        total = total + (part.questions * (off - further)).sum(axis=1)
        variance = variance + (part.questions * off**2).sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        error: Floats = np.sqrt(variance) / total
    return error
