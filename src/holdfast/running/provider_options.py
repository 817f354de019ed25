"""Options of a run, declared once for arguments in Python and for the command line.

Protocols declare their options with their settings. The module imports quickly, because the help of
the command line needs it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Annotated, Any, TypedDict, get_args, get_type_hints

MOST_COUNT = 2**31 - 1
"""Largest number for an option that is a count."""

LARGEST = 2**62
"""Largest number for any option: tables and servers use 64 bits, and replicates add to a seed."""

REPLY_TOKENS = 400
"""Default assumption for the length of a reply."""

RETRIES = 8
"""Default number of retries after a transient error."""


@dataclass(frozen=True)
class Option:
    """Command line option for an argument in Python.

    Attributes:
        help: help text.
        default: default value.
        min: smallest number.
        max: largest number.
        flag: name of the option, if it is not the Python name with dashes.
        value_type: type of the option, if Python accepts several.
        group: heading in the help of ``run``.
        is_hidden: whether the help omits it.
        file: whether the value is a file or folder.
    """

    help: str
    default: Any = None
    min: float | None = None
    max: float | None = None
    flag: str | None = None
    value_type: Any = None
    group: str | None = None
    is_hidden: bool = False
    file: bool = False

    def refusal(self, value: object) -> str | None:
        """Return why the option does not accept a number, None if it does."""
        if isinstance(value, int | float):
            if self.min is not None and value < self.min:
                return f"{value} is too small: give {self.min} or more"
            if self.max is not None and value > self.max:
                return f"{value} is too large: give {self.max} or less"
        return None


NamedValues = Mapping[str, Any] | Sequence[str] | None
"""Values by name, or ``NAME=VALUE`` for each."""

_LIST = list[str] | None

MODEL, QUESTIONS, PROTOCOL, BUDGET, OUTPUT = "Model", "Questions", "Protocol", "Budget", "Output"
"""Headings in the help of ``run``."""


class RunOptions(TypedDict, total=False):
    """Options of ``holdfast.run`` besides protocols, models and questions.

    Defaults and descriptions are those of the command line.
    """

    model_role: Annotated[
        NamedValues,
        Option(
            "ROLE=MODEL or ROLE='{model: NAME, base_url: URL}': generator, attacker, judge, "
            "reader, reader-all, validity. Repeatable.",
            value_type=_LIST,
            group=MODEL,
        ),
    ]
    model_base_url: Annotated[str | None, Option("Base URL of the model's API.", group=MODEL)]
    target: Annotated[
        str | None,
        Option(
            "TOML file that says how your assistant is asked (--model http/NAME).",
            group=MODEL,
            file=True,
        ),
    ]
    model_args: Annotated[
        NamedValues,
        Option(
            "A provider's argument, NAME=VALUE. Repeatable.",
            flag="-M",
            value_type=_LIST,
            group=MODEL,
        ),
    ]
    max_tokens: Annotated[
        int | None, Option("Longest reply, in tokens.", None, 1, MOST_COUNT, group=MODEL)
    ]
    generate_config: Annotated[
        Any,
        Option(
            "YAML or JSON file with Inspect's generation settings, or the settings themselves: "
            "'{temperature: 0.5, top_p: 0.9}'.",
            value_type=str | None,
            group=MODEL,
        ),
    ]
    limit: Annotated[
        int | None,
        Option("Number of questions, from the first.", None, 1, MOST_COUNT, group=QUESTIONS),
    ]
    shuffle: Annotated[
        int | None,
        Option(
            "Seed of a random order. With --limit N, a sample of N.", None, -LARGEST, LARGEST,
            group=QUESTIONS,
        ),
    ]  # fmt: skip
    epochs: Annotated[
        int | None,
        Option(
            "Number of times each question is asked (medfuzz 5, others 1).",
            None,
            1,
            10_000,
            group=QUESTIONS,
        ),
    ]
    labels: Annotated[
        str | None,
        Option(
            "File with the system, step, specialty or subject of each question.",
            group=QUESTIONS,
            is_hidden=True,
            file=True,
        ),
    ]
    task_args: Annotated[
        NamedValues,
        Option(
            "A protocol's setting, NAME=VALUE, such as contexts=contexts.jsonl. Repeatable. "
            "'holdfast list protocols' lists all.",
            flag="-T",
            value_type=_LIST,
            group=PROTOCOL,
        ),
    ]
    seed: Annotated[
        int | None,
        Option("Seed of the study; 42.", None, -LARGEST, LARGEST, group=PROTOCOL),
    ]
    defence: Annotated[
        str | Sequence[str] | None,
        Option(
            "Also run the model with this defence: a name, a TOML file, or either with "
            "+abstain. Repeatable.",
            value_type=_LIST,
            group=PROTOCOL,
        ),
    ]
    allow_simulated_inputs: Annotated[
        bool,
        Option(
            "Allow simulated contexts for a real model. Results are marked SIMULATED.",
            False,
            group=PROTOCOL,
            is_hidden=True,
        ),
    ]
    call_limit: Annotated[
        int | None, Option("Maximum number of model calls.", None, 0, LARGEST, group=BUDGET)
    ]
    token_limit: Annotated[int | None, Option("Most tokens.", None, 0, LARGEST, group=BUDGET)]
    cost_limit: Annotated[float | None, Option("Most dollars.", None, 0, group=BUDGET)]
    prices: Annotated[
        str | None,
        Option(
            "JSON or YAML file of prices, as for Inspect's --model-cost-config.",
            group=BUDGET,
            file=True,
            is_hidden=True,
        ),
    ]
    max_connections: Annotated[
        int | None,
        Option("Maximum number of concurrent model calls.", None, 1, 100_000, group=BUDGET),
    ]
    log_dir: Annotated[
        str | PathLike[str],
        Option(
            "Log directory, also for the turns table.",
            "runs",
            value_type=str,
            group=OUTPUT,
            file=True,
        ),
    ]
    no_text: Annotated[
        bool,
        Option(
            "Leave prompts and replies out of the turns table.", False, group=OUTPUT, is_hidden=True
        ),
    ]


class OtherOptions(TypedDict, total=False):
    """Options of other commands that ask a model."""

    seed: Annotated[int, Option("Seed of the study.", 42, -LARGEST, LARGEST)]
    stratify: Annotated[str | None, Option("Stratify the sample by this label: step, system, ...")]
    fields: Annotated[
        str | None,
        Option("Names of unrecognised columns: stem=...,options=a|b|c|d,gold=...,step=..."),
    ]
    max_retries: Annotated[
        int, Option("Maximum number of retries after a transient error.", RETRIES, 0, 1000)
    ]


def options_of(option_class: type) -> dict[str, tuple[Any, Option]]:
    """Return type and option of each argument, by name."""
    hints = get_type_hints(option_class, include_extras=True)
    return {name: get_args(hint) for name, hint in hints.items()}
