"""Theme of figures: colour-blind safe colours, shapes, font, and sizes."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence
from contextvars import ContextVar
from functools import cache
from typing import Any, Literal

from holdfast.results.grid import PUBLISHED_MARK

from . import alt

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Okabe and Ito's palette without its yellow, which is hard to see on white."""

SHAPES = (
    "circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right",
    "triangle-left",
)  # fmt: skip
"""Shapes of points: one more than colours, so that together they distinguish 56 series."""

INK, SOFT = "#1a1a1a", "#444444"
"""Colours of text and of secondary text."""

GREY, PALE, LINE, FRAME = "#6b6b6b", "#e6e6e6", "#888888", "#c8c8c8"
"""Colours of reference lines; grid; axes and ticks; frames of panels.

A page may replace these four and both text colours. Text on coloured cells and bars is ``black``
and is not replaced.
"""
PUBLISHED_INK = 0.45
"""Opacity of published figures; measured figures have 1."""

_CROSS = "M-1,-.6L-.6,-1L0,-.4L.6,-1L1,-.6L.4,0L1,.6L.6,1L0,.4L-.6,1L-1,.6L-.4,0Z"
"""Shape of published figures, for every model."""

AMONG: ContextVar[tuple[str, ...]] = ContextVar("AMONG", default=())
"""Models of the whole report, whose colours are reserved even if a figure lacks some of them."""

MORE, LESS = "#D55E00", "#0072B2"
"""Ends of a scale with white at 0: more harm, and less."""

PAGE, TALL = 900, 1060
"""Width of a page without the space between panels, and maximum height of a figure's panels.

With heading and legend, no figure is wider than 1,100 pixels or higher than 1,350, which is one and
a half screens. Larger figures have several parts.
"""

PHONE = 310
"""Width of a figure on a screen of 360 pixels."""

MANY_MODELS = 6
"""Maximum number of models to distinguish by colour; more get separate rows or panels."""

MOST_SERIES = len(COLOURS) * len(SHAPES)
"""Maximum number of series in a figure; more could not be distinguished."""

SIZE = 11
"""Font size in pixels."""

LETTER = 6
"""Approximate width of a letter in pixels."""

_ACROSS = 3
"""Legend entries per line; the longest names then fit the width of a page."""

_FONT = "Liberation Sans, Arial, Helvetica, sans-serif"


def config(size: int = SIZE, across: int = _ACROSS) -> alt.Config:
    """Return the settings of every figure.

    Args:
        size: font size in pixels.
        across: legend entries per line.
    """
    return alt.Config(
        background="white",
        font=_FONT,
        padding=12,
        view=alt.ViewConfig(stroke=FRAME),
        # labels are already shortened; labels that Vega cuts could become equal
        axis=alt.AxisConfig(
            labelLimit=0, titleLimit=0, gridColor=PALE, labelFontSize=size, titleFontSize=size,
            titleFontWeight="normal", domainColor=LINE, tickColor=LINE, labelColor=INK,
            titleColor=INK,
        ),
        legend=alt.LegendConfig(
            orient="top", columns=across, labelLimit=0, titleLimit=0, symbolLimit=1000,
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


@cache
def _classes() -> Mapping[str, type[Any]]:
    """Return Altair's chart classes with shared copies, because charts are nested.

    Altair copies deeply at every level because of parameters, which these charts do not have.
    """

    def copy(self: Any, deep: bool | Iterable[Any] = True, ignore: list[str] | None = None) -> Any:
        return super(type(self), self).copy(False if deep is True else deep, ignore)

    def encode(self: Any, *args: Any, **channels: Any) -> Any:
        """Return the chart with channels in shorthand, which Altair resolves slowly."""
        for name, value in channels.items():
            if isinstance(value, str):
                channels[name] = getattr(alt, name[0].upper() + name[1:])(value)
        return super(type(self), self).encode(*args, **channels)

    kinds = {"layer": alt.LayerChart, "hconcat": alt.HConcatChart, "vconcat": alt.VConcatChart,
             "concat": alt.ConcatChart}  # fmt: skip
    copies = {name: type(kind.__name__, (kind,), {"copy": copy}) for name, kind in kinds.items()}
    return copies | {"chart": type("Chart", (alt.Chart,), {"copy": copy, "encode": encode})}


def chart(data: alt.InlineData) -> alt.Chart:
    """Return a chart of data that accepts channels in shorthand, such as ``x2="to:Q"``."""
    new_chart: alt.Chart = _classes()["chart"](data)
    return new_chart


def joined(
    kind: Literal["layer", "hconcat", "vconcat", "concat"], charts: Sequence[Any], **properties: Any
) -> Any:
    """Join charts without the copies that Altair's own functions make at every level."""
    joined_chart: Any = _classes()[kind]()
    for name, value in {kind: list(charts), **properties}.items():
        joined_chart[name] = value
    return joined_chart


def colour(
    names: Sequence[str],
    field: str = "study",
    title: str | None = "Model",
    legend: bool | Sequence[str] = True,
) -> alt.Color:
    """Return the colour of a series.

    Args:
        names: the series in order, the same for every panel of a figure.
        field: field with the name of the series.
        title: title of the legend.
        legend: whether to show a legend, or the series that it shows.
    """
    scale, drawn_legend = _scale(names, COLOURS, field), _legend(legend)
    return alt.Color(f"{field}:N", title=title, scale=scale, legend=drawn_legend)


def shape(
    names: Sequence[str],
    field: str = "study",
    title: str | None = "Model",
    legend: bool | Sequence[str] = True,
) -> alt.Shape:
    """Return the shape of a series, with the legend of ``colour``."""
    scale, drawn_legend = _scale(names, SHAPES, field), _legend(legend)
    return alt.Shape(f"{field}:N", title=title, scale=scale, legend=drawn_legend)


def _legend(legend: bool | Sequence[str]) -> alt.Legend | None:
    if isinstance(legend, bool):
        return alt.Legend() if legend else None
    return alt.Legend(values=list(legend))


def ink() -> alt.Opacity:
    """Return the opacity, lower for published figures, from the field ``ink``."""
    return alt.Opacity("ink:Q", scale=None, legend=None)


def slots(names: Sequence[str]) -> list[int]:
    """Return a number for each model that depends only on its name and fixes its colour and shape.

    If two models of a figure have the same number, the first in alphabetical order keeps it, and
    the other gets the next free number. A published model never takes the number of a measured one.
    """
    slot_by_name: dict[str, int] = {}
    # models of the report that this figure lacks keep their colours
    models_here, among = set(map(_model, names)), AMONG.get()
    absent = (
        {name for name in among if _model(name) not in models_here}
        if len(among) <= MANY_MODELS
        else set()
    )
    for is_printed in (False, True):
        group_names = {name for name in (*names, *absent) if (PUBLISHED_MARK in name) == is_printed}
        ordered_names = sorted(group_names, key=lambda name: (_model(name), name))
        # the last colour, black, is used only if the others are taken
        slots_wanted = {name: zlib.crc32(_model(name).encode(errors="replace")) % (len(COLOURS) - 1)
                  for name in ordered_names}  # fmt: skip
        for name in ordered_names:
            if slots_wanted[name] not in slot_by_name.values():
                slot_by_name[name] = slots_wanted[name]
        for name in ordered_names:
            order = (
                ring * len(COLOURS) + (slots_wanted[name] + step) % len(COLOURS)
                for ring in range(len(SHAPES))
                for step in range(len(COLOURS))
            )
            free = (slot for slot in order if slot not in slot_by_name.values())
            slot_by_name.setdefault(name, next(free, slots_wanted[name]))
    return [slot_by_name[name] for name in names]


def _scale(names: Sequence[str], cycle: Sequence[str], field: str) -> alt.Scale:
    # other series have few names, equal in every run, so their order suffices
    numbers = slots(names) if field == "study" else range(len(names))
    marks = [cycle[number % len(cycle)] for number in numbers]
    if cycle is SHAPES and field == "study":
        marks = [_CROSS if PUBLISHED_MARK in name else mark
                 for name, mark in zip(names, marks, strict=True)]  # fmt: skip
    return alt.Scale(domain=list(names), range=marks)


def _model(study: str) -> str:
    """Return the model's name without provider, data set and run."""
    return study.partition(" (")[0].rpartition("/")[2]
