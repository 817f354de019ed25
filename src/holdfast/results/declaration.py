"""Declarations of tables: name, measure, layout and place in the report, in one object.

A module with a measure declares ``Table`` objects next to its functions, and sometimes a
``Section`` of the report. The lists of tables and sections are collected from these modules.
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
from .turns import SCHEMA

if TYPE_CHECKING:
    from altair import VConcatChart

Layout = Callable[[Sequence[Row]], list[Grid] | None]
"""Function that arranges the rows of a table for people; None if they do not fit."""

LinkFilters = Mapping[str, str | None]
"""Values that select conversations, added to the row's values; None removes a value."""


@dataclass(frozen=True)
class Column:
    """Column of a table for people; each kind of column defines ``text``.

    A cell links to the conversations that it counts, and a share to the conversations that it is a
    share of. ``of`` must select a superset or a subset of these conversations. If it selects as
    many as the cell counts, the two sets are equal, and only then the report makes a link.

    Attributes:
        header: header of the column.
        name: name of the row's value to show.
        of: values that select the counted conversations of a row, or a function from a row to
            these values. None if they cannot be selected.
        among: name of the row's value with the number of these conversations, or the number.
        optional: whether to skip the column if all of its cells are empty.
    """

    header: str
    name: str
    of: LinkFilters | Callable[[Row], LinkFilters] | None = field(default=None, kw_only=True)
    among: str | int = field(default="", kw_only=True)
    optional: bool = field(default=False, kw_only=True)

    def text(self, row: Row) -> str:
        """Return the text of the row's cell."""
        raise NotImplementedError

    def cell(self, row: Row) -> Cell:
        """Return the row's cell, with the conversations behind it."""
        if self.of is None:
            return Cell(self.text(row))
        more = self.of(row) if callable(self.of) else self.of
        among = self.among or self.name
        n = row[among] if isinstance(among, str) else among
        return Cell(self.text(row), of={**row, **more}, n=n)


class Text(Column):
    """Text on one line."""

    def text(self, row: Row) -> str:
        """Return the text of the row's cell."""
        return one_line(row[self.name] or "")


class Path(Column):
    """Challenges in sequence."""

    def text(self, row: Row) -> str:
        """Return the text of the row's cell."""
        return steps_of(row[self.name])


class YesNo(Column):
    """Yes or no, empty if null."""

    def text(self, row: Row) -> str:
        """Return the text of the row's cell."""
        return {None: "", True: "yes", False: "no"}[row[self.name]]


@dataclass(frozen=True)
class Count(Column):
    """Count, empty if null; followed by ``share`` in percent and ``sign``."""

    share: str = ""
    sign: str = ""

    def text(self, row: Row) -> str:
        """Return the text of the row's cell."""
        share_text = percent(row[self.share]) if self.share else ""
        behind = f"({share_text}{self.sign})" if share_text else ""
        return " ".join(filter(None, [count(row[self.name]), behind]))


@dataclass(frozen=True)
class Share(Column):
    """Share in percent, as ``54.0 [51.2, 56.7]`` with an interval.

    Attributes:
        bounds: prefix of ``low`` and ``high`` in the names of the interval's columns.
        signed: whether to show the sign, as for a difference.
    """

    bounds: str | None = None
    signed: bool = False

    def text(self, row: Row) -> str:
        """Return the text of the row's cell."""
        names = [self.name, *_ends(self.bounds)]
        share, *ends = (percent(row[name], with_sign=self.signed) for name in names)
        return f"{share} [{', '.join(ends)}]" if share and ends and all(ends) else share


@dataclass(frozen=True)
class Number(Column):
    """Number, as ``1.20 [0.95, 1.45]`` with an interval, empty if null.

    Attributes:
        bounds: prefix of ``low`` and ``high`` in the names of the interval's columns.
        digits: number of decimal places. None shows the number in full.
    """

    bounds: str | None = None
    digits: int | None = 2

    def text(self, row: Row) -> str:
        """Return the text of the row's cell."""
        value_text, *ends = (self._format(row[name]) for name in [self.name, *_ends(self.bounds)])
        return f"{value_text} [{', '.join(ends)}]" if value_text and any(ends) else value_text

    def _format(self, value: float | None) -> str:
        if value is None or self.digits is None:
            return "" if value is None else f"{value:g}"
        # a number that rounds to zero has no sign
        return f"{round(value, self.digits) + 0:.{self.digits}f}"


class PValue(Column):
    """P-value with three decimal places, empty without a test."""

    def text(self, row: Row) -> str:
        """Return the text of the row's cell."""
        p: float | None = row[self.name]
        return "" if p is None else "<0.001" if p < 0.0005 else f"{p:.3f}"


@dataclass(frozen=True)
class Computed(Column):
    """Result of a function of the row, for values that no other kind of column shows."""

    show: Callable[[Row], str] = field(kw_only=True)

    def text(self, row: Row) -> str:
        """Return the text of the row's cell."""
        return self.show(row)


def _ends(bounds: str | None) -> list[str]:
    return [] if bounds is None else [f"{bounds}low", f"{bounds}high"]


def count(number: int | None) -> str:
    """Format a count, empty if null."""
    return "" if number is None else str(number)


def steps_of(path: str) -> str:
    """Format a path for people."""
    return one_line(path).replace(">", " > ")


def shown_columns(columns: Sequence[Column], rows: Sequence[Row]) -> list[Column]:
    """Return the columns, without optional columns whose cells are all empty."""
    return [column for column in columns if not column.optional or any(map(column.text, rows))]


def _whole(row: Row) -> str:
    return ""


@dataclass(frozen=True)
class Listing:
    """Layout with a line for each row, under a heading for each study.

    Attributes:
        label: column that names the rows.
        columns: other columns.
        notes: sentences below the table.
        part: function from a row to a further part of its heading.
    """

    label: Column
    columns: Sequence[Column]
    notes: Sequence[str]
    part: Callable[[Row], str] = _whole

    def __call__(self, rows: Sequence[Row]) -> list[Grid]:
        """Arrange the rows."""
        place = studies(rows)

        def heading(row: Row) -> str:
            return ", ".join(filter(None, [place.header(row), self.part(row)]))

        return [_build_grid(self, rows, place, heading, self.label.header, self.label.text)]


@dataclass(frozen=True)
class ByStudy:
    """Layout with a table for each data set, a line for each study, and a heading for each part.

    Attributes:
        columns: columns after the name of the study.
        notes: sentences below each table, or functions from the rows to a sentence.
        part: function from a row to its heading.
    """

    columns: Sequence[Column]
    notes: Sequence[str | Callable[[Sequence[Row]], str]]
    part: Callable[[Row], str] = _whole

    def __call__(self, rows: Sequence[Row]) -> list[Grid]:
        """Arrange the rows."""
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
    """Build a grid: a line for each row below its heading, a cell for each column."""
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
    """Key of a gate's rules, which sets a limit for a column of a table, study by study.

    Attributes:
        key: key in a file of rules.
        measure: name of the figure for people.
        sense: whether the figure must be at least or at most the limit.
        protocols: protocols with this figure. A table without a protocol column is of the first.
        value: column of the figure.
        n: column with the number of trials.
        of: expression for the part of the study that the figure covers.
        rows: function from the rows of the table and the rule's ``k`` to one row for each study.
        bounds: prefix of ``low`` and ``high`` in the names of the interval's columns.
        sides: function from the turns of a study to two outcomes by question, if the figure is
            their difference in percentage points. The interval at any level uses them.
        interval_data: function from the turns of a study to the successes and trials by question,
            and to the function for the interval. Needed if the interval is neither Wilson's nor
            from ``sides``.
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
    """Table of results; a call with a turns table returns its rows.

    Attributes:
        name: name for ``holdfast table --table``. ``accuracy by step`` is ``accuracy`` with
            ``--by step``.
        measure: function from a turns table and the settings in ``takes`` to the rows.
        layout: layout of the rows for people.
        title: question that the table answers, in plain words.
        lead: explanation for readers, with the field's term next to the plain word.
        section: id of the table's section in the report.
        place: sort key within the section. Tables with equal keys keep the order of declaration.
        chart: function from the rows to a figure, or None.
        takes: names of the settings of ``measure`` that users can set.
        gates: keys of rules that set limits for the table's columns.
        says: meanings of columns that are not in ``COMMON``, or differ from it.
        intervals: figure of each interval that the layout does not show, by the prefix before
            ``_low`` and ``_high`` in the column names ("" for ``low`` and ``high``). Without an
            entry, the prefix names the figure.
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
        """Return the meaning of a column, empty if it is not declared."""
        if meaning := self.says.get(column) or COMMON.get(column):
            return meaning
        of, end = self.interval_of(column), column.rpartition("_")[2]
        return f"{_ENDS[end]} bound of the 95% interval of `{of}`." if of else ""

    def interval_of(self, column: str) -> str:
        """Return the figure whose interval or bounds include this column, or empty text."""
        prefix, _, end = column.rpartition("_")
        if end not in _ENDS or prefix.endswith("rank"):
            return ""
        return self._figures.get(prefix, prefix)

    @cached_property
    def schema(self) -> pl.Schema:
        """Columns and types of the rows, with the default settings."""
        return self(pl.DataFrame(schema=SCHEMA)).schema

    @cached_property
    def _figures(self) -> Mapping[str, str]:
        """Return the figure of each interval, from the layout or from the declaration."""
        columns = getattr(self.layout, "columns", ())
        bounds = ((getattr(column, "bounds", None), column.name) for column in columns)
        laid_out = {prefix.rstrip("_"): name for prefix, name in bounds if prefix is not None}
        return {**INTERVALS, **laid_out, **self.intervals}

    @property
    def id(self) -> str:
        """Return the name in the form for anchors and file names."""
        return self.name.replace(" ", "-")

    def __call__(self, turns: pl.DataFrame, **settings: Any) -> pl.DataFrame:
        """Compute the rows from a turns table, with settings from ``takes``."""
        return in_words(self.measure(in_codes(turns), **settings))


@dataclass(frozen=True)
class Section:
    """Section of the report, with several tables.

    Attributes:
        id: anchor in the page, which tables refer to.
        short: title in the contents.
        title: heading.
        lead: description of the procedure, in plain words.
        place: sort key of the sections.
    """

    id: str
    short: str
    title: str
    lead: str
    place: int


def tables_of(modules: Iterable[str]) -> dict[str, Table]:
    """Collect the tables of modules by name; raise a ``ValueError`` for a duplicate name."""
    tables: dict[str, Table] = {}
    for table in found_in(modules, Table):
        if tables.setdefault(table.name, table) is not table:
            raise ValueError(f"two tables are named '{table.name}'")
    return tables


def sections_of(modules: Iterable[str]) -> list[tuple[Section, tuple[Table, ...]]]:
    """Collect the sections of the report in order, each with its tables in order.

    A ``ValueError`` is raised if a table names a section that no module declares.
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
"""Tables by name; call a table with a turns table."""


@until_declared
def sections() -> list[tuple[Section, tuple[Table, ...]]]:
    """Return the sections of the report, each with its tables."""
    return sections_of(declaring())


def table_named(
    name: str, by: str | None = None, options: tuple[str, str] = ("name", "by")
) -> Table:
    """Return the table with a name, and optionally a grouping of its rows.

    Args:
        name: name of the table, such as ``accuracy``.
        by: grouping of the rows, such as ``step``.
        options: names of the user's options for the two, for errors.

    Raises:
        InputError: the table does not exist, or it has no such grouping.
    """
    ways_by_table = ways(TABLES)
    if name not in ways_by_table:
        raise unknown("table", name, ways_by_table, options[0])
    ways_of_table = [way for way in ways_by_table[name] if way]
    if by is None and "" not in ways_by_table[name]:
        raise InputError(
            f"table '{name}' needs {options[1]}",
            remedy=f"Set it to one of {', '.join(ways_of_table)}",
        )
    if by is not None and by not in ways_of_table:
        if ways_of_table:
            raise InputError(
                f"no table '{name}' by '{by}'",
                field=options[1],
                remedy=did_you_mean(by, ways_of_table),
            )
        raise InputError(f"table '{name}' has no {options[1]}", remedy=f"Remove {options[1]}")
    return TABLES[name if by is None else f"{name}{BY}{by}"]
