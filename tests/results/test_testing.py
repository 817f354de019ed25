"""P-values and their corrections, against scipy, statsmodels, enumeration and simulation."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest, false_discovery_control, norm
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.multitest import multipletests

from holdfast.stats.intervals import Counts, Floats
from holdfast.stats.pvalues import (
    against_one,
    benjamini_hochberg,
    clustered,
    each_against_one,
    holm,
    sign_flips,
    two_sided,
)
from holdfast.stats.scores import Pair


def counts(*clusters: tuple[float, float]) -> Counts:
    """Successes and trials of each question."""
    hits, trials = zip(*clusters, strict=True)
    return np.array(hits, float), np.array(trials, float)


# --- the normal distribution ---


@pytest.mark.parametrize("z", [0.0, 1.96, -8.5, 9.0, 20.0, -37.0])
def test_small_p_values_keep_their_digits(z: float) -> None:
    assert two_sided(z) == pytest.approx(2 * math.exp(norm.logsf(abs(z))), rel=1e-9)


# --- McNemar ---


def paired(losses: int, gains: int, times: int = 1) -> tuple[Counts, Counts]:
    """Questions right on one side only, and two more that do not differ, in so many epochs."""
    yes, no = (times, times), (0, times)
    first = counts(*[yes] * losses, *[no] * gains, yes, no)
    return first, counts(*[no] * losses, *[yes] * gains, yes, no)


@pytest.mark.parametrize(
    ("losses", "gains", "p"),
    [
        (0, 0, 1.0),
        (1, 0, 1.0),
        (5, 0, 2 / 2**5),
        # 2 (1 + 8) / 2^8
        (7, 1, 18 / 256),
        (4, 4, 1.0),
    ],
)
def test_mcnemar_matches_hand_calculation(losses: int, gains: int, p: float) -> None:
    assert clustered(*paired(losses, gains)) == pytest.approx(p, abs=1e-15)
    assert against_one(*paired(losses, gains)) == pytest.approx(p, abs=1e-15)


@given(st.integers(0, 900), st.integers(0, 900))
def test_mcnemar_matches_scipy_and_statsmodels(losses: int, gains: int) -> None:
    p = clustered(*paired(losses, gains))
    library = binomtest(losses, losses + gains).pvalue if losses + gains else 1.0
    assert p == pytest.approx(library, rel=1e-9, abs=1e-300)
    library = mcnemar([[3, losses], [gains, 5]], exact=True).pvalue
    assert p == pytest.approx(float(library), rel=1e-9, abs=1e-300)


# --- clustered by question ---


@given(st.lists(st.integers(-4, 4), max_size=9))
def test_sign_flips_match_every_assignment(differences: list[int]) -> None:
    total = abs(sum(differences))
    sums = [
        abs(sum(sign * size for sign, size in zip(signs, differences, strict=True)))
        for signs in product((1, -1), repeat=len(differences))
    ]
    library = sum(p_value >= total for p_value in sums) / len(sums)
    assert sign_flips(np.array(differences, np.int64)) == pytest.approx(library)


def test_the_normal_approximation_matches_the_exact_test() -> None:
    rng = np.random.default_rng(3)
    differences = rng.integers(-3, 4, 390) + (rng.random(390) < 0.1)
    samples = rng.choice([-1, 1], size=(40_000, len(differences))) @ differences
    share = float((abs(samples) >= abs(differences.sum())).mean())
    assert 0.01 < share < 0.5
    assert sign_flips(differences) == pytest.approx(share, abs=0.01)
    tail = np.array([1] * 800 + [2] * 400)
    assert sign_flips(tail) == pytest.approx(2 * norm.sf(1600 / math.sqrt(2400)), rel=1e-9)
    # as many again, which is too many to count
    twice = np.concatenate([differences, differences[::-1] * -1, differences])
    z = abs(twice.sum()) / math.sqrt((twice**2).sum())
    assert sign_flips(twice) == pytest.approx(2 * norm.sf(z))


@pytest.mark.parametrize(
    ("first", "second", "p"),
    [
        (counts((1, 1), (2, 2)), counts((1, 1), (2, 2)), 1.0),
        (counts((1, 1), (2, 2)), counts((2, 2), (1, 1)), 1.0),
        # of nothing there is none
        (counts((0, 0)), counts((1, 1)), math.nan),
        (counts((1, 1)), counts((0, 0)), math.nan),
        # epochs that repeat say nothing new, and the sides may be swapped
        (*paired(6, 1, times=3), 16 / 128),
        (*paired(1, 6), 16 / 128),
    ],
)
def test_clustered_p_values_match_hand_calculation(first: Counts, second: Counts, p: float) -> None:
    assert clustered(first, second) == pytest.approx(p, nan_ok=True)


def test_unequal_numbers_of_trials_match_hand_calculation() -> None:
    # 3 of 4 and 1 of 3; influences (1 - .75 * 2) / 4 - (0 - 1/3) / 3, (2 - 1.5) / 4 - (1 - 2/3) / 3
    first, second = counts((1, 2), (2, 2)), counts((0, 1), (1, 2))
    influence = np.array([-0.125 + 1 / 9, 0.125 - 1 / 9])
    z = (0.75 - 1 / 3) / math.sqrt(float((influence**2).sum()))
    assert clustered(first, second) == pytest.approx(2 * norm.sf(z))


@pytest.mark.slow
@pytest.mark.parametrize("questions", [60, 300])
def test_both_tests_keep_their_level_for_an_average_of_six(questions: int) -> None:
    # six challenges against one first answer, as likely right each
    rng = np.random.default_rng(questions)
    six = np.full(questions, 6.0)
    flips, pairs = list[float](), list[Pair]()
    for _ in range(20_000):
        easy = rng.normal(size=questions)
        answers = 0.7 * easy + math.sqrt(1 - 0.49) * rng.normal(size=(7, questions)) < 1
        after = answers[1:].sum(axis=0)
        if len(flips) < 2000:
            flips.append(sign_flips((after - 6 * answers[0]).astype(np.int64)))
        pairs.append(((after * 1.0, six), (6.0 * answers[0], six)))
    assert 0.035 <= np.mean(np.array(flips) <= 0.05) <= 0.065
    # with its added questions the test of averages errs on the safe side
    by_one = [p for start in range(0, 20_000, 2000)
              for p in each_against_one(pairs[start : start + 2000])]  # fmt: skip
    assert 0.025 <= np.mean(np.array(by_one) <= 0.05) <= 0.05


# --- corrections ---

P = st.lists(st.floats(0, 1), max_size=40).map(lambda p: np.array(p, np.float64))


@pytest.mark.slow
@settings(max_examples=12)
@given(P)
def test_holm_matches_statsmodels(p: Floats) -> None:
    library = multipletests(p, method="holm")[1] if len(p) else p
    assert holm(p) == pytest.approx(library, abs=1e-12)
    # what was not tested counts as no test
    gap = np.insert(p, len(p) // 2, math.nan)
    assert np.delete(holm(gap), len(p) // 2) == pytest.approx(library, abs=1e-12)
    assert np.isnan(holm(gap)[len(p) // 2])


@given(P)
def test_benjamini_hochberg_matches_scipy(p: Floats) -> None:
    library = false_discovery_control(p) if len(p) else p
    assert benjamini_hochberg(p) == pytest.approx(library, abs=1e-12)
