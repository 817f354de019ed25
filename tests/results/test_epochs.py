"""Variance between and within questions: known truth, and the widths of intervals beside it."""

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import f_oneway

from holdfast.results.epochs import EPOCHS_COLUMNS, epochs
from holdfast.stats.intervals import each_difference
from tests.results.frames import Row, table, turn

Answers = NDArray[np.bool_]


def study(right: Answers, path: str = "", **columns: str) -> list[Row]:
    """Answers by question and epoch."""
    return [
        turn(f"q{question}", "A" if item else "B", path, epoch=epoch + 1, **columns)
        for question, row in enumerate(right)
        for epoch, item in enumerate(row)
    ]


def beta(rng: np.random.Generator, questions: int, number: int, a: float, b: float) -> Answers:
    return rng.random((questions, number)) < rng.beta(a, b, questions)[:, None]


def test_a_row_matches_analysis_of_variance() -> None:
    right = beta(np.random.default_rng(1), 30, 4, 2, 1)
    frame = epochs(table(study(right)))
    assert tuple(frame.columns) == EPOCHS_COLUMNS
    (row,) = frame.to_dicts()
    assert (row["questions"], row["epochs"], row["accuracy"]) == (30, 4.0, right.mean())
    within = right.astype(float).var(axis=1, ddof=1).mean()
    ratio = f_oneway(*right.astype(float)).statistic
    assert row["within"] == pytest.approx(within)
    assert row["between"] == pytest.approx((ratio - 1) * within / 4)
    assert row["icc"] == pytest.approx((ratio - 1) / (ratio + 3))
    of_means = right.mean(axis=1).var(ddof=1)
    assert row["standard_error"] == pytest.approx((of_means / 30) ** 0.5)
    assert row["one_epoch"] ** 2 == pytest.approx((row["between"] + within) / 30)
    assert row["endless_epochs"] ** 2 == pytest.approx(row["between"] / 30)


def test_unlike_numbers_of_epochs_and_challenges_by_their_mean() -> None:
    rng = np.random.default_rng(2)
    firsts = study(beta(rng, 40, 3, 2, 1))[:-25]
    push, shove = (beta(rng, 40, 3, 1, 1) for _ in range(2))
    turns = [*firsts, *study(push, "push"), *study(shove, "shove")]
    rows = {row["arm"]: row for row in epochs(table(turns)).to_dicts()}
    assert rows["baseline"]["epochs"] == pytest.approx(95 / 32)
    # 31 questions of three epochs and one of two
    answers = np.array([float(row["correct"]) for row in firsts])
    groups = np.split(answers, range(3, 95, 3))
    within = sum(((group - group.mean()) ** 2).sum() for group in groups) / (95 - 32)
    usual = (95 - (31 * 9 + 4) / 95) / 31
    ratio = f_oneway(*groups).statistic
    assert rows["baseline"]["between"] == pytest.approx((ratio - 1) * within / usual)
    alone = [epochs(table(study(item, "push"))).to_dicts()[0] for item in (push, shove)]
    assert rows["followup"]["paths"] == 2
    for name in ("between", "within", "accuracy"):
        assert rows["followup"][name] == pytest.approx((alone[0][name] + alone[1][name]) / 2)
    squares = [item["standard_error"] ** 2 for item in alone]
    assert rows["followup"]["standard_error"] == pytest.approx(np.mean(squares) ** 0.5)


def test_one_epoch_has_no_row() -> None:
    right = beta(np.random.default_rng(1), 30, 1, 2, 1)
    assert epochs(table(study(right))).is_empty()
    assert epochs(table([])).is_empty()
    (row,) = epochs(table(study(np.ones((20, 3), bool)))).to_dicts()
    assert (row["between"], row["within"], row["icc"], row["standard_error"]) == (0, 0, None, 0)
    # the same every time: all of it is between questions
    (row,) = epochs(table(study(np.repeat(right, 3, axis=1)))).to_dicts()
    assert (row["within"], row["icc"]) == (0, 1)


@pytest.mark.parametrize(("a", "b"), [(2.0, 1.0), (0.3, 0.2), (6.0, 2.0)])
def test_known_variances_are_recovered(a: float, b: float) -> None:
    rng = np.random.default_rng(5)
    right = beta(rng, 3000, 4, a, b)
    (row,) = epochs(table(study(right))).to_dicts()
    mean = a / (a + b)
    between = mean * (1 - mean) / (a + b + 1)
    assert row["between"] == pytest.approx(between, abs=0.012)
    assert row["within"] == pytest.approx(mean * (1 - mean) - between, abs=0.012)
    assert row["icc"] == pytest.approx(1 / (a + b + 1), abs=0.05)


def components(number: int, questions: int) -> tuple[float, float, float]:
    """Mean variance between, correlation and squared standard error where chances are alike."""
    rng = np.random.default_rng(questions)
    frame = [
        epochs(table(study(rng.random((questions, 3)) < 0.7))).to_dicts()[0] for _ in range(number)
    ]
    between, icc = (float(np.mean([row[name] for row in frame])) for name in ("between", "icc"))
    return between, icc, float(np.mean([row["standard_error"] ** 2 for row in frame]))


def test_questions_of_one_chance_have_no_variance_between_them() -> None:
    between, icc, square = components(40, 60)
    # three standard errors of the mean of so many studies
    assert abs(between) < 0.009
    assert abs(icc) < 0.045
    assert square == pytest.approx(0.21 / 180, rel=0.12)


@pytest.mark.slow
def test_standard_errors_match_many_studies() -> None:
    rng = np.random.default_rng(9)
    rows = [epochs(table(study(beta(rng, 100, 3, 2, 1)))).to_dicts()[0] for _ in range(400)]
    off = float(np.std([row["accuracy"] for row in rows]))
    assert float(np.mean([row["standard_error"] for row in rows])) == pytest.approx(off, rel=0.08)


# --- how many questions the intervals of differences take ---


def width(
    rng: np.random.Generator, questions: int, number: int, right: float, alike: float
) -> float:
    """How many times the questions that the variance justifies an interval takes, on average."""
    times = []
    trials = np.full(questions, float(number))
    for _ in range(60):
        sizes = right * (1 / alike - 1), (1 - right) * (1 / alike - 1)
        chances = rng.beta(*sizes, questions)
        a, b = (
            (rng.random((questions, number)) < chance[:, None]).sum(axis=1).astype(float)
            for chance in (chances, np.clip(chances - 0.05, 0, 1))
        )
        off = (a - b) / number
        ((low, high),) = each_difference([((a, trials), (b, trials))])
        half = 1.959964 * off.std(ddof=1) / questions**0.5
        times.append(((high - low) / 2 / half) ** 2)
    return float(np.mean(times))


@pytest.mark.parametrize("number", [1, 3, 10])
@pytest.mark.parametrize(
    ("questions", "right", "alike"),
    [(60, 0.7, 0.2), (200, 0.7, 0.2), (200, 0.9, 0.2), (1273, 0.7, 0.8)],
)
@pytest.mark.rest_slow
def test_differences_with_epochs_need_few_more_questions(
    questions: int, number: int, right: float, alike: float
) -> None:
    times = width(np.random.default_rng(number), questions, number, right, alike)
    assert 0.97 < times < 1.1


@pytest.mark.parametrize(
    ("questions", "alike", "number", "limit"),
    [(60, 0.5, 3, 1.2), (60, 0.8, 3, 1.6), (60, 0.8, 10, 2.1), (200, 0.8, 10, 1.2)],
)
def test_few_questions_with_equal_epochs_need_more(
    questions: int, alike: float, number: int, limit: float
) -> None:
    """What is added has more trials than epochs so alike differ in."""
    times = width(np.random.default_rng(number), questions, number, 0.7, alike)
    assert 1.1 < times < limit
