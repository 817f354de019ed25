"""Conversations: the turns of one dialogue from its first answer to its last challenge."""

import polars as pl

from .convictions import CONVICTIONS, FLEXIBLE, PROTOCOL, conviction_turns
from .first_answers import STUDY, TURN, unattacked

KIND = (*STUDY, "arm", "path")
"""Columns that tell apart conversations of different challenges."""

CONVERSATION = (*KIND, "epoch", "question")
"""Columns that tell conversations apart."""

_OF_TURN = ("turn", "suggested", "target", "answer", "status", "correct")


def conversations(turns: pl.DataFrame) -> pl.DataFrame:
    """The turns of every conversation that is whole, challenges of a kind told apart.

    In ``stick-or-switch`` an arm is a conversation; a run that was cut off makes none, nor does an
    arm that goes on from another one's turn (``flexible-correct``). Elsewhere every path is one:
    the first answer and each step of it, whether or not a chain goes on from there. A turn that
    failed or is missing leaves its conversation out, and protocols that put everything in one
    turn have none.

    Args:
        turns: a turns table.

    Returns:
        Turns with ``CONVERSATION``, a 0-based ``turn`` without gaps, ``suggested``, ``target``
        (gold where the table has none), ``answer``, ``status`` and ``correct``, in the order of
        the table. ``path`` is that of the last turn, in ``stick-or-switch`` the
        longest one of the arm.
    """
    columns = (*TURN, "arm", "path", "turn", "suggested", "answer", "status", "correct")
    read = unattacked(turns).select(*columns, pl.coalesce("target", "gold").alias("target"))
    offering = pl.col("protocol") == PROTOCOL
    both = pl.concat([_branches(read.filter(~offering)), _arms(read.filter(offering), turns)])
    whole = (pl.col("status") != "error").fill_null(value=False).all().over(CONVERSATION)
    return both.filter(whole)


def _branches(read: pl.DataFrame) -> pl.DataFrame:
    steps = pl.col("path").str.split(">")
    last = read.filter(pl.col("path") != "", pl.col("turn") > 0).select(*TURN, "arm", "path")
    each = last.with_columns(pl.int_ranges(0, steps.list.len() + 1).alias("turn")).explode("turn")
    each = each.with_columns(steps.list.head("turn").list.join(">").alias("_path"))
    said = read.drop("arm", "turn").rename({"path": "_path"})
    on = [*TURN, "_path"]
    found = each.join(said, on=on, how="left", validate="m:1", maintain_order="left")
    return found.select(*CONVERSATION, *_OF_TURN)


def _arms(read: pl.DataFrame, turns: pl.DataFrame) -> pl.DataFrame:
    own = [*TURN, "arm"]
    whole = conviction_turns(turns).select(own).unique()
    held = read.filter(pl.col("arm").is_in(CONVICTIONS))
    held = held.join(whole, on=own, how="semi", maintain_order="left")
    both = pl.concat([held, read.filter(pl.col("arm") == FLEXIBLE)])
    without_gaps = pl.col("turn").max().over(own) + 1 == pl.len().over(own)
    longest = pl.col("path").sort_by(pl.col("path").str.len_chars()).last().over(*STUDY, "arm")
    return (
        both.with_row_index("_row")
        .filter(without_gaps)
        .with_columns(longest.alias("path"))
        .sort(pl.col("_row").min().over(own), "turn")
        .select(*CONVERSATION, *_OF_TURN)
    )
