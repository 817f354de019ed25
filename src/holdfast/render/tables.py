"""Tables in Markdown, CSV, LaTeX and JSON, laid out for people or row by row."""

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import polars as pl

from holdfast.results.declaration import TABLES
from holdfast.results.grid import Cell, Grid, one_line
from holdfast.spreadsheet import safe_cells


def render(frame: pl.DataFrame, format: str, table: str | None = None) -> str:
    """Return the table as text, ending in a newline.

    Markdown and LaTeX are for people. A table with a layout is arranged as in the papers, with
    best and worst values marked and n explained. CSV and JSON are data and contain the rows
    unchanged.

    Args:
        frame: any table.
        format: one of ``FORMATS``.
        table: name of the result table. Without a name, or if the rows do not fit the layout,
            every format shows the table row by row.
    """
    write = {"md": markdown, "latex": latex}.get(format)
    grids = arranged(frame, table) if write is not None else None
    return write(grids) if write is not None and grids is not None else FORMATS[format](frame)


def arranged(frame: pl.DataFrame, table: str | None) -> list[Grid] | None:
    """Return the rows laid out for people, or None without a layout.

    Args:
        frame: any table.
        table: name of the result table.
    """
    declaration = TABLES.get(table or "")
    return None if declaration is None or frame.is_empty() else declaration.layout(frame.to_dicts())


def json_text(table: pl.DataFrame) -> str:
    """Return a JSON list with one object per row. NaN and infinity become null."""
    rows = [
        {name: None if _is_undefined(value) else value for name, value in row.items()}
        for row in table.iter_rows(named=True)
    ]
    return json.dumps(rows, indent=2, ensure_ascii=False) + "\n"


def csv_text(table: pl.DataFrame) -> str:
    """Return CSV with a header and every digit. Texts are escaped against formulas."""
    return safe_cells(table).write_csv()


def markdown_table(table: pl.DataFrame) -> str:
    """Return any table in Markdown, row by row."""
    header = list(map(one_line, table.columns))
    lines = [header, ["---"] * len(header), *_cells(table)]
    return markdown_rows([cell.translate(_PIPES) for cell in line] for line in lines)


def markdown_rows(lines: Iterable[Iterable[str]]) -> str:
    """Return rows of a Markdown table from escaped cells."""
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def latex_table(table: pl.DataFrame) -> str:
    """Return any table in LaTeX, row by row."""
    align = "".join("r" if dtype.is_numeric() else "l" for dtype in table.dtypes)
    header, *body = (list(map(latex_text, line)) for line in [table.columns, *_cells(table)])
    return latex_rows(align, [header, r"\midrule", *body])


def latex_rows(align: str, lines: Sequence[Sequence[str] | str]) -> str:
    """Return a ``tabular`` with booktabs."""
    return "\n".join(
        [
            rf"\begin{{tabular}}{{{align}}}",
            r"\toprule",
            *(line if isinstance(line, str) else _latex_row(line) for line in lines),
            r"\bottomrule",
            r"\end{tabular}",
            "",
        ]
    )


def _latex_row(cells: Sequence[str]) -> str:
    row = " & ".join(cells)
    # the rule or row above would parse a leading bracket or star as its argument
    return ("{}" if row.startswith(("[", "*")) else "") + row + r" \\"


FORMATS: Mapping[str, Callable[[pl.DataFrame], str]] = {
    "md": markdown_table,
    "csv": csv_text,
    "latex": latex_table,
    "json": json_text,
}


def _is_undefined(value: Any) -> bool:
    return isinstance(value, float) and not math.isfinite(value)


def _cells(table: pl.DataFrame) -> list[list[str]]:
    return [[_cell(value) for value in row] for row in table.iter_rows()]


def _cell(value: Any) -> str:
    if value is None or _is_undefined(value):
        return ""
    if isinstance(value, float):
        return f"{value:.4f}"
    return one_line(str(value))


# a backslash before a pipe would undo its escape
_PIPES = str.maketrans({"\\": r"\\", "|": r"\|"})
_MARKUP = re.compile(r"[\\|*`<~]|(?<!\w)_|_(?!\w)|(?<=\])\(")


def markdown_text(text: str) -> str:
    """Return the text on one line, with Markdown markup escaped."""
    return _MARKUP.sub(lambda match: "\\" + match[0], one_line(text))


_LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    ">": r"\textgreater{}", "<": r"\textless{}",
}  # fmt: skip


def latex_text(text: str) -> str:
    """Return the text on one line, escaped for LaTeX."""
    return "".join(_LATEX.get(character, character) for character in one_line(text))


def markdown(grids: Sequence[Grid]) -> str:
    """Return tables in Markdown with notes below. Best values are bold, worst italic."""
    return "\n".join(map(_markdown, grids))


def headers(grid: Grid) -> list[str]:
    """Return headers in one row, with spanning headers repeated in each column."""
    over = [name for name, width in grid.spans for _ in range(width)] or [""] * len(grid.columns)
    return [f"{span} {head}".strip() for span, head in zip(over, grid.columns, strict=True)]


def _markdown(grid: Grid) -> str:
    heads = headers(grid)
    lines = [list(map(markdown_text, [grid.corner, *heads]))]
    lines.append(["---", *["---:"] * len(heads)])
    for block in grid.blocks:
        if block.heading:
            lines.append([f"**{markdown_text(block.heading)}**", *[""] * len(heads)])
        for line in (line for group in block.groups for line in group):
            lines.append([markdown_text(line.label), *map(_markdown_cell, line.cells)])
    legend = [f"**Best** and _worst_ value of {grid.comparison}."] if grid.marked else []
    notes = [*legend, *map(markdown_text, grid.notes)]
    below = "\n" + "".join(f"- {note}\n" for note in notes) if notes else ""
    return markdown_rows(lines) + below


def _markdown_cell(cell: Cell) -> str:
    text, around = markdown_text(cell.text), {"": "", "best": "**", "worst": "_"}[cell.mark]
    return f"{around}{text}{around}"


def latex(grids: Sequence[Grid]) -> str:
    """Return tables in LaTeX with notes above. Best values are bold green, worst italic red."""
    packages = r"% Needs \usepackage{booktabs}"
    packages += r" and \usepackage{xcolor}" if any(grid.marked for grid in grids) else ""
    return packages + "\n" + "\n".join(map(_latex, grids))


def _latex(grid: Grid) -> str:
    width = len(grid.columns) + 1
    # a LaTeX comment ends with its line, so each note becomes one line
    above = [f"% {' '.join(note.split())}" for note in grid.notes]
    if grid.marked:
        above.insert(
            0, f"% Best (green, bold) and worst (red, italics) value of {grid.comparison}."
        )
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
    # a hyphen before a digit is a minus sign
    text = re.sub(r"(?<![\w.$-])-(?=\d)", "$-$", latex_text(cell.text))
    match cell.mark:
        case "best":
            return rf"\textcolor{{green!50!black}}{{\textbf{{{text}}}}}"
        case "worst":
            return rf"\textcolor{{red}}{{\textit{{{text}}}}}"
        case _:
            return text


__all__ = [
    "FORMATS",
    "arranged",
    "latex",
    "latex_text",
    "markdown",
    "markdown_text",
    "one_line",
    "render",
]
