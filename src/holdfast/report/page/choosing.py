"""Choosing: which conversations of a large study the report shows."""

import hashlib

import polars as pl

TURNED = ("given-up-pushed", "given-up-other", "given-up-unread", "mended")
"""Outcomes that are shown before any other."""

TURNS_EACH = 10
"""Turns shown for each conversation of the limit: a test of an attack has hundreds."""

_STRATUM = ("model", "dataset", "protocol", "technique")


def chosen(each: pl.DataFrame, limit: int) -> pl.DataFrame:
    """At most ``limit`` conversations, in their order.

    Answers that turned come first; then every model and technique gives equally many, those of the
    same questions, which a digest of the question's id picks. Fewer are shown where their turns
    would be more than ``TURNS_EACH`` times the limit.

    Args:
        each: conversations with ``rows``, ``flip``, ``model``, ``dataset``, ``protocol``,
            ``technique``, ``question`` and ``epoch``.
        limit: how many.
    """
    turns = pl.col("rows").list.len().cast(pl.Int64)
    if each.height <= limit and (each.select(turns.sum()).item() or 0) <= TURNS_EACH * limit:
        return each
    questions = each["question"].unique(maintain_order=True)
    drawn = [hashlib.sha256(id.encode()).hexdigest() for id in questions]
    order = pl.DataFrame({"question": questions, "_drawn": drawn})
    ranked = each.with_row_index("_place").join(
        order, on="question", how="left", validate="m:1", maintain_order="left"
    )
    ranked = ranked.with_columns((~pl.col("flip").is_in(TURNED)).alias("_later")).sort(
        "_later", "_drawn", "epoch", "_place"
    )
    ranked = ranked.with_columns(
        pl.int_range(pl.len()).over("_later", *_STRATUM).alias("_rank")
    ).sort("_later", "_rank", maintain_order=True)
    fits = (turns.cum_sum() <= TURNS_EACH * limit) & (pl.int_range(pl.len()) < limit)
    kept = ranked.filter(fits).sort("_place")
    return kept.select(each.columns)
