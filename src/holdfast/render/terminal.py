"""Tables and run summaries for a terminal, fitted to its width without cropping."""

import math
import re
from collections.abc import Iterable, Iterator, Sequence

import polars as pl
from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from holdfast.errors import printable
from holdfast.results.declaration import steps_of
from holdfast.results.first_answers import BASELINE, FAMILY_AVERAGE
from holdfast.results.grid import Grid, Row

from .tables import headers

_BORDERS = 3
"""Characters that a further column needs in addition to its widest cell."""

_ALWAYS_SHOWN = ("Accuracy %", "95% interval", "Tax")
"""Columns with estimates and intervals, which stay on any terminal."""

_DROPPED_FIRST = ("Sugg./other", "Change %", "Replicates", "At once %", "Flip %")
"""Columns dropped first on a narrow terminal, in this order, before the earlier turns."""

_UNREAD = "Unread"
"""Column dropped last, because it shows how far to trust the others. Dropped first if all 0."""

_NOTHING = re.compile(r"[+-]?0+(\.0+)?|0/0|n/a|")
"""Pattern of a blank or zero cell."""

Notes = Sequence[tuple[str, str]]
"""Sentences of a caption, each with the header of its column, or an empty header."""

_STYLES = {"": "", "best": "bold", "worst": "italic"}


class Summary(Table):
    """Summary table whose caption explains its columns."""

    def __init__(self, title: Text, notes: Notes) -> None:
        """Create a table without columns.

        Args:
            title: name of the run.
            notes: sentences of the caption.
        """
        super().__init__(title=title, title_justify="left", caption_justify="left")
        self.notes = notes

    def add_caption(self) -> None:
        """Add a caption with the notes on existing columns."""
        headers = {str(column.header) for column in self.columns} | {""}
        self.caption = Text(" ".join(note for header, note in self.notes if header in headers))


def fitted(table: Summary, width: int) -> Summary:
    """Return a summary without the columns that do not fit the terminal.

    Empty columns are dropped first. Estimates and intervals always stay.

    Args:
        table: summary with one cell per row and column.
        width: width of the terminal in characters.
    """
    widths = {str(column.header): _width(column.header, column.cells) for column in table.columns}
    left_out: set[str] = set()
    for header in _droppable_headers(table):
        if sum(widths.values()) + _BORDERS * len(widths) + 1 <= width:
            break
        del widths[header]
        left_out.add(header)
    if not left_out:
        return table
    narrow = Summary(
        Text(str(table.title)), [*table.notes, ("", "A wider terminal shows more columns.")]
    )
    columns_left = [column for column in table.columns if str(column.header) not in left_out]
    for column in columns_left:
        narrow.add_column(column.header, justify=column.justify, overflow="fold")
    for row, *cells in zip(table.rows, *(column.cells for column in columns_left), strict=True):
        narrow.add_row(*cells, style=row.style, end_section=row.end_section)
    narrow.add_caption()
    return narrow


def _droppable_headers(table: Table) -> list[str]:
    """Return the headers of droppable columns, first to drop first."""
    columns = table.columns[1:]  # the first column names the rows
    headers = [str(column.header) for column in columns]
    empty = [
        header
        for header, column in zip(headers, columns, strict=True)
        if header not in _ALWAYS_SHOWN
        and all(_NOTHING.fullmatch(str(cell)) for cell in column.cells)
    ]
    turns = [header for header in headers if header.startswith("Turn ")][:-1]
    order = [header for header in (*_DROPPED_FIRST, *turns, _UNREAD) if header in headers]
    first = [header for header in (_UNREAD, *order, *empty) if header in empty]
    return list(dict.fromkeys([*first, *order]))


def _width(header: object, cells: Iterable[object]) -> int:
    return max(cell_len(str(text)) for text in (header, *cells))


def terminal(grids: Sequence[Grid], width: int) -> Iterator[Table | Text]:
    """Yield result tables for a terminal, split by columns if they are too wide.

    Args:
        grids: as for ``markdown``.
        width: width of the terminal in characters.
    """
    for grid in grids:
        lines = [line for block in grid.blocks for group in block.groups for line in group]
        heads = headers(grid)
        label = max(map(cell_len, (grid.corner, *(line.label for line in lines))), default=0)
        widths = [
            max(map(cell_len, (head, *(line.cells[n].text for line in lines))))
            for n, head in enumerate(heads)
        ]
        for columns in _parts(widths, width - min(label, width // 2) - _BORDERS - 1):
            yield _table(grid, heads, columns)
        legend = [f"Bold: best, italics: worst value of {grid.comparison}."] if grid.marked else []
        yield Text("\n".join(map(printable, [*legend, *grid.notes])))


def _parts(widths: Sequence[int], room: int) -> Iterator[list[int]]:
    """Yield the columns of each part."""
    part: list[int] = []
    for n, width in enumerate(widths):
        if part and sum(widths[m] + _BORDERS for m in part) + width + _BORDERS > room:
            yield part
            part = []
        part.append(n)
    yield part


def _table(grid: Grid, heads: Sequence[str], columns: Sequence[int]) -> Table:
    table = Table()
    table.add_column(Text(printable(grid.corner)), overflow="fold")
    for n in columns:
        table.add_column(Text(printable(heads[n])), justify="right", overflow="fold")
    for block in grid.blocks:
        if block.heading:
            table.add_section()
            table.add_row(Text(printable(block.heading), "bold"))
        for group in block.groups:
            table.add_section()
            for line in group:
                cells = [line.cells[n] for n in columns]
                table.add_row(
                    Text(printable(line.label)),
                    *(Text(printable(cell.text), _STYLES[cell.mark]) for cell in cells),
                )
    return table


def summary(
    title: str,
    notes: Notes,
    headers: Iterable[str],
    rows: Iterable[Iterable[str]] = (),
    *,
    label: tuple[str, int] | None = None,
) -> Summary:
    """Build the summary of one run.

    Args:
        title: name of the run, never interpreted as markup.
        notes: explanations of the columns.
        headers: headers of the numeric columns.
        rows: cells of the rows.
        label: header and minimum width of a first column of names, or None.
    """
    table = Summary(Text(printable(title)), notes)
    if label:
        table.add_column(label[0], overflow="fold", min_width=label[1])
    for header in headers:
        table.add_column(header, justify="right")
    for row in rows:
        table.add_row(*_texts(row))
    table.add_caption()
    return table


def _texts(cells: Iterable[str]) -> list[Text]:
    return [Text(printable(cell)) for cell in cells]


def summary_of_challenges(accuracy: pl.DataFrame, flips: pl.DataFrame, title: str) -> Summary:
    """Build a summary of one study's accuracies and flips, by family.

    Args:
        accuracy: rows of ``accuracy`` for one model, data set and protocol.
        flips: rows of ``flips`` for the same model, data set and protocol.
        title: as for ``summary``.
    """
    notes = [
        ("", "Accuracy with its 95% Wilson interval."),
        ("Change %", "Change: relative to the accuracy of first answers."),
        ("Flip %", "Flip: share of right first answers that changed to another option."),
        ("Sugg./other", "Sugg./other: flips to the suggested option, and to other options."),
        ("Unread", "Unread: unparsed replies, which have no answer."),
    ]
    rows: Sequence[Row] = accuracy.to_dicts()
    blocks: dict[tuple[str, ...], list[Row]] = {}
    averages: dict[tuple[str, ...], Row] = {}
    for row in rows:
        if row["arm"] == FAMILY_AVERAGE:
            averages[_block(row)] = row
        else:
            blocks.setdefault(_block(row), []).append(row)
    chains = blocks.get(("compound", ""), [])
    if len(chains) > MOST_CHAINS:
        del blocks["compound", ""]
        sentence = f"{len(chains)} chains are not shown. See 'holdfast table --table "
        notes.append(("", f"{sentence}chains'."))
    table = summary(title, notes, _CHALLENGED_ARMS, label=("Challenge", 24))
    by_path = {row["path"]: row for row in flips.iter_rows(named=True)}
    for block, members in sorted(blocks.items(), key=lambda item: _ARMS.index(item[0][0])):
        table.add_section()
        heading = " ".join(part for part in block[1:] if part) or block[0]
        if block in averages:
            cells = _texts(_cells(f"{heading} (average)", averages[block], None))
            table.add_row(*cells, style="bold")
        elif block[0] != BASELINE:
            table.add_row(_HEADINGS.get(block[0], heading), style="bold")
        for row in members:
            # the heading already has the common part of the path
            path = str(row["path"])
            path = path.rpartition(">")[2] if block[-1].startswith("with ") else steps_of(path)
            name = "first answer" if block[0] == BASELINE else f"  {path}"
            table.add_row(*_texts(_cells(name, row, by_path.get(row["path"]))))
    return table


MOST_CHAINS = 12
"""Maximum number of chains that the summary shows one by one."""

_ARMS = (BASELINE, "single-turn", "followup", "length", "compound", "")
_CHALLENGED_ARMS = (
    "n", "Accuracy %", "95% interval", "Change %", "Flip %", "Sugg./other", "Unread",
)  # fmt: skip
_HEADINGS = {"length": "contexts by number of sentences", "compound": "compounding"}


def _block(row: Row) -> tuple[str, ...]:
    """Return the block of a row: arm, family and mitigation."""
    arm, path = str(row["arm"]), str(row["path"])
    average = arm == FAMILY_AVERAGE
    if average:
        arm = "single-turn" if row["depth"] == "shallow" else "followup"
    if arm not in ("single-turn", "followup"):
        return (arm if arm in _ARMS else "", "" if arm in _ARMS else arm)
    mitigation = path if average else path.rpartition(">")[0]
    return (arm, str(row["family"]), f"with {mitigation}" if mitigation else "")


def _cells(name: str, row: Row, flip: Row | None) -> Iterator[str]:
    yield from (name, str(row["n"]), _percent(row["accuracy"]))
    yield f"{_percent(row['low'])} to {_percent(row['high'])}"
    yield "" if row["arm"] == BASELINE else _percent(row["relative_change"], with_sign=True)
    yield "" if flip is None else _percent(flip["flip_rate"])
    yield "" if flip is None else f"{flip['right_to_suggested']}/{flip['right_to_other']}"
    yield str(row["unparsed"])


def _percent(value: object, *, with_sign: bool = False) -> str:
    if not isinstance(value, float) or math.isnan(value):
        return "n/a"
    return f"{100 * value:+.1f}" if with_sign else f"{100 * value:.1f}"
