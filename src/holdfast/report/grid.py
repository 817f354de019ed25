"""A table laid out for people, and how it is written in Markdown and LaTeX."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from .tables import latex_rows, latex_text, markdown_rows, markdown_text

Mark = Literal["", "best", "worst"]


@dataclass(frozen=True)
class Cell:
    """A figure as it is shown.

    Attributes:
        text: the figure.
        mark: whether it is the best or worst of its family.
        of: the row of results that it was read from, where it is one.
    """

    text: str
    mark: Mark = ""
    of: Mapping[str, Any] | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class Line:
    """A row: what it is of, and one cell for each column."""

    label: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class Block:
    """Rows that belong together, in groups; a rule stands between two groups.

    Attributes:
        heading: shown above the rows; none where empty.
        groups: rows of each family.
    """

    heading: str
    groups: tuple[tuple[Line, ...], ...]


@dataclass(frozen=True)
class Grid:
    """A table laid out for people. Every text is data, escaped when it is written.

    Attributes:
        corner: header of the column of labels.
        columns: headers of the others.
        blocks: the rows.
        notes: sentences below the table.
        compared: what best and worst are of.
        spans: headers over neighbouring columns, each with the number of columns below it, or
            none; together they span ``columns``.
    """

    corner: str
    columns: tuple[str, ...]
    blocks: tuple[Block, ...]
    notes: tuple[str, ...] = ()
    compared: str = "each family and column"
    spans: tuple[tuple[str, int], ...] = ()

    @property
    def marked(self) -> bool:
        """Whether any cell is marked."""
        return any(
            cell.mark
            for block in self.blocks
            for group in block.groups
            for line in group
            for cell in line.cells
        )


def markdown(grids: Sequence[Grid]) -> str:
    """Tables in Markdown, notes below each: best in bold, worst in italics."""
    return "\n".join(map(_markdown, grids))


def _markdown(grid: Grid) -> str:
    # one header row is all that there is: what spans columns goes into each of them
    over = [name for name, width in grid.spans for _ in range(width)]
    heads = [
        f"{span} {column}".strip()
        for span, column in zip(over or [""] * len(grid.columns), grid.columns, strict=True)
    ]
    lines = [list(map(markdown_text, [grid.corner, *heads]))]
    lines.append(["---", *["---:"] * len(heads)])
    for block in grid.blocks:
        if block.heading:
            lines.append([f"**{markdown_text(block.heading)}**", *[""] * len(heads)])
        for line in (line for group in block.groups for line in group):
            lines.append([markdown_text(line.label), *map(_markdown_cell, line.cells)])
    legend = [f"**Best** and _worst_ of {grid.compared}."] if grid.marked else []
    notes = [*legend, *map(markdown_text, grid.notes)]
    below = "\n" + "".join(f"- {note}\n" for note in notes) if notes else ""
    return markdown_rows(lines) + below


def _markdown_cell(cell: Cell) -> str:
    text, around = markdown_text(cell.text), {"": "", "best": "**", "worst": "_"}[cell.mark]
    return f"{around}{text}{around}"


def latex(grids: Sequence[Grid]) -> str:
    """Tables in LaTeX with booktabs, notes above each: best green and bold, worst red italics."""
    packages = r"% Needs \usepackage{booktabs}"
    packages += r" and \usepackage{xcolor}" if any(grid.marked for grid in grids) else ""
    return packages + "\n" + "\n".join(map(_latex, grids))


def _latex(grid: Grid) -> str:
    width = len(grid.columns) + 1
    # a comment ends with its line, and a note is one line
    above = [f"% {' '.join(note.split())}" for note in grid.notes]
    if grid.marked:
        above.insert(0, f"% Best (green, bold) and worst (red, italics) of {grid.compared}.")
    parts: list[str | list[str]] = []
    if grid.spans:
        spans = [
            rf"\multicolumn{{{n}}}{{c}}{{{latex_text(name)}}}" if n > 1 else latex_text(name)
            for name, n in grid.spans
        ]
        parts += [["", *spans], _rules_below(grid.spans)]
    parts.append(list(map(latex_text, [grid.corner, *grid.columns])))
    for block in grid.blocks:
        if block.heading:
            heading = rf"\textbf{{{latex_text(block.heading)}}}"
            parts += [r"\midrule", [rf"\multicolumn{{{width}}}{{l}}{{{heading}}}"]]
        for group in block.groups:
            parts.append(r"\midrule")
            parts += [[latex_text(line.label), *map(_latex_cell, line.cells)] for line in group]
    return "".join(f"{line}\n" for line in above) + latex_rows("l" + "r" * (width - 1), parts)


def _rules_below(spans: Sequence[tuple[str, int]]) -> str:
    rules, first = [], 2
    for name, n in spans:
        if name:
            rules.append(rf"\cmidrule(lr){{{first}-{first + n - 1}}}")
        first += n
    return " ".join(rules)


def _latex_cell(cell: Cell) -> str:
    # a hyphen before a figure is a minus
    text = re.sub(r"(?<![\w.$-])-(?=\d)", "$-$", latex_text(cell.text))
    match cell.mark:
        case "best":
            return rf"\textcolor{{green!50!black}}{{\textbf{{{text}}}}}"
        case "worst":
            return rf"\textcolor{{red}}{{\textit{{{text}}}}}"
        case _:
            return text
