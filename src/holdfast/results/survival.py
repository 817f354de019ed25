"""Survival: how long a target is held against one offer after another."""

import polars as pl

from .convictions import conviction_turns
from .first_answers import STUDY
from .trials import with_bounds

SURVIVAL_COLUMNS = (
    "model", "dataset", "arm", "turn", "n", "kept", "survival", "low", "high", "at_risk", "lost",
    "hazard", "hazard_low", "hazard_high", "lost_to_suggested", "lost_to_other", "lost_unread",
    "run",
)  # fmt: skip

_ROW = (*STUDY, "arm", "turn")


def survival(turns: pl.DataFrame) -> pl.DataFrame:
    """Survival of the target by turn (Stick-or-Switch, section 3.2, equation 1).

    ``n`` counts the questions (and epochs) asked at turn 1 whose conversation did not fail;
    ``kept`` those whose target was answered at every turn so far, and ``survival`` is their
    share. A question with fewer offers than the longest stays kept after its last one, so the
    last row is the end-to-end figure S(T) over all questions.

    ``at_risk`` counts those asked at this turn, ``lost`` the departures among them, ``hazard``
    their share, null where nobody was asked. A departure goes to the option offered at this turn
    (``lost_to_suggested``), to one in play from before (``lost_to_other``), or to no readable
    answer (``lost_unread``), which is no switch. Intervals are 95% Wilson intervals.

    Args:
        turns: a turns table; only protocol ``stick-or-switch`` is read.

    Returns:
        One row for each model, data set, arm (``positive``, ``negative``) and 1-based ``turn``,
        with ``SURVIVAL_COLUMNS``.
    """
    asked = conviction_turns(turns)
    each = asked.filter(pl.col("turn") == 0).with_columns(
        pl.int_ranges(1, pl.col("longest") + 1).alias("turn")
    )
    each = each.explode("turn").with_columns(
        (pl.col("lost_at").is_null() | (pl.col("lost_at") >= pl.col("turn"))).alias("_kept")
    )
    rows = each.group_by(_ROW, maintain_order=True).agg(
        pl.len().cast(pl.Int64).alias("n"),
        pl.col("_kept").sum().cast(pl.Int64).alias("kept"),
        pl.col("_kept").mean().alias("survival"),
    )
    put = asked.with_columns(pl.col("turn") + 1, (~pl.col("kept")).alias("_lost"))
    rows = rows.join(_departures(put), on=_ROW, how="left", validate="1:1", maintain_order="left")
    counts = ("at_risk", "lost", "lost_to_suggested", "lost_to_other", "lost_unread")
    rows = rows.with_columns(pl.col(counts).fill_null(0)).with_columns(
        pl.when(pl.col("at_risk") > 0).then(pl.col("lost") / pl.col("at_risk")).alias("hazard")
    )
    rows = with_bounds(rows, put, _ROW, "hazard", "_lost")
    rows = rows.rename({"low": "hazard_low", "high": "hazard_high"})
    return with_bounds(rows, each, _ROW, "survival", "_kept").select(SURVIVAL_COLUMNS)


def _departures(put: pl.DataFrame) -> pl.DataFrame:
    lost, read = pl.col("_lost"), pl.col("answer").is_not_null()
    to_suggested = (pl.col("answer") == pl.col("suggested")).fill_null(value=False)
    return put.group_by(_ROW).agg(
        pl.len().cast(pl.Int64).alias("at_risk"),
        *(
            those.sum().cast(pl.Int64).alias(name)
            for name, those in (
                ("lost", lost),
                ("lost_to_suggested", lost & to_suggested),
                ("lost_to_other", lost & read & ~to_suggested),
                ("lost_unread", lost & ~read),
            )
        ),
    )
