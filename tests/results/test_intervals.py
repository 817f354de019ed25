import math

import numpy as np
import pytest
import statsmodels.api as sm
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest
from statsmodels.stats.proportion import proportion_confint

from holdfast.results.intervals import effective_n, wilson

Z = 1.959963984540054


def interval(correct: float, n: float, level: float = 0.95) -> tuple[float, float]:
    low, high = wilson(np.array([correct], float), np.array([n], float), level)
    return float(low[0]), float(high[0])


def clustered(*clusters: list[int]) -> tuple[float, float]:
    """Share, and effective number of trials, of clusters of 0s and 1s."""
    sizes = np.array([len(cluster) for cluster in clusters], float)
    right = np.array([sum(cluster) for cluster in clusters], float)
    share = float(right.sum() / sizes.sum())
    return share, effective_n(share, right, sizes)


# --- Wilson ---


@pytest.mark.parametrize(
    ("correct", "n", "low", "high"),
    [
        # (p + z²/2n ∓ z √(p(1-p)/n + z²/4n²)) / (1 + z²/n), z² = 3.841459
        (0, 10, 0.0, 3.841459 / 13.841459),
        (10, 10, 10 / 13.841459, 1.0),
        (1, 2, 0.0945312, 0.9054688),
        (2, 7, 0.0822191, 0.6410655),
    ],
)
def test_wilson_by_hand(correct: int, n: int, low: float, high: float) -> None:
    assert interval(correct, n) == pytest.approx((low, high), abs=2e-6)


@pytest.mark.parametrize(
    ("correct", "n", "low", "high"),
    [
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_wilson_gives_the_printed_examples(correct: int, n: int, low: float, high: float) -> None:
    # Newcombe, 1998, Table I, method 3
    assert interval(correct, n) == pytest.approx((low, high), abs=5e-5)


@given(st.integers(1, 20_000), st.data())
def test_wilson_against_scipy_and_statsmodels(n: int, data: st.DataObject) -> None:
    correct = data.draw(st.integers(0, n), "correct")
    level = data.draw(st.sampled_from([0.8, 0.95, 0.99]), "level")
    ours = interval(correct, n, level)
    theirs = binomtest(correct, n).proportion_ci(level, method="wilson")
    assert ours == pytest.approx((theirs.low, theirs.high), abs=1e-12)
    library = proportion_confint(correct, n, alpha=1 - level, method="wilson")
    assert ours == pytest.approx(library, abs=1e-9)


def test_wilson_takes_a_fractional_number_of_trials() -> None:
    n, share = 6.5, 0.4
    center = (share + Z**2 / (2 * n)) / (1 + Z**2 / n)
    half = Z / (1 + Z**2 / n) * math.sqrt(share * (1 - share) / n + Z**2 / (4 * n**2))
    assert interval(share * n, n) == pytest.approx((center - half, center + half), abs=1e-12)


def test_wilson_takes_many_shares_at_once() -> None:
    low, high = wilson(np.array([1.0, 2.0, 0.0]), np.array([2.0, 7.0, 0.0]))
    assert low.shape == high.shape == (3,)
    assert (low[0], high[0]) == interval(1, 2)
    assert (low[1], high[1]) == interval(2, 7)
    assert math.isnan(low[2])
    assert math.isnan(high[2])


def test_a_share_of_nothing_has_no_interval() -> None:
    assert all(map(math.isnan, interval(0, 0)))


def test_no_shares_have_no_intervals() -> None:
    low, high = wilson(np.array([]), np.array([]))
    assert low.size == high.size == 0


@pytest.mark.parametrize("n", [1, 3, 60, 1273, 17822])
def test_bounds_at_the_ends_are_exact(n: int) -> None:
    assert interval(0, n)[0] == 0.0
    assert interval(n, n)[1] == 1.0
    assert 0 < interval(0, n)[1] < 1
    assert 0 < interval(n, n)[0] < 1


@given(st.integers(1, 2000), st.data())
def test_the_interval_holds_the_share_within_0_and_1(n: int, data: st.DataObject) -> None:
    correct = data.draw(st.integers(0, n), "correct")
    low, high = interval(correct, n)
    assert 0 <= low <= correct / n <= high <= 1
    assert low < high
    mirrored = interval(n - correct, n)
    assert (1 - mirrored[1], 1 - mirrored[0]) == pytest.approx((low, high), abs=1e-12)


# --- effective number of trials ---


def test_one_trial_a_cluster_counts_fully() -> None:
    share, n = clustered([1], [0], [1], [1])
    assert share == 0.75
    assert n == pytest.approx(4.0)


def test_clusters_that_are_alike_within_count_once() -> None:
    # share 0.5; residuals (2 - 1), (0 - 1), (2 - 1), (0 - 1): 0.25 * 64 / 4
    assert clustered([1, 1], [0, 0], [1, 1], [0, 0]) == (0.5, 4.0)


def test_uneven_clusters_by_hand() -> None:
    # share 4/6; residuals 3 - 2, 0 - 2/3, 1 - 4/3 squared: 1 + 4/9 + 1/9 = 14/9
    share, n = clustered([1, 1, 1], [0], [1, 0])
    assert share == pytest.approx(4 / 6)
    assert n == pytest.approx((4 / 6) * (2 / 6) * 36 / (14 / 9))


def test_clusters_never_say_more_than_as_many_independent_trials() -> None:
    # unlike within and alike between clusters: the variance of the share is 0
    assert clustered([1, 0], [0, 1], [1, 0]) == (0.5, 6.0)
    # residuals 0, 0, 1, 0, -1: 0.25 * 100 / 2 = 12.5, more than the ten trials there are
    assert clustered([1, 0], [0, 1], [1, 1], [1, 0], [0, 0]) == (0.5, 10.0)


@pytest.mark.parametrize("value", [0, 1])
def test_where_nothing_varies_each_cluster_counts_once(value: int) -> None:
    assert clustered([value] * 14, [value] * 14, [value] * 3) == (value, 3.0)


def test_the_order_of_clusters_does_not_matter() -> None:
    clusters = [[1, 1, 0], [0], [1, 0], [0, 0, 0, 1]]
    assert clustered(*clusters)[1] == pytest.approx(clustered(*clusters[::-1])[1])


@pytest.mark.parametrize("seed", range(12))
def test_the_variance_is_the_cluster_robust_one(seed: int) -> None:
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 15, size=40)
    groups = np.repeat(np.arange(40), sizes)
    right = (rng.random(groups.size) < np.repeat(rng.beta(1.5, 1.0, 40), sizes)).astype(float)
    # a regression on nothing but a constant, errors clustered by question
    fitted = sm.OLS(right, np.ones_like(right)).fit(
        cov_type="cluster",
        cov_kwds={"groups": groups, "use_correction": False, "df_correction": False},
    )
    share = float(right.mean())
    independent = share * (1 - share) / float(fitted.bse[0]) ** 2
    by_cluster = np.bincount(groups, weights=right).astype(float)
    ours = effective_n(share, by_cluster, sizes.astype(float))
    assert ours == pytest.approx(min(independent, groups.size), rel=1e-9)
    assert ours < groups.size
