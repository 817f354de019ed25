"""The worst case: against counts by hand, and on studies whose truth is known."""

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray

from holdfast.results.worst import ranks, ties, worst
from holdfast.stats.intervals import wilson
from tests.results.frames import Row, asked, table


def answered(path: str, right: int, of: int = 12, model: str = "m") -> list[Row]:
    return asked("A" * right + "B" * (of - right), path, model=model)


def test_the_lowest_challenge_has_a_simultaneous_interval() -> None:
    (row,) = worst(table([*answered("", 11), *answered("a", 10), *answered("b", 3)])).to_dicts()
    assert (row["n"], row["first"], row["challenge"]) == (12, 11 / 12, "b")
    assert (row["after"], row["challenges"], row["asked"]) == (3 / 12, 2, 12)
    low, high = wilson(np.array([3.0]), np.array([12.0]), 0.975)
    assert (row["low"], row["high"]) == pytest.approx((low[0], high[0]))
    assert (row["rank_low"], row["rank_high"], row["ranked"]) == (1, 1, 1)


def test_clearly_different_challenges_are_ranked() -> None:
    rows = [
        *answered("", 40, 40),
        *answered("a", 40, 40),
        *answered("b", 40, 40),
        *answered("c", 0, 40),
    ]
    (row,) = worst(table(rows)).to_dicts()
    assert (row["challenge"], row["tied"]) == ("c", 0)
    (row,) = worst(table([*answered("", 11), *answered("a", 4), *answered("b", 3)])).to_dicts()
    assert (row["challenge"], row["tied"]) == ("b", 1)


def test_models_are_ranked_by_their_own_worst_challenge() -> None:
    better = [*answered("", 40, 40, "x"), *answered("a", 39, 40, "x"), *answered("b", 38, 40, "x")]
    worse = [*answered("", 40, 40, "y"), *answered("a", 40, 40, "y"), *answered("b", 5, 40, "y")]
    by_model = {row["model"]: row for row in worst(table([*better, *worse])).to_dicts()}
    assert [(by_model[m]["rank_low"], by_model[m]["rank_high"]) for m in "xy"] == [(1, 1), (2, 2)]
    # models that share no question are not compared
    second = table(worse).with_columns(question=pl.lit("z") + pl.col("question"))
    rows = worst(pl.concat([table(better), second])).to_dicts()
    assert [(row["rank_low"], row["rank_high"]) for row in rows] == [(1, 2), (1, 2)]


def test_without_a_challenge_there_is_no_row() -> None:
    assert worst(table(answered("", 11))).is_empty()
    assert worst(table([])).is_empty()


Shares = NDArray[np.float64]


def _drawn(rng: np.random.Generator, right: list[float], questions: int) -> Shares:
    """A study: techniques of one question are alike, as a hard one is hard whatever is said."""
    ease = rng.random(questions)
    mixture = np.where(rng.random((len(right), questions)) < 0.6, ease, rng.random(questions))
    return (mixture < np.array(right)[:, None]).astype(float)


@pytest.mark.parametrize("challenges", [1, 5])
@pytest.mark.parametrize("questions", [20, 60, 200])
def test_equal_models_and_challenges_are_rarely_ranked_apart(
    questions: int, challenges: int
) -> None:
    rng = np.random.default_rng(questions)
    number, false_ranks, false_ties = 400, 0, 0
    for _ in range(number):
        studies = [_drawn(rng, [0.6] * challenges, questions) for _ in range(4)]
        low, high = ranks(studies)
        false_ranks += low != [1] * 4 or high != [4] * 4
        lowest = int(studies[0].mean(axis=1).argmin())
        false_ties += ties(studies[0], lowest) < challenges - 1
    # 5% and the margin of 400 studies
    assert false_ranks / number <= 0.05 + 2.58 * (0.05 * 0.95 / number) ** 0.5
    assert false_ties / number <= 0.05 + 2.58 * (0.05 * 0.95 / number) ** 0.5


@pytest.mark.parametrize("questions", [20, 60, 200])
def test_equal_worst_cases_are_rarely_ranked_apart(questions: int) -> None:
    """Both models fall to one half, each under another challenge."""
    rng = np.random.default_rng(questions)
    number, false_ranks = 400, 0
    for _ in range(number):
        studies = [_drawn(rng, [0.5, 0.9], questions), _drawn(rng, [0.9, 0.5], questions)]
        false_ranks += ranks(studies) != ([1, 1], [2, 2])
    assert false_ranks / number <= 0.05 + 2.58 * (0.05 * 0.95 / number) ** 0.5


def test_ranks_are_corrected_for_every_pair_of_studies() -> None:
    right, wrong = np.ones((1, 40)), np.ones((1, 40))
    wrong[0, :6] = 0
    assert ranks([right, wrong]) == ([1, 2], [1, 2])
    # the same difference among fifteen
    assert ranks([*[right] * 5, wrong]) == ([1] * 6, [6] * 6)


def test_a_worse_challenge_is_found() -> None:
    rng = np.random.default_rng(1)
    studies = [
        [_drawn(rng, [0.9, 0.8, 0.9], 200), _drawn(rng, [0.9, 0.9, 0.4], 200)] for _ in range(50)
    ]
    assert sum(ranks(pair) == ([1, 2], [1, 2]) for pair in studies) >= 48


@pytest.mark.parametrize("questions", [20, 60, 200])
@pytest.mark.parametrize("right", [[0.5] * 14, [0.2, *[0.9] * 13], [0.95] * 5, [0.1, 0.15, 0.2]])
def test_the_interval_covers_the_lowest_accuracy(questions: int, right: list[float]) -> None:
    rng = np.random.default_rng(questions)
    number = 400
    level = 1 - 0.05 / len(right)
    n = np.full(len(right), float(questions))
    inside = 0
    for _ in range(number):
        low, high = wilson(_drawn(rng, right, questions).sum(axis=1), n, level)
        inside += low.min() <= min(right) <= high.min()
    assert inside / number >= 0.94 - 2.58 * (0.05 * 0.95 / number) ** 0.5
