"""Which column of a file holds what: given with ``--fields``, or recognised."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from itertools import takewhile
from typing import Any

from holdfast.errors import InputError, unknown

from .question import LETTERS
from .reading import Row


@dataclass(frozen=True)
class Fields:
    """Which column holds what.

    Attributes:
        id: column of the id; rows are numbered from 0000 where it is absent.
        stem: column of the question text.
        options: one column with a dict, a list or either as JSON text; or one column per option.
        gold: column of the right answer: a letter, an option's text, or a number.
        gold_base: what the first option is called where the answer is a number (0 or 1).
        step: column of the USMLE step.
        system: column of the USMLE system.
        specialty: column of the clinical specialty.
        subject: column of the discipline.
    """

    id: str = "id"
    stem: str = "stem"
    options: str | tuple[str, ...] = "options"
    gold: str = "gold"
    gold_base: int | None = None
    step: str = "step"
    system: str = "system"
    specialty: str = "specialty"
    subject: str = "subject"

    @classmethod
    def parse(cls, text: str) -> "Fields":
        """Read ``stem=vignette,options=a|b|c|d,gold=key,gold_base=1``.

        Raises:
            InputError: an unknown field name, or a part that is not ``name=column``.
        """
        known = [f.name for f in fields(cls)]
        values: dict[str, Any] = {}
        for part in text.split(","):
            name, equals, column = part.strip().partition("=")
            if not equals or not column:
                remedy = "Write for example stem=vignette,options=a|b|c|d,gold=key"
                what = f"'{part.strip()}' is not name=column"
                raise InputError(what, field="--fields", remedy=remedy)
            if name not in known:
                raise unknown("field", name, known, "--fields")
            values[name] = column
        if "|" in values.get("options", ""):
            values["options"] = tuple(values["options"].split("|"))
        if "gold_base" in values:
            base = values["gold_base"]
            if base not in ("0", "1"):
                raise InputError(f"gold_base is '{base}'", field="--fields", remedy="Use 0 or 1")
            values["gold_base"] = int(base)
        return cls(**values)


MEDQA = Fields(stem="question", gold="answer_idx", step="meta_info")
_OPA = ("opa", "opb", "opc", "opd")
MEDMCQA = Fields(stem="question", options=_OPA, gold="cop", gold_base=1, subject="subject_name")
# as Chen et al. (2025) curate the JAMA Clinical Challenges, cited in Stick-or-Switch, section 4.1
JAMA = Fields(stem="question", options=_OPA, gold="answer_idx", specialty="field")

ALIASES: Mapping[str, tuple[str, ...]] = {
    "id": ("id", "question_id", "qid"),
    "stem": ("stem", "question", "vignette", "prompt"),
    "options": ("options", "choices"),
    "gold": (
        "gold",
        "answer_idx",
        "answer",
        "correct",
        "label",
        "correct_answer",
        "right_answer",
        "correct_option",
    ),
    "step": ("step", "meta_info"),
    "system": ("system",),
    "specialty": ("specialty",),
    "subject": ("subject", "subject_name"),
}
"""Column names looked for, in order, where a file is of no known shape."""

OPTION_COLUMNS = (
    tuple(LETTERS),
    tuple(LETTERS.lower()),
    tuple(f"option_{letter}" for letter in LETTERS.lower()),
    tuple(f"op{letter}" for letter in LETTERS.lower()),
)
"""Families of one-column-per-option names looked for where there is no options column."""


def recognised(rows: Iterable[Row], source: str, cop_base: int = 1) -> Fields:
    """The shape of a file: of its first row that shows one, with every row's option columns."""
    readable = [row for _, row in rows if not isinstance(row, str)]
    columns = {column for row in readable for column in row}
    exact = {column: column for column in columns}
    # as people head their columns: "Option A", "Correct answer"
    plain = {re.sub(r"[\s_-]+", "_", str(one).strip().lower()): one for one in columns}
    refused: InputError | None = None
    for names in (exact, plain) if len(plain) == len(columns) else (exact,):
        known = {column: name for name, column in names.items()}
        for row in readable:
            renamed = {known[column]: value for column, value in row.items()}
            try:
                return _renamed(_shape(renamed, {*names}, source, cop_base), names)
            except InputError as error:
                refused = refused or error
    if refused:
        raise refused
    return Fields()


def _renamed(shape: Fields, names: Mapping[str, str]) -> Fields:
    """The shape with a file's own names of its columns."""
    given = asdict(shape)
    for field, column in given.items():
        if isinstance(column, str):
            given[field] = names.get(column, column)
        elif isinstance(column, tuple):
            given[field] = tuple(names.get(one, one) for one in column)
    return Fields(**given)


def is_medmcqa(shape: Fields) -> bool:
    """Whether the columns of options and gold are MedMCQA's."""
    return (shape.options, shape.gold) == (MEDMCQA.options, MEDMCQA.gold)


def _shape(row: Mapping[str, Any], columns: set[str], source: str, cop_base: int) -> Fields:
    # Where a file has the marks of two shapes, options in one column go before a column for each,
    # and a letter before a number: neither can be read in two ways.
    if {"question", "options", "answer_idx"} <= row.keys():
        return MEDQA
    if {"question", "opa", "opb", "answer_idx"} <= row.keys():
        own = "specialty" if "specialty" in columns and "field" not in columns else "field"
        return replace(JAMA, options=_option_columns(columns, source), specialty=own)
    if {"question", "opa", "opb", "cop"} <= row.keys():
        return replace(MEDMCQA, gold_base=cop_base)
    found: dict[str, Any] = {
        name: next(alias for alias in aliases if alias in row)
        for name, aliases in ALIASES.items()
        if any(alias in row for alias in aliases)
    }
    if "options" not in found and (options := _option_columns(columns, source)):
        found["options"] = options
    missing = [name for name in ("stem", "options", "gold") if name not in found]
    if missing:
        raise InputError(
            f"no column for {' or '.join(missing)} among {', '.join(map(str, row))}"[:300],
            source,
            field=missing[0],
            remedy="Name the columns with --fields stem=...,options=...,gold=...",
        )
    return Fields(**found)


def _option_columns(columns: set[str], source: str) -> tuple[str, ...]:
    """One column for each option, from the first without a gap; none where there are none."""
    for family in OPTION_COLUMNS:
        present = [column for column in family if column in columns]
        unbroken = tuple(takewhile(columns.__contains__, family))
        if len(unbroken) >= 2:
            if len(present) > len(unbroken):
                # lettering them anew would move the gold letter to another text
                raise InputError(
                    f"columns {', '.join(present)} leave a gap after {unbroken[-1]}",
                    source,
                    field="options",
                    remedy="Name the columns with --fields stem=...,options=...|...|...,gold=...",
                )
            return unbroken
    return ()
