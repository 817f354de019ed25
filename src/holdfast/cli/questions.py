"""``holdfast questions``: look a question file over before a study depends on it."""

import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.errors import InputError, counted

from . import options

if TYPE_CHECKING:
    from holdfast.questions import Question

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
    alike = list(_alike(found.questions))
    if as_json:
        report = {
            "source": source,
            "questions": len(found.questions),
            "problems": [
                *(problem.__dict__ for problem in problems),
                *({"row": None, "field": "id", "message": told} for told in alike),
            ],
            "left_out": [problem.__dict__ for problem in found.left_out],
        }
        sys.stdout.write(json.dumps(report, indent=2, ensure_ascii=False) + "\n")
    for problem in problems:
        sys.stderr.write(f"{InputError(problem.message, source, problem.row, problem.field)}\n")
    for told in alike:
        sys.stderr.write(f"{InputError(told, source, field='id')}\n")
    for problem in found.left_out:
        left_out = InputError(problem.message, source, problem.row, problem.field)
        sys.stderr.write(f"left out: {left_out}\n")
    if problems or alike:
        rows = len({problem.row for problem in problems}) + len(alike)
        raise InputError(counted(rows, "bad row"), source, remedy="Mend them and check again")
    if not found.questions:
        raise InputError("holds no question", source, remedy="Give a file with at least one row")
    if not as_json:
        for line in _shorter(found.questions):
            sys.stderr.write(f"{source}: {line}\n")
        counts = sorted({len(question.options) for question in found.questions})
        print(
            f"{source}: {counted(len(found.questions), 'question')} with "
            f"{' or '.join(map(str, counts))} options"
            + (f", {len(found.left_out)} left out" if found.left_out else ", every row is sound")
        )


def _alike(questions: "Sequence[Question]") -> Iterator[str]:
    """Questions that stand in a file under two ids."""
    first: dict[str, str] = {}
    for question in questions:
        before = first.setdefault(question.content_hash, question.id)
        if before != question.id:
            yield f"'{question.id}' asks the same question as '{before}'"


def _shorter(questions: "Sequence[Question]") -> Iterator[str]:
    """Questions with fewer options than most: a last cell may be empty by mistake."""
    most, _ = Counter(len(question.options) for question in questions).most_common(1)[0]
    fewer = [question.id for question in questions if len(question.options) < most]
    if fewer and len(fewer) * 10 <= len(questions):
        shown = ", ".join(fewer[:5]) + (", …" if len(fewer) > 5 else "")
        yield (
            f"{counted(len(fewer), 'question')} with fewer than {most} options ({shown}): see that "
            "no cell is empty by mistake"
        )
