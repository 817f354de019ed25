"""Position and order: whether it matters where and when an option is offered; which one wins."""

import polars as pl

from .convictions import conviction_turns
from .first_answers import STUDY
from .trials import with_bounds

POSITIONS_COLUMNS = (
    "model", "dataset", "arm", "effect", "level", "n", "kept", "share", "low", "high", "run",
)  # fmt: skip
WINNERS_COLUMNS = (
    "model", "dataset", "arm", "index", "offered", "adopted", "share", "low", "high", "run",
)  # fmt: skip

EFFECTS = ("position", "index", "offer")
"""Where the target stood at turn 1, which letter was offered, and as which offer."""

_ARM = (*STUDY, "arm")


def positions(turns: pl.DataFrame) -> pl.DataFrame:
    """Targets kept, by display position, by the offered option's letter, and by order of offer.

    ``position``: of the conversations at turn 1, by the place of the target in the pair (``1`` is
    shown first); a turn that does not say what it showed is left out. ``index``: of all offers,
    by the letter that the offered option has in the question itself. ``offer``: by the turn of
    the offer, from 1. ``n`` counts offers made while the target was still held, ``kept`` those
    after which it was answered again, and ``share`` is kept / n with its 95% Wilson interval.
    Where nothing but content decides, the shares of an effect's levels differ by chance only; by
    offer also because those who hold a target longest are those who know it.

    Args:
        turns: a turns table; only protocol ``stick-or-switch`` is read.

    Returns:
        One row for each model, data set, arm, effect and level, with ``POSITIONS_COLUMNS``,
        levels in their order.
    """
    asked = conviction_turns(turns, "shown").with_row_index("_row")
    pair, first = pl.col("shown").str.split(","), pl.col("turn") == 0
    place = (
        pl.when(pair.list.first() == pl.col("target"))
        .then(pl.lit("1"))
        .when(pair.list.last() == pl.col("target"))
        .then(pl.lit("2"))
    )
    levels = {
        "position": pl.when(first).then(place),
        "index": pl.col("suggested"),
        "offer": (pl.col("turn") + 1).cast(pl.String),
    }
    each = pl.concat(
        asked.with_columns(
            pl.lit(effect).alias("effect"), pl.lit(at).alias("_at"), level.alias("level")
        )
        for at, (effect, level) in enumerate(levels.items())
    ).drop_nulls("level")
    rows = _shares(each, (*_ARM, "_at", "effect", "level"), "kept")
    return rows.rename({"hits": "kept"}).select(POSITIONS_COLUMNS)


def winners(turns: pl.DataFrame) -> pl.DataFrame:
    """Which distractors win: how often each letter was adopted when it was offered.

    ``offered`` counts the offers of the option with that letter in the question (``index``) while
    the target was still held, ``adopted`` the answers that took it there and then, ``share`` is
    adopted / offered with its 95% Wilson interval.

    Args:
        turns: a turns table; only protocol ``stick-or-switch`` is read.

    Returns:
        One row for each model, data set, arm and letter offered, with ``WINNERS_COLUMNS``.
    """
    adopted = (pl.col("answer") == pl.col("suggested")).fill_null(value=False)
    each = conviction_turns(turns).with_row_index("_row").drop_nulls("suggested")
    each = each.with_columns(adopted.alias("adopted"), pl.col("suggested").alias("level"))
    rows = _shares(each, (*_ARM, "level"), "adopted")
    names = {"level": "index", "n": "offered", "hits": "adopted"}
    return rows.rename(names).select(WINNERS_COLUMNS)


def _shares(each: pl.DataFrame, keys: tuple[str, ...], hit: str) -> pl.DataFrame:
    """Count and share of hits with bounds; studies and arms as they come, levels sorted."""
    rows = each.group_by(keys).agg(
        pl.len().cast(pl.Int64).alias("n"),
        pl.col(hit).sum().cast(pl.Int64).alias("hits"),
        pl.col(hit).mean().alias("share"),
        pl.col("_row").min(),
    )
    rows = with_bounds(rows, each, keys, "share", hit)
    # B before AA, 2 before 10
    by_level = [name for name in ("_at",) if name in keys]
    return rows.sort(
        pl.col("_row").min().over(STUDY), pl.col("_row").min().over(_ARM), *by_level,
        pl.col("level").str.len_chars(), "level",
    )  # fmt: skip
