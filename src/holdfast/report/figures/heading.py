"""The heading of a figure: what is counted, how many, and what a reader must know."""

import textwrap
from collections.abc import Sequence

import altair as alt
from altair.typing import ChartType

from .panels import Panels
from .theme import config

INTERVALS = "Bands and whiskers: 95% intervals."
_CHARACTERS = 120


def headed(
    rows: Sequence[ChartType], title: str, notes: Sequence[str], panels: Panels, spacing: int = 28
) -> alt.VConcatChart:
    """The finished figure.

    Args:
        rows: charts, one below the other.
        title: what is counted.
        notes: sentences of the subtitle; empty ones are left out.
        panels: what was drawn, for what must be said of its studies.
        spacing: between rows, in pixels.
    """
    said = [*panels.notes, *(note for note in notes if note)]
    lines = [line for note in said for line in textwrap.wrap(note, _CHARACTERS)]
    heading = alt.TitleParams(
        text=f"{title} [SIMULATED]" if panels.simulated else title,
        subtitle=lines,
        fontSize=15,
        offset=16,
    )
    chart: alt.VConcatChart = alt.vconcat(*rows, spacing=spacing, title=heading)
    chart.config = config()
    return chart
