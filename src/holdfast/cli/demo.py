"""``holdfast demo``: the main job on the embedded default."""

from typing import Annotated

import typer

from . import settings

MODELS = ("simulated/claude-sonnet-4", "simulated/steadfast")


def demo(
    log_dir: Annotated[str, typer.Option(help="Where logs and the turns table go.")] = "runs/demo",
) -> None:
    """Run the bundled bank on two simulated models, without key or network.

    Example: holdfast demo
    """
    from .running import Running

    log_dir = settings.as_log_dir(log_dir)
    settings.keep_cache_beside(log_dir)
    running = Running(
        studies=settings.planned(
            ["single-turn", "followup", "stick-or-switch", "medfuzz"],
            ["bank"],
            {},
            ["chains=paper", "attempts=1"],
        ),
        roles=settings.roles(["attacker=simulated/attacker"], None),
        models=settings.models(MODELS),
        log_dir=log_dir,
    )
    running.run().print()
