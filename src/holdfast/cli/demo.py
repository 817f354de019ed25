"""``holdfast demo``: the main job on the embedded default."""

import sys
from typing import Annotated

import typer

from .writing import write_whole

MODELS = ("simulated/claude-sonnet-4", "simulated/steadfast")


def demo(
    log_dir: Annotated[str, typer.Option(help="Where logs and the turns table go.")] = "runs/demo",
) -> None:
    """Run the bundled bank on two simulated models, without key or network.

    Example: holdfast demo
    """
    from holdfast.report import report_page
    from holdfast.results import plans, run_records, turns_table

    from . import settings
    from .running import Running

    log_dir = settings.as_log_dir(log_dir)
    running = Running(
        studies=settings.planned(
            ["single-turn", "followup", "stick-or-switch", "medfuzz"],
            ["bank"],
            {},
            ["chains=paper", "attempts=1"],
        ),
        roles=settings.roles(["attacker=simulated/attacker"]),
        models=settings.models(MODELS),
        log_dir=log_dir,
    )
    running.run().print()
    made = report_page(
        turns_table([log_dir]), run_records([log_dir]), plans([log_dir]), title="holdfast demo"
    )
    page = f"{log_dir}/report.html"
    write_whole(made.html, page)
    sys.stdout.write(f"Report: {page}\n")
