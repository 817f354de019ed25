"""Question sets from files, the Hub and the bundled bank, checked row by row."""

import json
import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import attrgetter
from typing import Any

from holdfast.errors import InputError, did_you_mean, printable
from holdfast.files import is_valid_text, named_path

from .bank import BANK_NAME, bank_items
from .fields import NAMED_AS_FIELDS, Fields, Shape, is_medmcqa, recognised
from .question import LABELS, LETTERS, SAME_TEXT, Question, digest_of, faults
from .rows import SUFFIXES, Row, read_hugging_face, read_rows, split_spec
from .sets import CONTEXT, SetName, asked_for, named_sets


@dataclass(frozen=True, order=True)
class Problem:
    """Row that is not a valid question, with the reason."""

    row: int
    field: str | None
    message: str
    remedy: str = "Correct the row"

    def refused(self, source: str) -> InputError:
        """Return the error for a source that may not contain this row."""
        return InputError(self.message, source, self.row, self.field, self.remedy)


@dataclass(frozen=True)
class QuestionSet:
    """Questions with the name of their set.

    Attributes:
        name: short name, the ``dataset`` column of the turns table.
        questions: questions in the order of the source.
        left_out: known defects of a published set, skipped rather than refused.
        contexts: challenges of the set, as rows of a file of contexts.
        techniques: name of the techniques that come with the set.
        repeated_rows: rows whose question is also in an earlier row.
        shape: columns that are read, None for the bank and for sets with their own layout.
        ignored_columns: columns that are not read.
    """

    name: str
    questions: tuple[Question, ...]
    left_out: tuple[Problem, ...] = field(default=())
    contexts: tuple[Mapping[str, Any], ...] = field(default=(), repr=False)
    techniques: str | None = None
    repeated_rows: tuple[Problem, ...] = field(default=(), repr=False, compare=False)
    shape: Shape | None = field(default=None, repr=False, compare=False)
    ignored_columns: tuple[str, ...] = field(default=(), repr=False, compare=False)

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 (hex, 16 characters) of ids and contents. Equal sets have equal values."""
        return digest_of([(q.id, q.content_hash) for q in self.questions])

    @cached_property
    def _by_id(self) -> dict[str, Question]:
        return {question.id: question for question in self.questions}

    def named(self, name: object) -> Question | None:
        """Return the question with this id, or at this 0-based position."""
        id = str(name)
        if id not in self._by_id and id.isascii() and id.isdecimal():
            id = id.lstrip("0").zfill(4)  # questions without an id are numbered like this
        return self._by_id.get(id)

    def first(self, limit: int | None) -> "QuestionSet":
        """Return the first ``limit`` questions, or all of them for None."""
        return self if limit is None else replace(self, questions=self.questions[:limit])


def load_questions(
    source: str,
    columns: Fields | None = None,
    *,
    by_letter: bool = False,
    skip_bad: bool = False,
) -> QuestionSet:
    """Load a question set, and refuse it if a row is bad.

    Args:
        source: ``bank``, a published set (``named_sets``), a file, or ``hf:NAME@REVISION[:SPLIT]``.
        columns: columns by field for the user's files and sets. Other columns are recognised, as
            are all columns of ``bank`` and published sets.
        by_letter: whether to keep options with equal texts, for callers that compare letters.
        skip_bad: whether to skip bad rows.

    Raises:
        InputError: the source cannot be read, or a row is not a valid question (names the first).
    """
    questions, problems = check_questions(source, columns, by_letter=by_letter)
    if skip_bad:
        questions = replace(questions, left_out=(*questions.left_out, *problems))
    elif problems:
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        remedy = f"Correct the row. 'holdfast check {source}' lists every bad row"
        first = replace(problems[0], message=problems[0].message + more, remedy=remedy)
        raise first.refused(source)
    bad, set_name = len(questions.left_out), asked_for(source)
    if set_name and set_name.set.columns and bad * 10 > bad + len(questions.questions):
        first = questions.left_out[0]
        message = f"{first.message} (and {bad - 1} more rows)"
        remedy = (
            "The layout of the set differs from the published layout. Give a copy in the "
            "published layout"
        )
        raise replace(first, message=message, remedy=remedy).refused(source)
    if not questions.questions:
        raise InputError(
            "contains no questions", source, remedy="Give a file with at least one row"
        )
    return questions


def check_questions(
    source: str, columns: Fields | None = None, *, by_letter: bool = False
) -> tuple[QuestionSet, list[Problem]]:
    """Load the valid questions of a source and report every bad row.

    Raises:
        InputError: the source as a whole cannot be read.
    """
    name, row_source, set_name = _open(source)
    rows = list(row_source)
    problems: list[Problem] = []
    left_out: list[Problem] = []
    questions_loaded: list[Question] = []
    first_row_of: dict[str, int] = {}
    contexts: list[Mapping[str, Any]] = []
    layout_of_set = set_name is not None and bool(set_name.set.columns)
    is_file = not layout_of_set and source != BANK_NAME
    shape = NAMED_AS_FIELDS
    if not layout_of_set:
        mine = columns if source != BANK_NAME and not set_name else None
        shape = recognised(rows, source, mine, cop_base=0 if _on_hub(source, set_name) else 1)
        if (mine is None or mine.gold_base is None) and _counts_from_0(rows, shape):
            shape = replace(shape, gold_base=0)
    for index, (number, row) in enumerate(rows):
        if isinstance(row, str):
            (left_out if layout_of_set else problems).append(Problem(number, None, row))
            continue
        values, faults_found = _values(row, shape, index)
        if values["id"] in first_row_of:
            message = f"id '{values['id']}' is already used in row {first_row_of[values['id']]}"
            faults_found.append(("id", message))
        if by_letter:
            faults_found = [fault for fault in faults_found if not fault[1].endswith(SAME_TEXT)]
        if faults_found:
            # 21 of the 4,183 published MedMCQA dev questions repeat the text of an option
            alike = all(message.endswith(SAME_TEXT) for _, message in faults_found)
            # users cannot correct a published set
            is_tolerated = (is_medmcqa(shape) and alike) or layout_of_set
            bad = [Problem(number, column, message) for column, message in faults_found[:9]]
            left_out += bad[:1] if is_tolerated else []
            problems += [] if is_tolerated else bad
            continue
        first_row_of[values["id"]] = number
        # share one set of field names: a set for each question takes as much memory as the question
        questions_loaded.append(Question.model_construct(_FIELDS, **values, source=name))
        if layout_of_set and CONTEXT in row:
            texts = {
                k: v for k, v in row[CONTEXT].items() if isinstance(v, str) and is_valid_text(v)
            }
            contexts.append({"question": values["id"], **texts})
    contradicting = _contradictions(questions_loaded, first_row_of, shape.gold)
    (left_out if set_name else problems).extend(contradicting.values())
    questions = QuestionSet(
        name,
        tuple(question for question in questions_loaded if question.id not in contradicting),
        tuple(sorted(left_out, key=_row)),
        tuple(fault for fault in contexts if fault["question"] not in contradicting),
        set_name.set.techniques if set_name else None,
        repeated_rows=tuple(_find_repeats(questions_loaded, first_row_of)),
        shape=shape if is_file else None,
        ignored_columns=_find_ignored_columns(rows, shape) if is_file else (),
    )
    return questions, sorted(problems, key=_row)


_row = attrgetter("row")


def _find_ignored_columns(rows: Iterable[Row], shape: Shape) -> tuple[str, ...]:
    columns = dict.fromkeys(key for _, row in rows if not isinstance(row, str) for key in row)
    columns_used = {column for of_field in shape.columns.values() for column in of_field}
    return tuple(str(column) for column in columns if column not in columns_used)


def _contradictions(
    questions: Iterable[Question], row_of: Mapping[str, int], column: str
) -> dict[str, Problem]:
    """Return problems, by id, of questions with equal stem and options but another key."""
    alike: dict[str, list[Question]] = {}
    for question in questions:
        texts = sorted(text.strip() for text in question.options.values())
        alike.setdefault(digest_of([" ".join(question.stem.split()), texts], 64), []).append(
            question
        )
    problems = {}
    for group in alike.values():
        first: dict[str, Question] = {}
        for question in group:
            first.setdefault(question.options[question.gold].strip(), question)
        for question in group if len(first) > 1 else ():
            key = question.options[question.gold].strip()
            other_key, second = next(item for item in first.items() if item[0] != key)
            message = (
                f"the key is '{printable(key[:40])}', but row {row_of[second.id]} has the "
                "same stem and options "
                f"with the key '{printable(other_key[:40])}'"
            )
            problems[question.id] = Problem(row_of[question.id], column, message)
    return problems


def _find_repeats(questions: Iterable[Question], row_of: Mapping[str, int]) -> Iterator[Problem]:
    first: dict[str, str] = {}
    for question in questions:
        before = first.setdefault(question.content_hash, question.id)
        if before != question.id:
            message = (
                f"'{question.id}' asks the same question as '{before}' in row {row_of[before]}"
            )
            yield Problem(row_of[question.id], "id", message)


def _open(source: str) -> tuple[str, Iterable[Row], SetName | None]:
    """Return name and rows of a source, and the published set that it names."""
    if source == BANK_NAME:
        return BANK_NAME, enumerate(bank_items(), start=1), None
    if set_name := asked_for(source):
        return set_name.dataset, set_name.rows(), set_name
    if source.startswith("hf:"):
        spec = source.removeprefix("hf:")
        return split_spec(spec)[0].rstrip("/").split("/")[-1], read_hugging_face(spec), None
    path = named_path(source)
    if not os.path.exists(path) and not path.suffix:
        remedy = did_you_mean(source, (BANK_NAME, *named_sets()))
        raise InputError(f"unknown question set '{source}'", field="--questions", remedy=remedy)
    return path.stem if path.suffix in SUFFIXES else path.name, read_rows(path), None


def _on_hub(source: str, set_name: SetName | None) -> bool:
    if set_name:
        return set_name.on_hub
    return source.startswith("hf:") and not named_path(split_spec(source[3:])[0]).is_dir()


def _counts_from_0(rows: Iterable[Row], shape: Shape) -> bool:
    """Return whether the right answers are positions and one of them is 0."""
    zero = False
    for _, row in rows:
        if isinstance(row, str):
            continue
        value = row.get(shape.gold)
        number = _WHOLE.fullmatch(str(value).strip())
        if number and number[1].strip("0"):
            continue
        letter, _ = _gold(value, _options(row, shape)[0], None)
        if letter and not number:
            return False
        zero = zero or (number is not None and not letter)
    return zero


_WHOLE = re.compile(r"-?(\d+)(?:\.0)?")


def _values(
    row: Mapping[str, Any], shape: Shape, index: int
) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    """Return the values of a row as fields of a question, and all its faults."""
    problems: list[tuple[str, str]] = []
    stem = row.get(shape.stem)
    if not isinstance(stem, str):
        problems.append((shape.stem, "is missing" if stem is None else "is not text"))
    elif _says_nothing(stem):
        problems.append((shape.stem, f"is '{stem.strip()}', a marker of a missing value"))
    options, message = _options(row, shape)
    in_options = "options" if isinstance(shape.options, tuple) else shape.options
    if message or len(options) < 2:
        problem = f"has {len(options)} options, but a question needs 2 to 26"
        problems.append((in_options, message or problem))
    for letter, text in options.items():
        # "None" can be an answer, but other markers of empty cells cannot. One published MedMCQA
        # question has a "#NAME?" and was evaluated with it.
        if _says_nothing(text) and text.strip().lower() != "none" and not is_medmcqa(shape):
            placeholder_fault = f"option {letter} is '{text.strip()}', a marker of a missing value"
            problems.append((in_options, placeholder_fault))
    value = row.get(shape.gold)
    readable = options or value in (None, "")
    gold, message = _gold(value, options, shape.gold_base) if readable else ("", "")
    if message:
        problems.append((shape.gold, message))
    id_cell = row.get(shape.id) if shape.id is not None else None
    id = f"{index:04d}" if id_cell in (None, "") else str(id_cell)
    values = {"id": id, "stem": stem, "options": options, "gold": gold}
    columns = {label: getattr(shape, label) for label in LABELS}
    label_cells = {label: None if of is None else row.get(of) for label, of in columns.items()}
    labels = {
        label: None if value in (None, "") else str(value) for label, value in label_cells.items()
    }
    faulty = {column for column, _ in problems}
    if in_options in faulty:  # without valid options the letter cannot be checked
        faulty.add(shape.gold)
    text = stem if isinstance(stem, str) else ""
    problems += [
        (field, fault)
        for field, fault in faults(id, text, options, gold, labels)
        # a faulty field is reported once
        if {"stem": shape.stem, "gold": shape.gold, "options": in_options}.get(field) not in faulty
    ]
    return values | labels, problems


_FIELDS = set(Question.model_fields)
_NOTHING = frozenset("nan n/a null none #n/a #value! #ref! #name? #div/0! <na> undefined".split())
"""Markers that programs write for empty or failed cells."""


def _says_nothing(text: str) -> bool:
    return text.strip().lower() in _NOTHING


def _options(row: Mapping[str, Any], shape: Shape) -> tuple[dict[str, str], str]:
    if isinstance(shape.options, tuple):
        cells = [row.get(column) for column in shape.options]
        while cells and cells[-1] in (None, ""):  # fewer options than the widest question
            cells.pop()
        value: Any = cells
    else:
        value = row.get(shape.options)
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return {}, "is text, but not a JSON list or object"
    if isinstance(value, list) and value and all(isinstance(v, dict) for v in value):
        value = {str(v.get("key")): v.get("value") for v in value}
    return options_of(value)


def options_of(value: object) -> tuple[dict[str, str], str]:
    """Return the options of an object or a list by letter, and the fault or an empty text."""
    if isinstance(value, list):
        if len(value) > len(LETTERS):
            return {}, f"has {len(value)} options, but a question needs 2 to 26"
        value = dict(zip(LETTERS, value, strict=False))
    if not isinstance(value, dict):
        return {}, "is missing" if value is None else "is neither an object nor a list"
    # data sets with five option columns have null where a question has four options
    value = {letter: text for letter, text in value.items() if text is not None}
    if not all(isinstance(text, (str, int, float)) for text in value.values()):
        return {}, "contains an option that is not text"
    return {str(letter): str(text) for letter, text in value.items()}, ""


_LETTER_MARK = re.compile(r"(?:option\s+)?[(\[]?([A-Z])[)\].:]?", re.IGNORECASE)
"""Letter in a common notation: ``(A)``, ``A.``, ``[a]``, ``Option A``."""


def _gold(value: Any, options: Mapping[str, str], base: int | None) -> tuple[str, str]:
    if value is None or value == "":
        return "", "is missing"
    if base is not None:
        try:
            # some tools write integers with gaps as 1.0, 2.0, ...
            position = int(str(value).strip().removesuffix(".0")) - base
        except ValueError:
            excerpt = printable(str(value)[:40])
            return "", f"'{excerpt}' is not a number, but gold_base={base} requires one"
        if not 0 <= position < len(options):
            run = f"the options run from {base} to {base + len(options) - 1}"
            return "", f"{value} is not an option: counted from {base}, {run}"
        return list(options)[position], ""
    text = str(value).strip()
    if text in options:
        return text, ""
    if text.upper() in options:
        return text.upper(), ""
    matching = [letter for letter, option in options.items() if option.strip() == text]
    if len(matching) == 1:
        return matching[0], ""
    match = _LETTER_MARK.fullmatch(text)
    if match and match[1].upper() in options:
        return match[1].upper(), ""
    if (isinstance(value, float) and math.isnan(value)) or _says_nothing(text):
        return "", f"is '{text}', a marker of a missing value"
    if isinstance(value, int) or text.isdigit():
        return (
            "",
            "is a number. Say whether numbers start at 0 or 1: -T fields=gold_base=0 or 1 "
            "(check: --fields)",
        )
    letters = ", ".join(options)
    return (
        "",
        f"'{printable(text[:40])}' is neither one of the options {letters} nor an option's text",
    )
