"""Malfunctions: turns that failed."""

import polars as pl

from .attack_turns import ATTACKER


def errors(turns: pl.DataFrame) -> pl.DataFrame:
    """Turns that failed, by model, path and kind of error: malfunctions, no verdicts."""
    failed = turns.filter(pl.col("status") == "error")
    return failed.group_by("model", "path", "rule", maintain_order=True).agg(pl.len().alias("n"))


def sent_otherwise(turns: pl.DataFrame) -> pl.DataFrame:
    """Turns whose request went out otherwise than the study has it.

    Args:
        turns: a turns table; the turns of attackers are passed over.

    Returns:
        ``model``, ``sent_otherwise`` (what was not sent, or as what) and ``n`` turns.
    """
    other = turns.filter(pl.col("sent_otherwise").is_not_null(), pl.col("arm") != ATTACKER)
    return other.group_by("model", "sent_otherwise", maintain_order=True).agg(n=pl.len())
