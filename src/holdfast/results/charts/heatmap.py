"""Cells: heat maps with white at 0, and histograms."""

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
"""Width of a slanted column label per letter, and smallest width of a cell."""


@dataclass(frozen=True, kw_only=True)
class Heat:
    """Chart with a grid of cells with numbers; cells without a value are empty.

    Attributes:
        column: function from a row to the label of its column.
        labels: function from rows to the labels of their lines.
        share: column of the share, white at 0, with one colour scale for all panels.
        legend: title of the legend.
        harm: sign of harmful shares.
        cell: width and height in pixels.
    """

    column: Callable[[Row], str]
    labels: Callable[[Sequence[Row]], Sequence[str]]
    share: str
    legend: str
    harm: Literal["above", "below"]
    cell: tuple[int, int]

    def part(self, rows: Sequence[Row], drawing: Drawing) -> ChartPart:
        """Draw the chart of these rows; ``empty`` without a value."""
        labels = [drawing.folded(label_text) for label_text in self.labels(rows)]
        lines: Sequence[str] = list(dict.fromkeys(labels))
        # studies in the order of all figures, other columns in the order of the table
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
            # RGB interpolation: only 0 is white, and no third hue appears
            scale=alt.Scale(domain=[-limit, 0, limit], range=ends, clamp=True, interpolate="rgb"),
            # square symbols, because gradient names in an SVG depend on earlier drawings
            legend=alt.Legend(format=".0%", type="symbol", symbolType="square",
                              columns=2 if narrow else 5, symbolStrokeColor=LINE,
                              symbolStrokeWidth=0.5,
                              values=[limit * part / 2 for part in (2, 1, 0, -1, -2)]),
        )  # fmt: skip
        # black is legible on both ends
        numbers = data(values).mark_text(fontSize=10, color="black")
        return [
            data(values).mark_rect().encode(x=x, y=y, color=shade),
            numbers.encode(x=x, y=y, text="text:N"),
        ]


def full(shares: Sequence[float]) -> float:
    """Return the share with full colour: the largest absolute share, rounded up to a tenth."""
    return round(math.ceil(10 * max((abs(share) for share in shares), default=0)) / 10, 1) or 0.1


def signed(share: float) -> str:
    """Format a share in percent as ``+12``, ``−7`` or ``0``."""
    whole = round(100 * share)
    return f"{whole:+d}".replace("-", "−") if whole else "0"


@dataclass(frozen=True, kw_only=True)
class Distribution:
    """Histogram of values from 0 to 1, with a dashed line for a homogeneous population.

    Attributes:
        x: axis of the values.
        of: column of the values.
        y: title of the counts.
        bins: number of bins. A value on a border is in the lower bin.
        width: width of a panel.
        height: height of a panel.
    """

    x: Measure
    of: str
    y: str
    bins: int = 20
    width: int = 330
    height: int = 150

    def part(self, rows: Sequence[Row], drawing: Drawing) -> ChartPart:
        """Draw the chart of these rows; ``empty`` without a value."""
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
