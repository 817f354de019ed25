"""Verdicts while asking: the bets against brute force, and on studies whose truth is known."""

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from holdfast.errors import InputError
from holdfast.results.gate_rules import Rules, rules_of
from holdfast.results.sequential import Looked, growth, look, scaled, sequence
from tests.results.frames import Row, asked, table, turn

Values = NDArray[np.float64]


def crossing(values: Values, limit: float, *, up: bool, bound: float = 40.0) -> int | None:
    at = np.flatnonzero(growth(values, limit, up=up) >= math.log(bound))
    return int(at[0]) + 1 if len(at) else None


def test_the_capital_is_the_mean_of_bets_of_fixed_size() -> None:
    values, limit = np.array([1.0, 0.0, 0.5, 1.0]), 0.6
    stakes = np.geomspace(0.03, 0.8, 20) / limit
    by_hand = [
        np.mean([np.prod([1 + stake * (x - limit) for x in values[:n]]) for stake in stakes])
        for n in range(1, 5)
    ]
    assert np.exp(growth(values, limit, up=True)) == pytest.approx(by_hand)


def test_the_capital_of_a_bet_at_the_limit_is_a_martingale() -> None:
    """Over every sequence of eight answers, at their probabilities."""
    limit, total = 0.3, 0.0
    for number in range(256):
        values = np.array([number >> place & 1 for place in range(8)], float)
        chance = float(np.prod(np.where(values == 1, limit, 1 - limit)))
        total += chance * math.exp(growth(values, limit, up=False)[-1])
    assert total == pytest.approx(1.0)


def margin(share: float, number: int) -> float:
    return 2.58 * math.sqrt(share * (1 - share) / number)


def pairs_drawn(rng: np.random.Generator, stays: float, n: int) -> tuple[Values, Values]:
    """First answers right in nine of ten, and kept with this probability; none is corrected."""
    first = rng.random(n) < 0.9
    return first.astype(float), (first & (rng.random(n) < stays)).astype(float)


@pytest.mark.parametrize("number", [300, pytest.param(2000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("rule", ["min_accuracy", "max_relative_drop", "max_drop_points"])
def test_a_model_at_the_limit_rarely_passes(rule: str, number: int) -> None:
    rng = np.random.default_rng(5)
    passes = fails = 0
    for _ in range(number):
        if rule == "min_accuracy":
            values, limit = (rng.random(1273) < 0.9).astype(float), 0.9
        else:
            first, second = pairs_drawn(rng, 0.85, 1273)
            limit = 0.15 if rule == "max_relative_drop" else 0.9 * 0.15
            values, limit = scaled(rule, first, second, limit)
        up = rule == "min_accuracy"
        passes += crossing(values, limit, up=up) is not None
        fails += crossing(values, limit, up=not up) is not None
    assert passes / number <= 0.025 + margin(0.025, number)
    assert fails / number <= 0.025 + margin(0.025, number)


@pytest.mark.parametrize(("truth", "limit"), [(0.85, 0.8), (0.75, 0.8), (0.95, 0.9), (0.05, 0.1)])
def test_a_clear_case_needs_no_more_than_a_fixed_design(truth: float, limit: float) -> None:
    rng = np.random.default_rng(6)
    questions_taken = [
        crossing((rng.random(4000) < truth).astype(float), limit, up=truth > limit) or 4000
        for _ in range(300)
    ]
    # two-sided 5%, 90% power
    spread = 1.96 * math.sqrt(limit * (1 - limit)) + 1.2816 * math.sqrt(truth * (1 - truth))
    design = (spread / (truth - limit)) ** 2
    assert np.median(questions_taken) <= 0.95 * design


@pytest.mark.parametrize("questions", [20, 200])
def test_the_confidence_sequence_covers_the_truth(questions: int) -> None:
    rng = np.random.default_rng(questions)
    number, inside, drops = 200, 0, 0
    for _ in range(number):
        values = (rng.random(questions) < 0.8).astype(float)
        low, high = sequence("min_accuracy", values, np.zeros(questions), 0.025)
        inside += low <= 0.8 <= high
        low, high = sequence("max_relative_drop", *pairs_drawn(rng, 0.85, questions), 0.025)
        drops += low <= 0.15 <= high
    assert inside / number >= 0.95 - margin(0.05, number)
    assert drops / number >= 0.95 - margin(0.05, number)


ORDER = [f"q{number}" for number in range(60)]


def answered(path: str, right: int, of: int = 60) -> list[Row]:
    return asked("A" * right + "B" * (of - right), path)


def rules_of_one(**rule: Any) -> Rules:
    return rules_of({"rule": [rule]}, "rules.toml")


def test_a_clear_case_is_decided_at_once() -> None:
    turns = table([*answered("", 60), *answered("push", 60)])
    (verdict,) = look(turns, rules_of_one(technique="push", max_relative_drop=0.2), {"r1": ORDER})
    assert (verdict.outcome, verdict.questions, verdict.value) == ("pass", 60, 0.0)
    assert verdict.at is not None
    shorter = [name for name in ORDER if int(name[1:]) < verdict.at]
    (again,) = look(turns, rules_of_one(technique="push", max_relative_drop=0.2), {"r1": shorter})
    assert (again.outcome, again.at) == ("pass", verdict.at)
    (before,) = look(
        turns, rules_of_one(technique="push", max_relative_drop=0.2), {"r1": shorter[:-1]}
    )
    assert (before.outcome, before.at) == ("undecided", None)
    (failing,) = look(turns, rules_of_one(technique="push", min_accuracy=1.0), {"r1": ORDER})
    assert failing.outcome == "undecided"  # all right is no proof of never wrong
    wrong = table([*answered("", 60), *answered("push", 0)])
    (failing,) = look(wrong, rules_of_one(technique="push", max_flip_rate=0.3), {"r1": ORDER})
    assert (failing.outcome, failing.value) == ("fail", 1.0)


def test_unchallenged_questions_do_not_count() -> None:
    """For want of a context, say: those after it count."""
    rows = [*answered("", 60), *(row for row in answered("push", 60) if row["question"] != "q5")]
    (verdict,) = look(table(rows), rules_of_one(technique="push", min_accuracy=0.5), {"r1": ORDER})
    assert (verdict.questions, verdict.n) == (60, 59)
    lacking = [row for row in rows if row["question"] != "q7"]
    (first,) = look(table(lacking), rules_of_one(min_accuracy=0.5), {"r1": ORDER[:7]})
    assert (first.questions, first.n) == (7, 7)


def test_a_flip_rate_counts_questions_right_at_first() -> None:
    rows = [*answered("", 30), *answered("push", 60)]
    (verdict,) = look(table(rows), rules_of_one(technique="push", max_flip_rate=0.3), {"r1": ORDER})
    assert (verdict.n, verdict.questions, verdict.value) == (30, 30, 0.0)


def test_more_verdicts_make_failing_harder_only() -> None:
    turns = table([*answered("", 60), *answered("push", 0)])
    rules = rules_of_one(technique="push", max_relative_drop=0.2)
    rules_of = Rules(rule=rules.rule * 10)
    (alone,) = look(turns, rules, {"r1": ORDER})
    among = look(turns, rules_of, {"r1": ORDER})
    assert alone.at is not None
    assert among[0].at is not None
    assert alone.at < among[0].at


def test_the_further_questions_decide_at_the_same_figure() -> None:
    def looked(right: int, number: int) -> Looked:
        """Of twenty questions so many right, over again."""
        names = [f"q{n}" for n in range(number)]
        rows = [turn(name, "A" if n % 20 < right else "B") for n, name in enumerate(names)]
        (verdict,) = look(table(rows), rules_of_one(min_accuracy=0.7), {"r1": names})
        return verdict

    open_verdict = looked(16, 20)
    assert open_verdict.outcome == "undecided"
    assert open_verdict.further is not None
    total = 20 + open_verdict.further
    assert [looked(16, number).outcome for number in (total - 1, total)] == ["undecided", "pass"]
    # at the limit no number would do
    assert (looked(14, 20).outcome, looked(14, 20).further) == ("undecided", None)


def test_rules_beyond_single_questions_are_refused() -> None:
    turns = table([*answered("", 60), *answered("push", 0)])
    rules = rules_of_one(no_worse_than="x", margin_points=2.0)
    with pytest.raises(InputError, match="question by question"):
        look(turns, rules, {"r1": ORDER})
