"""Beliefs by turn, and confidence before a switch against none (Stick-or-Switch, Limitations)."""

from collections.abc import Mapping, Sequence
from functools import partial

import altair as alt
import polars as pl

from .heading import INTERVALS, headed
from .marks import Measure, dodged, lines, value
from .panels import Row, Value, counts, label, nothing, panels
from .survival import turn_axis

_HEADINGS = {
    "positive": "Positive conviction",
    "negative": "Negative conviction",
    "flexible-correct": "Flexibility",
}
_BELIEFS = {"target": "target", "suggested": "option offered"}
_BEFORE = {"before_switch": "held answer, before a switch", "before_stick": "held answer, kept"}
_SERIES = (*_BELIEFS.values(), *_BEFORE.values())
_BELIEF = Measure("Belief after the reply")
_CONFIDENCE = Measure("Belief, turn before")
_WIDTH, _HEIGHT, _LOW = 230, 140, 100


def beliefs(frame: pl.DataFrame) -> alt.VConcatChart:
    """A row of panels for each study: beliefs by turn, and confidence before a switch or none.

    Raises:
        InputError: the rows hold nothing to draw.
    """
    shown = panels(frame)
    turns = sorted({row["turn"] for row in shown.every()})
    rows = []
    for dataset, own in shown.rows.items():
        for study in dict.fromkeys(row["study"] for row in own):
            those = [row for row in own if row["study"] == study]
            arms = dict.fromkeys(row["arm"] for row in those)
            drawn = [_panel([r for r in those if r["arm"] == arm], arm, turns) for arm in arms]
            kept = [chart for chart in drawn if chart is not None]
            if kept:
                rows.append(alt.hconcat(*kept, title=f"{dataset}: {study}"))
    if not rows:
        raise nothing("no turn has beliefs", "Ask a model that gives log-probabilities")
    every = shown.every()
    return headed(
        rows,
        "Beliefs by turn, and confidence before a switch",
        (
            counts([row["n"] for row in every], "turns with beliefs"),
            counts([row["n_switched"] for row in every if row["n_switched"]], "switches"),
            f"Mean probabilities. {INTERVALS} Below: the belief that the held answer had "
            "at the turn before it was given up, and before it was kept.",
        ),
        shown,
    )


def _panel(rows: Sequence[Row], arm: str, turns: list[int]) -> alt.VConcatChart | None:
    x = partial(turn_axis, turns, "Turn")
    believed, before = _values(rows, _BELIEFS), _values(rows, _BEFORE)
    title = "Mean probability of"
    charts = []
    if believed:
        chart = lines(believed, x, _BELIEF, _SERIES, turns, "series", title)
        charts.append(chart.properties(width=_WIDTH, height=_HEIGHT))
    if before:
        chart = dodged(before, x, _CONFIDENCE, _SERIES[len(_BELIEFS) :], "series", title)
        charts.append(chart.properties(width=_WIDTH, height=_LOW))
    return (
        alt.vconcat(*charts, title=_HEADINGS.get(arm, label(arm)), spacing=10) if charts else None
    )


def _values(rows: Sequence[Row], measures: Mapping[str, str]) -> list[Value]:
    found = []
    for row in rows:
        for name, series in measures.items():
            one = value(row, name, f"{name}_low", f"{name}_high")
            if one is not None:
                found.append(one | {"x": row["turn"], "series": series})
    return found
