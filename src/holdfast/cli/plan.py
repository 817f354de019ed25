"""``holdfast plan``: what a study will take, before a model is called."""

import sys
from typing import Annotated

import polars as pl
import typer

from holdfast.errors import counted
from holdfast.protocols import reasons

from . import settings
from .estimating import REPLY_TOKENS, estimates


def plan(
    protocols: settings.Protocols,
    model: settings.Models = [],  # noqa: B006 (Typer copies it)
    questions: settings.QuestionSets = ["bank"],  # noqa: B006
    contexts: settings.ContextSource = "auto",
    distractors: settings.Distractors = "auto",
    generator: settings.Generator = None,
    model_role: settings.Roles = None,
    reader: settings.Reader = None,
    reader_all: settings.ReaderAll = False,
    exemplars: settings.Exemplars = "bank",
    seed: settings.Seed = 42,
    limit: settings.Limit = None,
    shuffle: settings.Shuffle = None,
    stratify: settings.Stratify = None,
    epochs: settings.Epochs = None,
    challenges: settings.ChallengeFile = None,
    fields: settings.FieldMap = None,
    task_args: settings.TaskArgs = None,
    prices: settings.Prices = None,
    reply_tokens: Annotated[
        int, typer.Option(min=1, help="Assumed length of a reply, in tokens.")
    ] = REPLY_TOKENS,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for machines.")] = False,
) -> None:
    """Count generations, tokens and dollars before a model is called.

    Generations are exact (bounds where a study adapts); tokens and cost are estimates.

    Example: holdfast plan followup --model openai/gpt-4.1 --prices prices.json
    """
    from holdfast.report import render

    common = {
        "contexts": contexts,
        "distractors": distractors,
        "exemplars": exemplars,
        "seed": seed,
        "shuffle": shuffle,
        "stratify": stratify,
        "challenges": challenges,
        "fields": fields,
    }
    settings.load_prices(prices)
    roles = settings.role_names(
        settings.role_arguments(model_role, generator, reader, reader_all=reader_all)
    )
    settings.checked_names(list(roles.values()) or ["simulated/sycophant"])
    common = settings.generating(protocols, common, "generator" in roles)
    studies = settings.planned(protocols, questions, common, task_args or [])
    settings.check_roles(studies, roles)
    models = settings.checked_names(model)
    settings.check_readers(roles, models)
    for each in studies:
        for path, why in reasons(each.study, limit).items():
            for reason, n in why.items():
                sys.stderr.write(f"{path}: left out for {counted(n, 'question')} ({reason})\n")
    rows = estimates(studies, models, roles, limit, epochs, reply_tokens)
    table = pl.DataFrame(rows, schema_overrides={"cost": pl.Float64})
    sys.stdout.write(render(table, "json" if as_json else "md"))
