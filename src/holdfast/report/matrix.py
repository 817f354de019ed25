"""A matrix of figures: what was asked as rows, studies as columns, best and worst marked."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from holdfast.results import FAMILY_AVERAGE

from .grid import Block, Cell, Grid, Line, Mark
from .studies import Row, Studies

Key = tuple[str, str, str]
"""Heading of the block, name of the group, label of the row."""


@dataclass(frozen=True)
class Figure:
    """One figure and where it stands.

    Attributes:
        column: number of its column.
        block: heading of its block.
        group: name of its group, never shown.
        label: label of its row.
        text: the figure as shown.
        rank: what best and worst are judged by; None for a figure that is not compared.
        n: replies behind it; None where that is not known.
        average: whether it averages the others of its group, and so stands below them.
        of: the row of results that it was read from.
    """

    column: int
    block: str
    group: str
    label: str
    text: str
    rank: float | None = None
    n: int | None = None
    average: bool = False
    of: Row | None = None

    @property
    def key(self) -> Key:
        """Where its row is."""
        return self.block, self.group, self.label


def matrix(
    figures: Sequence[Figure], headers: Sequence[str], corner: str, notes: Sequence[str]
) -> Grid | None:
    """The grid of the figures; blocks, groups and rows in the order of their first figure.

    Returns:
        None where two figures fall on one cell: the grid would hide one of them.
    """
    cells: dict[tuple[Key, int], Figure] = {}
    for figure in figures:
        if cells.setdefault((figure.key, figure.column), figure) is not figure:
            return None
    marks = _marks(figures)

    def cell(key: Key, column: int) -> Cell:
        figure = cells.get((key, column))
        mark = marks.get((key, column), "")
        return Cell(figure.text, mark, figure.of) if figure else Cell("", mark)

    order = {name: place for place, name in enumerate(dict.fromkeys(f.block for f in figures))}
    groups: dict[tuple[str, str], list[Figure]] = {}
    for figure in sorted(figures, key=lambda figure: order[figure.block]):
        groups.setdefault((figure.block, figure.group), []).append(figure)
    blocks: dict[str, list[tuple[Line, ...]]] = {}
    for (block, _), members in groups.items():
        keys = dict.fromkeys(f.key for f in sorted(members, key=lambda f: f.average))
        lines = tuple(
            Line(key[-1], tuple(cell(key, column) for column in range(len(headers))))
            for key in keys
        )
        blocks.setdefault(block, []).append(lines)
    made = tuple(Block(name, tuple(groups)) for name, groups in blocks.items())
    return Grid(corner, tuple(headers), made, tuple(notes))


def _marks(figures: Iterable[Figure]) -> dict[tuple[Key, int], Mark]:
    """Best and worst of each group and column; ties share a mark, and equals have none."""
    compared: dict[tuple[str, str, int], list[tuple[float, Figure]]] = {}
    for figure in figures:
        if figure.rank is not None and not math.isnan(figure.rank) and not figure.average:
            # equal counts of different sums differ in the last bits
            ranked = (round(figure.rank, 9), figure)
            compared.setdefault((figure.block, figure.group, figure.column), []).append(ranked)
    marks: dict[tuple[Key, int], Mark] = {}
    for ranked_ones in compared.values():
        ranks = [rank for rank, _ in ranked_ones]
        best, worst = max(ranks), min(ranks)
        for rank, figure in ranked_ones if best != worst else ():
            if rank in (best, worst):
                marks[figure.key, figure.column] = "best" if rank == best else "worst"
    return marks


def n_notes(figures: Sequence[Figure], headers: Sequence[str]) -> list[str]:
    """How many replies are behind the cells: one number where all agree, else by column."""
    counted = [f for f in figures if not f.average]
    numbers = {f.n for f in counted}
    if len(numbers) == 1:
        return [f"n = {_n(numbers.pop())} in every cell."] if counted else []
    notes: dict[str, list[str]] = {}
    for column, header in enumerate(headers):
        own = [f for f in counted if f.column == column]
        if not own:
            continue
        usual = Counter(f.n for f in own).most_common(1)[0][0]
        others = [f"{f.label} {_n(f.n)}" for f in own if f.n != usual]
        but = f"; but {', '.join(dict.fromkeys(others))}" if others else ""
        notes.setdefault(f"n = {_n(usual)}{but}", []).append(header)
    said = [f"{', '.join(names)}: {numbers}." for numbers, names in notes.items()]
    return ["n differs between cells.", *said]


def _n(n: int | None) -> str:
    return "not stated" if n is None else str(n)


def unread_notes(rows: Sequence[Row], columns: Studies) -> list[str]:
    """Replies with no readable answer, which count as wrong, by column."""
    unread, refused, silent = Counter[int](), Counter[int](), Counter[int]()
    for row in rows:
        if row.get("arm") != FAMILY_AVERAGE:
            unread[columns.of(row)] += row["unparsed"] or 0
            refused[columns.of(row)] += row["refused"] or 0
            silent[columns.of(row)] += row.get("non_response") or 0
    counted = [
        f"{columns.headers[column]} {n} (refused {refused[column]}"
        + (f", no response {silent[column]})" if silent[column] else ")")
        for column, n in sorted(unread.items())
        if n
    ]
    return (
        [f"Replies with no readable answer, counted as wrong: {', '.join(counted)}."]
        if counted
        else []
    )


def percent(share: Any, *, signed: bool = False) -> str:
    """A share as percent with one decimal; empty where there is none."""
    if share is None or math.isnan(share):
        return ""
    shown = f"{100 * share:+.1f}" if signed else f"{100 * share:.1f}"
    return shown.replace("-0.0", "+0.0" if signed else "0.0") if float(shown) == 0 else shown


def interval(row: Row) -> str:
    """A row's interval as ``[51.2, 56.7]``; empty where there is none."""
    low, high = percent(row["low"]), percent(row["high"])
    return f"[{low}, {high}]" if low and high else ""


def accuracy_cell(row: Row, *, first: bool = False) -> str:
    """A row of accuracy as ``54.0 [51.2, 56.7] (-40.7%)``, leaving out what is not known."""
    change = "" if first else percent(row["relative_change"], signed=True)
    accuracy = percent(row["accuracy"])
    parts = [accuracy, interval(row) if accuracy else "", f"({change}%)" if change else ""]
    return " ".join(part for part in parts if part)
