"""Accuracy by the length of the context (MedQA-Followup, Figure 3)."""

from collections.abc import Callable

import altair as alt
import polars as pl

from .heading import INTERVALS, headed
from .marks import Measure, data, layered, lines, value
from .panels import Row, counts, label, nothing, panels
from .theme import GREY

_ACCURACY = Measure("Accuracy")
_WIDTH, _HEIGHT, _ACROSS = 250, 190, 3


def lengths(frame: pl.DataFrame) -> alt.VConcatChart:
    """A line for each technique, a panel for each study, with the first answers dashed.

    Raises:
        InputError: the rows hold nothing to draw.
    """
    shown = panels(frame)
    every = [row for row in shown.every() if row["accuracy"] is not None]
    if not any(row["sentences"] is not None for row in every):
        raise nothing("no context of a fixed length has an accuracy")
    techniques = tuple(dict.fromkeys(_technique(row) for row in every))
    places = sorted({row["sentences"] for row in every if row["sentences"] is not None})
    drawn = []
    for dataset, own in shown.rows.items():
        for study in dict.fromkeys(row["study"] for row in own):
            those = [row for row in own if row["study"] == study and row["sentences"] is not None]
            chart = _panel(those, techniques, places)
            if chart is not None:
                drawn.append(chart.properties(title=f"{study} ({dataset})"))
    return headed(
        [alt.concat(*drawn, columns=_ACROSS)],
        "Accuracy after a follow-up, by the length of its context",
        (
            counts([row["n"] for row in every], "questions (and epochs)"),
            f"{INTERVALS} Dashed: accuracy of the first answers to the same questions.",
        ),
        shown,
    )


def _technique(row: Row) -> str:
    return label(row["technique"])


def _axis(places: list[int]) -> Callable[[], alt.X]:
    room = max(1.0, (places[-1] - places[0]) * 0.06)
    ends = [places[0] - room, places[-1] + room]

    def x() -> alt.X:
        return alt.X(
            "x:Q", title="Sentences of the context", axis=alt.Axis(values=places, format="d"),
            scale=alt.Scale(domain=ends, nice=False, zero=False),
        )  # fmt: skip

    return x


def _panel(
    rows: list[Row], techniques: tuple[str, ...], places: list[int]
) -> alt.LayerChart | None:
    values = []
    for row in rows:
        one = value(row, "accuracy")
        if one is not None:
            values.append(one | {"series": _technique(row), "x": row["sentences"]})
    if not values:
        return None
    firsts = [
        {"y": first} for first in dict.fromkeys(r["baseline"] for r in rows) if first is not None
    ]
    dashed = data(firsts).mark_rule(color=GREY, strokeDash=[5, 4])
    return layered(
        dashed.encode(y=_ACCURACY.y("y")),
        lines(values, _axis(places), _ACCURACY, techniques, places, "series", "Technique"),
        width=_WIDTH, height=_HEIGHT,
    )  # fmt: skip
