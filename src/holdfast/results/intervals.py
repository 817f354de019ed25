"""Intervals. The one place where they are computed."""

import math

import numpy as np
from numpy.typing import NDArray
from statsmodels.stats.proportion import proportion_confint


def wilson(
    correct: NDArray[np.float64], n: NDArray[np.float64], level: float = 0.95
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Wilson score interval of a share.

    Args:
        correct: number of successes, shape (k,).
        n: number of trials, shape (k,); a share of nothing has no interval (NaN).
        level: coverage.

    Returns:
        Lower and upper bounds in 0 to 1, each of shape (k,).
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        low, high = proportion_confint(correct, n, alpha=1 - level, method="wilson")
    empty = np.asarray(n) == 0
    # exact at the ends, where rounding leaves a bound of 1e-17 or 1 - 1e-16
    low = np.where(np.asarray(correct) == 0, 0.0, low)
    high = np.where(np.asarray(correct) == np.asarray(n), 1.0, high)
    return np.where(empty, math.nan, low), np.where(empty, math.nan, high)


def effective_n(share: float, by_cluster: NDArray[np.float64], sizes: NDArray[np.float64]) -> float:
    """Trials that independent draws would need for the precision of clustered ones.

    Turns of one question are alike, so fourteen of them say less than fourteen questions. The
    variance of the share is that of a ratio of cluster totals; the effective number makes a
    binomial have it. With one trial a cluster it is the number of trials itself.

    Args:
        share: overall share of successes.
        by_cluster: successes in each cluster (question), shape (clusters,).
        sizes: trials in each cluster, shape (clusters,).
    """
    n = float(sizes.sum())
    residual = float(((by_cluster - share * sizes) ** 2).sum())
    if residual == 0:  # all alike within and between clusters: each cluster counts once
        return float(len(sizes)) if share in (0.0, 1.0) else n
    return min(n, share * (1 - share) * n**2 / residual)
