"""Intervals. The one place where they are computed."""

import math
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def wilson(correct: Floats, n: Floats, level: float = 0.95) -> tuple[Floats, Floats]:
    """Wilson score interval of a share (Wilson, 1927).

    Written out because it also takes a fractional number of trials (``effective_n``), and because
    the library that has it would cost every command 170 MB; tests hold it against that library.

    Args:
        correct: number of successes, shape (k,).
        n: number of trials, shape (k,); a share of nothing has no interval (NaN).
        level: coverage.

    Returns:
        Lower and upper bounds in 0 to 1, each of shape (k,).
    """
    z = NormalDist().inv_cdf(0.5 + level / 2)
    with np.errstate(invalid="ignore", divide="ignore"):
        share = correct / n
        center = (share + z**2 / (2 * n)) / (1 + z**2 / n)
        half = z / (1 + z**2 / n) * np.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    # exact at the ends, where rounding would leave 1e-17 or 1 - 1e-16
    low = np.where(correct == 0, 0.0, center - half)
    high = np.where(correct == n, 1.0, center + half)
    return np.where(n == 0, math.nan, low), np.where(n == 0, math.nan, high)


def effective_n(share: float, by_cluster: Floats, sizes: Floats) -> float:
    """Trials that independent draws would need for the precision of clustered ones.

    Turns of one question are alike, so fourteen of them say less than fourteen questions. The
    variance of the share is that of a ratio of cluster totals (the linearised, cluster-robust
    one); the effective number makes a binomial have it. With one trial a cluster it is the number
    of trials itself.

    Args:
        share: overall share of successes.
        by_cluster: successes in each cluster (question), shape (clusters,).
        sizes: trials in each cluster, shape (clusters,).
    """
    n = float(sizes.sum())
    residual = float(((by_cluster - share * sizes) ** 2).sum())
    if share in (0.0, 1.0):  # nothing varies: each cluster counts once
        return float(len(sizes))
    if residual == 0:
        return n
    return min(n, share * (1 - share) * n**2 / residual)
