"""Render: rows of a table of results as text, and as pictures drawn with Vega-Lite."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, cast

import polars as pl

from holdfast.declared import Lazily
from holdfast.errors import InputError, unknown
from holdfast.results import TABLES

from .tables import FORMATS, arranged, render

if TYPE_CHECKING:
    import altair

    Figure = Callable[[pl.DataFrame], altair.VConcatChart]

FIGURE_FORMATS = ("svg", "png", "vega")
"""Scalable picture, picture of pixels, and the Vega-Lite specification as JSON."""


def _figure(named: "str | Figure") -> "Figure":
    def figure(frame: pl.DataFrame) -> "altair.VConcatChart":
        # the library of charts takes its time to load, and most commands draw nothing
        found = named
        if isinstance(found, str):
            module, _, name = found.partition(":")
            found = cast("Figure", getattr(import_module(module), name))
        from altair.utils.schemapi import debug_mode

        # every part would be held against the schema; the tests do it, once for each figure
        with debug_mode(False):
            return found(frame)

    return figure


FIGURES: "Mapping[str, Figure]" = Lazily(
    lambda: {name: _figure(table.figure) for name, table in TABLES.items() if table.figure}
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


def draw(frame: pl.DataFrame, table: str, format: str) -> bytes | str:
    """The figure of a table; the same rows give the same bytes.

    Args:
        frame: rows of the table, published ones among them or not.
        table: its name, key of ``FIGURES``.
        format: one of ``FIGURE_FORMATS``.

    Returns:
        The bytes of a PNG, or the text of an SVG or of a Vega-Lite specification.

    Raises:
        InputError: no such figure or format, or the rows hold nothing to draw.
    """
    check_drawable(table, format)
    from .export import exported

    return exported(FIGURES[table](frame), format)


def page_svg(frame: pl.DataFrame, table: str) -> str:
    """The figure of a table as an ``svg`` element to stand in an HTML page.

    It has no background, and what it says in words, title and subtitle, is its label.

    Args:
        frame: rows of the table.
        table: its name, key of ``FIGURES``.

    Returns:
        Markup with the picture's size in pixels as ``width``, ``height`` and ``viewBox``.

    Raises:
        InputError: no such figure, or the rows hold nothing to draw.
    """
    check_drawable(table, "svg")
    from .export import as_element

    return as_element(FIGURES[table](frame))


__all__ = [
    "FIGURES",
    "FIGURE_FORMATS",
    "FORMATS",
    "arranged",
    "check_drawable",
    "draw",
    "page_svg",
    "render",
]
