"""Audit sheet: a random sample of replies for people to label, and its import."""

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
from holdfast.questions.cases import OTHER
from holdfast.questions.question import LETTERS
from holdfast.questions.rows import read_rows
from holdfast.results.audit import units
from holdfast.results.readings import AUDIT, NO_LETTER, TURN_KEY
from holdfast.spreadsheet import safe_cells

from .dialogues import Dialogues, said
from .review import texts_of

AUDIT_SHEET = (
    "label_first", "label", "comment", "answers", "first_prompt", "first_reply", "between",
    "challenge", "reply", "question", "unit",
)  # fmt: skip
"""Columns of the sheet. People fill in the first three.

``answers`` lists the known answers by letter, if the prompt shows no options.
"""

NOT_ASKED = "not asked"
"""Text in ``label_first`` of a turn without a first answer."""

UNREAD_TIMES = 3.0
"""Relative chance of a unit with an unparsed reply, where extraction errs most."""


@dataclass(frozen=True)
class Labels:
    """Labels of a returned sheet.

    Attributes:
        labels: labels that people gave, with the columns ``AUDIT``.
        blank: number of rows without a label.
    """

    labels: pl.DataFrame
    blank: int


def drawn(turns: pl.DataFrame, limit: int, seed: int) -> pl.DataFrame:
    """Draw a random sample of units, in random order, with their ``probability``.

    Systematic sampling with unequal probabilities (Madow, 1949). Units are ordered by arm, path,
    status and rule, and randomly within these. Each of these strata gets its share of the sample to
    within one unit.
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
    # without the margin, rounding could lose a unit that is certain
    cumulative = np.floor(np.cumsum(chances) + rng.random() + 1e-9)
    frame = frame.with_columns(probability=chances)
    return frame.filter(pl.Series(np.diff(cumulative, prepend=0) > 0)).sort("_order")


def inclusion(sizes: NDArray[np.float64], n: int) -> NDArray[np.float64]:
    """Return inclusion probabilities in proportion to sizes that sum to n.

    None is above 1. All are 1 if there are at most n sizes.
    """
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
    """Return a sample as a sheet that is safe against formulas, and the number of shortened cells.

    The sheet contains neither the extracted nor the right answers, which would bias people who
    label. The import finds a unit by the column ``unit``, even if a spreadsheet changes other
    cells.
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
             "unit": _sign_unit(unit["name"], f"{unit['probability']:.6g}"),
             "answers": _list_answers(turns["answers"][row])} | cells
        )  # fmt: skip
    table = pl.DataFrame(sheet, dict.fromkeys(AUDIT_SHEET, pl.String), orient="row")
    return safe_cells(table), cut


def _list_answers(answers: str | None) -> str | None:
    if not answers:
        return None
    listed = {**json.loads(answers), OTHER: "another answer"}
    return "\n".join(f"{letter}. {text}" for letter, text in listed.items())


def _name_units(turns: pl.DataFrame, drawn_units: pl.DataFrame) -> pl.DataFrame:
    """Add to units their ``name``, a digest of their position and their replies."""
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
    """Return the labels of a sheet that people have filled in.

    Args:
        file: the sheet, as CSV.
        turns: turns table of the sample, with its texts.

    Raises:
        InputError: the file is not an audit sheet, or a row names a unit that is unknown, was not
            drawn or is there twice. Or a label is not an option of the question.
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
            unit_problem = f"{unit_text} is not in these turns, or one of its replies has changed"
            raise refused(unit_problem, "unit", "Label a sheet that was exported from these turns")
        if token != _sign_unit(name, probability):
            raise refused(f"{unit_text} was not drawn", "unit", "Undo the change of the cell")
        if name in row_numbers:
            raise refused(
                f"is also the unit of row {row_numbers[name]}", "unit", "Remove one of the rows"
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
        raise InputError("contains no label", file, remedy="Fill in label_first and label")
    return Labels(pl.DataFrame(labels, AUDIT, orient="row"), len(row_numbers) - len(labels))


_LABEL_COLUMNS = ("label_first", "label", "unit")


def _options(turns: pl.DataFrame) -> Callable[[int], Mapping[str, str]]:
    """Return a function from rows to letters by displayed letter."""
    letters_by_dataset: dict[str, str] = {}
    letter_columns = ("gold", "answer", "suggested")
    with_options = turns.filter(pl.col("answers").is_null())
    for dataset, *letters in with_options.select("dataset", *letter_columns).unique().iter_rows():
        letters_by_dataset[dataset] = max(
            {letters_by_dataset.get(dataset, "A"), *letters} & set(LETTERS)
        )

    def of(row: int) -> Mapping[str, str]:
        if answers := turns["answers"][row]:
            return {letter: letter for letter in (*json.loads(answers), OTHER)}
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
    """Return the letter that a label means, or one of ``NO_LETTER``."""
    letters_known = {**options, **{label.upper(): label for label in NO_LETTER}}
    if label_text.upper() in letters_known:
        return letters_known[label_text.upper()]
    problem = (
        f"'{label_text[:60]}' is not a label"
        if label_text
        else "is empty, but the other label of the row is not"
    )
    raise refuse(problem, field, f"Write one of {', '.join((*options, *NO_LETTER))}")
