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

GREY, PALE = "#6b6b6b", "#e6e6e6"
PUBLISHED_INK = 0.45
"""Opacity of what a paper printed, beside 1 for what was measured."""

MORE, LESS = "#D55E00", "#0072B2"
"""Ends of a scale through white: more harm, and less."""

_FONT = "Liberation Sans, Arial, Helvetica, sans-serif"


def config() -> alt.Config:
    """Settings of every figure."""
    return alt.Config(
        background="white",
        font=_FONT,
        padding=12,
        view=alt.ViewConfig(stroke="#c8c8c8"),
        # names are label before; a label that Vega cuts could be another's double
        axis=alt.AxisConfig(
            labelLimit=0, titleLimit=0, gridColor=PALE, labelFontSize=11, titleFontSize=11,
            titleFontWeight="normal", domainColor="#888888", tickColor="#888888",
        ),
        legend=alt.LegendConfig(
            labelLimit=0, titleLimit=0, symbolLimit=1000, symbolOpacity=1, labelFontSize=11,
            titleFontSize=11,
        ),
        title=alt.TitleConfig(
            anchor="start", limit=0, fontSize=12, fontWeight="bold", subtitleFontSize=11,
            subtitleColor="#444444",
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
