"""Flexibility: whether an abstention gives way to the right answer, and to a wrong one."""

from typing import Any

import polars as pl

from .convictions import FLEXIBLE, PROTOCOL
from .detection import criterion, d_prime
from .first_answers import STUDY, TURN, answering
from .intervals import Counts, detection_bounds
from .pairs import with_pair_bounds
from .trials import with_bounds

FLEXIBILITY_COLUMNS = (
    "model", "dataset", "n_correct", "correct_switches", "correct_rate", "correct_low",
    "correct_high", "n_incorrect", "incorrect_switches", "incorrect_rate", "incorrect_low",
    "incorrect_high", "difference", "difference_low", "difference_high", "d_prime",
    "d_prime_low", "d_prime_high", "criterion", "criterion_low", "criterion_high", "blind", "run",
)  # fmt: skip

_SIDES = {"correct": "first", "incorrect": "second"}


def flexibility(turns: pl.DataFrame) -> pl.DataFrame:
    """Switches from an abstention to a right and to a wrong offer (Stick-or-Switch, section 7).

    Given an abstention at turn 1, ``n_correct`` counts the conversations to which turn 2 offered
    the right answer (arm ``flexible-correct``), ``n_incorrect`` those to which it offered another
    distractor (arm ``negative``). A switch is an answer that is what was offered; an unread reply
    is none. Turns that failed are counted on neither side.

    ``d_prime`` and ``criterion`` take switches to the right answer for hits and those to a wrong
    one for false alarms, with the log-linear correction. Intervals are 95%: Wilson for the rates,
    paired over questions for the rest. ``blind``: the interval of d' holds 0, so the switches do
    not tell right from wrong.

    Args:
        turns: a turns table; only protocol ``stick-or-switch`` is read.

    Returns:
        One row for each model and data set with abstentions to ask for, with
        ``FLEXIBILITY_COLUMNS``; a rate of nothing, and what is computed from it, is null.
    """
    own = answering(turns).filter(
        pl.col("protocol") == PROTOCOL,
        pl.col("arm").is_in(["negative", FLEXIBLE]),
        pl.col("status") != "error",
    )
    pairs = _pairs(own)
    counts = pairs.group_by(STUDY).agg(
        *(pl.col(of).count().cast(pl.Int64).alias(f"n_{side}") for side, of in _SIDES.items()),
        *(pl.col(of).sum().cast(pl.Int64).alias(f"{side}_switches") for side, of in _SIDES.items()),
    )
    rows = own.select(STUDY).unique(maintain_order=True)
    rows = rows.join(counts, on=STUDY, how="left", validate="1:1", maintain_order="left")
    rows = rows.with_columns(pl.col(counts.columns).exclude(STUDY).fill_null(0)).with_columns(
        pl.when(pl.col(f"n_{side}") > 0)
        .then(pl.col(f"{side}_switches") / pl.col(f"n_{side}"))
        .alias(f"{side}_rate")
        for side in _SIDES
    )
    for side, of in _SIDES.items():
        rows = with_bounds(rows, pairs.drop_nulls(of), STUDY, f"{side}_rate", of)
        rows = rows.rename({"low": f"{side}_low", "high": f"{side}_high"})
    rows = with_pair_bounds(rows, pairs, STUDY, ("difference_low", "difference_high"))
    names = ("d_prime_low", "d_prime_high", "criterion_low", "criterion_high")
    rows = with_pair_bounds(rows, pairs, STUDY, names, _of_detection)
    rows = rows.with_columns(
        (pl.col("correct_rate") - pl.col("incorrect_rate")).alias("difference"),
        *(
            pl.Series(name, [_if_known(row, of) for row in rows.to_dicts()], pl.Float64)
            for name, of in (("d_prime", d_prime), ("criterion", criterion))
        ),
        ((pl.col("d_prime_low") <= 0) & (pl.col("d_prime_high") >= 0)).alias("blind"),
    )
    return rows.select(FLEXIBILITY_COLUMNS)


def _pairs(own: pl.DataFrame) -> pl.DataFrame:
    """Whether each abstention gave way to the right (``first``) and a wrong (``second``) offer."""
    abstained = (pl.col("answer") == pl.col("target")).fill_null(value=False)
    departed = own.filter(pl.col("arm") == "negative", pl.col("turn") == 0, ~abstained)
    switched = (pl.col("answer") == pl.col("suggested")).fill_null(value=False)
    put = own.filter(pl.col("turn") == 1).join(departed, on=TURN, how="anti")
    right = pl.col("arm") == FLEXIBLE
    return put.group_by(TURN).agg(
        switched.filter(right).first().alias("first"),
        switched.filter(~right).first().alias("second"),
    )


def _of_detection(hits: Counts, false_alarms: Counts) -> tuple[float, ...]:
    of_d_prime, of_criterion = detection_bounds(hits, false_alarms)
    return (*of_d_prime, *of_criterion)


def _if_known(row: dict[str, Any], of: Any) -> float | None:
    names = ("correct_switches", "n_correct", "incorrect_switches", "n_incorrect")
    hits, n_hits, false_alarms, n_false_alarms = (row[name] for name in names)
    return of(hits, n_hits, false_alarms, n_false_alarms) if n_hits and n_false_alarms else None
