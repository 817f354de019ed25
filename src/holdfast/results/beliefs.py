"""Beliefs: how much probability the target and the offer have, turn by turn."""

import polars as pl

from .convictions import FLEXIBLE, PROTOCOL, conviction_turns
from .first_answers import STUDY, TURN, answering
from .intervals import Counts, mean_bounds, mean_difference_bounds
from .pairs import with_pair_bounds

BELIEFS_COLUMNS = (
    "model", "dataset", "arm", "turn", "n", "target", "target_low", "target_high", "suggested",
    "suggested_low", "suggested_high", "n_switched", "before_switch", "before_switch_low",
    "before_switch_high", "n_stuck", "before_stick", "before_stick_low", "before_stick_high",
    "difference", "difference_low", "difference_high", "run",
)  # fmt: skip

_BELIEFS = ("p_gold", "p_suggested", "p_answer")
_ROW = (*STUDY, "arm", "turn")


def beliefs(turns: pl.DataFrame) -> pl.DataFrame:
    """Beliefs by turn, and confidence before a switch against none (Stick-or-Switch, Limitations).

    ``n`` counts the turns put while the target was still held that have beliefs; ``target`` and
    ``suggested`` are the mean probabilities of the target and of the option offered, after the
    reply. ``before_switch`` is the mean probability that the held answer had at the turn before,
    over the ``n_switched`` turns that then left it for another option, ``before_stick`` the same
    over the ``n_stuck`` turns that kept it, and ``difference`` is the first less the second: below
    0 where confidence warns of a switch. Departures to no readable answer are in neither. At
    turn 1 nothing is held yet. Intervals are 95%, by question.

    In arm ``flexible-correct`` the abstention is held and the right answer offered; the belief
    in the abstention after the offer is not in the turns table, so ``target`` is null there.

    Args:
        turns: a turns table; only protocol ``stick-or-switch`` is read, and of it only turns
            with ``p_gold``, which needs log-probabilities.

    Returns:
        One row for each model, data set, arm and 1-based ``turn`` with beliefs, with
        ``BELIEFS_COLUMNS``.
    """
    each = _with_before(turns).drop_nulls("p_gold")
    rows = each.group_by(_ROW).agg(
        pl.len().cast(pl.Int64).alias("n"),
        *(_mean(name).alias(name) for name in ("target", "suggested", "before_switch",
                                                "before_stick")),
        pl.col("before_switch").count().cast(pl.Int64).alias("n_switched"),
        pl.col("before_stick").count().cast(pl.Int64).alias("n_stuck"),
        pl.col("_row").min(),
    )  # fmt: skip
    for name in ("target", "suggested", "before_switch", "before_stick"):
        one = each.with_columns(pl.col(name).alias("first"), pl.lit(None).alias("second"))
        rows = with_pair_bounds(rows, one, _ROW, (f"{name}_low", f"{name}_high"), _of_first)
    both = each.rename({"before_switch": "first", "before_stick": "second"})
    names = ("difference_low", "difference_high")
    rows = with_pair_bounds(rows, both, _ROW, names, mean_difference_bounds)
    rows = rows.with_columns(
        (pl.col("before_switch") - pl.col("before_stick")).alias("difference")
    ).sort(pl.col("_row").min().over(STUDY), pl.col("_row").min().over(*STUDY, "arm"), "turn")
    # beyond that are the rounding errors of sums: equal beliefs would differ
    return rows.select(BELIEFS_COLUMNS).with_columns(pl.col(pl.Float64).round(12))


def _with_before(turns: pl.DataFrame) -> pl.DataFrame:
    """Turns put to a held target, with the beliefs to be averaged."""
    held = conviction_turns(turns, *_BELIEFS)
    kept = (pl.col("answer") == pl.col("target")).fill_null(value=False)
    flexible = answering(turns).filter(
        pl.col("protocol") == PROTOCOL, pl.col("arm") == FLEXIBLE, pl.col("status") != "error"
    ).select(*TURN, "arm", "turn", "answer", "status", "suggested", *_BELIEFS,
             (pl.col("answer").is_not_null() & (pl.col("answer") != pl.col("suggested")))
             .alias("kept"))  # fmt: skip
    columns = flexible.columns
    put = pl.concat([held.select(columns), flexible]).with_row_index("_row")
    # both branches of an abstention go on from the same turn
    before = held.filter(kept).select(
        *TURN, pl.col("arm").alias("_root"), pl.col("turn") + 1, pl.col("p_answer").alias("_before")
    )
    root = pl.when(pl.col("arm") == FLEXIBLE).then(pl.lit("negative")).otherwise("arm")
    put = put.with_columns(root.alias("_root")).join(
        before, on=[*TURN, "_root", "turn"], how="left", validate="m:1", maintain_order="left"
    )
    read = pl.col("answer").is_not_null()
    return put.with_columns(
        pl.when(pl.col("arm") != FLEXIBLE).then("p_gold").alias("target"),
        pl.col("p_suggested").alias("suggested"),
        pl.when(read & ~pl.col("kept")).then("_before").alias("before_switch"),
        pl.when("kept").then("_before").alias("before_stick"),
        pl.col("turn") + 1,
    )


def _mean(name: str) -> pl.Expr:
    # in a fixed order: the last digit of a sum depends on it
    return pl.col(name).sort().mean()


def _of_first(first: Counts, _: Counts) -> tuple[float, ...]:
    return mean_bounds(first)
