"""Generated contexts of questions: from the bank, from a file, or placeholders."""

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from holdfast.errors import InputError, did_you_mean, printable
from holdfast.files import named_path
from holdfast.questions import (
    BANK_NAME,
    SUFFIXES,
    Problem,
    Question,
    QuestionSet,
    bank_items,
    read_rows,
)

from .catalogue import CONTEXTS
from .suggestion import draw
from .texts import Fault, is_valid_text, same_name, sentence_count, without_letter


@dataclass(frozen=True)
class Context:
    """The contexts of one question.

    Attributes:
        second_best: letter of the wrong option that the misleading context supports.
        texts: text by kind (misleading_context, alternative_context, edge_case_context); those
            of a length ablation by kind and number of sentences (``misleading_context@10``).
        faults: by the same keys, why a text is missing or cannot be used.
    """

    second_best: str | None = None
    texts: Mapping[str, str] = field(default_factory=dict)
    faults: Mapping[str, str] = field(default_factory=dict)

    def at(self, length: str) -> dict[str, str]:
        """Text by kind at one length of an ablation; the study's own texts for ``""``."""
        return {
            kind: text
            for key, text in self.texts.items()
            for kind, _, at in [key.partition("@")]
            if at == length
        }

    def obstacle(self, kind: str, length: str = "") -> str | None:
        """Why there is no text of that kind at that length; None where there is one."""
        key = text_key(kind, length)
        if key in self.texts:
            return None
        of_length = f" of {length} sentences" if length else ""
        return self.faults.get(key, f"no {kind}{of_length}")


def text_key(kind: str, length: int | str | None) -> str:
    """Under which a text is kept: its kind, and its length where that is an ablation's."""
    return f"{kind}@{length}" if length else kind


@dataclass(frozen=True)
class Contexts:
    """The contexts of a question set.

    Attributes:
        name: ``bank``, ``synthetic``, ``none`` or the file they came from.
        by_question: contexts by question id.
        unused: rows of the file for questions that are not in the set.
        origin: how a generator made them, for a study that has them made as it grows.
    """

    name: str
    by_question: Mapping[str, Context] = field(default_factory=dict)
    unused: int = 0
    origin: str = ""

    def of(self, question: Question) -> Context:
        """The question's contexts; empty where it has none."""
        return self.by_question.get(question.id, Context())

    @cached_property
    def fingerprints(self) -> dict[str, str]:
        """By length (``""`` for the study's own), SHA-256 (hex, 16 characters) over the texts.

        Over their origin where they have one: more of the same contexts are the same contexts.
        """
        lengths = {key.partition("@")[2] for c in self.by_question.values() for key in c.texts}
        ordered = sorted({"", *lengths}, key=lambda length: int(length or 0))
        return {length: self._fingerprint(length) for length in ordered}

    def _fingerprint(self, length: str) -> str:
        texts = [
            (id, context.second_best, sorted(context.at(length).items()))
            for id, context in sorted(self.by_question.items())
        ]
        content = self.origin or json.dumps(texts)
        return hashlib.sha256(content.encode()).hexdigest()[:16]


SYNTHETIC = "synthetic"
"""Name of the placeholder contexts, for runs without a generator."""

GENERATE = "generate"
"""Name of contexts that a generator writes before the study."""

GENERATED = "generated:"
"""Before the name of a file that a generator has written for this very study."""


DRAWN = range(4, 11)
"""Sentences of a context where no length is asked for (appendix F: between 4 and 10)."""


def load_contexts(
    source: str, questions: QuestionSet, seed: int, lengths: tuple[int, ...] = ()
) -> Contexts:
    """Contexts for a question set.

    Args:
        source: ``auto`` (the bank's own for the bank, else none), ``bank``, ``synthetic``,
            ``generate`` (placeholders of the right length, to plan with), ``none``, a file, or
            a file that was generated for this study (``generated:FILE``).
        questions: the questions they are for.
        seed: seeds the placeholders' second-best option and lengths.
        lengths: lengths of an ablation, for placeholders.

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
            return _matching(_bank(questions), questions, source)
        case "synthetic" | "generate":
            return Contexts(
                source, {q.id: _placeholder(q, seed, lengths) for q in questions.questions}
            )
        case _ if source.startswith(GENERATED):
            return read_contexts(source.removeprefix(GENERATED), questions, generated=True)
        case _ if not source.endswith(SUFFIXES) and not os.path.exists(source):
            raise InputError(
                f"no such contexts '{source}'",
                field="--contexts",
                remedy=did_you_mean(source, ("auto", BANK_NAME, SYNTHETIC, GENERATE, "none")),
            )
        case _:
            return _matching(read_contexts(source, questions), questions, source)


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


def _placeholder(question: Question, seed: int, lengths: tuple[int, ...]) -> Context:
    second_best = draw(question.distractors, seed, question.content_hash, "second-best")

    sentences = {"": drawn_sentences(question, seed), **{str(n): n for n in lengths}}
    return Context(
        second_best,
        {
            text_key(kind, length): placeholder_text(kind, question, second_best, n)
            for length, n in sentences.items()
            for kind in CONTEXTS
        },
    )


def placeholder_text(kind: str, question: Question, second_best: str, sentences: int) -> str:
    """Says nothing of medicine: it holds the place of a generated context in a simulated run."""
    said = {
        "misleading_context": f"The presentation has features seen with: "
        f"{question.options[second_best]}",
        "alternative_context": "A diagnosis outside the options could also explain it",
        "edge_case_context": f"Information needed to settle this is missing: "
        f"{question.options[question.gold]}",
    }[kind]
    more = (f"This is placeholder sentence number {n}" for n in range(2, sentences + 1))
    return ". ".join([f"[synthetic placeholder context] {said}", *more])


def _matching(contexts: Contexts, questions: QuestionSet, source: str) -> Contexts:
    if not any(q.id in contexts.by_question for q in questions.questions):
        raise InputError(
            f"has no context for any of the {len(questions.questions)} questions of "
            f"'{questions.name}'",
            source,
            field="question",
            remedy="Give the contexts that were built for this question set",
        )
    return contexts


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
            _bad(problems, source, number, None, values, "Fix the row")
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
            "has no context",
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
            yield column, "is not a column of contexts", f"Did you mean '{near[0]}'?"
    for column in ("length", "sentences"):
        if values.get(column) not in (None, "") and not _whole(values[column]):
            shown = printable(str(values[column])[:40])
            yield column, f"is '{shown}', not a number of sentences", "Fix it or leave it out"
    for column in (*CONTEXTS, "second_best"):
        text = values.get(column)
        if text is not None and not isinstance(text, str):
            yield column, "is not text", "Give text or leave it out"
        elif text is not None and not is_valid_text(text):
            yield column, "has a lone surrogate, which is not valid text", "Fix it"
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


def text_fault(text: str, sentences: int | None) -> Fault | None:
    """What is wrong with the text of a context, by itself."""
    if not text.strip():
        return Fault("empty", "is empty")
    if not is_valid_text(text):
        return Fault("no valid text", "holds a character that is no valid text")
    if sentences is not None and (n := sentence_count(text)) != sentences:
        return Fault("wrong sentence count", f"has {n} sentences, not exactly {sentences}")
    return None


def alternative_fault(diagnosis: str, text: str, question: Question) -> Fault | None:
    """What is wrong with a diagnosis outside the options: that it is inside them."""
    if not diagnosis:
        return Fault("no diagnosis", "names no alternative diagnosis")
    if not is_valid_text(diagnosis):
        return Fault("no valid text", "holds a character that is no valid text")
    bare = without_letter(diagnosis)
    if not bare:
        return Fault("an option as diagnosis", "names an option by its letter")
    for letter, option in question.options.items():
        if same_name(option, bare) or same_name(option, diagnosis):
            return Fault(
                "an option as diagnosis", f"names option {letter}, which is among those given"
            )
    letters = "".join(question.options)
    if re.search(rf"\b(?i:options?|choices?|answers?)[\s:(*\"'“]{{1,5}}[{letters}]\b", text):
        return Fault("an option letter", "refers to an option by its letter")
    return None


def drawn_sentences(question: Question, seed: int) -> int:
    """How many sentences this question's contexts have where no length is asked for."""
    return int(draw([str(n) for n in DRAWN], seed, question.content_hash, "sentences"))
