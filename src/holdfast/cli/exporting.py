"""``holdfast export``: turns as training data, as chats, or as a sheet for reviewers."""

import json
import sys
from collections.abc import Iterator
from io import BytesIO
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.errors import InputError, counted

from . import options
from .writing import whole_file

if TYPE_CHECKING:
    from holdfast.transcripts import Export

FORMATS = ("parquet", "csv", "openai-chat", "trl-sft", "trl-dpo", "review")
"""Every format, for the help text; a test holds it against the transcripts."""


def export(
    sources: Annotated[
        list[str], typer.Argument(metavar="LOGDIR", help="Log dirs, logs or turns tables.")
    ],
    format: Annotated[str, typer.Option(help=f"One of {', '.join(FORMATS)}.")],
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="FILE", help="Instead of standard output."),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=options.MOST,
            help="At most so many rows, conversations or pairs; of a review 50.",
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the counts as JSON; needs -o FILE.")
    ] = False,
) -> None:
    """Write turns as files that people, spreadsheets and trainers read.

    Example: holdfast export runs --format trl-dpo -o pairs.jsonl

    Example: holdfast export runs --format review --limit 100 -o review.csv
    """
    from holdfast.results import turns_table
    from holdfast.transcripts import export as exported
    from holdfast.transcripts import write_table

    if as_json and output is None:
        raise InputError(
            "standard output cannot hold both", field="--json", remedy="Give -o FILE beside it"
        )
    if format == "parquet" and output is None and sys.stdout.isatty():
        raise InputError(
            "Parquet cannot be shown on a terminal", field="--format", remedy="Give -o FILE"
        )
    found = exported(turns_table(sources), format, limit)
    with whole_file(output) as file:
        if isinstance(found.content, Iterator):
            file.writelines(found.content)
        else:
            # polars has an error of its own for a reader that has gone away
            whole = BytesIO() if output is None else file
            write_table(found.content, format, whole)
            if isinstance(whole, BytesIO):
                file.write(whole.getbuffer())
    for line in _told(found, format, output):
        sys.stderr.write(f"{line}\n")
    if as_json:
        counts = {
            "format": format,
            "file": output,
            "turns": found.turns,
            f"{found.noun}s_written": found.count,
            "left_out": dict(found.left_out),
            "origins": dict(found.origins),
            "notes": list(found.notes),
        }
        sys.stdout.write(f"{json.dumps(counts)}\n")


def _told(found: "Export", format: str, output: str | None) -> Iterator[str]:
    """What was written and what was not, line by line."""
    written = f"{format}: {counted(found.count, found.noun)}"
    yield f"{written} of {counted(found.turns, 'turn')}{f', in {output}' if output else ''}"
    if found.left_out:
        reasons = "; ".join(f"{n} {reason}" for reason, n in found.left_out.items())
        yield f"Turns left out: {reasons}."
    yield from found.notes
    simulated, imported = found.origins.get("simulated", 0), found.origins.get("imported", 0)
    if simulated:
        yield f"SIMULATED replies, of no real model: {counted(simulated, 'turn')}."
    if imported:
        yield f"IMPORTED, not asked by holdfast: {counted(imported, 'turn')}."
