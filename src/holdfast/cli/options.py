"""Options that several commands have. Nothing here is slow to import, so that help is not."""

import math
from typing import Annotated

import typer

MOST = 2**31 - 1
"""The largest number that an option takes which counts something."""

LARGEST = 2**62
"""The largest number at all: tables and servers hold 64 bits, and replicates add to a seed."""


def finite(value: float | None) -> float | None:
    """The value, unless it is no number or without end."""
    if value is not None and not math.isfinite(value):
        raise typer.BadParameter(f"{value} is not a finite number")
    return value


Protocols = Annotated[
    list[str],
    typer.Argument(metavar="PROTOCOL", help="followup, single-turn, stick-or-switch, medfuzz."),
]
Models = Annotated[
    list[str],
    typer.Option("--model", help="Model as Inspect names it, such as openai/gpt-4.1. Repeatable."),
]
_WHICH = "bank, medqa, medmcqa, a file, or hf:NAME@REVISION."
Questions = Annotated[str, typer.Option("--questions", help=_WHICH)]
QuestionSets = Annotated[list[str], typer.Option("--questions", help=f"{_WHICH} Repeatable.")]
Shuffle = Annotated[
    int | None,
    typer.Option(
        "--shuffle",
        min=-LARGEST,
        max=LARGEST,
        help="Seed of a random order; with --limit N, a sample of N.",
    ),
]
Stratify = Annotated[
    str | None,
    typer.Option("--stratify", help="Label whose shares the sample keeps: step, system, ..."),
]
Exemplars = Annotated[
    str,
    typer.Option("--exemplars", help="Few-shot exemplars of stick-or-switch: bank, or a file."),
]
FieldMap = Annotated[
    str | None,
    typer.Option("--fields", help="Columns: stem=...,options=a|b|c|d,gold=...,gold_base=1"),
]
ContextSource = Annotated[
    str, typer.Option("--contexts", help="auto, bank, synthetic, generate, none, or a file.")
]
Distractors = Annotated[
    str,
    typer.Option(
        "--distractors", help="More plausible wrong options: auto, bank, none, or a file."
    ),
]
Generator = Annotated[
    str | None,
    typer.Option("--generator", help="Model that writes contexts and wrong options first."),
]
Roles = Annotated[
    list[str] | None,
    typer.Option(
        "--model-role",
        help="ROLE=MODEL or ROLE='{model: NAME, base_url: URL}': generator, attacker, judge, "
        "reader.",
    ),
]
Reader = Annotated[
    str | None,
    typer.Option("--reader", help="Model that reads replies in which the rules find no answer."),
]
ReaderAll = Annotated[
    bool, typer.Option("--reader-all", help="The reader reads every reply, and its answer counts.")
]
ChallengeFile = Annotated[
    str | None, typer.Option("--challenges", help="TOML file with techniques of your own.")
]
TaskArgs = Annotated[
    list[str] | None,
    typer.Option("-T", help="A protocol's setting, NAME=VALUE, such as chains=paper. Repeatable."),
]
Seed = Annotated[
    int, typer.Option("--seed", min=-LARGEST, max=LARGEST, help="Fixes every draw of the study.")
]
Limit = Annotated[
    int | None, typer.Option("--limit", min=1, max=MOST, help="First questions only.")
]
Epochs = Annotated[
    int | None,
    typer.Option(
        "--epochs", min=1, max=10_000, help="Times each question is asked; medfuzz 5, others 1."
    ),
]
Prices = Annotated[
    str | None,
    typer.Option("--prices", help="JSON or YAML file of prices in Inspect's --model-cost-config."),
]
ModelBaseUrl = Annotated[
    str | None, typer.Option("--model-base-url", help="Base URL of the model's API.")
]
ModelArgs = Annotated[
    list[str] | None, typer.Option("-M", help="A provider's argument, NAME=VALUE. Repeatable.")
]
MaxCalls = Annotated[
    int | None, typer.Option("--max-calls", min=0, max=LARGEST, help="Budget of model calls.")
]
MaxTokens = Annotated[
    int | None, typer.Option("--max-tokens", min=0, max=LARGEST, help="Budget of tokens.")
]
MaxCost = Annotated[
    float | None, typer.Option("--max-cost", min=0, callback=finite, help="Budget in dollars.")
]
MaxConnections = Annotated[
    int | None,
    typer.Option("--max-connections", min=1, max=100_000, help="Concurrent model calls."),
]
MaxRetries = Annotated[
    int, typer.Option("--max-retries", min=0, max=1000, help="Tries again after a transient fault.")
]
TopP = Annotated[
    float | None,
    typer.Option("--top-p", min=0, max=1, callback=finite, help="Nucleus sampling."),
]
FrequencyPenalty = Annotated[
    float | None,
    typer.Option("--frequency-penalty", min=-2, max=2, callback=finite, help="As Inspect has it."),
]
PresencePenalty = Annotated[
    float | None,
    typer.Option("--presence-penalty", min=-2, max=2, callback=finite, help="As Inspect has it."),
]
ReasoningEffort = Annotated[
    str | None,
    typer.Option("--reasoning-effort", help="none, minimal, low, medium, high, xhigh or max."),
]
ReasoningTokens = Annotated[
    int | None,
    typer.Option("--reasoning-tokens", min=0, max=MOST, help="Most tokens of hidden reasoning."),
]
ReasoningSummary = Annotated[
    str | None,
    typer.Option("--reasoning-summary", help="none, concise, detailed or auto."),
]
Verbosity = Annotated[str | None, typer.Option("--verbosity", help="low, medium or high.")]
Effort = Annotated[
    str | None, typer.Option("--effort", help="How thorough, where a model has it: low, ..., max.")
]
CachePrompt = Annotated[
    str | None,
    typer.Option("--cache-prompt", help="Whether the provider caches prompts: auto, true, false."),
]
Batch = Annotated[
    int | None,
    typer.Option(
        "--batch", min=1, max=MOST, help="Asks by the provider's batch API, so many at once."
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]

REPLY_TOKENS = 400
"""Assumed length of a reply, unless told otherwise."""
