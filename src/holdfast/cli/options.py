"""Parameters of commands. This module imports nothing slow, which keeps --help fast."""

import inspect
import json
import math
import sys
from collections.abc import Callable
from typing import Annotated, Any, TypeVar, get_args

import typer
from typer.core import TyperCommand

from holdfast.running.provider_options import (
    MODEL,
    MOST_COUNT,
    OUTPUT,
    QUESTIONS,
    OtherOptions,
    RunOptions,
    options_of,
)

_Command = TypeVar("_Command", bound=Callable[..., None])

RUN = tuple(RunOptions.__annotations__)
"""Options of runs, in the order of their help."""


def finite(value: float | None) -> float | None:
    """Return the value, and refuse NaN and infinity."""
    if value is not None and not math.isfinite(value):
        raise typer.BadParameter(f"{value} is not a finite number")
    return value


def of_run(name: str, **changes: Any) -> inspect.Parameter:
    """Return the parameter of a run option, with a changed default or help if given."""
    annotation, option = (options_of(OtherOptions) | options_of(RunOptions))[name]
    annotation = option.value_type or annotation

    def checked(value: Any) -> Any:
        if refusal := option.refusal(finite(value) if isinstance(value, float) else value):
            raise typer.BadParameter(refusal)
        return value

    typer_option = typer.Option(
        option.flag or f"--{name.replace('_', '-')}",
        # limits that only guard the integer type are checked but would clutter the help
        min=None if abs(option.min or 0) >= MOST_COUNT else option.min,
        max=None if abs(option.max or 0) >= MOST_COUNT else option.max,
        callback=checked if {int, float} & {annotation, *get_args(annotation)} else None,
        help=changes.get("help", option.help),
        show_default=changes.get("show_default", True),
        hidden=option.is_hidden,
        rich_help_panel=option.group,
    )
    return keyword(
        name, changes.get("default", option.default), Annotated[annotation, typer_option]
    )


def print_json(content: Any) -> None:
    """Print content as JSON to standard output."""
    sys.stdout.write(json.dumps(content, indent=2, ensure_ascii=False) + "\n")


def keyword(name: str, default: Any, annotation: Any) -> inspect.Parameter:
    """Return a keyword-only parameter of a command."""
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation
    )


def taking(*names: str | inspect.Parameter) -> Callable[[_Command], _Command]:
    """Give a command the named parameters, its own and those of runs, in this order."""

    def of(command: _Command) -> _Command:
        signature = inspect.signature(command).parameters
        parameters = []
        for name in names:
            if isinstance(name, str):
                name = signature[name] if name in signature else of_run(name)
            parameters.append(keyword(name.name, name.default, name.annotation))
        command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return command

    return of


class Grouped(TyperCommand):
    """Command whose help lists its options under headings."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments first, then each group of options."""
        groups: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            if (record := param.get_help_record(ctx)) is not None:
                of_arguments = param.param_type_name == "argument"
                panel = getattr(param, "rich_help_panel", None) or OUTPUT
                groups.setdefault("Arguments" if of_arguments else panel, []).append(record)
        for heading, records in groups.items():
            with formatter.section(heading):
                formatter.write_dl(records)


QUESTION_SOURCES = "bank, a set from 'list questions', a file, or hf:NAME@REVISION."
Questions = Annotated[str, typer.Option("--questions", help=QUESTION_SOURCES)]
QuestionSets = Annotated[
    list[str], typer.Option("--questions", help=f"{QUESTION_SOURCES} Repeatable.")
]
FieldMap = Annotated[
    str | None,
    typer.Option(
        "--fields", help="Column names, if unrecognised: stem=...,options=a|b|c|d,gold=...,step=..."
    ),
]
Sources = Annotated[
    list[str], typer.Argument(metavar="LOGDIR", help="Log directories, logs or turns tables.")
]
Output = Annotated[
    str | None,
    typer.Option(
        "--output", "-o", metavar="FILE", help="Write to this file instead of standard output."
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]

__all__ = [
    "MODEL",
    "MOST_COUNT",
    "OUTPUT",
    "QUESTIONS",
    "QUESTION_SOURCES",
    "RUN",
    "AsJson",
    "FieldMap",
    "Grouped",
    "Output",
    "QuestionSets",
    "Questions",
    "Sources",
    "finite",
    "keyword",
    "of_run",
    "print_json",
    "taking",
]
