"""``holdfast table``: one table from log dirs or turns tables."""

import sys
from typing import Annotated

import typer

from holdfast.errors import InputError, did_you_mean


def table(
    sources: Annotated[
        list[str], typer.Argument(metavar="LOGDIR", help="Log dirs, logs or turns tables.")
    ],
    table: Annotated[str, typer.Option(help="Name: accuracy or flips.")] = "accuracy",
    format: Annotated[str, typer.Option(help="md, csv, latex or json.")] = "md",
) -> None:
    """Print one table of results.

    Example: holdfast table runs --table flips --format csv
    """
    from holdfast.report import FORMATS, render
    from holdfast.results import TABLES, turns_table

    if table not in TABLES:
        raise InputError(
            f"unknown table '{table}'", field="--table", remedy=did_you_mean(table, TABLES)
        )
    if format not in FORMATS:
        raise InputError(
            f"unknown format '{format}'", field="--format", remedy=did_you_mean(format, FORMATS)
        )
    sys.stdout.write(render(TABLES[table](turns_table(sources, text=False)), format))
