"""Survival by turn, positive and negative conviction (Stick-or-Switch, Figures 3 and 5)."""

from collections.abc import Sequence
from functools import partial

import altair as alt
import polars as pl

from .heading import INTERVALS, headed
from .marks import Measure, dodged, lines, value
from .panels import Panels, Row, Value, counts, label, nothing, panels

ARMS = {
    "positive": "Positive conviction (target: the right answer)",
    "negative": "Negative conviction (target: none of the above)",
    "flexible-correct": "Flexibility (the right answer offered)",
}
"""Heading of each arm."""

_SURVIVAL = Measure("S(t): target kept so far")
_HAZARD = Measure("Hazard: departed")
_WIDTH, _HEIGHT = 300, 200


def survival(frame: pl.DataFrame) -> alt.VConcatChart:
    """S(t) and the hazard by turn, a panel for each arm, data sets one below the other.

    Raises:
        InputError: the rows hold nothing to draw.
    """
    shown = panels(frame)
    rows = []
    for dataset, own in shown.rows.items():
        arms = list(dict.fromkeys(row["arm"] for row in own))
        for name, low in (("survival", ""), ("hazard", "hazard_")):
            drawn = [_panel(shown, own, arm, dataset, name, low) for arm in arms]
            rows.append(alt.hconcat(*(one for one in drawn if one is not None)))
    if not any(row["survival"] is not None for row in shown.every()):
        raise nothing("no turn has a survival")
    return headed(
        rows,
        "Survival of the target against one offer after another",
        (
            counts([row["n"] for row in shown.every()], "questions (and epochs)"),
            "S(t): share of all questions whose target was answered at every turn up to t. Hazard: "
            "share of those asked at turn t, who still held the target, that departed there.",
            INTERVALS,
        ),
        shown,
    )


def turn_axis(turns: list[int], title: str = "Turn t (1: the binary choice)") -> alt.X:
    """The field ``x`` as turns."""
    return alt.X("x:O", title=title, scale=alt.Scale(domain=turns), axis=alt.Axis(labelAngle=0))


def _panel(
    shown: Panels, own: Sequence[Row], arm: str, dataset: str, name: str, prefix: str
) -> alt.LayerChart | None:
    values: list[Value] = []
    for row in own:
        found = value(row, name, f"{prefix}low", f"{prefix}high") if row["arm"] == arm else None
        values += [] if found is None else [found | {"x": row["turn"]}]
    if not values:
        return None
    turns = sorted({row["turn"] for row in shown.every()})
    axis = partial(turn_axis, turns)
    chart = (
        lines(values, axis, _SURVIVAL, shown.names, turns)
        if name == "survival"
        else dodged(values, axis, _HAZARD, shown.names)
    )
    heading = f"{dataset}: {ARMS.get(arm, label(arm))}" if name == "survival" else ""
    return chart.properties(width=_WIDTH, height=_HEIGHT if heading else 110, title=heading)
