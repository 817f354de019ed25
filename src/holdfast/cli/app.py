"""The application: its commands, and the one place where errors become exit codes."""

import sys

import typer

from holdfast.errors import HoldfastError, IncompleteRunError

from . import demo, plan, questions, run, table

BAD_INPUT, INCOMPLETE, INTERRUPTED = 2, 3, 130

app = typer.Typer(
    name="holdfast",
    help="Does a medical language model hold fast? Ask, challenge, measure.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.command("demo")(demo.demo)
app.command("run")(run.run)
app.command("plan")(plan.plan)
app.command("table")(table.table)
app.add_typer(questions.app, name="questions")


def main() -> None:
    """Run the command line; exits with the codes that the documentation lists."""
    try:
        app()
    except IncompleteRunError as error:
        _end(error, INCOMPLETE)
    except HoldfastError as error:
        _end(error, BAD_INPUT)
    except KeyboardInterrupt:
        sys.stderr.write("holdfast: interrupted; the same command goes on from here\n")
        sys.exit(INTERRUPTED)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(0)


def _end(error: HoldfastError, code: int) -> None:
    sys.stderr.write(f"holdfast: {error}\n")
    sys.exit(code)
