"""Pressure: hazards come back, and a model that only draws afresh has lost nothing to the user."""

import numpy as np
import polars as pl
import pytest

from holdfast.protocols.pressure.measures import pressure
from holdfast.render.reported import report_of
from holdfast.results.recovery import recovery
from tests.worlds import Answers, drawn, turns_at

HAZARDS = (0.10, 0.05, 0.20, 0.0, 0.30)
"""Share of the answers that still stand which each push moves."""

BELIEVED = 0.6
"""Share of lost answers that come back when the right one is told."""

RUNGS = ("doubt", "authority", "social-proof", "urgency", "consequences")
NEUTRAL = ("state-again", "rephrase", "sources", "summary", "terms")
STUDIES, QUESTIONS = 200, 60


def turns_under_pressure(
    world: str, studies: int = 1, questions: int = 4000, *, stops: bool = False
) -> pl.DataFrame:
    """Studies of a server with a user who pushes and a neutral one, five turns each.

    Args:
        world: ``noise`` draws each answer afresh; ``hazard`` gives way by ``HAZARDS`` and stays
            there; ``both`` gives way so, and draws afresh otherwise.
        studies: how many.
        questions: of each.
        stops: whether the user stops once the answer is not right.
    """
    rng = np.random.default_rng([11, studies, questions, *world.encode()])
    shape = (studies, questions)
    gold = rng.integers(0, 4, shape)
    wrong = (gold + rng.integers(1, 4, shape)) % 4
    nothing, everywhere = np.full(shape, -1), np.ones(shape, bool)
    first = drawn(rng, gold, 0.9)

    def afresh(last: Answers) -> Answers:
        return last if world == "hazard" else drawn(rng, gold, 0.9)

    parts = [turns_at("baseline", "", 1, first, gold, nothing, everywhere)]
    last, gone, asked = first, np.zeros(shape, bool), everywhere
    for depth, hazard in enumerate(HAZARDS, 1):
        gone = gone | ((world != "noise") & (rng.random(shape) < hazard))
        asked = asked & (last == gold) if stops else asked
        last = np.where(asked, np.where(gone, wrong, afresh(last)), last)
        path = ">".join(RUNGS[:depth])
        parts.append(turns_at("ladder", path, 1, last, gold, wrong, asked))
    is_lost, believes = last != gold, rng.random(shape) < BELIEVED * (world == "hazard")
    told = np.where(believes, gold, afresh(last))
    end = ">".join(RUNGS)
    parts += [
        turns_at("told", f"{end}>truth", 1, told, gold, gold, is_lost),
        turns_at("asked-again", f"{end}>again", 1, afresh(last), gold, nothing, is_lost),
    ]
    last = first
    for depth in range(1, len(NEUTRAL) + 1):
        last = afresh(last)
        path = ">".join(NEUTRAL[:depth])
        parts.append(turns_at("control", path, 1, last, gold, nothing, everywhere))
    return pl.concat(parts).with_columns(protocol=pl.lit("pressure"))


def of_ladder(turns: pl.DataFrame) -> pl.DataFrame:
    return pressure(turns).filter(pl.col("arm") == "ladder")


def test_the_opening_states_the_accuracy_after_a_neutral_user() -> None:
    turns = turns_under_pressure("noise")
    is_neutral = (pl.col("arm") == "control") & (pl.col("turn") == len(NEUTRAL))
    share = 100 * turns.filter(is_neutral)["correct"].to_numpy().mean()
    measure = report_of("pressure").opening.measure
    assert measure(turns)["neutral"].to_list() == [f"; {share:.1f}% after a neutral user"]
    assert measure(turns.filter(pl.col("arm") != "control"))["neutral"].to_list() == [""]


def test_hazards_are_recovered() -> None:
    rows = of_ladder(turns_under_pressure("hazard"))
    survival = np.array([1.0, *rows["resistance"]])
    assert 1 - survival[1:] / survival[:-1] == pytest.approx(HAZARDS, abs=0.02)
    # nobody is lost to the neutral user, and everybody to the suggested option
    assert rows["attributable"].to_list() == pytest.approx(list(1 - survival[1:]))
    assert rows["left_to_suggested"].equals(rows["left"])


@pytest.mark.slow
def test_lost_answers_count_at_every_turn_also_where_the_user_stops() -> None:
    stopped, pushed = (
        of_ladder(turns_under_pressure("hazard", stops=stops)) for stops in (True, False)
    )
    assert stopped["n"].n_unique() == 1
    columns = ["turn", "n", "resistance", "low", "high", "left", "attributable"]
    assert stopped.select(columns).equals(pushed.select(columns))


@pytest.mark.parametrize("world", ["noise", "both"])
def test_answers_drawn_afresh_are_not_lost_to_the_user(world: str) -> None:
    rows = of_ladder(turns_under_pressure(world))
    # by the last turn, four of ten are lost by chance
    assert rows["resistance"][-1] < 0.65
    kept = np.cumprod([0.9] * len(HAZARDS))
    truth = (1 - np.cumprod(1 - np.array(HAZARDS))) * kept if world == "both" else np.zeros(5)
    assert rows["attributable"].to_list() == pytest.approx(truth.tolist(), abs=0.02)


@pytest.mark.slow
def test_coming_back_by_chance_is_no_recovery() -> None:
    for world, truth in (("noise", 0.0), ("hazard", BELIEVED)):
        turns = turns_under_pressure(world, questions=20_000)
        (row,) = recovery(turns).filter(pl.col("answer") == "right").to_dicts()
        assert row["recovered"] == pytest.approx(truth, abs=0.03)
        assert row["recovered_low"] <= truth <= row["recovered_high"]
        assert row["asked_again"] == pytest.approx(0.9 if world == "noise" else 0, abs=0.03)


@pytest.mark.slow
@pytest.mark.parametrize("world", ["noise", "hazard"])
def test_the_interval_of_what_the_user_costs_covers_the_truth(world: str) -> None:
    rows = of_ladder(turns_under_pressure(world, STUDIES, QUESTIONS))
    truth = 1 - np.cumprod(1 - np.array(HAZARDS)) if world == "hazard" else np.zeros(5)
    for turn, expected in enumerate(truth, 1):
        at = rows.filter(pl.col("turn") == turn)
        assert at.height == STUDIES
        assert at["attributable"].mean() == pytest.approx(expected, abs=0.02)
        covered = at.filter(
            pl.col("attributable_low") <= expected + 1e-9,
            pl.col("attributable_high") >= expected - 1e-9,
        )
        assert covered.height >= 0.94 * STUDIES
