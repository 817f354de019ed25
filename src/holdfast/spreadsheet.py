"""Cells: texts that a program must not take for a formula or for the name of a file."""

import polars as pl

ACTIVE = r"'*(?:[=+\-@\t\r]|file://)"
"""Begins what a spreadsheet computes, or the name of a file that promptfoo reads in its place.

With quotes before it, it is what ``safe_cells`` made of such.
"""


def safe_cells(table: pl.DataFrame) -> pl.DataFrame:
    """The table with a ``'`` before every text that a program could compute or look up.

    Those that begin with ``=``, ``+``, ``-``, ``@``, a tab, a carriage return or ``file://``; and
    those that begin so after quotes of their own, so that ``plain_cells`` gives back every text.
    Numbers are no texts and stay as they are.
    """
    return table.with_columns(
        pl.when(text.str.contains(f"^{ACTIVE}"))
        .then(pl.concat_str(pl.lit("'"), text))
        .otherwise(text)
        .alias(name)
        for name, text in _texts(table)
    )


def plain_cells(table: pl.DataFrame) -> pl.DataFrame:
    """The table without the quotes of ``safe_cells``."""
    return table.with_columns(
        pl.when(text.str.contains(f"^'{ACTIVE}"))
        .then(text.str.slice(1))
        .otherwise(text)
        .alias(name)
        for name, text in _texts(table)
    )


def _texts(table: pl.DataFrame) -> list[tuple[str, pl.Expr]]:
    return [(name, pl.col(name)) for name, kind in table.schema.items() if kind == pl.String]
