"""First answers that a conversation leaves: right ones against wrong ones."""

import altair as alt
import polars as pl

from .heading import headed
from .marks import Measure, across, ranged, value
from .panels import Row, Value, counts, label, nothing, panels

_LEFT = Measure("First answers that were left")
_SIDES = {"right": "right first answer", "wrong": "wrong first answer"}
_APART = ("compound", "length")
_WIDTH, _ROW = 310, 22


def sticky_incorrect(frame: pl.DataFrame) -> alt.VConcatChart:
    """A row for each kind of conversation, right and wrong first answers, a panel for each study.

    Raises:
        InputError: the rows hold nothing to draw.
    """
    shown = panels(frame)
    rows = [
        row
        for row in shown.every()
        if row["arm"] not in _APART
        and (row["right_flip_rate"] is not None or row["wrong_flip_rate"] is not None)
    ]
    if not rows:
        raise nothing("no conversation begins with a readable answer")
    sides = list(_SIDES.values())
    drawn = []
    for dataset, study in dict.fromkeys((row["dataset"], row["study"]) for row in rows):
        own = [row for row in rows if (row["dataset"], row["study"]) == (dataset, study)]
        places = list(dict.fromkeys(map(_place, own)))
        values: list[Value] = [
            one | {"place": _place(row), "series": named}
            for row in own
            for side, named in _SIDES.items()
            if (one := value(row, f"{side}_flip_rate", f"{side}_low", f"{side}_high")) is not None
        ]
        chart = ranged(values, places, _LEFT, sides, sides, "series", None)
        drawn.append(
            chart.properties(width=_WIDTH, height=_ROW * len(places), title=f"{study} ({dataset})")
        )
    return headed(
        [alt.concat(*drawn, columns=across(list(map(_place, rows)), _WIDTH))],
        "Do right first answers move more easily than wrong ones?",
        (
            counts([row["n_right"] for row in rows], "right first answers"),
            counts([row["n_wrong"] for row in rows], "wrong ones"),
            "Share that some later turn leaves. Whiskers: 95% intervals. Not counted: "
            "conversations that push the model's own first answer. Chains and lengths: in the "
            "table.",
        ),
        shown,
    )


def _place(row: Row) -> str:
    path = (row["path"] or "").replace(">", " > ")
    return label(path if row["arm"] in ("followup", "single-turn") else f"{row['arm']}: {path}")
