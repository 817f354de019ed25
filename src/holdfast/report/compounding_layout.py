"""Chains of challenges: what was observed beside what their parts let expect."""

from collections.abc import Sequence

from holdfast.results import ALL_MODELS, is_simulated

from .grid import Block, Cell, Grid, Line
from .listings import Column, count, listing, path_label
from .matrix import Figure, interval, matrix, n_notes, percent
from .studies import Row, studies
from .tables import one_line


def compounding(rows: Sequence[Row]) -> list[Grid]:
    """Chains with observed and expected drop, a block for each study (Figure 5)."""
    shown: list[Column] = [
        ("n", lambda row: count(row["n"])),
        ("Accuracy %", lambda row: f"{percent(row['accuracy'])} {interval(row)}".strip()),
        ("Drop %", lambda row: percent(row["drop"])),
        ("Expected drop %", lambda row: percent(row["expected_drop"])),
        ("Sub-additive", lambda row: _yes(row["sub_additive"])),
        ("Worst part", _worst),
        ("Recovered", lambda row: _yes(row["recovered"])),
        ("Unread", lambda row: count(row["unparsed"])),
    ]
    notes = [
        "Drop: relative to the first answers to the same questions. Expected: as if every answer "
        "that any single part made wrong stayed wrong; sub-additive where the drop is smaller. "
        "Worst part: the part with the lowest accuracy on its own, and its drop in percent; "
        "recovered where the chain's accuracy is higher. Unread replies count as wrong.",
    ]
    return [listing(rows, "Chain", path_label, shown, notes)]


def compounding_parts(rows: Sequence[Row]) -> list[Grid] | None:
    """The drop of each chain against the drop of each of its parts (Figure 4)."""
    columns = studies(rows)
    figures = [
        Figure(
            columns.of(row),
            "",
            row["path"],
            f"{path_label(row)} against {one_line(row['part'])}",
            _against(row),
            n=row["n"],
            of=row,
        )
        for row in rows
    ]
    notes = [
        "Cells: drop of the chain against that of the part alone, in percent of the first "
        "answers (difference).",
        *columns.notes(),
        *n_notes(figures, columns.headers),
    ]
    grid = matrix(figures, columns.headers, "Chain and part", notes)
    return None if grid is None else [grid]


def compounding_summary(rows: Sequence[Row]) -> list[Grid]:
    """How many chains of each study were sub-additive, and how many recovered."""
    columns = studies(rows)
    lines = tuple(
        Line(
            columns.headers[columns.of(row)],
            (
                Cell(count(row["chains"])),
                Cell(_of(row["sub_additive"], row["sub_additive_share"])),
                Cell(_of(row["recovered"], row["recovered_share"])),
            ),
        )
        for row in rows
    )
    headers = ("Chains", "Sub-additive", "Recovered")
    notes = columns.notes()
    if ALL_MODELS in columns.headers and any(is_simulated(str(row["model"])) for row in rows):
        notes += (f"SIMULATED replies count in the row {ALL_MODELS}.",)
    return [Grid("", headers, (Block("", (lines,)),), notes)]


def _yes(value: bool | None) -> str:
    return "" if value is None else "yes" if value else "no"


def _worst(row: Row) -> str:
    part, drop = row["worst_part"], percent(row["worst_drop"])
    return "" if part is None else f"{one_line(part)} ({drop})" if drop else one_line(part)


def _against(row: Row) -> str:
    drop, part = percent(row["drop"]), percent(row["part_drop"])
    difference = percent(row["difference"], signed=True)
    if not drop:
        return ""
    return f"{drop} against {part} ({difference})" if part else drop


def _of(number: int | None, share: float | None) -> str:
    shown = percent(share)
    return " ".join(filter(None, [count(number), f"({shown}%)" if shown else ""]))
