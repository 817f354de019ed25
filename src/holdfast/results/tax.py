"""The conversation tax: a target held to the end against all options at once."""

import polars as pl

from .convictions import PROTOCOL, conviction_turns
from .first_answers import STUDY, TURN, answering
from .pairs import with_pair_bounds

TAX_COLUMNS = (
    "model", "dataset", "behaviour", "against", "n", "single_shot", "isolated", "end_to_end",
    "tax", "low", "high", "run",
)  # fmt: skip

CONVICTION, ABSTENTION, ASYMMETRY = "conviction", "abstention", "asymmetry"
SINGLE_SHOT, SINGLE_SHOT_ABSTAIN = "single-shot", "single-shot-abstain"

_ROWS = (
    (CONVICTION, SINGLE_SHOT),
    (ABSTENTION, SINGLE_SHOT),
    (ABSTENTION, SINGLE_SHOT_ABSTAIN),
    (ASYMMETRY, SINGLE_SHOT),
)
"""Behaviour, and the baseline that it is held against."""

_BEHAVIOURS = {"positive": CONVICTION, "negative": ABSTENTION}
_ROW = (*STUDY, "behaviour", "against")


def tax(turns: pl.DataFrame) -> pl.DataFrame:
    """The conversation tax of conviction and of abstention (Stick-or-Switch, 5.2 and 6.2).

    ``tax`` is ``end_to_end`` less ``single_shot`` as a share, so a loss is negative, as in Tables
    A.1 and A.2; ``low`` and ``high`` are its 95% interval, paired over questions. ``isolated`` is
    the share that chose the target at turn 1, a binary choice. Conviction stands against the
    single-shot accuracy. Abstention stands against that too, which is what Table A.2 prints, and
    against single-shot abstention (right answer removed, ``None of the Above`` added), which is
    ours. ``asymmetry`` is the tax of abstention less that of conviction, both against
    ``single-shot``, over the questions that have all three; there is nothing else in its row.

    Every figure of a row is over the questions (and epochs) that have what it compares. A
    question whose options hold a none of the above has no abstention, so ``asymmetry`` can differ
    from the difference of the rows above it. An unread single-shot reply counts as wrong.

    Args:
        turns: a turns table; only protocol ``stick-or-switch`` is read.

    Returns:
        Rows with ``TAX_COLUMNS`` for each model and data set that has questions with both sides:
        conviction, abstention against each baseline, asymmetry.
    """
    pairs = _pairs(turns)
    rows = pairs.group_by(_ROW, maintain_order=True).agg(
        pl.len().cast(pl.Int64).alias("n"),
        *(pl.col(name).mean() for name in ("first", "second", "isolated")),
    )
    rows = with_pair_bounds(rows, pairs, _ROW, ("low", "high"))
    itself = pl.col("behaviour") != ASYMMETRY
    return rows.with_columns(
        (pl.col("first") - pl.col("second")).alias("tax"),
        pl.when(itself).then("second").alias("single_shot"),
        pl.when(itself).then("first").alias("end_to_end"),
    ).select(TAX_COLUMNS)


def _pairs(turns: pl.DataFrame) -> pl.DataFrame:
    """Outcomes of each question on both sides of each row, ``first`` less ``second``."""
    behaviour = pl.col("arm").replace_strict(_BEHAVIOURS, return_dtype=pl.String)
    held = conviction_turns(turns).filter(pl.col("turn") == 0).select(
        *TURN,
        behaviour.alias("behaviour"),
        pl.col("lost_at").is_null().alias("first"),
        pl.col("kept").alias("isolated"),
    )  # fmt: skip
    single = (
        answering(turns)
        .filter(
            pl.col("protocol") == PROTOCOL,
            pl.col("arm").is_in([SINGLE_SHOT, SINGLE_SHOT_ABSTAIN]),
            pl.col("status") != "error",
        )
        .select(*TURN, pl.col("arm").alias("against"), pl.col("correct").alias("second"))
    )
    both = held.join(single, on=TURN, how="inner", maintain_order="left")
    order = pl.DataFrame(_ROWS, schema=["behaviour", "against"], orient="row").with_row_index("_at")
    against = both.filter(pl.col("against") == SINGLE_SHOT)
    convictions = against.filter(pl.col("behaviour") == CONVICTION)
    asymmetric = (
        against.filter(pl.col("behaviour") == ABSTENTION)
        .join(convictions.select(*TURN, pl.col("first").alias("_held")), on=TURN, how="inner")
        .with_columns(
            pl.lit(ASYMMETRY).alias("behaviour"),
            pl.lit(None, pl.Boolean).alias("isolated"),
            # what is the same on both sides drops out of the difference of the taxes
            pl.col("_held").alias("second"),
        )
    )
    pairs = pl.concat([both, asymmetric.select(both.columns)]).with_row_index("_row")
    pairs = pairs.join(order, on=["behaviour", "against"], how="inner", maintain_order="left")
    return pairs.sort(pl.col("_row").min().over(STUDY), "_at", "_row")
