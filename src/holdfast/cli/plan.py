"""``holdfast plan``: what a study will take, before a model is called."""

import sys
from typing import Annotated

import typer

from holdfast.errors import counted

from . import options


def plan(
    protocols: options.Protocols,
    model: options.Models = [],  # noqa: B006 (Typer copies it)
    questions: options.QuestionSets = ["bank"],  # noqa: B006
    contexts: options.ContextSource = "auto",
    distractors: options.Distractors = "auto",
    generator: options.Generator = None,
    model_role: options.Roles = None,
    reader: options.Reader = None,
    reader_all: options.ReaderAll = False,
    exemplars: options.Exemplars = "bank",
    seed: options.Seed = 42,
    limit: options.Limit = None,
    shuffle: options.Shuffle = None,
    stratify: options.Stratify = None,
    epochs: options.Epochs = None,
    challenges: options.ChallengeFile = None,
    fields: options.FieldMap = None,
    task_args: options.TaskArgs = None,
    prices: options.Prices = None,
    reply_tokens: Annotated[
        int, typer.Option(min=1, max=options.MOST, help="Assumed length of a reply, in tokens.")
    ] = options.REPLY_TOKENS,
    as_json: options.AsJson = False,
) -> None:
    """Count generations, tokens and dollars before a model is called.

    Generations are exact (bounds where a study adapts); tokens and cost are estimates.

    Example: holdfast plan followup --model openai/gpt-4.1 --prices prices.json
    """
    import polars as pl

    from holdfast.protocols import reasons
    from holdfast.report import render

    from . import settings
    from .estimating import estimates

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
