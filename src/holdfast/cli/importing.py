"""``holdfast import``: transcripts made elsewhere as a turns table."""

import json
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from holdfast.errors import InputError, counted, printable
from holdfast.files import named_path

from .writing import whole_file

if TYPE_CHECKING:
    from holdfast.transcripts import Imported


def import_(
    file: Annotated[
        str,
        typer.Argument(metavar="FILE", help="JSONL, CSV, TSV, Parquet, JSON, or an Inspect log."),
    ],
    mapping: Annotated[
        str | None,
        typer.Option(
            metavar="TOML", help="Which column means what; not needed for holdfast's own exports."
        ),
    ] = None,
    questions: Annotated[
        str | None,
        typer.Option(help="Questions to join: bank, medqa, medmcqa, a file, or hf:NAME@REVISION."),
    ] = None,
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE", help="The turns table.")
    ] = "turns.parquet",
    as_json: Annotated[bool, typer.Option("--json", help="Print the counts as JSON.")] = False,
) -> None:
    """Read transcripts made elsewhere into a turns table, on which every table and gate works.

    Example: holdfast import dialogues.csv --mapping duet.toml -o duet.parquet

    Example: holdfast import gpt-4.jsonl --mapping biasmedqa.toml --questions us_5_options.jsonl
    """
    from holdfast.questions import load_questions
    from holdfast.transcripts import (
        cores,
        import_transcripts,
        is_exported,
        read_mapping,
    )

    source = named_path(file)
    if mapping is None:
        if not is_exported(source):
            raise InputError(
                "does not say what its columns mean",
                file,
                remedy="Give --mapping TOML; docs/importing.md has three to begin with",
            )
        if questions is not None:
            raise InputError(
                "an export of holdfast's own has its questions",
                field="--questions",
                remedy="Leave it out",
            )
        _done(import_transcripts(source), file, output, as_json=as_json)
        return
    read = read_mapping(named_path(mapping))
    asked = None if questions is None else load_questions(questions, read.fields)
    imported = import_transcripts(source, read, asked, processes=cores())
    _done(imported, file, output, as_json=as_json)


def _done(imported: "Imported", file: str, output: str, *, as_json: bool) -> None:
    """Write the table, then say what is in it."""
    _write(imported, output)
    turns = imported.turns
    statuses = dict(turns["status"].value_counts(sort=True).rows())
    failed = statuses.get("error", 0)
    outcome: dict[str, Any] = {
        "turns": output,
        "rows": turns.height,
        "conversations": imported.conversations,
        "questions": turns["question"].n_unique(),
        "models": turns["model"].unique(maintain_order=True).to_list(),
        "datasets": turns["dataset"].unique(maintain_order=True).to_list(),
        "runs": turns["run"].unique(maintain_order=True).to_list(),
        "unread": turns.height - statuses.get("parsed", 0) - failed,
        "failed": failed,
        "passed_over": dict(sorted(imported.passed.items())),
    }
    said = [
        f"{file}: {counted(outcome['conversations'], 'conversation')}, "
        f"{counted(turns.height, 'turn')} of {counted(len(outcome['models']), 'model')} "
        f"({', '.join(outcome['models'][:5])}{', …' if len(outcome['models']) > 5 else ''})",
        f"without a readable answer: {outcome['unread']}; without a reply: {failed}",
        *(f"not in the table: {n} × {kind}" for kind, n in outcome["passed_over"].items()),
        f"turns table: {output}",
    ]
    for line in said:
        sys.stderr.write(f"{printable(line)}\n")
    if as_json:
        sys.stdout.write(json.dumps(outcome, indent=2) + "\n")


def _write(imported: "Imported", output: str) -> None:
    with whole_file(str(named_path(output))) as file:
        imported.turns.write_parquet(file, compression="zstd", row_group_size=4096)
