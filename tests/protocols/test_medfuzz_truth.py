"""MedFuzz on simulated models: what they are built with is given back, and p-values are honest."""

import json
import math
from statistics import NormalDist
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.stats import binomtest, chisquare
from tests.fuzzing import ATTACKS_ALONE
from tests.studies import holdfast

from holdfast.models.behaviour import profile
from holdfast.protocols.medfuzz.simulated import Swaying
from holdfast.results.declaration import TABLES

N = 1000
CONTROLS = 30


def attacked(model: str, *more: str) -> pl.DataFrame:
    run = holdfast(
        "run", "medfuzz", "--model", f"simulated/{model}",
        "--model-role", "attacker=simulated/attacker", "--json", *ATTACKS_ALONE, *more,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    return pl.read_parquet(json.loads(run.stdout)["turns"])


def permuted(model: str, *more: str) -> list[dict[str, Any]]:
    turns = attacked(model, "-T", f"tested={CONTROLS}", "-T", "samples=1", *more)
    return TABLES["permutation"](turns).to_dicts()


def deviation(hits: int, n: int, truth: float) -> float:
    """By how many standard errors an observed share is off."""
    return (hits / n - truth) / math.sqrt(truth * (1 - truth) / n)


def joint_99(figures: int) -> float:
    """Of so many independent deviations, what all of them stay below in 99 of 100 studies."""
    return NormalDist().inv_cdf(1 - (1 - 0.99 ** (1 / figures)) / 2)


@pytest.mark.slow
def test_attempt_chances_are_recovered_on_1000_questions(medqa: str) -> None:
    turns = attacked(
        "fuzz-swayed", "--questions", medqa, "--shuffle", "20", "--limit", str(N), "--epochs", "1",
        "--no-text",
    )  # fmt: skip
    truth_profile = profile("fuzz-swayed")
    right, rate = truth_profile.baseline / 100, truth_profile.of(Swaying).swayed
    (summary,) = TABLES["attack-summary"](turns).iter_rows(named=True)
    assert (summary["replicates"], summary["model_errors"], summary["unfinished"]) == (N, 0, 0)
    attempts = turns.filter(pl.col("arm") == "attack")
    successes = int((~attempts["correct"]).sum())
    # each attempt is a draw of its own: one proportion over all of them
    low, high = binomtest(successes, attempts.height).proportion_ci(0.99, "wilson")
    assert low <= rate <= high
    off = {"first": deviation(N - summary["first_wrong"], N, right)}
    at_risk = N - summary["first_wrong"]
    for k in range(1, 6):
        subset = attempts.filter(pl.col("path") == f"fuzz@{k}")
        assert subset.height == at_risk
        losses = int((~subset["correct"]).sum())
        off[f"attempt {k}"] = deviation(losses, at_risk, rate)
        at_risk -= losses
    assert {name: z for name, z in off.items() if abs(z) > joint_99(len(off))} == {}
    curve = TABLES["attacks"](turns)
    truths = [right * (1 - rate) ** k for k in range(6)]
    after = {
        k: deviation(round(accuracy * N), N, truth)
        for k, accuracy, truth in zip(curve["k"], curve["accuracy"], truths, strict=True)
    }
    assert {k: z for k, z in after.items() if abs(z) > joint_99(6)} == {}
    assert all(
        low <= truth <= high
        for low, truth, high in zip(curve["low"], truths, curve["high"], strict=True)
    )


def distances(counts: Any) -> Any:
    """Of Kolmogorov and Smirnov, from equal chances for 0, 1, ... controls; one for each row."""
    places = np.arange(1, counts.shape[1] + 1) / counts.shape[1]
    cumulative = counts.cumsum(axis=1) / counts.sum(axis=1, keepdims=True)
    return np.abs(cumulative - places).max(axis=1)


@pytest.mark.slow
def test_p_values_without_an_effect_are_uniform() -> None:
    rows = permuted("fuzz-blind", "--epochs", "7")
    assert len(rows) >= 300
    assert {(row["m"], row["invalid"], row["by"]) for row in rows} == {(CONTROLS, 0, "logprobs")}
    b = np.bincount([row["b"] for row in rows], minlength=CONTROLS + 1)
    # the steps of a discrete law: its own distribution of the distance, not the continuous one's
    null = np.random.default_rng(7).multinomial(
        len(rows), [1 / (CONTROLS + 1)] * (CONTROLS + 1), size=20_000
    )
    assert np.mean(distances(null) >= distances(b[None])) > 0.01
    assert chisquare(b).pvalue > 0.01
    # of 30 controls, only a b of 0 has a p-value below 5%
    low = sum(row["p_value"] <= 0.05 for row in rows)
    assert binomtest(low, len(rows), 1 / (CONTROLS + 1)).pvalue > 0.01
    assert sum(row["p_adjusted"] <= 0.05 for row in rows) == 0


@pytest.mark.slow
def test_attacks_on_a_swayed_model_are_found() -> None:
    rows = permuted("fuzz-swayed", "--epochs", "2")
    assert len(rows) > 60
    power = sum(row["p_value"] <= 0.05 for row in rows) / len(rows)
    print(f"power: {power:.3f} of {len(rows)}")
    # controls sway it too, so that not every attack stands out; of 30, none may do as much
    assert 0.2 < power < 0.95
    assert 0.45 < sum(row["b"] / row["m"] <= 0.05 for row in rows) / len(rows) < 0.95
    assert sum(row["effect"] < 0 for row in rows) > 0.95 * len(rows)
