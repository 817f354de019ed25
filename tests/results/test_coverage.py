"""Coverage: how often a 95% interval holds the truth, over 2,000 simulated studies each."""

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom, norm

from benchmarks import coverage
from holdfast.stats.intervals import (
    Counts,
    detection_bounds,
    mean_bounds,
    mean_difference_bounds,
    wilson,
)

STUDIES = 2000
SIZES = (100, 300, 1273)
SMALL = (100, 300)
"""Of what takes longer to simulate; coverage only comes nearer with more questions."""

pytestmark = pytest.mark.slow


def answers(
    rng: np.random.Generator, questions: int, shares: list[float], alike: float = 0.5
) -> NDArray[np.bool_]:
    """Right and wrong of turns with these accuracies, shape (turns, questions).

    Questions are easy or hard for all turns: ``alike`` is the correlation behind two of them.
    """
    easy = rng.standard_normal(questions)
    own = rng.standard_normal((len(shares), questions))
    thresholds = np.array([[norm.ppf(share)] for share in shares])
    right: NDArray[np.bool_] = math.sqrt(alike) * easy + math.sqrt(1 - alike) * own < thresholds
    return right


def counts(turns: NDArray[np.bool_]) -> Counts:
    """Successes and trials by question."""
    return turns.sum(axis=0).astype(float), np.full(turns.shape[1], float(len(turns)))


def held(
    truth: float, bounds: Callable[[np.random.Generator], tuple[float, float]], *seed: int
) -> float:
    """How often the bounds of a simulated study hold the truth."""
    rng = np.random.default_rng(seed)
    inside = 0
    for _ in range(STUDIES):
        low, high = bounds(rng)
        inside += low <= truth <= high
    return inside / STUDIES


def in_band(coverage: float) -> bool:
    return 0.935 <= coverage <= 0.965


PAGE = Path(__file__).parents[2] / "benchmarks" / "coverage.md"


@pytest.mark.parametrize("questions", [8, *coverage.SIZES])
def test_both_sides_hold_at_every_size_or_a_reason_is_given(questions: int) -> None:
    found = list(coverage.measured(questions))
    outside = [one for one in found if one.fails]
    assert not [one for one in outside if one.reason is None]
    # what a gate decides by is never among the exceptions
    decided = [one for one in found if one.method.startswith(("exact", "difference in", "rel"))]
    assert len(decided) > 20
    if questions in coverage.SIZES:
        assert not set(outside) & set(decided)
        column = 2 + coverage.SIZES.index(questions)
        rows = [line.strip("| ").split(" | ") for line in PAGE.read_text("utf-8").splitlines()]
        printed = {tuple(row[:2]): row[column] for row in rows if len(row) > column}
        for one in found:
            assert printed[one.method, one.setting] == coverage.cell(one)


@pytest.mark.parametrize("questions", SIZES)
@pytest.mark.parametrize("share", [0.3, 0.5, 0.7, 0.9])
def test_accuracy(questions: int, share: float) -> None:
    # every outcome by its probability: at 100 questions coverage jumps from share to share
    correct = np.arange(questions + 1.0)
    low, high = wilson(correct, np.full(questions + 1, float(questions)))
    inside = (low <= share) & (share <= high)
    assert in_band(float(binom.pmf(correct, questions, share)[inside].sum()))


@pytest.mark.parametrize("questions", SMALL)
@pytest.mark.parametrize("shape", [(2.0, 1.0), (0.8, 0.4), (5.0, 5.0)])
def test_means(questions: int, shape: tuple[float, float]) -> None:
    truth = shape[0] / sum(shape)
    one = np.ones(questions)
    coverage = held(
        truth, lambda rng: mean_bounds((rng.beta(*shape, questions), one)), questions, 1
    )
    assert in_band(coverage)

    def differences(rng: np.random.Generator) -> tuple[float, float]:
        common, own = rng.beta(*shape, questions), rng.random((2, questions))
        first, second = (common + own) / 2
        return mean_difference_bounds((first, one), (second, one))

    assert in_band(held(0.0, differences, questions, 2))


@pytest.mark.parametrize("questions", SMALL)
@pytest.mark.parametrize(("right", "wrong"), [(0.9, 0.45), (0.6, 0.4), (0.5, 0.5)])
def test_detection(questions: int, right: float, wrong: float) -> None:
    def bounds(rng: np.random.Generator) -> tuple[float, float]:
        turns = answers(rng, questions, [right, wrong])
        return detection_bounds(counts(turns[:1]), counts(turns[1:]))[0]

    truth = float(norm.ppf(right) - norm.ppf(wrong))
    assert in_band(held(truth, bounds, questions, round(100 * right)))
