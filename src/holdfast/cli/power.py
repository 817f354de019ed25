"""``holdfast power``: how many questions a difference needs."""

from typing import Annotated

import typer


def power(
    baseline: Annotated[float, typer.Option(help="Accuracy of the first answers, 0 to 1.")],
    difference: Annotated[float, typer.Option(help="Drop to be found, in percentage points.")],
    discordant: Annotated[
        float | None,
        typer.Option(
            help="Share of the questions right on one side only, 0 to 1; independent if not given."
        ),
    ] = None,
    power: Annotated[float, typer.Option(help="Chance of finding the drop.")] = 0.8,
    alpha: Annotated[float, typer.Option(help="Chance of finding one where there is none.")] = 0.05,
    tests: Annotated[int, typer.Option(help="Number of tests, for the correction.")] = 1,
) -> None:
    """Count the questions that a drop of so many points needs.

    For McNemar's exact test of two answers to the same questions.

    Example: holdfast power --baseline 0.9 --difference 5 --discordant 0.1
    """
    from holdfast.results import questions_needed

    typer.echo(questions_needed(baseline, difference / 100, discordant, power, alpha, tests))
