"""Single-turn biases: the effect of a biased question, and of mitigations."""

from collections.abc import Sequence
from dataclasses import replace

import polars as pl

from holdfast.results.accuracy import (
    ACCURACY_INTERVALS,
    ACCURACY_SAYS,
    RANKS,
    accuracy_notes,
    accuracy_text,
    as_averages,
    rated,
    with_change,
    with_ranks,
)
from holdfast.results.arms import TurnsOf
from holdfast.results.changes import CHANGE
from holdfast.results.controls import BESIDE
from holdfast.results.declaration import Section, Table
from holdfast.results.first_answers import BASELINE, FAMILY_AVERAGE, STUDY, TURN, with_first
from holdfast.results.grid import (
    Grid,
    HeatmapCell,
    Row,
    Studies,
    mark_of,
    matrix,
    n_notes,
    one_line,
    percent,
    studies,
    unread_notes,
)
from holdfast.results.inference import looked_up
from holdfast.results.missing import MISSING, missing_grid, missing_notes, with_missing

from . import charts

SINGLE_TURN_COLUMNS = (
    "model", "dataset", "technique", "mitigation", "family", "arm", "n", "correct", "accuracy",
    "low", "high", "baseline", *CHANGE, "plain", "suggested", "suggested_rate",
    "right_to_suggested", "unparsed", "refused", "non_response", *MISSING, *RANKS, "run",
)  # fmt: skip

_PROTOCOL = _ARM = "single-turn"
_ROW = (*STUDY, "arm", "family", "path")


def single_turn(turns: pl.DataFrame) -> pl.DataFrame:
    """Compute accuracy by single-turn bias and mitigation (MedQA-Followup, Table 2).

    Accuracies, changes, ranks and figures on missing replies are those of ``accuracy``. The first
    answer is the answer to the plain question. An average sums counts and takes the mean of shares
    over its techniques.

    Returns:
        One row for each model, data set, mitigation and technique. Each study has first the
        baseline, then the biases and their average (arm ``family-average``, no technique), the same
        under each mitigation, then the wrong options and their average.
    """
    protocol_turns = turns.filter(
        pl.col("protocol") == _PROTOCOL, pl.col("arm").is_in([BASELINE, _ARM])
    )
    answered_turns = with_first(protocol_turns)
    rows = with_ranks(with_change(rated(answered_turns), answered_turns), answered_turns)
    rows = with_missing(rows, protocol_turns, as_averages)
    return _order_rows(looked_up(rows, _extras(answered_turns), _ROW)).select(SINGLE_TURN_COLUMNS)


def _extras(answered_turns: pl.DataFrame) -> pl.DataFrame:
    """Compute the columns that ``accuracy`` does not have, by row."""
    biased_turns = answered_turns.filter(pl.col("arm") == _ARM).with_columns(_mitigation())
    plain = biased_turns.filter(pl.col("mitigation") == "").select(
        *TURN, "technique", plain_correct="correct"
    )
    pushes = pl.col("suggested").is_not_null()
    is_pushed = pl.col("answer") == pl.col("suggested")  # null if either is null
    right, is_mitigated = pl.col("first_correct"), pl.col("mitigation") != ""
    pairs = looked_up(biased_turns, plain, [*TURN, "technique"])
    rows = pairs.group_by(*_ROW, "technique", "mitigation", maintain_order=True).agg(
        plain=pl.col("plain_correct").filter(is_mitigated).mean(),
        suggested=pl.when(pushes.any()).then(is_pushed.sum()),
        suggested_rate=is_pushed.fill_null(value=False).filter(pushes).mean(),
        right_to_suggested=pl.when((pushes & right.is_not_null()).any())
        .then((is_pushed & right).sum()),
    )  # fmt: skip
    path = pl.col("mitigation").alias("path")
    averages = rows.group_by(*STUDY, "family", path, maintain_order=True).agg(
        pl.lit(FAMILY_AVERAGE).alias("arm"),
        *(
            pl.when(pl.col(name).count() > 0).then(pl.col(name).sum()).alias(name)
            for name in ("suggested", "right_to_suggested")
        ),
        *(pl.col(name).sort_by("technique").mean() for name in ("plain", "suggested_rate")),
    )
    columns = [*_ROW, "plain", "suggested", "suggested_rate", "right_to_suggested"]
    return pl.concat([rows.select(columns), averages.select(columns)])


def _mitigation() -> pl.Expr:
    """Return the mitigation in a path; for an average, it is the whole path."""
    average = pl.col("arm") == FAMILY_AVERAGE
    mitigation_path = pl.col("path").str.replace(r">?[^>]*$", "")
    return pl.when(average).then("path").otherwise(mitigation_path).alias("mitigation")


def _order_rows(rows: pl.DataFrame) -> pl.DataFrame:
    """Sort averages below their techniques, and mitigations below the plain biases."""
    rows = rows.with_row_index("_row").with_columns(_mitigation())
    return rows.sort(
        pl.col("_row").min().over(STUDY),
        pl.col("arm") != BASELINE,
        pl.col("family") == "wrong_op",
        pl.col("mitigation") != "",
        pl.col("_row").min().over(*STUDY, "mitigation"),
        pl.col("arm") == FAMILY_AVERAGE,
        "_row",
    )


def _layout(rows: Sequence[Row]) -> list[Grid] | None:
    """Lay out accuracies by bias and mitigation, and the share of suggested options answered."""
    columns = studies(rows)
    figures, pushed_cells = [], []
    for row in rows:
        figure, rate = _figure(row, columns), row["suggested_rate"]
        figures.append(figure)
        if rate is not None:
            right = row["right_to_suggested"]
            text = f"{percent(rate)} ({'' if right is None else right})"
            pushed_cells.append(replace(figure, text=text, mark="", of=None))
    footnotes = [*columns.notes(), *n_notes(figures, columns.headers)]
    notes = [*accuracy_notes(rows), *footnotes, *unread_notes(rows, columns)]
    notes += missing_notes(rows, columns.header)
    grids = [matrix(figures, columns.headers, "Accuracy", notes)]
    grids += missing_grid(zip(rows, figures, strict=True), columns.headers)
    if pushed_cells:
        note = (
            "Cells: share of the answers that are the suggested option, in percent (number of "
            "these whose plain question was answered right)."
        )
        grids.append(
            matrix(pushed_cells, columns.headers, "Took the suggested option", [note, *footnotes])
        )
    return None if None in grids else [grid for grid in grids if grid is not None]


def _figure(row: Row, columns: Studies) -> HeatmapCell:
    first, average = row["arm"] == BASELINE, row["arm"] == FAMILY_AVERAGE
    mitigation = one_line(row["mitigation"] or "")
    return HeatmapCell(
        columns.of(row),
        block="",
        group="" if first else f"{row['family']} {mitigation}",
        label="Baseline" if first else _label(row, mitigation),
        text=accuracy_text(row, first=first),
        mark=mark_of(row),
        n=row["n"],
        average=average,
        of=_conversations_of(row),
    )


def _label(row: Row, mitigation: str) -> str:
    if row["arm"] == FAMILY_AVERAGE:
        return ", ".join(filter(None, [one_line(row["family"]), mitigation])) + " (average)"
    return " > ".join(filter(None, [mitigation, one_line(row["technique"])]))


def _conversations_of(row: Row) -> Row:
    protocol_row = {**row, "protocol": _PROTOCOL}
    if row["arm"] == FAMILY_AVERAGE:
        return {**protocol_row, "arm": _ARM}
    path = ">".join(filter(None, [row["mitigation"], row["technique"]]))
    return {**protocol_row, "path": path}


SINGLE_TURN_SECTION = Section(
    "single-turn",
    "Single-turn",
    "Bias inside the question",
    "Here the question itself suggests a wrong option, before any answer (single-turn bias), with "
    "and without a warning or an example beforehand (mitigation).",
    7,
)

TURNS = TurnsOf("single-turn", apart=BESIDE, review_exclusions=BESIDE)

SINGLE_TURN = Table(
    "single-turn",
    single_turn,
    layout=_layout,
    title="Accuracy under each bias",
    lead="The plain question is the first line.",
    section="single-turn",
    chart=charts.SINGLE_TURN,
    says={
        **{name: ACCURACY_SAYS[name] for name in ("p_value", "p_adjusted")},
        "mitigation": "Mitigation before the biased question; empty without one.",
        "baseline": "Accuracy of the answers to the same questions, asked plainly.",
        "plain": "Accuracy under the same bias without the mitigation, over the questions that "
        "have both; null without a mitigation.",
        "suggested": "Number of answers that are the suggested option; null where no option was "
        "suggested.",
        "suggested_rate": "Share of these among the replies to questions that suggest an option; "
        "null where no option was suggested.",
        "right_to_suggested": "Number of these whose plain question was answered right; null where "
        "no option was suggested or no plain question was answered.",
        "ranked": "Number of rows that are ranked together: the techniques of a family under one "
        "mitigation, in one study. Null for plain questions and averages.",
    },
    intervals=ACCURACY_INTERVALS,
)
