"""One alluvial diagram as points of its bands, its bars and its numbers, in pixels."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from holdfast.results.flows import AFTER, BEFORE

from .panels import Value
from .theme import COLOURS

KINDS: Mapping[str, str] = {
    "right, kept": COLOURS[0],
    "right, to the pushed option": COLOURS[1],
    "right, to another option": COLOURS[4],
    "right, to an unread reply": "#5f6368",
    "wrong or unread, to right": COLOURS[2],
    "wrong or unread, not to right": "#a3a3a3",
}
"""Colour of each kind of flow. The greys are no ink: they say something in light and in dark."""

_KEPT, _PUSHED, _OTHER, _UNREAD, _MENDED, _NEVER = KINDS
_OF_RIGHT = {"right": _KEPT, "suggested": _PUSHED, "other": _OTHER, "unread": _UNREAD}
_BARS = {
    "left": {"right": _KEPT, "wrong": _NEVER, "unread": _UNREAD},
    "right": _OF_RIGHT,
}

COLUMNS, PITCH = 5, (178, 120)
"""Diagrams beside each other, and what each takes of the page: width and height."""

ROOM = 26
"""Of numbers, on either side."""

_BAR, _BANDS, _HEIGHT, _GAP = 9, 90, 80, 3
_POINTS, _APART, _STEEP = 21, 11.0, 9.0


@dataclass(frozen=True)
class Drawn:
    """What was drawn so far.

    Attributes:
        bands: points with ``x``, ``y``, ``to``, ``kind`` and the ``piece`` they belong to.
        bars: rectangles from ``x`` to ``end`` and from ``y`` to ``to``, of a ``kind``.
        numbers: ``text`` at ``x`` and ``y``, on one ``side`` of the diagram.
    """

    bands: list[Value]
    bars: list[Value]
    numbers: list[Value]


def diagram(
    drawn: Drawn, counts: Mapping[tuple[str, str], tuple[int, float]], left: float, top: float
) -> None:
    """Add one diagram.

    Args:
        drawn: what to add to.
        counts: number and share of the answers by what they were and became.
        left: of its upper left corner, in pixels.
        top: the same.
    """
    flows = {
        (before, after): counts[before, after]
        for before in BEFORE
        for after in AFTER
        if counts.get((before, after), (0, 0.0))[0]
    }
    begins = left + ROOM + _BAR
    ends = begins + _BANDS
    starts = _bars(drawn, flows, 0, begins - _BAR, top)
    arrives = _bars(drawn, flows, 1, ends, top)
    for (before, after), (_, share) in sorted(flows.items(), key=_by_arrival):
        height = share * _HEIGHT
        piece = str(len(drawn.bands) // _POINTS)
        kind = _OF_RIGHT[after] if before == "right" else _MENDED if after == "right" else _NEVER
        for point in range(_POINTS):
            t = point / (_POINTS - 1)
            y = starts[before] + (arrives[after] - starts[before]) * _sigmoid(t)
            drawn.bands.append(
                {
                    "x": round(begins + t * _BANDS, 2), "y": round(y, 2),
                    "to": round(y + height, 2), "kind": kind, "piece": piece,
                }
            )  # fmt: skip
        starts[before] += height
        arrives[after] += height


def _bars(
    drawn: Drawn, flows: Mapping[tuple[str, str], tuple[int, float]], end: int, x: float, top: float
) -> dict[str, float]:
    """The bars at one end with their numbers, and where each begins."""
    side = ("left", "right")[end]
    found: dict[str, float] = {}
    y, last = top, -math.inf
    for state, kind in _BARS[side].items():
        own = [flow for key, flow in flows.items() if key[end] == state]
        found[state] = y
        if not own:
            continue
        height = sum(share for _, share in own) * _HEIGHT
        drawn.bars.append(
            {"x": x, "end": x + _BAR, "y": round(y, 2), "to": round(y + height, 2), "kind": kind}
        )
        # below the number above, however thin the bar is
        last = max(y + height / 2, last + _APART)
        drawn.numbers.append(
            {
                "x": x - 4 if end == 0 else x + _BAR + 4, "y": round(last, 2),
                "text": f"{sum(n for n, _ in own):,}", "side": ("right", "left")[end],
            }
        )  # fmt: skip
        y += height + _GAP
    return found


def _by_arrival(flow: tuple[tuple[str, str], tuple[int, float]]) -> tuple[int, int]:
    (before, after), _ = flow
    return BEFORE.index(before), AFTER.index(after)


def _sigmoid(t: float) -> float:
    """From 0 to 1 and level at both ends."""
    low = 1 / (1 + math.exp(_STEEP / 2))
    return (1 / (1 + math.exp(-_STEEP * (t - 0.5))) - low) / (1 - 2 * low)
