"""How figures look: colours that the colour-blind can tell apart, shapes, type, sizes."""

from collections.abc import Sequence

import altair as alt

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Okabe and Ito's palette without its yellow, which is hard to see on white."""

SHAPES = (
    "circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right",
    "triangle-left",
)  # fmt: skip
"""One more than there are colours, so that both together tell 56 series apart."""

INK, SOFT = "#1a1a1a", "#444444"
"""Text, and text that says less."""

GREY, PALE, LINE, FRAME = "#6b6b6b", "#e6e6e6", "#888888", "#c8c8c8"
"""Lines to compare with; grid; axes and ticks; frames of panels.

A page may show these four and both inks in other colours; what stands on a coloured cell or bar is
``black``, which stays.
"""
PUBLISHED_INK = 0.45
"""Opacity of what a paper printed, beside 1 for what was measured."""

MORE, LESS = "#D55E00", "#0072B2"
"""Ends of a scale through white: more harm, and less."""

_ACROSS = 3
"""Entries of a legend beside each other: the longest names fit the width of a page."""

_FONT = "Liberation Sans, Arial, Helvetica, sans-serif"


def config(size: int = 11) -> alt.Config:
    """Settings of every figure.

    Args:
        size: of the type in pixels.
    """
    return alt.Config(
        background="white",
        font=_FONT,
        padding=12,
        view=alt.ViewConfig(stroke=FRAME),
        # names are label before; a label that Vega cuts could be another's double
        axis=alt.AxisConfig(
            labelLimit=0, titleLimit=0, gridColor=PALE, labelFontSize=size, titleFontSize=size,
            titleFontWeight="normal", domainColor=LINE, tickColor=LINE, labelColor=INK,
            titleColor=INK,
        ),
        legend=alt.LegendConfig(
            orient="top", columns=_ACROSS, labelLimit=0, titleLimit=0, symbolLimit=1000,
            symbolOpacity=1, labelFontSize=size, titleFontSize=size, labelColor=INK,
            titleColor=INK, symbolBaseFillColor=INK, symbolBaseStrokeColor=INK,
        ),
        header=alt.HeaderConfig(labelColor=INK, titleColor=INK),
        title=alt.TitleConfig(
            anchor="start", limit=0, fontSize=size + 1, fontWeight="bold", color=INK,
            subtitleFontSize=size, subtitleColor=SOFT,
        ),
        concat=alt.CompositionConfig(spacing=24),
    )  # fmt: skip


def colour(names: Sequence[str], field: str = "study", title: str | None = "Model") -> alt.Color:
    """Colour by series.

    Args:
        names: the series in order, the same for every panel of a figure.
        field: the field that holds a series' name.
        title: of the legend.
    """
    return alt.Color(f"{field}:N", title=title, scale=_scale(names, COLOURS))


def shape(names: Sequence[str], field: str = "study", title: str | None = "Model") -> alt.Shape:
    """Shape by series, with the legend of ``colour``."""
    return alt.Shape(f"{field}:N", title=title, scale=_scale(names, SHAPES))


def ink() -> alt.Opacity:
    """Lighter for what was published, by the field ``ink``."""
    return alt.Opacity("ink:Q", scale=None, legend=None)


def _scale(names: Sequence[str], cycle: Sequence[str]) -> alt.Scale:
    return alt.Scale(
        domain=list(names), range=[cycle[place % len(cycle)] for place in range(len(names))]
    )
