"""Intervals, all computed in this module."""

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from .scores import Counts as Counts
from .scores import Floats as Floats
from .scores import Pair, design_effect, outcomes_of, paired_change, paired_difference

ROUNDING = 1e-9
"""Largest rounding error of a sum."""

PairedInterval = tuple[tuple[Counts, ...], Callable[..., tuple[float, float]]]
"""Sides of a figure over the same clusters, and a function of the sides and a level."""


def wilson(correct: Floats, n: Floats, level: float = 0.95) -> tuple[Floats, Floats]:
    """Compute the Wilson score interval of a share (Wilson, 1927).

    It is implemented here for two reasons. It accepts a fractional number of trials
    (``effective_n``), and the library with this interval would cost every command 170 MB. Tests
    compare it with that library.

    Args:
        correct: number of successes, shape (k,).
        n: number of trials, shape (k,).
        level: coverage.

    Returns:
        Lower and upper bounds in 0 to 1, each of shape (k,); NaN without trials.

    Raises:
        ValueError: there are more successes than trials, or fewer than 0.
    """
    if ((correct < -ROUNDING) | (correct > n + ROUNDING)).any():
        raise ValueError("successes must be between 0 and the number of trials")
    z = _z(level)
    with np.errstate(invalid="ignore", divide="ignore"):
        share = correct / n
        center = (share + z**2 / (2 * n)) / (1 + z**2 / n)
        half = z / (1 + z**2 / n) * np.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    # exact at the ends, because rounding would leave 1e-17 or 1 - 1e-16
    low = np.where(correct == 0, 0.0, center - half)
    high = np.where(correct == n, 1.0, center + half)
    return np.where(n == 0, math.nan, low), np.where(n == 0, math.nan, high)


def exact_bounds(successes: float, n: float, level: float = 0.95) -> tuple[float, float]:
    """Compute the exact interval of a share (Clopper and Pearson, 1934), which is conservative.

    For any share, each bound is wrong with probability (1 - level) / 2 or less. With a fractional
    number of trials (``effective_n``), it is the interval of Korn and Graubard (1998).

    Args:
        successes: number of successes, 0 or more, possibly fractional.
        n: number of trials, above 0, possibly fractional.
        level: coverage.

    Returns:
        Bounds in 0 to 1.
    """
    tail, failures = 0.5 - level / 2, n - successes
    low = _beta_quantile(tail, successes, failures + 1) if successes > 0 else 0.0
    high = 1 - _beta_quantile(tail, failures, successes + 1) if failures > 0 else 1.0
    return low, high


def outside(share: float, n: float, clusters: float, bound: float, level: float = 0.95) -> int:
    """Decide on which side of a bound the exact interval of a gate lies, as in ``gate``.

    The result is that of ``exact_bounds`` for ``share`` in ``n`` trials. A limit is never narrower
    than the limit for 0 failures, or 0 successes, in ``clusters`` trials. This function is much
    faster than ``exact_bounds``, because it does not search for a limit.

    Returns:
        1 if the interval lies above the bound, -1 if below, 0 if it contains the bound.
    """
    tail, hits = 0.5 - level / 2, share * n
    if share > bound:
        sure = bound**clusters < tail
        return int(sure and hits > 0 and _beta_share(bound, hits, n - hits + 1) < tail)
    sure = (1 - bound) ** clusters < tail
    return -int(sure and hits < n and 1 - _beta_share(bound, hits + 1, n - hits) < tail)


def _beta_quantile(p: float, a: float, b: float) -> float:
    """Compute a quantile of the beta distribution to 1e-12 for exact limits.

    The search uses Newton steps, and bisects if a step leaves the bracket.
    """
    low, value, high = 0.0, a / (a + b), 1.0
    logs = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    while high - low > 1e-12:
        share = _beta_share(value, a, b)
        low, high = (value, high) if share < p else (low, value)
        density = math.exp(logs + (a - 1) * math.log(value) + (b - 1) * math.log1p(-value))
        following = value + (p - share) / density if density else math.inf
        if low < following < high and abs(following - value) <= 1e-12 * following:
            return following
        value = following if low < following < high else (low + high) / 2
    return value


def _beta_share(x: float, a: float, b: float) -> float:
    """Compute the beta distribution function at x (Lentz's continued fraction; DLMF 8.17.22)."""
    if x > (a + 1) / (a + b + 2):
        return 1 - _beta_share(1 - x, b, a)
    fraction = above = 1.0
    below, step = 0.0, 1
    while abs(1 - above * below) > 1e-14:
        m = step // 2
        if step % 2:
            part = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        else:
            part = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        below = 1 / (1 + part * below)
        above = 1 + part / above
        fraction *= above * below
        step += 1
    logs = math.lgamma(a + b) - math.lgamma(a + 1) - math.lgamma(b)
    return math.exp(logs + a * math.log(x) + b * math.log1p(-x)) / fraction


def effective_n(by_cluster: Floats, sizes: Floats) -> float:
    """Compute the number of independent trials with the same precision as clustered trials.

    Turns of one question correlate, so 14 turns contain less information than 14 questions. The
    number of trials is divided by the ``design_effect``. With one trial per cluster, the result is
    the number of trials. ``by_cluster`` and ``sizes`` are successes and trials of each cluster
    (question), shape (clusters,).
    """
    return float(sizes.sum() / design_effect(by_cluster, sizes, np.ones(len(sizes))))


def difference_bounds(first: Counts, second: Counts, level: float = 0.95) -> tuple[float, float]:
    """Compute the interval of the difference of two shares with common clusters.

    If each question has equally many trials on both sides, the interval comes from the score test
    (``paired_difference``). Otherwise, one question is added for each side, and the variance is the
    linearised, cluster-robust variance of both shares together. Without common questions, this is
    the adjusted interval for independent shares of Agresti and Caffo (2000).

    Args:
        first: successes and trials by question, 0 if a question has no trials.
        second: successes and trials of the other share, for the same questions.
        level: coverage.

    Returns:
        Bounds of first less second in -1 to 1; NaN if either share has no trials.
    """
    return each_difference([(first, second)], level)[0]


def each_difference(pairs: Sequence[Pair], level: float = 0.95) -> list[tuple[float, float]]:
    """Compute ``difference_bounds`` of several figures, much faster than one by one."""
    low, high = paired_difference(outcomes_of([pair for pair in pairs if alike(*pair)]), level)
    bounds = zip(low.tolist(), high.tolist(), strict=True)
    return [next(bounds) if alike(*pair) else _bound_unlike(*pair, level) for pair in pairs]


def alike(first: Counts, second: Counts) -> bool:
    """Whether every question has equally many trials on both sides, and some have any."""
    return bool(first[1].any()) and np.array_equal(first[1], second[1])


def _bound_unlike(first: Counts, second: Counts, level: float) -> tuple[float, float]:
    """Compute the interval of a difference of sides with unequal trials."""
    if not (first[1].any() and second[1].any()):
        return math.nan, math.nan
    difference, influence = influence_of_difference(*with_added(first, second))
    half = _z(level) * math.sqrt(float((influence**2).sum()))
    return max(difference - half, -1.0), min(difference + half, 1.0)


def with_added(first: Counts, second: Counts) -> tuple[Counts, Counts]:
    """Add two questions to both sides: a success on the first side alone, and the reverse."""
    return _with_added(first, np.array((1, 0))), _with_added(second, np.array((0, 1)))


def influence_of_difference(first: Counts, second: Counts) -> tuple[float, Floats]:
    """Return the difference of two shares, and each cluster's influence, shape (clusters,)."""
    (share, influence), (second_share, opposite) = _share(*first), _share(*second)
    return share - second_share, influence - opposite


def change_bounds(first: Counts, second: Counts, level: float = 0.95) -> tuple[float, float]:
    """Compute the interval of the relative change between two shares with common clusters.

    The change is first / second - 1. If each question has equally many trials on both sides, the
    interval comes from the score test (``paired_change``), otherwise from ``excess_bounds``.

    Args:
        first: successes and trials by question, 0 if a question has no trials.
        second: successes and trials of the share before the change, for the same questions.
        level: coverage.

    Returns:
        Bounds of -1 or more that contain the change; NaN if either share has no trials, or the
        second is 0.
    """
    if not (first[1].sum() and second[1].sum() and second[0].sum()):
        return math.nan, math.nan
    if alike(first, second):
        (low,), (high,) = paired_change(outcomes_of([(first, second)]), level)
        return float(low), float(high)
    lower, upper = excess_bounds(first, second, level)
    return -upper, -lower


def detection_bounds(
    hits: Counts, false_alarms: Counts, level: float = 0.95
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Compute intervals of d' and of the criterion c, both with the log-linear correction.

    The delta method (Gourevitch and Galanter, 1967) is applied at the corrected rates. Its variance
    is the cluster-robust variance of both rates together, so the rates of a question are paired.
    The correction (Hautus, 1995) adds half a success and half a failure to each rate, independent
    of each other. In simulations of 2,000 studies each, with 20 questions or more, 95% intervals of
    d' contained the true value in 93.8% to 96.2% of studies. A percentile bootstrap over questions
    covers only 80% to 85% for rates of 0.93 and 0.05 with 15 to 40 questions, because it never
    draws unseen failures.

    Args:
        hits: successes and trials by question, 0 if a question has no trials.
        false_alarms: successes and trials of the other rate, for the same questions.
        level: coverage.

    Returns:
        Bounds of d' = z(hits) - z(false alarms) and of c = -(z(hits) + z(false alarms)) / 2; NaN
        if either rate has no trials.
    """
    if not (hits[1].sum() and false_alarms[1].sum()):
        return (math.nan, math.nan), (math.nan, math.nan)
    # all four joint outcomes, a quarter of a question each
    weights = np.concatenate([np.ones(len(hits[0])), np.full(4, 0.25)])
    normal, scores, influences = NormalDist(), [], []
    for counts, corrections in ((hits, (1, 1, 0, 0)), (false_alarms, (1, 0, 1, 0))):
        rate, influence = _share(*_with_added(counts, np.array(corrections), size=1.0), weights)
        scores.append(normal.inv_cdf(rate))
        influences.append(influence / normal.pdf(scores[-1]))
    bounds = []
    for estimate, influence in (
        (scores[0] - scores[1], influences[0] - influences[1]),
        (-(scores[0] + scores[1]) / 2, (influences[0] + influences[1]) / 2),
    ):
        half = _z(level) * math.sqrt(float((weights * influence**2).sum()))
        bounds.append((estimate - half, estimate + half))
    return bounds[0], bounds[1]


def mean_bounds(of: Counts, level: float = 0.95) -> tuple[float, float]:
    """Compute the interval of a mean of clustered values in 0 to 1, by Student's t.

    ``of`` contains the sum and number of values by question. Bounds are in 0 to 1. They are NaN
    with fewer than two questions.
    """
    _check_means(of)
    totals, sizes = (part[of[1] > 0] for part in of)
    if len(totals) < 2:
        return math.nan, math.nan
    mean, influence = _share(totals, sizes)
    half = _half_of_means(influence, len(totals), level)
    return max(mean - half, 0.0), min(mean + half, 1.0)


def mean_difference_bounds(
    first: Counts, second: Counts, level: float = 0.95
) -> tuple[float, float]:
    """Compute the interval of the difference of two means of values in 0 to 1, by cluster.

    Both sides are as in ``mean_bounds``, with 0 for a question without values. Bounds of first less
    second are in -1 to 1. They are NaN if either side has fewer than two questions.
    """
    _check_means(first, second)
    fewest = min(int((counts[1] > 0).sum()) for counts in (first, second))
    if fewest < 2:
        return math.nan, math.nan
    (mean, influence), (second_mean, opposite) = _share(*first), _share(*second)
    half = _half_of_means(influence - opposite, fewest, level)
    return max(mean - second_mean - half, -1.0), min(mean - second_mean + half, 1.0)


def _check_means(*sides: Counts) -> None:
    """Refuse values outside 0 to 1, because clipped bounds would not contain them."""
    for totals, sizes in sides:
        if ((totals < -ROUNDING) | (totals > sizes + ROUNDING)).any():
            raise ValueError(
                "values must be in 0 to 1. Divide them by their largest possible value"
            )


def _half_of_means(influence: Floats, clusters: int, level: float) -> float:
    spread = math.sqrt(clusters / (clusters - 1) * float((influence**2).sum()))
    return student_t(0.5 + level / 2, clusters - 1) * spread


def bootstrap_shares(
    right: Floats, n: Floats, *, level: float = 0.95, resamples: int = 2_000, seed: int = 42
) -> tuple[Floats, Floats]:
    """Compute percentile bootstrap intervals over clusters, for shares with the same trials.

    Args:
        right: successes of each cluster (question) in each share, shape (clusters, k).
        n: trials of each cluster, shape (clusters,).
        level: coverage.
        resamples: number of resamples of clusters, drawn with replacement.
        seed: seed of the random generator.

    Returns:
        Lower and upper bounds, each of shape (k,); NaN without trials.
    """
    if not n.sum():
        nothing = np.full(right.shape[1], math.nan)
        return nothing, nothing
    draws = resamples_of(len(n), resamples, seed)
    with np.errstate(invalid="ignore"):
        shares = (draws @ right) / (draws @ n)[:, None]
    tail = (1 - level) / 2
    low, high = np.nanquantile(shares, [tail, 1 - tail], axis=0)
    return low, high


@lru_cache(maxsize=2)
def resamples_of(clusters: int, resamples: int, seed: int) -> Floats:
    """Draw the count of each cluster in each resample, shape (resamples, clusters)."""
    equal = np.full(clusters, 1 / clusters)
    # floats, because matrix products of floats are fast
    return np.random.default_rng(seed).multinomial(clusters, equal, resamples).astype(float)


@lru_cache(maxsize=4096)
def student_t(p: float, df: int) -> float:
    """Compute a quantile of Student's t distribution for p in 0.5 to 1 and df of 1 or more."""
    if not (0.5 <= p < 1 and df >= 1):
        raise ValueError(f"no quantile of Student's t at {p} with {df} degrees of freedom")
    if p == 0.5:
        return 0.0
    # the two tails beyond t equal the beta distribution function at df / (df + t^2)
    low, high = 0.0, 1.0
    beyond = 2 * (1 - p)
    while _beyond(high, df) > beyond:
        low, high = high, 2 * high
    while high - low > 1e-13 * high:
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (middle, high) if _beyond(middle, df) > beyond else (low, middle)
    return (low + high) / 2


def _beyond(t: float, df: int) -> float:
    return 1.0 if t == 0 else _beta_share(df / (df + t * t), df / 2, 0.5)


def _z(level: float) -> float:
    return NormalDist().inv_cdf(0.5 + level / 2)


def _share(hits: Floats, trials: Floats, weights: Floats | None = None) -> tuple[float, Floats]:
    """Return the share, and the influence of each cluster on it."""
    weights = np.ones(len(hits)) if weights is None else weights
    n = float((weights * trials).sum())
    share = float((weights * hits).sum()) / n
    return share, (hits - share * trials) / n


def _with_added(counts: Counts, hits: NDArray[np.int64], size: float | None = None) -> Counts:
    """Add a question for each element of ``hits``, with only successes (1) or only failures (0).

    Its number of trials is the mean of the other questions, unless ``size`` is given.
    """
    size = _mean_trials(counts) if size is None else size
    return (
        np.concatenate([counts[0], hits * size]),
        np.concatenate([counts[1], np.full(len(hits), size)]),
    )


def _mean_trials(counts: Counts) -> float:
    """Return the mean number of trials of questions with trials."""
    return float(counts[1][counts[1] > 0].mean())


def excess_bounds(first: Counts, second: Counts, level: float = 0.95) -> tuple[float, float]:
    """Compute the interval of 1 - first / second for shares with common clusters (Fieller, 1954).

    The interval contains a value r if the difference of ``first`` and (1 - r) times ``second`` is
    not statistically distinguishable from zero. The variance is linearised and cluster-robust. A
    question is added for each side. The quantile is Student's t. The sides can have unequal trials
    (docs/concepts/numbers.md has the measured coverage).

    Args:
        first: successes and trials by question, 0 if a question has no trials.
        second: successes and trials of the share to compare with, for the same questions.
        level: coverage.

    Returns:
        Bounds of 1 or less. They are NaN if either share has no trials, or if the second share is
        0 or not distinguishable from 0, because the interval is then unbounded.
    """
    clusters = min(int((counts[1] > 0).sum()) for counts in (first, second))
    if clusters < 2 or not second[0].sum():
        return math.nan, math.nan
    (over, influence), (under, opposite) = (
        _share(*_with_added(counts, np.array(hits)))
        for counts, hits in ((first, (1, 0)), (second, (0, 1)))
    )
    t = student_t(0.5 + level / 2, clusters - 1) ** 2
    square = under**2 - t * float(opposite @ opposite)
    if square <= 0:
        return math.nan, math.nan
    cross = over * under - t * float(influence @ opposite)
    remainder = over**2 - t * float(influence @ influence)
    half = math.sqrt(max(cross**2 - square * remainder, 0.0))
    low, high = (cross - half) / square, (cross + half) / square
    # the added questions move the interval, but it must contain the figure
    estimate = _share(*first)[0] / _share(*second)[0]
    return 1 - max(high, estimate), 1 - min(max(low, 0.0), estimate)


def contrast_bounds(
    first: tuple[Counts, Counts], second: tuple[Counts, Counts], level: float = 0.95
) -> tuple[float, float]:
    """Compute the interval of a difference of two differences of shares, over common clusters.

    Each difference gets the same added questions as in ``difference_bounds``. The quantile is
    Student's t, with degrees of freedom from the share with the fewest questions.

    Args:
        first: successes and trials by question, for both sides of the first difference.
        second: the same for the difference to subtract.
        level: coverage.

    Returns:
        Bounds in -2 to 2; NaN if any share has fewer than two questions.
    """
    fewest = min(int((counts[1] > 0).sum()) for counts in (*first, *second))
    if fewest < 2:
        return math.nan, math.nan
    (first_difference, influence), (second_difference, opposite) = (
        influence_of_difference(*with_added(over, under)) for over, under in (first, second)
    )
    n = len(first[0][0])
    variance = float(((influence[:n] - opposite[:n]) ** 2).sum())
    variance += float((influence[n:] ** 2).sum() + (opposite[n:] ** 2).sum())
    half = student_t(0.5 + level / 2, fewest - 1) * math.sqrt(variance)
    return max(first_difference - second_difference - half, -2.0), min(
        first_difference - second_difference + half, 2.0
    )
