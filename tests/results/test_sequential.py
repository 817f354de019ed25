"""Verdicts while asking: the bets against brute force, and on studies whose truth is known."""

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from holdfast.errors import InputError
from holdfast.results.gate_rules import Rules
from holdfast.results.sequential import Looked, growth, look, scaled, sequence
from tests.results.frames import Row, table, turn

Values = NDArray[np.float64]


def _crossed(values: Values, limit: float, *, up: bool, bound: float = 40.0) -> int | None:
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


def _margin(share: float, number: int) -> float:
    return 2.58 * math.sqrt(share * (1 - share) / number)


def _paired(rng: np.random.Generator, stays: float, n: int) -> tuple[Values, Values]:
    """First answers right in nine of ten, and kept with this probability; none is corrected."""
    first = rng.random(n) < 0.9
    return first.astype(float), (first & (rng.random(n) < stays)).astype(float)


@pytest.mark.parametrize("number", [300, pytest.param(2000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("rule", ["min_accuracy", "max_relative_drop", "max_drop_points"])
def test_a_model_at_the_limit_passes_in_at_most_a_fortieth_however_often_looked_at(
    rule: str, number: int
) -> None:
    rng = np.random.default_rng(5)
    passes = fails = 0
    for _ in range(number):
        if rule == "min_accuracy":
            values, limit = (rng.random(1273) < 0.9).astype(float), 0.9
        else:
            first, second = _paired(rng, 0.85, 1273)
            limit = 0.15 if rule == "max_relative_drop" else 0.9 * 0.15
            values, limit = scaled(rule, first, second, limit)
        up = rule == "min_accuracy"
        passes += _crossed(values, limit, up=up) is not None
        fails += _crossed(values, limit, up=not up) is not None
    assert passes / number <= 0.025 + _margin(0.025, number)
    assert fails / number <= 0.025 + _margin(0.025, number)


@pytest.mark.parametrize(("truth", "limit"), [(0.85, 0.8), (0.75, 0.8), (0.95, 0.9), (0.05, 0.1)])
def test_five_points_clear_takes_at_most_the_questions_of_a_fixed_design(
    truth: float, limit: float
) -> None:
    rng = np.random.default_rng(6)
    questions_taken = [
        _crossed((rng.random(4000) < truth).astype(float), limit, up=truth > limit) or 4000
        for _ in range(300)
    ]
    # two-sided 5%, 90% power
    spread = 1.96 * math.sqrt(limit * (1 - limit)) + 1.2816 * math.sqrt(truth * (1 - truth))
    design = (spread / (truth - limit)) ** 2
    assert np.median(questions_taken) <= 0.95 * design


FAMILIES = {"rethink": 5, "inc_letter": 5, "context": 4}
QUESTIONS, BATCH = 1_273, 20


def _generations(rng: np.random.Generator, drop: float, limit: float) -> int:
    """What a file of six rules takes: accuracy, the drop of three families and of two techniques.

    A technique is asked, batch by batch, until no rule about it is open.
    """
    first = rng.random(QUESTIONS) < 0.9
    # techniques of a question are alike: half of what keeps an answer is the question's own
    easy = rng.random(QUESTIONS)
    rules = [(growth(first.astype(float), 0.8, up=True), set[str]())]
    for family, number in FAMILIES.items():
        hard = np.where(
            rng.random((QUESTIONS, number)) < 0.5, easy[:, None], rng.random((QUESTIONS, number))
        )
        stays = first[:, None] & (hard >= drop)
        techniques = [f"{family} {n}" for n in range(number)]
        sides = [(stays.mean(axis=1), set(techniques))]
        sides += [(stays[:, 0].astype(float), {techniques[0]})] if family != "rethink" else []
        for second, about in sides:
            values, at = scaled("max_relative_drop", first.astype(float), second, limit)
            rules.append((growth(values, at, up=False), about))
    open_until = []
    for capital, about in rules:
        places = np.flatnonzero(capital >= math.log(40))
        number = int(places[0]) + 1 if len(places) else QUESTIONS
        open_until.append((min(-(-number // BATCH) * BATCH, QUESTIONS), about))
    techniques_of = {name for _, about in open_until for name in about}
    last = max(until for until, _ in open_until)
    ends = (max(until for until, about in open_until if name in about) for name in techniques_of)
    return last + sum(ends)


@pytest.mark.parametrize("studies", [60, pytest.param(2_000, marks=pytest.mark.slow)])
def test_a_typical_file_ten_points_clear_takes_a_quarter_of_the_full_study(studies: int) -> None:
    rng = np.random.default_rng(8)
    questions_taken = [_generations(rng, drop=0.15, limit=0.25) for _ in range(studies)]
    assert np.median(questions_taken) <= 0.25 * QUESTIONS * (1 + sum(FAMILIES.values()))


@pytest.mark.parametrize("questions", [20, 200])
def test_the_confidence_sequence_holds_the_truth(questions: int) -> None:
    rng = np.random.default_rng(questions)
    number, inside, drops = 200, 0, 0
    for _ in range(number):
        values = (rng.random(questions) < 0.8).astype(float)
        low, high = sequence("min_accuracy", values, np.zeros(questions), 0.025)
        inside += low <= 0.8 <= high
        low, high = sequence("max_relative_drop", *_paired(rng, 0.85, questions), 0.025)
        drops += low <= 0.15 <= high
    assert inside / number >= 0.95 - _margin(0.05, number)
    assert drops / number >= 0.95 - _margin(0.05, number)


ORDER = [f"q{number}" for number in range(60)]


def _asked(path: str, right: int, of: int = 60) -> list[Row]:
    return [turn(ORDER[n], "A" if n < right else "B", path) for n in range(of)]


def _rules(**rule: Any) -> Rules:
    from holdfast.results.gate_rules import _rule

    return Rules(rule=(_rule()(**rule),))


def test_what_is_clear_is_decided_at_the_first_question_that_makes_it_so() -> None:
    turns = table([*_asked("", 60), *_asked("push", 60)])
    (verdict,) = look(turns, _rules(technique="push", max_relative_drop=0.2), {"r1": ORDER})
    assert (verdict.outcome, verdict.questions, verdict.value) == ("pass", 60, 0.0)
    assert verdict.at is not None
    shorter = [name for name in ORDER if int(name[1:]) < verdict.at]
    (again,) = look(turns, _rules(technique="push", max_relative_drop=0.2), {"r1": shorter})
    assert (again.outcome, again.at) == ("pass", verdict.at)
    (before,) = look(turns, _rules(technique="push", max_relative_drop=0.2), {"r1": shorter[:-1]})
    assert (before.outcome, before.at) == ("undecided", None)
    (failing,) = look(turns, _rules(technique="push", min_accuracy=1.0), {"r1": ORDER})
    assert failing.outcome == "undecided"  # all right is no proof of never wrong
    wrong = table([*_asked("", 60), *_asked("push", 0)])
    (failing,) = look(wrong, _rules(technique="push", max_flip_rate=0.3), {"r1": ORDER})
    assert (failing.outcome, failing.value) == ("fail", 1.0)


def test_a_question_that_a_challenge_was_not_put_to_counts_for_nothing() -> None:
    """For want of a context, say: those after it count."""
    rows = [*_asked("", 60), *(row for row in _asked("push", 60) if row["question"] != "q5")]
    (verdict,) = look(table(rows), _rules(technique="push", min_accuracy=0.5), {"r1": ORDER})
    assert (verdict.questions, verdict.n) == (60, 59)
    lacking = [row for row in rows if row["question"] != "q7"]
    (first,) = look(table(lacking), _rules(min_accuracy=0.5), {"r1": ORDER[:7]})
    assert (first.questions, first.n) == (7, 7)


def test_a_flip_rate_is_of_the_questions_right_at_first() -> None:
    rows = [*_asked("", 30), *_asked("push", 60)]
    (verdict,) = look(table(rows), _rules(technique="push", max_flip_rate=0.3), {"r1": ORDER})
    assert (verdict.n, verdict.questions, verdict.value) == (30, 30, 0.0)


def test_more_verdicts_take_more_to_fail_and_no_more_to_pass() -> None:
    turns = table([*_asked("", 60), *_asked("push", 0)])
    rules = _rules(technique="push", max_relative_drop=0.2)
    rules_of = Rules(rule=rules.rule * 10)
    (alone,) = look(turns, rules, {"r1": ORDER})
    among = look(turns, rules_of, {"r1": ORDER})
    assert alone.at is not None
    assert among[0].at is not None
    assert alone.at < among[0].at


def test_so_many_further_questions_decide_it_at_the_same_figure() -> None:
    def looked(right: int, number: int) -> Looked:
        """Of twenty questions so many right, over again."""
        names = [f"q{n}" for n in range(number)]
        rows = [turn(name, "A" if n % 20 < right else "B") for n, name in enumerate(names)]
        (verdict,) = look(table(rows), _rules(min_accuracy=0.7), {"r1": names})
        return verdict

    open_verdict = looked(16, 20)
    assert open_verdict.outcome == "undecided"
    assert open_verdict.further is not None
    total = 20 + open_verdict.further
    assert [looked(16, number).outcome for number in (total - 1, total)] == ["undecided", "pass"]
    # at the limit no number would do
    assert (looked(14, 20).outcome, looked(14, 20).further) == ("undecided", None)


def test_what_is_not_of_single_questions_is_refused() -> None:
    turns = table([*_asked("", 60), *_asked("push", 0)])
    rules = _rules(no_worse_than="x", margin_points=2.0)
    with pytest.raises(InputError, match="question by question"):
        look(turns, rules, {"r1": ORDER})
