"""Tables as people read them: the long rows of a table of results arranged in a grid."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import polars as pl

from holdfast.results import BASELINE, FAMILY_AVERAGE

from . import attack_layout, conviction_layout, dynamics_layout
from .compounding_layout import compounding, compounding_parts, compounding_summary
from .grid import Grid, latex, markdown
from .listings import cues, flips, flows, holding, reading
from .matrix import Figure, accuracy_cell, matrix, n_notes, percent, unread_notes
from .strata_layout import steps, strata
from .studies import Row, Studies, studies
from .tables import FORMATS, one_line

_OFFERING = "stick-or-switch"
_CELLS = (
    "Cells: accuracy in percent [95% Wilson interval] (change relative to the first answers to "
    "the same questions)."
)
_LEVEL = 0.05
_TESTED = (
    "* differs from the first answers: p < 0.05 by a test paired over questions, with Holm's "
    "correction over the techniques of the family, or over the averages."
)
_BLOCKS = {
    "single-turn": "Single-turn",
    "followup": "Multi-turn (follow-up)",
    "length": "Context of a fixed length",
    "compound": "Compounding",
    _OFFERING: "Stick-or-Switch",
}
"""Heading of each part of the accuracies by protocol or arm, in the order of the papers."""


def render(frame: pl.DataFrame, format: str, table: str | None = None) -> str:
    """The table as text, ending in a newline.

    Markdown and LaTeX are for people: a table that has a layout is arranged as the papers print
    it, with best and worst marked and with what n is. CSV and JSON are data: the rows as they are.

    Args:
        frame: any table.
        format: one of ``FORMATS``.
        table: name of the table of results that the rows are of; without it, or where rows do not
            fit the layout, every format shows them row by row.
    """
    write, arrange = {"md": markdown, "latex": latex}.get(format), LAYOUTS.get(table or "")
    if write is not None and arrange is not None and not frame.is_empty():
        grids = arrange(frame.to_dicts())
        if grids is not None:
            return write(grids)
    return FORMATS[format](frame)


def accuracy(rows: Sequence[Row]) -> list[Grid] | None:
    """Accuracies as Table 2 of MedQA-Followup has them: challenges by family, studies beside."""
    columns = studies(rows)
    figures = sorted(
        (_figure(row, columns) for row in rows),
        # first answers before challenges, and each part where the papers have it
        key=lambda figure: (_place(figure.block), bool(figure.group)),
    )
    notes = [*_cells(rows), *columns.notes(), *n_notes(figures, columns.headers)]
    grid = matrix(
        _one_baseline(figures), columns.headers, "", [*notes, *unread_notes(rows, columns)]
    )
    return None if grid is None else [grid]


def _cell(row: Row, *, first: bool = False) -> str:
    """A cell of accuracy, marked where the change is more than chance makes."""
    return accuracy_cell(row, first=first) + "*" * (not first and _differs(row))


def _differs(row: Row) -> bool:
    p: float | None = row.get("p_adjusted")
    return p is not None and p < _LEVEL and row["relative_change"] is not None


def _cells(rows: Sequence[Row]) -> list[str]:
    """What stands in a cell of accuracy."""
    return [_CELLS, _TESTED] if any(map(_differs, rows)) else [_CELLS]


def _figure(row: Row, columns: Studies) -> Figure:
    arm, path = row["arm"], one_line(row["path"])
    first, average = arm == BASELINE, arm == FAMILY_AVERAGE
    part = arm if arm in ("length", "compound") else row["protocol"]
    mitigation = path if average else path.rpartition(">")[0] if arm == "single-turn" else ""
    family = one_line(row["family"] or "")
    if part == _OFFERING:
        # its arms offer one thing after another; where they are is the turn
        offers = row["path"].count(">") + bool(path)
        return Figure(
            column=columns.of(row),
            block=_BLOCKS[part],
            group=one_line(arm),
            label=f"{one_line(arm)}, turn {offers}" if offers else one_line(arm),
            text=_cell(row),
            n=row["n"],
            of=row,
        )
    if arm == "compound":
        group = f"{path.count('>')} more"
    else:
        group = "" if first else f"{family} {mitigation} {row['technique'] * (arm == 'length')}"
    under = f", {mitigation}" if mitigation else ""
    return Figure(
        column=columns.of(row),
        block=_BLOCKS.get(part, one_line(str(part))),
        group=group,
        label="Baseline" if first else f"{family}{under} (average)" if average else steps_of(path),
        text=_cell(row, first=first),
        rank=None if first else _rank(row),
        n=row["n"],
        average=average,
        of=row,
    )


def _place(block: str) -> int:
    known = list(_BLOCKS.values())
    return known.index(block) if block in known else len(known)


def _rank(row: Row) -> float | None:
    change: float | None = row["relative_change"]
    return row["accuracy"] if change is None else change


def _one_baseline(figures: list[Figure]) -> list[Figure]:
    """The first answers once, above everything, where each protocol has the same ones."""
    firsts = [figure for figure in figures if not figure.group]
    by_block: dict[str, set[tuple[int, str, int | None]]] = {}
    for figure in firsts:
        by_block.setdefault(figure.block, set()).add((figure.column, figure.text, figure.n))
    if len(by_block) == 1 and len({figure.block for figure in figures}) == 1:
        return [_in_block(figure, "") for figure in figures]
    if len({frozenset(cells) for cells in by_block.values()}) > 1:
        return figures
    top = next(iter(by_block), None)
    return [_in_block(figure, "") for figure in firsts if figure.block == top] + [
        figure for figure in figures if figure.group
    ]


def _in_block(figure: Figure, block: str) -> Figure:
    return Figure(**(vars(figure) | {"block": block}))


def steps_of(path: str) -> str:
    """A path as people read it."""
    return one_line(path).replace(">", " > ")


def lengths(rows: Sequence[Row]) -> list[Grid] | None:
    """Accuracies by technique and number of sentences (Figure 3 of MedQA-Followup)."""
    columns = studies(rows)
    figures = [
        Figure(
            columns.of(row),
            "",
            row["technique"],
            f"{one_line(row['technique'])}, {row['sentences']}",
            _cell(row),
            _rank(row),
            row["n"],
            of=row,
        )
        for row in rows
    ]
    notes = [*_cells(rows), *columns.notes(), *n_notes(figures, columns.headers)]
    grid = matrix(
        figures,
        columns.headers,
        "Technique, sentences of context",
        [*notes, *unread_notes(rows, columns)],
    )
    return None if grid is None else [grid]


def single_turn(rows: Sequence[Row]) -> list[Grid] | None:
    """Accuracies by bias and mitigation, and how often the pushed option was answered."""
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
            "of": row,
        }
        rank = None if first else _rank(row)
        figures.append(Figure(text=_cell(row, first=first), rank=rank, **where))
        if row["suggested_rate"] is not None:
            right = row["right_to_suggested"]
            text = f"{percent(row['suggested_rate'])} ({'' if right is None else right})"
            pushed.append(Figure(text=text, rank=-row["suggested_rate"], **where))
    known = [*columns.notes(), *n_notes(figures, columns.headers)]
    notes = [*_cells(rows), *known, *unread_notes(rows, columns)]
    grids = [matrix(figures, columns.headers, "Accuracy", notes)]
    if pushed:
        note = (
            "Cells: share of the answers that are the pushed option, in percent (answers that were "
            "right to the plain question)."
        )
        grids.append(matrix(pushed, columns.headers, "Took the pushed option", [note, *known]))
    return None if None in grids else [grid for grid in grids if grid is not None]


LAYOUTS: Mapping[str, Callable[[Sequence[Row]], list[Grid] | None]] = {
    "accuracy": accuracy,
    "flips": flips,
    "holding": holding,
    "flows": flows,
    "steps": steps,
    "systems": lambda rows: strata(rows, "system"),
    "specialties": lambda rows: strata(rows, "specialty"),
    "subjects": lambda rows: strata(rows, "subject"),
    "lengths": lengths,
    "compounding": compounding,
    "compounding-parts": compounding_parts,
    "compounding-summary": compounding_summary,
    "single-turn": single_turn,
    "cues": cues,
    "survival": conviction_layout.survival,
    "tax": conviction_layout.tax,
    "flexibility": conviction_layout.flexibility,
    "positions": conviction_layout.positions,
    "winners": conviction_layout.winners,
    "beliefs": conviction_layout.beliefs,
    "scale": conviction_layout.scale,
    "resistance": dynamics_layout.resistance,
    "turn-of-flip": dynamics_layout.turn_of_flip,
    "sticky-incorrect": dynamics_layout.sticky_incorrect,
    "attacks": attack_layout.attacks,
    "attack-summary": attack_layout.attack_summary,
    "attack-list": attack_layout.attack_list,
    "permutation": attack_layout.permutation,
    "faithfulness": attack_layout.faithfulness,
    "reading": reading,
}
"""Layout of each table of results; None where its rows do not fit it."""
