"""``holdfast power``: how many questions a difference needs."""

import json
from typing import Annotated

import typer

from holdfast.errors import InputError, counted

from . import options


def power(
    baseline: Annotated[
        float,
        typer.Option(
            metavar="PERCENT", callback=options.finite, help="Accuracy of the first answers."
        ),
    ],
    difference: Annotated[
        float,
        typer.Option(
            metavar="POINTS",
            callback=options.finite,
            help="Drop to be found, in percentage points.",
        ),
    ],
    discordant: Annotated[
        float | None,
        typer.Option(
            metavar="PERCENT",
            callback=options.finite,
            help="Questions right on one side only; as of two sides that err independently if not "
            "given.",
        ),
    ] = None,
    power: Annotated[float, typer.Option(help="Chance of finding the drop.")] = 0.8,
    alpha: Annotated[float, typer.Option(help="Chance of finding one where there is none.")] = 0.05,
    tests: Annotated[
        int, typer.Option(min=1, max=1_000_000, help="Number of tests, for the correction.")
    ] = 1,
    as_json: options.AsJson = False,
) -> None:
    """Count the questions that a drop of so many points needs.

    For McNemar's exact test of two answers to the same questions.

    Example: holdfast power --baseline 90 --difference 5 --discordant 20
    """
    from holdfast.results import questions_needed

    for option, percent in (("--baseline", baseline), ("--discordant", discordant)):
        if percent is not None and not 0 <= percent <= 100:
            raise InputError(f"{percent:g} is no percentage", field=option, remedy="Give 0 to 100")
        if percent is not None and 0 < percent <= 1:
            raise InputError(
                f"{percent:g} is less than one percent of the questions",
                field=option,
                remedy=f"Give percent: {option} {100 * percent:g}",
            )
    of_all = None if discordant is None else discordant / 100
    n = questions_needed(baseline / 100, difference / 100, of_all, power, alpha, tests)
    if as_json:
        typer.echo(json.dumps({"questions": n}))
        return
    way = (
        f"a {'drop' if difference > 0 else 'rise'} from {baseline:g}% to {baseline - difference:g}%"
    )
    differ = f"{discordant:g}%" if discordant is not None else "as many as by chance"
    typer.echo(
        f"{n:,} questions: so many find {way} with a chance of {power:.0%} "
        f"(McNemar's exact test, {counted(tests, 'test')}, alpha {alpha:g}; right on one side "
        f"only: {differ})."
    )
