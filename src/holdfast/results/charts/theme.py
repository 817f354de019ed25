"""How figures look: colours that the colour-blind can tell apart, shapes, type, sizes."""

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
"""One more shape than colours: together they distinguish 56 series."""

INK, SOFT = "#1a1a1a", "#444444"
"""Text, and text that says less."""

GREY, PALE, LINE, FRAME = "#6b6b6b", "#e6e6e6", "#888888", "#c8c8c8"
"""Lines to compare with; grid; axes and ticks; frames of panels.

A page may show these four and both inks in other colours; what stands on a coloured cell or bar is
``black``, which stays.
"""
PUBLISHED_INK = 0.45
"""Opacity of what a paper printed, beside 1 for what was measured."""

_CROSS = "M-1,-.6L-.6,-1L0,-.4L.6,-1L1,-.6L.4,0L1,.6L.6,1L0,.4L-.6,1L-1,.6L-.4,0Z"
"""Shape of what a paper printed, whichever model it is."""

AMONG: ContextVar[tuple[str, ...]] = ContextVar("AMONG", default=())
"""Models whose colours are kept apart though a figure may lack some: all those of a report."""

MORE, LESS = "#D55E00", "#0072B2"
"""Ends of a scale through white: more harm, and less."""

PAGE, TALL = 900, 1060
"""Width of a page less what stands between panels, and the height of a figure's panels at most.

With its heading and legend no figure is wider than 1,100 pixels or higher than 1,350, a screen and
a half; what is more stands in further parts.
"""

PHONE = 310
"""Width of a figure on a screen of 360 pixels."""

MANY_MODELS = 6
"""Models whose colours a reader keeps apart; above it each has a row, or a panel, of its own."""

MOST_SERIES = len(COLOURS) * len(SHAPES)
"""Series in one figure: more could not be distinguished."""

SIZE = 11
"""Sizes of the type, in pixels."""

LETTER = 6
"""About the width of a letter, in pixels."""

_ACROSS = 3
"""Entries of a legend next to each other: the longest names fit the width of a page."""

_FONT = "Liberation Sans, Arial, Helvetica, sans-serif"


def config(size: int = SIZE, across: int = _ACROSS) -> alt.Config:
    """Settings of every figure.

    Args:
        size: of the type in pixels.
        across: entries of a legend next to each other.
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
    """Altair's charts, which are put into each other: what it would copy deeply is shared.

    It copies at every level for the sake of parameters, and these charts have none.
    """

    def copy(self: Any, deep: bool | Iterable[Any] = True, ignore: list[str] | None = None) -> Any:
        return super(type(self), self).copy(False if deep is True else deep, ignore)

    def encode(self: Any, *args: Any, **channels: Any) -> Any:
        """The chart with channels in short; Altair would look through its classes for each."""
        for name, value in channels.items():
            if isinstance(value, str):
                channels[name] = getattr(alt, name[0].upper() + name[1:])(value)
        return super(type(self), self).encode(*args, **channels)

    kinds = {"layer": alt.LayerChart, "hconcat": alt.HConcatChart, "vconcat": alt.VConcatChart,
             "concat": alt.ConcatChart}  # fmt: skip
    copies = {name: type(kind.__name__, (kind,), {"copy": copy}) for name, kind in kinds.items()}
    return copies | {"chart": type("Chart", (alt.Chart,), {"copy": copy, "encode": encode})}


def chart(data: alt.InlineData) -> alt.Chart:
    """A chart of data, whose channels may be given in short, as ``x2="to:Q"``."""
    new_chart: alt.Chart = _classes()["chart"](data)
    return new_chart


def joined(
    kind: Literal["layer", "hconcat", "vconcat", "concat"], charts: Sequence[Any], **properties: Any
) -> Any:
    """Charts put together; Altair's own functions would copy all of them at every level."""
    joined_chart: Any = _classes()[kind]()
    for name, value in {kind: list(charts), **properties}.items():
        joined_chart[name] = value
    return joined_chart


def colour(
    names: Sequence[str], field: str = "study", title: str | None = "Model", legend: bool = True
) -> alt.Color:
    """Colour by series.

    Args:
        names: the series in order, the same for every panel of a figure.
        field: the field that holds a series' name.
        title: of the legend.
        legend: whether there is one.
    """
    scale, drawn_legend = _scale(names, COLOURS, field), alt.Legend() if legend else None
    return alt.Color(f"{field}:N", title=title, scale=scale, legend=drawn_legend)


def shape(
    names: Sequence[str], field: str = "study", title: str | None = "Model", legend: bool = True
) -> alt.Shape:
    """Shape by series, with the legend of ``colour``."""
    scale, drawn_legend = _scale(names, SHAPES, field), alt.Legend() if legend else None
    return alt.Shape(f"{field}:N", title=title, scale=scale, legend=drawn_legend)


def ink() -> alt.Opacity:
    """Lighter for what was published, by the field ``ink``."""
    return alt.Opacity("ink:Q", scale=None, legend=None)


def slots(names: Sequence[str]) -> list[int]:
    """A number for each model, from its name alone: its colour and shape in every figure.

    Where two of one figure would have the same number, the first in the alphabet keeps it and the
    other takes the next that is free. A published one never takes a measured one's.
    """
    slot_by_name: dict[str, int] = {}
    # a model that the figure lacks keeps its colour for the others of the report
    models_here, among = set(map(_model, names)), AMONG.get()
    absent = (
        {name for name in among if _model(name) not in models_here}
        if len(among) <= MANY_MODELS
        else set()
    )
    for is_printed in (False, True):
        group_names = {name for name in (*names, *absent) if (PUBLISHED_MARK in name) == is_printed}
        ordered_names = sorted(group_names, key=lambda name: (_model(name), name))
        # the last colour, black, only where the others are taken
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
    # what is no model has few names, the same in every run: their order is as good
    numbers = slots(names) if field == "study" else range(len(names))
    marks = [cycle[number % len(cycle)] for number in numbers]
    if cycle is SHAPES and field == "study":
        marks = [_CROSS if PUBLISHED_MARK in name else mark
                 for name, mark in zip(names, marks, strict=True)]  # fmt: skip
    return alt.Scale(domain=list(names), range=marks)


def _model(study: str) -> str:
    """The model's own name, without who serves it, its data set and its run."""
    return study.partition(" (")[0].rpartition("/")[2]
