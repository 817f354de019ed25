"""Accuracy after contexts of a fixed length."""

import polars as pl

from .accuracy import rated, with_change
from .changes import CHANGE
from .first_answers import STUDY, with_first

LENGTHS_COLUMNS = (
    "model", "dataset", "technique", "family", "sentences", "n", "correct", "accuracy", "low",
    "high", "baseline", *CHANGE, "unparsed", "refused", "non_response", "run",
)  # fmt: skip


def lengths(turns: pl.DataFrame) -> pl.DataFrame:
    """Accuracy by technique and length of its context (MedQA-Followup, section 4.3, Figure 3).

    The figures are those of ``accuracy``. Contexts of the usual length are in no row.

    Args:
        turns: a turns table.

    Returns:
        One row for each model, data set, technique and number of ``sentences``, with
        ``LENGTHS_COLUMNS``; a technique's rows from the shortest context to the longest.
    """
    answered = with_first(turns, arms=["length"])
    rows = with_change(rated(answered), answered)
    rows = rows.filter(pl.col("arm") == "length").with_row_index("_row")
    rows = rows.with_columns(
        pl.col("path").str.extract(r"@(\d+)$").cast(pl.Int64).alias("sentences"),
        pl.col("_row").min().over(STUDY).alias("_study"),
        pl.col("_row").min().over(*STUDY, "technique").alias("_technique"),
    )
    return rows.sort("_study", "_technique", "sentences", "_row").select(LENGTHS_COLUMNS)
