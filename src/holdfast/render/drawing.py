"""Figures of result tables, drawn with Vega-Lite."""

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
"""Figure formats. ``vega`` is the Vega-Lite specification as JSON."""


def _parts(
    chart: "Figure", frame: pl.DataFrame, wide: int | None = None
) -> "list[altair.VConcatChart]":
    from altair.utils.schemapi import debug_mode  # slow, and most commands do not draw

    # validating every part is slow, and tests validate each figure once
    with debug_mode(False):
        if not isinstance(chart, Chart):
            return [chart(frame)]
        return chart.parts(frame, wide) if wide else chart.parts(frame)


def _figure(chart: "Figure") -> "Figure":
    return lambda frame: _parts(chart, frame)[0]


FIGURES: "Mapping[str, Figure]" = Lazily(
    lambda: {name: _figure(table.chart) for name, table in TABLES.items() if table.chart}
)
"""Figure functions by table name. Each turns the rows of its table into an Altair chart.

A function raises ``InputError`` if the rows contain nothing to draw.
"""


def check_drawable(table: str, format: str) -> None:
    """Check that a figure exists, before any rows are computed.

    Args:
        table: name of a result table.
        format: one of ``FIGURE_FORMATS``.

    Raises:
        InputError: the format is unknown, or the table has no figure.
    """
    if format not in FIGURE_FORMATS:
        raise unknown("format", format, FIGURE_FORMATS, "--format")
    if table not in FIGURES:
        raise InputError(
            f"table '{table}' has no figure",
            field="--format",
            remedy=f"Tables with a figure: {', '.join(FIGURES)}",
        )


def draw(
    frame: pl.DataFrame,
    table: str,
    format: str,
    part: int = 1,
    paper: Paper = SCREEN,
    turns: pl.DataFrame | None = None,
) -> bytes | str:
    """Draw the figure of a table. The same rows give the same bytes, except for the order in a PDF.

    Args:
        frame: rows of the table, with or without published rows.
        table: name of the table, a key of ``FIGURES``.
        format: one of ``FIGURE_FORMATS``.
        part: 1-based part of a figure that is too high for one picture.
        paper: print settings.
        turns: turns that the rows were computed from, for the known ids.

    Returns:
        The bytes of a PNG or PDF, or the text of an SVG or a Vega-Lite specification.

    Raises:
        InputError: the figure or format is unknown, or the rows contain nothing to draw.
    """
    check_drawable(table, format)
    from .chart_files import picture

    parts = figure_parts(frame, table, paper.room)
    if part not in range(1, len(parts) + 1):
        raise InputError(
            f"the figure has {counted(len(parts), 'part')}",
            field="--part",
            remedy=f"Give 1 to {len(parts)}" if len(parts) > 1 else "Remove --part",
        )
    return picture(printed(parts[part - 1], frame, paper, turns), format, paper)


def printed(
    chart: "altair.VConcatChart", frame: pl.DataFrame, paper: Paper, turns: pl.DataFrame | None
) -> dict[str, Any]:
    """Return the specification of a figure with its print settings. Arguments as for ``draw``."""
    from .chart_files import width_of

    spec: dict[str, Any] = chart.to_dict(validate=False)
    return paper.set(spec, frame, turns, width_of) if paper.asked else spec


def figure_parts(
    frame: pl.DataFrame, table: str, wide: int | None = None
) -> "list[altair.VConcatChart]":
    """Draw the figure of a table, split into charts by height.

    Args:
        frame: rows of the table.
        table: name of the table, a key of ``FIGURES``.
        wide: width of the layout in pixels. Default: the width of a page.
    """
    chart = TABLES[table].chart
    if chart is None:
        raise InputError(
            f"table '{table}' has no figure",
            remedy=f"Tables with a figure: {', '.join(FIGURES)}",
        )
    return _parts(chart, frame, wide)


def page_svgs(frame: pl.DataFrame, table: str, limit: int, *, phone: bool = False) -> list[str]:
    """Draw the parts of a figure as ``svg`` elements for an HTML page.

    The elements have no background. Title and subtitle are their label for screen readers.

    Args:
        frame: rows of the table.
        table: name of the table, a key of ``FIGURES``.
        limit: maximum number of parts.
        phone: whether to lay out for a screen of 360 pixels. The list is then empty if there are
            more than ``limit`` parts.

    Returns:
        Markup with the size of each picture in pixels as ``width``, ``height`` and ``viewBox``.

    Raises:
        InputError: the figure is unknown, or the rows contain nothing to draw.
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
