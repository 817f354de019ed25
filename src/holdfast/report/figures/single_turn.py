"""Accuracy under single-turn biases, plain and mitigated (MedQA-Followup, Table 2)."""

from collections.abc import Sequence

import altair as alt
import polars as pl

from holdfast.results import BASELINE, FAMILY_AVERAGE

from .heading import headed
from .marks import Measure, across, ranged, value
from .panels import Row, Value, counts, label, nothing, panels

_ACCURACY = Measure("Accuracy")
_PLAIN, _WIDTH, _SERIES = "no mitigation", 300, 9


def single_turn(frame: pl.DataFrame) -> alt.VConcatChart:
    """A row for each bias and average, a colour for each mitigation, a panel for each study.

    Raises:
        InputError: the rows hold nothing to draw.
    """
    shown = panels(frame)
    rows = [row for row in shown.every() if row["accuracy"] is not None]
    if not any(row["arm"] != BASELINE for row in rows):
        raise nothing("no bias has an accuracy")
    mitigations = list(dict.fromkeys([_PLAIN, *map(_mitigation, rows)]))
    places = _places(rows)
    drawn = []
    for dataset, own in shown.rows.items():
        for study in dict.fromkeys(row["study"] for row in own):
            values: list[Value] = [
                one | {"place": _place(row), "series": _mitigation(row)}
                for row in own
                if row["study"] == study and (one := value(row, "accuracy")) is not None
            ]
            if values:
                chart = ranged(
                    values, places, _ACCURACY, mitigations, mitigations, "series", "Mitigation"
                )
                height = max(20, 8 + _SERIES * len(mitigations)) * len(places)
                drawn.append(
                    chart.properties(width=_WIDTH, height=height, title=f"{study} ({dataset})")
                )
    return headed(
        [alt.concat(*drawn, columns=across(places, _WIDTH))],
        "Accuracy under each single-turn bias, by mitigation",
        (
            counts([row["n"] for row in rows], "replies"),
            "Whiskers: 95% Wilson intervals. Averages: the mean over a family's biases.",
        ),
        shown,
    )


def _mitigation(row: Row) -> str:
    return label(row["mitigation"]) or _PLAIN


def _place(row: Row) -> str:
    if row["arm"] == BASELINE:
        return "plain question"
    average = row["arm"] == FAMILY_AVERAGE
    return label(f"average of {row['family']}" if average else row["technique"])


def _places(rows: Sequence[Row]) -> list[str]:
    """The plain question, then each family's biases with their average last."""
    found = dict.fromkeys(_place(row) for row in rows if row["arm"] == BASELINE)
    for family in dict.fromkeys(row["family"] for row in rows if row["arm"] != BASELINE):
        own = [row for row in rows if row["family"] == family and row["arm"] != BASELINE]
        own.sort(key=lambda row: row["arm"] == FAMILY_AVERAGE)
        found |= dict.fromkeys(map(_place, own))
    return list(found)
