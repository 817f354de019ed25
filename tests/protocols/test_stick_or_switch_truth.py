"""Stick-or-Switch on 1,000 real questions gives back what a simulated model is built with."""

import json
import math
from pathlib import Path
from statistics import NormalDist
from typing import Any

import polars as pl
import pytest
from tests.studies import holdfast

from holdfast.models.behaviour import profile
from holdfast.protocols.stick_or_switch.convictions import survival, tax
from holdfast.protocols.stick_or_switch.flexibility import flexibility, positions
from holdfast.protocols.stick_or_switch.simulated import Sticking
from holdfast.questions.loading import load_questions
from holdfast.questions.question import is_none_of_the_above
from holdfast.questions.sampling import shuffled

N = 1000
SEED = 20


@pytest.fixture(scope="session")
def medmcqa(resources: Path) -> str:
    return str(resources / "data" / "medmcqa" / "dev.jsonl")


def turns_of_1000(model: str, medmcqa: str) -> pl.DataFrame:
    run = holdfast(
        "run", "stick-or-switch", "--model", f"simulated/{model}", "--questions", medmcqa,
        "--shuffle", str(SEED), "--limit", str(N), "--no-text", "--json",
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    return pl.read_parquet(json.loads(run.stdout)["turns"])


def deviation(hits: int, n: int, truth: float) -> float:
    """By how many standard errors an observed share is off."""
    return (hits / n - truth) / math.sqrt(truth * (1 - truth) / n)


def joint_99(figures: int) -> float:
    """Of so many independent deviations, what all of them stay below in 99 of 100 studies."""
    return NormalDist().inv_cdf(1 - (1 - 0.99 ** (1 / figures)) / 2)


def rows_of(table: pl.DataFrame, *keys: str) -> dict[Any, dict[str, Any]]:
    return {tuple(row[key] for key in keys): row for row in table.iter_rows(named=True)}


def taxes(turns: pl.DataFrame) -> dict[Any, dict[str, Any]]:
    return rows_of(tax(turns), "behaviour", "against")


def deviations(model: str, turns: pl.DataFrame, medmcqa: str) -> dict[str, float]:
    """Every figure that the model's profile sets, by how far the study is off."""
    sticking = profile(model).of(Sticking)
    sample = shuffled(load_questions(medmcqa), SEED).first(N).questions
    abstaining = sum(
        not any(is_none_of_the_above(text) for text in question.options.values())
        for question in sample
    )
    assert 900 < abstaining < N
    result: dict[str, float] = {}
    retention = rows_of(survival(turns), "arm", "turn")
    for arm, single, first, n_asked in (
        ("positive", "single-shot", profile(model).baseline / 100, N),
        ("negative", "single-shot-abstain", sticking.abstain, abstaining),
    ):
        for turn in (1, 2, 3):
            row = retention[arm, turn]
            assert row["n"] == n_asked
            truth = first * sticking.stick[arm] ** (turn - 1)
            result[f"S({turn}) {arm}"] = deviation(row["kept"], n_asked, truth)
            if turn > 1:
                assert row["lost"] == row["lost_to_suggested"]
                hazard = deviation(row["lost"], row["at_risk"], 1 - sticking.stick[arm])
                result[f"hazard({turn}) {arm}"] = hazard
        subset = turns.filter(pl.col("arm") == single)["correct"]
        assert subset.len() == n_asked
        result[single] = deviation(int(subset.sum()), n_asked, first)
        # where the target is shown makes no difference to a model that does not look
        places = positions(turns).filter(pl.col("effect") == "position", pl.col("arm") == arm)
        assert places["level"].to_list() == ["1", "2"]
        for place in places.iter_rows(named=True):
            result[f"at {place['level']} {arm}"] = deviation(place["kept"], place["n"], first)
            result[f"shown at {place['level']} {arm}"] = deviation(place["n"], n_asked, 0.5)
    (switches,) = flexibility(turns).iter_rows(named=True)
    for side, truth in (
        ("correct", sticking.flexible),
        ("incorrect", 1 - sticking.stick["negative"]),
    ):
        hits, n = switches[f"{side}_switches"], switches[f"n_{side}"]
        assert n == retention["negative", 1]["kept"]
        result[f"{side} switches"] = deviation(hits, n, truth)
    return result


@pytest.mark.slow
def test_a_blind_switcher_is_recovered(
    medmcqa: str,
) -> None:
    turns = turns_of_1000("blind-switcher", medmcqa)
    off = deviations("blind-switcher", turns, medmcqa)
    assert len(off) == 22
    assert {name: z for name, z in off.items() if abs(z) > joint_99(len(off))} == {}
    (switches,) = flexibility(turns).iter_rows(named=True)
    assert switches["switching"] == "blind"
    assert switches["d_prime_low"] <= 0 <= switches["d_prime_high"]
    assert switches["difference_low"] <= 0 <= switches["difference_high"]
    assert switches["d_prime_high"] - switches["d_prime_low"] < 0.6


@pytest.mark.slow
def test_a_sycophant_is_recovered(
    medmcqa: str,
) -> None:
    turns = turns_of_1000("sycophant", medmcqa)
    off = deviations("sycophant", turns, medmcqa)
    assert {name: z for name, z in off.items() if abs(z) > joint_99(len(off))} == {}
    (switches,) = flexibility(turns).iter_rows(named=True)
    assert switches["switching"] == "not blind"
    # it gives way to 0.9 of the right offers and to 0.7 of the wrong ones
    truth = NormalDist().inv_cdf(0.9) - NormalDist().inv_cdf(0.7)
    assert 0 < switches["d_prime_low"] <= truth <= switches["d_prime_high"]
    tax_rows = taxes(turns)
    # 0.9 known at once, and held through two further offers with 0.6 each; abstentions likewise
    conviction, abstention = 0.9 * 0.6**2, 0.7 * 0.3**2
    truths = {
        ("conviction", "single-shot"): conviction - 0.9,
        ("abstention", "single-shot"): abstention - 0.7,
        ("abstention", "single-shot-abstain"): abstention - 0.7,
        ("asymmetry", "single-shot"): (abstention - 0.7) - (conviction - 0.9),
    }
    for key, truth in truths.items():
        row = tax_rows[key]
        error = (row["high"] - row["low"]) / 2 / NormalDist().inv_cdf(0.975)
        assert abs(row["tax"] - truth) < joint_99(len(truths)) * error, key
        assert row["high"] < 0 or key[0] == "asymmetry"


@pytest.mark.slow
def test_a_steadfast_model_pays_no_tax(medmcqa: str) -> None:
    tax_rows = taxes(turns_of_1000("steadfast", medmcqa))
    for key in (("conviction", "single-shot"), ("abstention", "single-shot-abstain")):
        # what it knows at once it knows in a conversation, question by question
        row = tax_rows[key]
        assert row["tax"] == 0.0
        assert row["end_to_end"] == row["single_shot"] == row["isolated"]
        assert row["single_shot"] == pytest.approx(0.9, abs=0.025)
    assert all(tax_rows[key]["tax"] == 0.0 for key in tax_rows if key[1] == "control")
    assert len(tax_rows) == 6
    assert all(row["low"] <= 0 <= row["high"] for row in tax_rows.values())
