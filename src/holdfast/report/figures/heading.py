"""The heading of a figure: what is counted, how many, and what a reader must know."""

import textwrap
from collections.abc import Sequence

import altair as alt
from altair.typing import ChartType

from .panels import Panels
from .theme import config

INTERVALS = "Bands and whiskers: 95% intervals."
_WIDE = 1320
"""Characters of a line, times the size of their type."""


def headed(
    rows: Sequence[ChartType],
    title: str,
    notes: Sequence[str],
    panels: Panels,
    spacing: int = 28,
    size: int = 11,
) -> alt.VConcatChart:
    """The finished figure.

    Args:
        rows: charts, one below the other.
        title: what is counted.
        notes: sentences of the subtitle; empty ones are left out.
        panels: what was drawn, for what must be said of its studies.
        spacing: between rows, in pixels.
        size: of the type, in pixels.
    """
    said = [*panels.notes, *(note for note in notes if note)]
    lines = [line for note in said for line in textwrap.wrap(note, _WIDE // size)]
    heading = alt.TitleParams(
        text=f"{title} [SIMULATED]" if panels.simulated else title,
        subtitle=lines,
        fontSize=size + 4,
        offset=16,
    )
    chart: alt.VConcatChart = alt.vconcat(*rows, spacing=spacing, title=heading)
    _part_offsets(chart)
    chart.config = config(size)
    return chart


def _part_offsets(chart: ChartType) -> None:
    """Let each panel place its series in rows of its own height; else the first one's is taken."""
    for kind in ("vconcat", "hconcat", "concat"):
        parts = getattr(chart, kind, alt.Undefined)
        if parts is alt.Undefined or not isinstance(parts, list):
            continue
        apart = alt.ScaleResolveMap(xOffset="independent", yOffset="independent")
        chart.resolve = alt.Resolve(scale=apart)
        for part in parts:
            _part_offsets(part)
