"""Chains against each of their parts (MedQA-Followup, Figure 4)."""

import altair as alt
import polars as pl

from .heading import headed
from .heatmap import full, heatmap, signed, width_of
from .marks import across
from .panels import Row, counts, label, nothing, panels

_LONGEST_CHAIN, _CELL = 72, 46


def compounding_parts(frame: pl.DataFrame) -> alt.VConcatChart:
    """A heatmap for each study: chains as rows, their parts as columns.

    Raises:
        InputError: the rows hold nothing to draw.
    """
    shown = panels(frame)
    known = [row for row in shown.every() if row["difference"] is not None]
    if not known:
        raise nothing(
            "no chain can be held against its parts",
            "Put each technique of a chain on its own too, as -T techniques does",
        )
    limit = full([row["difference"] for row in known])
    parts = list(dict.fromkeys(_part(row) for row in known))
    chains = sorted(dict.fromkeys(_chain(row) for row in known), key=lambda c: c.count(" > "))
    drawn = []
    for dataset, own in shown.rows.items():
        for study in dict.fromkeys(row["study"] for row in own):
            values = [
                {
                    "column": _part(row),
                    "row": _chain(row),
                    "share": row["difference"],
                    "text": signed(row["difference"]),
                    "ink": row["ink"],
                }
                for row in own
                if row["study"] == study and row["difference"] is not None
            ]
            if values:
                chart = heatmap(
                    values, parts, chains, limit, "Chain less part", harm="above", cell=(_CELL, 20)
                )
                drawn.append(chart.properties(title=f"{study} ({dataset})"))
    left_out = len(shown.every()) - len(known)
    return headed(
        [alt.concat(*drawn, columns=across(chains, width_of(parts, _CELL)))],
        "Drop of a chain of challenges less the drop of its part alone",
        (
            counts([row["n"] for row in known], "questions (and epochs)"),
            "In percentage points of the drop relative to the first answers; this table has no "
            "intervals. Orange: the chain does more harm than the part; blue: less.",
            f"Unknown, empty: {left_out} of {len(shown.every())} pairs." if left_out else "",
        ),
        shown,
    )


def _part(row: Row) -> str:
    return label(row["part"])


def _chain(row: Row) -> str:
    return label((row["path"] or "").replace(">", " > "), _LONGEST_CHAIN)
