"""``holdfast gate``: pass or fail for CI, decided on intervals."""

import json
import sys
from contextlib import ExitStack
from typing import Annotated

import typer

from holdfast.errors import InputError, printable

from .writing import whole_file

EXIT_CODES = {"pass": 0, "fail": 1, "undecided": 4}


def gate(
    sources: Annotated[
        list[str], typer.Argument(metavar="LOGDIR", help="Log dirs, logs or turns tables.")
    ],
    rules: Annotated[str, typer.Option(metavar="FILE", help="The rules, TOML.")],
    junit: Annotated[
        str | None, typer.Option(metavar="FILE", help="Where the verdicts go as JUnit XML.")
    ] = None,
    summary: Annotated[
        str | None,
        typer.Option(metavar="FILE.md", help="Where they go as Markdown, as for a CI summary."),
    ] = None,
    allow_unfinished: Annotated[
        bool,
        typer.Option("--allow-unfinished", help="Decide on runs that still lack questions."),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the verdicts as JSON.")] = False,
) -> None:
    """Hold rules against the intervals of a run. Exit code 0: all pass; 1: any fails; 4: undecided.

    Example: holdfast gate runs --rules gate.toml --junit gate.xml
    """
    from holdfast.report import gate_counts, gate_markdown, gate_rows, gate_sentence, junit_xml
    from holdfast.results import gate as decide
    from holdfast.results import (
        left_out,
        overall,
        read_rules,
        turns_table,
        undecided_where_unfinished,
        unfinished_runs,
    )

    read = read_rules(rules)
    turns = turns_table(sources, text=False)
    if not turns.height:
        raise InputError("holds no turns", ", ".join(sources), remedy="Run a protocol first")
    lacking = unfinished_runs(sources)
    try:
        verdicts = decide(turns, read)
    except InputError as error:
        notes = left_out(sources)
        if notes and error.remedy:
            error.remedy += f". {notes[0]}"
        raise
    sys.stderr.writelines(f"{printable(str(one))}\n" for one in lacking)
    if not allow_unfinished:
        verdicts = undecided_where_unfinished(verdicts, {one.run for one in lacking})
    written = {
        "--junit FILE": (junit, junit_xml(verdicts)),
        "--summary FILE": (summary, gate_markdown(verdicts, read.level)),
    }
    with ExitStack() as files:  # all of them or none
        for option, (name, text) in written.items():
            if name is not None:
                files.enter_context(whole_file(name, option)).write(text.encode())
    if as_json:
        told = {"outcome": overall(verdicts), "level": read.level, "verdicts": gate_rows(verdicts)}
        sys.stdout.write(json.dumps(told, indent=2, ensure_ascii=False) + "\n")
    else:
        lines = [*map(gate_sentence, verdicts), gate_counts(verdicts)]
        sys.stdout.write("".join(f"{line}\n" for line in lines))
    raise typer.Exit(EXIT_CODES[overall(verdicts)])
