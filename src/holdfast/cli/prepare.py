"""``holdfast contexts``, ``distractors`` and ``label``: what a study needs, made or looked over."""

import json
import sys
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from holdfast.errors import IncompleteRunError, InputError, counted

from . import options

contexts = typer.Typer(help="Prepare contexts.", no_args_is_help=True, rich_markup_mode=None)
distractors = typer.Typer(
    help="Prepare more plausible wrong options.", no_args_is_help=True, rich_markup_mode=None
)
label = typer.Typer(help="Label questions.", no_args_is_help=True, rich_markup_mode=None)

ModelRequired = Annotated[str, typer.Option("--generator", help="Model that writes them.")]


@contexts.command("build")
def build_contexts(
    generator: ModelRequired,
    questions: options.Questions = "bank",
    sentences: Annotated[
        int | None,
        typer.Option(min=1, max=100, help="Sentences of each; 4 to 10 are drawn without it."),
    ] = None,
    lengths: Annotated[
        str, typer.Option(help="Lengths of an ablation beside them, such as 1,10,20.")
    ] = "none",
    output: Annotated[str, typer.Option("-o", "--output", help="The file.")] = "contexts.jsonl",
    seed: options.Seed = 42,
    limit: options.Limit = None,
    shuffle: options.Shuffle = None,
    stratify: options.Stratify = None,
    fields: options.FieldMap = None,
    log_dir: Annotated[str, typer.Option(help="Where the logs go.")] = "runs/contexts",
    model_base_url: options.ModelBaseUrl = None,
    model_args: options.ModelArgs = None,
    max_calls: options.MaxCalls = None,
    max_tokens: options.MaxTokens = None,
    max_cost: options.MaxCost = None,
    prices: options.Prices = None,
    max_connections: options.MaxConnections = None,
    as_json: options.AsJson = False,
) -> None:
    """Have contexts written for the follow-up protocol; the same command goes on if cut short.

    Example: holdfast contexts build --questions my.jsonl --generator openai/gpt-4.1
    """
    given = dict(locals())
    _build("contexts", generator, given)


@distractors.command("build")
def build_distractors(
    generator: ModelRequired,
    questions: options.Questions = "bank",
    graph: Annotated[
        str | None, typer.Option(help="Knowledge graph to walk: CSV of head, relation, tail.")
    ] = None,
    replace: Annotated[
        int, typer.Option(min=0, max=26, help="Wrong options to replace in each question; 0: all.")
    ] = 0,
    output: Annotated[str, typer.Option("-o", "--output", help="The file.")] = "distractors.jsonl",
    seed: options.Seed = 42,
    limit: options.Limit = None,
    shuffle: options.Shuffle = None,
    stratify: options.Stratify = None,
    fields: options.FieldMap = None,
    log_dir: Annotated[str, typer.Option(help="Where the logs go.")] = "runs/distractors",
    model_base_url: options.ModelBaseUrl = None,
    model_args: options.ModelArgs = None,
    max_calls: options.MaxCalls = None,
    max_tokens: options.MaxTokens = None,
    max_cost: options.MaxCost = None,
    prices: options.Prices = None,
    max_connections: options.MaxConnections = None,
    as_json: options.AsJson = False,
) -> None:
    """Have wrong options written for the single-turn protocol.

    Example: holdfast distractors build --graph primekg.csv --generator openai/gpt-4.1
    """
    given = dict(locals())
    _build("distractors", generator, given)


@label.callback()
def _label() -> None:
    """Label questions."""


@label.command("systems")
def label_systems(
    classifier: Annotated[str, typer.Option("--classifier", help="Model that sorts them.")],
    questions: options.Questions = "bank",
    output: Annotated[str, typer.Option("-o", "--output", help="The file.")] = "systems.jsonl",
    seed: options.Seed = 42,
    limit: options.Limit = None,
    shuffle: options.Shuffle = None,
    stratify: options.Stratify = None,
    fields: options.FieldMap = None,
    log_dir: Annotated[str, typer.Option(help="Where the logs go.")] = "runs/labels",
    model_base_url: options.ModelBaseUrl = None,
    model_args: options.ModelArgs = None,
    max_calls: options.MaxCalls = None,
    max_tokens: options.MaxTokens = None,
    max_cost: options.MaxCost = None,
    prices: options.Prices = None,
    max_connections: options.MaxConnections = None,
    as_json: options.AsJson = False,
) -> None:
    """Sort questions into the 15 USMLE systems.

    Example: holdfast label systems --questions my.jsonl --classifier openai/gpt-4.1
    """
    given = dict(locals())
    _build("systems", classifier, given)


_STUDY = (
    "questions", "sentences", "lengths", "graph", "replace", "seed", "shuffle", "stratify",
    "fields",
)  # fmt: skip
"""Options that are settings of what is made."""


def _build(name: str, model: str, given: Mapping[str, Any]) -> None:
    """Have something made by a model, by the options of its command."""
    from holdfast.dialogue import Budget

    from . import settings
    from .outcome import spent
    from .preparing import Preparing

    log_dir = settings.as_log_dir(given["log_dir"])
    settings.load_prices(given["prices"])
    (asked,) = settings.models(
        [model], base_url=given["model_base_url"], model_args=given["model_args"] or []
    )
    settings.check_prices([asked], given["max_cost"])
    connections = given["max_connections"]
    made = Preparing(
        settings.preparation(name, {key: given[key] for key in _STUDY if key in given}),
        asked,
        given["output"],
        log_dir,
        limit=given["limit"],
        budget=Budget(given["max_calls"], given["max_tokens"], given["max_cost"]),
        generation={"max_retries": 8} | ({"max_connections": connections} if connections else {}),
    ).run()
    if given["as_json"]:
        sys.stdout.write(json.dumps(made.as_json(), indent=2, ensure_ascii=False) + "\n")
    else:
        print("\n".join([*made.lines(), f"Spent: {spent(made.budget, [asked])}"]))
    if made.unfinished:
        raise IncompleteRunError(made.unfinished)


@contexts.command("check")
def check_contexts(
    source: Annotated[str, typer.Argument(metavar="FILE", help="A file of contexts.")],
    questions: Annotated[
        str | None, typer.Option("--questions", help="What they are for, as for 'run'.")
    ] = None,
    sentences: Annotated[
        int | None, typer.Option(min=1, max=100, help="Sentences that every text must have.")
    ] = None,
    fields: options.FieldMap = None,
    as_json: options.AsJson = False,
) -> None:
    """Report everything that is wrong with a file of contexts, made here or elsewhere.

    Example: holdfast contexts check contexts.jsonl --questions my.jsonl
    """
    from holdfast.challenges import CONTEXTS, check_contexts

    asked = _questions(questions, fields)
    found, problems = check_contexts(source, asked, sentences)
    ids = {q.id for q in asked.questions} if asked else set(found.by_question)
    have: dict[str, int] = dict.fromkeys(CONTEXTS, 0)
    for id, context in found.by_question.items():
        for key in context.texts if id in ids else ():
            have[key] = have.get(key, 0) + 1
    _report(source, problems, {"questions": len(ids), **have, "unused": found.unused}, as_json)
    if not ids & set(found.by_question):
        raise InputError(
            "has no context for any of the questions",
            source,
            field="question",
            remedy="Give the contexts that were built for them",
        )


@distractors.command("check")
def check_distractors(
    source: Annotated[str, typer.Argument(metavar="FILE", help="A file of wrong options.")],
    questions: Annotated[
        str | None, typer.Option("--questions", help="What they are for, as for 'run'.")
    ] = None,
    fields: options.FieldMap = None,
    as_json: options.AsJson = False,
) -> None:
    """Report everything that is wrong with a file of wrong options.

    Example: holdfast distractors check distractors.jsonl --questions my.jsonl
    """
    from holdfast.challenges import check_distractors

    asked = _questions(questions, fields)
    found, problems = check_distractors(source, asked)
    n = len(asked.questions) if asked else len(found.by_question)
    counts = {"questions": n, "distractors": len(found.by_question), "unused": found.unused}
    _report(source, problems, counts, as_json)


def _questions(source: str | None, fields: str | None) -> Any:
    from holdfast.questions import Fields, load_questions

    return load_questions(source, Fields.parse(fields) if fields else None) if source else None


def _report(source: str, problems: Sequence[Any], counts: dict[str, int], as_json: bool) -> None:
    if as_json:
        report = {"source": source, **counts, "problems": [p.__dict__ for p in problems]}
        sys.stdout.write(json.dumps(report, indent=2, ensure_ascii=False) + "\n")
    for problem in problems:
        sys.stderr.write(f"{InputError(problem.message, source, problem.row, problem.field)}\n")
    if not as_json:
        told = ", ".join(f"{name}: {n}" for name, n in counts.items())
        print(f"{source}: {told}")
    if problems:
        raise InputError(
            counted(len(problems), "problem"), source, remedy="Mend them and check again"
        )
