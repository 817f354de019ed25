"""Chains: the observed drop against the expected additive one (MedQA-Followup, Figure 5)."""

import altair as alt
import polars as pl

from .heading import headed
from .marks import Measure, around, data, diagonal, layered
from .panels import counts, nothing, panels
from .theme import GREY, colour, ink, shape

_SIDE, _ACROSS = 360, 2


def compounding(frame: pl.DataFrame) -> alt.VConcatChart:
    """A point for each chain and study, with the diagonal of additive effects.

    Raises:
        InputError: the rows hold nothing to draw.
    """
    shown = panels(frame)
    every = shown.every()
    known = [row for row in every if row["drop"] is not None and row["expected_drop"] is not None]
    if not known:
        raise nothing(
            "no chain has an expected drop",
            "Put each technique of a chain on its own too, as -T techniques does",
        )
    ends = around([row[name] for row in known for name in ("drop", "expected_drop")])
    x = Measure("Expected additive drop", ends)
    y = Measure("Observed drop of the chain", ends)
    drawn = []
    for dataset, own in shown.rows.items():
        values = [
            {
                "study": row["study"],
                "ink": row["ink"],
                "x": row["expected_drop"],
                "y": row["drop"],
                "challenges": f"{row['challenges']}",
            }
            for row in own
            if row["drop"] is not None and row["expected_drop"] is not None
        ]
        if values:
            plane = _plane(values, shown.names, x, y)
            drawn.append(plane.properties(title=dataset))
    left_out = len(every) - len(known)
    return headed(
        [alt.concat(*drawn, columns=_ACROSS)],
        "Chains of challenges: observed against expected drop in accuracy",
        (
            counts([row["n"] for row in known], "questions (and epochs)"),
            "Drops relative to the first answers; this table has no intervals of them. Expected: "
            "every answer that any single part made wrong stays wrong. Below the diagonal a chain "
            "is sub-additive.",
            f"Without an expected drop, not drawn: {left_out} of {len(every)} chains."
            if left_out
            else "",
        ),
        shown,
    )


def _plane(
    values: list[dict[str, object]], names: tuple[str, ...], x: Measure, y: Measure
) -> alt.LayerChart:
    low, high = x.domain
    span = high - low
    near, far = low + 0.04 * span, high - 0.04 * span
    words = [
        data([{"x": near, "y": far, "text": "more harm than expected"}]).mark_text(align="left"),
        data([{"x": far, "y": near, "text": "sub-additive"}]).mark_text(align="right"),
    ]
    labels = [
        word.encode(x=x.x("x"), y=y.y("y"), text="text:N", color=alt.value(GREY)) for word in words
    ]
    lengths = sorted({str(one["challenges"]) for one in values}, key=int)
    size = alt.Size(
        "challenges:N", title="Challenges in the chain",
        scale=alt.Scale(domain=lengths, range=[55 + 65 * place for place in range(len(lengths))]),
    )  # fmt: skip
    return layered(
        diagonal(x.domain, x, y),
        *labels,
        data(values).mark_point(filled=True).encode(
            x=x.x("x"), y=y.y("y"), color=colour(names), shape=shape(names), opacity=ink(),
            size=size,
        ),
        width=_SIDE, height=_SIDE,
    )  # fmt: skip
