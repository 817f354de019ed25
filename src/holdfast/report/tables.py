"""Tables in Markdown, CSV, LaTeX and JSON."""

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import polars as pl

from holdfast.cells import safe_cells
from holdfast.errors import printable


def json_text(table: pl.DataFrame) -> str:
    """A list of objects, one a row; what JSON has no number for is null."""
    rows = [
        {name: None if _undefined(value) else value for name, value in row.items()}
        for row in table.iter_rows(named=True)
    ]
    return json.dumps(rows, indent=2, ensure_ascii=False) + "\n"


def csv_text(table: pl.DataFrame) -> str:
    """Comma-separated values with a header and every digit; texts are no formulas."""
    return safe_cells(table).write_csv()


def markdown_table(table: pl.DataFrame) -> str:
    """Any table in Markdown, row by row."""
    header = list(map(one_line, table.columns))
    lines = [header, ["---"] * len(header), *_cells(table)]
    return markdown_rows([cell.translate(_PIPES) for cell in line] for line in lines)


def markdown_rows(lines: Iterable[Iterable[str]]) -> str:
    """Rows of a Markdown table; cells are escaped already."""
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def latex_table(table: pl.DataFrame) -> str:
    """Any table in LaTeX, row by row."""
    align = "".join("r" if dtype.is_numeric() else "l" for dtype in table.dtypes)
    header, *body = (list(map(latex_text, line)) for line in [table.columns, *_cells(table)])
    return latex_rows(align, [header, r"\midrule", *body])


def latex_rows(align: str, lines: Sequence[Sequence[str] | str]) -> str:
    """A ``tabular`` with booktabs.

    Args:
        align: a letter for each column.
        lines: rows as lists of escaped cells, and rules as strings.
    """
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
    # the rule or the row above would take a bracket or star for its own argument
    return ("{}" if row.startswith(("[", "*")) else "") + row + r" \\"


FORMATS: Mapping[str, Callable[[pl.DataFrame], str]] = {
    "md": markdown_table,
    "csv": csv_text,
    "latex": latex_table,
    "json": json_text,
}


def _undefined(value: Any) -> bool:
    return isinstance(value, float) and not math.isfinite(value)


def _cells(table: pl.DataFrame) -> list[list[str]]:
    return [[_cell(value) for value in row] for row in table.iter_rows()]


def _cell(value: Any) -> str:
    if value is None or _undefined(value):
        return ""
    if isinstance(value, float):
        return f"{value:.4f}"
    return one_line(str(value))


def one_line(text: str) -> str:
    """The text on one line, controls escaped."""
    return printable(" ".join(text.split()))


# a backslash before a pipe would undo its escape
_PIPES = str.maketrans({"\\": r"\\", "|": r"\|"})
_MARKUP = re.compile(r"[\\|*`<~]|(?<!\w)_|_(?!\w)|(?<=\])\(")


def markdown_text(text: str) -> str:
    """The text as Markdown shows it: on one line, no markup taken from it."""
    return _MARKUP.sub(lambda found: "\\" + found[0], one_line(text))


_LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    ">": r"\textgreater{}", "<": r"\textless{}",
}  # fmt: skip


def latex_text(text: str) -> str:
    """The text as LaTeX shows it, on one line."""
    return "".join(_LATEX.get(character, character) for character in one_line(text))
