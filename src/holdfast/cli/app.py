"""Application with all commands. Slow imports wait until a command runs."""

import sys
from functools import cache
from typing import Annotated, Any

import typer
import typer.main

from holdfast.errors import InputError

from . import check, generate, listing, options, results, run, score, table, transcripts

app = typer.Typer(
    name="holdfast",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _version(is_requested: bool) -> None:
    if is_requested:
        from importlib.metadata import version

        typer.echo(f"holdfast {version('holdfast')}")
        raise typer.Exit


@app.callback()
def _holdfast(
    show_version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
    protocol_file: Annotated[
        list[str] | None,
        typer.Option(
            "--protocol",
            metavar="FILE.py",
            help="Load a protocol and its tables from this file. Repeatable.",
        ),
    ] = None,
) -> None:
    """Measure whether medical language models keep right answers under challenge."""
    if protocol_file:
        from holdfast.protocols.installed import load_protocol

        for file in protocol_file:
            load_protocol(file)


app.command("demo")(run.demo)
app.command("run", cls=options.Grouped)(run.run)
app.command("table")(table.table)
app.command("report")(results.report)
app.command("compare")(results.compare)
app.command("gate")(results.gate)
app.command("score")(score.score)
app.add_typer(generate.generate, name="generate")
app.command("check")(check.check)
app.add_typer(listing.listing, name="list")
app.command("import")(transcripts.import_)
app.command("export")(transcripts.export)
app.command("power")(results.power)

_UsageError: Any = typer.BadParameter.__base__
"""Base class of the framework's usage errors. Its module differs between versions."""


def _is_text(argument: str) -> bool:
    """Whether logs and tables can store an argument. A lone surrogate cannot be stored."""
    try:
        argument.encode()
    except UnicodeEncodeError:
        return False
    return True


@cache
def _command() -> Any:
    """Return the application as the parser's command, which takes as long to build as to parse."""
    return typer.main.get_command(app)


def called() -> int:
    """Run the command that the user has called and return its exit code."""
    for argument in sys.argv[1:]:
        if not _is_text(argument):
            raise InputError(
                f"'{argument[:200]}' is not UTF-8", remedy="Write the argument in UTF-8"
            )
    try:
        return _command()(standalone_mode=False) or 0
    except _UsageError as error:
        message = error.format_message()
        if "\n" in message:  # without arguments, the message is the help
            sys.stderr.write(f"{message}\n")
            return 2
        where = error.ctx.command_path if error.ctx else "holdfast"
        raise InputError(message.rstrip("."), remedy=f"See '{where} --help'") from error
