"""Coverage: how often a 95% interval holds the truth, over 2,000 simulated studies each."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from benchmarks import coverage
from holdfast.stats.intervals import mean_bounds, mean_difference_bounds

STUDIES = 2000
SMALL = (100, 300)
"""Coverage only comes nearer with more questions."""

pytestmark = pytest.mark.slow


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
def test_both_sides_cover_at_every_size_or_have_a_reason(questions: int) -> None:
    results = list(coverage.measured(questions))
    outside = [result for result in results if result.fails]
    assert not [result for result in outside if result.reason is None]
    # what a gate decides by is never among the exceptions
    decisive = [
        result for result in results if result.method.startswith(("exact", "difference in", "rel"))
    ]
    assert len(decisive) > 20
    if questions in coverage.SIZES:
        assert not set(outside) & set(decisive)
        column = 2 + coverage.SIZES.index(questions)
        rows = [line.strip("| ").split(" | ") for line in PAGE.read_text("utf-8").splitlines()]
        cells = {tuple(row[:2]): row[column] for row in rows if len(row) > column}
        for result in results:
            assert cells[result.method, result.setting] == coverage.cell(result)


@pytest.mark.parametrize("questions", SMALL)
@pytest.mark.parametrize("shape", [(2.0, 1.0), (0.8, 0.4), (5.0, 5.0)])
def test_intervals_of_means_cover(questions: int, shape: tuple[float, float]) -> None:
    truth = shape[0] / sum(shape)
    result = np.ones(questions)
    coverage = held(
        truth, lambda rng: mean_bounds((rng.beta(*shape, questions), result)), questions, 1
    )
    assert in_band(coverage)

    def differences(rng: np.random.Generator) -> tuple[float, float]:
        common, noise = rng.beta(*shape, questions), rng.random((2, questions))
        first, second = (common + noise) / 2
        return mean_difference_bounds((first, result), (second, result))

    assert in_band(held(0.0, differences, questions, 2))
