"""Parts of the report made ready: the figure and the table of each table of results."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from holdfast.errors import InputError
from holdfast.report.figures import FIGURES, draw, page_svg
from holdfast.report.grid import Grid
from holdfast.report.layouts import LAYOUTS
from holdfast.results import FAMILY_AVERAGE, TABLES

from .links import LINK_KEYS, conversations_link
from .sections import SECTIONS, Part, Section

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
    """A part that has something to show.

    Attributes:
        part: its words.
        rows: of its table.
        svg: its figure; empty where it has none.
        grids: its table laid out.
    """

    part: Part
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
    """The turns without texts: models in their order, the same first one in every figure.

    Args:
        turns: a turns table.
    """
    empty = (pl.lit(None, pl.String).alias(name) for name in ("prompt", "reply"))
    place = pl.col("_place").min()
    protocol = pl.col("protocol").replace_strict(PROTOCOLS, default=len(PROTOCOLS))
    numbered = turns.with_columns(empty).with_row_index("_place")
    return numbered.sort(
        place.over("model"), protocol, place.over("run"), maintain_order=True
    ).drop("_place")


def shown(turns: pl.DataFrame) -> Iterator[tuple[Section, list[Shown]]]:
    """Sections with the parts that have rows.

    Args:
        turns: a turns table; texts are not read.
    """
    for section in SECTIONS:
        parts = [made for part in section.parts if (made := _part(part, turns)) is not None]
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
    for name in dict.fromkeys(part.table for section in SECTIONS for part in section.parts):
        rows = TABLES[name](turns) if name in FIGURES else pl.DataFrame()
        if rows.is_empty():
            continue
        for format in ("svg", "png"):
            try:
                yield f"{name}.{format}", draw(rows, name, format)
            except InputError:  # nothing to draw
                break


def row_link(row: Mapping[str, Any] | None) -> str:
    """The address of the conversations that a row of results was computed from.

    Returns:
        An anchor in the page; empty where the row is of no run of this report.
    """
    if row is None or not row.get("run"):
        return ""
    found = {name: row[name] for name in LINK_KEYS if row.get(name) not in (None, "")}
    if found.get("arm") == FAMILY_AVERAGE:
        found.pop("arm"), found.pop("path", None)
    return conversations_link(**{name: str(value) for name, value in found.items()})


def _part(part: Part, turns: pl.DataFrame) -> Shown | None:
    rows = TABLES[part.table](turns)
    if rows.is_empty():
        return None
    grids = LAYOUTS[part.table](rows.to_dicts()) or []
    svg = _figure(rows, part.table)
    return Shown(part, rows, svg, tuple(grids)) if svg or grids else None


def _figure(rows: pl.DataFrame, table: str) -> str:
    if table not in FIGURES:
        return ""
    try:
        return page_svg(rows, table)
    except InputError:  # nothing to draw: the table says the rest
        return ""
