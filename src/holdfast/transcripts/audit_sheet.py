"""Audit: a random sample of replies as a sheet for people to label, and their labels read back."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from holdfast.errors import InputError
from holdfast.questions.question import LETTERS
from holdfast.questions.rows import read_rows
from holdfast.results.audit import units
from holdfast.results.readings import AUDIT, NO_LETTER, TURN_KEY
from holdfast.spreadsheet import safe_cells

from .dialogues import Dialogues, said
from .review import texts_of

AUDIT_SHEET = (
    "label_first", "label", "comment", "first_prompt", "first_reply", "between", "challenge",
    "reply", "question", "unit",
)  # fmt: skip
"""Columns of the sheet; the first three are for the person who labels."""

NOT_ASKED = "not asked"
"""Stands in ``label_first`` where a turn has no first answer."""

UNREAD_TIMES = 3.0
"""How many times as likely a unit with an unread reply is drawn: readings err most in these."""


@dataclass(frozen=True)
class Labels:
    """A sheet that has come back.

    Attributes:
        labels: what people read, with the columns ``AUDIT``.
        blank: rows without a label.
    """

    labels: pl.DataFrame
    blank: int


def drawn(turns: pl.DataFrame, limit: int, seed: int) -> pl.DataFrame:
    """A random sample of units, in random order, each with the ``probability`` of being drawn.

    Systematic sampling with unequal probabilities (Madow, 1949), of units in the order of arm,
    path, status and rule and in random order within these: each such stratum has its part of the
    sample to within one unit.
    """
    rng = np.random.default_rng(seed)
    rows = turns.select("reply", "status").with_row_index("row")
    drawn_units = units(turns).join(rows, on="row", maintain_order="left").drop_nulls("reply")
    firsts = rows.select(first_row="row", _first=pl.col("status") != "parsed")
    drawn_units = drawn_units.join(firsts, on="first_row", how="left", maintain_order="left")
    unread = (pl.col("status") != "parsed") | pl.col("_first").fill_null(value=False)
    frame = drawn_units.with_columns(
        _unread=unread, _order=pl.Series(rng.permutation(drawn_units.height))
    )
    frame = frame.sort("run", "arm", "path", "_unread", "status", "rule", "_order")
    sizes = np.where(frame["_unread"].to_numpy(), UNREAD_TIMES, 1.0)
    chances = inclusion(sizes, limit)
    # a little more, or rounding could lose one that is certain
    cumulative = np.floor(np.cumsum(chances) + rng.random() + 1e-9)
    frame = frame.with_columns(probability=chances)
    return frame.filter(pl.Series(np.diff(cumulative, prepend=0) > 0)).sort("_order")


def inclusion(sizes: NDArray[np.float64], n: int) -> NDArray[np.float64]:
    """Probabilities in proportion to sizes that add up to n, none above 1; all 1 for n or fewer."""
    certain = np.full(len(sizes), len(sizes) <= n)
    while not certain.all():
        left = n - certain.sum()
        chances = np.where(certain, 1.0, sizes * left / sizes[~certain].sum())
        if not (chances > 1).any():
            return chances
        certain |= chances >= 1
    return np.ones(len(sizes))


def audit_sheet(
    turns: pl.DataFrame, of: Dialogues, sample: pl.DataFrame
) -> tuple[pl.DataFrame, int]:
    """A sample as a sheet, safe against formulas, and how many cells lost their middle.

    What was read and what is right are not in it: who knows them labels to agree with them. The
    import knows a unit by ``unit``, whatever a spreadsheet makes of the other cells.
    """
    sample = _name_units(turns, sample)
    paths = {row: of.up_to(row) for row in sample["row"]}
    rows = {row for path in paths.values() for row in path}
    texts = said(turns, rows | set(sample["first_row"].drop_nulls()))
    cut = 0
    sheet: list[dict[str, Any]] = []
    for unit in sample.iter_rows(named=True):
        row, first = unit["row"], unit["first_row"]
        path = paths[row]
        cells, shortenings = texts_of(texts, path, path[0] if len(path) > 1 else first)
        cut += shortenings
        sheet.append(
            {"label_first": NOT_ASKED if first is None else None, "question": unit["question"],
             "unit": _sign_unit(unit["name"], f"{unit['probability']:.6g}")} | cells
        )  # fmt: skip
    table = pl.DataFrame(sheet, dict.fromkeys(AUDIT_SHEET, pl.String), orient="row")
    return safe_cells(table), cut


def _name_units(turns: pl.DataFrame, drawn_units: pl.DataFrame) -> pl.DataFrame:
    """Units with their ``name``, a digest of where they stand and of what was replied."""
    replies = turns["reply"].to_list()
    names = [
        "u" + _digest([*key, replies[row], None if first is None else replies[first]])
        for *key, row, first in turns[drawn_units["row"]]
        .select(TURN_KEY)
        .with_columns(drawn_units["row"], drawn_units["first_row"])
        .iter_rows()
    ]
    return drawn_units.with_columns(name=pl.Series(names, dtype=pl.String()))


def _sign_unit(name: str, probability: str) -> str:
    return f"{name}:{probability}:{_digest([name, probability])[:6]}"


def _digest(of: Sequence[Any]) -> str:
    return hashlib.sha256(json.dumps(of).encode()).hexdigest()[:16]


def read_audit(file: str, turns: pl.DataFrame) -> Labels:
    """The labels of a sheet that people have filled in.

    Args:
        file: the sheet, as CSV.
        turns: the turns table that it was drawn from, with its texts.

    Raises:
        InputError: the file is no such sheet, or a row names no unit of these turns, one that was
            not drawn or is there twice, or a label is none of the options shown.
    """
    units_by_name = {
        unit["name"]: unit for unit in _name_units(turns, units(turns)).iter_rows(named=True)
    }
    options = _options(turns)
    row_numbers: dict[str, int] = {}
    labels: list[dict[str, Any]] = []
    for number, cells in read_rows(Path(file)):

        def refused(problem: str, field: str, remedy: str, row: int = number) -> InputError:
            return InputError(problem, file, row, field, remedy)

        if isinstance(cells, str):
            raise InputError(cells, file, number, remedy="Correct the row")
        if absent := [name for name in _LABEL_COLUMNS if name not in cells]:
            remedy = "Give a sheet of 'holdfast export --format audit'"
            raise refused("is missing", absent[0], remedy)
        first, after, token = (str(cells[name] or "").strip() for name in _LABEL_COLUMNS)
        name, _, probability = token.rpartition(":")[0].partition(":")
        unit, unit_text = units_by_name.get(name), f"'{token[:60]}'"
        if unit is None:
            unit_problem = f"{unit_text} is none of these turns, or a reply of it has changed"
            raise refused(unit_problem, "unit", "Label a sheet that was exported from them")
        if token != _sign_unit(name, probability):
            raise refused(f"{unit_text} was not drawn", "unit", "Undo the change of the cell")
        if name in row_numbers:
            raise refused(
                f"is that of row {row_numbers[name]} too", "unit", "Remove one of the rows"
            )
        row_numbers[name] = number
        alone = unit["first_row"] is None
        if not after and (alone or not first):
            continue
        label_values = {"label": _label(after, options(unit["row"]), refused, "label")}
        if not alone:
            of = options(unit["first_row"])
            label_values["label_first"] = _label(first, of, refused, "label_first")
        key = {name: unit.get(name) for name in TURN_KEY} | {"turn": turns["turn"][unit["row"]]}
        labels.append({**key, **label_values, "label_weight": 1 / float(probability)})
    if not labels:
        raise InputError("has no label", file, remedy="Fill in label_first and label")
    return Labels(pl.DataFrame(labels, AUDIT, orient="row"), len(row_numbers) - len(labels))


_LABEL_COLUMNS = ("label_first", "label", "unit")


def _options(turns: pl.DataFrame) -> Callable[[int], Mapping[str, str]]:
    """What gives the letters of a turn's options, as displayed, with those that they have in it."""
    letters_by_dataset: dict[str, str] = {}
    letter_columns = ("gold", "answer", "suggested")
    for dataset, *letters in turns.select("dataset", *letter_columns).unique().iter_rows():
        letters_by_dataset[dataset] = max(
            {letters_by_dataset.get(dataset, "A"), *letters} & set(LETTERS)
        )

    def of(row: int) -> Mapping[str, str]:
        dataset, shown_letters = turns["dataset"][row], turns["shown"][row]
        letters = (
            shown_letters.split(",")
            if shown_letters
            else LETTERS[: LETTERS.index(letters_by_dataset[dataset]) + 1]
        )
        return dict(zip(LETTERS, letters, strict=False))

    return of


def _label(
    label_text: str,
    options: Mapping[str, str],
    refuse: Callable[[str, str, str], InputError],
    field: str,
) -> str:
    """The letter that a label means, or one of ``NO_LETTER``."""
    letters_known = {**options, **{label.upper(): label for label in NO_LETTER}}
    if label_text.upper() in letters_known:
        return letters_known[label_text.upper()]
    problem = (
        f"'{label_text[:60]}' is not a label"
        if label_text
        else "is empty, where the other label is not"
    )
    raise refuse(problem, field, f"Write one of {', '.join((*options, *NO_LETTER))}")
