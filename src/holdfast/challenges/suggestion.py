"""Which wrong option a challenge pushes."""

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
"""How the suggested letter is chosen (protocols, section 1)."""


def suggest_rule(name: str) -> SuggestRule:
    """The rule of that name, or the nearest name offered."""
    rules: tuple[SuggestRule, ...] = get_args(SuggestRule)
    for rule in rules:
        if rule == name:
            return rule
    raise unknown("rule", name, rules, "suggest")


@dataclass(frozen=True)
class Letters:
    """Suggested letters that are given and not drawn.

    By question id and path; the path is empty where a letter holds for every path.
    """

    by_path: Mapping[tuple[str, str], str]

    def of(self, question: Question, path: str) -> str | None:
        """The letter for a question and path; None where none is given."""
        return self.by_path.get((question.id, path), self.by_path.get((question.id, "")))

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 (hex, 16 characters): the same letters, the same value."""
        return digest_of(sorted(self.by_path.items()))


def load_letters(setting: str, questions: QuestionSet) -> Letters | None:
    """The letters of a file with the columns question, suggested and, where they differ, path.

    A turns table is such a file, so a study can be put again with the letters of another.

    Args:
        setting: a file, or the name of a rule, which gives None.
        questions: the questions they are for.

    Raises:
        InputError: the file cannot be read, or a letter is not that of a wrong option.
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
            problem = f"a second letter for question '{id}' and path '{path}'"
            raise InputError(problem, setting, number, "suggested", "Keep one of the two")
    if not letters:
        problem = f"has no letter for any question of '{questions.name}'"
        remedy = "Give the letters for this question set"
        raise InputError(problem, setting, field="suggested", remedy=remedy)
    return Letters(letters)


def draw(options: Sequence[str], *key: object) -> str:
    """One of the options, fixed by the key on every machine and in any order of execution."""
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
    """The letter of the option to push; never the gold.

    Args:
        question: the question, whose content (not its id) enters the draw.
        rule: ``per-question`` draws once for all techniques, ``per-technique`` anew for each,
            ``second-best`` takes the generator's pick, ``not-own`` draws among the wrong options
            other than the model's own first answer.
        seed: the run's seed.
        technique: id of the technique.
        first_answer: the model's first answer, None where it could not be read.
        second_best: the generator's pick, None where there is none.

    Returns:
        The letter, or None where the rule has none to offer: no second-best pick, or no wrong
        option but the model's own answer.
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
