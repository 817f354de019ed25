"""Heatmaps: cells through white from less harm to more, each with its number."""

import math
from collections.abc import Sequence
from typing import Literal

import altair as alt

from .marks import data, layered
from .panels import Value
from .theme import LESS, LINE, MORE

_ASLANT = 5
"""About what a letter of a column's label takes of the width, in pixels."""


def heatmap(
    values: Sequence[Value],
    columns: Sequence[str],
    rows: Sequence[str],
    limit: float,
    legend: str,
    *,
    harm: Literal["above", "below"],
    cell: tuple[int, int] = (58, 20),
) -> alt.LayerChart:
    """The cells in a grid; one without a value is empty.

    Args:
        values: with ``column``, ``row``, ``share`` (white at 0), ``text`` and ``ink``; one with
            ink below 1 is narrower.
        columns: labels from left to right.
        rows: labels from top to bottom.
        limit: the ``share`` of full colour, of all panels alike.
        legend: what the share is.
        harm: on which side of 0 a share is harm.
        cell: width and height in pixels.
    """
    width, height = cell
    x = alt.X(
        "column:N", title=None, scale=alt.Scale(domain=list(columns), paddingInner=0.04),
        axis=alt.Axis(orient="top", labelAngle=-35, grid=False, domain=False, ticks=False),
    )  # fmt: skip
    y = alt.Y(
        "row:N", title=None, scale=alt.Scale(domain=list(rows), paddingInner=0.08),
        axis=alt.Axis(grid=False, domain=False, ticks=False),
    )  # fmt: skip
    ends = [LESS, "#ffffff", MORE] if harm == "above" else [MORE, "#ffffff", LESS]
    shade = alt.Color(
        "share:Q", title=legend,
        # mixed as light, so that nothing but 0 is white and nothing between has a third hue
        scale=alt.Scale(domain=[-limit, 0, limit], range=ends, clamp=True, interpolate="rgb"),
        # squares: the names of gradients in an SVG depend on what was drawn before
        legend=alt.Legend(format=".0%", type="symbol", symbolType="square", columns=5,
                          symbolStrokeColor=LINE, symbolStrokeWidth=0.5,
                          values=[limit * part / 2 for part in (2, 1, 0, -1, -2)]),
    )  # fmt: skip
    layers = []
    for narrow in (False, True):
        own = [one for one in values if (one["ink"] < 1) == narrow]
        if own:
            band = alt.RelativeBandSize(0.72 if narrow else 1.0)
            layers.append(data(own).mark_rect(width=band).encode(x=x, y=y, color=shade))
    # black is legible on either end
    numbers = data(values).mark_text(fontSize=10, color="black")
    layers.append(numbers.encode(x=x, y=y, text="text:N"))
    return layered(*layers, width=alt.Step(width), height=alt.Step(height))


def width_of(columns: Sequence[str], cell: int) -> int:
    """Width of a heatmap without the labels of its rows, about, in pixels.

    Args:
        columns: labels, written aslant beyond the last column.
        cell: width of a column.
    """
    return cell * len(columns) + _ASLANT * max(map(len, columns), default=0)


def full(shares: Sequence[float]) -> float:
    """The share of full colour: the largest of these, whatever its sign, up to a tenth."""
    return round(math.ceil(10 * max((abs(share) for share in shares), default=0)) / 10, 1) or 0.1


def signed(share: float) -> str:
    """``+12``, ``−7`` or ``0``: the share in percent, as a cell shows it."""
    whole = round(100 * share)
    return f"{whole:+d}".replace("-", "−") if whole else "0"
