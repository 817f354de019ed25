"""Marks that figures share: points with whiskers, lines with bands, diagonals."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt

from .panels import Row, Value
from .theme import GREY, colour, ink, shape

_BAND, _FAINT, _MANY = 0.16, 0.05, 8
"""Opacity of a band, and where more series than these lie above each other."""
_SIZE = 55
_PAGE, _CHARACTER = 900, 6
"""Width of a page less what stands between panels, and about that of a letter, in pixels."""


@dataclass(frozen=True)
class Measure:
    """What an axis of numbers shows.

    Attributes:
        title: the figure and its unit.
        domain: both ends, the same in every panel that is to be compared.
        format: of its labels, as d3 writes it.
        step: least between two ticks.
        labelled: whether the axis has labels; else another one below has them.
    """

    title: str
    domain: tuple[float, float] = (0.0, 1.0)
    format: str = ".0%"
    step: float = 0.0
    labelled: bool = True

    def x(self, field: str) -> alt.X:
        """The field on the horizontal axis."""
        return alt.X(f"{field}:Q", title=self.title, scale=self._scale(), axis=self._axis())

    def y(self, field: str) -> alt.Y:
        """The field on the vertical axis."""
        return alt.Y(f"{field}:Q", title=self.title, scale=self._scale(), axis=self._axis())

    def _scale(self) -> alt.Scale:
        return alt.Scale(domain=list(self.domain), nice=False, zero=False)

    def _axis(self) -> alt.Axis:
        shown = self.labelled
        return alt.Axis(
            format=self.format, tickCount=5, tickMinStep=self.step, labels=shown, ticks=shown
        )


def value(row: Row, y: str, low: str = "low", high: str = "high") -> Value | None:
    """What a point is drawn from: a figure with its interval, None where there is no figure.

    Args:
        row: from ``panels``.
        y: column of the figure.
        low: column of the lower bound.
        high: column of the upper one.

    Returns:
        ``study``, ``ink``, ``y``, and where the bounds are known ``low`` and ``high``.
    """
    if row.get(y) is None:
        return None
    found: Value = {"study": row["study"], "ink": row["ink"], "y": row[y]}
    bounds = row.get(low), row.get(high)
    return found if None in bounds else found | dict(zip(("low", "high"), bounds, strict=True))


def data(values: Sequence[Mapping[str, object]]) -> alt.Chart:
    """A chart of these values, to be given marks."""
    # a tuple: lists are copied whenever a chart is put into another
    return alt.Chart(alt.InlineData(values=tuple(dict(one) for one in values)))


def layered(*charts: alt.Chart | alt.LayerChart, **properties: Any) -> alt.LayerChart:
    """The charts on top of each other, with ``width``, ``height`` or ``title``."""
    return alt.LayerChart(layer=list(charts), **properties)


def lines(
    values: Sequence[Value],
    x: Callable[[], alt.X],
    y: Measure,
    names: Sequence[str],
    places: Sequence[int],
    field: str = "study",
    title: str | None = "Model",
) -> alt.LayerChart:
    """A line for each series with points and a band; broken where a place has no figure.

    Args:
        values: with ``x`` and what ``value`` gives.
        x: makes the channel of the field ``x``.
        y: what ``y``, ``low`` and ``high`` are.
        names: series in order, the same for every panel.
        places: every ``x`` that a series could have a figure at, in order.
        field: which field tells the series apart.
        title: of the legend.
    """
    pieces = _pieces(values, places, field)
    hues, shapes = colour(names, field, title), shape(names, field, title)
    banded = [one for one in pieces if "low" in one and not one["lone"]]
    lone = [one for one in pieces if "low" in one and one["lone"]]
    return layered(
        data(banded).mark_area(opacity=_BAND if len(names) <= _MANY else _FAINT).encode(
            x=x(), y=y.y("low"), y2="high:Q", color=hues, detail="piece:N"
        ),
        data(lone).mark_rule(strokeWidth=1.5).encode(
            x=x(), y=y.y("low"), y2="high:Q", color=hues
        ),
        data(pieces).mark_line(strokeWidth=1.8).encode(
            x=x(), y=y.y("y"), color=hues, detail="piece:N", opacity=ink()
        ),
        data(pieces).mark_point(filled=True, size=_SIZE).encode(
            x=x(), y=y.y("y"), color=hues, shape=shapes, opacity=ink()
        ),
    )  # fmt: skip


def dodged(
    values: Sequence[Value],
    x: Callable[[], alt.X],
    y: Measure,
    names: Sequence[str],
    field: str = "study",
    title: str | None = "Model",
) -> alt.LayerChart:
    """Points with whiskers, side by side at each place; otherwise as ``lines``."""
    hues = colour(names, field, title)
    offset = alt.XOffset(f"{field}:N", scale=alt.Scale(domain=list(names)))
    bounded = [one for one in values if "low" in one]
    return layered(
        data(bounded).mark_rule(strokeWidth=1.5).encode(
            x=x(), xOffset=offset, y=y.y("low"), y2="high:Q", color=hues, opacity=ink()
        ),
        data(values).mark_point(filled=True, size=_SIZE).encode(
            x=x(), xOffset=offset, y=y.y("y"), color=hues, shape=shape(names, field, title),
            opacity=ink(),
        ),
    )  # fmt: skip


def ranged(
    values: Sequence[Value],
    places: Sequence[str],
    x: Measure,
    names: Sequence[str],
    present: Sequence[str],
    field: str = "study",
    title: str | None = "Model",
    size: int = _SIZE,
) -> alt.LayerChart:
    """Points with horizontal whiskers, a row for each place and the series below each other in it.

    Args:
        values: with ``place`` and what ``value`` gives.
        places: labels of the rows in order.
        x: what ``y``, ``low`` and ``high`` are.
        names: series in order, the same for every panel.
        present: those among them that this panel has room for.
        field: which field tells the series apart.
        title: of the legend.
        size: of a point, in square pixels.
    """
    y, offset = rows_of(places, present, field)
    hues, shapes = colour(names, field, title), shape(names, field, title)
    bounded = [one for one in values if "low" in one]
    return layered(
        data(bounded).mark_rule(strokeWidth=1.5 if size <= _SIZE else 3).encode(
            y=y, yOffset=offset, x=x.x("low"), x2="high:Q", color=hues, opacity=ink()
        ),
        data(values).mark_point(filled=True, size=size).encode(
            y=y, yOffset=offset, x=x.x("y"), color=hues, shape=shapes, opacity=ink()
        ),
    )  # fmt: skip


def rows_of(
    places: Sequence[str], present: Sequence[str], field: str = "study"
) -> tuple[alt.Y, alt.YOffset]:
    """A row for each ``place`` in order, and in it the series below each other."""
    # nearer to the others of its place than to those of the next
    room = alt.Scale(domain=list(places), paddingInner=0.35, paddingOuter=0.2)
    y = alt.Y("place:N", title=None, scale=room)
    return y, alt.YOffset(f"{field}:N", scale=alt.Scale(domain=list(present)))


def diagonal(domain: tuple[float, float], x: Measure, y: Measure) -> alt.Chart:
    """A dashed line where both axes have the same value."""
    chart = data([{"x": end, "y": end} for end in domain])
    dashed = chart.mark_line(color=GREY, strokeDash=[5, 4], strokeWidth=1.2)
    drawn: alt.Chart = dashed.encode(x=x.x("x"), y=y.y("y"))
    return drawn


def across(labels: Sequence[str], width: int) -> int:
    """Panels beside each other: two where they fit a page, else one.

    Args:
        labels: of a panel's rows.
        width: of the panel without them, in pixels.
    """
    longest = max(map(len, labels), default=0)
    return 2 if 2 * (_CHARACTER * longest + width) <= _PAGE else 1


def around(numbers: Sequence[float | None], step: float = 0.1) -> tuple[float, float]:
    """Ends of an axis that holds these numbers and 0, on multiples of ``step``."""
    known = [0.0, *(number for number in numbers if number is not None)]
    low, high = (-(-max(-n for n in known) // step) * -step, -(-max(known) // step) * step)
    return (round(low, 6) + 0.0, round(high if high > low else low + step, 6))


def _pieces(values: Sequence[Value], places: Sequence[int], field: str) -> list[Value]:
    """The values with the unbroken ``piece`` of its line that each is in."""
    at = {x: place for place, x in enumerate(places)}
    found: list[Value] = []
    by_series: dict[str, list[Value]] = {}
    for one in values:
        by_series.setdefault(one[field], []).append(one)
    for number, own in enumerate(by_series.values()):
        piece, last = 0, -1
        of_series = []
        for one in sorted(own, key=lambda each: at[each["x"]]):
            piece += at[one["x"]] != last + 1
            last = at[one["x"]]
            of_series.append(one | {"piece": f"{number}.{piece}"})
        sizes = [one["piece"] for one in of_series]
        found += [one | {"lone": sizes.count(one["piece"]) == 1} for one in of_series]
    return found
