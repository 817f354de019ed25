"""Tables on a terminal: aligned, and never cropped."""

from collections.abc import Iterable, Iterator, Sequence

from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from holdfast.errors import printable

from .grid import Grid

_BORDERS = 3
"""Signs that a further column takes beside its widest cell."""

_DROPPED = ("Sugg./other", "95% interval", "Change %", "Replicates", "At once %")
"""Columns that go first where a terminal is narrow; the turns before the last go after them."""

_STYLES = {"": "", "best": "bold", "worst": "italic"}


def fitted(table: Table, width: int) -> Table:
    """A summary without the columns that a terminal has no room for; the caption names them.

    Args:
        table: one cell a row in each column.
        width: of the terminal, in signs.
    """
    widths = [_width(column.header, column.cells) for column in table.columns]
    headers = [str(column.header) for column in table.columns]
    turns = [header for header in headers if header.startswith("Turn ")][:-1]
    left_out: list[str] = []
    for header in (*_DROPPED, *turns):
        if sum(widths) + _BORDERS * len(widths) + 1 <= width:
            break
        if header in headers:
            place = headers.index(header)
            del headers[place], widths[place]
            left_out.append(header)
    if not left_out:
        return table
    told = f"{table.caption} Not shown, for want of width: {', '.join(left_out)}."
    narrow = Table(title=table.title, caption=Text(told), title_justify="left",
                   caption_justify="left")  # fmt: skip
    kept = [column for column in table.columns if str(column.header) in headers]
    for column in kept:
        narrow.add_column(column.header, justify=column.justify, overflow="fold")
    for row, *cells in zip(table.rows, *(column.cells for column in kept), strict=True):
        narrow.add_row(*cells, style=row.style, end_section=row.end_section)
    return narrow


def _width(header: object, cells: Iterable[object]) -> int:
    return max(cell_len(str(text)) for text in (header, *cells))


def terminal(grids: Sequence[Grid], width: int) -> Iterator[Table | Text]:
    """Tables of results as a terminal shows them, in parts where it is too narrow for one.

    Args:
        grids: as for ``markdown``.
        width: of the terminal, in signs.
    """
    for grid in grids:
        lines = [line for block in grid.blocks for group in block.groups for line in group]
        over = [name for name, n in grid.spans for _ in range(n)] or [""] * len(grid.columns)
        heads = [f"{span} {head}".strip() for span, head in zip(over, grid.columns, strict=True)]
        label = max(map(cell_len, (grid.corner, *(line.label for line in lines))), default=0)
        widths = [
            max(map(cell_len, (head, *(line.cells[n].text for line in lines))))
            for n, head in enumerate(heads)
        ]
        for columns in _parts(widths, width - min(label, width // 2) - _BORDERS - 1):
            yield _table(grid, heads, columns)
        legend = [f"Bold: best, italics: worst of {grid.compared}."] if grid.marked else []
        yield Text("\n".join(map(printable, [*legend, *grid.notes])))


def _parts(widths: Sequence[int], room: int) -> Iterator[list[int]]:
    """Columns that stand beside each other."""
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
