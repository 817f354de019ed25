"""Coverage: how often a 95% interval holds the truth, over 2,000 simulated studies each."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom, norm

from holdfast.results.intervals import (
    Counts,
    change_bounds,
    detection_bounds,
    difference_bounds,
    effective_n,
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


def wilson_of(of: Counts) -> tuple[float, float]:
    """As the tables compute it: with as many trials as they are worth."""
    share = float(of[0].sum() / of[1].sum())
    n = effective_n(share, *of)
    (low,), (high,) = wilson(np.array([share * n]), np.array([n]))
    return float(low), float(high)


@pytest.mark.parametrize("questions", SIZES)
@pytest.mark.parametrize("share", [0.3, 0.5, 0.7, 0.9])
def test_accuracy(questions: int, share: float) -> None:
    # every outcome by its probability: at 100 questions coverage jumps from share to share
    correct = np.arange(questions + 1.0)
    low, high = wilson(correct, np.full(questions + 1, float(questions)))
    inside = (low <= share) & (share <= high)
    assert in_band(float(binom.pmf(correct, questions, share)[inside].sum()))


@pytest.mark.parametrize("questions", SMALL)
@pytest.mark.parametrize(("share", "epochs"), [(0.3, 2), (0.6, 5), (0.9, 3)])
def test_accuracy_of_several_epochs(questions: int, share: float, epochs: int) -> None:
    coverage = held(
        share,
        lambda rng: wilson_of(counts(answers(rng, questions, [share] * epochs, 0.8))),
        questions, round(100 * share), epochs,
    )  # fmt: skip
    assert in_band(coverage)


FAMILIES = ([0.9, 0.85, 0.8], [0.9, 0.7, 0.5, 0.3], [0.6] * 7, [0.35, 0.3, 0.25])


@pytest.mark.parametrize("questions", SMALL)
@pytest.mark.parametrize("shares", FAMILIES)
def test_family_average(questions: int, shares: list[float]) -> None:
    coverage = held(
        sum(shares) / len(shares),
        lambda rng: wilson_of(counts(answers(rng, questions, shares))),
        questions, len(shares),
    )  # fmt: skip
    assert in_band(coverage)


CHANGES = ((0.9, 0.85), (0.9, 0.6), (0.8, 0.72), (0.5, 0.4), (0.3, 0.27), (0.6, 0.12))


@pytest.mark.parametrize(
    ("questions", "first", "share"),
    [(n, *change) for n in SMALL for change in CHANGES] + [(1273, *CHANGES[0])],
)
def test_relative_change(questions: int, first: float, share: float) -> None:
    def bounds(rng: np.random.Generator) -> tuple[float, float]:
        turns = answers(rng, questions, [first, share])
        return change_bounds(counts(turns[1:]), counts(turns[:1]))

    coverage = held(share / first - 1, bounds, questions, round(100 * first))
    assert in_band(coverage)


@pytest.mark.parametrize("questions", SMALL)
@pytest.mark.parametrize(("first", "share"), CHANGES[::2])
def test_relative_change_of_an_average(questions: int, first: float, share: float) -> None:
    def bounds(rng: np.random.Generator) -> tuple[float, float]:
        turns = answers(rng, questions, [first] + 6 * [share])
        return change_bounds(counts(turns[1:]), counts(np.repeat(turns[:1], 6, axis=0)))

    coverage = held(share / first - 1, bounds, questions, round(100 * first))
    assert in_band(coverage)


@pytest.mark.parametrize(
    ("questions", "epochs"), [(100, 1), (300, 1), (1273, 3)]
)  # with three epochs at 100 questions it is up to 98%: docs/inference.md
@pytest.mark.parametrize(("first", "share"), [*CHANGES[:3], (0.95, 0.93), (0.7, 0.7)])
def test_difference_in_pairs(questions: int, epochs: int, first: float, share: float) -> None:
    # the conversation tax is one of these
    def bounds(rng: np.random.Generator) -> tuple[float, float]:
        turns = answers(rng, questions, [first] * epochs + [share] * epochs)
        return difference_bounds(counts(turns[:epochs]), counts(turns[epochs:]))

    assert in_band(held(first - share, bounds, questions, round(100 * first), epochs))


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
