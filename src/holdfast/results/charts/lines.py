"""Lines, and vertical dots with intervals, over an axis of places."""

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
from .theme import MANY_MODELS, TALL, colour, ink, joined, shape

_BAND, _FAINT, _CROWD = 0.16, 0.05, 8
"""Opacity of a band; with more series than ``_CROWD``, the fainter opacity."""
_SMALL, _SMALLEST = (150, 90), (95, 90)
_AXIS = 58
"""Width of a panel's axis."""
_LEVEL, _LEVELS = 18, 24
"""Width of a vertical dot, and maximum number of levels on one axis."""


@dataclass(frozen=True)
class Axis:
    """Horizontal axis: turns, levels in row order, numbers, or numbers on a log scale.

    Each panel has separate levels. Other axes are equal in all panels.
    """

    column: str
    title: str
    kind: Literal["turns", "levels", "numbers", "logs"] = "turns"

    def places(self, rows: Sequence[Row]) -> list[Any]:
        """Return the places of these rows in order."""
        places = dict.fromkeys(self.at(row) for row in rows)
        if self.kind == "levels":
            return list(places)
        numbers = sorted(number for number in places if number is not None) or [1]
        return list(range(numbers[0], numbers[-1] + 1)) if self.kind == "turns" else numbers

    def at(self, row: Row) -> Any:
        """Return the place of a row, None without one."""
        cell = row[self.column]
        return label(cell, 16) if self.kind == "levels" else cell

    def x(self, places: Sequence[Any], title: str) -> alt.X:
        """Return the channel of the field ``x``."""
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
    """Chart with a line of points and a band for each series, interrupted at missing values.

    With more than six models, each has a small panel, or a separate row if only dots are drawn.

    Attributes:
        x: axis of the places.
        y: axis of the figures.
        of: columns of the figures.
        series: the series.
        width: width of a panel. 0 fits the dots.
        height: height of a panel.
        with_lines: whether to draw lines, or dots side by side at each place.
        whiskers: whether to draw the intervals of lines as whiskers instead of bands.
        level: function from a row to the value of its dashed line.
        title: function to the title of each panel.
        axis_title: function to the title of the axis, if it depends on the rows.
    """

    x: Axis
    y: Measure
    of: Sequence[Of]
    series: Series = MODELS
    width: int = 300
    height: int = 200
    with_lines: bool = True
    whiskers: bool = False
    level: Callable[[Row], float | None] = lambda row: None
    title: str = ""
    axis_title: Callable[[Row], str] | None = None

    def part(self, rows: Sequence[Row], drawing: Drawing) -> ChartPart:
        """Draw the chart of these rows; ``empty`` without a value."""
        field, names = self.series.field, self.series.order(drawing)
        y = self.y.over(drawing.rows)
        places: Sequence[Any] = self.x.places(rows if self.x.kind == "levels" else drawing.rows)
        places = drawing.first(places, _LEVELS, "levels") if self.x.kind == "levels" else places
        values = values_of(rows, self.of, self.series, y.times, x=self.x.at)
        values = [value for value in values if value["x"] in places and value[field] in names]
        title = self.axis_title(rows[0]) if self.axis_title else self.x.title
        x = self.x.x(places, title)
        if field == "study" and len(present(values, drawing)) > MANY_MODELS:
            if self.with_lines:
                return self._draw_panels(rows, values, places, x, y, drawing)
            short = title.partition(" (")[0]
            placed_values = [value | {"place": f"{short}: {value['x']}"} for value in values]
            order = [f"{short}: {place}" for place in places]
            return by_model(placed_values, order, y, drawing)
        if self.with_lines:
            chart = self._lines(rows, values, places, x, y, drawing)
        else:
            chart = self._dots(values, x, y, names, drawing, places)
        width = self.width or max(_LEVEL * len(names), 36) * len(places)
        if drawing.narrow:
            width = min(width, drawing.wide - _AXIS)
        chart.width, chart.height = width, self.height
        if self.title:
            chart.title = self.title
        if drawing.narrow:
            width = max(width, width_of([title])) + _AXIS
        return ChartPart(chart, width, self.height, not values)

    def _draw_panels(
        self,
        rows: Sequence[Row],
        values: Sequence[Value],
        places: Sequence[Any],
        x: alt.X,
        y: Measure,
        drawing: Drawing,
    ) -> ChartPart:
        """Draw a small panel for each model."""
        width, height = _SMALLEST if drawing.narrow else _SMALL
        beside = max(1, drawing.wide // (width + (_AXIS if drawing.narrow else 120)))
        names = present(values, drawing)
        charts = []
        for name in names:
            study_values = [value for value in values if value["study"] == name]
            of = [row for row in rows if row["study"] == name]
            chart = self._lines(of, study_values, places, x, y, drawing, legend=False)
            chart.width, chart.height = width, height
            title_lines = drawing.folded(name, width + _AXIS).split("\n")
            chart.title = title_lines if title_lines[1:] else name
            charts.append(chart)
        room = TALL // (height + 90) * beside
        pages = [charts[start : start + room] for start in range(0, len(charts), room)]
        return ChartPart.split([
            ChartPart(joined("concat", page, columns=beside), drawing.wide,
                 -(-len(page) // beside) * (height + 90))
            for page in pages
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
        behind = [{"y": level} for level in levels if level is not None]
        behind += [{"y": 0}] if y.domain[0] < 0 < y.domain[1] else []
        pieces = _pieces(values, places, self.series.field, unbroken=logs)
        lone = [piece for piece in pieces if "low" in piece and (piece["lone"] or self.whiskers)]
        bands = [piece for piece in pieces if piece not in lone and "low" in piece]
        opacity = _BAND if len(names) <= _CROWD or not legend else _FAINT
        how = self.series.field, self.series.title, legend and self._legend(drawing)
        hues, shapes = colour(names, *how), shape(names, *how)
        high = alt.Y2("high:Q")
        layers = [
            data(bands).mark_area(opacity=opacity)
            .encode(x=x, y=y.y("low"), y2=high, color=hues, detail="piece:N"),
            data(lone).mark_rule(strokeWidth=1.5).encode(x=x, y=y.y("low"), y2=high, color=hues),
        ] if bands or lone else []  # fmt: skip
        return layered(
            *([dashed(behind).encode(y=y.y("y"))] if behind else []),
            *layers,
            data(pieces).mark_line(strokeWidth=1 if logs else 1.8)
            .encode(x=x, y=y.y("y"), color=hues, detail="piece:N", opacity=ink()),
            *points(pieces, drawing, x=x, y=y.y("y"), color=hues, shape=shapes, opacity=ink()),
        )  # fmt: skip

    def _drawn(self, drawing: Drawing) -> list[str]:
        """Return the series that have a value in some panel."""
        drawn = {v[self.series.field] for v in values_of(drawing.rows, self.of, self.series)}
        return [name for name in self.series.order(drawing) if name in drawn]

    def _legend(self, drawing: Drawing) -> bool | Sequence[str]:
        """Return the series that the legend shows, True for all."""
        names = self._drawn(drawing)
        return len(names) == len(self.series.order(drawing)) or names

    def _dots(
        self,
        values: Sequence[Value],
        x: alt.X,
        y: Measure,
        names: Sequence[str],
        drawing: Drawing,
        places: Sequence[Any],
    ) -> alt.LayerChart:
        field = self.series.field
        beside = alt.Scale(domain=self._drawn(drawing))
        how = names, field, self.series.title, self._legend(drawing)
        if self.x.kind == "turns":
            # the centres of these bands align with the points of the lines above
            x = x.scale(domain=list(places), paddingInner=0.2, paddingOuter=0.1)
        channels: dict[str, Any] = {
            "x": x, "xOffset": alt.XOffset(f"{field}:N", scale=beside), "opacity": ink(),
            "color": colour(*how),
        }  # fmt: skip
        return layered(
            data([value for value in values if "low" in value]).mark_rule(strokeWidth=1.5)
            .encode(y=y.y("low"), y2="high:Q", **channels),
            *points(values, drawing, y=y.y("y"), shape=shape(*how), **channels),
        )  # fmt: skip


def _pieces(
    values: Sequence[Value], places: Sequence[Any], field: str, *, unbroken: bool
) -> list[Value]:
    """Add to each value the ``piece`` of its line, and whether it is ``lone``."""
    at = {x: place for place, x in enumerate(places)}
    pieces: list[Value] = []
    for number, name in enumerate(dict.fromkeys(value[field] for value in values)):
        series_values = sorted(
            (value for value in values if value[field] == name), key=lambda value: at[value["x"]]
        )
        piece, last, piece_ids = 0, -1, []
        for value in series_values:
            piece += at[value["x"]] != last + 1
            last = at[value["x"]]
            piece_ids.append(f"{number}.{value['ink'] if unbroken else piece}")
        pieces += [
            value | {"piece": piece, "lone": piece_ids.count(piece) == 1}
            for value, piece in zip(series_values, piece_ids, strict=True)
        ]
    return pieces
