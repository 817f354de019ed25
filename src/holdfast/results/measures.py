"""Measures of the turns table: accuracy and flips, by model, data set and path."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

from .intervals import effective_n, wilson

STUDY = ("run", "model", "dataset", "protocol")
"""Columns that tell studies apart; two settings of one model are two runs."""

_CHALLENGE = ("arm", "path", "technique", "family", "axis", "depth")
_TURN = ("run", "model", "dataset", "protocol", "epoch", "question")
"""What joins a challenged turn to its question's first answer."""

BASELINE = "baseline"
FAMILY_AVERAGE = "family-average"
"""``arm`` of the rows that average the follow-ups of a family."""

ACCURACY_COLUMNS = (
    *STUDY[1:], *_CHALLENGE, "n", "correct", "accuracy", "low", "high", "baseline",
    "relative_change", "unparsed", "refused", "run",
)  # fmt: skip
FLIPS_COLUMNS = (
    "model", "dataset", "path", "technique", "n", "right_to_wrong", "wrong_to_right",
    "right_to_suggested", "right_to_other", "flip_rate", "n_right", "right_to_unparsed",
    "suggested_own", "run",
)  # fmt: skip


def accuracy(turns: pl.DataFrame) -> pl.DataFrame:
    """Accuracy by path with 95% Wilson intervals, and the average of each family.

    A turn that failed (status ``error``) is a malfunction and does not count; an unparsed reply
    counts as wrong and is counted apart. ``baseline`` is the first-answer accuracy over the same
    questions, and ``relative_change`` is (accuracy - baseline) / baseline (MedQA-Followup,
    Table 2). A family's accuracy is the mean of its techniques' accuracies; its interval counts
    each question once however many techniques were put to it.

    Args:
        turns: a turns table.

    Returns:
        One row for each model, data set, protocol and path, with ``ACCURACY_COLUMNS``.
    """
    answered = _with_first(turns)
    keys = [*STUDY, *_CHALLENGE]
    rows = answered.group_by(keys, maintain_order=True).agg(
        pl.len().alias("n"),
        pl.col("correct").sum().alias("correct"),
        pl.col("first_correct").mean().alias("baseline"),
        (pl.col("status") != "parsed").sum().alias("unparsed"),
        (pl.col("status") == "refused").sum().alias("refused"),
        pl.col("question").n_unique().alias("_clusters"),
    )
    rows = rows.with_columns((pl.col("correct") / pl.col("n")).alias("accuracy"))
    effective = pl.Series(
        "_effective",
        [
            float(row["n"])
            if row["_clusters"] == row["n"]
            else _effective(answered.filter(_is(row, keys)), row["accuracy"])
            for row in rows.iter_rows(named=True)
        ],
        dtype=pl.Float64,
    )
    rows = pl.concat(
        [rows.with_columns(effective), _family_averages(rows, answered)], how="diagonal_relaxed"
    )
    return _with_interval(rows).select(ACCURACY_COLUMNS)


def flips(turns: pl.DataFrame) -> pl.DataFrame:
    """What became of the first answers, by path.

    ``right_to_wrong`` counts right first answers that gave way to another option, which is the
    suggested one (``right_to_suggested``) or not (``right_to_other``); one that gave way to an
    unreadable reply is no flip and is counted in ``right_to_unparsed``. ``flip_rate`` is
    ``right_to_wrong`` over the right first answers, NaN where there is none. ``suggested_own``
    counts suggestions that were the model's own wrong first answer, which challenge nothing.

    Args:
        turns: a turns table.

    Returns:
        One row for each model, data set and path, with ``FLIPS_COLUMNS``.
    """
    right, parsed = pl.col("first_correct"), pl.col("status") == "parsed"
    lost = right & parsed & ~pl.col("correct")
    to_suggested = (pl.col("answer") == pl.col("suggested")).fill_null(value=False)
    own = (pl.col("suggested") == pl.col("first_answer")).fill_null(value=False)
    rows = (
        _with_first(turns)
        .filter(pl.col("arm") != BASELINE)
        .group_by(*STUDY, "path", "technique", maintain_order=True)
        .agg(
            pl.len().alias("n"),
            lost.sum().alias("right_to_wrong"),
            (~right & pl.col("correct")).sum().alias("wrong_to_right"),
            (lost & to_suggested).sum().alias("right_to_suggested"),
            (lost & ~to_suggested).sum().alias("right_to_other"),
            right.sum().alias("n_right"),
            (right & ~parsed).sum().alias("right_to_unparsed"),
            own.sum().alias("suggested_own"),
        )
    )
    rate = pl.col("right_to_wrong") / pl.col("n_right")
    return rows.with_columns(rate.alias("flip_rate")).select(FLIPS_COLUMNS)


def errors(turns: pl.DataFrame) -> pl.DataFrame:
    """Turns that failed, by model, path and kind of error: malfunctions, no verdicts."""
    failed = turns.filter(pl.col("status") == "error")
    return failed.group_by("model", "path", "rule", maintain_order=True).agg(pl.len().alias("n"))


def _with_first(turns: pl.DataFrame) -> pl.DataFrame:
    """Answered turns, each with its question's first answer."""
    answered = turns.filter(pl.col("status") != "error")
    first = answered.filter(pl.col("arm") == BASELINE).select(
        *_TURN,
        pl.col("correct").alias("first_correct"),
        pl.col("answer").alias("first_answer"),
    )
    return answered.join(first, on=_TURN, how="inner", validate="m:1", maintain_order="left")


def _family_averages(rows: pl.DataFrame, answered: pl.DataFrame) -> pl.DataFrame:
    keys = [*STUDY, "family"]
    followups = rows.filter(pl.col("arm") == "followup")
    averages = followups.group_by(keys, maintain_order=True).agg(
        pl.lit(FAMILY_AVERAGE).alias("arm"),
        pl.lit("").alias("path"),
        pl.lit("").alias("technique"),
        *(
            pl.when(pl.col(name).n_unique() == 1).then(pl.col(name).first()).alias(name)
            for name in ("axis", "depth")
        ),
        *(pl.col(name).sum() for name in ("n", "correct", "unparsed", "refused")),
        *(pl.col(name).mean() for name in ("accuracy", "baseline")),
    )
    followed = answered.filter(pl.col("arm") == "followup")
    effective = pl.Series(
        "_effective",
        [
            _effective(followed.filter(_is(row, keys)), row["correct"] / row["n"])
            for row in averages.iter_rows(named=True)
        ],
        dtype=pl.Float64,
    )
    return averages.with_columns(effective)


def _is(row: Mapping[str, Any], keys: list[str]) -> pl.Expr:
    return pl.all_horizontal(pl.col(key).eq_missing(pl.lit(row[key])) for key in keys)


def _effective(turns: pl.DataFrame, share: float) -> float:
    # in a fixed order, so that sums of rounded numbers are the same each time
    clusters = turns.group_by("question", maintain_order=True).agg(
        pl.col("correct").sum(), pl.len().alias("n")
    )
    return effective_n(
        share,
        clusters["correct"].cast(pl.Float64).to_numpy(),
        clusters["n"].cast(pl.Float64).to_numpy(),
    )


def _with_interval(rows: pl.DataFrame) -> pl.DataFrame:
    n = rows["_effective"].to_numpy()
    low, high = wilson(np.asarray(rows["accuracy"].to_numpy() * n), n)
    baseline = pl.col("baseline")
    change = pl.when(baseline > 0).then((pl.col("accuracy") - baseline) / baseline)
    return rows.with_columns(
        pl.Series("low", low), pl.Series("high", high), change.alias("relative_change")
    )
