"""What a run can be told, declared once: Python's arguments, and the command line's options.

Nothing here is slow to import, because help on the command line needs it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from os import PathLike
from typing import Annotated, Any, TypedDict, get_args, get_type_hints

MOST = 2**31 - 1
"""The largest number that an option takes which counts something."""

LARGEST = 2**62
"""The largest number at all: tables and servers hold 64 bits, and replicates add to a seed."""

REPLY_TOKENS = 400
"""Assumed length of a reply, unless told otherwise."""

RETRIES = 8
"""Tries again after a transient fault, unless told otherwise."""


@dataclass(frozen=True)
class Option:
    """How the command line takes an argument of Python's.

    Attributes:
        help: what it is.
        default: where it is not given.
        min: smallest number.
        max: largest number.
        flag: its name, where that is not Python's with dashes.
        typed: its type, where Python takes more than one.
        setting: Inspect's name of it, where it is a setting of generation.
        sent: whether a provider sends this setting, or it is about how requests are made.
    """

    help: str
    default: Any = None
    min: float | None = None
    max: float | None = None
    flag: str | None = None
    typed: Any = None
    setting: str | None = None
    sent: bool = True


Named = Mapping[str, Any] | Sequence[str] | None
"""Values by name, or ``NAME=VALUE`` each."""

_LIST = list[str] | None


class RunOptions(TypedDict, total=False):
    """What ``holdfast.run`` takes beside protocols, models and questions.

    What is left out is as it is on the command line, whose help is given here.
    """

    contexts: Annotated[str, Option("auto, bank, synthetic, generate, none, or a file.", "auto")]
    distractors: Annotated[
        str, Option("More plausible wrong options: auto, bank, generate, none, or a file.", "auto")
    ]
    generator: Annotated[str | None, Option("Model that writes contexts and wrong options first.")]
    allow_simulated_inputs: Annotated[
        bool, Option("Put simulated contexts to a real model; marked SIMULATED.", False)
    ]
    model_role: Annotated[
        Named,
        Option(
            "ROLE=MODEL or ROLE='{model: NAME, base_url: URL}': generator, attacker, judge, "
            "reader, validity.",
            typed=_LIST,
        ),
    ]
    reader: Annotated[
        str | None, Option("Model that reads replies in which the rules find no answer.")
    ]
    reader_all: Annotated[
        bool, Option("The reader reads every reply, and its answer counts.", False)
    ]
    labels: Annotated[
        str | None, Option("File with the system (step, specialty, subject) of each question.")
    ]
    defence: Annotated[
        str | Sequence[str] | None,
        Option(
            "Also run with this around the model: a name of 'holdfast defences', a TOML file, "
            "or one of these and +abstain. Repeatable.",
            typed=_LIST,
        ),
    ]
    exemplars: Annotated[
        str, Option("Few-shot exemplars of stick-or-switch: bank, or a file.", "bank")
    ]
    seed: Annotated[int, Option("Fixes every draw of the study.", 42, -LARGEST, LARGEST)]
    limit: Annotated[int | None, Option("First questions only.", None, 1, MOST)]
    shuffle: Annotated[
        int | None,
        Option("Seed of a random order; with --limit N, a sample of N.", None, -LARGEST, LARGEST),
    ]
    stratify: Annotated[
        str | None, Option("Label whose shares the sample keeps: step, system, ...")
    ]
    epochs: Annotated[
        int | None, Option("Times each question is asked; medfuzz 5, others 1.", None, 1, 10_000)
    ]
    challenges: Annotated[str | None, Option("TOML file with techniques of your own.")]
    fields: Annotated[
        str | None, Option("Columns not recognised: stem=...,options=a|b|c|d,gold=...,step=...")
    ]
    task_args: Annotated[
        Named,
        Option(
            "A protocol's setting, NAME=VALUE, such as chains=paper. Repeatable.",
            flag="-T",
            typed=_LIST,
        ),
    ]
    log_dir: Annotated[
        str | PathLike[str], Option("Where logs and the turns table go.", "runs", typed=str)
    ]
    call_limit: Annotated[int | None, Option("Budget of model calls.", None, 0, LARGEST)]
    token_limit: Annotated[int | None, Option("Budget of tokens.", None, 0, LARGEST)]
    cost_limit: Annotated[float | None, Option("Budget in dollars.", None, 0)]
    prices: Annotated[
        str | None, Option("JSON or YAML file of prices in Inspect's --model-cost-config.")
    ]
    temperature: Annotated[
        float | None, Option("Instead of the protocol's own.", None, 0, setting="temperature")
    ]
    max_tokens: Annotated[int | None, Option("Longest reply.", None, 1, MOST, setting="max_tokens")]
    top_p: Annotated[float | None, Option("Nucleus sampling.", None, 0, 1, setting="top_p")]
    top_k: Annotated[
        int | None,
        Option("Sample from this many likeliest tokens.", None, 1, MOST, setting="top_k"),
    ]
    frequency_penalty: Annotated[
        float | None, Option("As Inspect has it.", None, -2, 2, setting="frequency_penalty")
    ]
    presence_penalty: Annotated[
        float | None, Option("As Inspect has it.", None, -2, 2, setting="presence_penalty")
    ]
    reasoning_effort: Annotated[
        str | None,
        Option("none, minimal, low, medium, high, xhigh or max.", setting="reasoning_effort"),
    ]
    reasoning_tokens: Annotated[
        int | None,
        Option("Most tokens of hidden reasoning.", None, 0, MOST, setting="reasoning_tokens"),
    ]
    reasoning_summary: Annotated[
        str | None, Option("none, concise, detailed or auto.", setting="reasoning_summary")
    ]
    verbosity: Annotated[str | None, Option("low, medium or high.", setting="verbosity")]
    effort: Annotated[
        str | None, Option("How thorough, where a model has it: low, ..., max.", setting="effort")
    ]
    cache_prompt: Annotated[
        str | None,
        Option("Whether the provider caches prompts: auto, true, false.", setting="cache_prompt"),
    ]
    batch: Annotated[
        int | None,
        Option(
            "Asks by the provider's batch API, so many at once.", None, 1, MOST, setting="batch"
        ),
    ]
    max_connections: Annotated[
        int | None,
        Option("Concurrent model calls.", None, 1, 100_000, setting="max_connections", sent=False),
    ]
    max_retries: Annotated[
        int,
        Option(
            "Tries again after a transient fault.",
            RETRIES,
            0,
            1000,
            setting="max_retries",
            sent=False,
        ),
    ]
    timeout: Annotated[
        int | None,
        Option(
            "Seconds for one call and its retries.", None, 1, MOST, setting="timeout", sent=False
        ),
    ]
    attempt_timeout: Annotated[
        int | None,
        Option(
            "Seconds for one attempt; 600 unless told otherwise.",
            None,
            1,
            MOST,
            setting="attempt_timeout",
            sent=False,
        ),
    ]
    model_base_url: Annotated[str | None, Option("Base URL of the model's API.")]
    model_args: Annotated[
        Named,
        Option("A provider's argument, NAME=VALUE. Repeatable.", flag="-M", typed=_LIST),
    ]
    no_text: Annotated[bool, Option("Leave prompts and replies out of the turns table.", False)]


@cache
def generation_options() -> Mapping[str, Option]:
    """The options that are settings of generation."""
    hints = get_type_hints(RunOptions, include_extras=True)
    options = {name: get_args(hint)[1] for name, hint in hints.items()}
    return {name: option for name, option in options.items() if option.setting}
