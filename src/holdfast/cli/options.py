"""Parameters of commands. Nothing here is slow to import, so that help is not."""

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
    MOST,
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
    """The value, unless it is no number or without end."""
    if value is not None and not math.isfinite(value):
        raise typer.BadParameter(f"{value} is not a finite number")
    return value


def of_run(name: str, **other: Any) -> inspect.Parameter:
    """The parameter of an option of runs, with another default or help where given."""
    typed, option = (options_of(OtherOptions) | options_of(RunOptions))[name]
    typed = option.typed or typed

    def checked(value: Any) -> Any:
        if refusal := option.refusal(finite(value) if isinstance(value, float) else value):
            raise typer.BadParameter(refusal)
        return value

    taken = typer.Option(
        option.flag or f"--{name.replace('_', '-')}",
        # what only keeps a number inside its type is checked, and not worth a word in the help
        min=None if abs(option.min or 0) >= MOST else option.min,
        max=None if abs(option.max or 0) >= MOST else option.max,
        callback=checked if {int, float} & {typed, *get_args(typed)} else None,
        help=other.get("help", option.help),
        show_default=other.get("show_default", True),
        hidden=option.hidden,
        rich_help_panel=option.group,
    )
    return keyword(name, other.get("default", option.default), Annotated[typed, taken])


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


class Grouped(TyperCommand):
    """A command whose help has its options under headings."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments, then the options group by group."""
        groups: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            if (record := param.get_help_record(ctx)) is not None:
                of_arguments = param.param_type_name == "argument"
                panel = getattr(param, "rich_help_panel", None) or OUTPUT
                groups.setdefault("Arguments" if of_arguments else panel, []).append(record)
        for heading, records in groups.items():
            with formatter.section(heading):
                formatter.write_dl(records)


WHICH = "bank, a set of 'list questions', a file, or hf:NAME@REVISION."
Questions = Annotated[str, typer.Option("--questions", help=WHICH)]
QuestionSets = Annotated[list[str], typer.Option("--questions", help=f"{WHICH} Repeatable.")]
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
    "MODEL",
    "MOST",
    "OUTPUT",
    "QUESTIONS",
    "RUN",
    "WHICH",
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
