"""Inputs of a study by question: from the bank, a file or a generator."""

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
"""Source name of inputs that a generator will write before the study."""

GENERATED_PREFIX = "generated:"
"""Prefix of the name of a file that a generator has written for this study."""

ORIGIN = ("model", "settings", "template_version")
"""Columns with the settings that generated a row."""

V = TypeVar("V")
P = TypeVar("P", bound="QuestionInputs[Any]")


@dataclass(frozen=True)
class QuestionInputs(Generic[V]):
    """Inputs for a question set.

    Attributes:
        name: ``bank``, ``none``, another source without a file, or the file.
        by_question: inputs by question id.
        unused_rows: number of rows of the file for questions outside the set.
        origin: settings of the generator, for a study that generates inputs as it grows.
        is_simulated: whether the inputs are placeholders without medical content.
    """

    name: str
    by_question: Mapping[str, V] = field(default_factory=dict)
    unused_rows: int = 0
    origin: str = ""
    is_simulated: bool = False

    setting: ClassVar[str]
    """Name of the setting with the source."""
    noun: ClassVar[str]
    missing: ClassVar[str]
    remedy: ClassVar[str]
    """Remedy of the error for a source without inputs for the questions."""

    def covers(self, questions: QuestionSet) -> bool:
        """Return whether there are inputs for any of the questions."""
        return any(question.id in self.by_question for question in questions.questions)

    def check_made(self) -> None:
        """Refuse inputs that a generator has yet to write."""
        if self.name == GENERATE:
            remedy = (
                "Give --model-role generator=MODEL, or build a file with "
                f"'holdfast generate {self.noun}'"
            )
            raise InputError("no model has the role 'generator'", field=self.noun, remedy=remedy)

    def remarks(self) -> list[str]:
        """Return notes on rows of the file that are not used."""
        rows = f"{self.name}: {counted(self.unused_rows, 'row')} for other questions"
        return [rows] if self.unused_rows else []


def prepared(
    kind: type[P],
    source: str,
    questions: QuestionSet,
    built_in_inputs: Mapping[str, Callable[[], P]],
    reader: Callable[[str], tuple[P, list[Problem]]],
) -> P:
    """Return the inputs of a source. ``built_in_inputs`` makes inputs without a file.

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
        raise InputError(f"unknown {kind.noun} '{source}'", field=kind.setting, remedy=remedy)
    if not inputs.covers(questions):
        raise InputError(
            f"contains no {kind.missing} for any of the {len(questions.questions)} questions of "
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
    """Return model, settings and prompt version of the rows of a generated file."""
    rows = [row for _, row in read_rows(Path(source)) if isinstance(row, dict)]
    return " ".join(sorted({json.dumps([row.get(name) for name in ORIGIN]) for row in rows}))
