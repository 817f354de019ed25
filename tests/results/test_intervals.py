import math

import numpy as np
import pytest
import statsmodels.api as sm
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import optimize, stats
from scipy.stats import beta, binomtest, norm, t
from statsmodels.stats.proportion import proportion_confint

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


def interval(correct: float, n: float, level: float = 0.95) -> tuple[float, float]:
    low, high = wilson(np.array([correct], float), np.array([n], float), level)
    return float(low[0]), float(high[0])


def clustered(*clusters: list[int]) -> tuple[float, float]:
    """Share, and effective number of trials, of clusters of 0s and 1s."""
    sizes = np.array([len(cluster) for cluster in clusters], float)
    right = np.array([sum(cluster) for cluster in clusters], float)
    share = float(right.sum() / sizes.sum())
    return share, effective_n(right, sizes)


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
    assert clustered([1, 1], [0, 0], [1, 1], [0, 0]) == (0.5, 4.0)


def test_uneven_clusters_by_hand() -> None:
    # two trials a question are usual, so one more success and one more failure: share 5/8;
    # residuals 3 - 15/8, 0 - 5/8, 1 - 10/8, squared, and half of 2 - 10/8 and 0 - 10/8
    share, n = clustered([1, 1, 1], [0], [1, 0])
    assert share == pytest.approx(4 / 6)
    off = (9 / 8) ** 2 + (5 / 8) ** 2 + (2 / 8) ** 2 + ((6 / 8) ** 2 + (10 / 8) ** 2) / 2
    assert n == pytest.approx(6 / (off / (8 * 5 / 8 * 3 / 8)))


def test_clusters_never_say_more_than_as_many_independent_trials() -> None:
    # unlike within and alike between clusters: the variance of the share is next to nothing
    assert clustered([1, 0], [0, 1], [1, 0]) == (0.5, 6.0)
    assert clustered([1, 0], [0, 1], [1, 1], [1, 0], [0, 0]) == (0.5, 10.0)


@pytest.mark.parametrize("value", [0, 1])
def test_where_nothing_varies_each_cluster_counts_once(value: int) -> None:
    share, n = clustered(*[[value] * 14] * 5)
    assert share == value
    assert n == pytest.approx(5.0)


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
    ours = effective_n(by_cluster, sizes.astype(float))
    # but for the question that is added to forty
    assert ours == pytest.approx(independent, rel=0.06)
    assert ours < groups.size


@given(st.floats(0.5, 5000), st.integers(0, 1000), st.sampled_from([0.8, 0.95, 0.99]))
def test_exact_limits_against_scipy(n: float, part: int, level: float) -> None:
    hits, tail = part * n / 1000, 0.5 - level / 2
    low, high = exact_bounds(hits, n, level)
    assert low == pytest.approx(beta.ppf(tail, hits, n - hits + 1) if hits else 0, abs=1e-9)
    assert high == pytest.approx(
        beta.ppf(1 - tail, hits + 1, n - hits) if hits < n else 1, abs=1e-9
    )


# --- differences of two shares ---


def counts(*clusters: tuple[float, float]) -> Counts:
    """Successes and trials of each cluster."""
    hits, trials = zip(*clusters, strict=True)
    return np.array(hits, float), np.array(trials, float)


def score(pairs: list[tuple[int, int]], value: float, *, ratio: bool) -> float:
    """The score statistic of a value, its probabilities found by a library's optimiser."""
    a, b, c = (sum(pair == kind for pair in pairs) for kind in ((1, 1), (1, 0), (0, 1)))
    seen = np.array([a, b + 0.5, c + 0.5, len(pairs) - a - b - c])
    off = np.array([1, 1, 0, 0]) - value * np.array([1, 0, 1, 0])
    if not ratio:
        off = np.array([0, 1, -1, 0]) - value

    def surprise(p: NDArray[np.float64]) -> float:
        return -float(seen @ np.log(np.maximum(p, 1e-300)))

    found = optimize.minimize(
        surprise,
        np.full(4, 0.25),
        bounds=[(1e-12, 1.0)] * 4,
        constraints=optimize.LinearConstraint(np.stack([np.ones(4), off]), (1, 0), (1, 0)),
        method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-14},
    )
    assert found.success
    total = np.array([a, b, c, seen[3]]) @ off
    return float(total / math.sqrt(seen.sum() * float(found.x @ off**2)))


@pytest.mark.parametrize(
    ("both", "first", "second", "neither"), [(5, 3, 1, 2), (40, 9, 2, 9), (12, 0, 3, 5)]
)
def test_a_bound_is_where_the_score_test_is_at_its_level(
    both: int, first: int, second: int, neither: int
) -> None:
    pairs = [(1, 1)] * both + [(1, 0)] * first + [(0, 1)] * second + [(0, 0)] * neither
    one, other = counts(*[(a, 1) for a, _ in pairs]), counts(*[(b, 1) for _, b in pairs])
    for bounds, ratio in (
        (difference_bounds(one, other), False),
        (change_bounds(one, other), True),
    ):
        for bound, expected in zip(bounds, (Z, -Z), strict=True):
            assert score(pairs, bound + ratio, ratio=ratio) == pytest.approx(expected, abs=2e-3)


def test_independent_shares_by_hand() -> None:
    # 7 of 10 and 3 of 15: (8 / 12) - (4 / 17), a success and a failure added to both
    # (Agresti and Caffo, 2000)
    first = counts(*[(n < 7, 1) for n in range(10)], *[(0, 0)] * 15)
    second = counts(*[(0, 0)] * 10, *[(n < 3, 1) for n in range(15)])
    low, high = difference_bounds(first, second)
    p, q = 8 / 12, 4 / 17
    assert (low + high) / 2 == pytest.approx(p - q)
    # the two added questions pair a success with a failure, which adds their covariance
    added = 2 * (1 - p) * (0 - q) / (12 * 17) + 2 * (0 - p) * (1 - q) / (12 * 17)
    half = Z * math.sqrt(p * (1 - p) / 12 + q * (1 - q) / 17 - added)
    assert (high - low) / 2 == pytest.approx(half)


def test_a_difference_to_nothing_has_no_interval() -> None:
    assert all(map(math.isnan, difference_bounds(counts((1, 1)), counts((0, 0)))))
    bounds = detection_bounds(counts((0, 0)), counts((1, 1)))
    assert all(math.isnan(bound) for pair in bounds for bound in pair)


@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1)), min_size=1, max_size=60))
def test_the_interval_of_a_difference(pairs: list[tuple[int, int]]) -> None:
    first, second = counts(*[(a, 1) for a, _ in pairs]), counts(*[(b, 1) for _, b in pairs])
    low, high = difference_bounds(first, second)
    estimate = float(first[0].mean() - second[0].mean())
    assert -1 <= low <= estimate + 1e-12
    assert estimate - 1e-12 <= high <= 1
    assert low < high
    mirrored = difference_bounds(second, first)
    assert (-mirrored[1], -mirrored[0]) == pytest.approx((low, high))


@given(st.lists(st.tuples(st.integers(0, 14), st.sampled_from([0, 14])), min_size=1, max_size=40))
def test_a_difference_of_what_is_kept_is_that_of_what_is_lost(pairs: list[tuple[int, int]]) -> None:
    one, other = counts(*[(a, 14) for a, _ in pairs]), counts(*[(b, 14) for _, b in pairs])
    lost = difference_bounds(one, other)
    kept = difference_bounds((14 - other[0], other[1]), (14 - one[0], one[1]))
    assert kept == pytest.approx(lost, abs=1e-9)


def test_a_control_that_all_challenges_share_could_still_fail() -> None:
    """0 failures of 60 may be 4.9% of them (one-sided), which would be those of every challenge."""
    rng = np.random.default_rng(1)
    lost = counts(*[(hits, 14) for hits in rng.binomial(14, 0.35, 60)])
    never = counts(*[(0, 14)] * 60)
    low, high = difference_bounds(lost, never)
    share = lost[0].sum() / (60 * 14)
    # the other end has what was seen to go by
    assert share - low > 0.049
    assert high - share < 0.045


def test_repeated_questions_say_nothing_new() -> None:
    pairs = [(1, 0), (1, 1), (0, 0), (0, 1), (1, 0)]
    once, thrice = (
        difference_bounds(
            counts(*[(a * n, n) for a, _ in pairs]), counts(*[(b * n, n) for _, b in pairs])
        )
        for n in (1, 3)
    )
    assert thrice == pytest.approx(once)


# --- d' and criterion ---


def test_detection_of_independent_rates_by_hand() -> None:
    # Gourevitch and Galanter (1967) at the corrected rates; hits and false alarms of unlike people
    n = 10_000
    first = counts(*[(i < 0.8 * n, 1) for i in range(n)], *[(0, 0)] * n)
    second = counts(*[(0, 0)] * n, *[(i < 0.3 * n, 1) for i in range(n)])
    variance = 0.0
    scores = []
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


def test_detection_is_paired() -> None:
    # whoever takes the right offer takes the wrong one: d' is certain, the criterion is not
    alike = counts(*[(n % 2, 1) for n in range(100)])
    unlike = counts(*[((n // 2) % 2, 1) for n in range(100)])
    widths = {
        name: [high - low for low, high in detection_bounds(alike, other)]
        for name, other in (("alike", alike), ("unlike", unlike))
    }
    assert widths["alike"][0] < 0.2 * widths["unlike"][0]
    assert widths["alike"][1] > 1.3 * widths["unlike"][1]


def test_detection_agrees_with_the_bootstrap_where_that_holds() -> None:
    rng = np.random.default_rng(7)
    joint = np.array([260, 130, 60, 150])  # both, right only, wrong only, neither
    takes = np.repeat([[1, 1], [1, 0], [0, 1], [0, 0]], joint, axis=0)
    (low, high), (c_low, c_high) = detection_bounds(
        counts(*[(a, 1) for a, _ in takes]), counts(*[(b, 1) for _, b in takes])
    )
    drawn = rng.multinomial(joint.sum(), joint / joint.sum(), size=20_000)
    z_hit, z_false = (
        norm.ppf((drawn[:, 0] + drawn[:, one] + 0.5) / (joint.sum() + 1)) for one in (1, 2)
    )
    expected = np.quantile(z_hit - z_false, [0.025, 0.975])
    assert (low, high) == pytest.approx(tuple(expected), abs=0.015)
    expected = np.quantile(-(z_hit + z_false) / 2, [0.025, 0.975])
    assert (c_low, c_high) == pytest.approx(tuple(expected), abs=0.015)


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
def test_coverage(
    questions: int, right: float, wrong: float, alike: float, epochs: int, missing: float
) -> None:
    rng = np.random.default_rng([questions, round(100 * right), round(100 * alike), epochs])
    truth = norm.ppf(right) - norm.ppf(wrong), -(norm.ppf(right) + norm.ppf(wrong)) / 2
    covered = np.zeros(3)
    for _ in range(STUDIES):
        # one draw for both offers where a question is alike, and for all epochs of a question
        same = rng.random(questions) < alike
        shared = rng.random(questions)
        sides = []
        for rate in (right, wrong):
            own = np.where(same, shared, rng.random(questions))
            again = np.where(rng.random((epochs, questions)) < 0.7, own, -1)
            again = np.where(again < 0, rng.random((epochs, questions)), again)
            thrown = own[None] if epochs == 1 else again
            sides.append((thrown < rate).sum(axis=0).astype(float))
        asked = np.full(questions, float(epochs))
        left = np.where(rng.random(questions) < missing, 0.0, asked)
        first, second = (sides[0], asked), (np.where(left > 0, sides[1], 0.0), left)
        (low, high), (c_low, c_high) = detection_bounds(first, second)
        d_low, d_high = difference_bounds(first, second)
        covered += [
            low <= truth[0] <= high,
            c_low <= truth[1] <= c_high,
            d_low <= right - wrong <= d_high,
        ]
    assert ((covered / STUDIES > 0.935) & (covered / STUDIES < 0.965)).all(), covered / STUDIES


@pytest.mark.slow
@pytest.mark.parametrize("questions", [15, 40])
def test_coverage_near_the_edges(questions: int) -> None:
    # GPT-5.2 on MedQA (Table A.3): 0.931 and 0.042
    rng = np.random.default_rng(questions)
    truth = norm.ppf(0.931) - norm.ppf(0.042)
    asked, covered = np.ones(questions), 0
    for _ in range(STUDIES):
        first, second = ((rng.random(questions) < p).astype(float) for p in (0.931, 0.042))
        (low, high), _ = detection_bounds((first, asked), (second, asked))
        covered += low <= truth <= high
    # 93.3% of 15 questions; a percentile bootstrap has about 80%
    assert 0.92 < covered / STUDIES < 0.98


# --- means ---


@pytest.mark.parametrize("p", [0.9, 0.95, 0.975, 0.995])
def test_student_against_scipy(p: float) -> None:
    for df in (1, 2, 3, 4, 5, 6, 7, 8, 20, 100, 4000):
        assert student_t(p, df) == pytest.approx(float(t.ppf(p, df)), rel=1e-9)


def test_a_quantile_that_is_none_is_refused() -> None:
    assert student_t(0.5, 3) == 0.0
    for p, df in ((0.4, 3), (1.0, 3), (0.975, 0)):
        with pytest.raises(ValueError, match="no quantile"):
            student_t(p, df)


def test_values_that_the_bounds_would_cut_are_refused() -> None:
    of, in_range = counts((1.8, 1), (2.0, 1)), counts((0.8, 1), (1.0, 1))
    with pytest.raises(ValueError, match="must be in 0 to 1"):
        mean_bounds(of)
    with pytest.raises(ValueError, match="must be in 0 to 1"):
        mean_difference_bounds(in_range, of)
    with pytest.raises(ValueError, match="between 0 and the number of trials"):
        wilson(np.array([3.0]), np.array([2.0]))


def test_a_mean_by_hand() -> None:
    # 0.2, 0.4, 0.9: mean 0.5, standard deviation 0.360555, t of two 4.302653
    half = 4.302653 * 0.360555 / 3**0.5
    low, high = mean_bounds(counts((0.2, 1), (0.4, 1), (0.9, 1), (0, 0)), level=0.95)
    assert (low, high) == (0.0, 1.0)  # 0.5 -+ 0.896
    half = 1.885618 * 0.360555 / 3**0.5  # t of two at 80%
    low, high = mean_bounds(counts((0.2, 1), (0.4, 1), (0.9, 1), (0, 0)), level=0.8)
    assert (low, high) == pytest.approx((0.5 - half, 0.5 + half), abs=1e-5)


@pytest.mark.parametrize("seed", range(4))
def test_means_against_a_cluster_robust_regression(seed: int) -> None:
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(60), rng.integers(1, 5, size=60))
    values = np.clip(np.repeat(rng.normal(0.5, 0.1, 60), np.bincount(groups)), 0, 1)
    values = np.clip(values + rng.normal(0, 0.05, values.size), 0, 1)
    fitted = sm.OLS(values, np.ones_like(values)).fit(
        cov_type="cluster", cov_kwds={"groups": groups}, use_t=True
    )
    low, high = mean_bounds(
        (np.bincount(groups, values).astype(float), np.bincount(groups).astype(float))
    )
    assert (low, high) == pytest.approx(tuple(fitted.conf_int()[0]), abs=1e-4)


def test_the_difference_of_means_by_hand() -> None:
    # of unlike questions: 0.2, 0.4 and 0.5, 0.9
    first = counts((0.2, 1), (0.4, 1), (0, 0), (0, 0))
    second = counts((0, 0), (0, 0), (0.5, 1), (0.9, 1))
    half = 0.325 * math.sqrt(2 * (0.01 * 2 + 0.04 * 2) / 4)  # t of one at 20%: tan(pi / 10)
    low, high = mean_difference_bounds(first, second, level=0.2)
    assert (low, high) == pytest.approx((-0.4 - half, -0.4 + half), abs=1e-3)
    # of the same questions only what differs within them counts
    same = counts((0.2, 1), (0.4, 1)), counts((0.5, 1), (0.7, 1))
    assert mean_difference_bounds(*same) == pytest.approx((-0.3, -0.3))


def test_a_mean_of_one_question_has_no_interval() -> None:
    assert all(map(math.isnan, mean_bounds(counts((0.5, 1)))))
    two, one = counts((0.5, 1), (0.4, 1)), counts((0.5, 1), (0, 0))
    assert all(map(math.isnan, mean_difference_bounds(two, one)))


# --- the bootstrap over clusters ---


def test_the_bootstrap_over_questions_is_that_of_an_independent_one() -> None:
    rng = np.random.default_rng(5)
    n = rng.integers(1, 6, size=80).astype(float)
    right = np.column_stack([rng.binomial(n.astype(int), share) for share in (0.3, 0.7)])
    low, high = bootstrap_shares(right.astype(float), n, resamples=20_000)
    for k in (0, 1):
        reference = stats.bootstrap(
            (right[:, k], n),
            lambda hits, trials, axis: hits.sum(axis=axis) / trials.sum(axis=axis),
            paired=True,
            method="percentile",
            n_resamples=20_000,
            rng=np.random.default_rng(9),
        ).confidence_interval
        assert (low[k], high[k]) == pytest.approx((reference.low, reference.high), abs=0.004)
        assert low[k] < right[:, k].sum() / n.sum() < high[k]


def test_the_bootstrap_gives_the_same_bounds_each_time_and_none_of_nothing() -> None:
    right, n = np.array([[1.0, 0.0], [2.0, 2.0], [0.0, 0.0]]), np.array([2.0, 2.0, 1.0])
    assert np.array_equal(bootstrap_shares(right, n), bootstrap_shares(right, n))
    nothing = bootstrap_shares(np.zeros((2, 1)), np.zeros(2))
    assert np.isnan(nothing).all()
    alike = bootstrap_shares(np.ones((4, 1)), np.ones(4))
    assert np.array_equal(alike, np.ones((2, 1)))


# --- relative changes ---


def test_a_change_agrees_with_the_bootstrap_where_that_holds() -> None:
    rng = np.random.default_rng(11)
    joint = np.array([500, 30, 190, 280])  # both, first only, second only, neither
    pairs = np.repeat([[1, 1], [1, 0], [0, 1], [0, 0]], joint, axis=0)
    drawn = rng.multinomial(joint.sum(), joint / joint.sum(), size=20_000)
    changes = (drawn[:, 0] + drawn[:, 1]) / (drawn[:, 0] + drawn[:, 2]) - 1
    expected = np.quantile(changes, [0.025, 0.975])
    bounds = change_bounds(counts(*[(a, 1) for a, _ in pairs]), counts(*[(b, 1) for _, b in pairs]))
    assert bounds == pytest.approx(tuple(expected), abs=0.004)


def test_a_change_of_clusters_agrees_with_the_bootstrap() -> None:
    rng = np.random.default_rng(12)
    easy = rng.normal(size=800)
    first = (easy + rng.normal(size=(6, 800)) < 0.2).sum(axis=0).astype(float)
    second = (6 * (easy + rng.normal(size=800) < 1.0)).astype(float)
    six = np.full(800, 6.0)
    drawn = rng.multinomial(800, np.full(800, 1 / 800), size=10_000)
    expected = np.quantile((drawn @ first) / (drawn @ second) - 1, [0.025, 0.975])
    assert change_bounds((first, six), (second, six)) == pytest.approx(tuple(expected), abs=0.006)


@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1)), min_size=1, max_size=60))
def test_the_interval_of_a_change(pairs: list[tuple[int, int]]) -> None:
    first, second = counts(*[(a, 1) for a, _ in pairs]), counts(*[(b, 1) for _, b in pairs])
    low, high = change_bounds(first, second)
    if not second[0].any():
        assert math.isnan(low)
        assert math.isnan(high)
        return
    change = float(first[0].sum() / second[0].sum()) - 1
    assert -1 <= low <= change <= high
    assert low < high


def test_sides_that_never_differ_still_have_an_interval_with_width() -> None:
    alike = counts(*[(1, 1)] * 18, (0, 1), (0, 1))
    low, high = change_bounds(alike, alike)
    assert low < -0.02 < 0.02 < high


def test_a_change_of_nothing_has_no_interval() -> None:
    for first, second in (((0, 0), (1, 1)), ((1, 1), (0, 0)), ((1, 1), (0, 1))):
        assert all(map(math.isnan, change_bounds(counts(first), counts(second))))


def test_many_at_once_are_as_one_by_one() -> None:
    rng = np.random.default_rng(3)
    pairs = []
    for questions in (1, 2, 30, 200):
        n = rng.integers(1, 6, questions).astype(float)
        first, second = (rng.binomial(n.astype(int), share).astype(float) for share in (0.5, 0.7))
        pairs.append(((first, n), (second, n)))
    pairs.append((counts((1, 1), (0, 0)), counts((1, 2), (0, 1))))
    found = each_difference(pairs)
    assert np.array(found) == pytest.approx(np.array([difference_bounds(*pair) for pair in pairs]))
    low, high = paired_change(outcomes_of(pairs[1:4]), 0.95)
    expected = [change_bounds(*pair) for pair in pairs[1:4]]
    assert np.array([low, high]).T == pytest.approx(np.array(expected))
