"""Parameters of commands. Nothing here is slow to import, so that help is not."""

import inspect
import json
import math
import sys
from collections.abc import Callable
from typing import Annotated, Any, TypeVar, get_args, get_type_hints

import typer

from holdfast.running.options import MOST, RunOptions

_Command = TypeVar("_Command", bound=Callable[..., None])

RUN = tuple(RunOptions.__annotations__)
"""Options of runs, in the order of their help."""


def finite(value: float | None) -> float | None:
    """The value, unless it is no number or without end."""
    if value is not None and not math.isfinite(value):
        raise typer.BadParameter(f"{value} is not a finite number")
    return value


def of_run(name: str, **other: Any) -> inspect.Parameter:
    """The parameter of an option of runs, with another default or help where given."""
    typed, option = get_args(get_type_hints(RunOptions, include_extras=True)[name])
    taken = typer.Option(
        option.flag or f"--{name.replace('_', '-')}",
        min=option.min,
        max=option.max,
        callback=finite if float in (typed, *get_args(typed)) else None,
        help=other.get("help", option.help),
    )
    annotation = Annotated[option.typed or typed, taken]  # type: ignore[valid-type]
    return keyword(name, other.get("default", option.default), annotation)


def print_json(told: Any) -> None:
    """Print for machines."""
    sys.stdout.write(json.dumps(told, indent=2, ensure_ascii=False) + "\n")


def keyword(name: str, default: Any, annotation: Any) -> inspect.Parameter:
    """A parameter of a command."""
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation
    )


def taking(*names: str | inspect.Parameter) -> Callable[[_Command], _Command]:
    """Give a command its own parameters and those of runs, in this order."""

    def of(command: _Command) -> _Command:
        own = inspect.signature(command).parameters
        taken = []
        for name in names:
            if isinstance(name, str):
                name = own[name] if name in own else of_run(name)
            taken.append(keyword(name.name, name.default, name.annotation))
        command.__signature__ = inspect.Signature(taken)  # type: ignore[attr-defined]
        command.__annotations__ = {one.name: one.annotation for one in taken}
        return command

    return of


_WHICH = "bank, a set of 'list questions', a file, or hf:NAME@REVISION."
Questions = Annotated[str, typer.Option("--questions", help=_WHICH)]
QuestionSets = Annotated[list[str], typer.Option("--questions", help=f"{_WHICH} Repeatable.")]
FieldMap = Annotated[
    str | None,
    typer.Option(
        "--fields", help="Columns not recognised: stem=...,options=a|b|c|d,gold=...,step=..."
    ),
]
Sources = Annotated[
    list[str], typer.Argument(metavar="LOGDIR", help="Log dirs, logs or turns tables.")
]
Output = Annotated[
    str | None,
    typer.Option(
        "--output", "-o", metavar="FILE", help="Write to this file instead of standard output."
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]

__all__ = [
    "MOST",
    "RUN",
    "AsJson",
    "FieldMap",
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
