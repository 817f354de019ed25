"""Flows: from what a first answer was to what a challenge made of it."""

import polars as pl

from .first_answers import STUDY, answering, with_first
from .holding import CHALLENGED

FLOWS_COLUMNS = (
    "model", "dataset", "protocol", "path", "technique", "family", "before", "after", "n",
    "share", "run",
)  # fmt: skip

BEFORE = ("right", "wrong", "unread")
"""What a first answer was."""

AFTER = ("right", "suggested", "other", "unread")
"""What the answer to the challenge is; ``suggested`` and ``other`` are wrong."""

_PATH = (*STUDY, "path", "technique", "family")


def flows(turns: pl.DataFrame) -> pl.DataFrame:
    """First answers by what they were and what they became, by path.

    ``before`` is ``right``, ``wrong`` or ``unread`` (no readable answer), ``after`` is ``right``,
    ``suggested`` (the pushed option, which is wrong), ``other`` (another wrong one) or ``unread``.
    The first answer of a single-turn bias is the answer to the plain question; failed turns, and
    turns of a question without a first answer, are left out as in ``flips``, whose counts are
    sums of these.

    Args:
        turns: a turns table; follow-ups and single-turn biases are read, with mitigations and
            without, no chains and no context lengths.

    Returns:
        Twelve rows for each study (run, model, data set and protocol) and path, one for each
        ``before`` and ``after``, with ``FLOWS_COLUMNS``: ``n`` answers, and their ``share`` of
        the path's.
    """
    answered = with_first(answering(turns), arms=CHALLENGED).filter(
        pl.col("arm").is_in(CHALLENGED), pl.col("first_correct").is_not_null()
    )
    unread = pl.col("first_answer").is_null()
    each = answered.select(
        *_PATH,
        pl.when("first_correct").then(pl.lit("right"))
        .when(unread).then(pl.lit("unread"))
        .otherwise(pl.lit("wrong")).alias("before"),
        pl.when("correct").then(pl.lit("right"))
        .when(pl.col("status") != "parsed").then(pl.lit("unread"))
        .when(pl.col("answer") == pl.col("suggested")).then(pl.lit("suggested"))
        .otherwise(pl.lit("other")).alias("after"),
    )  # fmt: skip
    paths = each.group_by(_PATH, maintain_order=True).agg(pl.len().cast(pl.Int64).alias("_all"))
    counts = each.group_by(*_PATH, "before", "after").agg(pl.len().cast(pl.Int64).alias("n"))
    every = pl.DataFrame(
        [(before, after) for before in BEFORE for after in AFTER],
        schema={"before": pl.String, "after": pl.String},
        orient="row",
    )
    rows = paths.join(every, how="cross", maintain_order="left_right").join(
        counts, on=[*_PATH, "before", "after"], how="left", validate="1:1", nulls_equal=True,
        maintain_order="left",
    )  # fmt: skip
    n = pl.col("n").fill_null(0)
    return rows.with_columns(n, (n / pl.col("_all")).alias("share")).select(FLOWS_COLUMNS)
