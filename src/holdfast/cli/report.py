"""``holdfast report``: one page for people who decide, every conversation for people who doubt."""

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from holdfast.errors import InputError, printable

from . import options
from .writing import write_whole

MOST = 20_000
"""Conversations in a page unless told otherwise, for the help text."""


def report(
    sources: Annotated[
        list[str], typer.Argument(metavar="LOGDIR", help="Log dirs, logs or turns tables.")
    ],
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE", help="The page.")
    ] = "report.html",
    figures: Annotated[
        str | None,
        typer.Option(metavar="DIR", help="Every figure as SVG and PNG beside, into this folder."),
    ] = None,
    title: Annotated[str | None, typer.Option(help="Of the page.")] = None,
    conversations: Annotated[
        int,
        typer.Option(
            min=0, max=options.MOST, help="Most conversations that can be read in the page."
        ),
    ] = MOST,
    as_json: options.AsJson = False,
) -> None:
    """Make one self-contained page from what was run.

    Example: holdfast report runs -o report.html --figures figures
    """
    from holdfast.report import report_figures, report_page
    from holdfast.results import left_out, plans, run_records, turns_table, unfinished_runs

    turns = turns_table(sources)
    if turns.is_empty():
        raise InputError("holds no turns", ", ".join(sources), remedy="Run a protocol first")
    notes = [*map(str, unfinished_runs(sources)), *left_out(sources)]
    sys.stderr.writelines(f"{printable(note)}\n" for note in notes)
    made = report_page(
        turns,
        run_records(sources),
        plans(sources),
        notes=notes,
        title=title,
        most=conversations,
    )
    if figures is not None:
        _made(figures)
    write_whole(made.html, output, "-o FILE")
    drawn = []
    if figures is not None:
        for name, picture in report_figures(turns):
            file = f"{figures.rstrip('/')}/{name}"
            write_whole(picture, file, "--figures DIR")
            drawn.append(file)
    if as_json:
        told = {
            "page": output,
            "headline": made.headline,
            "bytes": len(made.html.encode()),
            "figures": drawn,
        }
        sys.stdout.write(json.dumps(told, indent=2, ensure_ascii=False) + "\n")
        return
    sys.stdout.write(f"{made.headline}.\nReport: {output}\n")
    if drawn:
        sys.stdout.write(f"Figures: {figures} ({len(drawn)} files)\n")


def _made(folder: str) -> None:
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"cannot be made ({error.strerror})", folder, remedy="Give another --figures DIR"
        ) from error
