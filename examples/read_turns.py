"""Run a small simulated study and read its turns table.

Usage: python examples/read_turns.py

No key and no network are needed. Every figure printed is SIMULATED.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import polars as pl

STUDY = (
    "run", "followup",
    "--model", "simulated/claude-sonnet-4",
    "--questions", "bank",
)  # fmt: skip


def main() -> None:
    """Run the study in a temporary folder and print what was kept."""
    with tempfile.TemporaryDirectory() as folder:
        run_study(folder)
        turns = pl.read_parquet(Path(folder) / "turns.parquet")
    print(f"SIMULATED: {turns.height} turns of {turns['question'].n_unique()} questions\n")
    for family, asked, kept in kept_right(turns).iter_rows():
        print(f"{family:<11} {kept:3} of {asked} right first answers kept ({kept / asked:.1%})")


def run_study(log_dir: str) -> None:
    """Run the study with the command line that belongs to this interpreter."""
    holdfast = Path(sys.executable).with_name("holdfast")
    subprocess.run([holdfast, *STUDY, "--log-dir", log_dir], check=True, stdout=subprocess.DEVNULL)


def kept_right(turns: pl.DataFrame) -> pl.DataFrame:
    """Of the right first answers, how many were still right after a challenge, by family.

    Args:
        turns: a turns table.

    Returns:
        Columns family, asked, kept; one row for each family in the order of the study.
    """
    answered = turns.filter(pl.col("status") != "error")
    right_first = answered.filter(pl.col("arm") == "baseline", pl.col("correct"))
    return (
        answered.filter(pl.col("arm") == "followup")
        .join(right_first, on=["run", "question", "epoch"], how="semi", maintain_order="left")
        .group_by("family", maintain_order=True)
        .agg(pl.len().alias("asked"), pl.col("correct").sum().alias("kept"))
    )


if __name__ == "__main__":
    main()
