"""Cells: texts that a spreadsheet must not take for formulas."""

import polars as pl

FORMULA = r"'*[=+\-@\t\r]"
"""Begins what a spreadsheet computes; with quotes before it, what ``safe_cells`` made of such."""


def safe_cells(table: pl.DataFrame) -> pl.DataFrame:
    """The table with a ``'`` before every text that a spreadsheet could take for a formula.

    Those that begin with ``=``, ``+``, ``-``, ``@``, a tab or a carriage return; and those that
    begin so after quotes of their own, so that ``plain_cells`` gives back every text. Numbers
    are no texts and stay as they are.
    """
    return table.with_columns(
        pl.when(text.str.contains(f"^{FORMULA}"))
        .then(pl.concat_str(pl.lit("'"), text))
        .otherwise(text)
        .alias(name)
        for name, text in _texts(table)
    )


def plain_cells(table: pl.DataFrame) -> pl.DataFrame:
    """The table without the quotes of ``safe_cells``."""
    return table.with_columns(
        pl.when(text.str.contains(f"^'{FORMULA}"))
        .then(text.str.slice(1))
        .otherwise(text)
        .alias(name)
        for name, text in _texts(table)
    )


def _texts(table: pl.DataFrame) -> list[tuple[str, pl.Expr]]:
    return [(name, pl.col(name)) for name, kind in table.schema.items() if kind == pl.String]
