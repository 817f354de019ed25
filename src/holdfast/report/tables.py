"""Tables in Markdown, CSV, LaTeX and JSON."""

import json
import math
from collections.abc import Callable, Mapping
from typing import Any

import polars as pl

from holdfast.errors import printable


def render(table: pl.DataFrame, format: str) -> str:
    """The table as text, ending in a newline.

    Args:
        table: any table.
        format: one of ``FORMATS``.
    """
    return FORMATS[format](table)


def _json(table: pl.DataFrame) -> str:
    rows = [
        {name: None if _undefined(value) else value for name, value in row.items()}
        for row in table.iter_rows(named=True)
    ]
    return json.dumps(rows, indent=2, ensure_ascii=False) + "\n"


def _csv(table: pl.DataFrame) -> str:
    return table.write_csv()


def _markdown(table: pl.DataFrame) -> str:
    lines = [table.columns, ["---"] * len(table.columns), *_cells(table)]
    escaped = ([cell.replace("|", "\\|") for cell in line] for line in lines)
    return "".join(f"| {' | '.join(line)} |\n" for line in escaped)


def _latex(table: pl.DataFrame) -> str:
    align = "".join("r" if dtype.is_numeric() else "l" for dtype in table.dtypes)
    lines = [table.columns, *_cells(table)]
    header, *body = (" & ".join(map(_escape_latex, line)) + r" \\" for line in lines)
    return "\n".join(
        [
            rf"\begin{{tabular}}{{{align}}}",
            r"\toprule",
            header,
            r"\midrule",
            *body,
            r"\bottomrule",
            r"\end{tabular}",
            "",
        ]
    )


FORMATS: Mapping[str, Callable[[pl.DataFrame], str]] = {
    "md": _markdown,
    "csv": _csv,
    "latex": _latex,
    "json": _json,
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
    return printable(" ".join(str(value).split()))


_LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    ">": r"\textgreater{}", "<": r"\textless{}",
}  # fmt: skip


def _escape_latex(text: str) -> str:
    return "".join(_LATEX.get(character, character) for character in text)
