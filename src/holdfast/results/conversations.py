"""Conversations: the turns of one dialogue from its first answer to its last challenge."""

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from .convictions import CONVICTIONS, FLEXIBLE, PROTOCOL, conviction_turns
from .first_answers import STUDY, TURN, answering, unattacked

KIND = (*STUDY, "arm", "path")
"""Columns that tell apart conversations of different challenges."""

CONVERSATION = (*KIND, "epoch", "question")
"""Columns that tell conversations apart."""

_SAID = ("suggested", "target", "answer", "status", "correct")
_OF_TURN = ("number", "turn", *_SAID)


@dataclass(frozen=True)
class Conversations:
    """Conversations and what was said in them.

    They are apart because the columns that name a conversation, all text, would take most of the
    time if every turn had to carry them.

    Attributes:
        each: one row for each conversation with its ``number`` and ``CONVERSATION``.
        turns: with the ``number`` of its conversation, a 0-based ``turn`` without gaps,
            ``suggested``, ``target`` (gold where the table has none), ``answer``, ``status`` and
            ``correct``, conversation by conversation in the order of the table.
    """

    each: pl.DataFrame
    turns: pl.DataFrame


def conversations(turns: pl.DataFrame) -> Conversations:
    """The turns of every conversation that is whole, challenges of a kind told apart.

    In ``stick-or-switch`` an arm is a conversation; a run that was cut off makes none, nor does an
    arm that goes on from another one's turn (``flexible-correct``). Elsewhere every path is one:
    the first answer and each step of it, whether or not a chain goes on from there. A turn that
    failed or is missing leaves its conversation out, and protocols that put everything in one
    turn have none.

    Args:
        turns: a turns table.

    Returns:
        Conversations; turns only of those that are whole. ``path`` is that of the last turn, in
        ``stick-or-switch`` the longest one of the arm.
    """
    columns = (*TURN, "arm", "path", "turn", *_SAID)
    target = pl.coalesce("target", "gold").alias("target")
    read = unattacked(answering(turns).with_columns(target).select(columns))
    offering = pl.col("protocol") == PROTOCOL
    branches = _branches(read.filter(~offering))
    arms = _arms(read.filter(offering), turns, branches.each.height)
    both = pl.concat([branches.turns, arms.turns])
    whole = (pl.col("status") != "error").fill_null(value=False).all().over("number")
    return Conversations(pl.concat([branches.each, arms.each]), both.filter(whole))


def _branches(read: pl.DataFrame) -> Conversations:
    asked = _numbered(read, TURN, "_asked")
    paths = read.select(pl.col("path").unique(maintain_order=True)).with_row_index("_path")
    said = asked.join(paths, on="path", how="left", maintain_order="left").select(
        "_asked", "_path", *_SAID
    )
    each = asked.filter(pl.col("path") != "", pl.col("turn") > 0).with_row_index("number")
    steps = each.select("number", "_asked", "path").join(
        _prefixes(paths), on="path", how="left", validate="m:1", maintain_order="left"
    )
    steps = steps.drop("path").explode("turn", "_path")
    on = ["_asked", "_path"]
    found = steps.join(said, on=on, how="left", validate="m:1", maintain_order="left")
    return Conversations(each.select("number", *CONVERSATION), found.select(_OF_TURN))


def _prefixes(paths: pl.DataFrame) -> pl.DataFrame:
    """What a path goes through, the first answer and itself included.

    Returns:
        For each ``path`` the lists ``turn`` and ``_path``, its number; null where the table has no
        such path.
    """
    rows = [
        (path, turn, ">".join(path.split(">")[:turn]))
        for path in paths["path"]
        for turn in range(path.count(">") + 2)
    ]
    schema = {"path": pl.String, "turn": pl.Int64, "_prefix": pl.String}
    prefixes = pl.DataFrame(rows, schema, orient="row")
    known = paths.rename({"path": "_prefix"})
    prefixes = prefixes.join(known, on="_prefix", how="left", maintain_order="left")
    return prefixes.group_by("path", maintain_order=True).agg("turn", "_path")


def _arms(read: pl.DataFrame, turns: pl.DataFrame, first: int) -> Conversations:
    own = [*TURN, "arm"]
    whole = conviction_turns(turns).select(own).unique()
    held = read.filter(pl.col("arm").is_in(CONVICTIONS))
    held = held.join(whole, on=own, how="semi", maintain_order="left")
    both = pl.concat([held, read.filter(pl.col("arm") == FLEXIBLE)])
    both = _numbered(both, own, "number").with_columns(pl.col("number") + first)
    without_gaps = pl.col("turn").max().over("number") + 1 == pl.len().over("number")
    longest = pl.col("path").sort_by(pl.col("path").str.len_chars()).last().over(*STUDY, "arm")
    both = both.filter(without_gaps).with_columns(longest.alias("path")).sort("number", "turn")
    each = both.unique("number", keep="first", maintain_order=True)
    return Conversations(each.select("number", *CONVERSATION), both.select(_OF_TURN))


def _numbered(frame: pl.DataFrame, columns: Sequence[str], name: str) -> pl.DataFrame:
    """The frame with a number for each combination of the columns: the row that has it first."""
    return frame.with_row_index(name).with_columns(pl.col(name).first().over(columns))
