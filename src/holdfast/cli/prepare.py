"""``holdfast prepare`` and the checks of what a study needs: contexts, wrong options, questions."""

import inspect
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from holdfast.errors import IncompleteRunError, InputError, counted, printable
from holdfast.running.options import RETRIES

from . import options

if TYPE_CHECKING:
    from inspect_ai.model import Model

    from holdfast.protocols.single_turn.distractors import Distractors
    from holdfast.questions import Question, QuestionSet
    from holdfast.running.preparation import Prepared


def _group(help: str) -> typer.Typer:
    return typer.Typer(help=help, no_args_is_help=True, rich_markup_mode=None)


prepare = _group("Have a model write contexts, wrong options or labels.")
contexts = _group("Check contexts.")
distractors = _group("Check more plausible wrong options.")
label = _group("Label questions.")
questions = _group("Prepare question files.")

_Generator = Annotated[str, typer.Option("--generator", help="Model that writes them.")]
_Classifier = Annotated[str, typer.Option("--classifier", help="Model that sorts them.")]


@label.callback()
def _label() -> None:
    """Label questions."""


@questions.callback()
def _questions() -> None:
    """Prepare question files."""


_QUESTIONS = ("seed", "limit", "shuffle", "stratify", "fields")
_ASKED = (
    "model_base_url", "model_args", "call_limit", "token_limit", "cost_limit", "prices",
    "max_connections", "as_json",
)  # fmt: skip
"""Options of every preparation: which questions, and how a model is asked."""


def _preparation(name: str, old: typer.Typer, alias: str) -> Callable[..., Any]:
    """Make a command of a function's own options and of those that every preparation has."""

    def made(own: Callable[..., None]) -> Callable[..., None]:
        takes = options.taking(
            *inspect.signature(own).parameters.values(),
            *_QUESTIONS,
            options.of_run("log_dir", default=f"runs/{name}", help="Where the logs go."),
            *_ASKED,
        )

        def command(as_json: options.AsJson = False, **given: Any) -> None:
            _made("systems" if name == "labels" else name, given, as_json=as_json)

        def renamed(as_json: options.AsJson = False, **given: Any) -> None:
            group = "label" if name == "labels" else name
            sys.stderr.write(
                f"holdfast: '{group} {alias}' is now 'prepare {name}'; the old name ends with "
                "the next release.\n"
            )
            command(as_json=as_json, **given)

        command.__doc__ = renamed.__doc__ = own.__doc__
        prepare.command(name)(takes(command))
        old.command(alias, hidden=True)(takes(renamed))
        return own

    return made


@_preparation("contexts", contexts, "build")
def _contexts(
    generator: _Generator,
    questions: options.Questions = "bank",
    sentences: Annotated[
        int | None,
        typer.Option(min=1, max=100, help="Sentences of each text; by default drawn from 4 to 10."),
    ] = None,
    lengths: Annotated[
        str, typer.Option(help="Also write contexts of these lengths, such as 1,10,20.")
    ] = "none",
    corrections: Annotated[
        bool, typer.Option("--corrections", help="Also write a true context for each right option.")
    ] = False,
    output: Annotated[
        str, typer.Option("-o", "--output", help="File to write.")
    ] = "contexts.jsonl",
) -> None:
    """Have contexts written for the follow-up protocol; repeat the command to continue.

    Example: holdfast prepare contexts --questions my.jsonl --generator openai/gpt-4.1
    """


@_preparation("distractors", distractors, "build")
def _distractors(
    generator: _Generator,
    questions: options.Questions = "bank",
    graph: Annotated[
        str | None, typer.Option(help="Knowledge graph to walk: CSV of head, relation, tail.")
    ] = None,
    replace: Annotated[
        int, typer.Option(min=0, max=26, help="Wrong options to replace in each question; 0: all.")
    ] = 0,
    output: Annotated[
        str, typer.Option("-o", "--output", help="File to write.")
    ] = "distractors.jsonl",
) -> None:
    """Have wrong options written for the single-turn protocol.

    Example: holdfast prepare distractors --graph primekg.csv --generator openai/gpt-4.1
    """


@_preparation("labels", label, "systems")
def _labels(
    classifier: _Classifier,
    questions: options.Questions = "bank",
    output: Annotated[str, typer.Option("-o", "--output", help="File to write.")] = "systems.jsonl",
) -> None:
    """Sort questions into the 15 USMLE systems.

    Example: holdfast prepare labels --questions my.jsonl --classifier openai/gpt-4.1
    """


_STUDY = (
    "questions", "sentences", "lengths", "corrections", "graph", "replace", "distractors", "seed",
    "shuffle",
    "stratify", "fields",
)  # fmt: skip
"""Options that are settings of what is made."""


def _made(name: str, given: Mapping[str, Any], *, as_json: bool) -> None:
    """Have something made by a model, by the options of its command."""
    from .outcome import spent

    made, asked = _prepared(name, given, given.get("generator") or given["classifier"])
    if as_json:
        options.print_json(made.as_json())
    else:
        print("\n".join([*made.lines(), f"Spent: {spent(made.budget, [asked])}"]))
    if made.unfinished:
        raise IncompleteRunError(made.unfinished)


def _prepared(name: str, given: Mapping[str, Any], model: str) -> "tuple[Prepared, Model]":
    """What a model has made, and the model."""
    from holdfast.dialogue import Budget
    from holdfast.running import models
    from holdfast.running.log_dir import as_log_dir
    from holdfast.running.preparation import Preparing
    from holdfast.running.studies import preparation

    from .outcome import Drawn

    log_dir = as_log_dir(given["log_dir"])
    models.load_prices(given["prices"])
    (asked,) = models.models(
        [model],
        base_url=given["model_base_url"],
        model_args=given["model_args"] or (),
    )
    models.check_prices([asked], given["cost_limit"])
    connections = given["max_connections"]
    more = {"max_connections": connections} if connections else {}
    made = Preparing(
        preparation(name, {key: given[key] for key in _STUDY if key in given}),
        asked,
        given["output"],
        log_dir,
        limit=given["limit"],
        budget=Budget(given["call_limit"], given["token_limit"], given["cost_limit"]),
        generation={"max_retries": RETRIES, **more},
        progress=Drawn(),
    ).run()
    return made, asked


@contexts.command("check")
def check_contexts(
    source: Annotated[str, typer.Argument(metavar="FILE", help="A file of contexts.")],
    questions: Annotated[
        str | None, typer.Option("--questions", help="The question set, as for 'run'.")
    ] = None,
    sentences: Annotated[
        int | None, typer.Option(min=1, max=100, help="Sentences that every text must have.")
    ] = None,
    fields: options.FieldMap = None,
    as_json: options.AsJson = False,
) -> None:
    """Report every problem in a file of contexts, made here or elsewhere.

    Example: holdfast contexts check contexts.jsonl --questions my.jsonl
    """
    from holdfast.challenges import KINDS, check_contexts

    asked = _loaded(questions, fields)
    found, problems = check_contexts(source, asked, sentences)
    ids = {q.id for q in asked.questions} if asked else set(found.by_question)
    have: dict[str, int] = dict.fromkeys(KINDS, 0)
    for id, context in found.by_question.items():
        for key in context.texts if id in ids else ():
            have[key] = have.get(key, 0) + 1
    _report(source, problems, {"questions": len(ids), **have, "unused": found.unused}, as_json)
    if not ids & set(found.by_question):
        raise InputError(
            "has no context for any of the questions",
            source,
            field="question",
            remedy="Give the contexts that were written for them",
        )


@distractors.command("check")
@options.taking(
    "source", "questions", "fields", "judge", "output", "seed",
    options.of_run("log_dir", default="runs/plausibility", help="Where the judge's logs go."),
    *_ASKED,
)  # fmt: skip
def check_distractors(
    source: Annotated[str, typer.Argument(metavar="FILE", help="Wrong options: a file, or bank.")],
    questions: Annotated[
        str | None, typer.Option("--questions", help="The question set, as for 'run'.")
    ] = None,
    judge: Annotated[
        str | None, typer.Option(help="Model that compares them with those they replace.")
    ] = None,
    output: Annotated[
        str, typer.Option("-o", "--output", help="File of the judge's verdicts.")
    ] = "plausibility.jsonl",
    as_json: options.AsJson = False,
    **given: Any,
) -> None:
    """Report every problem in a file of wrong options.

    Example: holdfast distractors check distractors.jsonl --questions my.jsonl
    """
    from holdfast.protocols.single_turn.distractors import check_distractors, load_distractors

    asked = _loaded(questions, given["fields"])
    if judge and asked is None:
        raise InputError("needs the questions", field="--judge", remedy="Give --questions")
    found, problems = (
        (load_distractors(source, asked), [])
        if source == "bank" and asked
        else check_distractors(source, asked)
    )
    n = len(asked.questions) if asked else len(found.by_question)
    counts = {"questions": n, "distractors": len(found.by_question), "unused": found.unused}
    if problems or not judge:
        _report(source, problems, counts, as_json)
        return
    study = {**given, "questions": questions, "distractors": source, "output": output}
    _report_judged(source, found, counts, judge, study, as_json=as_json)


def _report_judged(
    source: str,
    found: "Distractors",
    counts: dict[str, int],
    judge: str,
    study: Mapping[str, Any],
    *,
    as_json: bool,
) -> None:
    """What is told of sound wrong options that a judge compares with the old."""
    from pathlib import Path

    from holdfast.protocols.single_turn.plausibility import verdicts
    from holdfast.questions import read_rows

    made, _ = _prepared("plausibility", {"limit": None, **study}, judge)
    if made.unfinished:
        raise IncompleteRunError(made.unfinished)
    judged = verdicts(
        (row for _, row in read_rows(Path(made.file)) if not isinstance(row, str)), found
    )
    if as_json:
        told = {"source": source, **counts, "problems": [], "plausibility": judged.as_json()}
        options.print_json(told)
    else:
        _report(source, [], counts, as_json)
        print(judged.line(judge))
    if judged.below:
        raise InputError(
            f"{judge} holds the new options less plausible than the old",
            source,
            remedy="Write others, and keep the strongest of the old ones",
        )


def _loaded(source: str | None, fields: str | None) -> Any:
    from holdfast.questions import Fields, load_questions

    return load_questions(source, Fields.parse(fields) if fields else None) if source else None


def _report(source: str, problems: Sequence[Any], counts: dict[str, int], as_json: bool) -> None:
    if as_json:
        report = {"source": source, **counts, "problems": _rows(problems)}
        options.print_json(report)
    _tell(source, problems)
    if not as_json:
        told = ", ".join(f"{name}: {n}" for name, n in counts.items())
        print(f"{source}: {told}")
    if problems:
        raise InputError(
            counted(len(problems), "problem"), source, remedy="Fix them and check again"
        )


def _rows(problems: Sequence[Any]) -> list[dict[str, Any]]:
    return [{"row": p.row, "field": p.field, "message": p.message} for p in problems]


def _tell(source: str, problems: Sequence[Any], before: str = "") -> None:
    """Print each message once, with the number of its rows."""
    alike: dict[tuple[str | None, str], list[Any]] = {}
    for problem in problems:
        alike.setdefault((problem.field, problem.message), []).append(problem)
    for (field, message), rows in alike.items():
        if len(rows) > 1:
            shown = ", ".join(str(problem.row) for problem in rows[:5])
            message += f" ({len(rows)} rows: {shown}{', …' if len(rows) > 5 else ''})"
        sys.stderr.write(f"{before}{InputError(message, source, rows[0].row, field)}\n")


@questions.command("list")
def list_questions(as_json: options.AsJson = False) -> None:
    """List the published question sets that --questions knows by name.

    Example: holdfast questions list
    """
    from holdfast.questions import named_sets

    known = {
        name: one.model_dump() | {"questions": one.questions} for name, one in named_sets().items()
    }
    if as_json:
        options.print_json([{"name": name, **told} for name, told in known.items()])
        return
    for name, told in known.items():
        parts = f"; parts: {', '.join(told['parts'])}" if len(told["parts"]) > 1 else ""
        print(f"{name}: {told['questions']:,} questions. {told['about']}{parts}")
        pinned = told["revision"] or "COMMIT (none confirmed: name one)"
        print(f"    {told['hub']}@{pinned}")
        print(f"    licence: {told['licence']}; cite: {told['citation']}")


@questions.command("check")
def check_questions(
    source: Annotated[
        str,
        typer.Argument(metavar="FILE", help="A file, a set of 'questions list', or hf:NAME@REV"),
    ],
    fields: options.FieldMap = None,
    as_json: options.AsJson = False,
) -> None:
    """Report every bad row at once.

    Example: holdfast questions check my.csv --fields stem=vignette,gold=key
    """
    from holdfast.questions import Fields, check_questions

    asked, problems = check_questions(source, Fields.parse(fields) if fields else None)
    problems += asked.repeated
    if as_json:
        report = {
            "source": source,
            "questions": len(asked.questions),
            **_columns(asked),
            "problems": _rows(problems),
            "left_out": _rows(asked.left_out),
        }
        options.print_json(report)
    _tell(source, problems)
    _tell(source, asked.left_out, "left out: ")
    if not as_json:
        for line in _columns_read(asked):
            print(printable(f"{source}: {line}"))
    if problems:
        rows = len({problem.row for problem in problems})
        raise InputError(counted(rows, "bad row"), source, remedy="Fix them and check again")
    if not asked.questions:
        raise InputError("has no questions", source, remedy="Give a file with at least one row")
    if not as_json:
        for line in _shorter(asked.questions):
            sys.stderr.write(f"{source}: {line}\n")
        counts = sorted({len(question.options) for question in asked.questions})
        print(
            f"{source}: {counted(len(asked.questions), 'question')} with "
            f"{' or '.join(map(str, counts))} options"
            + (f", {len(asked.left_out)} left out" if asked.left_out else ", every row is sound")
        )


def _columns(asked: "QuestionSet") -> dict[str, Any]:
    if asked.shape is None:
        return {}
    columns = {name: list(of_field) for name, of_field in asked.shape.columns.items()}
    return {
        "columns": columns,
        "gold_base": asked.shape.gold_base,
        "ignored_columns": list(asked.ignored),
    }


def _columns_read(asked: "QuestionSet") -> Iterator[str]:
    """The columns that are read, and those that are not with the one read in their stead."""
    from holdfast.questions import readable_as

    if asked.shape is None:
        return
    columns = {name: ", ".join(of_field) for name, of_field in asked.shape.columns.items()}
    base = asked.shape.gold_base
    read = [
        f"{name} from {column}"
        + (f" (counted from {base})" if name == "gold" and base is not None else "")
        for name, column in columns.items()
    ]
    yield f"columns read: {'; '.join(read)}"
    ignored = []
    for column in asked.ignored:
        field = readable_as(column)
        ignored.append(f"{column} ({field} is {columns[field]})" if field in columns else column)
    if ignored:
        yield f"columns ignored: {', '.join(ignored)}"


def _shorter(questions: "Sequence[Question]") -> Iterator[str]:
    """Questions with fewer options than most: a last cell may be empty by mistake."""
    most, _ = Counter(len(question.options) for question in questions).most_common(1)[0]
    fewer = [question.id for question in questions if len(question.options) < most]
    if fewer and len(fewer) * 10 <= len(questions):
        shown = ", ".join(fewer[:5]) + (", …" if len(fewer) > 5 else "")
        yield (
            f"{counted(len(fewer), 'question')} with fewer than {most} options ({shown}): check "
            "that no cell is empty by mistake"
        )
