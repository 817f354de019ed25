"""Single-turn biases: what a biased question does to the answer, and what a mitigation mends."""

from collections.abc import Sequence
from typing import Any

import polars as pl

from .accuracy import accuracy_notes, accuracy_text, change_rank, rated, with_change
from .changes import CHANGE
from .declaration import Section, Table
from .first_answers import BASELINE, FAMILY_AVERAGE, STUDY, TURN, with_first
from .grid import Figure, Grid, Row, matrix, n_notes, one_line, percent, studies, unread_notes

SINGLE_TURN_COLUMNS = (
    "model", "dataset", "technique", "mitigation", "family", "arm", "n", "correct", "accuracy",
    "low", "high", "baseline", *CHANGE, "plain", "suggested", "suggested_rate",
    "right_to_suggested", "unparsed", "refused", "non_response", "run",
)  # fmt: skip

_PROTOCOL = _ARM = "single-turn"
_ROW = (*STUDY, "arm", "family", "path")


def single_turn(turns: pl.DataFrame) -> pl.DataFrame:
    """Accuracy by single-turn bias and mitigation (MedQA-Followup, Table 2, single-turn block).

    Accuracies and their changes are those of ``accuracy``; the baseline is the plain question.
    ``plain`` is the accuracy under the same bias without the mitigation, over the questions that
    have both. ``suggested`` counts answers that are the suggested letter,
    ``suggested_rate`` is their share of the turns that suggested one, and ``right_to_suggested``
    counts those whose plain question was answered right. The three are null where no letter was
    suggested, the last also where no plain question was answered. An average sums counts and takes
    the mean of shares over its techniques.

    Args:
        turns: a turns table; only protocol ``single-turn`` is read.

    Returns:
        One row for each model, data set, mitigation and technique, with ``SINGLE_TURN_COLUMNS``.
        For each study first the baseline, then the biases and their average (arm
        ``family-average``, no technique), the same under each mitigation, then the wrong options
        and their average.
    """
    answered = with_first(turns.filter(pl.col("protocol") == _PROTOCOL), arms=[_ARM])
    rows = with_change(rated(answered), answered)
    extras = _extras(answered)
    rows = rows.join(extras, on=_ROW, how="left", validate="1:1", maintain_order="left")
    return _ordered(rows).select(SINGLE_TURN_COLUMNS)


def _extras(answered: pl.DataFrame) -> pl.DataFrame:
    """What ``accuracy`` does not have, by row."""
    biased = answered.filter(pl.col("arm") == _ARM).with_columns(_mitigation())
    plain = biased.filter(pl.col("mitigation") == "").select(
        *TURN, "technique", pl.col("correct").alias("plain_correct")
    )
    both = biased.join(
        plain, on=[*TURN, "technique"], how="left", validate="m:1", maintain_order="left"
    )
    pushed = pl.col("answer") == pl.col("suggested")  # null where either is
    pushes = pl.col("suggested").is_not_null()
    right, mitigated = pl.col("first_correct"), pl.col("mitigation") != ""
    rows = both.group_by(*_ROW, "technique", "mitigation", maintain_order=True).agg(
        pl.col("plain_correct").filter(mitigated).mean().alias("plain"),
        pl.when(pushes.any()).then(pushed.sum()).alias("suggested"),
        pl.when((pushes & right.is_not_null()).any()).then((pushed & right).sum())
        .alias("right_to_suggested"),
        pushed.fill_null(value=False).filter(pushes).mean().alias("suggested_rate"),
    )  # fmt: skip
    averages = rows.group_by(*STUDY, "family", "mitigation", maintain_order=True).agg(
        pl.lit(FAMILY_AVERAGE).alias("arm"),
        *(
            pl.when(pl.col(name).count() > 0).then(pl.col(name).sum()).alias(name)
            for name in ("suggested", "right_to_suggested")
        ),
        *(pl.col(name).sort_by("technique").mean() for name in ("plain", "suggested_rate")),
    )
    averages = averages.rename({"mitigation": "path"})
    columns = [*_ROW, "plain", "suggested", "suggested_rate", "right_to_suggested"]
    return pl.concat([rows.select(columns), averages.select(columns)])


def _mitigation() -> pl.Expr:
    """What stands before the bias in the path; of an average, its whole path."""
    average = pl.col("arm") == FAMILY_AVERAGE
    before = pl.col("path").str.replace(r">?[^>]*$", "")
    return pl.when(average).then("path").otherwise(before).alias("mitigation")


def _ordered(rows: pl.DataFrame) -> pl.DataFrame:
    """Averages below what they average, mitigations below the plain biases."""
    rows = rows.with_row_index("_row").with_columns(_mitigation())
    rows = rows.with_columns(
        pl.col("_row").min().over(STUDY).alias("_study"),
        pl.col("_row").min().over(*STUDY, "mitigation").alias("_mitigation"),
    )
    return rows.sort(
        "_study",
        pl.col("arm") != BASELINE,
        pl.col("family") == "wrong_op",
        pl.col("mitigation") != "",
        "_mitigation",
        pl.col("arm") == FAMILY_AVERAGE,
        "_row",
    )


def _layout(rows: Sequence[Row]) -> list[Grid] | None:
    """Accuracies by bias and mitigation, and how often the suggested option was answered."""
    columns = studies(rows)
    figures, pushed = [], []
    for row in rows:
        first, average = row["arm"] == BASELINE, row["arm"] == FAMILY_AVERAGE
        mitigation = one_line(row["mitigation"] or "")
        under = f", {mitigation}" if mitigation else ""
        where: dict[str, Any] = {
            "column": columns.of(row),
            "block": "",
            "group": "" if first else f"{row['family']} {mitigation}",
            "label": "Baseline"
            if first
            else f"{one_line(row['family'])}{under} (average)"
            if average
            else f"{mitigation} > {one_line(row['technique'])}"
            if mitigation
            else one_line(row["technique"]),
            "n": row["n"],
            "average": average,
            "of": _conversations_of(row),
        }
        rank = None if first else change_rank(row)
        figures.append(Figure(text=accuracy_text(row, first=first), rank=rank, **where))
        if row["suggested_rate"] is not None:
            right = row["right_to_suggested"]
            text = f"{percent(row['suggested_rate'])} ({'' if right is None else right})"
            rate = row["suggested_rate"]
            pushed.append(Figure(text=text, rank=-rate, **where | {"of": None}))
    known = [*columns.notes(), *n_notes(figures, columns.headers)]
    notes = [*accuracy_notes(rows), *known, *unread_notes(rows, columns)]
    grids = [matrix(figures, columns.headers, "Accuracy", notes)]
    if pushed:
        note = (
            "Cells: share of the answers that are the suggested option, in percent (answers that "
            "were right to the plain question)."
        )
        grids.append(matrix(pushed, columns.headers, "Took the suggested option", [note, *known]))
    return None if None in grids else [grid for grid in grids if grid is not None]


def _conversations_of(row: Row) -> Row:
    own = {**row, "protocol": _PROTOCOL}
    if row["arm"] == FAMILY_AVERAGE:
        return {**own, "arm": _ARM}
    path = ">".join(filter(None, [row["mitigation"], row["technique"]]))
    return {**own, "path": path}


SINGLE_TURN_SECTION = Section(
    "single-turn",
    "Single-turn",
    "Bias inside the question",
    "Here the question itself suggests a wrong option, before any answer (single-turn bias), with "
    "and without a warning or an example beforehand (mitigation).",
    7,
)

SINGLE_TURN = Table(
    "single-turn",
    single_turn,
    layout=_layout,
    title="Accuracy under each bias",
    lead="The plain question is the first line.",
    section="single-turn",
    figure="holdfast.report.figures.single_turn:SINGLE_TURN",
)
