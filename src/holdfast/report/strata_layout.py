"""Relative changes by stratum: steps as Table 3 of MedQA-Followup, other strata as a matrix."""

from collections.abc import Mapping, Sequence

from holdfast.results import BASELINE, FAMILY_AVERAGE

from .grid import Block, Cell, Grid, Line, Mark
from .matrix import Figure, matrix, percent
from .studies import Row, Studies, studies
from .tables import one_line

_Head = tuple[str, str]
"""Family and step of a column."""

_FIRST = "Baseline"
_UNKNOWN = "–"
_CELLS = (
    "Cells: relative change of the family's average accuracy in percent. Baseline: accuracy of "
    "the first answers in percent."
)


def steps(rows: Sequence[Row]) -> list[Grid] | None:
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
        line = (
            Cell(_text(cells.get((study, head))), marks.get(head, ""), cells.get((study, head)))
            for head in heads
        )
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


def strata(rows: Sequence[Row], by: str) -> list[Grid] | None:
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
            of=row,
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


def _text(row: Row | None) -> str:
    if row is None:
        return ""
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
