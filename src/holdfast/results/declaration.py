"""Declarations: a table of results said once, from its name to its place in the report.

A module that measures something declares ``Table`` objects beside its functions, and perhaps a
``Section`` of the report. What lists tables is collected from those modules.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import polars as pl

from holdfast.errors import InputError, did_you_mean, unknown
from holdfast.lookups import until_declared
from holdfast.registry import BY, Lazily, declaring, found_in, ways
from holdfast.stats.intervals import PairedInterval

from .columns import COMMON, INTERVALS
from .grid import Cell, Grid, Line, Row, RowBlock, Studies, one_line, percent, studies
from .kept import in_codes, in_words

if TYPE_CHECKING:
    from altair import VConcatChart

Layout = Callable[[Sequence[Row]], list[Grid] | None]
"""Rows of a table arranged for people; None where they do not fit."""

LinkFilters = Mapping[str, str | None]
"""Values that choose conversations, beside those of the row; None takes one of these away."""


@dataclass(frozen=True)
class Column:
    """A column of a table for people; each kind of column has its own ``text``.

    A cell leads to the conversations that it counts, a share to those that it is of. ``of`` has
    to choose these and perhaps more, or none but these: where as many are chosen as the cell
    counts, they are the same, and only there the report makes a link.

    Attributes:
        header: its header.
        name: the value of a row that it shows.
        of: which of the row's conversations it counts, or how a row tells that; None where that
            cannot be chosen.
        among: the value of a row that says how many these are, or their number.
        optional: whether it is left out where none of its cells says anything.
    """

    header: str
    name: str
    of: LinkFilters | Callable[[Row], LinkFilters] | None = field(default=None, kw_only=True)
    among: str | int = field(default="", kw_only=True)
    optional: bool = field(default=False, kw_only=True)

    def text(self, row: Row) -> str:
        """What stands in the row's cell."""
        raise NotImplementedError

    def cell(self, row: Row) -> Cell:
        """The row's cell, with the conversations behind it."""
        if self.of is None:
            return Cell(self.text(row))
        more = self.of(row) if callable(self.of) else self.of
        among = self.among or self.name
        n = row[among] if isinstance(among, str) else among
        return Cell(self.text(row), of={**row, **more}, n=n)


class Text(Column):
    """A text, on one line."""

    def text(self, row: Row) -> str:
        """What stands in the row's cell."""
        return one_line(row[self.name])


class Path(Column):
    """Challenges one after another."""

    def text(self, row: Row) -> str:
        """What stands in the row's cell."""
        return steps_of(row[self.name])


class YesNo(Column):
    """Yes, no, or empty where it is not known."""

    def text(self, row: Row) -> str:
        """What stands in the row's cell."""
        return {None: "", True: "yes", False: "no"}[row[self.name]]


@dataclass(frozen=True)
class Count(Column):
    """How many, empty where it is not known; ``share`` in percent and ``sign`` stand behind it."""

    share: str = ""
    sign: str = ""

    def text(self, row: Row) -> str:
        """What stands in the row's cell."""
        share_text = percent(row[self.share]) if self.share else ""
        behind = f"({share_text}{self.sign})" if share_text else ""
        return " ".join(filter(None, [count(row[self.name]), behind]))


@dataclass(frozen=True)
class Share(Column):
    """A share in percent, as ``54.0 [51.2, 56.7]`` where it has an interval.

    Attributes:
        bounds: what stands before ``low`` and ``high`` in the names of its interval's ends.
        signed: whether it is a difference, shown with its sign.
    """

    bounds: str | None = None
    signed: bool = False

    def text(self, row: Row) -> str:
        """What stands in the row's cell."""
        names = [self.name, *_ends(self.bounds)]
        share, *ends = (percent(row[name], with_sign=self.signed) for name in names)
        return f"{share} [{', '.join(ends)}]" if share and ends and all(ends) else share


@dataclass(frozen=True)
class Number(Column):
    """A number, as ``1.20 [0.95, 1.45]`` where it has an interval; empty where it is not known.

    Attributes:
        bounds: what stands before ``low`` and ``high`` in the names of its interval's ends.
        digits: how many of them; as many as it has, with None.
    """

    bounds: str | None = None
    digits: int | None = 2

    def text(self, row: Row) -> str:
        """What stands in the row's cell."""
        value_text, *ends = (self._format(row[name]) for name in [self.name, *_ends(self.bounds)])
        return f"{value_text} [{', '.join(ends)}]" if value_text and any(ends) else value_text

    def _format(self, value: float | None) -> str:
        if value is None or self.digits is None:
            return "" if value is None else f"{value:g}"
        # what rounds to zero has no sign
        return f"{round(value, self.digits) + 0:.{self.digits}f}"


class PValue(Column):
    """A p-value to three digits, empty where nothing was tested."""

    def text(self, row: Row) -> str:
        """What stands in the row's cell."""
        p: float | None = row[self.name]
        return "" if p is None else "<0.001" if p < 0.0005 else f"{p:.3f}"


@dataclass(frozen=True)
class Computed(Column):
    """What a function makes of the row, where no other kind of column shows it."""

    show: Callable[[Row], str] = field(kw_only=True)

    def text(self, row: Row) -> str:
        """What stands in the row's cell."""
        return self.show(row)


def _ends(bounds: str | None) -> list[str]:
    return [] if bounds is None else [f"{bounds}low", f"{bounds}high"]


def count(number: int | None) -> str:
    """A count; empty where it is not known."""
    return "" if number is None else str(number)


def steps_of(path: str) -> str:
    """A path as people read it."""
    return one_line(path).replace(">", " > ")


def shown_columns(columns: Sequence[Column], rows: Sequence[Row]) -> list[Column]:
    """The columns without optional ones that say nothing of these rows."""
    return [column for column in columns if not column.optional or any(map(column.text, rows))]


def _whole(row: Row) -> str:
    return ""


@dataclass(frozen=True)
class Listing:
    """A layout: a line for each row, under a heading for each study.

    Attributes:
        label: the column that names the rows.
        columns: the others.
        notes: sentences below the table.
        part: what else rows are parted by, shown in the heading.
    """

    label: Column
    columns: Sequence[Column]
    notes: Sequence[str]
    part: Callable[[Row], str] = _whole

    def __call__(self, rows: Sequence[Row]) -> list[Grid]:
        """The rows so arranged."""
        place = studies(rows)

        def heading(row: Row) -> str:
            return ", ".join(filter(None, [place.header(row), self.part(row)]))

        return [_build_grid(self, rows, place, heading, self.label.header, self.label.text)]


@dataclass(frozen=True)
class ByStudy:
    """A layout: a table for each data set, a line for each study, a heading for each part.

    Attributes:
        columns: those beside the name of the study.
        notes: sentences below each table, or what makes one of its rows.
        part: what else rows are parted by.
    """

    columns: Sequence[Column]
    notes: Sequence[str | Callable[[Sequence[Row]], str]]
    part: Callable[[Row], str] = _whole

    def __call__(self, rows: Sequence[Row]) -> list[Grid]:
        """The rows so arranged."""
        by_dataset: dict[str, list[Row]] = {}
        for row in rows:
            by_dataset.setdefault(row["dataset"], []).append(row)
        places = [(dataset_rows, studies(dataset_rows)) for dataset_rows in by_dataset.values()]
        return [
            _build_grid(self, dataset_rows, place, self.part, "Model", place.header)
            for dataset_rows, place in places
        ]


def _build_grid(
    layout: Listing | ByStudy,
    rows: Sequence[Row],
    place: Studies,
    heading: Callable[[Row], str],
    corner: str,
    label: Callable[[Row], str],
) -> Grid:
    """A line for each row below its heading, with a cell for each column of the layout."""
    lines: dict[str, list[Line]] = {}
    columns = shown_columns(layout.columns, rows)
    for row in rows:
        cells = tuple(column.cell(row) for column in columns)
        lines.setdefault(heading(row), []).append(Line(label(row), cells))
    blocks = tuple(
        RowBlock(heading, (tuple(lines_below),)) for heading, lines_below in lines.items()
    )
    headers = tuple(column.header for column in columns)
    notes = (note if isinstance(note, str) else note(rows) for note in layout.notes)
    return Grid(corner, headers, blocks, (*filter(None, notes), *place.notes()))


@dataclass(frozen=True)
class Gate:
    """A key of a gate's rules that is held against a column of a table, study by study.

    Attributes:
        key: as a file of rules has it.
        measure: name of the figure, as people read it.
        sense: whether the figure has to be at least or at most what it is held against.
        protocols: whose figure it is; a table that does not name them is of the first.
        value: its column.
        n: column of the trials that it is of.
        of: what of the study it is of.
        rows: the row of each study, from those of the table and the rule's ``k``.
        bounds: what stands before ``low`` and ``high`` in the names of its interval's ends.
        sides: both outcomes by question, from the turns of a study, where the figure is their
            difference, in percentage points; its interval at any level is computed from them.
        interval_data: successes and trials by question that the interval is computed from, and
            how, from the turns of a study, where that is neither Wilson's nor of ``sides``.
    """

    key: str
    measure: str
    sense: Literal["least", "most"]
    protocols: tuple[str, ...]
    value: str
    n: str
    of: pl.Expr
    rows: Callable[[pl.DataFrame, int | None], pl.DataFrame]
    bounds: str = ""
    sides: Callable[[pl.DataFrame], pl.DataFrame] | None = None
    interval_data: Callable[[pl.DataFrame], PairedInterval] | None = None


_ENDS = {"low": "Lower", "high": "Upper"}


@dataclass(frozen=True)
class Table:
    """A table of results; called with a turns table it gives its rows.

    Attributes:
        name: as ``holdfast table --table`` knows it; ``accuracy by step`` is ``accuracy`` with
            ``--by step``.
        measure: its rows, from a turns table and the settings that it takes.
        layout: its rows as people read them.
        title: the question that it answers, in plain words.
        lead: how to read it; the field's term stands beside the plain word.
        section: the section of the report that it stands in.
        place: the tables of a section stand in this order, those of one place as declared.
        chart: its figure, a function of its rows; None where it has none.
        takes: names of the settings of ``measure`` that a user may give.
        gates: keys of rules that are held against its columns.
        says: what its columns say that have no meaning in ``COMMON``, or another one there.
        intervals: the figure of an interval that the layout does not show, by what stands before
            ``_low`` and ``_high`` in the names of its ends; "" for ``low`` and ``high``. Without an
            entry, it is what stands there.
    """

    name: str
    measure: Callable[..., pl.DataFrame]
    layout: Layout = field(kw_only=True)
    title: str = field(kw_only=True)
    lead: str = field(kw_only=True)
    section: str = field(kw_only=True)
    place: int = field(default=0, kw_only=True)
    chart: "Callable[[pl.DataFrame], VConcatChart] | None" = field(default=None, kw_only=True)
    takes: tuple[str, ...] = field(default=(), kw_only=True)
    gates: tuple[Gate, ...] = field(default=(), kw_only=True)
    says: Mapping[str, str] = field(default_factory=dict, kw_only=True)
    intervals: Mapping[str, str] = field(default_factory=dict, kw_only=True)

    def meaning(self, column: str) -> str:
        """What a column of its rows says; empty where nothing tells that."""
        if meaning := self.says.get(column) or COMMON.get(column):
            return meaning
        of, end = self.interval_of(column), column.rpartition("_")[2]
        return f"{_ENDS[end]} bound of the 95% interval of `{of}`." if of else ""

    def interval_of(self, column: str) -> str:
        """The figure whose interval, or bounds, a column is an end of; empty for others."""
        prefix, _, end = column.rpartition("_")
        if end not in _ENDS or prefix.endswith("rank"):
            return ""
        return self._figures.get(prefix, prefix)

    @cached_property
    def _figures(self) -> Mapping[str, str]:
        """The figure of each interval, as the layout shows it or as it is said."""
        columns = getattr(self.layout, "columns", ())
        bounds = ((getattr(column, "bounds", None), column.name) for column in columns)
        laid_out = {prefix.rstrip("_"): name for prefix, name in bounds if prefix is not None}
        return {**INTERVALS, **laid_out, **self.intervals}

    @property
    def id(self) -> str:
        """Its name as an anchor or a part of a file's name."""
        return self.name.replace(" ", "-")

    def __call__(self, turns: pl.DataFrame, **settings: Any) -> pl.DataFrame:
        """Its rows from a turns table, with settings that it takes."""
        return in_words(self.measure(in_codes(turns), **settings))


@dataclass(frozen=True)
class Section:
    """Tables that stand together in the report.

    Attributes:
        id: anchor in the page, named by its tables.
        short: as in the contents.
        title: as headed.
        lead: what was done, in plain words.
        place: sections stand in this order.
    """

    id: str
    short: str
    title: str
    lead: str
    place: int


def tables_of(modules: Iterable[str]) -> dict[str, Table]:
    """The tables that modules declare, by name; a ``ValueError`` where two have one name."""
    tables: dict[str, Table] = {}
    for table in found_in(modules, Table):
        if tables.setdefault(table.name, table) is not table:
            raise ValueError(f"two tables are named '{table.name}'")
    return tables


def sections_of(modules: Iterable[str]) -> list[tuple[Section, tuple[Table, ...]]]:
    """The sections of the report in their order, each with its tables in theirs.

    A ``ValueError`` where a table stands in one that no module declares.
    """
    modules = list(modules)
    sections = sorted(found_in(modules, Section), key=lambda section: section.place)
    tables = sorted(found_in(modules, Table), key=lambda table: table.place)
    unknown = {table.section for table in tables} - {section.id for section in sections}
    if unknown:
        raise ValueError(f"no section of the report is named {', '.join(sorted(unknown))}")
    return [
        (section, tuple(table for table in tables if table.section == section.id))
        for section in sections
    ]


TABLES: Mapping[str, Table] = Lazily(lambda: tables_of(declaring()))
"""Table by its name, called with a turns table."""


@until_declared
def sections() -> list[tuple[Section, tuple[Table, ...]]]:
    """The sections of the report, each with its tables."""
    return sections_of(declaring())


def table_named(
    name: str, by: str | None = None, options: tuple[str, str] = ("name", "by")
) -> Table:
    """The table of a name, with its rows by something or as it has them alone.

    Args:
        name: such as ``accuracy``.
        by: such as ``step``.
        options: what the user gives the two by, for the error.

    Raises:
        InputError: there is no such table, or its rows are not by that.
    """
    ways_by_table = ways(TABLES)
    if name not in ways_by_table:
        raise unknown("table", name, ways_by_table, options[0])
    ways_of_table = [way for way in ways_by_table[name] if way]
    if by is None and "" not in ways_by_table[name]:
        raise InputError(
            f"table '{name}' needs {options[1]}", remedy=f"Give one of {', '.join(ways_of_table)}"
        )
    if by is not None and by not in ways_of_table:
        if ways_of_table:
            raise InputError(
                f"no table '{name}' by '{by}'",
                field=options[1],
                remedy=did_you_mean(by, ways_of_table),
            )
        raise InputError(f"table '{name}' has no {options[1]}", remedy="Remove it")
    return TABLES[name if by is None else f"{name}{BY}{by}"]
