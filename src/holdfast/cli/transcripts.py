"""Commands ``holdfast import`` (transcripts from elsewhere) and ``export`` (turns)."""

import json
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from io import BytesIO
from typing import TYPE_CHECKING, Annotated, Any

import typer

import holdfast
from holdfast.errors import InputError, counted, printable, unwritable
from holdfast.files import named_path, whole_file

from . import options

if TYPE_CHECKING:
    import polars as pl

    from holdfast.transcripts.export import Export
    from holdfast.transcripts.importing import Imported

FORMATS = ("parquet", "csv", "openai-chat", "trl-sft", "trl-dpo", "review", "audit", "hub")
"""Export formats, for the help text. A test checks the list."""
MAPPINGS = (
    "inspect-evals", "lm-evaluation-harness", "supersycophantic", "supersycophantic-orders",
    "supersycophantic-temporal",
)  # fmt: skip
"""Bundled mappings, for the help text. A test checks the list."""


def import_(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE", help="JSONL, CSV, TSV, Parquet, JSON, an Inspect log, or a folder."
        ),
    ],
    mapping: Annotated[
        str | None,
        typer.Option(
            metavar="TOML",
            help=f"Column mapping: a file, or one of {', '.join(MAPPINGS)}. Holdfast exports "
            "need none.",
        ),
    ] = None,
    questions: Annotated[
        str | None,
        typer.Option(help="Questions to join: a set from 'list questions', a file, hf:NAME@REV."),
    ] = None,
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE", help="File to write.")
    ] = "turns.parquet",
    audit: Annotated[
        str | None,
        typer.Option(
            metavar="LOGDIR",
            help="Read FILE as the labelled audit sheet of this log directory or turns table.",
        ),
    ] = None,
    skip_bad: Annotated[
        bool, typer.Option("--skip-bad", help="Skip rows that cannot be read, and count them.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the counts as JSON.")] = False,
) -> None:
    """Convert transcripts from elsewhere into a turns table.

    Example: holdfast import dialogues.csv --mapping duet.toml -o duet.parquet

    Example: holdfast import gpt-4.jsonl --mapping biasmedqa.toml --questions us_5_options.jsonl

    Example: holdfast import OUTPUT_PATH --mapping lm-evaluation-harness --skip-bad

    Example: holdfast import audit.csv --audit runs
    """
    from holdfast.questions.loading import load_questions
    from holdfast.transcripts.importing import cores, import_transcripts
    from holdfast.transcripts.mapping import read_mapping
    from holdfast.transcripts.reimport import is_exported

    source = named_path(file)
    if audit is not None:
        if mapping or questions:
            field = "--mapping" if mapping else "--questions"
            raise InputError(
                "cannot be combined with --audit",
                field=field,
                remedy=f"Remove {field} or --audit",
            )
        _import_labels(file, audit, as_json=as_json)
        return
    if mapping is None:
        if not is_exported(source):
            raise InputError(
                "needs a mapping of its columns",
                file,
                remedy="Give --mapping TOML. See docs/guides/transcripts.md for examples",
            )
        if questions is not None:
            raise InputError(
                "holdfast's own exports include the questions",
                field="--questions",
                remedy="Remove --questions",
            )
        _report_import(import_transcripts(source), file, output, as_json=as_json)
        return
    column_mapping = read_mapping(named_path(mapping))
    question_set = questions and load_questions(
        questions, column_mapping.fields, by_letter=True, skip_bad=skip_bad
    )
    import_result = import_transcripts(
        source, column_mapping, question_set or None, processes=cores(), skip_bad=skip_bad
    )
    if question_set and question_set.left_out:
        import_result.passed_over[f"question not in {question_set.name}"] += len(
            question_set.left_out
        )
    _report_import(import_result, file, output, as_json=as_json)


def _import_labels(file: str, source: str, *, as_json: bool) -> None:
    """Store the labels of an audit sheet next to the logs and print their number."""
    from holdfast.results.turns import turns_table, write_audit
    from holdfast.running.log_dir import lock_log_dir
    from holdfast.transcripts.audit_sheet import read_audit

    if source.endswith(".eval"):
        raise InputError(
            "is a single log", source, field="--audit", remedy="Give the log directory"
        )
    labels = read_audit(file, turns_table([source]))
    try:
        with nullcontext() if source.endswith(".parquet") else lock_log_dir(source):
            path = write_audit(labels.labels, source)
    except OSError as error:
        raise unwritable(source, error, "--audit LOGDIR") from error
    counts = {"labels": path, "labelled": labels.labels.height, "blank": labels.blank}
    sys.stderr.write(
        f"{printable(file)}: {counted(labels.labels.height, 'row')} labelled, {labels.blank} left "
        f"blank\nlabels: {printable(path)}\n"
    )
    if as_json:
        sys.stdout.write(json.dumps(counts, indent=2) + "\n")


def _report_import(import_result: "Imported", file: str, output: str, *, as_json: bool) -> None:
    """Write the turns table and print its counts."""
    _write(import_result, output)
    turns = import_result.turns
    statuses = dict(turns["status"].value_counts(sort=True).rows())
    errors = statuses.get("error", 0)
    outcome: dict[str, Any] = {
        "turns": output,
        "rows": turns.height,
        "conversations": import_result.conversations,
        "questions": turns["question"].n_unique(),
        "models": turns["model"].unique(maintain_order=True).to_list(),
        "datasets": turns["dataset"].unique(maintain_order=True).to_list(),
        "runs": turns["run"].unique(maintain_order=True).to_list(),
        "unread": turns.height - statuses.get("parsed", 0) - errors,
        "failed": errors,
        "passed_over": dict(sorted(import_result.passed_over.items())),
    }
    parts = [
        f"{file}: {counted(outcome['conversations'], 'conversation')}, "
        f"{counted(turns.height, 'turn')} of {counted(len(outcome['models']), 'model')} "
        f"({', '.join(outcome['models'][:5])}{', …' if len(outcome['models']) > 5 else ''})",
        f"unparsed replies: {outcome['unread']}; missing replies: {errors}",
        *(f"not in the table: {n} × {kind}" for kind, n in outcome["passed_over"].items()),
        f"turns table: {output}",
    ]
    for line in parts:
        sys.stderr.write(f"{printable(line)}\n")
    if as_json:
        sys.stdout.write(json.dumps(outcome, indent=2) + "\n")


def _write(import_result: "Imported", output: str) -> None:
    from holdfast.parquet import write_parquet

    with whole_file(str(named_path(output))) as file:
        write_parquet(import_result.turns, file)


def export(
    sources: options.Sources,
    format: Annotated[str, typer.Option(help=f"One of {', '.join(FORMATS)}.")],
    output: options.Output = None,
    limit: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=options.MOST_COUNT,
            help="Maximum number of rows, conversations or pairs (review: 50, audit: 200).",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the audit sample.")] = 0,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the counts as JSON; needs -o FILE.")
    ] = False,
) -> None:
    """Export turns as training data, chats, or sheets for people.

    Example: holdfast export runs --format trl-dpo -o pairs.jsonl

    Example: holdfast export runs --format review --limit 100 -o review.csv

    Example: holdfast export runs --format audit --limit 300 -o audit.csv

    Example: holdfast export runs --format hub -o my-data-set
    """
    from holdfast.transcripts.export import export as exported

    if format == "hub" and output is None:
        raise InputError(
            "hub writes a folder, which needs a name", field="--format", remedy="Give -o FOLDER"
        )
    if as_json and output is None:
        raise InputError(
            "standard output cannot hold both the export and the counts",
            field="--json",
            remedy="Also give -o FILE",
        )
    if format == "parquet" and output is None and sys.stdout.isatty():
        raise InputError(
            "Parquet cannot be shown on a terminal", field="--format", remedy="Give -o FILE"
        )
    if format == "audit" and len(sources) > 1:
        remedy = (
            "Export one sheet for each log directory, because labels are stored in the log "
            "directory they came from"
        )
        raise InputError("audit accepts one log directory", field="--format", remedy=remedy)
    export_result = exported(holdfast.read_turns(sources), format, limit, seed)
    _write_export(export_result.content, format, output)
    for line in _describe_export(export_result, format, output):
        sys.stderr.write(f"{line}\n")
    if as_json:
        counts = {
            "format": format,
            "file": output,
            "turns": export_result.turns,
            f"{export_result.noun}s_written": export_result.count,
            "left_out": dict(export_result.left_out),
            "origins": dict(export_result.origins),
            "notes": list(export_result.notes),
        }
        sys.stdout.write(f"{json.dumps(counts)}\n")


def _write_export(
    content: "Iterator[bytes] | pl.DataFrame", format: str, output: str | None
) -> None:
    """Write an export to a file, to a folder, or to standard output."""
    from holdfast.transcripts.export import write_table
    from holdfast.transcripts.hub import write_hub

    if format == "hub" and output and not isinstance(content, Iterator):
        write_hub(content, output)
        return
    with whole_file(output) as file:
        if isinstance(content, Iterator):
            file.writelines(content)
        else:
            # polars would turn a closed pipe into another error than BrokenPipeError
            whole = BytesIO() if output is None else file
            write_table(content, format, whole)
            if isinstance(whole, BytesIO):
                file.write(whole.getbuffer())


def _describe_export(export_result: "Export", format: str, output: str | None) -> Iterator[str]:
    """Yield lines on written turns and skipped turns."""
    summary = f"{format}: {counted(export_result.count, export_result.noun)}"
    yield f"{summary} of {counted(export_result.turns, 'turn')}{f', in {output}' if output else ''}"
    if export_result.left_out:
        reasons = "; ".join(f"{n} {reason}" for reason, n in export_result.left_out.items())
        yield f"Turns skipped: {reasons}."
    yield from export_result.notes
    simulated_count, imported_count = (
        export_result.origins.get("simulated", 0),
        export_result.origins.get("imported", 0),
    )
    if simulated_count:
        yield f"SIMULATED, not a measurement of a model: {counted(simulated_count, 'turn')}."
    if imported_count:
        yield f"IMPORTED, not collected by holdfast: {counted(imported_count, 'turn')}."
