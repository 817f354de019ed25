"""Render: rows of a table of results as text, and as pictures drawn with Vega-Lite."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import polars as pl

from holdfast.errors import InputError, counted, unknown
from holdfast.registry import Lazily
from holdfast.results.charts.chart import Chart
from holdfast.results.charts.theme import PHONE
from holdfast.results.declaration import TABLES

from .paper import SCREEN, Paper
from .tables import FORMATS, arranged, render

if TYPE_CHECKING:
    import altair

    Figure = Callable[[pl.DataFrame], altair.VConcatChart]

FIGURE_FORMATS = ("svg", "pdf", "png", "vega")
"""Scalable picture, page, picture of pixels, and the Vega-Lite specification as JSON."""


def _parts(
    chart: "Figure", frame: pl.DataFrame, wide: int | None = None
) -> "list[altair.VConcatChart]":
    from altair.utils.schemapi import debug_mode  # most commands draw nothing

    # every part would be held against the schema; the tests do it, once for each figure
    with debug_mode(False):
        if not isinstance(chart, Chart):
            return [chart(frame)]
        return chart.parts(frame, wide) if wide else chart.parts(frame)


def _figure(chart: "Figure") -> "Figure":
    return lambda frame: _parts(chart, frame)[0]


FIGURES: "Mapping[str, Figure]" = Lazily(
    lambda: {name: _figure(table.chart) for name, table in TABLES.items() if table.chart}
)
"""Figure of each table of results that has one: a function of the table's rows.

Each returns an Altair chart and raises ``InputError`` where the rows hold nothing to draw.
"""


def check_drawable(table: str, format: str) -> None:
    """Check that there is such a figure, before any rows are computed.

    Args:
        table: name of a table of results.
        format: one of ``FIGURE_FORMATS``.

    Raises:
        InputError: no such format, or the table has no figure.
    """
    if format not in FIGURE_FORMATS:
        raise unknown("format", format, FIGURE_FORMATS, "--format")
    if table not in FIGURES:
        raise InputError(
            f"table '{table}' has no figure",
            field="--format",
            remedy=f"Figures: {', '.join(FIGURES)}",
        )


def draw(
    frame: pl.DataFrame,
    table: str,
    format: str,
    part: int = 1,
    paper: Paper = SCREEN,
    turns: pl.DataFrame | None = None,
) -> bytes | str:
    """The figure of a table; the same rows give the same bytes, but for the order within a PDF.

    Args:
        frame: rows of the table, published ones among them or not.
        table: its name, key of ``FIGURES``.
        format: one of ``FIGURE_FORMATS``.
        part: which part of a figure that is too high for one picture.
        paper: how it is printed.
        turns: what the rows were computed from, for the ids that there are.

    Returns:
        The bytes of a PNG or PDF, or the text of an SVG or of a Vega-Lite specification.

    Raises:
        InputError: no such figure or format, or the rows hold nothing to draw.
    """
    check_drawable(table, format)
    from .chart_files import picture

    parts = figure_parts(frame, table, paper.room)
    if part not in range(1, len(parts) + 1):
        raise InputError(
            f"the figure has {counted(len(parts), 'part')}",
            field="--part",
            remedy=f"Give 1 to {len(parts)}" if len(parts) > 1 else "Remove it",
        )
    return picture(printed(parts[part - 1], frame, paper, turns), format, paper)


def printed(
    chart: "altair.VConcatChart", frame: pl.DataFrame, paper: Paper, turns: pl.DataFrame | None
) -> dict[str, Any]:
    """The specification of a table's figure as it is printed; arguments as of ``draw``."""
    from .chart_files import width_of

    spec: dict[str, Any] = chart.to_dict(validate=False)
    return paper.set(spec, frame, turns, width_of) if paper.asked else spec


def figure_parts(
    frame: pl.DataFrame, table: str, wide: int | None = None
) -> "list[altair.VConcatChart]":
    """The figure of a table, in as many charts as its height needs.

    Args:
        frame: rows of the table.
        table: its name, key of ``FIGURES``.
        wide: the width that it is laid out for, in pixels; that of a page unless told.
    """
    chart = TABLES[table].chart
    if chart is None:
        raise InputError(f"table '{table}' has no figure", remedy=f"Figures: {', '.join(FIGURES)}")
    return _parts(chart, frame, wide)


def page_svgs(frame: pl.DataFrame, table: str, limit: int, *, phone: bool = False) -> list[str]:
    """The parts of a table's figure as ``svg`` elements to stand in an HTML page.

    They have no background; what they say in words, title and subtitle, is their label.

    Args:
        frame: rows of the table.
        table: its name, key of ``FIGURES``.
        limit: how many parts there may be.
        phone: whether they are laid out for a screen of 360 pixels; none where there are more.

    Returns:
        Markup with each picture's size in pixels as ``width``, ``height`` and ``viewBox``.

    Raises:
        InputError: no such figure, or the rows hold nothing to draw.
    """
    check_drawable(table, "svg")
    from .chart_files import as_element

    parts = figure_parts(frame, table, PHONE if phone else None)
    return [] if phone and len(parts) > limit else [as_element(part) for part in parts[:limit]]


__all__ = [
    "FIGURES",
    "FIGURE_FORMATS",
    "FORMATS",
    "Paper",
    "arranged",
    "check_drawable",
    "draw",
    "figure_parts",
    "page_svgs",
    "printed",
    "render",
]
