"""The rows of a table made ready to draw: by data set, each study with a name of its own."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from holdfast.errors import InputError
from holdfast.report.studies import studies
from holdfast.report.tables import one_line
from holdfast.results import is_simulated

from .theme import PUBLISHED_INK

Row = Mapping[str, Any]
Value = dict[str, Any]
"""What one mark is drawn from: fields of our own naming, whatever the texts in them say."""

_LONGEST = 44
_MARK = "[published]"
_MEMBERS = {
    "constructor", "hasOwnProperty", "isPrototypeOf", "propertyIsEnumerable", "toLocaleString",
    "toString", "valueOf", "__proto__", "__defineGetter__", "__defineSetter__",
    "__lookupGetter__", "__lookupSetter__",
}  # fmt: skip
"""What every object of JavaScript has: Vega keeps series in objects, under their names."""


@dataclass(frozen=True)
class Panels:
    """Rows to draw.

    Attributes:
        rows: by data set as shown; each with ``study`` and ``ink`` beside the table's columns, and
            with None for what is not finite.
        names: the studies of all data sets in order.
        notes: what a reader must know of the studies.
        simulated: whether any of them is simulated.
    """

    rows: Mapping[str, Sequence[Row]]
    names: tuple[str, ...]
    notes: tuple[str, ...]
    simulated: bool

    def every(self) -> list[Row]:
        """The rows of all data sets."""
        return [row for own in self.rows.values() for row in own]


def panels(frame: pl.DataFrame, *, together: bool = False, published: str = "lighter") -> Panels:
    """The rows of a table, by data set.

    A published data set stands with the measured one of that name, whatever its capitals.

    Args:
        frame: a table of results, published rows among them or not.
        together: all data sets in one panel, the data set in a study's name where there are
            several.
        published: how published figures are drawn.

    Raises:
        InputError: the table has no rows.
    """
    if frame.is_empty():
        raise nothing()
    rows = [{name: _finite(value) for name, value in row.items()} for row in frame.to_dicts()]
    measured = {_dataset(row).casefold(): _dataset(row) for row in rows if not is_published(row)}
    groups: dict[str, list[Value]] = {}
    for row in rows:
        dataset = _dataset(row)
        if is_published(row):
            dataset = measured.get(dataset.casefold(), dataset)
        groups.setdefault("" if together else dataset, []).append(row | {"dataset": dataset})
    short: dict[str, str] = {}
    found: dict[str, list[Row]] = {}
    for dataset, own in groups.items():
        columns = studies(own)
        for header in columns.headers:
            if header not in short:
                short[header] = _distinct(label(header), short.values())
        found[dataset] = [
            row
            | {
                "study": short[columns.headers[columns.of(row)]],
                "ink": PUBLISHED_INK if is_published(row) else 1.0,
            }
            for row in own
        ]
    every = [row for own in found.values() for row in own]
    simulated = any(is_simulated(str(row["model"])) for row in rows)
    return Panels(found, tuple(short.values()), _notes(every, published), simulated)


def nothing(what: str = "the table has no rows", remedy: str | None = None) -> InputError:
    """The error of a figure without a mark."""
    return InputError(
        f"nothing to draw: {what}",
        remedy=remedy or "Look at the table itself with --format md",
    )


def is_published(row: Row) -> bool:
    """Whether a row holds figures that a paper printed."""
    return str(row["model"]).endswith(_MARK)


def label(text: str | None, longest: int = _LONGEST) -> str:
    """A text of the rows as a figure shows it: on one line, its middle left out where long."""
    shown = one_line(text or "")
    if len(shown) > longest:
        end = longest // 3
        shown = f"{shown[: longest - end - 1]}…{shown[-end:]}"
    return f"{shown}\u00a0" if shown in _MEMBERS else shown


def counts(numbers: Sequence[int | None], noun: str) -> str:
    """``n = 60 questions`` or ``n = 12 to 60 questions a point``; empty where none is known."""
    known = sorted({number for number in numbers if number is not None})
    if not known:
        return ""
    if len(known) == 1:
        return f"n = {known[0]:,} {noun}."
    return f"n = {known[0]:,} to {known[-1]:,} {noun}, by mark."


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _distinct(name: str, taken: Iterable[str]) -> str:
    others, place, found = set(taken), 2, name
    while found in others:
        found, place = f"{name} ({place})", place + 1
    return found


def _dataset(row: Row) -> str:
    return label(row["dataset"])


def _notes(rows: Sequence[Row], published: str) -> tuple[str, ...]:
    notes = []
    measured = dict.fromkeys(row["study"] for row in rows if not is_published(row))
    those = dict.fromkeys(row["study"] for row in rows if is_simulated(str(row["model"])))
    if those:
        every = len(those) > 1 and measured.keys() <= those.keys()
        named = "" if every else f": {', '.join(those)}"
        notes.append(f"SIMULATED replies, of no real model{named}.")
    printed = dict.fromkeys(one_line(str(row["run"])) for row in rows if is_published(row))
    if printed:
        notes.append(f"[published], drawn {published}: as printed in {'; '.join(printed)}.")
    return tuple(notes)
