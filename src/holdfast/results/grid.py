"""Grids: rows of a table laid out for people, with studies next to each other."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from holdfast.errors import printable

from .first_answers import FAMILY_AVERAGE
from .runs import is_imported, is_simulated, system_of

Row = Mapping[str, Any]

PUBLISHED_MARK = "[published]"
"""Suffix of the name of a model with published figures."""

Mark = Literal["", "best", "worst"]

_NAME = 26
"""Maximum length of a name in a heading, in characters."""


@dataclass(frozen=True)
class Cell:
    """Displayed figure, with a mark if tests rank it best or worst of its family.

    Attributes:
        of: values that select the counted conversations, including the row of results. None if they
            cannot be selected.
        n: number of counted conversations, for a share its denominator. None if it counts none.
    """

    text: str
    mark: Mark = ""
    of: Mapping[str, Any] | None = field(default=None, compare=False, repr=False)
    n: int | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class Line:
    """Row of cells with its label, and optionally the page that the label links to."""

    label: str
    cells: tuple[Cell, ...]
    page: str = ""


@dataclass(frozen=True)
class RowBlock:
    """Rows under an optional heading, in groups with a line between them."""

    heading: str
    groups: tuple[tuple[Line, ...], ...]


@dataclass(frozen=True)
class Grid:
    """Table laid out for people; every text is data and is escaped on output.

    Attributes:
        corner: header of the column of labels.
        columns: headers of the other columns.
        blocks: the rows.
        notes: sentences below the table.
        comparison: group within which the best and worst are marked.
        spans: headers over neighbouring columns, each with the number of columns below it. Empty,
            or together they span ``columns``.
    """

    corner: str
    columns: tuple[str, ...]
    blocks: tuple[RowBlock, ...]
    notes: tuple[str, ...] = ()
    comparison: str = "each family and column, if a paired test distinguishes it from every other"
    spans: tuple[tuple[str, int], ...] = ()

    @property
    def marked(self) -> bool:
        """Whether a cell has a mark."""
        lines = (line for block in self.blocks for group in block.groups for line in group)
        return any(cell.mark for line in lines for cell in line.cells)


def grouped(rows: Iterable[Row], *by: str) -> list[list[Row]]:
    """Group rows that are equal in some columns, in the order of their first row."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in by), []).append(row)
    return list(groups.values())


def one_line(text: str) -> str:
    """Return the text on one line, with control characters escaped."""
    return printable(" ".join(text.split()))


@dataclass(frozen=True)
class Studies:
    """Columns of a table for people: one for each model, or for each of its runs and data sets.

    A model with one single-turn study and one follow-up study has both in one column, as in the
    papers. If it has several studies of a protocol, each run has a column.
    """

    headers: tuple[str, ...]
    datasets: tuple[str, ...]
    place: Mapping[tuple[Any, ...], int]
    split: frozenset[tuple[Any, ...]]
    runs: tuple[tuple[str, ...], ...]
    """Runs of each column."""

    def of(self, row: Row) -> int:
        """Return the number of the row's column."""
        return self.place[_key(row, self.split)]

    def header(self, row: Row) -> str:
        """Return the header of the row's column."""
        return self.headers[self.of(row)]

    def notes(self) -> tuple[str, ...]:
        """Return notes on the columns: data set and source of the replies."""
        notes = [f"Questions: {self.datasets[0]}."] if len(self.datasets) == 1 else []
        columns = list(zip(self.headers, self.runs, strict=True))
        if simulated_names := [name for name in self.headers if is_simulated(name)]:
            notes.append(f"SIMULATED, not a measurement of a model: {', '.join(simulated_names)}.")
        if imported_names := [name for name, runs in columns if any(map(is_imported, runs))]:
            notes.append(f"IMPORTED, not collected by holdfast: {', '.join(imported_names)}.")
        published_names: dict[str, list[str]] = {}
        for name, runs in columns:
            if PUBLISHED_MARK in name:
                published_names.setdefault("; ".join(runs), []).append(name)
        notes += [
            f"As printed in {place}: {', '.join(names)}."
            for place, names in published_names.items()
        ]
        return tuple(notes)


def studies(rows: Sequence[Row]) -> Studies:
    """Return the studies of a long table, in the order of its rows."""
    runs: dict[tuple[Any, ...], set[Any]] = {}
    for row in rows:
        study = (system_of(row), row["dataset"], row.get("protocol"))
        runs.setdefault(study, set()).add(row["run"])
    split = frozenset(study[:2] for study, study_runs in runs.items() if len(study_runs) > 1)
    place: dict[tuple[Any, ...], int] = {}
    of_column: dict[int, dict[str, None]] = {}
    for row in rows:
        column = place.setdefault(_key(row, split), len(place))
        of_column.setdefault(column, {})[one_line(str(row["run"] or ""))] = None
    datasets = tuple(dict.fromkeys(one_line(str(row["dataset"] or "")) for row in rows))
    headers = [_header(key, has_several=len(datasets) > 1, split=split) for key in place]
    of = tuple(tuple(filter(None, names)) for names in of_column.values())
    return Studies(tuple(_number_repeats(headers)), datasets, place, split, of)


def short_names(names: Iterable[str], limit: int = _NAME) -> dict[str, str]:
    """Shorten names to unique suffixes if any is longer than ``limit``; return them by name."""
    distinct_names = list(dict.fromkeys(names))
    if max(map(len, distinct_names), default=0) <= limit:
        return {name: name for name in distinct_names}
    short_by_name = {}
    for name in distinct_names:
        parts = name.split("/")
        ends = ("/".join(parts[start:]) for start in reversed(range(len(parts))))
        short_by_name[name] = next(
            (
                end
                for end in ends
                if end
                and all(
                    other_name == name or not f"/{other_name}".endswith(f"/{end}")
                    for other_name in distinct_names
                )
            ),
            name,
        )
    return short_by_name


def _key(row: Row, split: frozenset[tuple[Any, ...]]) -> tuple[Any, ...]:
    study = (system_of(row), row["dataset"])
    return (*study, row["run"] if study in split else None)


def _header(key: tuple[Any, ...], *, has_several: bool, split: frozenset[tuple[Any, ...]]) -> str:
    model, dataset, run = key
    more = [str(dataset)] if has_several else []
    more += [f"run {run or 'unnamed'}"] if (model, dataset) in split else []
    return one_line(f"{model} ({', '.join(more)})" if more else str(model))


def _number_repeats(names: Iterable[str]) -> Iterator[str]:
    # shortened names can be equal, for example if they differ in a line break
    counts_seen = Counter[str]()
    for name in names:
        counts_seen[name] += 1
        yield f"{name} ({counts_seen[name]})" if counts_seen[name] > 1 else name


Key = tuple[str, str, str]
"""Heading of the block, name of the group, and label of the row."""


@dataclass(frozen=True)
class HeatmapCell:
    """Figure and its place in the grid.

    Attributes:
        column: number of its column.
        block: heading of its block.
        group: name of its group, never shown.
        label: label of its row.
        text: the figure as text.
        mark: whether it is the best or the worst of its group.
        n: number of replies behind it, None if unknown.
        average: whether it is an average over its group, placed below the group's other rows.
        of: as for ``Cell``.
    """

    column: int
    block: str
    group: str
    label: str
    text: str
    mark: Mark = ""
    n: int | None = None
    average: bool = False
    of: Row | None = None

    @property
    def key(self) -> Key:
        """Row of the figure in the grid."""
        return self.block, self.group, self.label


def matrix(
    figures: Sequence[HeatmapCell], headers: Sequence[str], corner: str, notes: Sequence[str]
) -> Grid | None:
    """Arrange figures in a grid, with blocks, groups and rows in the order of their first figure.

    Returns:
        None if two figures have the same cell, because the grid would hide one of them.
    """
    cells: dict[tuple[Key, int], HeatmapCell] = {}
    for figure in figures:
        if cells.setdefault((figure.key, figure.column), figure) is not figure:
            return None

    def cell(key: Key, column: int) -> Cell:
        figure = cells.get((key, column))
        return Cell(figure.text, figure.mark, figure.of, figure.n) if figure else Cell("")

    order = {name: place for place, name in enumerate(dict.fromkeys(f.block for f in figures))}
    groups: dict[tuple[str, str], list[HeatmapCell]] = {}
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
    row_blocks = tuple(RowBlock(name, tuple(groups)) for name, groups in blocks.items())
    return Grid(corner, tuple(headers), row_blocks, tuple(notes))


def mark_of(row: Row) -> Mark:
    """Return ``best`` if tests leave a row only the first rank, ``worst`` if only the last."""
    if (row["ranked"] or 1) < 2:
        return ""
    return "best" if row["rank_high"] == 1 else "worst" if row["rank_low"] == row["ranked"] else ""


def n_notes(figures: Sequence[HeatmapCell], headers: Sequence[str]) -> list[str]:
    """Note the number of replies behind the cells, by column if the numbers differ."""
    single_figures = [f for f in figures if not f.average]
    numbers = {f.n for f in single_figures}
    if len(numbers) == 1:
        return [f"n = {_n(numbers.pop())} in every cell."] if single_figures else []
    notes: dict[str, list[str]] = {}
    for column, header in enumerate(headers):
        column_figures = [f for f in single_figures if f.column == column]
        if not column_figures:
            continue
        usual = Counter(f.n for f in column_figures).most_common(1)[0][0]
        exceptions = dict.fromkeys(f"{f.label} {_n(f.n)}" for f in column_figures if f.n != usual)
        but = f"; but {', '.join(exceptions)}" if exceptions else ""
        notes.setdefault(f"n = {_n(usual)}{but}", []).append(header)
    sentences = [f"{', '.join(names)}: {numbers}." for numbers, names in notes.items()]
    return ["n differs between cells.", *sentences]


def _n(n: int | None) -> str:
    return "not stated" if n is None else str(n)


def unread_notes(rows: Sequence[Row], columns: Studies) -> list[str]:
    """Note the unparsed replies, which count as wrong, by column."""
    unread, refusals, silent = Counter[int](), Counter[int](), Counter[int]()
    for row in rows:
        if row.get("arm") != FAMILY_AVERAGE:
            unread[columns.of(row)] += row["unparsed"] or 0
            refusals[columns.of(row)] += row["refused"] or 0
            silent[columns.of(row)] += row.get("non_response") or 0
    count_texts = []
    for column, n in sorted(unread.items()):
        more = f", no response {silent[column]}" if silent[column] else ""
        if n:
            count_texts.append(f"{columns.headers[column]} {n} (refused {refusals[column]}{more})")
    note = f"Unparsed replies, counted as wrong: {', '.join(count_texts)}."
    return [note] if count_texts else []


def net_notes(rows: Sequence[Row]) -> list[str]:
    """Explain the last number in parentheses if a row has flips net of its control."""
    return [_NET] if any(row.get("attributable") is not None for row in rows) else []


_NET = "Last in parentheses: flips of right first answers less those under the control, in points."


def percent(share: Any, *, with_sign: bool = False) -> str:
    """Format a share as percent with one decimal place, empty if null."""
    if share is None or math.isnan(share):
        return ""
    percent_text = f"{100 * share:+.1f}" if with_sign else f"{100 * share:.1f}"
    return (
        percent_text.replace("-0.0", "+0.0" if with_sign else "0.0")
        if float(percent_text) == 0
        else percent_text
    )


def interval(row: Row) -> str:
    """Format a row's interval as ``[51.2, 56.7]``, empty if null."""
    low, high = percent(row["low"]), percent(row["high"])
    return f"[{low}, {high}]" if low and high else ""


def accuracy_cell(row: Row, *, first: bool = False) -> str:
    """Format a row of accuracy as ``54.0 [51.2, 56.7] (-40.7%)``, without unknown parts.

    With a control, the net flips come last: ``54.0 [51.2, 56.7] (-40.7%; +12.5)``.
    """
    change = "" if first else percent(row["relative_change"], with_sign=True)
    net = percent(row.get("attributable"), with_sign=True)
    behind = "; ".join(filter(None, [f"{change}%" if change else "", net]))
    accuracy = percent(row["accuracy"])
    parts = [accuracy, interval(row) if accuracy else "", f"({behind})" if behind else ""]
    return " ".join(part for part in parts if part)
