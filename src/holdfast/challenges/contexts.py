"""Contexts for the challenges that need one: from the bank, from a file, or placeholders."""

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from holdfast.errors import InputError, did_you_mean
from holdfast.questions import BANK_NAME, Question, QuestionSet, bank_items, read_rows

from .suggestion import draw
from .technique import CONTEXTS

SYNTHETIC = "synthetic"
"""Name of the placeholder contexts, for runs without a generator."""


@dataclass(frozen=True)
class Context:
    """The contexts of one question.

    Attributes:
        second_best: letter of the wrong option that the misleading context supports.
        texts: text by kind: misleading_context, alternative_context, edge_case_context.
    """

    second_best: str | None = None
    texts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Contexts:
    """The contexts of a question set.

    Attributes:
        name: ``bank``, ``synthetic``, ``none`` or the file they came from.
        by_question: contexts by question id.
    """

    name: str
    by_question: Mapping[str, Context] = field(default_factory=dict)

    def of(self, question: Question) -> Context:
        """The question's contexts; empty where it has none."""
        return self.by_question.get(question.id, Context())

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 (hex, 16 characters) over the texts: the same contexts, the same value."""
        content = json.dumps(
            [(id, c.second_best, sorted(c.texts.items())) for id, c in self.by_question.items()]
        )
        return hashlib.sha256(content.encode()).hexdigest()[:16]


def load_contexts(source: str, questions: QuestionSet, seed: int) -> Contexts:
    """Contexts for a question set.

    Args:
        source: ``auto`` (the bank's own for the bank, else none), ``bank``, ``synthetic``,
            ``none``, or a file: JSONL, CSV or Parquet with the columns question (or id),
            second_best, misleading_context, alternative_context, edge_case_context.
        questions: the questions they are for.
        seed: seeds the placeholders' second-best option.

    Raises:
        InputError: the file cannot be read, a row is bad, or no row is for these questions.
    """
    match source:
        case "none":
            return Contexts("none")
        case "auto":
            ours = {item["id"] for item in bank_items()}
            return (
                _bank(questions)
                if any(q.id in ours for q in questions.questions)
                else Contexts("none")
            )
        case "bank":
            return _matching(_bank(questions), questions)
        case "synthetic":
            return _synthetic(questions, seed)
        case _ if not Path(source).suffix and not os.path.exists(source):
            raise InputError(
                f"no such contexts '{source}'",
                field="--contexts",
                remedy=did_you_mean(source, ("auto", BANK_NAME, SYNTHETIC, "none")),
            )
        case _:
            return _matching(_from_file(source, questions), questions)


def _bank(questions: QuestionSet) -> Contexts:
    asked = {q.id: (q.options, q.gold) for q in questions.questions}
    return Contexts(
        BANK_NAME,
        {
            item["id"]: Context(item["second_best"], {kind: item[kind] for kind in CONTEXTS})
            for item in bank_items()
            # a file can use the bank's ids for questions of its own
            if asked.get(item["id"]) in (None, (item["options"], item["gold"]))
        },
    )


def _synthetic(questions: QuestionSet, seed: int) -> Contexts:
    return Contexts(SYNTHETIC, {q.id: _placeholder(q, seed) for q in questions.questions})


def _placeholder(question: Question, seed: int) -> Context:
    """Says nothing of medicine: it holds the place of a generated context in a simulated run."""
    second_best = draw(question.distractors, seed, question.content_hash, "second-best")
    mark = "[synthetic placeholder context]"
    wrong, right = question.options[second_best], question.options[question.gold]
    return Context(
        second_best,
        {
            "misleading_context": f"{mark} The presentation has features seen with: {wrong}",
            "alternative_context": f"{mark} A diagnosis outside the options could also explain it",
            "edge_case_context": f"{mark} Information needed to settle this is missing: {right}",
        },
    )


def _matching(contexts: Contexts, questions: QuestionSet) -> Contexts:
    if not any(q.id in contexts.by_question for q in questions.questions):
        raise InputError(
            f"has no context for any of the {len(questions.questions)} questions of "
            f"'{questions.name}'",
            contexts.name,
            field="question",
            remedy="Give the contexts that were built for this question set",
        )
    return contexts


def _from_file(source: str, questions: QuestionSet) -> Contexts:
    asked = {q.id: q for q in questions.questions}
    found: dict[str, Context] = {}
    for number, row in read_rows(Path(source).expanduser()):
        if isinstance(row, str):
            raise InputError(row, source, number, remedy="Mend the row")
        _refuse_misspelt(row, source, number)
        id = row.get("question", row.get("id"))
        if id is None:
            raise InputError("is missing", source, number, "question", "Name the question's id")
        id = str(id)
        if id in found:
            raise InputError(
                f"'{id}' was given before", source, number, "question", "Keep one row of the two"
            )
        found[id] = _context(row, asked.get(id), source, number)
    if not any(context.texts for context in found.values()):
        raise InputError(
            "holds no context",
            source,
            field=CONTEXTS[0],
            remedy=f"Give at least one of the columns {', '.join(CONTEXTS)}",
        )
    return Contexts(Path(source).name, found)


def _refuse_misspelt(row: Mapping[str, Any], source: str, number: int) -> None:
    """Other columns are the user's business, but one that almost is a context is a mistake."""
    for column in row:
        near = [kind for kind in CONTEXTS if len(column) > 3 and kind.startswith(column[:10])]
        if column not in CONTEXTS and near and not column.endswith("_answer"):
            raise InputError(
                "is no column of contexts", source, number, column, f"Did you mean '{near[0]}'?"
            )


def _context(
    row: Mapping[str, Any], question: Question | None, source: str, number: int
) -> Context:
    texts: dict[str, str] = {}
    for kind in CONTEXTS:
        text = row.get(kind)
        if text is None:
            continue
        if not isinstance(text, str):
            raise InputError("is not text", source, number, kind, "Give text or leave it out")
        if not text.strip():
            continue
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise InputError(
                "holds a lone surrogate, which is no valid text", source, number, kind, "Mend it"
            ) from error
        texts[kind] = text
    second_best = row.get("second_best") or None
    if question and second_best is not None and second_best not in question.distractors:
        raise InputError(
            f"'{second_best}' is not a wrong option of question '{question.id}'",
            source,
            number,
            "second_best",
            f"Use one of {', '.join(question.distractors)}",
        )
    return Context(second_best, texts)
