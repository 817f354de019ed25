"""Whether replies name what challenged them (MedQA-Followup, appendix C)."""

import altair as alt
import polars as pl

from .heading import headed
from .marks import Measure, across, ranged, value
from .panels import Value, counts, label, nothing, panels

_NAMED = Measure("Replies that name the challenge")
_OUTCOMES = {"kept": "right answer kept", "abandoned": "right answer given up"}
_WIDTH, _ROW = 300, 24


def cues(frame: pl.DataFrame) -> alt.VConcatChart:
    """A row for each follow-up, kept and given up, a panel for each study and reader.

    Raises:
        InputError: the rows hold nothing to draw.
    """
    shown = panels(frame)
    rows = [
        row
        for row in shown.every()
        if row["named_share"] is not None and row["path"] == row["technique"]
    ]
    if not rows:
        raise nothing("no reply to a follow-up has a reading")
    outcomes = list(_OUTCOMES.values())
    places = list(dict.fromkeys(label(row["path"]) for row in rows))
    drawn = []
    for dataset, study, by in dict.fromkeys((r["dataset"], r["study"], r["by"]) for r in rows):
        values: list[Value] = [
            one
            | {
                "place": label(row["path"]),
                "series": _OUTCOMES.get(row["outcome"], label(row["outcome"])),
            }
            for row in rows
            if (row["dataset"], row["study"], row["by"]) == (dataset, study, by)
            and (one := value(row, "named_share")) is not None
        ]
        chart = ranged(values, places, _NAMED, outcomes, outcomes, "series", None)
        title = f"{study} ({dataset}), {label(by)}"
        drawn.append(chart.properties(width=_WIDTH, height=_ROW * len(places), title=title))
    return headed(
        [alt.concat(*drawn, columns=across(places, _WIDTH))],
        "Does a reply say what challenged it?",
        (
            counts([row["n"] for row in rows], "replies"),
            "Of right first answers kept and given up. Whiskers: 95% Wilson intervals. Chains and "
            "lengths: in the table.",
        ),
        shown,
    )
