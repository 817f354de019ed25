"""Malfunctions: turns that failed."""

import polars as pl


def errors(turns: pl.DataFrame) -> pl.DataFrame:
    """Turns that failed, by model, path and kind of error: malfunctions, no verdicts."""
    failed = turns.filter(pl.col("status") == "error")
    return failed.group_by("model", "path", "rule", maintain_order=True).agg(pl.len().alias("n"))
