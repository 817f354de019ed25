"""Columns of a question file by field: named with ``fields``, or recognised."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from itertools import takewhile
from typing import Any

from holdfast.errors import InputError, did_you_mean, unknown

from .question import LABELS, LETTERS
from .rows import Row


@dataclass(frozen=True)
class Fields:
    """Columns that a user names, None for recognised columns.

    Attributes:
        id: column of the id. Without one, rows are numbered from 0000.
        stem: column of the question text.
        options: one column with an object, a list, or either as JSON text. Or one column per
            option.
        gold: column of the right answer: a letter, the text of an option, or a number.
        gold_base: number of the first option if the answer is a number (0 or 1).
        step: column of the USMLE step.
        system: column of the USMLE system.
        specialty: column of the clinical specialty.
        subject: column of the discipline.
    """

    id: str | None = None
    stem: str | None = None
    options: str | tuple[str, ...] | None = None
    gold: str | None = None
    gold_base: int | None = None
    step: str | None = None
    system: str | None = None
    specialty: str | None = None
    subject: str | None = None

    @property
    def columns(self) -> dict[str, tuple[str, ...]]:
        """Columns by field, for fields that have columns."""
        values = {name: getattr(self, name) for name in ALIASES}
        return {
            name: (value,) if isinstance(value, str) else value
            for name, value in values.items()
            if value is not None
        }

    @classmethod
    def parse(cls, text: str) -> "Fields":
        """Parse ``stem=vignette,options=a|b|c|d,gold=key,gold_base=1``.

        Raises:
            InputError: a field is unknown, or a part is not ``name=column``.
        """
        field_names = [f.name for f in fields(cls)]
        values: dict[str, Any] = {}
        for part in text.split(","):
            name, equals, column = part.strip().partition("=")
            if not equals or not column:
                remedy = "Write for example stem=vignette,options=a|b|c|d,gold=key"
                problem = f"'{part.strip()}' is not name=column"
                raise InputError(problem, field="fields", remedy=remedy)
            if name not in field_names:
                raise unknown("field", name, field_names, "fields")
            values[name] = column
        if "|" in values.get("options", ""):
            values["options"] = tuple(values["options"].split("|"))
        if "gold_base" in values:
            base = values["gold_base"]
            if base not in ("0", "1"):
                raise InputError(
                    f"gold_base is '{base}', which is neither 0 nor 1",
                    field="fields",
                    remedy="Give the number of the first option",
                )
            values["gold_base"] = int(base)
        return cls(**values)


@dataclass(frozen=True)
class Shape(Fields):
    """Columns of a file, with known stem, options and gold."""

    stem: str = "stem"
    options: str | tuple[str, ...] = "options"
    gold: str = "gold"


NAMED_AS_FIELDS = Shape(
    "id", step="step", system="system", specialty="specialty", subject="subject"
)
"""Columns with the names of the fields."""

_OPA = ("opa", "opb", "opc", "opd")

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
"""Column names of each field, in order of preference."""

OPTION_COLUMNS = (
    tuple(LETTERS),
    tuple(LETTERS.lower()),
    tuple(f"option_{letter}" for letter in LETTERS.lower()),
    tuple(f"op{letter}" for letter in LETTERS.lower()),
)
"""Families of names for one column per option, used without an options column."""


def recognised(
    rows: Iterable[Row], source: str, field_columns: Fields | None = None, cop_base: int = 1
) -> Shape:
    """Recognise the columns of a file.

    The first row with a known layout determines stem, options and gold. The other columns can come
    from any row.

    Args:
        rows: rows of the file.
        source: name of the file in errors.
        field_columns: columns that the user names. The others are recognised.
        cop_base: number of the first option in MedMCQA's ``cop``.

    Raises:
        InputError: no row has a named column, or a required column is not recognised.
    """
    readable = [row for _, row in rows if not isinstance(row, str)]
    columns = dict.fromkeys(column for row in readable for column in row)
    if not columns:
        return NAMED_AS_FIELDS
    field_columns = field_columns or Fields()
    _check_named(field_columns, columns, source)
    exact = {column: column for column in columns}
    # names as people write headers: "Option A", "Correct answer"
    plain = {_plain(str(header)): header for header in columns}
    refusal: InputError | None = None
    for names in (exact, plain) if len(plain) == len(columns) else (exact,):
        field_of_column = {column: name for name, column in names.items()}
        columns_by_field = _rename_columns(field_columns, field_of_column)
        for row in readable:
            row_fields = {field_of_column[column] for column in row}
            try:
                shape = Shape(**_shape(row_fields, {*names}, columns_by_field, source, cop_base))
            except InputError as error:
                refusal = refusal or error
            else:
                return Shape(**_rename_columns(shape, names))
    if refusal:
        raise refusal
    return NAMED_AS_FIELDS


def _check_named(field_columns: Fields, columns: Iterable[str], source: str) -> None:
    for field, of_field in field_columns.columns.items():
        for column in of_field:
            if column not in columns:
                problem = (
                    f"'fields' names the column '{column}' for {field}, but no row has this column"
                )
                raise InputError(problem, source, field=field, remedy=did_you_mean(column, columns))


def _rename_columns(columns: Fields, names: Mapping[str, str]) -> dict[str, Any]:
    """Return the values of the fields that have one, with renamed columns."""
    columns_by_field: dict[str, Any] = {
        field: tuple(names.get(column, column) for column in of_field)
        for field, of_field in columns.columns.items()
    }
    for field, of_field in columns_by_field.items():
        if not isinstance(getattr(columns, field), tuple):
            columns_by_field[field] = of_field[0]
    return (
        columns_by_field
        if columns.gold_base is None
        else {**columns_by_field, "gold_base": columns.gold_base}
    )


def is_medmcqa(shape: Fields) -> bool:
    """Return whether the columns of options and gold are MedMCQA's."""
    return (shape.options, shape.gold) == (_OPA, "cop")


def readable_as(column: str) -> str | None:
    """Return the field of a column by its name, None if the name is unknown."""
    plain = _plain(column)
    return next((field for field, names in ALIASES.items() if plain in names), None)


def readable_fields(columns: Iterable[str]) -> set[str]:
    """Return the fields of a question that columns of these names can fill."""
    columns = list(columns)
    fields = {field for field in map(readable_as, columns) if field}
    plain = {_plain(column) for column in columns}
    by_option = any({*family[:2]} <= {*columns, *plain} for family in OPTION_COLUMNS)
    fields |= {"options"} if by_option else set()
    return fields | {"gold"} if by_option and "cop" in plain else fields


def _plain(column: str) -> str:
    """Return a header such as ``Option A`` in the form used for recognition."""
    return re.sub(r"[\s_-]+", "_", column.strip().lower())


def _shape(
    row: set[str], columns: set[str], field_columns: Mapping[str, Any], source: str, cop_base: int
) -> dict[str, Any]:
    """Return the values of ``Shape`` from the columns of a row and of the whole file."""
    shape = _layout(row, columns, cop_base)
    for field in ("id", *LABELS):
        if present := [column for column in ALIASES[field] if column in columns]:
            shape[field] = present[0]
    if field_columns.get("gold", shape.get("gold")) != shape.get("gold"):
        shape.pop("gold_base", None)
    shape |= field_columns
    if "options" not in shape and (options := _option_columns(columns, source)):
        shape["options"] = options
    missing = [name for name in ("stem", "options", "gold") if name not in shape]
    if missing:
        raise InputError(
            f"no column for {' or '.join(missing)} among {', '.join(map(str, row))}"[:300],
            source,
            field=missing[0],
            remedy=f"Name it with -T fields={','.join(f'{name}=...' for name in missing)} "
            "(check: --fields)",
        )
    return shape


def _layout(row: set[str], columns: set[str], cop_base: int) -> dict[str, Any]:
    # If a file fits two layouts, one column of options precedes one column per option, and a letter
    # precedes a number, because these are unambiguous.
    if {"question", "options", "answer_idx"} <= row:
        return {"stem": "question", "options": "options", "gold": "answer_idx"}
    if {"question", "opa", "opb", "answer_idx"} <= row:
        # as Chen et al. (2025) curate the JAMA Clinical Challenges, cited in Stick-or-Switch,
        # section 4.1
        specialty = {"specialty": "field"} if "field" in columns else {}
        return {"stem": "question", "gold": "answer_idx", **specialty}
    if {"question", "opa", "opb", "cop"} <= row:
        return {"stem": "question", "options": _OPA, "gold": "cop", "gold_base": cop_base}
    return {
        field: next(column for column in ALIASES[field] if column in row)
        for field in ("stem", "options", "gold")
        if not row.isdisjoint(ALIASES[field])
    }


def _option_columns(columns: set[str], source: str) -> tuple[str, ...]:
    """Return one column per option up to the first gap, or none."""
    for family in OPTION_COLUMNS:
        present = [column for column in family if column in columns]
        unbroken = tuple(takewhile(columns.__contains__, family))
        if len(unbroken) >= 2:
            if len(present) > len(unbroken):
                # new letters would move the gold letter to another text
                raise InputError(
                    f"columns {', '.join(present)} leave a gap after {unbroken[-1]}",
                    source,
                    field="options",
                    remedy="Name the columns with -T fields=options=...|...|... (check: --fields)",
                )
            return unbroken
    return ()
