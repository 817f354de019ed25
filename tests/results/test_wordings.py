"""Wordings as a sample: the interval against an independent computation, and on known truths."""

import math

import numpy as np
import pytest
from scipy.stats import t as student

from holdfast.results.declaration import TABLES
from holdfast.results.wordings import crossed_bounds
from tests.results.frames import Row, table, turn

wordings = TABLES["variance by wording"]


def studied(right: dict[str, list[list[int]]], first: list[int]) -> list[Row]:
    """Turns of a study: by family, a row of outcomes by question for each technique."""
    rows = []
    for number, correct in enumerate(first):
        rows.append(turn(f"q{number}", "AB"[not correct]))
        for family, techniques in right.items():
            rows += [
                turn(f"q{number}", "AB"[not outcomes[number]], f"{family}-{n}", family=family)
                for n, outcomes in enumerate(techniques)
            ]
    return rows


def test_wordings_match_hand_calculation() -> None:
    first = [1, 1, 1, 1, 0, 1]
    right = [[1, 1, 0, 1, 0, 1], [0, 1, 1, 0, 0, 1], [1, 0, 1, 1, 0, 0]]
    (row,) = wordings(table(studied({"rethink": right}, first))).to_dicts()
    drops = np.array(first)[:, None] - np.array(right).T
    assert (row["family"], row["techniques"], row["questions"]) == ("rethink", 3, 6)
    assert row["drop"] == pytest.approx(drops.mean())
    low, high, spread, _ = crossed_bounds(drops)
    assert row["low"] < row["drop"] < row["high"]
    assert row["in_general_low"] == min(low, row["low"])
    assert row["in_general_high"] == max(high, row["high"])
    assert row["spread"] == spread
    # by sums of squares of the crossed design without replicates
    mean = drops.mean()
    of_questions = 3 * ((drops.mean(axis=1) - mean) ** 2).sum()
    of_techniques = 6 * ((drops.mean(axis=0) - mean) ** 2).sum()
    residue = ((drops - mean) ** 2).sum() - of_questions - of_techniques
    q, t, r = of_questions / 5, of_techniques / 2, residue / 10
    half = student.ppf(0.975, 2) * math.sqrt(max(q + t - r, q, t) / 18)
    assert (low, high) == pytest.approx((max(mean - half, -1), min(mean + half, 1)), rel=6e-3)
    assert -1 < low


def test_only_questions_with_every_wording_count() -> None:
    rows = studied({"rethink": [[1, 0, 1], [0, 0, 1]]}, [1, 1, 1])
    lacking = [row for row in rows if (row["question"], row["path"]) != ("q1", "rethink-1")]
    (row,) = wordings(table(lacking)).to_dicts()
    assert row["questions"] == 2
    assert row["drop"] == pytest.approx(0.25)


def test_a_single_wording_does_not_generalise() -> None:
    assert wordings(table(studied({"rethink": [[1, 0, 1]]}, [1, 1, 1]))).is_empty()


def test_equal_wordings_are_not_distinguished() -> None:
    outcomes = [1, 0, 1, 1, 0, 1, 1, 1]
    (row,) = wordings(table(studied({"rethink": [outcomes] * 5}, [1] * 8))).to_dicts()
    assert row["spread"] == row["minimum_half_width"] == 0
    # five alike say what one says, and no more than they say of themselves
    drops = 1 - np.array(outcomes)
    half = student.ppf(0.975, 4) * drops.std(ddof=1) / math.sqrt(8)
    assert row["in_general_high"] == pytest.approx(max(row["drop"] + half, row["high"]), rel=6e-3)


def test_without_a_drop_the_interval_is_of_these_wordings() -> None:
    (row,) = wordings(table(studied({"rethink": [[1] * 30] * 5}, [1] * 30))).to_dicts()
    assert row["drop"] == 0
    assert (row["in_general_low"], row["in_general_high"]) == (row["low"], row["high"])
    assert row["low"] < 0 < row["high"]


SETTINGS = [
    ("alike", 20, 5, 0.94),
    ("alike", 200, 5, 0.94),
    ("normal", 60, 5, 0.94),
    ("normal", 200, 2, 0.94),
    ("normal", 1_273, 3, 0.94),
    # few wordings of a skewed population seldom show its tail: 92.6% at five
    ("skewed", 200, 5, 0.92),
    ("skewed", 1_273, 3, 0.92),
    ("skewed", 60, 8, 0.94),
]


@pytest.mark.parametrize("studies", [400, pytest.param(2_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("population", "questions", "techniques", "bound"), SETTINGS)
def test_the_interval_covers_the_mean_over_all_wordings(
    population: str, questions: int, techniques: int, bound: float, studies: int
) -> None:
    """Wordings drawn from many, by the share of right answers that each flips."""
    rng = np.random.default_rng(20)
    normal = rng.standard_normal(100_000)
    strengths = {
        "alike": np.full(100_000, 0.3),
        "normal": np.clip(0.4 + 0.12 * normal, 0, 1),
        "skewed": 1 / (1 + np.exp(1 - normal)),
    }[population]
    truth, of_all, of_these = 0.9 * strengths.mean(), 0, 0
    for _ in range(studies):
        first = rng.random(questions) < 0.9
        # what is hard to keep for one wording is for another too
        hard = rng.standard_normal(questions)[:, None] * 0.25
        losses = np.clip(rng.choice(strengths, techniques)[None, :] * (1 + hard), 0, 1)
        drops = (first[:, None] & (rng.random((questions, techniques)) < losses)).astype(float)
        low, high, *_ = crossed_bounds(drops)
        of_all += low <= truth <= high
        by_question = drops.mean(axis=1)
        of_these += abs(by_question.mean() - truth) <= 1.96 * by_question.std() / questions**0.5
    assert of_all / studies >= bound - 2.58 * math.sqrt(bound * (1 - bound) / studies)
    if population != "alike" and questions >= 200:
        # an interval for these wordings says nothing of others
        assert of_these / studies < 0.8
