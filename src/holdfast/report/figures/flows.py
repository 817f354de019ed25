"""What first answers became under each challenge: small alluvial diagrams."""

from collections.abc import Sequence

import altair as alt
import polars as pl

from .alluvial import COLUMNS, KINDS, PITCH, ROOM, Drawn, diagram
from .heading import headed
from .marks import data, layered
from .panels import Row, label, nothing, panels
from .theme import INK

_FAMILY, _TITLE, _TYPE = 24, 14, 10


def flows(frame: pl.DataFrame) -> alt.VConcatChart:
    """A diagram for each path in the order of families, a block for each study and protocol.

    Raises:
        InputError: the rows hold nothing to draw.
    """
    shown = panels(frame)
    drawn: list[alt.LayerChart] = []
    totals: list[int] = []
    for dataset, own in shown.rows.items():
        for study, protocol in dict.fromkeys((row["study"], row["protocol"]) for row in own):
            those = [
                row
                for row in own
                if (row["study"], row["protocol"]) == (study, protocol) and row["share"]
            ]
            if those:
                title = f"{study} ({dataset}, {label(protocol)})"
                drawn.append(_block(those).properties(title=title))
                by_path: dict[str, int] = {}
                for row in those:
                    by_path[row["path"]] = by_path.get(row["path"], 0) + row["n"]
                totals += by_path.values()
    if not drawn:
        raise nothing("no first answer was challenged by a follow-up or a single-turn bias")
    least, most = min(totals), max(totals)
    several = "" if least == most else f"{least:,} to "
    return headed(
        drawn,
        "What the first answers became",
        (
            f"n = {several}{most:,} answers a challenge, counted beside the bars. Left: first "
            "answers, right ones on top. Right: answers to the challenge: right, the pushed "
            "option, another wrong one, unread.",
            "No intervals: see the table flips.",
        ),
        shown,
    )


def _block(rows: Sequence[Row]) -> alt.LayerChart:
    """The diagrams of one study, each family in rows of its own."""
    found = Drawn([], [], [])
    headings, titles = [], []
    top = 0.0
    for family in dict.fromkeys(row["family"] for row in rows):
        of_family = [row for row in rows if row["family"] == family]
        paths = list(dict.fromkeys(row["path"] for row in of_family))
        headings.append({"x": 0.0, "y": top + 8, "text": label(family) or "no family"})
        top += _FAMILY
        for place, path in enumerate(paths):
            left = (place % COLUMNS) * PITCH[0]
            above = top + (place // COLUMNS) * PITCH[1]
            titles.append({"x": left + ROOM, "y": above, "text": _path(path)})
            counts = {
                (row["before"], row["after"]): (row["n"], row["share"])
                for row in of_family
                if row["path"] == path
            }
            diagram(found, counts, left, above + _TITLE)
        top += -(-len(paths) // COLUMNS) * PITCH[1]
    width, height = COLUMNS * PITCH[0], top
    x = alt.X("x:Q", axis=None, scale=alt.Scale(domain=[0, width], nice=False))
    y = alt.Y("y:Q", axis=None, scale=alt.Scale(domain=[height, 0], nice=False))
    hue = alt.Color(
        "kind:N", title="First answer, and what it became",
        scale=alt.Scale(domain=list(KINDS), range=list(KINDS.values())),
        legend=alt.Legend(symbolType="square", symbolStrokeWidth=0),
    )  # fmt: skip
    numbers = [
        data([one for one in found.numbers if one["side"] == side])
        .mark_text(fontSize=_TYPE, color=INK, align=side, baseline="middle")
        .encode(x=x, y=y, text="text:N")
        for side in ("right", "left")
    ]
    return layered(
        data(found.bands).mark_area(opacity=0.55).encode(
            x=x, y=y, y2="to:Q", color=hue, detail="piece:N"
        ),
        data(found.bars).mark_rect(opacity=1).encode(x=x, x2="end:Q", y=y, y2="to:Q", color=hue),
        *numbers,
        data(titles).mark_text(fontSize=_TYPE + 1, color=INK, align="left", baseline="middle")
        .encode(x=x, y=y, text="text:N"),
        data(headings).mark_text(
            fontSize=_TYPE + 2, fontWeight="bold", color=INK, align="left", baseline="middle"
        ).encode(x=x, y=y, text="text:N"),
        width=width, height=height, view=alt.ViewBackground(stroke=None),
    )  # fmt: skip


def _path(path: str) -> str:
    return label(path.replace(">", " > "), 27)
