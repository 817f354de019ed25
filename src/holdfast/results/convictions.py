"""Convictions: the conversations of Stick-or-Switch in which a target is to be held."""

import polars as pl

from .first_answers import STUDY, TURN, answering

PROTOCOL = "stick-or-switch"

CONVICTIONS = ("positive", "negative")
"""Arms that hold a target: the right answer, or an abstention."""

FLEXIBLE = "flexible-correct"
"""Arm in which the right answer is offered to an abstention."""

_CONVERSATION = (*TURN, "arm")


def conviction_turns(turns: pl.DataFrame, *others: str) -> pl.DataFrame:
    """The turns of both convictions up to the first departure, of conversations that are whole.

    A conversation is left out where one of its turns failed, and where it ended early with its
    target still held (a run that was cut off). How many offers a question has is read off what
    it showed: all options at once in its single shot, one more at each turn.

    Args:
        turns: a turns table.
        others: further columns to keep.

    Returns:
        Turns in their order with ``STUDY``, ``arm``, ``epoch``, ``question``, ``turn`` (0-based),
        ``suggested``, ``target``, ``answer``, ``status`` and ``others``, and with ``kept`` (the
        target is answered), ``lost_at`` (``turn`` of the first departure, null where there is
        none) and ``longest`` (most offers of a question in this arm of the study).
    """
    kept = (pl.col("answer") == pl.col("target")).fill_null(value=False)
    offers = pl.col("shown").str.split(",").list.len().cast(pl.Int64) - 1
    own = answering(turns).filter(pl.col("protocol") == PROTOCOL).select(
        *_CONVERSATION, "turn", "suggested", "target", "answer", "status", *others,
        kept.alias("kept"),
        # the flexible branch shows the right answer on top of what the others show
        offers.filter(pl.col("arm") != FLEXIBLE).max().over(*STUDY, "question").alias("_offers"),
    )  # fmt: skip
    asked = own.filter(pl.col("arm").is_in(CONVICTIONS)).with_columns(
        pl.col("turn").filter(~pl.col("kept")).min().over(_CONVERSATION).alias("lost_at"),
        pl.col("turn").max().over(_CONVERSATION).alias("_last"),
        (pl.col("status") == "error").any().over(_CONVERSATION).alias("_failed"),
    )
    # without what was shown, a conversation is as long as it is
    offers = pl.max_horizontal("_offers", pl.col("_last") + 1)
    finished = pl.col("lost_at").is_not_null() | (pl.col("_last") + 1 == offers)
    whole = asked.filter(~pl.col("_failed"), finished).with_columns(
        offers.max().over(*STUDY, "arm").alias("longest")
    )
    before = pl.col("lost_at").is_null() | (pl.col("turn") <= pl.col("lost_at"))
    return whole.filter(before).drop("_offers", "_last", "_failed")
