"""Declared figures: preparation of rows, layout of panels, headings, and the maximum size."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from string import Formatter
from textwrap import TextWrapper, wrap
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, TypeVar

import polars as pl
import polars.selectors as cs

from holdfast.errors import InputError
from holdfast.results.grid import PUBLISHED_MARK, one_line, short_names, studies
from holdfast.results.phrases import in_words
from holdfast.results.runs import is_imported, is_simulated, system_of

from . import alt
from .theme import LETTER, MOST_SERIES, PAGE, PUBLISHED_INK, SIZE, TALL, config, joined

if TYPE_CHECKING:
    from altair.typing import ChartType

Item = TypeVar("Item")
Row = Mapping[str, Any]
Value = dict[str, Any]
"""Fields of a mark, under fixed names."""
Note = str | Callable[[Sequence[Row], Sequence[Row]], str]
"""Sentence of the subtitle, or a function from the drawn rows and all rows to a sentence."""

_FORMAT = Formatter()
INTERVALS = "Bands and whiskers: 95% intervals."

_LONGEST = 44
_LETTERS = 11 / 6
"""Letters per pixel, times the font size."""
_LINE = 13
_MARGIN, _WIDEST, _NARROW = 62, 1100, 500
"""Height of a panel's title and axis; maximum width of panels side by side; width below which
titles are folded and legend entries are stacked."""
_MEMBERS = {
    "constructor", "hasOwnProperty", "isPrototypeOf", "propertyIsEnumerable", "toLocaleString",
    "toString", "valueOf", "__proto__", "__defineGetter__", "__defineSetter__",
    "__lookupGetter__", "__lookupSetter__",
}  # fmt: skip
"""Members of every JavaScript object, which Vega confuses with the names of series."""


class ChartPart(NamedTuple):
    """Chart, its size in pixels including labels, and its continuation."""

    chart: Any
    width: int
    height: int
    empty: bool = False
    more: tuple[ChartPart, ...] = ()

    @classmethod
    def split(cls, parts: Sequence[ChartPart]) -> ChartPart:
        """Return the first part, with the others as its continuation because they do not fit."""
        return parts[0]._replace(more=tuple(parts[1:]))


@dataclass(frozen=True)
class Drawing:
    """State that the panels of a figure share: rows, studies and remarks."""

    rows: Sequence[Row]
    names: Sequence[str] = ()
    left_out: dict[str, tuple[int, int]] = field(default_factory=dict)
    remarks: dict[str, None] = field(default_factory=dict)
    wide: int = PAGE

    @property
    def narrow(self) -> bool:
        """Whether the figure is narrower than a page."""
        return self.wide < PAGE

    def folded(self, text: str, pixels: float | None = None) -> str:
        """Fold a text into lines of a given width if the figure is narrower than a page.

        Args:
            text: one or several lines.
            pixels: width of a line. Defaults to two fifths of the figure's width.
        """
        if not self.narrow:
            return text
        letters = max(8, int((pixels or 0.4 * self.wide) / LETTER))
        fold = TextWrapper(letters, break_long_words=False, break_on_hyphens=False).wrap
        lines = [folded_line for line in text.split("\n") for folded_line in fold(line) or [""]]
        return "\n".join(part for line in lines for part in _cut_line(line, letters))

    def first(self, items: Sequence[Item], limit: int, noun: str) -> Sequence[Item]:
        """Return the items that fit, and count the others."""
        limit = max(1, limit)
        if len(items) > limit:
            less, of = self.left_out.get(noun, (0, 0))
            self.left_out[noun] = (less + len(items) - limit, of + len(items))
        return items[:limit]

    def note(self) -> str:
        """Return remarks on the marks and skipped items, empty without any."""
        left = [f"{less:,} of {of:,} {noun}" for noun, (less, of) in self.left_out.items()]
        note = f"No room for {', '.join(left)}: they are in the table itself." if left else ""
        return " ".join([*self.remarks, note]).strip()


class ChartKind(Protocol):
    """Kind of chart, with the columns that it needs."""

    def part(self, rows: Sequence[Row], drawing: Drawing) -> ChartPart:
        """Draw the chart of these rows; ``empty`` without a value."""


@dataclass(frozen=True, kw_only=True)
class Chart:
    """Figure of a table; a call with the table's rows returns an Altair chart.

    Attributes:
        title: title of the figure.
        notes: sentences of the subtitle. Empty sentences are skipped.
        empty: error message if nothing can be drawn.
        remedy: remedy for this error.
        kind: kind of chart, or rows of several kinds placed side by side.
        panel: heading of a panel. Rows with equal fields in the heading share a panel. A tuple
            names fields without a heading.
        columns: as ``panel``, for columns within a panel. Each column has a chart of each kind.
        words: functions for heading fields that are not plain columns.
        keep: function that selects the rows to draw.
        across: maximum number of panels side by side, if they fit the page.
        together: whether all data sets share a panel.
        spacing: space between panels in pixels.
        size: font size in pixels.
        wide: width of the heading lines in pixels.
    """

    title: str
    notes: Sequence[Note]
    empty: str
    remedy: str | None = None
    kind: ChartKind | Sequence[Sequence[ChartKind]]
    panel: str | tuple[str, ...] = "{dataset}"
    columns: str | tuple[str, ...] = ()
    words: Mapping[str, Callable[[Row], str]] = field(default_factory=dict)
    keep: Callable[[Sequence[Row]], Sequence[Row]] = list
    across: int = 1
    together: bool = False
    spacing: int = 28
    size: int = 11
    wide: int = 720

    def __call__(self, frame: pl.DataFrame) -> alt.VConcatChart:
        """Draw the first part of the figure."""
        return self.parts(frame)[0]

    def parts(self, frame: pl.DataFrame, wide: int = PAGE) -> list[alt.VConcatChart]:
        """Draw the figure in as many parts as its height needs.

        Args:
            frame: rows of the table.
            wide: width of the figure in pixels.

        Raises:
            InputError: the rows contain nothing to draw.
        """
        panel_set = panels(frame, together=self.together)
        all_rows = panel_set.every()
        left_out = Drawing(())
        names = left_out.first(panel_set.names, MOST_SERIES, "models")
        rows_kept = [row for row in self.keep(all_rows) if row["study"] in names]
        drawing = Drawing(rows_kept, names, left_out.left_out, wide=wide)
        parts = [panel_part for heading, panel_rows in self._split(rows_kept, self.panel)
                 for panel_part in self._panel(heading, panel_rows, drawing)]  # fmt: skip
        if not parts:
            raise nothing(self.empty, self.remedy)
        beside = max(1, min(self.across, wide // max(part.width for part in parts)))
        sentences = [
            note if isinstance(note, str) else note(rows_kept, all_rows) for note in self.notes
        ]
        pages = _pages(parts, beside, self.spacing)
        figures = []
        for number, page in enumerate(pages, 1):
            charts = [part.chart for part in page]
            row_of_charts = (
                [joined("concat", charts, columns=beside)] if self.across > 1 else charts
            )
            part_note = f"Part {number} of {len(pages)}." if pages[1:] else ""
            notes = [part_note, *sentences, drawing.note()]
            size = min(self.size, SIZE) if drawing.narrow else self.size
            figures.append(headed(row_of_charts, self.title, notes, panel_set, self.spacing, size,
                                min(self.wide, wide)))  # fmt: skip
        return figures

    def _split(self, rows: Sequence[Row], by: str | tuple[str, ...]) -> list[tuple[str, list[Row]]]:
        """Group rows by the fields of a heading, each group with its heading."""
        fields = (
            by
            if isinstance(by, tuple)
            else [field_name for _, field_name, *_ in _FORMAT.parse(by) if field_name]
        )
        groups: dict[tuple[Any, ...], tuple[str, list[Row]]] = {}
        for row in rows:
            words = {field_name: self._word(row, field_name) for field_name in fields}
            heading = "" if isinstance(by, tuple) else by.format(**words)
            # different texts can have equal labels
            key = tuple((row.get(field_name), words[field_name]) for field_name in fields)
            groups.setdefault(key, (heading, []))[1].append(row)
        return list(groups.values())

    def _word(self, row: Row, field: str) -> str:
        if field in self.words:
            return self.words[field](row)
        return str(row[field]) if field in ("study", "dataset") else label(row[field])

    def _panel(self, heading: str, rows: Sequence[Row], drawing: Drawing) -> list[ChartPart]:
        """Draw a panel as strips that fit the page, none without a value."""
        kinds = self.kind if isinstance(self.kind, Sequence) else [[self.kind]]
        columns = self._split(rows, self.columns)
        # stack the charts of a column, without charts that are empty in every column
        stacks = [
            (title, [line[place].part(panel_rows, drawing) for line in kinds])
            for title, panel_rows in columns
            for place in range(len(kinds[0]))
        ]
        stacks = [
            (title, stack)
            for title, stack in stacks
            if not all(stack_part.empty for stack_part in stack)
        ]
        lines = [n for n in range(len(kinds)) if any(not stack[n].empty for _, stack in stacks)]
        if any(part.more for _, stack in stacks for part in stack) or any(
            sum(stack[n].height + _MARGIN for n in lines) > TALL for _, stack in stacks
        ):
            return _separate_charts(
                heading, [(title, [stack[n] for n in lines]) for title, stack in stacks], drawing
            )
        strips: list[list[list[ChartPart]]] = []
        room = 0
        for title, stack in stacks:
            if title:
                stack[lines[0]].chart.title = _fold_title([title], drawing)
            width = max(part.width for part in stack)
            if width > room:
                strips.append([])
                room = drawing.wide if drawing.narrow else _WIDEST
            room -= width
            strips[-1].append([stack[line] for line in lines])
        panel_parts = []
        for strip in strips:
            rows_of_charts = [_join_parts("hconcat", line, 16) for line in zip(*strip, strict=True)]
            stack_part = _join_parts("vconcat", rows_of_charts, 10)
            if heading and strip is strips[0]:
                chart_title = getattr(stack_part.chart, "title", None)
                titles = (
                    [chart_title]
                    if isinstance(chart_title, str)
                    else chart_title
                    if isinstance(chart_title, list)
                    else []
                )
                stack_part.chart.title = _fold_title([heading, *titles], drawing)
            panel_parts.append(stack_part)
        return panel_parts


def _join_parts(
    concat: Literal["hconcat", "vconcat"], parts: Sequence[ChartPart], spacing: int
) -> ChartPart:
    """Join parts side by side or below each other."""
    widths, heights = [part.width for part in parts], [part.height for part in parts]
    charts = [part.chart for part in parts]
    chart = joined(concat, charts, spacing=spacing) if charts[1:] else charts[0]
    if concat == "hconcat":
        return ChartPart(chart, sum(widths), max(heights) + _MARGIN)
    return ChartPart(chart, max(widths), sum(heights))


def headed(
    rows: Sequence[ChartType],
    title: str,
    notes: Sequence[str],
    panels: Panels,
    spacing: int = 28,
    size: int = 11,
    wide: int = 720,
) -> alt.VConcatChart:
    """Assemble the figure.

    Args:
        rows: charts, from top to bottom.
        title: title of the figure.
        notes: sentences of the subtitle. Empty sentences are skipped.
        panels: drawn rows, for notes on their studies.
        spacing: space between rows in pixels.
        size: font size in pixels.
        wide: width of the heading lines in pixels.
    """
    letters = int(wide * _LETTERS / size)
    subtitle = [*panels.notes, *(note for note in notes if note)]
    text = f"{title}{' [SIMULATED]' * panels.has_simulated}{' [IMPORTED]' * panels.has_imported}"
    narrow = wide < _NARROW
    heading = alt.TitleParams(
        text=wrap(text, int(wide * _LETTERS / (size + 6))) if narrow else text,
        subtitle=[line for note in subtitle for line in wrap(note, letters)],
        fontSize=size + 4,
        offset=16,
    )
    chart: alt.VConcatChart = joined("vconcat", rows, spacing=spacing, title=heading)
    _part_offsets(chart)
    chart.config = config(size, 1) if narrow else config(size)
    return chart


@dataclass(frozen=True)
class Panels:
    """Rows to draw.

    Attributes:
        rows: rows by displayed data set, with ``study`` and ``ink`` added and None for values that
            are not finite.
        names: studies of all data sets in order.
        notes: notes on the studies.
        has_simulated: whether a study is simulated.
        has_imported: whether a study was imported, not asked by holdfast.
    """

    rows: Mapping[str, Sequence[Row]]
    names: tuple[str, ...]
    notes: tuple[str, ...]
    has_simulated: bool
    has_imported: bool = False

    def every(self) -> list[Row]:
        """Return the rows of all data sets."""
        return [row for study_rows in self.rows.values() for row in study_rows]


def panels(frame: pl.DataFrame, *, together: bool = False) -> Panels:
    """Prepare the rows of a table, by data set.

    A published data set joins the measured one of the same name, ignoring case. If there is none,
    it joins the only measured data set, and its name is added to the names of its models. Long
    names of models are shortened to a unique suffix. Runs are numbered. Ids of techniques become
    words, as in ``words_of``.

    Args:
        frame: a table of results, with or without published rows.
        together: whether all data sets share a panel. The names of studies then contain the data
            set if there are several.

    Raises:
        InputError: the table has no rows.
    """
    if frame.is_empty():
        raise nothing()
    numbers = frame.select(cs.float()).columns
    finite = [pl.when(pl.col(name).is_finite()).then(pl.col(name)).alias(name) for name in numbers]
    rows = in_words(frame.with_columns(finite).to_dicts())
    measured_names = {
        _dataset(row).casefold(): _dataset(row) for row in rows if not is_published(row)
    }
    published_names = {_dataset(row).casefold() for row in rows if is_published(row)}
    apart = len(measured_names) == 1 and not published_names & measured_names.keys()
    groups: dict[str, list[Value]] = {}
    runs: dict[tuple[Any, ...], dict[str, int]] = {}
    for row in rows:
        dataset = _dataset(row)
        # readers see numbers instead of run ids
        row["_system"] = system_of(row)
        of_study = runs.setdefault((row["_system"], row["dataset"], row.get("protocol")), {})
        row["nth"] = of_study.setdefault(row["run"], len(of_study) + 1)
        if is_published(row):
            beside = next(iter(measured_names.values())) if apart else dataset
            row = row | {"of": f" ({dataset})" if apart and not together else ""}
            dataset = measured_names.get(dataset.casefold(), dataset if together else beside)
        groups.setdefault("" if together else dataset, []).append(row | {"dataset": dataset})
    short_model_names = short_names(str(row["model"]) for row in rows)
    short: dict[str, str] = {}
    rows_by_study: dict[str, list[Row]] = {}
    for dataset, dataset_rows in groups.items():
        labelled_rows = [
            row
            | {
                "model": f"{_display_name(row, short_model_names)}{row.get('of', '')}",
                "run": str(row["nth"]),
            }
            for row in dataset_rows
        ]
        columns = studies(labelled_rows)
        for header in columns.headers:
            if header not in short:
                short[header] = distinct(label(header), short.values())
        rows_by_study[dataset] = [
            row
            | {
                "study": short[columns.headers[columns.of(labelled_row)]],
                "ink": PUBLISHED_INK if is_published(row) else 1.0,
            }
            for row, labelled_row in zip(dataset_rows, labelled_rows, strict=True)
        ]
    all_rows = [row for dataset_rows in rows_by_study.values() for row in dataset_rows]
    has_simulated = any(is_simulated(str(row["model"])) for row in rows)
    has_imported = any(is_imported(str(row["run"])) for row in rows)
    return Panels(
        rows_by_study, tuple(short.values()), _notes(all_rows), has_simulated, has_imported
    )


def _display_name(row: Row, names: Mapping[str, str]) -> str:
    """Return the short name of a row's model, with its defence."""
    model = str(row["model"])
    return f"{names[model]}{row['_system'].removeprefix(model)}"


def nothing(problem: str = "the table has no rows", remedy: str | None = None) -> InputError:
    """Return the error for a figure without marks."""
    return InputError(
        f"nothing to draw: {problem}",
        remedy=remedy or "Print the table with --format md",
    )


def is_published(row: Row) -> bool:
    """Whether a row has figures that a paper printed."""
    return str(row["model"]).endswith(PUBLISHED_MARK)


def label(text: str | None, longest: int = _LONGEST) -> str:
    """Return a text as a label: on one line, with its middle omitted if it is too long."""
    shown_text = one_line(text or "")
    if len(shown_text) > longest:
        end = longest // 3
        shown_text = f"{shown_text[: longest - end - 1]}…{shown_text[-end:]}"
    return f"{shown_text}\u00a0" if shown_text in _MEMBERS else shown_text


def path_label(row: Row, longest: int = _LONGEST) -> str:
    """Return a row's path as a label, with a long chain on several lines and in full."""
    return chain_label(row["path"], longest)


def chain_label(path: str | None, longest: int = _LONGEST) -> str:
    """Return the steps of a path as a label, on as many lines as they need."""
    lines = [""]
    for step in (path or "").split(">"):
        step_label = label(step, longest - 2)
        if len(lines[-1]) + len(step_label) + 5 > longest and lines[-1]:
            lines[-1] += " >"
            lines.append(step_label)
        else:
            lines[-1] += f" > {step_label}" if lines[-1] else step_label
    return "\n".join(lines)


WRAPPED_LABEL = "split(datum.label, '\\n')"
"""Vega expression for the lines of an axis label."""


def _cut_line(line: str, letters: int) -> Iterator[str]:
    """Split a long line after its hyphens and slashes."""
    while len(line) > letters and (at := 1 + max(line.rfind(mark, 0, letters) for mark in "-/_")):
        yield line[:at]
        line = line[at:]
    yield line


def height_of(labels: Iterable[str]) -> int:
    """Return the height of the label with the most lines, with spacing, in pixels."""
    lines = lines_of(labels)
    return _LINE * lines + 6 * (lines > 1)


def lines_of(labels: Iterable[str]) -> int:
    """Return the number of lines of the label with the most lines."""
    return max((text.count("\n") + 1 for text in labels), default=1)


def counts(numbers: Sequence[int | None], noun: str) -> str:
    """Format ``n = 60 questions.`` or ``n = 12 to 60 questions, by mark.``, empty if unknown."""
    distinct_counts = sorted({number for number in numbers if number is not None})
    if not distinct_counts:
        return ""
    if len(distinct_counts) == 1:
        return f"n = {distinct_counts[0]:,} {noun}."
    return f"n = {distinct_counts[0]:,} to {distinct_counts[-1]:,} {noun}, by mark."


def counted(column: str, noun: str) -> Note:
    """Return a note on a count, from a column of the drawn rows."""
    return lambda rows, all_rows: counts([row[column] for row in rows], noun)


def left(words: str) -> Note:
    """Return a note on rows that are not drawn, ``{less}`` of ``{all}``, empty if all are drawn."""

    def note(rows: Sequence[Row], all_rows: Sequence[Row]) -> str:
        less = len(all_rows) - len(rows)
        return words.format(less=f"{less:,}", all=f"{len(all_rows):,}") if less else ""

    return note


def lacking(words: str, *columns: str) -> Note:
    """Return a note on the studies without a figure in one of these columns."""

    def note(rows: Sequence[Row], all_rows: Sequence[Row]) -> str:
        studies_lacking = [
            row["study"] for row in all_rows if any(row[name] is None for name in columns)
        ]
        return f"{words}: {_list_names(studies_lacking)}." if studies_lacking else ""

    return note


def known(*columns: str) -> Callable[[Sequence[Row]], list[Row]]:
    """Return a function that selects the rows with a figure in each of these columns."""
    return lambda rows: [row for row in rows if all(row[name] is not None for name in columns)]


def distinct(name: str, names_taken: Iterable[str]) -> str:
    """Return the name, with a number if it is taken."""
    other_names, place, candidate = set(names_taken), 2, name
    while candidate in other_names:
        candidate, place = f"{name} ({place})", place + 1
    return candidate


def width_of(labels: Iterable[str]) -> int:
    """Estimate the width of the longest line of these labels, in pixels."""
    return LETTER * max((len(line) for text in labels for line in text.split("\n")), default=0)


def _list_names(names: Iterable[str]) -> str:
    """List the names, up to the maximum number of series in a figure."""
    distinct_names = list(dict.fromkeys(names))
    more = (
        f" and {len(distinct_names) - MOST_SERIES:,} more"
        if len(distinct_names) > MOST_SERIES
        else ""
    )
    return f"{', '.join(distinct_names[:MOST_SERIES])}{more}"


def _pages(parts: Sequence[ChartPart], across: int, spacing: int) -> list[list[ChartPart]]:
    """Arrange parts in lines of ``across``, on pages of at most the maximum height."""
    pages: list[list[ChartPart]] = []
    room = 0
    for place in range(0, len(parts), across):
        line = parts[place : place + across]
        height = max(part.height for part in line) + spacing
        if not pages or height > room:
            pages.append([])
            room = TALL
        room -= height
        pages[-1] += line
    return pages


def _fold_title(lines: Sequence[str], drawing: Drawing) -> Any:
    """Fold the title of a panel into as many lines as it needs."""
    title_lines = [
        title_line
        for line in lines
        for title_line in drawing.folded(line, 0.8 * drawing.wide).split("\n")
    ]
    return title_lines if title_lines[1:] else title_lines[0]


def _separate_charts(
    heading: str, stacks: Sequence[tuple[str, Sequence[ChartPart]]], drawing: Drawing
) -> list[ChartPart]:
    """Return charts that are too high to join, each with its headings."""
    parts = []
    for title, stack in stacks:
        for first in stack:
            for part in (first, *first.more):
                if part.empty:
                    continue
                chart_title = getattr(part.chart, "title", None)
                names = [heading, title, chart_title if isinstance(chart_title, str) else ""]
                titles = list(dict.fromkeys(filter(None, names)))
                part.chart.title = _fold_title(titles, drawing) if titles else alt.Undefined
                parts.append(part._replace(height=part.height + _MARGIN, more=()))
    return parts


def _part_offsets(chart: ChartType) -> None:
    """Give each panel separate offsets for its series; by default, all use the first panel's."""
    for kind in ("vconcat", "hconcat", "concat"):
        parts = getattr(chart, kind, alt.Undefined)
        if parts is alt.Undefined or not isinstance(parts, list):
            continue
        apart = alt.ScaleResolveMap(xOffset="independent", yOffset="independent")
        chart.resolve = alt.Resolve(scale=apart)
        for part in parts:
            _part_offsets(part)


def _dataset(row: Row) -> str:
    return label(row["dataset"])


def _notes(rows: Sequence[Row]) -> tuple[str, ...]:
    notes = []
    measured_studies = dict.fromkeys(row["study"] for row in rows if not is_published(row))
    simulated_studies = dict.fromkeys(
        row["study"] for row in rows if is_simulated(str(row["model"]))
    )
    if simulated_studies and not measured_studies.keys() <= simulated_studies.keys():
        # if all studies are simulated, the title says so
        notes.append(f"SIMULATED, not a measurement of a model: {_list_names(simulated_studies)}.")
    published_runs = dict.fromkeys(one_line(str(row["run"])) for row in rows if is_published(row))
    if published_runs:
        notes.append(
            f"[published], drawn lighter, as crosses: as printed in {'; '.join(published_runs)}."
        )
    if any(" (run " in row["study"] for row in rows):
        notes.append("Runs are numbered in the order of the table.")
    return tuple(notes)
