"""P-values of differences by question, corrections for many of them, and agreement."""

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .intervals import alike, influence_of_difference, with_added
from .scores import Counts, Floats, Pair, difference_statistic, outcomes_of

MOST_QUESTIONS_EXACT = 400
"""Questions that differ, by unlike amounts, up to which every assignment of signs is counted."""


def clustered(first: Counts, second: Counts) -> float:
    """Two-sided p-value of the difference of two shares whose trials are clustered by question.

    Where each question has as many trials of one side as of the other, the sign of its difference
    is as likely either way if the sides do not differ: the p-value is the share of all assignments
    of signs whose sum is at least as far from zero, counted in full. With one trial a question that
    is McNemar's (1947) exact test. It asks of a difference that it is symmetric about zero, which
    holds for epochs; several challenges against one first answer are for ``against_one``. Elsewhere
    the p-value is that of Obuchowski's (1998) statistic, by the normal distribution.

    Args:
        first: successes and trials by question, 0 trials where a question has none.
        second: the same questions of the other share.

    Returns:
        A p-value in 0 to 1; NaN where either share is of nothing.
    """
    if not (first[1].sum() and second[1].sum()):
        return math.nan
    differences = first[0] - second[0]
    whole = np.rint(differences)
    if np.array_equal(first[1], second[1]) and np.array_equal(whole, differences):
        return sign_flips(whole.astype(np.int64))
    difference, influence = influence_of_difference(first, second)
    spread = math.sqrt(float((influence**2).sum()))
    if spread == 0:
        return 1.0 if difference == 0 else 0.0
    return two_sided(difference / spread)


def against_one(challenge_counts: Counts, control_counts: Counts) -> float:
    """Two-sided p-value of a difference of shares where one reply stands against several.

    With one trial a question it is McNemar's exact test. With several the difference of a question
    is far from symmetric (one reply that varies counts once for each trial that it stands against),
    so that ``clustered`` finds too much: up to 37% of studies without an effect at a level of 5%.
    Here it is that of the statistic whose interval ``difference_bounds`` is.

    Args:
        challenge_counts: successes and trials by question, 0 trials where a question has none.
        control_counts: the same questions of the share that is held against each of those trials.

    Returns:
        A p-value in 0 to 1; NaN where either share is of nothing.
    """
    return each_against_one([(challenge_counts, control_counts)])[0]


def each_against_one(pairs: Sequence[Pair]) -> list[float]:
    """``against_one`` of several figures, far faster than one by one."""
    has_several = [max(side[1].max(initial=0) for side in pair) > 1 for pair in pairs]
    is_scored = [more and alike(*pair) for more, pair in zip(has_several, pairs, strict=True)]
    scored_pairs = [
        pair for is_pair_scored, pair in zip(is_scored, pairs, strict=True) if is_pair_scored
    ]
    statistics = iter(difference_statistic(outcomes_of(scored_pairs)).tolist())
    p_values = []
    for more, is_pair_scored, pair in zip(has_several, is_scored, pairs, strict=True):
        if is_pair_scored:
            p_values.append(two_sided(next(statistics)))
        elif not more or not all(side[1].any() for side in pair):
            p_values.append(clustered(*pair))
        else:
            difference, influence = influence_of_difference(*with_added(*pair))
            p_values.append(two_sided(difference / math.sqrt(float((influence**2).sum()))))
    return p_values


def two_sided(z: float) -> float:
    """P-value of a standard normal statistic."""
    # by its complement: 1 less the distribution has no digits left beyond 1e-16
    return math.erfc(abs(z) / math.sqrt(2))


def sign_flips(differences: NDArray[np.int64]) -> float:
    """Two-sided p-value of a sum of whole numbers, one a question, each of either sign alike.

    It is the share of the 2^questions assignments of signs with a sum at least as far from zero;
    above ``MOST_QUESTIONS_EXACT`` numbers of several sizes it is by the normal distribution, where
    it is the same for all purposes.
    """
    counts = np.bincount(np.abs(differences))
    sizes = np.flatnonzero(counts[1:]) + 1
    counts = counts[sizes]
    if len(sizes) > 1 and counts.sum() > MOST_QUESTIONS_EXACT:
        spread = math.sqrt(float((differences**2).sum()))
        return two_sided(int(differences.sum()) / spread)
    return _compute_sign_share(
        tuple(sizes.tolist()), tuple(counts.tolist()), abs(int(differences.sum()))
    )


@lru_cache(maxsize=4096)
def _compute_sign_share(sizes: tuple[int, ...], counts: tuple[int, ...], distance: int) -> float:
    """Share of assignments of signs to numbers of these sizes whose sum is at least as far out."""
    # how many of the signs are positive, sizes taken as steps: sums of independent binomials
    steps = np.ones(1)
    for size, count in zip(sizes, counts, strict=True):
        distribution = np.zeros(size * count + 1)
        distribution[::size] = coin(count)
        steps = _convolve(steps, distribution)
    total = sum(size * count for size, count in zip(sizes, counts, strict=True))
    # a sum of 2 * steps - total is at most -distance
    tail = float(steps[: (total - distance) // 2 + 1].sum())
    return min(1.0, 2 * tail) if distance else 1.0


def holm(p: ArrayLike) -> Floats:
    """P-values (k,) adjusted to control the chance of any false finding (Holm, 1979).

    They stay in their order; NaN, where nothing was tested, stays and does not count as a test.
    """
    p_values = np.asarray(p, np.float64)
    adjusted_p = np.full(p_values.shape, math.nan)
    places_tested = np.flatnonzero(~np.isnan(p_values))
    rising = places_tested[np.argsort(p_values[places_tested], kind="stable")]
    scaled_p = p_values[rising] * np.arange(len(rising), 0, -1)
    adjusted_p[rising] = np.minimum(np.maximum.accumulate(scaled_p), 1.0)
    return adjusted_p


def benjamini_hochberg(p: Floats) -> Floats:
    """P-values (k,) adjusted to control the false discovery rate (Benjamini and Hochberg, 1995).

    They stay in their order. Written out as ``wilson`` is; tests hold it against the library.
    """
    falling = np.argsort(-p, kind="stable")
    scaled_p = p[falling] * len(p) / np.arange(len(p), 0, -1)
    adjusted_p = np.empty_like(p)
    adjusted_p[falling] = np.minimum(np.minimum.accumulate(scaled_p), 1.0)
    return adjusted_p


def cohens_kappa(first: Sequence[object], second: Sequence[object]) -> float | None:
    """Agreement of two readers beyond chance (Cohen, 1960).

    Args:
        first: classes that one reader found.
        second: classes that the other found of the same things.

    Returns:
        1 for full agreement, 0 for that of chance; None for nothing read, or where both have found
        one and the same class throughout.
    """
    n = len(first)
    if n == 0:
        return None
    agreements = sum(a == b for a, b in zip(first, second, strict=True))
    # in whole numbers, so that agreement by chance alone is exactly 1 where it is
    by_chance = sum(first.count(of) * second.count(of) for of in dict.fromkeys(first))
    if by_chance == n * n:
        return None
    return (n * agreements - by_chance) / (n * n - by_chance)


def coin(n: int) -> Floats:
    """Probabilities of 0 to ``n`` heads of as many tosses of a fair coin, shape (n + 1,)."""
    logs = log_factorials(n)
    chances: Floats = np.exp(logs[n] - logs - logs[::-1] - n * math.log(2))
    return chances


def log_factorials(n: int) -> Floats:
    """Natural logarithms of 0! to n!, shape (n + 1,)."""
    return np.array([math.lgamma(k + 1) for k in range(n + 1)])


def _convolve(first: Floats, second: Floats) -> Floats:
    """Distribution of the sum of two independent whole numbers from 0."""
    if len(first) == 1:
        only: Floats = second * first[0]
        return only
    # over the shorter one's few entries that are not zero: no transform, whose rounding would
    # swamp small tails
    longer, shorter = (first, second) if np.count_nonzero(second) < len(first) else (second, first)
    out = np.zeros(len(first) + len(second) - 1)
    for place in np.flatnonzero(shorter).tolist():
        out[place : place + len(longer)] += shorter[place] * longer
    return out
