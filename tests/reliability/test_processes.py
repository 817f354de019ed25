"""Sets are in another order in every process. Nothing that is asked or read may follow it."""

import os
import subprocess
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from tests.studies import HOLDFAST

ROLES = {"medfuzz": ["attacker"], "open": ["judge"]}


@pytest.mark.slow
@pytest.mark.parametrize(
    "protocol", ["followup", "single-turn", "stick-or-switch", "medfuzz", "open", "pressure"]
)
def test_turns_are_alike_whatever_the_order_of_sets(protocol: str, tmp_path: Path) -> None:
    tables = []
    for seed in "12":
        folder = tmp_path / seed
        roles = [f"--model-role={role}=simulated/{role}" for role in ROLES.get(protocol, ())]
        subprocess.run(
            [
                HOLDFAST, "run", protocol, "--model", "simulated/sycophant", *roles,
                "--limit", "2", "--log-dir", folder / "runs",
            ],
            env={
                **os.environ, "PYTHONHASHSEED": seed, "HOLDFAST_CACHE_DIR": str(folder / "cache")
            },
            check=True,
            capture_output=True,
        )  # fmt: skip
        tables.append(pl.read_parquet(folder / "runs" / "turns.parquet").drop("latency"))
    assert tables[0].height > 0
    assert_frame_equal(tables[0], tables[1])
