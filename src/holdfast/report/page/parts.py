"""Parts of the report made ready: the figure and the table of each table of results."""

from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from holdfast.errors import InputError
from holdfast.render import draw, page_svg
from holdfast.results import Section, Table, sections
from holdfast.results.grid import Grid

PROTOCOLS = {
    name: place
    for place, name in enumerate(
        ("followup", "single-turn", "stick-or-switch", "medfuzz", "medfuzz-test")
    )
}
"""Place of each protocol in the report."""

_SHORT = 15
"""Lines of a table that may stand open."""


@dataclass(frozen=True)
class Shown:
    """A table that has something to show.

    Attributes:
        table: its name and words.
        rows: its rows.
        svg: its figure; empty where it has none.
        grids: the rows laid out.
    """

    table: Table
    rows: pl.DataFrame
    svg: str
    grids: tuple[Grid, ...]

    @property
    def open(self) -> bool:
        """Whether the table is shown at once: where it is short and has no figure above it."""
        lines = sum(len(group) for grid in self.grids for block in grid.blocks
                    for group in block.groups)  # fmt: skip
        return not self.svg and lines <= _SHORT


def ordered(turns: pl.DataFrame) -> pl.DataFrame:
    """The turns without texts: models in their order, the same first one in every figure."""
    empty = (pl.lit(None, pl.String).alias(name) for name in ("prompt", "reply"))
    place = pl.col("_place").min()
    protocol = pl.col("protocol").replace_strict(PROTOCOLS, default=len(PROTOCOLS))
    numbered = turns.with_columns(empty).with_row_index("_place")
    return numbered.sort(
        place.over("model"), protocol, place.over("run"), maintain_order=True
    ).drop("_place")


def shown(turns: pl.DataFrame) -> Iterator[tuple[Section, list[Shown]]]:
    """Sections with the tables that have rows."""
    for section, tables in sections():
        parts = [made for table in tables if (made := _part(table, turns)) is not None]
        if parts:
            yield section, parts


def report_figures(turns: pl.DataFrame) -> Iterator[tuple[str, bytes | str]]:
    """Every figure of the report as files.

    Args:
        turns: a turns table.

    Returns:
        Name and content, each as SVG and as PNG.
    """
    turns = ordered(turns)
    for table in (table for _, tables in sections() for table in tables):
        if table.figure is None or (rows := table(turns)).is_empty():
            continue
        for format in ("svg", "png"):
            try:
                yield f"{table.name}.{format}", draw(rows, table.name, format)
            except InputError:  # nothing to draw
                break


def _part(table: Table, turns: pl.DataFrame) -> Shown | None:
    rows = table(turns)
    if rows.is_empty():
        return None
    grids = table.layout(rows.to_dicts()) or []
    svg = _figure(rows, table.name if table.figure else None)
    return Shown(table, rows, svg, tuple(grids)) if svg or grids else None


def _figure(rows: pl.DataFrame, name: str | None) -> str:
    if name is None:
        return ""
    try:
        return page_svg(rows, name)
    except InputError:  # nothing to draw: the table says the rest
        return ""
