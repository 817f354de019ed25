"""Intervals of shares, means, differences and changes, by hand, against libraries and on truth."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import optimize, stats
from scipy.stats import beta, binomtest, norm, t
from statsmodels.regression.linear_model import OLS

from holdfast.stats.intervals import (
    Counts,
    bootstrap_shares,
    change_bounds,
    detection_bounds,
    difference_bounds,
    each_difference,
    effective_n,
    exact_bounds,
    mean_bounds,
    mean_difference_bounds,
    student_t,
    wilson,
)
from holdfast.stats.scores import outcomes_of, paired_change

Z = 1.959963984540054
OUTCOMES = [[1, 1], [1, 0], [0, 1], [0, 0]]
PAIRS = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1)), min_size=1, max_size=60)


def interval(correct: float, n: float, level: float = 0.95) -> tuple[float, float]:
    low, high = wilson(np.array([correct], float), np.array([n], float), level)
    return float(low[0]), float(high[0])


def counts(*clusters: tuple[float, float]) -> Counts:
    """Successes and trials of each cluster."""
    hits, trials = zip(*clusters, strict=True)
    return np.array(hits, float), np.array(trials, float)


def sides(pairs: list[tuple[int, int]], times: int = 1) -> tuple[Counts, Counts]:
    """Outcomes of both sides of each question, so many times over."""
    first, second = ([(pair[side] * times, times) for pair in pairs] for side in (0, 1))
    return counts(*first), counts(*second)


def pairs_of(numbers: tuple[int, ...]) -> list[tuple[int, int]]:
    """So many questions right on both sides, on the first, on the second, and on neither."""
    return [(a, b) for (a, b), n in zip(OUTCOMES, numbers, strict=True) for _ in range(n)]


# --- Wilson and exact limits of one share ---


@pytest.mark.parametrize(
    ("correct", "n", "low", "high"),
    [
        # (p + z²/2n ∓ z √(p(1-p)/n + z²/4n²)) / (1 + z²/n), z² = 3.841459
        (0, 10, 0.0, 3.841459 / 13.841459),
        (10, 10, 10 / 13.841459, 1.0),
        (1, 2, 0.0945312, 0.9054688),
        # a fractional number of trials
        (2.6, 6.5, 0.136263, 0.738029),
        # Newcombe, 1998, Table I, method 3
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_wilson_matches_hand_calculation_and_print(
    correct: float, n: float, low: float, high: float
) -> None:
    assert interval(correct, n) == pytest.approx((low, high), abs=5e-5)
    # the ends are exact
    assert (interval(0, n)[0], interval(n, n)[1]) == (0.0, 1.0)


@given(st.integers(1, 20_000), st.data())
def test_wilson_matches_scipy(n: int, data: st.DataObject) -> None:
    correct = data.draw(st.integers(0, n), "correct")
    level = data.draw(st.sampled_from([0.8, 0.95, 0.99]), "level")
    low, high = interval(correct, n, level)
    library = binomtest(correct, n).proportion_ci(level, method="wilson")
    assert (low, high) == pytest.approx((library.low, library.high), abs=1e-12)
    assert 0 <= low <= correct / n <= high <= 1


def test_wilson_accepts_several_shares_and_none() -> None:
    low, high = wilson(np.array([1.0, 2.0, 0.0]), np.array([2.0, 7.0, 0.0]))
    assert [(low[0], high[0]), (low[1], high[1])] == [interval(1, 2), interval(2, 7)]
    assert math.isnan(low[2])
    assert math.isnan(high[2])
    low, high = wilson(np.array([]), np.array([]))
    assert low.size == high.size == 0


@given(st.floats(0.5, 5000), st.integers(0, 1000), st.sampled_from([0.8, 0.95, 0.99]))
def test_exact_limits_match_scipy(n: float, part: int, level: float) -> None:
    hits, tail = part * n / 1000, 0.5 - level / 2
    low, high = exact_bounds(hits, n, level)
    assert low == pytest.approx(beta.ppf(tail, hits, n - hits + 1) if hits else 0, abs=1e-9)
    limit = beta.ppf(1 - tail, hits + 1, n - hits) if hits < n else 1
    assert high == pytest.approx(limit, abs=1e-9)


# --- effective number of trials ---


def clustered(*clusters: list[int]) -> float:
    """Effective number of trials of clusters of 0s and 1s."""
    sizes = np.array([len(cluster) for cluster in clusters], float)
    return effective_n(np.array([sum(cluster) for cluster in clusters], float), sizes)


# two trials a question are usual, so one more success and one more failure: share 5/8; residuals
# 3 - 15/8, 0 - 5/8, 1 - 10/8, squared, and half of 2 - 10/8 and 0 - 10/8
UNEVEN = (9 / 8) ** 2 + (5 / 8) ** 2 + (2 / 8) ** 2 + ((6 / 8) ** 2 + (10 / 8) ** 2) / 2


@pytest.mark.parametrize(
    ("clusters", "n"),
    [
        ([[1], [0], [1], [1]], 4.0),
        # alike within they count once
        ([[1, 1], [0, 0], [1, 1], [0, 0]], 4.0),
        ([[0] * 14] * 5, 5.0),
        ([[1] * 14] * 5, 5.0),
        ([[1, 1, 1], [0], [1, 0]], 6 / (UNEVEN / (8 * 5 / 8 * 3 / 8))),
        # unlike within and alike between, they never say more than independent ones
        ([[1, 0], [0, 1], [1, 0]], 6.0),
        ([[1, 0], [0, 1], [1, 1], [1, 0], [0, 0]], 10.0),
    ],
)
def test_effective_trials_match_hand_calculation(clusters: list[list[int]], n: float) -> None:
    assert clustered(*clusters) == pytest.approx(n)
    assert clustered(*clusters[::-1]) == pytest.approx(n)


@pytest.mark.parametrize("seed", range(12))
def test_the_variance_is_the_cluster_robust_one(seed: int) -> None:
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 15, size=40)
    groups = np.repeat(np.arange(40), sizes)
    right = (rng.random(groups.size) < np.repeat(rng.beta(1.5, 1.0, 40), sizes)).astype(float)
    # a regression on nothing but a constant, errors clustered by question
    model = OLS(right, np.ones_like(right)).fit(
        cov_type="cluster",
        cov_kwds={"groups": groups, "use_correction": False, "df_correction": False},
    )
    share = float(right.mean())
    independent = share * (1 - share) / float(model.bse[0]) ** 2
    n = effective_n(np.bincount(groups, weights=right).astype(float), sizes.astype(float))
    # but for the question that is added to forty
    assert n == pytest.approx(independent, rel=0.06)
    assert n < groups.size


# --- differences and changes of two shares ---


def score(numbers: tuple[int, ...], value: float, *, ratio: bool) -> float:
    """The score statistic of a value, its probabilities found by a library's optimiser."""
    observations = np.array(numbers) + np.array([0, 0.5, 0.5, 0])
    off = np.array([1, 1, 0, 0]) - value * np.array([1, 0, 1, 0])
    if not ratio:
        off = np.array([0, 1, -1, 0]) - value

    def surprise(p: NDArray[np.float64]) -> float:
        return -float(observations @ np.log(np.maximum(p, 1e-300)))

    optimum = optimize.minimize(
        surprise, np.full(4, 0.25), bounds=[(1e-12, 1.0)] * 4, method="SLSQP",
        constraints=optimize.LinearConstraint(np.stack([np.ones(4), off]), (1, 0), (1, 0)),
        options={"maxiter": 500, "ftol": 1e-14},
    )  # fmt: skip
    assert optimum.success
    total = np.array(numbers) @ off
    return float(total / math.sqrt(observations.sum() * float(optimum.x @ off**2)))


@pytest.mark.parametrize("numbers", [(5, 3, 1, 2), (40, 9, 2, 9), (12, 0, 3, 5)])
@pytest.mark.parametrize(
    ("bounds_of", "ratio"), [(difference_bounds, False), (change_bounds, True)]
)
def test_a_bound_is_where_the_score_test_is_at_its_level(
    numbers: tuple[int, ...], bounds_of: Callable[..., tuple[float, float]], ratio: bool
) -> None:
    for bound, z in zip(bounds_of(*sides(pairs_of(numbers))), (Z, -Z), strict=True):
        assert score(numbers, bound + ratio, ratio=ratio) == pytest.approx(z, abs=2e-3)


def test_independent_shares_match_hand_calculation() -> None:
    # 7 of 10 and 3 of 15: (8 / 12) - (4 / 17), a success and a failure added to both
    # (Agresti and Caffo, 2000)
    first = counts(*[(n < 7, 1) for n in range(10)], *[(0, 0)] * 15)
    second = counts(*[(0, 0)] * 10, *[(n < 3, 1) for n in range(15)])
    low, high = difference_bounds(first, second)
    p, q = 8 / 12, 4 / 17
    # the two added questions pair a success with a failure, which adds their covariance
    covariance = 2 * (1 - p) * (0 - q) / (12 * 17) + 2 * (0 - p) * (1 - q) / (12 * 17)
    half = Z * math.sqrt(p * (1 - p) / 12 + q * (1 - q) / 17 - covariance)
    assert (low, high) == pytest.approx((p - q - half, p - q + half))


@pytest.mark.slow
@given(PAIRS)
def test_intervals_contain_differences_and_changes(pairs: list[tuple[int, int]]) -> None:
    first, second = sides(pairs)
    low, high = difference_bounds(first, second)
    estimate = float(first[0].mean() - second[0].mean())
    assert -1 <= low <= estimate + 1e-12
    assert estimate - 1e-12 <= high <= 1
    assert low < high
    mirror = difference_bounds(second, first)
    assert (-mirror[1], -mirror[0]) == pytest.approx((low, high))
    # repeated questions say nothing new
    assert difference_bounds(*sides(pairs, 3)) == pytest.approx((low, high), abs=1e-6)
    low, high = change_bounds(first, second)
    if second[0].any():
        assert -1 <= low <= float(first[0].sum() / second[0].sum()) - 1 <= high
        assert low < high
    else:
        assert math.isnan(low)
        assert math.isnan(high)


@given(st.lists(st.tuples(st.integers(0, 14), st.sampled_from([0, 14])), min_size=1, max_size=40))
@example([(2, 0), (2, 0), (2, 0), (5, 0), (9, 0), (10, 0)])  # near the end of a bracket
def test_successes_and_failures_have_the_same_difference(pairs: list[tuple[int, int]]) -> None:
    first, second = counts(*[(a, 14) for a, _ in pairs]), counts(*[(b, 14) for _, b in pairs])
    bounds = difference_bounds((14 - second[0], second[1]), (14 - first[0], first[1]))
    assert bounds == pytest.approx(difference_bounds(first, second), abs=1e-9)


def test_intervals_of_constant_sides_have_width() -> None:
    """0 failures of 60 may be 4.9% of them (one-sided), which would be those of every challenge."""
    rng = np.random.default_rng(1)
    losses = counts(*[(hits, 14) for hits in rng.binomial(14, 0.35, 60)])
    low, high = difference_bounds(losses, counts(*[(0, 14)] * 60))
    share = losses[0].sum() / (60 * 14)
    # the other end has what was seen to go by
    assert share - low > 0.049
    assert high - share < 0.045
    alike = counts(*[(1, 1)] * 18, (0, 1), (0, 1))
    low, high = change_bounds(alike, alike)
    assert low < -0.02 < 0.02 < high


@pytest.mark.parametrize(
    ("bounds_of", "first", "second"),
    [
        (difference_bounds, (1, 1), (0, 0)),
        (lambda *pair: detection_bounds(*pair)[0], (0, 0), (1, 1)),
        (change_bounds, (0, 0), (1, 1)), (change_bounds, (1, 1), (0, 0)),
        (change_bounds, (1, 1), (0, 1)), (mean_difference_bounds, (0.5, 1), (0, 0)),
    ],
)  # fmt: skip
def test_figures_of_nothing_have_no_interval(
    bounds_of: Callable[..., tuple[float, float]], first: tuple[int, int], second: tuple[int, int]
) -> None:
    assert all(map(math.isnan, bounds_of(counts(first), counts(second))))


def test_vectorised_and_single_intervals_agree() -> None:
    rng = np.random.default_rng(3)
    pairs = []
    for questions in (1, 2, 30, 200):
        n = rng.integers(1, 6, questions).astype(float)
        first, second = (rng.binomial(n.astype(int), share).astype(float) for share in (0.5, 0.7))
        pairs.append(((first, n), (second, n)))
    pairs.append((counts((1, 1), (0, 0)), counts((1, 2), (0, 1))))
    bounds = np.array([difference_bounds(*pair) for pair in pairs])
    assert np.array(each_difference(pairs)) == pytest.approx(bounds)
    bounds = np.array([change_bounds(*pair) for pair in pairs[1:4]])
    ends = paired_change(outcomes_of(pairs[1:4]), 0.95)
    assert np.array(ends).T == pytest.approx(bounds)


def test_changes_and_detection_agree_with_the_bootstrap() -> None:
    """Where that holds: many questions, and rates far from the ends."""
    numbers = np.array([500, 30, 190, 280])
    samples = np.random.default_rng(11).multinomial(1000, numbers / 1000, size=20_000)
    changes = (samples[:, 0] + samples[:, 1]) / (samples[:, 0] + samples[:, 2]) - 1
    bounds = change_bounds(*sides(pairs_of(tuple(numbers.tolist()))))
    assert bounds == pytest.approx(tuple(np.quantile(changes, [0.025, 0.975])), abs=0.004)
    numbers = np.array([260, 130, 60, 150])  # both, right only, wrong only, neither
    samples = np.random.default_rng(7).multinomial(600, numbers / 600, size=20_000)
    hit, alarm = (norm.ppf((samples[:, 0] + samples[:, n] + 0.5) / 601) for n in (1, 2))
    ends = detection_bounds(*sides(pairs_of(tuple(numbers.tolist()))))
    for bounds, values in zip(ends, (hit - alarm, -(hit + alarm) / 2), strict=True):
        assert bounds == pytest.approx(tuple(np.quantile(values, [0.025, 0.975])), abs=0.015)
    # and clusters of a question
    rng = np.random.default_rng(12)
    ease, six = rng.normal(size=800), np.full(800, 6.0)
    first = (ease + rng.normal(size=(6, 800)) < 0.2).sum(axis=0).astype(float)
    second = (6 * (ease + rng.normal(size=800) < 1.0)).astype(float)
    samples = rng.multinomial(800, np.full(800, 1 / 800), size=10_000)
    quantiles = np.quantile((samples @ first) / (samples @ second) - 1, [0.025, 0.975])
    assert change_bounds((first, six), (second, six)) == pytest.approx(tuple(quantiles), abs=0.006)


# --- d' and criterion ---


def test_detection_matches_hand_calculation() -> None:
    # Gourevitch and Galanter (1967) at the corrected rates; hits and false alarms of unlike people
    n, variance, scores = 10_000, 0.0, []
    first = counts(*[(i < 0.8 * n, 1) for i in range(n)], *[(0, 0)] * n)
    second = counts(*[(0, 0)] * n, *[(i < 0.3 * n, 1) for i in range(n)])
    for rate in (0.8, 0.3):
        p = (rate * n + 0.5) / (n + 1)
        scores.append(norm.ppf(p))
        variance += p * (1 - p) / (n + 1) / norm.pdf(scores[-1]) ** 2
    (low, high), (c_low, c_high) = detection_bounds(first, second)
    assert (low + high) / 2 == pytest.approx(scores[0] - scores[1])
    # the four quarters of a question that are added tie the rates a little
    assert (high - low) / 2 == pytest.approx(Z * math.sqrt(variance), rel=1e-4)
    assert (c_low + c_high) / 2 == pytest.approx(-sum(scores) / 2)
    assert (c_high - c_low) / 2 == pytest.approx(Z * math.sqrt(variance) / 2, rel=1e-4)


STUDIES = 2000


@pytest.mark.slow
@pytest.mark.parametrize("questions", [50, 120, 400])
@pytest.mark.parametrize(
    ("right", "wrong", "alike", "epochs", "missing"),
    [
        (0.5, 0.5, 0.0, 1, 0.0),  # a blind switcher
        (0.5, 0.5, 0.5, 1, 0.0),  # one who sticks to some questions, whatever is offered
        (0.9, 0.45, 0.2, 1, 0.0),  # GPT-4o on MedQA (Table A.3), about
        (0.7, 0.4, 0.3, 1, 0.3),  # a third of the questions have no wrong offer left
        (0.6, 0.4, 0.2, 3, 0.0),  # three epochs
    ],
)
def test_detection_and_differences_have_coverage(
    questions: int, right: float, wrong: float, alike: float, epochs: int, missing: float
) -> None:
    rng = np.random.default_rng([questions, round(100 * right), round(100 * alike), epochs])
    truth = norm.ppf(right) - norm.ppf(wrong), -(norm.ppf(right) + norm.ppf(wrong)) / 2
    coverage = np.zeros(3)
    for _ in range(STUDIES):
        # one draw for both offers where a question is alike, and for all epochs of a question
        alike_questions, common = rng.random(questions) < alike, rng.random(questions)
        hits = []
        for rate in (right, wrong):
            draw = np.where(alike_questions, common, rng.random(questions))
            again = np.where(rng.random((epochs, questions)) < 0.7, draw, -1)
            again = np.where(again < 0, rng.random((epochs, questions)), again)
            draws = draw[None] if epochs == 1 else again
            hits.append((draws < rate).sum(axis=0).astype(float))
        trials = np.full(questions, float(epochs))
        left = np.where(rng.random(questions) < missing, 0.0, trials)
        first, second = (hits[0], trials), (np.where(left > 0, hits[1], 0.0), left)
        (low, high), (c_low, c_high) = detection_bounds(first, second)
        d_low, d_high = difference_bounds(first, second)
        coverage += [
            low <= truth[0] <= high,
            c_low <= truth[1] <= c_high,
            d_low <= right - wrong <= d_high,
        ]
    assert ((coverage / STUDIES > 0.935) & (coverage / STUDIES < 0.965)).all(), coverage / STUDIES


@pytest.mark.slow
@pytest.mark.parametrize("questions", [15, 40])
def test_detection_has_coverage_near_the_edges(questions: int) -> None:
    # GPT-5.2 on MedQA (Table A.3): 0.931 and 0.042
    rng = np.random.default_rng(questions)
    truth, trials, count = norm.ppf(0.931) - norm.ppf(0.042), np.ones(questions), 0
    for _ in range(STUDIES):
        first, second = ((rng.random(questions) < p).astype(float) for p in (0.931, 0.042))
        (low, high), _ = detection_bounds((first, trials), (second, trials))
        count += low <= truth <= high
    # 93.3% of 15 questions; a percentile bootstrap has about 80%
    assert 0.92 < count / STUDIES < 0.98


# --- means and the bootstrap ---


@pytest.mark.parametrize("p", [0.9, 0.95, 0.975, 0.995])
def test_student_quantiles_match_scipy(p: float) -> None:
    for df in (1, 2, 3, 4, 5, 6, 7, 8, 20, 100, 4000):
        assert student_t(p, df) == pytest.approx(float(t.ppf(p, df)), rel=1e-9)
    assert student_t(0.5, 3) == 0.0


UPPER, LOWER = counts((1.8, 1), (2.0, 1)), counts((0.8, 1), (1.0, 1))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: student_t(0.4, 3), "no quantile"),
        (lambda: student_t(1.0, 3), "no quantile"),
        (lambda: student_t(0.975, 0), "no quantile"),
        (lambda: mean_bounds(UPPER), "must be in 0 to 1"),
        (lambda: mean_difference_bounds(LOWER, UPPER), "must be in 0 to 1"),
        (lambda: wilson(np.array([3.0]), np.array([2.0])), "between 0 and the number of trials"),
    ],
)
def test_values_out_of_range_are_refused(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


def test_means_match_hand_calculation() -> None:
    # 0.2, 0.4, 0.9: mean 0.5, standard deviation 0.360555, t of two 4.302653, at 80% 1.885618
    values = counts((0.2, 1), (0.4, 1), (0.9, 1), (0, 0))
    assert mean_bounds(values) == (0.0, 1.0)  # 0.5 -+ 0.896
    half = 1.885618 * 0.360555 / 3**0.5
    assert mean_bounds(values, level=0.8) == pytest.approx((0.5 - half, 0.5 + half), abs=1e-5)
    assert all(map(math.isnan, mean_bounds(counts((0.5, 1)))))
    # of unlike questions: 0.2, 0.4 and 0.5, 0.9
    first = counts((0.2, 1), (0.4, 1), (0, 0), (0, 0))
    second = counts((0, 0), (0, 0), (0.5, 1), (0.9, 1))
    half = 0.325 * math.sqrt(2 * (0.01 * 2 + 0.04 * 2) / 4)  # t of one at 20%: tan(pi / 10)
    bounds = mean_difference_bounds(first, second, level=0.2)
    assert bounds == pytest.approx((-0.4 - half, -0.4 + half), abs=1e-3)
    # of the same questions only what differs within them counts
    pair = counts((0.2, 1), (0.4, 1)), counts((0.5, 1), (0.7, 1))
    assert mean_difference_bounds(*pair) == pytest.approx((-0.3, -0.3))


@pytest.mark.parametrize("seed", range(4))
def test_means_match_a_cluster_robust_regression(seed: int) -> None:
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(60), rng.integers(1, 5, size=60))
    values = np.clip(np.repeat(rng.normal(0.5, 0.1, 60), np.bincount(groups)), 0, 1)
    values = np.clip(values + rng.normal(0, 0.05, values.size), 0, 1)
    model = OLS(values, np.ones_like(values)).fit(
        cov_type="cluster", cov_kwds={"groups": groups}, use_t=True
    )
    sums = np.bincount(groups, values).astype(float), np.bincount(groups).astype(float)
    assert mean_bounds(sums) == pytest.approx(tuple(model.conf_int()[0]), abs=1e-4)


def test_the_bootstrap_over_questions_matches_scipy() -> None:
    rng = np.random.default_rng(5)
    n = rng.integers(1, 6, size=80).astype(float)
    right = np.column_stack([rng.binomial(n.astype(int), p) for p in (0.3, 0.7)])
    low, high = bootstrap_shares(right.astype(np.float64), n, resamples=20_000)
    for k in (0, 1):
        reference = stats.bootstrap(
            (right[:, k], n),
            lambda hits, trials, axis: hits.sum(axis=axis) / trials.sum(axis=axis),
            paired=True, method="percentile", n_resamples=20_000, rng=np.random.default_rng(9),
        ).confidence_interval  # fmt: skip
        assert (low[k], high[k]) == pytest.approx((reference.low, reference.high), abs=0.004)
    # the same bounds each time, and none of nothing
    hits, trials = np.array([[1.0, 0.0], [2.0, 2.0], [0.0, 0.0]]), np.array([2.0, 2.0, 1.0])
    assert np.array_equal(bootstrap_shares(hits, trials), bootstrap_shares(hits, trials))
    assert np.isnan(bootstrap_shares(np.zeros((2, 1)), np.zeros(2))).all()
