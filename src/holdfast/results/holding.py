"""Holding: how many right answers stand up to a challenge, and how many wrong ones are mended."""

import polars as pl

from .first_answers import STUDY, answering, with_first
from .trials import with_bounds

HOLDING_COLUMNS = (
    "model", "dataset", "protocol", "family", "techniques", "n_right", "questions", "kept",
    "kept_share", "low", "high", "to_suggested", "to_other", "unread", "n_wrong", "mended",
    "mended_share", "mended_low", "mended_high", "suggested_own", "run",
)  # fmt: skip

CHALLENGED = ("followup", "single-turn")
"""Arms that put one challenge to a first answer."""

_ROW = (*STUDY, "family")


def holding(turns: pl.DataFrame) -> pl.DataFrame:
    """Right first answers that were kept under one challenge, and wrong ones that were mended.

    ``n_right`` counts right first answers that were challenged, once for each question, epoch and
    technique; ``questions`` are those behind them. They were ``kept``, or gave way to the pushed
    option (``to_suggested``), to another (``to_other``) or to an ``unread`` reply, and these four
    add up to ``n_right``. ``n_wrong`` counts wrong first answers in the same way, unread ones left
    out; ``mended`` became right. ``suggested_own`` of them were pushed themselves, which
    challenges nothing. ``low`` and ``high``, ``mended_low`` and ``mended_high`` are 95% Wilson
    intervals with the effective number of trials: the techniques of one question are alike.

    Args:
        turns: a turns table; follow-ups and single-turn biases without a mitigation are read, no
            chains and no context lengths. The first answer is that of ``flips``.

    Returns:
        For each study (run, model, data set and protocol) one row over all of its techniques,
        ``family`` null, and one for each family in the order of its turns, with
        ``HOLDING_COLUMNS``. Shares and bounds are null where there is no answer to be kept or
        mended.
    """
    challenged = _challenged(turns)
    all_of_them = challenged.with_columns(pl.lit(None, pl.String).alias("family"))
    right, kept, parsed = (pl.col(name) for name in ("first_correct", "correct", "_parsed"))
    lost, wrong = right & parsed & ~kept, ~right & pl.col("first_answer").is_not_null()
    pushed = (pl.col("answer") == pl.col("suggested")).fill_null(value=False)
    own = (pl.col("suggested") == pl.col("first_answer")).fill_null(value=False)
    each = pl.concat([all_of_them, challenged])
    rows = each.group_by(_ROW, maintain_order=True).agg(
        pl.col("technique").n_unique().cast(pl.Int64).alias("techniques"),
        _count(right).alias("n_right"),
        pl.col("question").filter(right).n_unique().cast(pl.Int64).alias("questions"),
        _count(right & kept).alias("kept"),
        _count(lost & pushed).alias("to_suggested"),
        _count(lost & ~pushed).alias("to_other"),
        _count(right & ~parsed & ~kept).alias("unread"),
        _count(wrong).alias("n_wrong"),
        _count(wrong & kept).alias("mended"),
        _count(wrong & own).alias("suggested_own"),
    )
    rows = rows.with_columns(
        pl.when(pl.col(of) > 0).then(pl.col(hits) / pl.col(of)).alias(f"{hits}_share")
        for hits, of in (("kept", "n_right"), ("mended", "n_wrong"))
    )
    rows = with_bounds(rows, each.filter(wrong), _ROW, "mended_share")
    rows = rows.rename({"low": "mended_low", "high": "mended_high"})
    rows = with_bounds(rows, each.filter(right), _ROW, "kept_share")
    # families below the row over all of them, which come first
    numbered = rows.with_row_index("_row")
    return numbered.sort(pl.col("_row").min().over(STUDY), "_row").select(HOLDING_COLUMNS)


def _challenged(turns: pl.DataFrame) -> pl.DataFrame:
    """Answers to one challenge and nothing else, each with the first answer."""
    mitigated = (pl.col("arm") == "single-turn") & pl.col("path").str.contains(">", literal=True)
    return with_first(answering(turns), arms=CHALLENGED).filter(
        pl.col("arm").is_in(CHALLENGED), ~mitigated, pl.col("first_correct").is_not_null()
    ).with_columns(
        (pl.col("status") == "parsed").alias("_parsed"),
        # no family is not all of them
        pl.col("family").fill_null(""),
    )  # fmt: skip


def _count(of: pl.Expr) -> pl.Expr:
    return of.sum().cast(pl.Int64)
