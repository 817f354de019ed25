"""``holdfast plan``: what a study will take, before a model is called."""

import sys
from collections.abc import Sequence
from typing import Annotated, Any

import polars as pl
import typer

from holdfast.challenges import GENERATE
from holdfast.errors import counted
from holdfast.protocols import Estimate, Study, opening_estimate, reasons
from holdfast.questions import Question

from . import settings


def plan(
    protocols: settings.Protocols,
    model: settings.Models = [],  # noqa: B006 (Typer copies it)
    questions: settings.QuestionSets = ["bank"],  # noqa: B006
    contexts: settings.ContextSource = "auto",
    distractors: settings.Distractors = "auto",
    generator: settings.Generator = None,
    model_role: settings.Roles = None,
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
    ] = 400,
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
    roles = settings.role_names(model_role or [], generator)
    settings.checked_names(list(roles.values()) or ["simulated/sycophant"])
    common = settings.generating(protocols, common, "generator" in roles)
    studies = settings.planned(protocols, questions, common, task_args or [])
    settings.check_roles(studies, roles)
    models = settings.checked_names(model)
    rows: list[dict[str, Any]] = []

    def add(name: str, by: str, study: Study, asked: int, total: Estimate, *, exact: bool) -> None:
        price = settings.price_of(by)
        cost = (total.input_tokens * price.input + total.output_tokens * price.output) / 1e6 \
            if price else None  # fmt: skip
        rows.append(
            {
                "protocol": name,
                "model": by,
                "dataset": study.questions.name,
                "questions": asked,
                "generations": total.generations,
                "at_least": total.least,
                "exact": exact,
                "input_tokens": total.input_tokens,
                "output_tokens": total.output_tokens,
                "cost": cost,
            }
        )

    opened: set[str] = set()
    for planned in studies:
        study = planned.study
        for path, why in reasons(study, limit).items():
            for reason, n in why.items():
                sys.stderr.write(f"{path}: left out for {counted(n, 'question')} ({reason})\n")
        asked = study.questions.first(limit).questions
        exact = study.exact
        for setting, name in planned.protocol.generated.items():
            if planned.args.get(setting) == GENERATE and study.needs(setting):
                making = settings.preparation(name, planned.args).study
                needed = _total(making, asked, reply_tokens)
                add(name, roles["generator"], making, len(asked), needed, exact=False)
                exact = False  # what cannot be generated is left out
        total = _total(study, asked, reply_tokens)
        # what an earlier protocol of this command asks too is asked once
        openings = {opening for q in asked if (opening := study.opening(q)) is not None}
        for again in openings & opened:
            total -= opening_estimate(again, reply_tokens)
        opened |= openings
        times = epochs or study.epochs
        for each in models:
            add(planned.name, each, study, len(asked), total.times(times), exact=exact)
            for role, needed in _helped(study, asked, reply_tokens).items():
                if role in roles and needed.generations:
                    add(f"{planned.name}: {role}", roles[role], study, len(asked),
                        needed.times(times), exact=False)  # fmt: skip
    table = pl.DataFrame(rows, schema_overrides={"cost": pl.Float64})
    sys.stdout.write(render(table, "json" if as_json else "md"))


def _total(study: Study, questions: Sequence[Question], reply_tokens: int) -> Estimate:
    return sum((study.estimate(question, reply_tokens) for question in questions), Estimate())


def _helped(study: Study, questions: Sequence[Question], reply_tokens: int) -> dict[str, Estimate]:
    totals: dict[str, Estimate] = {}
    for question in questions:
        for role, needed in study.helped(question, reply_tokens).items():
            totals[role] = totals.get(role, Estimate()) + needed
    return totals
