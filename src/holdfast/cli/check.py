"""Command ``holdfast check``, which validates any input file of a study."""

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from holdfast.errors import InputError, counted, printable, unknown

from . import options

if TYPE_CHECKING:
    from holdfast.questions.loading import Problem, QuestionSet
    from holdfast.questions.question import Question


@dataclass(frozen=True)
class File:
    """File to check.

    Attributes:
        source: the file, or the name of a question set.
        questions: the questions that the file belongs to, if known.
        fields: column names of a question file, as in ``--fields``.
        sentences: number of sentences that every context must have.
    """

    source: str
    questions: "QuestionSet | None" = None
    fields: str | None = None
    sentences: int | None = None


@dataclass(frozen=True)
class Checked:
    """Result of checking a file.

    Attributes:
        facts: the result for ``--json``.
        lines: the result as lines of text.
        problems: errors, row by row.
        left_out: known defects of a published set.
        refusal: error that makes a file without bad rows unusable.
        sound: further lines of text if the file has no errors.
        remarks: warnings about possible mistakes.
    """

    facts: Mapping[str, Any]
    lines: Sequence[str] = ()
    problems: "Sequence[Problem]" = ()
    left_out: "Sequence[Problem] | None" = None
    refusal: InputError | None = None
    sound: Sequence[str] = ()
    remarks: Sequence[str] = field(default=())


def check(
    source: Annotated[
        str,
        typer.Argument(metavar="FILE", help="File, set from 'list questions', or hf:NAME@REV."),
    ],
    kind: Annotated[
        str | None,
        typer.Option(
            help="Kind of file, if not recognised: questions, contexts, distractors, labels, "
            "study, techniques, defence, rules, mapping or target."
        ),
    ] = None,
    questions: Annotated[
        str | None,
        typer.Option("--questions", help="Questions that the file belongs to (as for 'run')."),
    ] = None,
    fields: options.FieldMap = None,
    sentences: Annotated[
        int | None,
        typer.Option(min=1, max=100, help="Number of sentences that every context must have."),
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Report every error in a file before a study uses it.

    Example: holdfast check my.csv --fields stem=vignette,gold=key

    Example: holdfast check contexts.jsonl --questions my.jsonl

    A target file is tried out: two messages are sent to the assistant.

    Example: holdfast check app.toml
    """
    if kind is not None and kind not in KINDS:
        raise unknown("kind", kind, KINDS, "--kind")
    kind = kind or _kind_of(source, beside=questions is not None, fields=fields)
    _check_goes_with(kind, questions, fields, sentences)
    question_set = _load_set(questions, fields) if questions else None
    lines = KINDS[kind](File(source, question_set, fields, sentences))
    if as_json:
        report = {"source": source, "kind": kind, **lines.facts}
        report["problems"] = _rows(lines.problems)
        if lines.left_out is not None:
            report["left_out"] = _rows(lines.left_out)
        options.print_json(report)
    _print_problems(source, lines.problems)
    _print_problems(source, lines.left_out or (), "skipped: ")
    if not as_json:
        _print_lines(source, [f"read as {_KIND_NAMES[kind]}", *lines.lines])
    if lines.problems:
        rows = len({problem.row for problem in lines.problems})
        raise InputError(
            f"has {counted(rows, 'bad row')}",
            source,
            remedy="Correct the rows above and check the file again",
        )
    if lines.refusal:
        raise lines.refusal
    if not as_json:
        for remark in lines.remarks:
            sys.stderr.write(f"{source}: {remark}\n")
        _print_lines(source, lines.sound)


def _check_goes_with(
    kind: str, questions: str | None, fields: str | None, sentences: int | None
) -> None:
    """Refuse options that do not apply to this kind of file."""
    of_questions = ("contexts", "distractors", "labels")
    takes = {
        "--questions": (questions, of_questions),
        "--fields": (fields, of_questions if questions else ("questions",)),
        "--sentences": (sentences, ("contexts",)),
    }
    for option, (value, kinds) in takes.items():
        if value is not None and kind not in kinds:
            remedy = f"Remove {option}, or name the kind of the file with --kind"
            raise InputError(f"does not apply to {_KIND_NAMES[kind]}", field=option, remedy=remedy)


def _print_lines(source: str, lines: Sequence[str]) -> None:
    for line in lines:
        sys.stdout.write(printable(f"{source}: {line}") + "\n")


def _load_set(source: str, fields: str | None) -> "QuestionSet":
    from holdfast.questions.fields import Fields
    from holdfast.questions.loading import load_questions

    return load_questions(source, Fields.parse(fields) if fields else None)


def _rows(problems: "Sequence[Problem]") -> list[dict[str, Any]]:
    return [{"row": p.row, "field": p.field, "message": p.message} for p in problems]


def _print_problems(source: str, problems: "Sequence[Problem]", before: str = "") -> None:
    """Print each message once, with the number of its rows."""
    alike: dict[tuple[str | None, str], list[Problem]] = {}
    for problem in problems:
        alike.setdefault((problem.field, problem.message), []).append(problem)
    for (column, message), rows in alike.items():
        if len(rows) > 1:
            row_numbers = ", ".join(str(problem.row) for problem in rows[:5])
            message += f" ({len(rows)} rows: {row_numbers}{', …' if len(rows) > 5 else ''})"
        sys.stderr.write(f"{before}{InputError(message, source, rows[0].row, column)}\n")


# Recognising the kind of a file


def _kind_of(source: str, *, beside: bool, fields: str | None) -> str:
    """Return the kind of a file, recognised by its columns or keys.

    Args:
        source: the file.
        beside: whether the user gave the questions that the file belongs to.
        fields: column names that the user gave.

    Raises:
        InputError: the file cannot be read or its kind is unknown.
    """
    from holdfast.files import named_path
    from holdfast.questions.rows import SUFFIXES, read_rows

    if fields and not beside:
        return "questions"
    path = Path(source)
    if path.suffix.lower() == ".toml":
        return _kind_of_toml(source)
    if path.suffix.lower() not in SUFFIXES or "=" in source or source.startswith("hf:"):
        return "questions"  # a named set, or a file that the check of questions will refuse
    rows = islice(read_rows(named_path(source)), _LOOKED_AT)
    keys = (str(key) for _, row in rows if isinstance(row, dict) for key in row)
    columns = list(dict.fromkeys(keys))
    kind = _kind_of_columns(columns, beside=beside)
    if kind:
        return kind
    alternative = next(
        (alternative for marks, alternative in _OTHER_KINDS.items() if {*marks} <= {*columns}), None
    )
    description = f"the columns {', '.join(columns)}"
    raise _unknown_kind(
        source, f"looks like {alternative}" if alternative else f"has {description[:200]}"
    )


_LOOKED_AT = 200
"""Number of rows read to recognise a file."""

_OTHER_KINDS = {
    ("arm", "path", "turn", "reply"): "a turns table (read by 'holdfast table' and 'report')",
    ("head", "relation", "tail"): "a knowledge graph (read by 'generate distractors --graph')",
    ("question", "verdict"): "verdicts from 'generate plausibility'",
}
"""Description of other files, by the columns that mark them."""


def _kind_of_columns(columns: Sequence[str], *, beside: bool) -> str | None:
    from holdfast.challenges.contexts import has_contexts
    from holdfast.questions.fields import readable_fields
    from holdfast.questions.question import LABELS

    if not columns:
        return "questions"  # no row is readable, and the check of questions reports the reason
    of_question = readable_fields(columns)
    if not beside and {"stem", "options", "gold"} <= of_question:
        return "questions"
    if any({*marks} <= {*columns} for marks in _OTHER_KINDS):
        return None
    if has_contexts(columns):
        return "contexts"
    if "distractors" in columns:
        return "distractors"
    if of_question & {*LABELS} and (beside or not of_question & {"options", "gold"}):
        return "labels"
    return "questions" if not beside and of_question & {"stem", "options", "gold"} else None


def _kind_of_toml(source: str) -> str:
    from holdfast.files import named_path, text_of, toml_in

    keys = toml_in(text_of(named_path(source)), source)
    for kind, marks in _MARKS.items():
        if any(mark in keys and isinstance(keys[mark], sort) for mark, sort in marks.items()):
            return kind
    key_names = ", ".join(map(str, keys))
    raise _unknown_kind(source, f"has the keys {key_names[:200]}" if keys else "has no keys")


_MARKS: Mapping[str, Mapping[str, type]] = {
    "study": {"protocols": object},
    "techniques": {"technique": object},
    "rules": {"rule": object},
    "defence": {"kind": object},
    "target": {"url": str},
    "mapping": {"turn": dict, "first": dict, "later": dict, "messages": str},
}
"""Keys that mark each kind of TOML file, with the type of their values."""


def _unknown_kind(source: str, looks: str) -> InputError:
    return InputError(
        f"{looks}. 'check' does not recognise such a file",
        source,
        remedy=f"Name the kind with --kind: {', '.join(KINDS)}. For a question file, name the "
        "columns with --fields",
    )


# The check of each kind


def _questions(file: File) -> Checked:
    from holdfast.questions.fields import Fields
    from holdfast.questions.loading import check_questions

    fields = Fields.parse(file.fields) if file.fields else None
    question_set, problems = check_questions(file.source, fields)
    n = len(question_set.questions)
    counts = sorted({len(question.options) for question in question_set.questions})
    left_out = (
        f", {len(question_set.left_out)} skipped"
        if question_set.left_out
        else ", every row is valid"
    )
    empty_error = InputError(
        "has no questions", file.source, remedy="Give a file with at least one row"
    )
    return Checked(
        {"questions": n, **_columns(question_set)},
        lines=list(_columns_read(question_set)),
        problems=[*problems, *question_set.repeated_rows],
        left_out=question_set.left_out,
        refusal=None if n else empty_error,
        sound=[f"{counted(n, 'question')} with {' or '.join(map(str, counts))} options{left_out}"],
        remarks=list(_find_short_questions(question_set.questions)) if n else (),
    )


def _contexts(file: File) -> Checked:
    from holdfast.challenges.contexts import KINDS as TEXTS
    from holdfast.challenges.contexts import check_contexts

    contexts, problems = check_contexts(file.source, file.questions, file.sentences)
    ids = _ids(file, contexts.by_question)
    have: dict[str, int] = dict.fromkeys(TEXTS, 0)
    for id, context in contexts.by_question.items():
        for key in context.texts if id in ids else ():
            have[key] = have.get(key, 0) + 1
    empty_error = InputError(
        "matches none of these questions",
        file.source,
        field="question",
        remedy="Give contexts that were written for these questions",
    )
    refusal = None if ids & set(contexts.by_question) else empty_error
    return _summarise_counts(
        {"questions": len(ids), **have, "unused": contexts.unused_rows}, problems, refusal
    )


def _distractors(file: File) -> Checked:
    from holdfast.protocols.single_turn.distractors import check_distractors, load_distractors
    from holdfast.questions.bank import BANK_NAME

    problems: Sequence[Problem] = ()
    if file.source == BANK_NAME and file.questions:
        texts = load_distractors(file.source, file.questions)
    else:
        texts, problems = check_distractors(file.source, file.questions)
    ids, have = _ids(file, texts.by_question), len(texts.by_question)
    counts = {"questions": len(ids), "distractors": have, "unused": texts.unused_rows}
    return _summarise_counts(counts, problems)


def _labels(file: File) -> Checked:
    from holdfast.questions.question import LABELS
    from holdfast.running.preparation import check_labels

    rows, problems = check_labels(file.source, [file.questions] if file.questions else [])
    ids = _ids(file, dict.fromkeys(row["question"] for row in rows))
    have = {label: sum(label in row for row in rows) for label in LABELS}
    empty_error = InputError(
        "matches none of these questions",
        file.source,
        field="question",
        remedy="Give the labels of this question set",
    )
    return _summarise_counts(
        {"questions": len(ids), **have}, problems, None if rows else empty_error
    )


def _ids(file: File, by_question: Mapping[str, Any]) -> set[str]:
    """Return the ids of the given questions, or else of the questions that the file names."""
    question_set = file.questions
    return (
        {question.id for question in question_set.questions} if question_set else set(by_question)
    )


def _summarise_counts(
    counts: Mapping[str, int], problems: "Sequence[Problem]", refusal: InputError | None = None
) -> Checked:
    line = ", ".join(f"{name}: {n}" for name, n in counts.items())
    return Checked(counts, [line], problems, refusal=refusal)


def _study(file: File) -> Checked:
    from holdfast.results.gate_rules import read_rules
    from holdfast.running.resolved import checked
    from holdfast.running.study_file import UNTIL, with_study_file

    arguments = with_study_file({"protocols": [file.source]})
    if UNTIL in arguments:
        read_rules(arguments[UNTIL])
    studies, models, roles = checked(arguments)
    protocols_by_name = {
        "protocols": [study.name for study in studies],
        "questions": [study.questions.name for study in studies],
        "defences": [study.defence.id for study in studies if study.defence],
        "models": models,
        "roles": [f"{role}={model}" for role, model in roles.items()],
    }
    facts = {name: list(dict.fromkeys(values)) for name, values in protocols_by_name.items()}
    lines = [f"{name}: {', '.join(values)}" for name, values in facts.items() if values]
    return Checked(facts, lines)


def _techniques(file: File) -> Checked:
    from holdfast.challenges.catalogue import bundled_techniques, load_catalogue

    catalogue = bundled_techniques()
    additions = [
        technique
        for technique in load_catalogue(file.source).values()
        if catalogue.get(technique.id) != technique
    ]
    lines = [
        f"{technique.id}: {technique.family}, {technique.axis}, {technique.depth}"
        + (f", needs {', '.join(technique.needs)}" if technique.needs else "")
        + (", replacing the built-in one" if technique.id in catalogue else "")
        for technique in additions
    ]
    return Checked({"techniques": [technique.model_dump() for technique in additions]}, lines)


def _defence(file: File) -> Checked:
    from holdfast.defences.defence import load_defence

    block = load_defence(file.source)
    facts = block.model_dump(exclude_defaults=True) if block else {}
    return Checked({"defence": facts}, [f"{facts['id']}: {facts['kind']}"] if facts else [])


def _gate_rules(file: File) -> Checked:
    from holdfast.results.gate_rules import read_rules

    rules = read_rules(file.source)
    facts = [rule.model_dump(exclude_none=True) for rule in rules.rule]
    lines = [f"{counted(len(facts), 'rule')} at level {rules.level:g}"]
    lines += [f"rule {number}: {rule.title}" for number, rule in enumerate(rules.rule, start=1)]
    return Checked({"level": rules.level, "rules": facts}, lines)


def _mapping(file: File) -> Checked:
    from holdfast.transcripts.mapping import read_mapping

    mapping = read_mapping(Path(file.source))
    sections = {name: list(getattr(mapping, name)) for name in ("turn", "first", "later")}
    lines = [f"{name}: {', '.join(names)}" for name, names in sections.items() if names]
    return Checked({"fields": sections}, lines)


def _target(file: File) -> Checked:
    from holdfast.running.target_check import check_target

    result = check_target(
        file.source, lambda where: print(printable(f"{file.source}: {where}"), file=sys.stderr)
    )
    lines = []
    for number, message in enumerate(result.sent, start=1):
        lines.append(f"sent {number}: {_cut(message)}")
    lines += [f"read {number}: {_cut(text)}" for number, text in enumerate(result.replies, start=1)]
    form = (
        "the newest message, and branches are replayed"
        if result.is_stateful
        else ("the whole conversation, and nothing is replayed")
    )
    lines.append(f"each call brings {form}")
    place = "can be put where it retrieves" if result.takes_documents else "have no place"
    lines.append(f"documents {place}")
    if result.remembers:
        lines.append("the second reply knows what the first message said")
    forgets = (
        "the second reply does not name the age that the first message told. An assistant that "
        "forgets cannot be challenged: check session and messages"
    )
    facts = {
        "sent": list(result.sent), "read": list(result.replies), "stateful": result.is_stateful,
        "documents": result.takes_documents, "remembers": result.remembers,
    }  # fmt: skip
    return Checked(facts, lines, remarks=() if result.remembers else (forgets,))


def _cut(text: str) -> str:
    words = " ".join(text.split())
    return f"{words[:300]}{'...' if len(words) > 300 else ''}"


KINDS: Mapping[str, Callable[[File], Checked]] = {
    "questions": _questions,
    "contexts": _contexts,
    "distractors": _distractors,
    "labels": _labels,
    "study": _study,
    "techniques": _techniques,
    "defence": _defence,
    "rules": _gate_rules,
    "mapping": _mapping,
    "target": _target,
}
"""Check function of each kind of file."""

_KIND_NAMES = {kind: kind for kind in KINDS} | {
    "distractors": "wrong options",
    "study": "a study",
    "defence": "a defence",
    "rules": "rules of a gate",
    "mapping": "a mapping",
    "target": "a target",
}
"""Name of each kind in messages."""


def _columns(question_set: "QuestionSet") -> dict[str, Any]:
    if question_set.shape is None:
        return {}
    columns = {name: list(of_field) for name, of_field in question_set.shape.columns.items()}
    return {
        "columns": columns,
        "gold_base": question_set.shape.gold_base,
        "ignored_columns": list(question_set.ignored_columns),
    }


def _columns_read(question_set: "QuestionSet") -> Iterator[str]:
    """Yield the columns that are read, and the ignored columns with their replacement."""
    from holdfast.questions.fields import readable_as

    if question_set.shape is None:
        return
    columns = {name: ", ".join(of_field) for name, of_field in question_set.shape.columns.items()}
    base = question_set.shape.gold_base
    columns_read = [
        f"{name} from {column}"
        + (f" (counted from {base})" if name == "gold" and base is not None else "")
        for name, column in columns.items()
    ]
    yield f"columns read: {'; '.join(columns_read)}"
    ignored_columns = []
    for column in question_set.ignored_columns:
        field = readable_as(column)
        ignored_columns.append(
            f"{column} ({field} is {columns[field]})" if field in columns else column
        )
    if ignored_columns:
        yield f"columns ignored: {', '.join(ignored_columns)}"


def _find_short_questions(questions: "Sequence[Question]") -> Iterator[str]:
    """Yield a warning about questions with unusually few options, which may have empty cells."""
    usual_count, _ = Counter(len(question.options) for question in questions).most_common(1)[0]
    fewer = [question.id for question in questions if len(question.options) < usual_count]
    if fewer and len(fewer) * 10 <= len(questions):
        examples = ", ".join(fewer[:5]) + (", …" if len(fewer) > 5 else "")
        yield (
            f"{counted(len(fewer), 'question')} with fewer than {usual_count} options "
            f"({examples}): check for empty cells"
        )
