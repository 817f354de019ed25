"""The application and its commands."""

import typer

from . import demo, plan, questions, run, table

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
