"""Flows: small alluvial diagrams of the changes of first answers, with sizes in pixels."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from holdfast.results.first_answers import AFTER, BEFORE
from holdfast.results.grid import grouped

from . import alt
from .chart import ChartPart, Drawing, Row, Value, label, lines_of, path_label
from .dots import data, layered
from .theme import COLOURS, INK, LETTER, TALL

_Counts = Mapping[tuple[str, str], tuple[int, float]]
"""Number and share of answers, by state before and after."""

KINDS: Mapping[str, str] = {
    "right, kept": COLOURS[0],
    "right, to the suggested option": COLOURS[1],
    "right, to another option": COLOURS[3],
    "right, to an unread reply": "#5f6368",
    "wrong or unread, to right": COLOURS[2],
    "wrong or unread, not to right": "#c4c4c4",
}
"""Colour of each kind of flow. The greys are data colours, so they do not change in dark mode."""

_KEPT_FLOW, _PUSHED_FLOW, _OTHER_FLOW, _UNREAD, _CORRECTED_FLOW, _NEVER = KINDS
_OF_RIGHT = {
    "right": _KEPT_FLOW,
    "suggested": _PUSHED_FLOW,
    "other": _OTHER_FLOW,
    "unread": _UNREAD,
}
_NEUTRAL = "#85898f"
"""Colour of the bars, whose ends contain several kinds of answers."""

_COLUMNS, _PITCH, _ROOM = 5, (178, 120), 26
"""Diagrams per line, width and height of each with spacing, and space for numbers on each side."""

_BAR, _APART_BY, _HEIGHT, _GAP = 9, 18, 80, 3
_NARROWEST = 150
"""Smallest width of a diagram."""
_POINTS, _APART, _STEEP = 21, 11.0, 9.0
_FAMILY, _TITLE, _TYPE = 24, 14, 10


@dataclass(frozen=True)
class Flows:
    """Chart with a diagram for each path of a study, and new lines for each family."""

    def part(self, rows: Sequence[Row], drawing: Drawing) -> ChartPart:
        """Draw the chart of these rows; ``empty`` without a value."""
        paths = [
            path_rows for family in grouped(rows, "family") for path_rows in grouped(family, "path")
        ]
        parts = []
        while paths:
            chart_part, path_count = self._draw_paths(paths, drawing.wide)
            parts.append(chart_part)
            paths = paths[path_count:]
        return ChartPart.split(parts)

    def _draw_paths(self, paths: Sequence[Sequence[Row]], wide: int) -> tuple[ChartPart, int]:
        """Draw as many paths as fit, and return the chart with their number."""
        bands: list[Value] = []
        bars: list[Value] = []
        numbers: list[Value] = []
        headings: list[Value] = []
        titles: list[Value] = []
        across = max(1, min(_COLUMNS, wide // _NARROWEST))
        pitch = min(_PITCH[0], wide // across)
        letters = (wide - (across - 1) * pitch - _ROOM) // LETTER
        heads = [path_label(flow_rows[0], letters) for flow_rows in paths]
        more_lines = 12 * (lines_of(heads) - 1)
        families = [flow_rows[0]["family"] for flow_rows in paths]
        corners = _corners(families, across, pitch, _PITCH[1] + more_lines)
        room = sum(top + _PITCH[1] + more_lines <= TALL - 80 for _, top in corners)
        paths_drawn = paths[: max(1, room)]
        for flow_rows, head, (left, top) in zip(paths_drawn, heads, corners, strict=False):
            family = label(flow_rows[0]["family"]) or "no family"
            if not left and family not in [heading["text"] for heading in headings[-1:]]:
                headings.append({"x": 0.0, "y": top - _FAMILY + 8, "text": family})
            titles.append({"x": left + _ROOM, "y": top, "text": head})
            counts = {(row["before"], row["after"]): (row["n"], row["share"]) for row in flow_rows}
            more = _diagram(counts, left, top + _TITLE + more_lines, len(bands), pitch)
            for marks, own_marks in zip((bands, bars, numbers), more, strict=True):
                marks += own_marks
        width, height = across * pitch, corners[len(paths_drawn) - 1][1] + _PITCH[1] + more_lines
        x = alt.X("x:Q", axis=None, scale=alt.Scale(domain=[0, width], nice=False))
        y = alt.Y("y:Q", axis=None, scale=alt.Scale(domain=[height, 0], nice=False))
        hue = alt.Color(
            "kind:N", title="First answer, and what it became",
            scale=alt.Scale(domain=list(KINDS), range=list(KINDS.values())),
            legend=alt.Legend(symbolType="square", symbolStrokeWidth=0),
        )  # fmt: skip

        styles: list[tuple[list[Value], dict[str, Any]]] = [
            (titles, {"fontSize": _TYPE + 1, "align": "left", "lineBreak": "\n"}),
            (headings, {"fontSize": _TYPE + 2, "align": "left", "fontWeight": "bold"}),
        ]
        for side in ("left", "right"):
            beside = [number for number in numbers if number["side"] == side]
            styles.insert(0, (beside, {"fontSize": _TYPE, "align": side}))
        texts = [
            data(labels).mark_text(color=INK, baseline="middle", **style)
            .encode(x=x, y=y, text="text:N")
            for labels, style in styles
        ]  # fmt: skip
        chart = layered(
            data(bands).mark_area(opacity=1).encode(
                x=x, y=y, y2="to:Q", color=hue, detail="piece:N"
            ),
            data(bars).mark_rect(opacity=1, color=_NEUTRAL).encode(x=x, x2="end:Q", y=y, y2="to:Q"),
            *texts,
            width=width, height=height, view=alt.ViewBackground(stroke=None),
        )  # fmt: skip
        return ChartPart(chart, width, int(height)), len(paths_drawn)


def _corners(
    families: Sequence[str | None], across: int, wide: int, pitch: int
) -> list[tuple[float, float]]:
    """Return left and top of each path's diagram, with each family below the previous one."""
    corners: list[tuple[float, float]] = []
    place, top = 0, -float(pitch)
    for number, family in enumerate(families):
        if not number or family != families[number - 1]:
            place, top = 0, top + pitch + _FAMILY
        elif place == across:
            place, top = 0, top + pitch
        corners.append((float(place * wide), top))
        place += 1
    return corners


def _diagram(
    counts: _Counts, left: float, top: float, before_it: int, pitch: int
) -> tuple[list[Value], list[Value], list[Value]]:
    """Return the bands, bars and numbers of a diagram, given its upper left corner."""
    flows = {
        (before, after): counts[before, after]
        for before in BEFORE
        for after in AFTER
        if counts.get((before, after), (0, 0.0))[0]
    }
    begins = left + _ROOM + _BAR
    across = pitch - 2 * (_ROOM + _BAR) - _APART_BY
    ends = begins + across
    bands: list[Value] = []
    bars: list[Value] = []
    numbers: list[Value] = []
    starts = _bars(bars, numbers, flows, 0, begins - _BAR, top)
    arrives = _bars(bars, numbers, flows, 1, ends, top)
    for (before, after), (_, share) in sorted(flows.items(), key=_by_arrival):
        height = share * _HEIGHT
        piece = str((before_it + len(bands)) // _POINTS)
        kind = (
            _OF_RIGHT[after]
            if before == "right"
            else _CORRECTED_FLOW
            if after == "right"
            else _NEVER
        )
        for point in range(_POINTS):
            t = point / (_POINTS - 1)
            y = starts[before] + (arrives[after] - starts[before]) * _sigmoid(t)
            bands.append(
                {
                    "x": round(begins + t * across, 2), "y": round(y, 2),
                    "to": round(y + height, 2), "kind": kind, "piece": piece,
                }
            )  # fmt: skip
        starts[before] += height
        arrives[after] += height
    return bands, bars, numbers


def _bars(
    bars: list[Value],
    numbers: list[Value],
    flows: _Counts,
    end: int,
    x: float,
    top: float,
) -> dict[str, float]:
    """Add the bars of one end and their numbers, and return the start of each bar."""
    starts: dict[str, float] = {}
    y, last = top, -math.inf
    for state in (BEFORE, AFTER)[end]:
        state_flows = [flow for key, flow in flows.items() if key[end] == state]
        starts[state] = y
        if not state_flows:
            continue
        height = sum(share for _, share in state_flows) * _HEIGHT
        bars.append({"x": x, "end": x + _BAR, "y": round(y, 2), "to": round(y + height, 2)})
        # below the previous number, even for a thin bar
        last = max(y + height / 2, last + _APART)
        numbers.append(
            {
                "x": x - 4 if end == 0 else x + _BAR + 4, "y": round(last, 2),
                "text": f"{sum(n for n, _ in state_flows):,}", "side": ("right", "left")[end],
            }
        )  # fmt: skip
        y += height + _GAP
    return starts


def _by_arrival(flow: tuple[tuple[str, str], tuple[int, float]]) -> tuple[int, int]:
    (before, after), _ = flow
    return BEFORE.index(before), AFTER.index(after)


def _sigmoid(t: float) -> float:
    """Return a smooth step from 0 to 1, level at both ends."""
    low = 1 / (1 + math.exp(_STEEP / 2))
    return (1 / (1 + math.exp(-_STEEP * (t - 0.5))) - low) / (1 - 2 * low)
