"""Accuracy after each challenge (MedQA-Followup, Figure 2 and Table 2)."""

import altair as alt
import polars as pl

from holdfast.results import BASELINE, FAMILY_AVERAGE

from .heading import headed
from .marks import Measure, ranged, value
from .panels import Row, counts, label, nothing, panels

_ACCURACY = Measure("Accuracy")
_ARMS = (BASELINE, "followup", "single-turn", FAMILY_AVERAGE)
_WIDTH, _STUDY = 330, 7


def accuracy(frame: pl.DataFrame) -> alt.VConcatChart:
    """A row for each challenge and family average, a panel for each data set and protocol.

    Chains, lengths and conversations of offers have figures of their own.

    Raises:
        InputError: the rows hold nothing to draw.
    """
    shown = panels(frame)
    rows = []
    for dataset, own in shown.rows.items():
        drawn = [row for row in own if row["arm"] in _ARMS and row["accuracy"] is not None]
        beside = []
        for protocol in dict.fromkeys(row["protocol"] for row in drawn):
            those = [row for row in drawn if row["protocol"] == protocol]
            values = [
                one | {"place": _place(row)}
                for row in those
                if (one := value(row, "accuracy")) is not None
            ]
            if not any(row["arm"] != BASELINE for row in those):
                continue
            present = {row["study"] for row in those}
            names = [name for name in shown.names if name in present]
            places = _places(those)
            chart = ranged(values, places, _ACCURACY, shown.names, names)
            height = max(20, 8 + _STUDY * len(names)) * len(places)
            beside.append(
                chart.properties(width=_WIDTH, height=height, title=f"{dataset}: {protocol}")
            )
        rows += [alt.hconcat(*beside)] if beside else []
    if not rows:
        raise nothing(
            "no follow-up and no single-turn bias has an accuracy",
            "Conversations of offers have figures of their own, such as --table survival",
        )
    every = [row for row in shown.every() if row["arm"] in _ARMS]
    return headed(
        rows,
        "Accuracy after each challenge",
        (
            counts([row["n"] for row in every], "replies"),
            "Whiskers: 95% Wilson intervals. Averages: the mean over a family's challenges.",
        ),
        shown,
    )


def _place(row: Row) -> str:
    if row["arm"] == BASELINE:
        return "first answer"
    path = (row["path"] or "").replace(">", " > ")
    if row["arm"] == FAMILY_AVERAGE:
        return label(f"average of {row['family']}{f', {path}' if path else ''}")
    return label(path)


def _places(rows: list[Row]) -> list[str]:
    """Labels in order: the first answer, then each family with its average last."""
    firsts = [row for row in rows if row["arm"] == BASELINE]
    families = dict.fromkeys(row["family"] for row in rows if row["arm"] != BASELINE)
    found = dict.fromkeys(map(_place, firsts))
    for family in families:
        own = [row for row in rows if row["family"] == family and row["arm"] != BASELINE]
        own.sort(key=lambda row: row["arm"] == FAMILY_AVERAGE)
        found |= dict.fromkeys(map(_place, own))
    return list(found)
