"""``holdfast questions``: look a question file over before a study depends on it."""

import json
import sys
from typing import Annotated

import typer

from holdfast.errors import InputError, counted

from . import options

app = typer.Typer(help="Prepare question files.", no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def _questions() -> None:
    """Prepare question files."""


@app.command("check")
def check(
    source: Annotated[
        str, typer.Argument(metavar="FILE", help="A file, bank, medqa, medmcqa or hf:NAME@REVISION")
    ],
    fields: options.FieldMap = None,
    as_json: options.AsJson = False,
) -> None:
    """Report every bad row at once.

    Example: holdfast questions check my.csv --fields stem=vignette,gold=key
    """
    from holdfast.questions import Fields, check_questions

    found, problems = check_questions(source, Fields.parse(fields) if fields else None)
    if as_json:
        report = {
            "source": source,
            "questions": len(found.questions),
            "problems": [problem.__dict__ for problem in problems],
            "left_out": [problem.__dict__ for problem in found.left_out],
        }
        sys.stdout.write(json.dumps(report, indent=2, ensure_ascii=False) + "\n")
    for problem in problems:
        sys.stderr.write(f"{InputError(problem.message, source, problem.row, problem.field)}\n")
    for problem in found.left_out:
        left_out = InputError(problem.message, source, problem.row, problem.field)
        sys.stderr.write(f"left out: {left_out}\n")
    if problems:
        rows = len({problem.row for problem in problems})
        raise InputError(counted(rows, "bad row"), source, remedy="Mend them and check again")
    if not found.questions:
        raise InputError("holds no question", source, remedy="Give a file with at least one row")
    if not as_json:
        options = sorted({len(question.options) for question in found.questions})
        print(
            f"{source}: {counted(len(found.questions), 'question')} with "
            f"{' or '.join(map(str, options))} options"
            + (f", {len(found.left_out)} left out" if found.left_out else ", every row is sound")
        )
