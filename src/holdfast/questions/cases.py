"""Cases with a free-text answer: questions without options, and other names of their answers."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from holdfast.errors import InputError
from holdfast.files import named_path

from .loading import QuestionSet
from .question import LETTERS, Question, digest_of, faults
from .rows import SUFFIXES, read_rows

OTHER = "X"
"""Letter of an answer that is not among the known ones."""

NO_WRONG = "(no wrong answer is known)"
"""In place of a wrong answer where a case names none."""


@dataclass(frozen=True)
class Reference:
    """What a judge is told of a question's answers.

    Attributes:
        aliases: other names of an answer, by its letter.
        rubric: what counts as an answer, in words.
    """

    aliases: Mapping[str, Sequence[str]] = field(default_factory=dict)
    rubric: str = ""

    @property
    def fingerprint(self) -> str:
        """SHA-256 (hex, 16 characters) of the content."""
        return digest_of([sorted((k, list(v)) for k, v in self.aliases.items()), self.rubric])


def load_references(source: str, questions: QuestionSet) -> dict[str, Reference]:
    """Load aliases and rubrics of a question file, by question id.

    Args:
        source: a file with the columns ``aliases`` (of the right answer) and ``rubric``, or a
            source without them.
        questions: questions of the source.
    """
    if not source.endswith(SUFFIXES):
        return {}
    references = {}
    for place, (_, row) in enumerate(read_rows(named_path(source))):
        if isinstance(row, str):
            continue
        question = questions.named(row["id"] if row.get("id") not in (None, "") else place)
        aliases, rubric = _listed(row.get("aliases")), str(row.get("rubric") or "")
        if question and (aliases or rubric):
            references[question.id] = Reference({question.gold: aliases}, rubric)
    return references


def load_cases(source: str) -> QuestionSet | None:
    """Load a file of cases as questions whose options are the known answers, in no telling order.

    Args:
        source: a file whose rows have ``question``, ``answer`` (a text) and optionally ``id`` and
            ``wrong`` (wrong answers), and no options. Anything else gives None.

    Raises:
        InputError: the file cannot be read, or a row is not a case.
    """
    if not source.endswith(SUFFIXES):
        return None
    rows = list(read_rows(named_path(source)))
    first = next((row for _, row in rows if isinstance(row, dict)), {})
    stem = next((name for name in ("question", "stem") if name in first), None)
    if stem is None or "answer" not in first or _OPTIONS & first.keys():
        return None
    questions: dict[str, Question] = {}
    for place, (number, row) in enumerate(rows):
        if isinstance(row, str):
            raise InputError(row, source, number, remedy="Correct the row")
        answer, wrong = str(row.get("answer") or ""), _listed(row.get("wrong")) or [NO_WRONG]
        texts = sorted([answer, *wrong], key=lambda text: digest_of([str(row.get(stem)), text]))
        options = dict(zip(LETTERS, texts, strict=False))
        gold = LETTERS[texts.index(answer)]
        id = f"{place:04d}" if row.get("id") in (None, "") else str(row["id"])
        problems = faults(id, str(row.get(stem) or ""), options, gold)
        if id in questions:
            problems.append(("id", f"'{id}' is already used"))
        if problems:
            column, message = problems[0]
            names = {"stem": stem, "options": "answer", "gold": "answer"}
            raise InputError(message, source, number, names.get(column, column), "Correct the row")
        questions[id] = Question(id=id, stem=str(row[stem]), options=options, gold=gold)
    name = named_path(source).stem
    return QuestionSet(name, tuple(questions.values()))


_OPTIONS = {"options", "choices", "A", "a", "opa", "option_a"}
"""Columns that a file of multiple-choice questions has."""


def _listed(cell: Any) -> list[str]:
    """The texts of a cell: a list, a list as JSON, or one text."""
    if isinstance(cell, str) and cell.lstrip().startswith("["):
        try:
            cell = json.loads(cell)
        except (ValueError, RecursionError):
            return [cell]
    if isinstance(cell, list):
        return [str(text) for text in cell if str(text).strip()]
    return [cell] if isinstance(cell, str) and cell.strip() else []
