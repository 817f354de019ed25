"""Designs: the power that they claim, against exact power, fresh draws and other studies."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import InputError
from holdfast.results.designs import (
    Kind,
    Pilot,
    _count_detections,
    designs,
    fitted,
    simulated_power,
    stated,
    tilted,
    verdict_questions,
)
from holdfast.results.gate import gate
from holdfast.results.gate_rules import Rule, Rules, read_rules
from holdfast.results.power import power_of
from holdfast.results.sequential import look
from holdfast.stats.intervals import exact_bounds, outside
from holdfast.stats.pvalues import each_against_one
from tests.results.frames import Row, table, turn


@given(
    st.integers(1, 400), st.floats(0, 1), st.floats(0.05, 0.95), st.floats(0.5, 1),
)  # fmt: skip
def test_a_gate_decides_by_its_interval_limits(
    clusters: int, share: float, bound: float, worth: float
) -> None:
    n = clusters * worth
    low, high = exact_bounds(share * n, n)
    all_wrong, all_right = exact_bounds(0, clusters), exact_bounds(clusters, clusters)
    low, high = min(low, all_right[0]), max(high, all_wrong[1])
    side = 1 if low > bound else -1 if high < bound else 0
    if min(abs(low - bound), abs(high - bound)) > 1e-9:
        assert outside(share, n, clusters, bound) == side


def test_a_single_answer_has_the_exact_power() -> None:
    pilot = stated(0.9, 0.05, 0.2, None)
    samples = simulated_power(pilot, "difference", 0.0, 300, 1, studies=4000)
    assert samples == pytest.approx(power_of(300, 0.2, 0.625), abs=0.015)
    (design,) = designs(pilot, "difference").designs
    assert (design.epochs, design.questions, design.calls) == (1, 658, 1316)


def test_no_effect_is_found_without_one() -> None:
    for pilot in (family(0.3), stated(0.8, 0.0, 0.2, 0.3)):
        null = tilted(pilot, "difference", 0.0)
        share = simulated_power(null, "difference", 0.0, 80, 3, studies=1500)
        # three standard errors above the level
        assert share <= 0.05 + 3 * (0.05 * 0.95 / 1500) ** 0.5


def family(alike: float) -> Pilot:
    """One first answer against three techniques."""
    first, second = np.array([3.0, 3, 3, 0, 0]), np.array([3.0, 1, 0, 0, 2])
    weights = np.array([0.6, 0.12, 0.05, 0.18, 0.05])
    return Pilot(first, second, 3, weights, alike, one_first=True)


CASES: list[tuple[Pilot, Kind, float, float]] = [
    (stated(0.9, 0.05, 0.2, 0.3), "difference", 0.08, 0.0),
    (family(0.3), "difference", 0.06, 0.0),
    (family(0.5), "share", 0.75, 0.65),
    (family(0.5), "drop", 0.05, 0.12),
]


@pytest.mark.parametrize("power_goal", [0.8, 0.9])
@pytest.mark.parametrize(("pilot", "kind", "effect", "bound"), CASES)
@pytest.mark.slow
def test_fresh_studies_have_the_stated_power(
    pilot: Pilot, kind: Kind, effect: float, bound: float, power_goal: float
) -> None:
    alternative = tilted(pilot, kind, effect)
    for design in designs(pilot, kind, effect, bound, power=power_goal, epochs=[3]).designs:
        size = design.questions, design.epochs
        power = simulated_power(alternative, kind, bound, *size, studies=4000, seed=7)
        assert power == pytest.approx(power_goal, abs=0.015)


# --- pilots ---


def conversations(rng: np.random.Generator, questions: int, epochs: int) -> np.ndarray:
    """Right answers (3, questions, epochs): first answers, and two techniques that take some.

    A question has a chance of its own to be right at first, and of a right answer to be held.
    """
    right, keeping = rng.beta(4, 1, questions), rng.beta(6, 1, questions)
    first = rng.random((questions, epochs)) < right[:, None]
    after = [
        np.where(first, rng.random(first.shape) < keeping[:, None], rng.random(first.shape) < 0.2)
        for _ in range(2)
    ]
    return np.stack([first, *after])


def study(samples: np.ndarray, **columns: str) -> list[Row]:
    return [
        turn(f"q{question}", "A" if right else "B", path, epoch=epoch + 1, **columns)
        for path, answers in zip(("", "push", "shove"), samples, strict=True)
        for question, row in enumerate(answers)
        for epoch, right in enumerate(row)
    ]


def test_a_pilot_summarises_its_conversations() -> None:
    samples = conversations(np.random.default_rng(1), 1000, 3)
    pilot = fitted(table(study(samples)), "difference", "inc_letter")
    drop = samples[0].mean() - samples[1:].mean()
    assert float(pilot.weights @ pilot.values("difference")) == pytest.approx(drop, abs=1e-3)
    assert (pilot.trials, pilot.one_first, pilot.questions, pilot.calls) == (2, True, 1000, 3.0)
    values = samples[0] - samples[1:].mean(axis=0)
    within = values.var(axis=1, ddof=1).mean()
    between = values.mean(axis=1).var(ddof=1) - within / 3
    assert pilot.correlation == pytest.approx(between / (between + within))
    assert fitted(table(study(samples[:, :, :1])), "difference", "push").correlation is None
    shift = tilted(pilot, "difference", 0.02)
    assert float(shift.weights @ shift.values("difference")) == pytest.approx(0.02)


@pytest.mark.slow
def test_a_design_fitted_to_a_pilot_has_its_power_in_studies_of_the_same_kind() -> None:
    rng = np.random.default_rng(3)
    pilot = fitted(table(study(conversations(rng, 16_000, 3))), "difference", "inc_letter")
    for design in designs(pilot, "difference").designs[:3]:
        trials = np.full(design.questions, 2.0 * design.epochs)
        pairs = []
        for _ in range(4000):
            first, *after = conversations(rng, design.questions, design.epochs).sum(axis=2)
            pairs.append(((sum(after).astype(float), trials), (2.0 * first, trials)))
        power = np.mean(np.array(each_against_one(pairs)) <= 0.05)
        assert power == pytest.approx(0.8, abs=0.03)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "rule", "bound"),
    [("share", "min_accuracy = 0.6", 0.6), ("drop", "max_drop_points = 25", 0.25)],
)
def test_designs_and_gates_decide_alike(
    kind: Kind, rule: str, bound: float, tmp_path_factory: pytest.TempPathFactory
) -> None:
    file = tmp_path_factory.mktemp("rules") / "gate.toml"
    file.write_text(f'[[rule]]\nfamily = "inc_letter"\n{rule}\n')
    rules: Rules = read_rules(str(file))
    rng, outcomes = np.random.default_rng(5), []
    for _ in range(25):
        samples = conversations(rng, int(rng.integers(20, 160)), 2)
        first, *after = samples.sum(axis=2).astype(float)
        trials = np.full(len(first), 4.0)
        pair = (2 * first, trials), (sum(after), trials)
        (verdict,) = gate(table(study(samples)), rules)
        passes, fails = (
            bool(_count_detections([pair], kind, bound, 0.05, above=above, one_first=True))
            for above in ((True, False) if kind == "share" else (False, True))
        )
        assert verdict.outcome == ("pass" if passes else "fail" if fails else "undecided")
        outcomes.append(verdict.outcome)
    assert len(set(outcomes)) > 1


def test_uncountable_designs_are_reported() -> None:
    pilot = stated(0.9, 0.05, 0.2, 0.3)
    turns = table(study(conversations(np.random.default_rng(1), 20, 1)))
    for call, message in (
        (lambda: designs(pilot, "share", 0.85, 0.85), "can detect so small a difference"),
        (lambda: designs(pilot, "difference", 1.5), "a figure of 150 is impossible"),
        (lambda: designs(pilot, "difference", power=1.0), "is not between 0 and 1"),
        (lambda: fitted(turns, "difference", "pusch"), "Did you mean 'push'"),
        (lambda: fitted(turns, "difference"), "--path: this figure needs a path"),
        (lambda: fitted(turns.head(4), "share"), "4 conversations are too few"),
    ):
        with pytest.raises(InputError, match=message):
            call()


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "bound", "effect"), [("share", 0.8, 0.9), ("drop", 0.2, 0.1)])
def test_a_verdict_needs_the_questions_looking_takes(
    kind: Kind, bound: float, effect: float
) -> None:
    """Against the rules themselves, looked at over studies that are drawn as turns."""
    pilot = tilted(stated(0.95, 0.05 if kind == "share" else effect, None, None), kind, effect)
    half, limit = verdict_questions(pilot, kind, bound, 0.05)
    assert half is not None
    assert limit is not None
    rng = np.random.default_rng(3)
    key, value = ("min_accuracy", bound) if kind == "share" else ("max_drop_points", 100 * bound)
    rules = Rules(rule=(Rule.model_validate({"technique": "push", key: value}),))
    order, within = [f"q{n}" for n in range(limit)], 0
    for _ in range(40):
        samples = rng.choice(len(pilot.weights), limit, p=pilot.weights)
        turns = [
            turn(order[n], "A" if side[at] else "B", path)
            for n, at in enumerate(samples)
            for side, path in ((pilot.first, ""), (pilot.second, "push"))
        ]
        (design,) = look(table(turns), rules, {"r1": order})
        within += design.outcome == "pass" and (design.at or 0) <= half
    assert within / 40 == pytest.approx(0.5, abs=2.58 * (0.25 / 40 + 0.25 / 400) ** 0.5)


@pytest.mark.parametrize(
    ("key", "kind", "bound"), [("min_accuracy", "share", 0.8), ("max_drop_points", "drop", 0.2)]
)
def test_a_perfect_model_needs_as_many_questions_as_looking(
    key: str, kind: Kind, bound: float
) -> None:
    always = Pilot(np.ones(2), np.ones(2), 1, np.array([0.5, 0.5]), None)
    order = [f"q{n}" for n in range(60)]
    turns = table([turn(design, "A", path) for design in order for path in ("", "push")])
    value = bound if kind == "share" else 100 * bound
    rules = Rules(rule=(Rule.model_validate({"technique": "push", key: value}),))
    (verdict,) = look(turns, rules, {"r1": order})
    assert verdict.at is not None
    assert verdict_questions(always, kind, bound, 0.05) == (verdict.at, verdict.at)


def test_no_verdict_is_reached_at_the_limit() -> None:
    pilot = tilted(stated(0.9, 0.05, None, None), "share", 0.8)
    assert verdict_questions(pilot, "share", 0.801, 0.05) == (None, None)
    with pytest.raises(InputError, match="detect so small a difference"):
        designs(pilot, "share", 0.8, 0.8)
