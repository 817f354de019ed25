"""``holdfast table``: one table from log dirs or turns tables."""

import sys
from typing import Annotated

import typer

from holdfast.errors import InputError, did_you_mean

STRATA = ("steps", "systems", "specialties", "subjects")
"""Tables that take ``--relative-to``."""

NAMES = (
    "accuracy", "flips", "steps", "systems", "specialties", "subjects", "lengths", "compounding",
    "compounding-parts", "compounding-summary", "single-turn", "cues", "survival", "tax",
    "flexibility", "positions", "winners", "beliefs", "scale",
)  # fmt: skip
"""Every table, for the help text; a test holds it against the results."""


def table(
    sources: Annotated[
        list[str], typer.Argument(metavar="LOGDIR", help="Log dirs, logs or turns tables.")
    ],
    table: Annotated[str, typer.Option(help=f"Name: {', '.join(NAMES)}.")] = "accuracy",
    format: Annotated[
        str, typer.Option(help="md or latex to read, csv or json to compute with.")
    ] = "md",
    beside: Annotated[
        str | None,
        typer.Option(help="Published figures beside: paper, or paper-no-system (Table 4)."),
    ] = None,
    relative_to: Annotated[
        str | None,
        typer.Option(help="Of strata: stratum (its own first answers) or overall (appendix D.3)."),
    ] = None,
) -> None:
    """Print one table of results.

    Example: holdfast table runs --table steps --beside paper --format latex
    """
    from holdfast.report import FORMATS, render
    from holdfast.results import TABLES, beside_published, turns_table

    if table not in TABLES:
        raise InputError(
            f"unknown table '{table}'", field="--table", remedy=did_you_mean(table, TABLES)
        )
    if format not in FORMATS:
        raise InputError(
            f"unknown format '{format}'", field="--format", remedy=did_you_mean(format, FORMATS)
        )
    if relative_to is not None and table not in STRATA:
        raise InputError(
            f"table '{table}' has no strata",
            field="--relative-to",
            remedy=f"Leave it out, or choose one of {', '.join(STRATA)}",
        )
    if relative_to not in (None, "stratum", "overall"):
        raise InputError(
            f"unknown reading '{relative_to}'",
            field="--relative-to",
            remedy=did_you_mean(relative_to, ("stratum", "overall")),
        )
    settings = {"relative_to": relative_to} if relative_to else {}
    rows = TABLES[table](turns_table(sources, text=False), **settings)
    if beside is not None:
        rows, note = beside_published(rows, table, beside)
        if note:
            sys.stderr.write(f"{note}\n")
    sys.stdout.write(render(rows, format, table))
