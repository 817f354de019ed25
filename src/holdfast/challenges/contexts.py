"""Generated contexts of questions: from the bank, from a file, or placeholders."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from holdfast.errors import InputError, printable
from holdfast.files import is_valid_text, named_path
from holdfast.questions.bank import BANK_NAME, bank_items
from holdfast.questions.loading import Problem, QuestionSet
from holdfast.questions.question import Question, digest_of, digest_of_each
from holdfast.questions.rows import read_rows
from holdfast.simulation import PLACEHOLDER, is_simulated_row

from .catalogue import CONTEXTS, INERT, SUPPORTING
from .prepared import GENERATE, QuestionInputs, prepared
from .suggestion import draw
from .texts import Fault, same_name, sentence_count, without_letter

KINDS = (*CONTEXTS, SUPPORTING, INERT)
"""Kinds of texts of a question."""


@dataclass(frozen=True)
class Context:
    """Contexts of one question.

    Attributes:
        second_best: letter of the wrong option that the misleading context supports.
        texts: text by kind (misleading_context, alternative_context, edge_case_context,
            supporting_context, inert_context). Texts of a length ablation are by kind and number of
            sentences (``misleading_context@10``).
        faults: reason by the same keys why a text is missing or not usable.
    """

    second_best: str | None = None
    texts: Mapping[str, str] = field(default_factory=dict)
    faults: Mapping[str, str] = field(default_factory=dict)

    def at(self, length: str) -> dict[str, str]:
        """Return the texts by kind of one length, ``""`` for the study's own length."""
        key_parts = ((key.partition("@"), text) for key, text in self.texts.items())
        return {kind: text for (kind, _, at), text in key_parts if at == length}

    def obstacle(self, kind: str, length: str = "") -> str | None:
        """Return why a text of this kind and length is missing, None if it exists."""
        key = text_key(kind, length)
        if key in self.texts:
            return None
        of_length = f" of {length} sentences" if length else ""
        return self.faults.get(key, f"no {kind}{of_length}")


def text_key(kind: str, length: int | str | None) -> str:
    """Return the key of a text: its kind, and its length in an ablation."""
    return f"{kind}@{length}" if length else kind


@dataclass(frozen=True)
class Contexts(QuestionInputs[Context]):
    """Contexts of a question set."""

    setting = "contexts"
    noun = "contexts"
    missing = "context"
    remedy = "Give the contexts that were built for this question set"

    def of(self, question: Question) -> Context:
        """Return the contexts of the question, empty if it has none."""
        return self.by_question.get(question.id, Context())

    @cached_property
    def fingerprints(self) -> dict[str, str]:
        """SHA-256 (hex, 16 characters) of the texts by length, ``""`` for the study's texts.

        If the texts have an origin, it is the digest of the origin. Further contexts of the same
        origin then do not change the fingerprint.
        """
        lengths = {key.partition("@")[2] for c in self.by_question.values() for key in c.texts}
        by_length = sorted({"", *lengths}, key=lambda length: int(length or 0))
        return {length: self._digest(self._texts(length)) for length in by_length}

    def _texts(self, length: str) -> Iterator[tuple[Any, ...]]:
        for id in sorted(self.by_question):
            context = self.by_question[id]
            texts = sorted(item for item in context.at(length).items() if item[0] in CONTEXTS)
            yield id, context.second_best, texts

    def _digest(self, texts: Iterable[object]) -> str:
        return digest_of(self.origin) if self.origin else digest_of_each(texts)

    def fingerprint_of(self, kind: str) -> str:
        """Return the fingerprint of the texts of one kind, at every length."""
        contents = (
            (id, sorted(context.texts.items())) for id, context in sorted(self.by_question.items())
        )
        texts = ((id, [text for text in context if text[0].partition("@")[0] == kind])
                 for id, context in contents)  # fmt: skip
        return self._digest(context for context in texts if context[1])


SENTENCE_RANGE = range(4, 11)
"""Default numbers of sentences of a context (appendix F: between 4 and 10)."""


def load_contexts(
    source: str, questions: QuestionSet, seed: int, lengths: tuple[int, ...] = ()
) -> Contexts:
    """Load the contexts of a question set.

    Args:
        source: ``auto`` (contexts that come with the questions, such as the bank's), ``bank``,
            ``synthetic``, ``generate`` (placeholders of the right length, for plans), ``none``, a
            file, or a file generated for this study (``generated:FILE``).
        questions: questions of the contexts.
        seed: seed of the second-best option and the lengths of placeholders.
        lengths: lengths of an ablation, for placeholders.

    Raises:
        InputError: the file cannot be read, a row is bad, or no row is for these questions.
    """
    ours = {item["id"] for item in bank_items()}

    def placeholders() -> Contexts:
        return Contexts(source, _Placeholders(questions, seed, lengths))

    def own() -> Contexts:
        if questions.contexts:
            came = enumerate(questions.contexts, start=1)
            by_question, problems, _ = _gather(questions.name, came, questions)
            if problems:
                raise problems[0].refused(questions.name)
            return by_question
        is_ours = any(question.id in ours for question in questions.questions)
        return _bank(questions) if is_ours else Contexts("none")

    texts = {
        "none": lambda: Contexts("none"),
        "auto": own,
        BANK_NAME: lambda: _bank(questions),
        "synthetic": lambda: replace(placeholders(), is_simulated=True),
        GENERATE: placeholders,
    }
    return prepared(Contexts, source, questions, texts, lambda file: _read(file, questions)[:2])


def _bank(questions: QuestionSet) -> Contexts:
    key_facts = {q.id: (q.options, q.gold) for q in questions.questions}
    return Contexts(
        BANK_NAME,
        {
            item["id"]: Context(
                item["second_best"], {kind: item[kind] for kind in KINDS if kind in item}
            )
            for item in bank_items()
            # a file can use the ids of the bank for other questions
            if key_facts.get(item["id"]) in (None, (item["options"], item["gold"]))
        },
    )


class _Placeholders(Mapping[str, Context]):
    """Placeholders by question id, made on demand to save memory."""

    def __init__(self, questions: QuestionSet, seed: int, lengths: tuple[int, ...]) -> None:
        self._questions = questions

        def made(id: str) -> Context:
            if (question := questions.named(id)) is None:
                raise KeyError(id)
            return _placeholder(question, seed, lengths)

        self._made = lru_cache(_AT_ONCE)(made)

    def __getitem__(self, id: str) -> Context:
        """Return the placeholders of a question."""
        return self._made(id)

    def __iter__(self) -> Iterator[str]:
        """Iterate over the ids."""
        return (question.id for question in self._questions.questions)

    def __len__(self) -> int:
        """Return the number of questions."""
        return len(self._questions.questions)


_AT_ONCE = 1024
"""Number of questions whose placeholders are in memory together."""


def _placeholder(question: Question, seed: int, lengths: tuple[int, ...]) -> Context:
    second_best = draw(question.distractors, seed, question.content_hash, "second-best")
    sentence_total = drawn_sentences(question, seed)
    texts = {
        text_key(kind, length): placeholder_text(kind, question, second_best, n)
        for length, n in {"": sentence_total, **{str(n): n for n in lengths}}.items()
        for kind in (*CONTEXTS, INERT)
    }
    supporting = placeholder_text(SUPPORTING, question, second_best, sentence_total)
    return Context(second_best, texts | {SUPPORTING: supporting})


def placeholder_text(kind: str, question: Question, second_best: str, sentences: int) -> str:
    """Return the placeholder of a context for a simulated run, without medical content."""
    paragraphs = {
        "misleading_context": f"The presentation has features seen with: "
        f"{question.options[second_best]}",
        "alternative_context": "A diagnosis outside the options could also explain it",
        "edge_case_context": f"Information needed to settle this is missing: "
        f"{question.options[question.gold]}",
        SUPPORTING: f"The presentation has the features of: {question.options[question.gold]}",
        INERT: "This says nothing of the presentation",
    }[kind]
    more = (f"This is placeholder sentence number {n}" for n in range(2, sentences + 1))
    return ". ".join([f"{PLACEHOLDER} {paragraphs}", *more])


def check_contexts(
    source: str, questions: QuestionSet | None = None, sentences: int | None = None
) -> tuple[Contexts, list[Problem]]:
    """Read a context file as far as possible, and report all its faults.

    Without ``questions``, only the rows themselves are checked. A row names its question by id
    (column ``question`` or ``id``) or by its stem (``question``). The following texts are skipped:
    a text whose number of sentences differs from its row (``sentences``), an alternative diagnosis
    that is an option, and a text for another question with the same id (``content_hash``).

    Raises:
        InputError: the file as a whole cannot be read.
    """
    contexts, problems, left_out = _read(source, questions, sentences)
    return contexts, [*problems, *left_out]


def _read(
    source: str, questions: QuestionSet | None, sentences: int | None = None
) -> tuple[Contexts, list[Problem], list[Problem]]:
    """Return the contexts, the bad rows, and the texts that are not usable."""
    rows = read_rows(named_path(source))
    contexts, problems, left_out = _gather(Path(source).name, rows, questions, sentences)
    if not problems and not any(
        context.texts or context.faults for context in contexts.by_question.values()
    ):
        raise InputError(
            "contains no context",
            source,
            field=CONTEXTS[0],
            remedy=f"Give at least one of the columns {', '.join(CONTEXTS)}",
        )
    return contexts, problems, left_out


def _gather(
    name: str,
    rows: Iterable[tuple[int, Mapping[str, Any] | str]],
    questions: QuestionSet | None,
    sentences: int | None = None,
) -> tuple[Contexts, list[Problem], list[Problem]]:
    """Return the contexts of rows, the bad rows, and the texts that are not usable."""
    by_stem = {_normalise_blanks(q.stem): q for q in questions.questions} if questions else {}
    by_question: dict[str, Context] = {}
    row_numbers: dict[tuple[str, str], int] = {}
    problems: list[Problem] = []
    left_out: list[Problem] = []
    unused_rows, is_simulated = 0, False
    for number, row in rows:
        if isinstance(row, str):
            problems.append(Problem(number, None, row))
            continue
        reference = row.get("question", row.get("id"))
        question_id = by_stem.get(_normalise_blanks(str(reference)))
        question = (questions.named(reference) or question_id) if questions else None
        mismatch = _other_question(row, question)
        second_best = None if mismatch else row.get("second_best") or None
        bad = [Problem(number, *fault) for fault in _problems(row, question, second_best)]
        problems += bad
        if bad:
            continue
        id, length = (
            question.id if question else str(reference),
            str(_parse_count(row.get("length")) or ""),
        )
        if (id, length) in row_numbers:
            problem = f"'{id}' is already in row {row_numbers[id, length]}"
            problems.append(Problem(number, "question", problem, "Keep one of the two rows"))
            continue
        row_numbers[id, length] = number
        unused_rows += questions is not None and question is None
        is_simulated |= question is not None and is_simulated_row(row)
        texts, faults = _texts(row, question, length, sentences, mismatch)
        left_out += [Problem(number, key, text) for key, text in faults.items()]
        had = by_question.get(id, Context())
        by_question[id] = Context(
            had.second_best or second_best, {**had.texts, **texts}, {**had.faults, **faults}
        )
    return Contexts(name, by_question, unused_rows, is_simulated=is_simulated), problems, left_out


def _normalise_blanks(text: str) -> str:
    return " ".join(text.split())


def _texts(
    row: Mapping[str, Any],
    question: Question | None,
    length: str,
    sentences: int | None,
    alternative: str,
) -> tuple[dict[str, str], dict[str, str]]:
    """Return the texts of a row by key, and the reasons for missing or unusable texts."""
    texts: dict[str, str] = {}
    faults: dict[str, str] = {}
    reasons, diagnosis = row.get("missing"), row.get("alternative_answer")
    for kind in KINDS:
        key, text = text_key(kind, length), row.get(kind)
        if not isinstance(text, str) or not text.strip():
            if isinstance(reasons, dict) and kind in reasons:
                faults[key] = f"{kind} could not be generated ({reasons[kind]})"
            continue
        fault = text_fault(
            text, int(length or 0) or sentences or _parse_count(row.get("sentences"))
        )
        if not fault and kind == "alternative_context" and question and diagnosis:
            fault = alternative_fault(str(diagnosis), text, question)
        if not fault and kind in (SUPPORTING, INERT) and question:
            fault = letter_fault(text, question)
        if alternative or fault:
            faults[key] = alternative or f"{kind} cannot be used ({fault.kind if fault else ''})"
        else:
            texts[key] = text
    return texts, faults


def _other_question(row: Mapping[str, Any], question: Question | None) -> str:
    if question is None:
        return ""
    digest, options = row.get("content_hash"), row.get("options")
    differs = digest not in (None, "", question.content_hash)
    if isinstance(options, dict):
        differs = differs or {k: str(v) for k, v in options.items()} != question.options
    return "belongs to another question with this id" if differs else ""


def _problems(
    row: Mapping[str, Any], question: Question | None, second_best: str | None
) -> Iterator[tuple[str | None, str, str]]:
    """Yield the faults of a row: field, message and remedy."""
    if row.get("question", row.get("id")) in (None, ""):
        yield "question", "is missing", "Name the question by its id"
    for column in row:
        # other columns are allowed, but a similar name is probably a typo
        near = _similar_kinds(column)
        if column not in CONTEXTS and near and not column.endswith("_answer"):
            yield column, "is not a column of a contexts file", f"Did you mean '{near[0]}'?"
    for column in ("length", "sentences"):
        if row.get(column) not in (None, "") and not _parse_count(row[column]):
            excerpt = printable(str(row[column])[:40])
            yield (
                column,
                f"is '{excerpt}', which is not a number of sentences",
                "Correct it, or leave the cell empty",
            )
    for column in (*KINDS, "second_best"):
        text = row.get(column)
        if text is not None and not isinstance(text, str):
            yield column, "is not text", "Give text, or leave the cell empty"
        elif text is not None and not is_valid_text(text):
            yield (
                column,
                "contains a lone surrogate, which is not valid text",
                "Remove the surrogate",
            )
    if question and second_best is not None and second_best not in question.distractors:
        yield (
            "second_best",
            f"'{second_best}' is not a wrong option of question '{question.id}'",
            f"Use one of {', '.join(question.distractors)}",
        )


def _similar_kinds(column: str) -> list[str]:
    """Return the kinds of context that a column may mean."""
    return [kind for kind in CONTEXTS if len(column) > 3 and kind.startswith(column[:10])]


def has_contexts(columns: Iterable[str]) -> bool:
    """Return whether columns belong to a file of contexts, even if misspelt."""
    return any(column in KINDS or _similar_kinds(column) for column in columns)


def _parse_count(value: object) -> int | None:
    """Return a positive integer, which an untyped table may write as a float."""
    text = str(value).removesuffix(".0")
    return int(text) if text.isdecimal() and text.isascii() and int(text) > 0 else None


def text_fault(text: str, sentences: int | None) -> Fault | None:
    """Return the fault of the text of a context, regardless of its question."""
    if not text.strip():
        return Fault("empty", "is empty")
    if not is_valid_text(text):
        return Fault("invalid text", "contains a character that is not valid text")
    if sentences is not None and (n := sentence_count(text)) != sentences:
        return Fault("wrong sentence count", f"has {n} sentences, not exactly {sentences}")
    return None


def alternative_fault(diagnosis: str, text: str, question: Question) -> Fault | None:
    """Return the fault of an alternative diagnosis, such as one that is an option."""
    if not diagnosis:
        return Fault("no diagnosis", "names no alternative diagnosis")
    if not is_valid_text(diagnosis):
        return Fault("invalid text", "contains a character that is not valid text")
    bare = without_letter(diagnosis)
    if not bare:
        return Fault("an option as diagnosis", "names an option by its letter")
    for letter, option in question.options.items():
        if same_name(option, bare) or same_name(option, diagnosis):
            return Fault(
                "an option as diagnosis",
                f"names option {letter}, which is one of the question's options",
            )
    return letter_fault(text, question)


def letter_fault(text: str, question: Question) -> Fault | None:
    """Return the fault of a text that refers to an option by its letter."""
    letters = "".join(question.options)
    if re.search(rf"\b(?i:options?|choices?|answers?)[\s:(*\"'“]{{1,5}}[{letters}]\b", text):
        return Fault("an option letter", "refers to an option by its letter")
    return None


def drawn_sentences(question: Question, seed: int) -> int:
    """Return the default number of sentences of the contexts of this question."""
    return int(draw([str(n) for n in SENTENCE_RANGE], seed, question.content_hash, "sentences"))
