"""Lines and upright dots with intervals, over an axis of places."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from . import alt
from .chart import ChartPart, Drawing, Row, Value, label, width_of
from .dots import (
    MODELS,
    Measure,
    Of,
    Series,
    by_model,
    dashed,
    data,
    layered,
    points,
    present,
    values_of,
)
from .theme import MANY, TALL, colour, ink, joined, shape

_BAND, _FAINT, _CROWD = 0.16, 0.05, 8
"""Opacity of a band, and where more series than these lie above each other."""
_SMALL, _SMALLEST = (150, 90), (95, 90)
_AXIS = 58
"""What the axis of a panel takes of the width."""
_LEVEL, _LEVELS = 18, 24
"""Width of an upright dot, and most levels on one axis."""


@dataclass(frozen=True)
class Axis:
    """The places of a figure: a place for each turn, levels as they come, numbers, or their logs.

    Levels are those of a panel, everything else is the same in every panel.
    """

    column: str
    title: str
    kind: Literal["turns", "levels", "numbers", "logs"] = "turns"

    def places(self, rows: Sequence[Row]) -> list[Any]:
        """Those of these rows in order."""
        found = dict.fromkeys(self.at(row) for row in rows)
        if self.kind == "levels":
            return list(found)
        numbers = sorted(number for number in found if number is not None) or [1]
        return list(range(numbers[0], numbers[-1] + 1)) if self.kind == "turns" else numbers

    def at(self, row: Row) -> Any:
        """The place of a row, None where it has none."""
        found = row[self.column]
        return label(found, 16) if self.kind == "levels" else found

    def x(self, places: Sequence[Any], title: str) -> alt.X:
        """The field ``x``."""
        if self.kind in ("turns", "levels"):
            axis = alt.Axis(labelAngle=0)
            scale = alt.Scale(domain=list(places))
            return alt.X(f"x:{'O' if self.kind == 'turns' else 'N'}", title=title, scale=scale,
                         axis=axis)  # fmt: skip
        if self.kind == "logs":
            ends = [places[0] / 1.4, places[-1] * 1.4]
            ticks: list[float] = [0.1, 0.3, 1, 3, 10, 30, 100, 300, 1000, 3000]
            scale = alt.Scale(type="log", domain=ends, nice=False)
        else:
            room = max(1.0, (places[-1] - places[0]) * 0.06)
            ticks = list(places)
            scale = alt.Scale(domain=[places[0] - room, places[-1] + room], nice=False, zero=False)
        axis = alt.Axis(values=ticks, format="~g" if self.kind == "logs" else "d")
        return alt.X("x:Q", title=title, scale=scale, axis=axis)


@dataclass(frozen=True, kw_only=True)
class Lines:
    """A line for each series with points and a band, broken where a place has no figure.

    Above six models each has a small panel, or, where dots stand alone, a row of its own.

    Attributes:
        x: the axis of places.
        y: the axis of figures.
        of: columns of the figures.
        series: what is told apart.
        width: of a panel; where it is 0, as wide as the dots need.
        height: of a panel.
        joined: whether there are lines, or dots side by side at each place.
        whiskers: whether the intervals of lines are whiskers instead of bands.
        level: what is dashed, by row.
        title: of each panel.
        named: title of the axis, where it depends on the rows.
    """

    x: Axis
    y: Measure
    of: Sequence[Of]
    series: Series = MODELS
    width: int = 300
    height: int = 200
    joined: bool = True
    whiskers: bool = False
    level: Callable[[Row], float | None] = lambda row: None
    title: str = ""
    named: Callable[[Row], str] | None = None

    def part(self, rows: Sequence[Row], drawing: Drawing) -> ChartPart:
        """The chart of these rows; ``empty`` where none of them has a value."""
        field, names = self.series.field, self.series.order(drawing)
        y = self.y.over(drawing.rows)
        places: Sequence[Any] = self.x.places(rows if self.x.kind == "levels" else drawing.rows)
        places = drawing.first(places, _LEVELS, "levels") if self.x.kind == "levels" else places
        values = values_of(rows, self.of, self.series, y.times, x=self.x.at)
        values = [one for one in values if one["x"] in places and one[field] in names]
        title = self.named(rows[0]) if self.named else self.x.title
        x = self.x.x(places, title)
        if field == "study" and len(present(values, drawing)) > MANY:
            if self.joined:
                return self._apart(rows, values, places, x, y, drawing)
            short = title.partition(" (")[0]
            named = [one | {"place": f"{short}: {one['x']}"} for one in values]
            order = [f"{short}: {place}" for place in places]
            return by_model(named, order, y, drawing)
        if self.joined:
            chart = self._lines(rows, values, places, x, y, drawing)
        else:
            chart = self._dots(values, x, y, names, drawing)
        width = self.width or max(_LEVEL * len(names), 36) * len(places)
        if drawing.narrow:
            width = min(width, drawing.wide - _AXIS)
        chart.width, chart.height = width, self.height
        if self.title:
            chart.title = self.title
        if drawing.narrow:
            width = max(width, width_of([title])) + _AXIS
        return ChartPart(chart, width, self.height, not values)

    def _apart(
        self,
        rows: Sequence[Row],
        values: Sequence[Value],
        places: Sequence[Any],
        x: alt.X,
        y: Measure,
        drawing: Drawing,
    ) -> ChartPart:
        """A small panel for each model."""
        width, height = _SMALLEST if drawing.narrow else _SMALL
        beside = max(1, drawing.wide // (width + (_AXIS if drawing.narrow else 120)))
        names = present(values, drawing)
        charts = []
        for name in names:
            own = [one for one in values if one["study"] == name]
            of = [row for row in rows if row["study"] == name]
            chart = self._lines(of, own, places, x, y, drawing, legend=False)
            chart.width, chart.height = width, height
            folded = drawing.folded(name, width + _AXIS).split("\n")
            chart.title = folded if folded[1:] else name
            charts.append(chart)
        room = TALL // (height + 90) * beside
        pages = [charts[start : start + room] for start in range(0, len(charts), room)]
        return ChartPart.split([
            ChartPart(joined("concat", own, columns=beside), drawing.wide,
                 -(-len(own) // beside) * (height + 90))
            for own in pages
        ])  # fmt: skip

    def _lines(
        self,
        rows: Sequence[Row],
        values: Sequence[Value],
        places: Sequence[Any],
        x: alt.X,
        y: Measure,
        drawing: Drawing,
        *,
        legend: bool = True,
    ) -> alt.LayerChart:
        names = self.series.order(drawing)
        logs = self.x.kind == "logs"
        levels = dict.fromkeys(map(self.level, rows))
        behind = [{"y": one} for one in levels if one is not None]
        behind += [{"y": 0}] if y.domain[0] < 0 < y.domain[1] else []
        pieces = _pieces(values, places, self.series.field, unbroken=logs)
        lone = [one for one in pieces if "low" in one and (one["lone"] or self.whiskers)]
        banded = [one for one in pieces if one not in lone and "low" in one]
        opacity = _BAND if len(names) <= _CROWD or not legend else _FAINT
        how = self.series.field, self.series.title, legend
        hues, shapes = colour(names, *how), shape(names, *how)
        high = alt.Y2("high:Q")
        drawn = [
            data(banded).mark_area(opacity=opacity)
            .encode(x=x, y=y.y("low"), y2=high, color=hues, detail="piece:N"),
            data(lone).mark_rule(strokeWidth=1.5).encode(x=x, y=y.y("low"), y2=high, color=hues),
        ] if banded or lone else []  # fmt: skip
        return layered(
            *([dashed(behind).encode(y=y.y("y"))] if behind else []),
            *drawn,
            data(pieces).mark_line(strokeWidth=1 if logs else 1.8)
            .encode(x=x, y=y.y("y"), color=hues, detail="piece:N", opacity=ink()),
            *points(pieces, drawing, x=x, y=y.y("y"), color=hues, shape=shapes, opacity=ink()),
        )  # fmt: skip

    def _dots(
        self, values: Sequence[Value], x: alt.X, y: Measure, names: Sequence[str], drawing: Drawing
    ) -> alt.LayerChart:
        field, title = self.series.field, self.series.title
        found = {one[field] for one in values_of(drawing.rows, self.of, self.series)}
        beside = alt.Scale(domain=[name for name in names if name in found])
        channels: dict[str, Any] = {
            "x": x, "xOffset": alt.XOffset(f"{field}:N", scale=beside), "opacity": ink(),
            "color": colour(names, field, title),
        }  # fmt: skip
        return layered(
            data([one for one in values if "low" in one]).mark_rule(strokeWidth=1.5)
            .encode(y=y.y("low"), y2="high:Q", **channels),
            *points(values, drawing, y=y.y("y"), shape=shape(names, field, title), **channels),
        )  # fmt: skip


def _pieces(
    values: Sequence[Value], places: Sequence[Any], field: str, *, unbroken: bool
) -> list[Value]:
    """The values with the ``piece`` of its line that each is in, and whether it is ``lone``."""
    at = {x: place for place, x in enumerate(places)}
    found: list[Value] = []
    for number, name in enumerate(dict.fromkeys(one[field] for one in values)):
        own = sorted((one for one in values if one[field] == name), key=lambda one: at[one["x"]])
        piece, last, named = 0, -1, []
        for one in own:
            piece += at[one["x"]] != last + 1
            last = at[one["x"]]
            named.append(f"{number}.{one['ink'] if unbroken else piece}")
        found += [
            one | {"piece": piece, "lone": named.count(piece) == 1}
            for one, piece in zip(own, named, strict=True)
        ]
    return found
