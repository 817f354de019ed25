"""Cells: heat maps, through white from less harm to more, and distributions in bins."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from holdfast.results.grid import grouped

from . import alt
from .chart import WRAPPED_LABEL, ChartPart, Drawing, Row, Value, height_of, width_of
from .dots import Measure, dashed, data, layered
from .theme import COLOURS, LESS, LINE, MORE, TALL

_ASLANT, _NARROWEST = 5, 30
"""About what a letter of a column's label takes of the width, and the least width of a cell."""


@dataclass(frozen=True, kw_only=True)
class Heat:
    """A grid of cells, each with its number; one without a value is empty.

    Attributes:
        column: label of a row's column.
        labels: labels of the lines that these rows stand in, in parallel.
        share: the column of the share, white at 0; alike in every panel.
        legend: what the share is.
        harm: on which side of 0 a share is harm.
        cell: width and height in pixels.
    """

    column: Callable[[Row], str]
    labels: Callable[[Sequence[Row]], Sequence[str]]
    share: str
    legend: str
    harm: Literal["above", "below"]
    cell: tuple[int, int]

    def part(self, rows: Sequence[Row], drawing: Drawing) -> ChartPart:
        """The chart of these rows; ``empty`` where none of them has a value."""
        labels = [drawing.folded(label_text) for label_text in self.labels(rows)]
        lines: Sequence[str] = list(dict.fromkeys(labels))
        # studies stand as in every figure, other columns as in the table
        place = {name: number for number, name in enumerate(drawing.names)}
        column_names = dict.fromkeys(map(self.column, rows))
        columns: Sequence[str] = sorted(column_names, key=lambda name: place.get(name, 0))
        width, height = self.cell
        height = max(height, height_of(lines))
        columns = drawing.first(columns, drawing.wide // _NARROWEST, "columns")
        lines = drawing.first(lines, TALL // height - 10, "rows")
        room = (drawing.wide - width_of(lines)) // max(1, len(columns))
        width = max(_NARROWEST, min(width, room))
        values: list[Value] = [
            {
                "column": self.column(row),
                "row": name,
                "share": row[self.share],
                "text": signed(row[self.share]),
            }
            for row, name in zip(rows, labels, strict=True)
            if row[self.share] is not None
        ]
        values = [value for value in values if value["column"] in columns and value["row"] in lines]
        limit = full([row[self.share] for row in drawing.rows if row[self.share] is not None])
        chart = layered(
            *self._layers(values, columns, lines, limit, drawing.narrow),
            width=alt.Step(width), height=alt.Step(height),
        )  # fmt: skip
        aslant = _ASLANT * max(map(len, columns), default=0)
        wide = width_of(lines) + width * len(columns) + aslant * (not drawing.narrow)
        return ChartPart(chart, wide, height * len(lines) + aslant, not values)

    def _layers(
        self,
        values: Sequence[Value],
        columns: Sequence[str],
        lines: Sequence[str],
        limit: float,
        narrow: bool,
    ) -> list[alt.Chart]:
        x = alt.X(
            "column:N", title=None, scale=alt.Scale(domain=list(columns), paddingInner=0.04),
            axis=alt.Axis(orient="top", labelAngle=-90 if narrow else -35, grid=False,
                          domain=False, ticks=False),
        )  # fmt: skip
        y = alt.Y(
            "row:N", title=None, scale=alt.Scale(domain=list(lines), paddingInner=0.08),
            axis=alt.Axis(grid=False, domain=False, ticks=False, labelExpr=WRAPPED_LABEL),
        )  # fmt: skip
        ends = [LESS, "#ffffff", MORE] if self.harm == "above" else [MORE, "#ffffff", LESS]
        shade = alt.Color(
            "share:Q", title=self.legend,
            # mixed as light, so that nothing but 0 is white and nothing between has a third hue
            scale=alt.Scale(domain=[-limit, 0, limit], range=ends, clamp=True, interpolate="rgb"),
            # squares: the names of gradients in an SVG depend on what was drawn before
            legend=alt.Legend(format=".0%", type="symbol", symbolType="square",
                              columns=2 if narrow else 5, symbolStrokeColor=LINE,
                              symbolStrokeWidth=0.5,
                              values=[limit * part / 2 for part in (2, 1, 0, -1, -2)]),
        )  # fmt: skip
        # black is legible on either end
        numbers = data(values).mark_text(fontSize=10, color="black")
        return [
            data(values).mark_rect().encode(x=x, y=y, color=shade),
            numbers.encode(x=x, y=y, text="text:N"),
        ]


def full(shares: Sequence[float]) -> float:
    """The share of full colour: the largest of these, whatever its sign, up to a tenth."""
    return round(math.ceil(10 * max((abs(share) for share in shares), default=0)) / 10, 1) or 0.1


def signed(share: float) -> str:
    """``+12``, ``−7`` or ``0``: the share in percent, as a cell shows it."""
    whole = round(100 * share)
    return f"{whole:+d}".replace("-", "−") if whole else "0"


@dataclass(frozen=True, kw_only=True)
class Distribution:
    """How many rows have a value in each bin from 0 to 1, and dashed how many would if all alike.

    Attributes:
        x: the axis of values.
        of: their column.
        y: what is counted.
        bins: how many there are; a value on a border is in the bin below it.
        width: of a panel.
        height: of a panel.
    """

    x: Measure
    of: str
    y: str
    bins: int = 20
    width: int = 330
    height: int = 150

    def part(self, rows: Sequence[Row], drawing: Drawing) -> ChartPart:
        """The chart of these rows; ``empty`` where none of them has a value."""
        studies = grouped(drawing.rows, "dataset", "study")
        highest = max(max(self._counts(study_rows)) for study_rows in studies)
        total, even = len(rows), len(rows) / self.bins
        bars: list[Value] = [
            {"x": place / self.bins, "to": (place + 1) / self.bins, "low": 0, "y": n}
            for place, n in enumerate(self._counts(rows))
            if n
        ]
        y = Measure(self.y, (0.0, float(max(highest, math.ceil(even)))), "d", 1)
        chart = layered(
            data(bars).mark_rect(color=COLOURS[0], xOffset=0.5, x2Offset=-0.5).encode(
                x=self.x.x("x"), x2="to:Q", y=y.y("y"), y2="low:Q"
            ),
            dashed([{"y": even}]).encode(y=y.y("y")),
            width=min(self.width, drawing.wide - 50), height=self.height, title=f"n = {total:,}",
        )  # fmt: skip
        return ChartPart(chart, self.width + 50, self.height, not total)

    def _counts(self, rows: Sequence[Row]) -> list[int]:
        bin_counts = [0] * self.bins
        for row in rows:
            # 0.15 * 20 is 3.0000000000000004
            bin_counts[max(0, math.ceil(round(row[self.of] * self.bins, 9)) - 1)] += 1
        return bin_counts
