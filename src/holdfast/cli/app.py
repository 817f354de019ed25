"""The application and its commands."""

import typer

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
    help="Does a medical language model hold fast? Ask, challenge, measure.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
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
