"""The wrong option that a challenge suggests."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, get_args

from holdfast.errors import InputError, unknown
from holdfast.files import named_path
from holdfast.questions.loading import QuestionSet
from holdfast.questions.question import Question, digest_of
from holdfast.questions.rows import SUFFIXES, read_rows

SuggestRule = Literal["per-question", "per-technique", "second-best", "not-own"]
"""Rule that selects the suggested letter (protocols, section 1)."""


def suggest_rule(name: str) -> SuggestRule:
    """Return the rule with this name.

    Raises:
        InputError: the name is unknown (suggests the nearest names).
    """
    rules: tuple[SuggestRule, ...] = get_args(SuggestRule)
    for rule in rules:
        if rule == name:
            return rule
    raise unknown("rule", name, rules, "suggest")


@dataclass(frozen=True)
class Letters:
    """Suggested letters from a file, by question id and path.

    An empty path means that the letter holds for every path.
    """

    by_path: Mapping[tuple[str, str], str]

    def of(self, question: Question, path: str) -> str | None:
        """Return the letter for a question and path, None if the file has none."""
        return self.by_path.get((question.id, path), self.by_path.get((question.id, "")))

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 (hex, 16 characters) of the letters."""
        return digest_of(sorted(self.by_path.items()))


def load_letters(setting: str, questions: QuestionSet) -> Letters | None:
    """Load the letters of a file with the columns question, suggested and optionally path.

    A turns table is a valid file, so a study can reuse the letters of another study.

    Args:
        setting: a file, or the name of a rule, which gives None.
        questions: questions of the letters.

    Raises:
        InputError: the file cannot be read, or a letter is not a wrong option.
    """
    if not setting.endswith(SUFFIXES):
        return None
    letters: dict[tuple[str, str], str] = {}
    for number, row in read_rows(named_path(setting)):
        if isinstance(row, str):
            raise InputError(row, setting, number, remedy="Correct the row")
        for column in ("question", "suggested"):
            if column not in row:
                raise InputError("is missing", setting, number, column, "Rename the column")
        question, letter = questions.named(row["question"]), row["suggested"]
        if question is None or not letter:
            continue
        id, path = question.id, str(row.get("path") or "")
        if letter not in question.distractors:
            problem = f"'{letter}' is not a wrong option of question '{id}'"
            remedy = f"Use one of {', '.join(question.distractors)}"
            raise InputError(problem, setting, number, "suggested", remedy)
        if letters.setdefault((id, path), letter) != letter:
            problem = f"is the second letter for question '{id}' and path '{path}'"
            raise InputError(problem, setting, number, "suggested", "Keep one of the two")
    if not letters:
        problem = f"contains no letter for any question of '{questions.name}'"
        remedy = "Give the letters for this question set"
        raise InputError(problem, setting, field="suggested", remedy=remedy)
    return Letters(letters)


def draw(options: Sequence[str], *key: object) -> str:
    """Return one of the options, fixed by the key on any machine and in any order of execution."""
    digest = hashlib.sha256(json.dumps([str(part) for part in key]).encode()).digest()
    return options[int.from_bytes(digest[:8]) % len(options)]


def suggested_letter(
    question: Question,
    rule: SuggestRule,
    seed: int,
    technique: str,
    first_answer: str | None,
    second_best: str | None,
) -> str | None:
    """Return the letter of the option to suggest, never the gold.

    Args:
        question: question, whose content (not its id) is part of the draw.
        rule: ``per-question`` draws once for all techniques, ``per-technique`` once for each.
            ``second-best`` takes the generator's choice. ``not-own`` draws among the wrong options
            except the model's first answer.
        seed: seed of the run.
        technique: id of the technique.
        first_answer: first answer of the model, None if unparsed.
        second_best: choice of the generator, None if there is none.

    Returns:
        The letter. None if there is no second-best choice, or no wrong option except the model's
        first answer.
    """
    if rule == "second-best":
        return second_best
    wrong, key = question.distractors, (seed, question.content_hash)
    if rule == "per-technique":
        return draw(wrong, *key, "suggested", technique)
    letter = draw(wrong, *key, "suggested")
    if rule == "per-question" or letter != first_answer:
        return letter
    alternatives = [letter for letter in wrong if letter != first_answer]
    return draw(alternatives, *key, "not-own") if alternatives else None
