"""Accuracy after k attempts of an attacker (MedFuzz, Figure 2)."""

import altair as alt
import polars as pl

from .heading import INTERVALS, headed
from .marks import Measure, lines, value
from .panels import Value, counts, nothing, panels
from .survival import turn_axis

_ACCURACY = Measure("Right and not turned so far")
_ACROSS, _WIDTH, _HEIGHT = 2, 340, 240


def attacks(frame: pl.DataFrame) -> alt.VConcatChart:
    """A line for each study, a panel for each data set.

    Raises:
        InputError: the rows hold nothing to draw.
    """
    shown = panels(frame)
    rows = [row for row in shown.every() if row["accuracy"] is not None]
    if not rows:
        raise nothing("no replicate was kept")
    attempts = list(range(max(row["k"] for row in rows) + 1))
    drawn = []
    for dataset, own in shown.rows.items():
        values: list[Value] = [
            one | {"x": row["k"]} for row in own if (one := value(row, "accuracy")) is not None
        ]
        if values:
            chart = lines(values, lambda: turn_axis(attempts, "Attempts k"), _ACCURACY,
                          shown.names, attempts)  # fmt: skip
            drawn.append(chart.properties(width=_WIDTH, height=_HEIGHT, title=dataset))
    return headed(
        [alt.concat(*drawn, columns=_ACROSS)],
        "Accuracy after k attempts of an attacker",
        (
            counts([row["replicates"] for row in rows], "replicates"),
            counts([row["questions"] for row in rows], "questions"),
            f"k = 0: the first answers. {INTERVALS}",
        ),
        shown,
    )
