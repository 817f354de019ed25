"""``holdfast run``: evaluate, or go on with an evaluation that was cut short."""

import json
import sys
from typing import Annotated

import typer

from holdfast.errors import IncompleteRunError, InputError, InterruptedRunError

from . import options


def run(
    protocols: options.Protocols,
    model: options.Models = [],  # noqa: B006 (Typer copies it)
    questions: options.QuestionSets = ["bank"],  # noqa: B006
    contexts: options.ContextSource = "auto",
    distractors: options.Distractors = "auto",
    generator: options.Generator = None,
    model_role: options.Roles = None,
    reader: options.Reader = None,
    reader_all: options.ReaderAll = False,
    labels: Annotated[
        str | None,
        typer.Option(help="File with the system (step, specialty, subject) of each question."),
    ] = None,
    exemplars: options.Exemplars = "bank",
    seed: options.Seed = 42,
    limit: options.Limit = None,
    shuffle: options.Shuffle = None,
    stratify: options.Stratify = None,
    epochs: options.Epochs = None,
    challenges: options.ChallengeFile = None,
    fields: options.FieldMap = None,
    task_args: options.TaskArgs = None,
    log_dir: Annotated[str, typer.Option(help="Where logs and the turns table go.")] = "runs",
    max_calls: options.MaxCalls = None,
    max_tokens: options.MaxTokens = None,
    max_cost: options.MaxCost = None,
    prices: options.Prices = None,
    temperature: Annotated[
        float | None,
        typer.Option(min=0, callback=options.finite, help="Instead of the protocol's own."),
    ] = None,
    max_output_tokens: Annotated[
        int | None, typer.Option(min=1, max=options.MOST, help="Longest reply.")
    ] = None,
    top_p: options.TopP = None,
    frequency_penalty: options.FrequencyPenalty = None,
    presence_penalty: options.PresencePenalty = None,
    reasoning_effort: options.ReasoningEffort = None,
    reasoning_tokens: options.ReasoningTokens = None,
    reasoning_summary: options.ReasoningSummary = None,
    verbosity: options.Verbosity = None,
    effort: options.Effort = None,
    cache_prompt: options.CachePrompt = None,
    batch: options.Batch = None,
    max_connections: options.MaxConnections = None,
    max_retries: options.MaxRetries = 8,
    timeout: Annotated[
        int | None,
        typer.Option(min=1, max=options.MOST, help="Seconds for one call and its retries."),
    ] = None,
    attempt_timeout: Annotated[
        int | None,
        typer.Option(
            min=1, max=options.MOST, help="Seconds for one attempt; 600 unless told otherwise."
        ),
    ] = None,
    model_base_url: options.ModelBaseUrl = None,
    model_args: options.ModelArgs = None,
    no_text: Annotated[
        bool, typer.Option("--no-text", help="Leave prompts and replies out of the turns table.")
    ] = False,
    shards: Annotated[
        int | None, typer.Option(min=1, max=1024, help="Processes that share the questions.")
    ] = None,
    ray: Annotated[
        str | None,
        typer.Option(help="Address of a Ray cluster for the shards; local starts one here."),
    ] = None,
    shard: Annotated[
        str | None, typer.Option(help="K/N: only the K-th of N shards, in this process.")
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Run protocols on models.

    The same command goes on from where a run was cut short; nothing finished is asked again.

    Example: holdfast run followup --model openai/gpt-4.1 --limit 50
    """
    given = dict(locals())
    from .resolving import resolved
    from .shard import Shard
    from .sharding import Sharding, put

    if shard and (shards or ray):
        raise InputError(
            "is one shard by hand, with --shards or --ray all are put",
            field="--shard",
            remedy="Leave one of them out",
        )
    if ray and not shards:
        raise InputError(
            "needs a number of shards", field="--ray", remedy="Give --shards N beside it"
        )
    if shard:
        report = put(resolved(given), Shard.parse(shard))
        report.print(as_json=as_json)
        if report.unfinished:
            raise IncompleteRunError(report.unfinished)
        return
    running = resolved(given)
    outcome = Sharding(running, given, shards, ray).run() if shards else running.run()
    if outcome.interrupted:
        if not as_json:
            outcome.print()
        raise InterruptedRunError
    if as_json:
        sys.stdout.write(json.dumps(outcome.as_json(), indent=2, ensure_ascii=False) + "\n")
    else:
        outcome.print()
    if outcome.unfinished:
        raise IncompleteRunError(outcome.unfinished)
