"""The application and its commands. Nothing slow is imported before a command is at work."""

import sys
from typing import Annotated, Any

import typer

from holdfast.errors import InputError

from . import (
    compare,
    demo,
    exporting,
    gate,
    importing,
    medfuzz,
    plan,
    power,
    prepare,
    questions,
    report,
    reread,
    run,
    table,
)

app = typer.Typer(
    name="holdfast",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        typer.echo(f"holdfast {version('holdfast')}")
        raise typer.Exit


@app.callback()
def _holdfast(
    show_version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Does a medical language model hold fast? Ask, challenge, measure."""


app.command("demo")(demo.demo)
app.command("run")(run.run)
app.command("plan")(plan.plan)
app.command("power")(power.power)
app.command("table")(table.table)
app.command("report")(report.report)
app.command("compare")(compare.compare)
app.command("gate")(gate.gate)
app.command("reread")(reread.reread)
app.command("import")(importing.import_)
app.command("export")(exporting.export)
app.add_typer(questions.app, name="questions")
app.add_typer(prepare.contexts, name="contexts")
app.add_typer(prepare.distractors, name="distractors")
app.add_typer(prepare.label, name="label")
app.add_typer(medfuzz.medfuzz, name="medfuzz")

_UsageError: Any = typer.BadParameter.__base__
"""What the framework raises; where it lives differs between its versions."""


def called() -> int:
    """Run the command that the user has called; its exit code.

    Raises:
        InputError: bad usage, in one line like all bad input.
    """
    try:
        return app(standalone_mode=False) or 0
    except _UsageError as error:
        told = error.format_message()
        if "\n" in told:  # no arguments at all: it is the help
            sys.stderr.write(f"{told}\n")
            return 2
        where = error.ctx.command_path if error.ctx else "holdfast"
        raise InputError(told.rstrip("."), remedy=f"See '{where} --help'") from error
