"""Bars: composition of a number, with each part as a share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from . import alt
from .chart import ChartPart, Drawing, Row, Value, height_of, width_of
from .dots import Measure, data, layered, rows_of
from .theme import TALL

_THINNEST = 22
"""Minimum height of a bar with its spacing, in pixels."""

_LEGIBLE = 0.07
"""Smallest share with space for its number."""


@dataclass(frozen=True, kw_only=True)
class Bars:
    """Chart with a stacked bar for each place, whose parts add up to 100%.

    Attributes:
        place: function from a row to the name of its bar.
        parts: label and colour of each part, by the column with its count.
        among: column with the sum of the parts.
        title: title of the axis of shares.
        legend: title of the legend of parts.
        width: width of the bars in pixels.
    """

    place: Callable[[Row], str]
    parts: Mapping[str, tuple[str, str]]
    among: str
    title: str
    legend: str
    width: int = 430

    def part(self, rows: Sequence[Row], drawing: Drawing) -> ChartPart:
        """Draw the chart of these rows; ``empty`` without a part."""
        names = [drawing.folded(self.place(row)) for row in rows]
        names_drawn = drawing.first(list(dict.fromkeys(names)), TALL // _THINNEST - 6, "bars")
        values: list[Value] = []
        for row, name in zip(rows, names, strict=True):
            start = 0.0
            for column, (words, _) in self.parts.items():
                share = row[column] / row[self.among] if row[self.among] else 0.0
                if share and name in names_drawn:
                    values.append({
                        "place": name, "kind": words, "start": start, "end": start + share,
                        "middle": start + share / 2,
                        "text": f"{100 * share:.0f}" if share >= _LEGIBLE else "",
                    })  # fmt: skip
                start += share
        # the same kinds in every panel, because panels share the colour scale
        kinds = [
            kind for name, kind in self.parts.items() if any(row[name] for row in drawing.rows)
        ]
        hue = alt.Color(
            "kind:N",
            title=self.legend,
            legend=alt.Legend(symbolType="square"),
            scale=alt.Scale(
                domain=[name for name, _ in kinds], range=[hex_colour for _, hex_colour in kinds]
            ),
        )
        y, x = rows_of(names_drawn), Measure(self.title)
        height = max(_THINNEST, height_of(names_drawn)) * len(names_drawn)
        wide = min(self.width, drawing.wide - width_of(names_drawn) - 40)
        chart = layered(
            data(values).mark_bar(opacity=1).encode(x=x.x("start"), x2="end:Q", y=y, color=hue),
            data(values).mark_text(color="black", fontSize=10).encode(
                x=x.x("middle"), y=y, text="text:N"
            ),
            width=wide, height=height,
        )  # fmt: skip
        return ChartPart(chart, wide + width_of(names_drawn), height, not values)
