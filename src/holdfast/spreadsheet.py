"""Safe cells, which no program mistakes for a formula or a file name."""

import polars as pl

ACTIVE = r"'*(?:[=+\-@\t\r]|file://)"
"""Pattern at the start of a formula, or of a file name that promptfoo would read.

Leading quotes belong to the pattern, because ``safe_cells`` adds a quote.
"""


def safe_cells(table: pl.DataFrame) -> pl.DataFrame:
    """Return the table with a ``'`` before every text that a program could evaluate.

    Affected texts begin with ``=``, ``+``, ``-``, ``@``, a tab, a carriage return or ``file://``.
    Texts with quotes before such a start get another quote, which lets ``plain_cells`` restore
    every text. Numbers do not change.
    """
    return table.with_columns(
        pl.when(text.str.contains(f"^{ACTIVE}"))
        .then(pl.concat_str(pl.lit("'"), text))
        .otherwise(text)
        .alias(name)
        for name, text in _texts(table)
    )


def plain_cells(table: pl.DataFrame) -> pl.DataFrame:
    """Return the table without the quotes from ``safe_cells``."""
    return table.with_columns(
        pl.when(text.str.contains(f"^'{ACTIVE}"))
        .then(text.str.slice(1))
        .otherwise(text)
        .alias(name)
        for name, text in _texts(table)
    )


def _texts(table: pl.DataFrame) -> list[tuple[str, pl.Expr]]:
    return [(name, pl.col(name)) for name, kind in table.schema.items() if kind == pl.String]
