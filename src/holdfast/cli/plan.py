"""``holdfast plan``: what a study will take, before a model is called."""

import sys
from typing import Annotated, Any

import polars as pl
import typer

from holdfast.errors import counted
from holdfast.protocols import Estimate

from . import settings


def plan(
    protocols: settings.Protocols,
    model: settings.Models = [],  # noqa: B006 (Typer copies it)
    questions: settings.Questions = "bank",
    contexts: settings.ContextSource = "auto",
    seed: settings.Seed = 42,
    limit: settings.Limit = None,
    epochs: settings.Epochs = 1,
    challenges: settings.ChallengeFile = None,
    fields: settings.FieldMap = None,
    task_args: settings.TaskArgs = None,
    prices: settings.Prices = None,
    reply_tokens: Annotated[
        int, typer.Option(min=1, help="Assumed length of a reply, in tokens.")
    ] = 400,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for machines.")] = False,
) -> None:
    """Count generations, tokens and dollars before a model is called.

    Generations are exact (bounds where a study adapts); tokens and cost are estimates.

    Example: holdfast plan followup --model openai/gpt-4.1 --prices prices.json
    """
    from holdfast.report import render

    common = {
        "questions": questions,
        "contexts": contexts,
        "seed": seed,
        "challenges": challenges,
        "fields": fields,
    }
    settings.load_prices(prices)
    studies = settings.planned(protocols, common, task_args or [])
    models = settings.checked_names(model)
    rows: list[dict[str, Any]] = []
    for study in studies:
        for path, reasons in study.left_out(limit).items():
            for reason, n in reasons.items():
                sys.stderr.write(f"{path}: left out for {counted(n, 'question')} ({reason})\n")
        asked = study.study.questions.first(limit).questions
        total = sum(
            (study.study.estimate(question, reply_tokens) for question in asked),
            start=Estimate(),
        ).times(epochs)
        for each in models:
            price = settings.price_of(each)
            cost = (
                (total.input_tokens * price.input + total.output_tokens * price.output) / 1e6
                if price
                else None
            )
            rows.append(
                {
                    "protocol": study.name,
                    "model": each,
                    "dataset": study.study.questions.name,
                    "questions": len(asked),
                    "generations": total.generations,
                    "exact": study.study.exact,
                    "input_tokens": total.input_tokens,
                    "output_tokens": total.output_tokens,
                    "cost": cost,
                }
            )
    table = pl.DataFrame(rows, schema_overrides={"cost": pl.Float64})
    sys.stdout.write(render(table, "json" if as_json else "md"))
