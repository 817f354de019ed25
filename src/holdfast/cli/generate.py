"""Commands ``holdfast generate``: a model writes contexts, wrong options, labels or verdicts."""

import inspect
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from holdfast.errors import IncompleteRunError, InputError
from holdfast.running.provider_options import RETRIES

from . import options

if TYPE_CHECKING:
    from inspect_ai.model import Model

    from holdfast.running.preparation import GeneratedFile

generate = typer.Typer(
    help="Have a model write contexts, wrong options or labels.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

_Writer = Annotated[
    str, typer.Option("--model", help="Model, as Inspect names it, such as openai/gpt-4.1.")
]
_COMMON_OPTIONS = (
    "seed", "limit", "shuffle", "stratify", "fields", "log_dir", "model_base_url", "model_args",
    "call_limit", "token_limit", "cost_limit", "prices", "max_connections", "as_json",
)  # fmt: skip
"""Options of every command that select questions and control requests."""


def _options_of_each(name: str) -> list[str | inspect.Parameter]:
    log_dir = options.of_run("log_dir", default=f"runs/{name}", help="Log directory.")
    return [log_dir if option == "log_dir" else option for option in _COMMON_OPTIONS]


def _generation_command(name: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Build a command from a function's options and the shared options."""

    def register(function: Callable[..., None]) -> Callable[..., None]:
        @generate.command(name)
        @options.taking(*inspect.signature(function).parameters.values(), *_options_of_each(name))
        def command(as_json: options.AsJson = False, **arguments: Any) -> None:
            made_file, model_asked = _generate_file(name, arguments)
            _print(made_file, model_asked, as_json=as_json)

        command.__doc__ = function.__doc__
        return function

    return register


@_generation_command("contexts")
def _contexts(
    model: _Writer,
    questions: options.Questions = "bank",
    sentences: Annotated[
        int | None,
        typer.Option(min=1, max=100, help="Sentences per text. Default: random, from 4 to 10."),
    ] = None,
    lengths: Annotated[
        str, typer.Option(help="Also write contexts of these lengths, such as 1,10,20.")
    ] = "none",
    corrections: Annotated[
        bool, typer.Option("--corrections", help="Also write a true context for each right option.")
    ] = False,
    inert: Annotated[
        bool, typer.Option("--inert", help="Also write a passage that argues for no option.")
    ] = False,
    output: Annotated[
        str, typer.Option("-o", "--output", help="File to write.")
    ] = "contexts.jsonl",
) -> None:
    """Write contexts for the follow-up protocol. Repeat the command to resume.

    Example: holdfast generate contexts --questions my.jsonl --model openai/gpt-4.1
    """


@_generation_command("distractors")
def _distractors(
    model: _Writer,
    questions: options.Questions = "bank",
    graph: Annotated[
        str | None, typer.Option(help="Knowledge graph: CSV with head, relation, tail.")
    ] = None,
    replace: Annotated[
        int, typer.Option(min=0, max=26, help="Wrong options to replace in each question (0: all).")
    ] = 0,
    output: Annotated[
        str, typer.Option("-o", "--output", help="File to write.")
    ] = "distractors.jsonl",
) -> None:
    """Write wrong options for the single-turn protocol. Repeat the command to resume.

    Example: holdfast generate distractors --graph primekg.csv --model openai/gpt-4.1
    """


@_generation_command("labels")
def _labels(
    model: _Writer,
    questions: options.Questions = "bank",
    output: Annotated[str, typer.Option("-o", "--output", help="File to write.")] = "labels.jsonl",
) -> None:
    """Label questions with one of the 15 USMLE systems. Repeat the command to resume.

    Example: holdfast generate labels --questions my.jsonl --model openai/gpt-4.1
    """


@generate.command()
@options.taking("model", "distractors", "questions", "output", *_options_of_each("plausibility"))
def plausibility(
    model: _Writer,
    distractors: Annotated[str, typer.Option(help="Wrong options to judge: a file, or bank.")],
    questions: options.Questions = "bank",
    output: Annotated[
        str, typer.Option("-o", "--output", help="File of verdicts to write.")
    ] = "plausibility.jsonl",
    as_json: options.AsJson = False,
    **arguments: Any,
) -> None:
    """Judge whether new wrong options are as plausible as the old. Exit code 2: they are less so.

    Example: holdfast generate plausibility --distractors distractors.jsonl --model openai/gpt-4.1
    """
    from pathlib import Path

    from holdfast.protocols.settings import question_set
    from holdfast.protocols.single_turn.distractors import load_distractors
    from holdfast.protocols.single_turn.plausibility import verdicts
    from holdfast.questions.rows import read_rows

    judging = {"model": model, "distractors": distractors, "questions": questions}
    made_file, model_asked = _generate_file(
        "plausibility", {**arguments, **judging, "output": output}
    )
    rows = (row for _, row in read_rows(Path(made_file.file)) if not isinstance(row, str))
    counts = verdicts(
        rows, load_distractors(distractors, question_set(questions, arguments["fields"]))
    )
    _print(made_file, model_asked, as_json=as_json, facts={"plausibility": counts.as_json()},
           line=counts.line(model))  # fmt: skip
    if counts.below:
        raise InputError(
            f"{model} judged the new options less plausible than the old",
            distractors,
            remedy="Rewrite them, keeping the strongest old ones",
        )


def _generate_file(name: str, arguments: Mapping[str, Any]) -> "tuple[GeneratedFile, Model]":
    """Have a model write a file, and return the file and the model."""
    from holdfast.dialogue.budget import Budget
    from holdfast.running import models
    from holdfast.running.log_dir import as_log_dir
    from holdfast.running.preparation import FileGeneration
    from holdfast.running.studies import generation

    from .outcome import Drawn

    log_dir = as_log_dir(arguments["log_dir"])
    models.load_prices(arguments["prices"])
    (model,) = models.models(
        [arguments["model"]],
        base_url=arguments["model_base_url"],
        model_args=arguments["model_args"] or (),
    )
    models.check_prices([model], arguments["cost_limit"])
    connections = arguments["max_connections"]
    more = {"max_connections": connections} if connections else {}
    made_file = FileGeneration(
        generation(name, arguments),
        model,
        arguments["output"],
        log_dir,
        limit=arguments["limit"],
        budget=Budget(arguments["call_limit"], arguments["token_limit"], arguments["cost_limit"]),
        generation={"max_retries": RETRIES, **more},
        progress=Drawn(),
    ).run()
    return made_file, model


def _print(
    result: "GeneratedFile",
    model: "Model",
    *,
    as_json: bool,
    facts: Mapping[str, Any] | None = None,
    line: str | None = None,
) -> None:
    """Print a summary of the file, with its verdict line only if the file is complete."""
    from .outcome import spent

    whole = not result.unfinished
    if as_json:
        options.print_json(result.as_json() | ({**facts} if facts and whole else {}))
    else:
        print("\n".join([*result.lines(), f"Spent: {spent(result.budget, [model])}"]))
        if line and whole:
            print(line)
    if not whole:
        raise IncompleteRunError(result.unfinished)
