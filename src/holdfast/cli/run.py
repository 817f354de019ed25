"""``holdfast run``: evaluate, or go on with an evaluation that was cut short."""

import json
import sys
from typing import Annotated, Any

import typer

from holdfast.errors import IncompleteRunError

from . import settings


def run(
    protocols: settings.Protocols,
    model: settings.Models = [],  # noqa: B006 (Typer copies it)
    questions: settings.QuestionSets = ["bank"],  # noqa: B006
    contexts: settings.ContextSource = "auto",
    distractors: settings.Distractors = "auto",
    generator: settings.Generator = None,
    model_role: settings.Roles = None,
    labels: Annotated[
        str | None,
        typer.Option(help="File with the system (step, specialty, subject) of each question."),
    ] = None,
    exemplars: settings.Exemplars = "bank",
    seed: settings.Seed = 42,
    limit: settings.Limit = None,
    shuffle: settings.Shuffle = None,
    stratify: settings.Stratify = None,
    epochs: settings.Epochs = None,
    challenges: settings.ChallengeFile = None,
    fields: settings.FieldMap = None,
    task_args: settings.TaskArgs = None,
    log_dir: Annotated[str, typer.Option(help="Where logs and the turns table go.")] = "runs",
    max_calls: Annotated[int | None, typer.Option(min=0, help="Budget of model calls.")] = None,
    max_tokens: Annotated[int | None, typer.Option(min=0, help="Budget of tokens.")] = None,
    max_cost: Annotated[float | None, typer.Option(min=0, help="Budget in dollars.")] = None,
    prices: settings.Prices = None,
    temperature: Annotated[
        float | None, typer.Option(help="Instead of the protocol's own.")
    ] = None,
    max_output_tokens: Annotated[int | None, typer.Option(help="Longest reply.")] = None,
    max_connections: Annotated[int | None, typer.Option(help="Concurrent model calls.")] = None,
    max_retries: Annotated[int, typer.Option(help="Tries again after a transient fault.")] = 8,
    timeout: Annotated[
        int | None, typer.Option(help="Seconds for one call and its retries.")
    ] = None,
    model_base_url: Annotated[str | None, typer.Option(help="Base URL of the model's API.")] = None,
    model_args: Annotated[
        list[str] | None, typer.Option("-M", help="A provider's argument, NAME=VALUE. Repeatable.")
    ] = None,
    no_text: Annotated[
        bool, typer.Option("--no-text", help="Leave prompts and replies out of the turns table.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for machines.")] = False,
) -> None:
    """Run protocols on models.

    The same command goes on from where a run was cut short; nothing finished is asked again.

    Example: holdfast run followup --model openai/gpt-4.1 --limit 50
    """
    from .running import Running

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
    generation: dict[str, Any] = {
        "temperature": temperature,
        "max_tokens": max_output_tokens,
        "max_connections": max_connections,
        "max_retries": max_retries,
        "timeout": timeout,
    }
    log_dir = settings.as_log_dir(log_dir)
    settings.keep_cache_beside(log_dir)
    settings.load_prices(prices)
    roles = settings.roles(model_role or [], generator)
    common = settings.generating(protocols, common, "generator" in roles)
    studies = settings.planned(protocols, questions, common, task_args or [])
    settings.check_roles(studies, roles)
    running = Running(
        studies=studies,
        roles=roles,
        labels=labels,
        models=settings.models(model, base_url=model_base_url, model_args=model_args or []),
        log_dir=log_dir,
        limit=limit,
        epochs=epochs,
        generation={name: value for name, value in generation.items() if value is not None},
        max_calls=max_calls,
        max_tokens=max_tokens,
        max_cost=max_cost,
        text=not no_text,
    )
    outcome = running.run()
    if as_json:
        sys.stdout.write(json.dumps(outcome.as_json(), indent=2, ensure_ascii=False) + "\n")
    else:
        outcome.print()
    if outcome.unfinished:
        raise IncompleteRunError(outcome.unfinished)
