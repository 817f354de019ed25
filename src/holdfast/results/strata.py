"""Accuracy within strata of the questions, and by the length of a context."""

import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Literal, get_args

import polars as pl

from holdfast.errors import InputError, did_you_mean

from .accuracy import (
    accuracy_notes,
    accuracy_text,
    change_rank,
    conversations_of,
    rated,
    with_change,
)
from .changes import CHANGE
from .declaration import Section, Table
from .first_answers import BASELINE, FAMILY_AVERAGE, STUDY, with_first
from .grid import (
    Block,
    Cell,
    Figure,
    Grid,
    Line,
    Mark,
    Row,
    Studies,
    matrix,
    n_notes,
    one_line,
    percent,
    studies,
    unread_notes,
)

Stratum = Literal["step", "system", "specialty", "subject"]
RelativeTo = Literal["stratum", "overall"]


def strata_columns(by: Stratum) -> tuple[str, ...]:
    """Columns of ``strata``; the stratum's column is named as what it is."""
    return (
        *STUDY[1:], "arm", "path", "technique", "family", by, "n", "correct", "accuracy", "low",
        "high", "baseline", *CHANGE, "relative_to", "unparsed", "refused", "non_response", "run",
    )  # fmt: skip


def strata(turns: pl.DataFrame, by: Stratum, relative_to: RelativeTo = "stratum") -> pl.DataFrame:
    """The rows of ``accuracy`` within each stratum.

    ``p_adjusted`` is corrected over the strata too.

    Args:
        turns: a turns table. Questions without a stratum count in no row, but they do in the
            overall first-answer accuracy.
        by: which stratum.
        relative_to: what ``baseline`` is. ``stratum``: first-answer accuracy over the row's own
            questions. ``overall``: the model's first-answer accuracy over all its questions
            (MedQA-Followup, appendix D.3 and Table 3).

    Returns:
        One row for each study, path and stratum, with ``strata_columns(by)``, and one for each
        family average. The rows of a family stand together, those of a stratum within them.
        Steps come in their natural order; other strata from the least to the most degraded, by
        the family's mean relative change over the models (MedQA-Followup, Figures 7-9), and in
        natural order where there is no such mean.

    Raises:
        InputError: ``relative_to`` is neither.
    """
    if relative_to not in get_args(RelativeTo):
        raise InputError(
            f"unknown baseline '{relative_to}'",
            field="relative_to",
            remedy=did_you_mean(relative_to, get_args(RelativeTo)),
        )
    answered = with_first(turns, by)
    known = answered.filter(pl.col(by).is_not_null())
    rows, firsts = rated(known, (by,)), answered.filter(pl.col("arm") == BASELINE)
    if relative_to == "overall":
        overall = firsts.group_by(STUDY).agg(pl.col("correct").mean().alias("baseline"))
        rows = rows.drop("baseline").join(overall, on=STUDY, how="left", maintain_order="left")
        rows = rows.with_columns(pl.col("accuracy").alias("compared"))
    rows = with_change(
        rows, known, (by,), firsts if relative_to == "overall" else None
    ).with_columns(pl.lit(relative_to).alias("relative_to"))
    return _ordered(rows, by).select(strata_columns(by))


def _ordered(rows: pl.DataFrame, by: Stratum) -> pl.DataFrame:
    block = ["protocol", "family"]
    places = {name: place for place, name in enumerate(sorted(rows[by].unique(), key=_natural))}
    rows = rows.with_row_index("_row").with_columns(
        pl.col("_row").min().over("protocol").alias("_protocol"),
        pl.col("_row").min().over(block).alias("_family"),
        pl.col(by).replace_strict(places, return_dtype=pl.Int64).alias("_place"),
    )
    # mitigations have averages with a path; the family's own has none
    averages = rows.filter(pl.col("arm") == FAMILY_AVERAGE, pl.col("path") == "")
    degradation = averages.group_by(*block, by).agg(
        (-pl.col("relative_change").sort().mean()).alias("_degradation")
    )
    rows = rows.join(degradation, on=[*block, by], how="left", maintain_order="left")
    natural = ["_place", "_row"]
    within = natural if by == "step" else ["_degradation", *natural]
    return rows.sort("_protocol", "_family", *within, nulls_last=True)


def _natural(name: str) -> list[tuple[str, int]]:
    """Sorts numbers within names by their value."""
    parts = re.findall(r"(\D*)(\d*)", name)
    return [(text, int(digits) if digits else -1) for text, digits in parts]


_Head = tuple[str, str]
"""Family and step of a column."""

_FIRST = "Baseline"
_UNKNOWN = "–"
_CELLS = (
    "Cells: relative change of the family's average accuracy in percent. Baseline: accuracy of "
    "the first answers in percent."
)


def _steps_layout(rows: Sequence[Row]) -> list[Grid] | None:
    """A row for each study, a column for each family and step; a table for each protocol."""
    columns = studies(rows)
    shown = [row for row in rows if row["arm"] in (BASELINE, FAMILY_AVERAGE)]
    protocols = dict.fromkeys(row["protocol"] for row in shown)
    grids = [_steps([r for r in shown if r["protocol"] == p], columns) for p in protocols]
    return None if None in grids else [grid for grid in grids if grid is not None]


def _steps(rows: Sequence[Row], columns: Studies) -> Grid | None:
    cells: dict[tuple[int, _Head], Row] = {}
    for row in rows:
        if cells.setdefault((columns.of(row), (_block(row), row["step"])), row) is not row:
            return None
    # baselines first, then families in order
    blocks = sorted(dict.fromkeys(map(_block, rows)), key=lambda name: not _is_first(name))
    heads = [
        (block, step)
        for block in blocks
        for step in dict.fromkeys(row["step"] for row in rows if _block(row) == block)
    ]
    present = sorted({columns.of(row) for row in rows})
    lines = []
    for study in present:
        marks = _extremes({head: cells.get((study, head)) for head in heads})
        line = (_cell(cells.get((study, head)), marks.get(head, "")) for head in heads)
        lines.append(Line(columns.headers[study], tuple(line)))
    counted = {
        f"{block}, {one_line(step)}": _counts([cells.get((i, (block, step))) for i in present])
        for block, step in heads
    }
    known = [f"{name} {text}" for name, text in counted.items() if text != _UNKNOWN]
    notes = [_CELLS, *columns.notes(), *_relative_to(rows, columns, "step")]
    notes += [f"n, by row where it differs: {'; '.join(known)}."] if known else []
    return Grid(
        "",
        tuple(one_line(step) for _, step in heads),
        (Block("", (tuple(lines),)),),
        tuple(notes),
        "each row",
        tuple((block, sum(head[0] == block for head in heads)) for block in blocks),
    )


def _strata_layout(rows: Sequence[Row], by: str) -> list[Grid] | None:
    """A row for each stratum, a column for each study, a block for each family, rows in order.

    Args:
        rows: rows of ``strata``.
        by: the column of the stratum.
    """
    columns = studies(rows)
    shown = [row for row in rows if row["arm"] in (BASELINE, FAMILY_AVERAGE)]
    figures = [
        Figure(
            column=columns.of(row),
            block=_block(row),
            group="",
            label=one_line(str(row[by])),
            text=_text(row),
            rank=None if row["arm"] == BASELINE else row["relative_change"],
            of=conversations_of(row),
            n=row["n"],
        )
        for row in shown
    ]
    notes = [_CELLS, *columns.notes(), *_relative_to(rows, columns, by)]
    notes.append(
        "n: replies behind a figure" + (", by column." if len(columns.headers) > 1 else ".")
    )
    grid = matrix(figures, columns.headers, by, notes)
    return None if grid is None else [_with_n(grid, shown, columns, by)]


def _with_n(grid: Grid, rows: Sequence[Row], columns: Studies, by: str) -> Grid:
    """A first column with n, one number where the studies agree."""
    cells = {(columns.of(row), _block(row), one_line(str(row[by]))): row for row in rows}

    def counted(block: Block, line: Line) -> Line:
        found = [cells.get((i, block.heading, line.label)) for i in range(len(columns.headers))]
        return Line(line.label, (Cell(_counts(found)), *line.cells))

    blocks = tuple(
        Block(b.heading, tuple(tuple(counted(b, line) for line in group) for group in b.groups))
        for b in grid.blocks
    )
    return Grid(grid.corner, ("n", *grid.columns), blocks, grid.notes)


def _counts(rows: Sequence[Row | None]) -> str:
    """How many replies are behind a figure, once where all studies agree."""
    numbers = [_UNKNOWN if row is None or row["n"] is None else str(row["n"]) for row in rows]
    return numbers[0] if len(set(numbers)) == 1 else " / ".join(numbers)


def _is_first(block: str) -> bool:
    return block.split(", ")[0] == _FIRST


def _block(row: Row) -> str:
    protocol = row["protocol"]
    parts = [_FIRST if row["arm"] == BASELINE else one_line(row["family"] or "")]
    parts += [one_line(row["path"])] if row["arm"] == FAMILY_AVERAGE and row["path"] else []
    parts += [one_line(protocol)] if protocol != "followup" else []
    return ", ".join(parts)


def _cell(row: Row | None, mark: Mark) -> Cell:
    if row is None:
        return Cell("", mark)
    return Cell(_text(row), mark, conversations_of(row), row["n"])


def _text(row: Row) -> str:
    if row["arm"] == BASELINE:
        return percent(row["accuracy"])
    change = percent(row["relative_change"], signed=True)
    return f"{change}%" if change else ""


def _extremes(cells: Mapping[_Head, Row | None]) -> dict[_Head, Mark]:
    """Best and worst of a study's changes."""
    changes = {
        head: round(row["relative_change"], 9)
        for head, row in cells.items()
        if row is not None and row["arm"] != BASELINE and row["relative_change"] is not None
    }
    if len(set(changes.values())) < 2:
        return {}
    best, worst = max(changes.values()), min(changes.values())
    return {
        head: "best" if change == best else "worst"
        for head, change in changes.items()
        if change in (best, worst)
    }


def _relative_to(rows: Sequence[Row], columns: Studies, by: str) -> list[str]:
    """Which first answers the changes are relative to, by study where they differ."""
    meanings = {
        "stratum": f"the first answers of the same {by}",
        "overall": "all first answers of the model",
        None: "first answers that the source does not state",
    }
    by_meaning: dict[str, list[str]] = {}
    for row in rows:
        names = by_meaning.setdefault(meanings[row["relative_to"]], [])
        header = columns.headers[columns.of(row)]
        if header not in names:
            names.append(header)
    if len(by_meaning) == 1:
        return [f"Change relative to {meaning}." for meaning in by_meaning]
    return [
        f"Change relative to {meaning}: {', '.join(names)}."
        for meaning, names in by_meaning.items()
    ]


STRATA_SECTION = Section(
    "strata",
    "Strata",
    "Which questions",
    "The same measures by the kind of question (strata). Cells are changes relative to the "
    "first answers to the same questions. Few questions give wide intervals: the tables show n.",
    4,
)

STEPS = Table(
    "steps",
    partial(strata, by="step"),
    layout=_steps_layout,
    title="By step of the licensing examination (USMLE)",
    lead="Family averages.",
    section="strata",
    figure="holdfast.report.figures.followup:STEPS",
    takes=("relative_to",),
)

SYSTEMS = Table(
    "systems",
    partial(strata, by="system"),
    layout=partial(_strata_layout, by="system"),
    title="By organ system",
    lead="Largest loss first.",
    section="strata",
    figure="holdfast.report.figures.followup:SYSTEMS",
    takes=("relative_to",),
)

SPECIALTIES = Table(
    "specialties",
    partial(strata, by="specialty"),
    layout=partial(_strata_layout, by="specialty"),
    title="By clinical specialty",
    lead="Largest loss first.",
    section="strata",
    figure="holdfast.report.figures.followup:SPECIALTIES",
    takes=("relative_to",),
)

SUBJECTS = Table(
    "subjects",
    partial(strata, by="subject"),
    layout=partial(_strata_layout, by="subject"),
    title="By subject",
    lead="Largest loss first.",
    section="strata",
    figure="holdfast.report.figures.followup:SUBJECTS",
    takes=("relative_to",),
)


LENGTHS_COLUMNS = (
    "model", "dataset", "technique", "family", "sentences", "n", "correct", "accuracy", "low",
    "high", "baseline", *CHANGE, "unparsed", "refused", "non_response", "run",
)  # fmt: skip


def lengths(turns: pl.DataFrame) -> pl.DataFrame:
    """Accuracy by technique and length of its context (MedQA-Followup, section 4.3, Figure 3).

    The figures are those of ``accuracy``. Contexts of the usual length are in no row.

    Args:
        turns: a turns table.

    Returns:
        One row for each model, data set, technique and number of ``sentences``, with
        ``LENGTHS_COLUMNS``; a technique's rows from the shortest context to the longest.
    """
    answered = with_first(turns, arms=["length"])
    rows = with_change(rated(answered), answered)
    rows = rows.filter(pl.col("arm") == "length").with_row_index("_row")
    rows = rows.with_columns(
        pl.col("path").str.extract(r"@(\d+)$").cast(pl.Int64).alias("sentences"),
        pl.col("_row").min().over(STUDY).alias("_study"),
        pl.col("_row").min().over(*STUDY, "technique").alias("_technique"),
    )
    return rows.sort("_study", "_technique", "sentences", "_row").select(LENGTHS_COLUMNS)


def _lengths_layout(rows: Sequence[Row]) -> list[Grid] | None:
    """Accuracies by technique and number of sentences (Figure 3 of MedQA-Followup)."""
    columns = studies(rows)
    figures = [
        Figure(
            columns.of(row),
            "",
            row["technique"],
            f"{one_line(row['technique'])}, {row['sentences']}",
            accuracy_text(row),
            change_rank(row),
            row["n"],
            of={**row, "arm": "length", "path": f"{row['technique']}@{row['sentences']}"},
        )
        for row in rows
    ]
    notes = [*accuracy_notes(rows), *columns.notes(), *n_notes(figures, columns.headers)]
    grid = matrix(
        figures,
        columns.headers,
        "Technique, sentences of context",
        [*notes, *unread_notes(rows, columns)],
    )
    return None if grid is None else [grid]


LENGTHS_SECTION = Section(
    "lengths",
    "Lengths",
    "Longer arguments",
    "The same argument in 1, 10 or 20 sentences (length ablation).",
    6,
)

LENGTHS = Table(
    "lengths",
    lengths,
    layout=_lengths_layout,
    title="Accuracy by length of the context",
    lead="A line for each technique.",
    section="lengths",
    figure="holdfast.report.figures.followup:LENGTHS",
)
