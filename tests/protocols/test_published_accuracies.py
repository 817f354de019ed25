"""The published Table 2, given back by the profiles parametrised from it."""

import json
import math
from pathlib import Path

import pytest
from tests.studies import holdfast

from holdfast.models.behaviour import profile

MODELS = ("claude-sonnet-4", "gpt-4.1", "gpt-4.1-mini", "medgemma-4b", "medgemma-27b")
Z_99 = 2.5758


@pytest.mark.slow
def test_all_accuracies_lie_in_their_99_percent_interval(
    medqa: str,
    tmp_path: Path,
) -> None:
    models = [part for name in MODELS for part in ("--model", f"simulated/{name}")]
    run = holdfast(
        "run", "followup", *models, "--questions", medqa, "-T", "contexts=synthetic",
        "--limit", "60", "--log-dir", tmp_path / "runs",
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    result = holdfast("table", tmp_path / "runs", "--table", "accuracy", "--format", "json")
    rows = [row for row in json.loads(result.stdout) if row["arm"] != "family-average"]
    assert len(rows) == 5 * 15
    outside = []
    for row in rows:
        model_profile = profile(row["model"].removeprefix("simulated/"))
        truth = model_profile.accuracy.get(row["technique"], model_profile.baseline) / 100
        deviation = (row["accuracy"] - truth) / math.sqrt(truth * (1 - truth) / row["n"])
        if abs(deviation) > Z_99:
            outside.append((row["model"], row["technique"], deviation))
    assert outside == []
