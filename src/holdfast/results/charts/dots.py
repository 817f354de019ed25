"""Dots with intervals: in rows of places, or in the plane of two measures."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from . import alt
from .chart import WRAPPED_LABEL, ChartPart, Drawing, Row, Value, height_of, lines_of, width_of
from .theme import (
    GREY,
    INK,
    LESS,
    MANY_MODELS,
    MORE,
    MOST_SERIES,
    TALL,
    chart,
    colour,
    ink,
    joined,
    shape,
)  # fmt: skip
from .theme import SIZE as SIZE_OF_TYPE

SIZE = 55
"""Area of a point in square pixels."""

FEWEST = 7
"""Smallest number of trials for which the interval of a share is drawn; others fill the axis."""

_SMALL, _ROW, _WORDS = 160, 14, 26
"""Width of a panel and height of a row with a row for each model; letters of a panel's title."""


@dataclass(frozen=True)
class Measure:
    """Quantity on a numeric axis.

    Attributes:
        title: the figure and its unit.
        domain: both ends, equal in all panels that are compared.
        format: d3 format of the labels. Empty if an axis below has the labels.
        step: smallest distance between ticks.
        times: factor for the values of a column.
        around: columns whose values define the ends instead of ``domain``.
        to: the ends are multiples of this number, if ``around`` defines them.
        harm: whether higher values are worse.
    """

    title: str
    domain: tuple[float, float] = (0.0, 1.0)
    format: str = ".0%"
    step: float = 0.0
    times: int = 1
    around: tuple[str, ...] = ()
    to: float = 0.1
    harm: bool = False

    def over(self, rows: Sequence[Row]) -> Measure:
        """Return the measure with its ends for these rows."""
        if not self.around:
            return self
        numbers = [row[name] for row in rows for name in self.around]
        ends = around([n if n is None else self.times * n for n in numbers], self.to)
        return replace(self, domain=ends)

    def x(self, field: str) -> alt.X:
        """Return the channel of a field on the horizontal axis."""
        return alt.X(f"{field}:Q", **self._channel())

    def y(self, field: str) -> alt.Y:
        """Return the channel of a field on the vertical axis."""
        return alt.Y(f"{field}:Q", **self._channel())

    def _channel(self) -> dict[str, Any]:
        is_shown = bool(self.format)
        axis = alt.Axis(format=self.format or ".0%", tickCount=5, tickMinStep=self.step,
                        labels=is_shown, ticks=is_shown)  # fmt: skip
        scale = alt.Scale(domain=list(self.domain), nice=False, zero=False)
        title = self.title.split("\n") if "\n" in self.title else self.title
        return {"title": title, "scale": scale, "axis": axis}


@dataclass(frozen=True)
class Of:
    """Columns of a value, its bounds and its count, and optionally its series."""

    y: str
    low: str = "low"
    high: str = "high"
    series: str = ""
    n: str = "n"


@dataclass(frozen=True)
class Series:
    """Series with different colours and shapes: studies, or values of ``of`` or ``Of.series``.

    Attributes:
        title: title of the legend.
        of: function from a row to its series.
        names: series that come first, in order.
        sizes: area of the points of each series, for points that can overlap.
    """

    title: str | None = None
    of: Callable[[Row], str] | None = None
    names: tuple[str, ...] = ()
    sizes: tuple[int, ...] = ()

    @property
    def field(self) -> str:
        """Name of the field that contains the series."""
        return "series" if self.of or self.names else "study"

    def order(self, drawing: Drawing) -> Sequence[str]:
        """Return all series of a figure, in the same order for each panel."""
        if self.field == "study":
            return drawing.names
        more = [self.of(row) for row in drawing.rows] if self.of else []
        return drawing.first(list(dict.fromkeys([*self.names, *more])), MOST_SERIES, "series")


MODELS = Series("Model")


def values_of(
    rows: Sequence[Row],
    of: Sequence[Of],
    series: Series = MODELS,
    times: int = 1,
    **more: Callable[[Row], Any],
) -> list[Value]:
    """Return the values of marks: one for each known figure, with bounds where known."""
    values = []
    for row in rows:
        for column in of:
            if row.get(column.y) is None:
                continue
            value: Value = {
                "study": row["study"],
                "ink": row["ink"],
                "y": times * row[column.y],
            }
            low, high = row.get(column.low), row.get(column.high)
            n = row.get(column.n)
            if n is not None and n < FEWEST:
                value["few"] = f"n = {n}"
            elif low is not None and high is not None:
                value |= {"low": times * low, "high": times * high}
            if series.field == "series":
                value["series"] = series.of(row) if series.of else column.series
            values.append(value | {name: get(row) for name, get in more.items()})
    return values


def data(values: Sequence[Mapping[str, object]]) -> alt.Chart:
    """Return a chart of these values, without marks."""
    # a tuple, because lists are copied whenever a chart joins another
    return chart(alt.InlineData(values=tuple(dict(value) for value in values)))


def layered(*charts: alt.Chart | alt.LayerChart, **properties: Any) -> alt.LayerChart:
    """Layer charts, with ``width``, ``height`` or ``title``."""
    chart_layer: alt.LayerChart = joined("layer", charts, **properties)
    return chart_layer


def points(
    values: Sequence[Value], drawing: Drawing, area: int = SIZE, **channels: Any
) -> list[alt.Chart]:
    """Return filled points, or open points with their count if it is small."""
    sparse = [value for value in values if "few" in value]
    dense = [value for value in values if "few" not in value]
    layers = [data(dense).mark_point(filled=True, size=area).encode(**channels)]
    if sparse:
        drawing.remarks[_FEW_NOTE] = None
        positions = {name: channel for name, channel in channels.items() if name not in _LOOKS}
        layers += [
            data(sparse).mark_point(filled=False, size=area, strokeWidth=1.5).encode(**channels),
            data(sparse).mark_text(align="left", dx=7, fontSize=9, color=INK)
            .encode(**positions, text="few:N"),
        ]  # fmt: skip
    return layers


_FEW_NOTE = f"Open marks: fewer than {FEWEST}, too few for an interval."
_LOOKS = ("color", "shape", "size", "opacity", "detail")


def dashed(values: Sequence[Mapping[str, object]]) -> alt.Chart:
    """Return dashed reference lines at these values."""
    rule: alt.Chart = data(values).mark_rule(color=GREY, strokeDash=[5, 4])
    return rule


def around(numbers: Sequence[float | None], step: float = 0.1) -> tuple[float, float]:
    """Return the ends of an axis around these numbers and 0, as multiples of ``step``."""
    known_numbers = [0.0, *(number for number in numbers if number is not None)]
    low, high = (
        -(-max(-n for n in known_numbers) // step) * -step,
        -(-max(known_numbers) // step) * step,
    )
    return (round(low, 6) + 0.0, round(high if high > low else low + step, 6))


@dataclass(frozen=True, kw_only=True)
class Dots:
    """Chart with a row for each place, and a dot with its interval for each series.

    With more than six models, each place has a panel, and each model a row in it.

    Attributes:
        x: the axis.
        of: columns of the figures.
        place: function from a row to the label of its place.
        series: the series. None draws all points in ``hue``.
        order: function that sorts the rows of a panel.
        all_places: whether every panel shows all places.
        only: function that selects the rows to draw.
        width: width of a panel.
        room: height of a place, and additional height for each series.
        size: area of a point.
        text: text next to each row, with its font size and weight.
        flat: two columns whose dots are on one line with a grey connection. None separates series.
        zero: whether to draw a dashed line at 0.
        hue: colour of points without a series.
        diamond: function that selects the points drawn as diamonds.
    """

    x: Measure
    of: Sequence[Of]
    place: Callable[[Row], str]
    series: Series | None = MODELS
    order: Callable[[Sequence[Row]], Sequence[Row]] = list
    all_places: bool = False
    only: Callable[[Row], bool] = lambda row: True
    width: int = 330
    room: tuple[int, int] = (8, 7)
    size: int = SIZE
    text: tuple[Callable[[Row], str], int, Literal["normal", "bold"]] | None = None
    flat: tuple[str, str] | None = None
    zero: bool = False
    hue: str = INK
    diamond: Callable[[Row], bool] | None = None

    def part(self, rows: Sequence[Row], drawing: Drawing) -> ChartPart:
        """Draw the chart of these rows; ``empty`` without a value."""
        shown_rows = [row for row in self.order(rows) if self.only(row)]
        x, values = self.x.over(drawing.rows), self._values(shown_rows, drawing)
        placed_values = (
            self._values(self.order(drawing.rows), drawing) if self.all_places else values
        )
        places: Sequence[str] = list(dict.fromkeys(value["place"] for value in placed_values))
        series = self.series or MODELS
        names = series.order(drawing)
        if self.series is MODELS:
            beside = present(values, drawing)
            if len(beside) > MANY_MODELS:
                return by_model(values, places, x, drawing, text=self.text is not None)
        else:
            beside = list(names) if self.series and not self.flat else [""]
        height = max(20, self.room[0] + self.room[1] * len(beside), height_of(places))
        room = TALL // height - 4
        if len(places) > room:
            return self._split(rows, drawing, places, room)
        beside_it = self.text is not None and not self._has_text_below(drawing)
        width = self.width
        if drawing.narrow:
            texts = map(self.text[0], shown_rows) if self.text and beside_it else ()
            text_width = max(_TEXT, width_of(texts)) if beside_it else 0
            room = drawing.wide - width_of(places) - (_ROOM + text_width)
            width = max(_LEAST_WIDTH, min(width, room))
        x = replace(x, title=drawing.folded(x.title, width + _ROOM))
        y = rows_of(places)
        channels: dict[str, Any] = {"y": y, "opacity": ink(), "color": alt.value(self.hue)}
        mark_options: dict[str, Any] = {}
        if self.series:
            how = names, series.field, series.title
            channels["color"], mark_options["shape"] = colour(*how), shape(*how)
            if not self.flat:
                offset = alt.Scale(domain=beside)
                channels["yOffset"] = alt.YOffset(f"{series.field}:N", scale=offset)
        elif self.diamond:
            kinds = alt.Scale(domain=["challenge", "average"], range=["circle", "diamond"])
            mark_options["shape"] = alt.Shape("kind:N", legend=None, scale=kinds)
        if series.sizes:
            # different sizes keep coinciding points visible
            sizes = alt.Scale(domain=list(names), range=list(series.sizes))
            mark_options["size"] = alt.Size(f"{series.field}:N", title=series.title, scale=sizes)
        layers = [dashed([{"x": 0}]).encode(x=x.x("x"))] if self.zero else []
        if self.flat:
            ends = [Of(self.flat[0], "", self.flat[1])]
            spans = [
                value | {"to": row[self.flat[1]]}
                for row in shown_rows
                for value in values_of([row], ends, place=self._label_of(drawing))
                if row[self.flat[1]] is not None
            ]
            line = data(spans).mark_rule(color=GREY, strokeWidth=2)
            layers.append(line.encode(y=y, x=x.x("y"), x2="to:Q", opacity=ink()))
        whisker = 1.5 if self.size <= SIZE else 3
        interval_values = [value for value in values if "low" in value]
        # intervals on one line would hide each other
        sides = enumerate(names) if self.flat else [(0, "")]
        layers += [
            data([value for value in interval_values if not name or value["series"] == name])
            .mark_rule(strokeWidth=whisker, yOffset=whisker * (2 * place - 1) if name else 0)
            .encode(x=x.x("low"), x2="high:Q", **channels)
            for place, name in sides
        ]
        layers += points(values, drawing, self.size, x=x.x("y"), **channels, **mark_options)
        if self.text and beside_it:
            # one text for each row if both ends are on one line
            written_values = (
                list({value["place"]: value for value in values}.values()) if self.flat else values
            )
            labels = written(written_values, width + 14, self.text[1], self.text[2]).encode(y=y)
            apart = {} if self.flat else {"yOffset": channels["yOffset"]}
            layers.append(labels.encode(**apart))
        tall = height * len(places)
        chart = layered(*layers, width=width, height=tall)
        return ChartPart(chart, width_of(places) + width, tall, not values)

    def _has_text_below(self, drawing: Drawing) -> bool:
        """Whether there is no space beside a row, so that its text goes below its label."""
        return self.text is not None and self.flat is not None and drawing.wide < _BESIDE

    def _label_of(self, drawing: Drawing) -> Callable[[Row], str]:
        """Return a function from a row to its label."""
        if self.text and self._has_text_below(drawing):
            text = self.text[0]
            return lambda row: drawing.folded(f"{self.place(row)}\n{text(row)}")
        return lambda row: drawing.folded(self.place(row))

    def _split(
        self, rows: Sequence[Row], drawing: Drawing, places: Sequence[str], room: int
    ) -> ChartPart:
        """Draw the places in parts of ``room`` places."""

        def draw_from(start: int) -> Dots:
            part_places = frozenset(places[start : start + room])
            place = self._label_of(drawing)
            return replace(
                self,
                all_places=False,
                only=lambda row: self.only(row) and place(row) in part_places,
            )

        parts = [draw_from(start).part(rows, drawing) for start in range(0, len(places), room)]
        return ChartPart.split([part for part in parts if not part.empty] or parts[:1])

    def _values(self, rows: Sequence[Row], drawing: Drawing) -> list[Value]:
        more: dict[str, Callable[[Row], Any]] = {"place": self._label_of(drawing)}
        if self.text:
            more["text"] = self.text[0]
        if (diamond := self.diamond) is not None:
            more["kind"] = lambda row: "average" if diamond(row) else "challenge"
        return values_of(rows, self.of, self.series or MODELS, self.x.times, **more)


def present(values: Sequence[Value], drawing: Drawing) -> list[str]:
    """Return the studies of these values, in the order of the figure."""
    studies = {value["study"] for value in values}
    return [name for name in drawing.names if name in studies]


def rows_of(places: Sequence[str], field: str = "place", with_labels: bool = True) -> alt.Y:
    """Return rows for the places in order, with less space between series than between places."""
    room = alt.Scale(domain=list(places), paddingInner=0.35, paddingOuter=0.2)
    axis = alt.Axis() if with_labels else alt.Axis(labels=False, ticks=False)
    if with_labels and lines_of(places) > 1:
        axis.labelExpr = WRAPPED_LABEL
    return alt.Y(f"{field}:N", title=None, scale=room, axis=axis)


def written(
    values: Sequence[Value], x: int, size: int, weight: Literal["normal", "bold"]
) -> alt.Chart:
    """Draw the ``text`` of each value, to the right of the panel."""
    text_marks: alt.Chart = data(values).mark_text(
        align="left", baseline="middle", fontSize=size, color=INK, fontWeight=weight, lineBreak="\n"
    )
    return text_marks.encode(x=alt.value(x), text="text:N")


def by_model(
    values: Sequence[Value],
    places: Sequence[str],
    x: Measure,
    drawing: Drawing,
    text: bool = False,
) -> ChartPart:
    """Draw a small panel for each place, with a row for each model, worst last."""
    worst = {
        name: [value["y"] for value in values if value["study"] == name]
        for name in present(values, drawing)
    }
    names = sorted(worst, key=lambda name: max(worst[name]) if x.harm else -min(worst[name]))
    model_places = {value["place"] for value in values}
    places = [place for place in places if place in model_places]
    room = drawing.wide - width_of(names)
    beside = max(1, room // (_SMALL + (60 if text else 20)))
    width = (
        max(_LEAST_WIDTH, min(_SMALL, room - _ROOM - _TEXT * text)) if drawing.narrow else _SMALL
    )
    height = _ROW * len(names)
    title = drawing.folded(x.title, width + _ROOM)
    x = replace(x, title="" if text else title, format=x.format or ".0%")
    hues, shapes = colour(names, legend=False), shape(names, legend=False)
    small = []
    for number, place in enumerate(places):
        place_values = [value for value in values if value["place"] == place]
        y = rows_of(names, "study", not number % beside)
        channels: dict[str, Any] = {"y": y, "color": hues}
        layers = [
            data([value for value in place_values if "low" in value]).mark_rule(strokeWidth=1.5)
            .encode(x=x.x("low"), x2="high:Q", opacity=ink(), **channels),
            *points(place_values, drawing, x=x.x("y"), shape=shapes, opacity=ink(), **channels),
        ]  # fmt: skip
        layers += [written(place_values, width + 6, 10, "normal").encode(y=y)] if text else []
        heading = textwrap.wrap(place.replace("\n", " "), _WORDS) or [place]
        small.append(layered(*layers, width=width, height=height, title=heading))
    bands = [small[start : start + beside] for start in range(0, len(small), beside)]
    lines = [joined("hconcat", band, spacing=16) for band in bands]
    room = max(1, TALL // (height + 90))
    parts = [
        ChartPart(joined("vconcat", lines[start : start + room], spacing=14), drawing.wide,
             (height + 90) * len(lines[start : start + room]) - 40)
        for start in range(0, len(lines), room)
    ]  # fmt: skip
    return ChartPart.split(parts) if parts else ChartPart(layered(), drawing.wide, 0, empty=True)


_ROOM, _TEXT, _LEAST_WIDTH, _BESIDE = 26, 36, 60, 500
"""Width of an axis without labels; least width of a text beside a row; width of the narrowest
panel; smallest width of a figure with longer texts beside its rows."""

_DOT, _BY, _ABOVE, _NAME = 6, 4, 9, 9
"""Radius of a dot; horizontal and vertical distance of its name, outside the whiskers; font size of
its name."""
_MOST_NAMED = 8
"""Maximum number of names in the remark on coinciding dots."""

_SHADE = 0.1
"""Opacity of the areas on both sides of the diagonal."""


@dataclass(frozen=True)
class Word:
    """Word in a plane; its position is a fraction of each axis."""

    text: str
    x: float
    y: float
    align: Literal["left", "right"] = "left"
    angle: int = 0


@dataclass(frozen=True, kw_only=True)
class Plane:
    """Chart with a dot for each row in the plane of two measures, and the diagonal of equality.

    With more than six models, dots have names. If a model then has several dots, each model has a
    separate plane.

    Attributes:
        x: horizontal measure and its columns.
        y: vertical measure and its columns.
        words: words that explain the sides of the diagonal.
        size: column that the area of a dot shows.
        size_title: title of its legend.
        regions: whether to shade the sides of the diagonal, blue below it and orange above.
        diagonal: whether to draw the diagonal.
        side: side of the square in pixels.
    """

    x: tuple[Measure, Of]
    y: tuple[Measure, Of]
    words: Sequence[Word]
    size: str = ""
    size_title: str = ""
    regions: bool = False
    diagonal: bool = True
    side: int = 330

    def part(self, rows: Sequence[Row], drawing: Drawing) -> ChartPart:
        """Draw the chart of these rows; ``empty`` if no row has both measures."""
        (x, along), (y, up) = self.x, self.y
        x, y = x.over(drawing.rows), y.over(drawing.rows)
        values = []
        for row in rows:
            x_values, y_values = values_of([row], [along]), values_of([row], [up])
            if x_values and y_values:
                across = {"x" if key == "y" else f"x_{key}": x_values[0][key]
                          for key in ("y", "low", "high") if key in x_values[0]}  # fmt: skip
                across |= {"few": x_values[0]["few"]} if "few" in x_values[0] else {}
                size_option = {"size": f"{row[self.size]}"} if self.size else {}
                values.append(y_values[0] | across | size_option)
        side = min(self.side, drawing.wide - 80)
        names = present(values, drawing)
        if len(drawing.names) <= MANY_MODELS or not values:
            return ChartPart(self._square(values, x, y, side, drawing), side + 60, side, not values)
        if len(values) == len(names):
            name_marks = self._name_dots(values, x, y, side, drawing)
            chart = self._square(values, x, y, side, drawing, name_marks)
            return ChartPart(chart, side + 60, side)
        small = replace(self, words=())
        beside = max(1, drawing.wide // (_SMALL + 60))
        squares = []
        for name in names:
            study_values = [value for value in values if value["study"] == name]
            chart = small._square(study_values, x, y, _SMALL, drawing, [])
            chart.title = textwrap.wrap(name, _WORDS)
            squares.append(chart)
        bands = [squares[at : at + beside] for at in range(0, len(squares), beside)]
        lines = [joined("hconcat", band, spacing=16) for band in bands]
        room = max(1, TALL // (_SMALL + 90))
        return ChartPart.split(
            [
                ChartPart(
                    joined("vconcat", row_group, spacing=14),
                    drawing.wide,
                    (_SMALL + 90) * len(row_group) - 40,
                )
                for row_group in (lines[at : at + room] for at in range(0, len(lines), room))
            ]
        )

    def _square(
        self,
        values: Sequence[Value],
        x: Measure,
        y: Measure,
        side: int,
        drawing: Drawing,
        name_marks: Sequence[alt.Chart] | None = None,
    ) -> alt.LayerChart:
        """Draw the plane of these values, without a legend of models if dots have names."""
        names, legend = list(drawing.names), name_marks is None
        hues = colour(names, legend=legend)
        (left, right), (low, high) = x.domain, y.domain
        words = [
            data([{"x": left + word.x * (right - left), "y": low + word.y * (high - low),
                   "text": word.text}])
            .mark_text(align=word.align, angle=word.angle, color=GREY, fontSize=11)
            .encode(x=x.x("x"), y=y.y("y"), text="text:N")
            for word in self.words
        ]  # fmt: skip
        channels = {"x": x.x("x"), "y": y.y("y"), "color": hues,
                    "shape": shape(names, legend=legend)}  # fmt: skip
        if self.size:
            # the same domain in all panels, because joining different scales leaves the chart empty
            grades = sorted({f"{row[self.size]}" for row in drawing.rows}, key=int)
            sizes = [SIZE + 65 * place for place in range(len(grades))]
            scale = alt.Scale(domain=grades, range=sizes)
            channels["size"] = alt.Size("size:N", title=self.size_title, scale=scale)
        ends = [{"x": left, "y": max(left, low)}, {"x": right, "y": min(right, high)}]
        sides = [
            data([corner | {"to": end} for corner in ends])
            .mark_area(color=hue, opacity=_SHADE)
            .encode(x=x.x("x"), y=y.y("y"), y2="to:Q")
            for end, hue in ((low, LESS), (high, MORE))
            if self.regions
        ]
        return layered(
            *sides,
            *(
                data([{"x": end, "y": end} for end in x.domain])
                .mark_line(color=GREY, strokeDash=[5, 4], strokeWidth=1.2)
                .encode(x=x.x("x"), y=y.y("y"))
                for _ in range(self.diagonal)
            ),
            *words,
            data([value for value in values if "x_low" in value]).mark_rule().encode(
                x=x.x("x_low"), x2="x_high:Q", y=y.y("y"), color=hues, opacity=ink()
            ),
            data([value for value in values if "low" in value]).mark_rule().encode(
                x=x.x("x"), y=y.y("low"), y2="high:Q", color=hues, opacity=ink()
            ),
            *points(values, drawing, 80, **channels, opacity=ink()),
            *(name_marks or []),
            width=side, height=side,
        )  # fmt: skip

    def _name_dots(
        self, values: Sequence[Value], x: Measure, y: Measure, side: int, drawing: Drawing
    ) -> list[alt.Chart]:
        """Name each dot if there is space, and otherwise number it with a remark."""

        def place(number: float, of: Measure) -> float:
            low, high = of.domain
            return (number - low) / (high - low) * side

        dots = [(place(value["x"], x), side - place(value["y"], y)) for value in values]
        boxes_taken = [(left - _DOT, top - _DOT, left + _DOT, top + _DOT) for left, top in dots]
        numbers = {name: str(number) for number, name in enumerate(drawing.names, 1)}
        sides: tuple[Literal["left", "right"], ...] = ("left", "right")
        values_by_side: dict[Literal["left", "right"], list[Value]] = {side: [] for side in sides}
        piles: dict[str, list[str]] = {}
        anchors: list[tuple[float, float, str]] = []
        for at, (value, (left, top)) in enumerate(zip(values, dots, strict=True)):
            on = [label for *where, label in anchors if math.dist(where, (left, top)) < _DOT]
            if on:
                piles[on[0]].append(value["study"])
                continue
            other_boxes = [
                box
                for place, box in enumerate(boxes_taken)
                if place != at and box != boxes_taken[at]
            ]
            for text in (value["study"], numbers[value["study"]]):
                wide = width_of([text]) * _NAME / SIZE_OF_TYPE
                low, high = top - _ABOVE - _NAME / 2, top - _ABOVE + _NAME / 2
                boxes = {
                    "left": (left + _BY, low, left + _BY + wide, high),
                    "right": (left - _BY - wide, low, left - _BY, high),
                }
                free = [
                    align for align in sides
                    if (box := boxes[align])[0] >= 0 and box[2] <= side
                    and not any(_overlap(box, other_box) for other_box in other_boxes)
                ]  # fmt: skip
                if free:
                    break
            # a number without space overlaps its neighbours
            align = free[0] if free else "left"
            anchors.append((left, top, text))
            piles.setdefault(text, [])
            boxes_taken.append(boxes[align])
            values_by_side[align].append({"x": value["x"], "y": value["y"], "text": text})
            if text != value["study"]:
                drawing.remarks[f"{text}: {value['study']}."] = None
        for label, names in piles.items():
            if names:
                more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
                drawing.remarks[
                    f"At the same place as {label}: {', '.join(names[:_MOST_NAMED])}{more}."
                ] = None
        return [
            data(side_values)
            .mark_text(
                align=align,
                baseline="middle",
                dx=_BY if align == "left" else -_BY,
                dy=-_ABOVE,
                fontSize=_NAME,
                color=INK,
            )
            .encode(x=x.x("x"), y=y.y("y"), text="text:N")
            for align, side_values in values_by_side.items()
            if side_values
        ]


def _overlap(first: Sequence[float], second: Sequence[float]) -> bool:
    """Whether two boxes overlap."""
    apart = (
        first[2] <= second[0]
        or second[2] <= first[0]
        or first[3] <= second[1]
        or second[3] <= first[1]
    )
    return not apart
