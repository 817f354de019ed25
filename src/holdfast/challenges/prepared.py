"""What a study is prepared with, by question: from the bank, a file or a generator."""

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

from holdfast.errors import InputError, counted, did_you_mean
from holdfast.questions.bank import BANK_NAME
from holdfast.questions.loading import Problem, QuestionSet
from holdfast.questions.rows import SUFFIXES, read_rows

GENERATE = "generate"
"""Name of what a generator makes before the study."""

GENERATED_PREFIX = "generated:"
"""Before the name of a file that a generator has written for this very study."""

ORIGIN = ("model", "settings", "template_version")
"""Columns that say how a row was made."""

V = TypeVar("V")
P = TypeVar("P", bound="QuestionInputs[Any]")


@dataclass(frozen=True)
class QuestionInputs(Generic[V]):
    """What is prepared for a question set.

    Attributes:
        name: ``bank``, ``none``, another source without a file, or the file.
        by_question: what there is, by question id.
        unused_rows: rows of the file for questions that are not in the set.
        origin: how a generator made them, for a study that has them made as it grows.
        is_simulated: whether they say nothing of medicine, but hold the place of what does.
    """

    name: str
    by_question: Mapping[str, V] = field(default_factory=dict)
    unused_rows: int = 0
    origin: str = ""
    is_simulated: bool = False

    setting: ClassVar[str]
    """What names the source."""
    noun: ClassVar[str]
    missing: ClassVar[str]
    remedy: ClassVar[str]
    """How a source is refused that has nothing for the questions."""

    def covers(self, questions: QuestionSet) -> bool:
        """Whether there is anything for one of the questions."""
        return any(question.id in self.by_question for question in questions.questions)

    def check_made(self) -> None:
        """Refuse what a generator has yet to make."""
        if self.name == GENERATE:
            remedy = (
                "Give --model-role generator=MODEL, or build a file with "
                f"'holdfast generate {self.noun}'"
            )
            raise InputError("no model has the role 'generator'", field=self.noun, remedy=remedy)

    def remarks(self) -> list[str]:
        """What of the file is not used."""
        rows = f"{self.name}: {counted(self.unused_rows, 'row')} for other questions"
        return [rows] if self.unused_rows else []


def prepared(
    kind: type[P],
    source: str,
    questions: QuestionSet,
    built_in_inputs: Mapping[str, Callable[[], P]],
    reader: Callable[[str], tuple[P, list[Problem]]],
) -> P:
    """What a source has for the questions; ``built_in_inputs`` makes what is in no file.

    Raises:
        InputError: the file cannot be read, a row is bad, or no row is for these questions.
    """
    if source.startswith(GENERATED_PREFIX):
        file = source.removeprefix(GENERATED_PREFIX)
        return replace(_read_whole(file, reader), origin=_origin_of(file))
    if source in built_in_inputs:
        inputs = built_in_inputs[source]()
        if source != BANK_NAME:
            return inputs
    elif source.endswith(SUFFIXES) or os.path.exists(source):
        inputs = _read_whole(source, reader)
    else:
        remedy = did_you_mean(source, built_in_inputs)
        raise InputError(f"no such {kind.noun} '{source}'", field=kind.setting, remedy=remedy)
    if not inputs.covers(questions):
        raise InputError(
            f"has no {kind.missing} for any of the {len(questions.questions)} questions of "
            f"'{questions.name}'",
            source,
            field="question",
            remedy=kind.remedy,
        )
    return inputs


def _read_whole(file: str, reader: Callable[[str], tuple[P, list[Problem]]]) -> P:
    inputs, problems = reader(file)
    if problems:
        raise problems[0].refused(file)
    return inputs


def _origin_of(source: str) -> str:
    """How the rows of a generated file were made: model, settings, version of the prompts."""
    rows = [row for _, row in read_rows(Path(source)) if isinstance(row, dict)]
    return " ".join(sorted({json.dumps([row.get(name) for name in ORIGIN]) for row in rows}))
