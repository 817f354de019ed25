"""Context files: a question's texts on a row, written by a generator or made elsewhere."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from holdfast.errors import InputError, printable
from holdfast.files import named_path
from holdfast.questions import Problem, Question, QuestionSet, read_rows

from .context import Context, Contexts, text_key
from .generation import alternative_fault, is_valid_text, text_fault
from .technique import CONTEXTS

ORIGIN = ("model", "settings", "template_version")
"""Columns that say how a row was made."""

_FAULTY = "cannot be used"


@dataclass
class _Row:
    """What one row says, and what keeps it from being used."""

    question: str | None
    length: str
    second_best: str | None
    texts: dict[str, str] = field(default_factory=dict)
    faults: dict[str, str] = field(default_factory=dict)
    problems: list[tuple[str | None, str, str]] = field(default_factory=list)


def read_contexts(source: str, questions: QuestionSet, *, generated: bool = False) -> Contexts:
    """The contexts of a file.

    A row names its question by id (column ``question`` or ``id``) or by its stem (``question``).
    A text with another number of sentences than its row says (``sentences``), an alternative
    diagnosis that is one of the options, and texts for another question under the same id
    (``content_hash``) are left out, with the reason.

    Args:
        source: the file.
        questions: what the contexts are for.
        generated: whether the file was written for this study and may grow with it.

    Raises:
        InputError: the file cannot be read, or a row is bad (the first is named).
    """
    contexts, _ = _read(source, questions, None)
    return replace(contexts, origin=origin_of(source)) if generated else contexts


def origin_of(source: str) -> str:
    """How the rows of a generated file were made: model, settings, version of the prompts."""
    rows = [row for _, row in read_rows(Path(source)) if isinstance(row, dict)]
    return " ".join(sorted({json.dumps([row.get(name) for name in ORIGIN]) for row in rows}))


def check_contexts(
    source: str, questions: QuestionSet | None = None, sentences: int | None = None
) -> tuple[Contexts, list[Problem]]:
    """Read what can be read of a context file, and report everything that is wrong with it.

    Args:
        source: the file.
        questions: what the contexts are for; without them only the rows themselves are checked.
        sentences: how many sentences every text must have.

    Raises:
        InputError: the file as a whole cannot be read.
    """
    problems: list[Problem] = []
    contexts, found = _read(source, questions, problems, sentences)
    return contexts, [*problems, *found]


def _read(
    source: str,
    questions: QuestionSet | None,
    problems: list[Problem] | None,
    sentences: int | None = None,
) -> tuple[Contexts, list[Problem]]:
    """Contexts and the texts that cannot be used; bad rows are raised, or collected."""
    asked = _Asked(questions)
    merged: dict[str, dict[str, Any]] = {}
    seen: dict[tuple[str, str], int] = {}
    left_out: list[Problem] = []
    unused = 0
    for number, values in read_rows(named_path(source)):
        if isinstance(values, str):
            _bad(problems, source, number, None, values, "Mend the row")
            continue
        question = asked.of(values)
        row = _row(values, question, sentences)
        for column, message, remedy in row.problems:
            _bad(problems, source, number, column, message, remedy)
        if row.question is None or row.problems:
            continue
        id = question.id if question else row.question
        if (id, row.length) in seen:
            _bad(problems, source, number, "question", f"'{id}' was given before, in row "
                 f"{seen[id, row.length]}", "Keep one row of the two")  # fmt: skip
            continue
        seen[id, row.length] = number
        unused += questions is not None and question is None
        left_out.extend(Problem(number, key, text) for key, text in row.faults.items())
        kept = merged.setdefault(id, {"second_best": None, "texts": {}, "faults": {}})
        kept["second_best"] = kept["second_best"] or row.second_best
        kept["texts"] |= row.texts
        kept["faults"] |= row.faults
    if not problems and not any(kept["texts"] or kept["faults"] for kept in merged.values()):
        raise InputError(
            "holds no context",
            source,
            field=CONTEXTS[0],
            remedy=f"Give at least one of the columns {', '.join(CONTEXTS)}",
        )
    by_question = {id: Context(**kept) for id, kept in merged.items()}
    return Contexts(Path(source).name, by_question, unused), left_out


class _Asked:
    """The questions by what a row can name them by."""

    def __init__(self, questions: QuestionSet | None) -> None:
        self._questions = questions
        asked = questions.questions if questions else ()
        self._by_stem = {_spaced(question.stem): question for question in asked}

    def of(self, row: Mapping[str, Any]) -> Question | None:
        if self._questions is None:
            return None
        name = str(row.get("question", row.get("id")))
        return self._questions.named(name) or self._by_stem.get(_spaced(name))


def _spaced(text: str) -> str:
    return " ".join(text.split())


def _bad(
    problems: list[Problem] | None,
    source: str,
    number: int,
    column: str | None,
    message: str,
    remedy: str,
) -> None:
    if problems is None:
        raise InputError(message, source, number, column, remedy)
    problems.append(Problem(number, column, message))


def _row(values: Mapping[str, Any], question: Question | None, sentences: int | None) -> _Row:
    name = values.get("question", values.get("id"))
    length, stated = _whole(values.get("length")), _whole(values.get("sentences"))
    row = _Row(
        None if name in (None, "") else str(name),
        str(length or ""),
        values.get("second_best") or None,
    )
    other = _other_question(values, question)
    if other:
        row.second_best = None
    row.problems.extend(_problems(values, question, row))
    if row.problems:
        return row
    told = values.get("missing")
    reasons = told if isinstance(told, dict) else {}
    for kind in CONTEXTS:
        key, text = text_key(kind, length), values.get(kind)
        if not isinstance(text, str) or not text.strip():
            if kind in reasons:
                row.faults[key] = f"{kind} could not be generated ({reasons[kind]})"
            continue
        fault = text_fault(text, length or sentences or stated)
        diagnosis = values.get("alternative_answer")
        if not fault and kind == "alternative_context" and question and diagnosis:
            fault = alternative_fault(str(diagnosis), text, question)
        reason = other or (f"{kind} {_FAULTY} ({fault.kind})" if fault else "")
        if reason:
            row.faults[key] = reason
        else:
            row.texts[key] = text
    return row


def _other_question(values: Mapping[str, Any], question: Question | None) -> str:
    if question is None:
        return ""
    digest, options = values.get("content_hash"), values.get("options")
    differs = digest not in (None, "", question.content_hash)
    if isinstance(options, dict):
        differs = differs or {k: str(v) for k, v in options.items()} != question.options
    return "the contexts are for another question under this id" if differs else ""


def _problems(
    values: Mapping[str, Any], question: Question | None, row: _Row
) -> Iterator[tuple[str | None, str, str]]:
    """What is wrong with a row as such: field, message, remedy."""
    if row.question is None:
        yield "question", "is missing", "Name the question's id"
    for column in values:
        # other columns are the user's business, but one that almost is a context is a mistake
        near = [kind for kind in CONTEXTS if len(column) > 3 and kind.startswith(column[:10])]
        if column not in CONTEXTS and near and not column.endswith("_answer"):
            yield column, "is no column of contexts", f"Did you mean '{near[0]}'?"
    for column in ("length", "sentences"):
        if values.get(column) not in (None, "") and not _whole(values[column]):
            shown = printable(str(values[column])[:40])
            yield column, f"is '{shown}', not a number of sentences", "Mend it or leave it out"
    for column in (*CONTEXTS, "second_best"):
        text = values.get(column)
        if text is not None and not isinstance(text, str):
            yield column, "is not text", "Give text or leave it out"
        elif text is not None and not is_valid_text(text):
            yield column, "holds a lone surrogate, which is no valid text", "Mend it"
    if question and row.second_best is not None and row.second_best not in question.distractors:
        yield (
            "second_best",
            f"'{row.second_best}' is not a wrong option of question '{question.id}'",
            f"Use one of {', '.join(question.distractors)}",
        )


def _whole(value: object) -> int | None:
    """A positive whole number, also as a table without types writes it."""
    text = str(value).removesuffix(".0")
    return int(text) if text.isdecimal() and text.isascii() and int(text) > 0 else None
