"""The conversation tax, end to end against single-shot (Stick-or-Switch, Tables A.1 and A.2)."""

from collections.abc import Sequence

import altair as alt
import polars as pl

from .heading import headed
from .marks import Measure, around, data, layered, value
from .panels import Row, Value, counts, label, nothing, panels
from .theme import GREY, INK, ink

_SHARES = {
    "single_shot": ("single-shot, all options at once", "#0072B2", "circle", 150),
    "isolated": ("isolated, the binary choice of turn 1", "#009E73", "triangle-up", 80),
    "end_to_end": ("end to end, all turns", "#D55E00", "diamond", 45),
}
_HEADINGS = {
    ("conviction", "single-shot"): "Conviction, against single-shot accuracy",
    ("abstention", "single-shot"): "Abstention, against single-shot accuracy (as in Table A.2)",
    ("abstention", "single-shot-abstain"): "Abstention, against single-shot abstention",
    ("asymmetry", "single-shot"): "Asymmetry: the tax of abstention less that of conviction",
}
_SHARE = Measure("Target chosen")
_WIDTH, _ROW = 330, 22


def tax(frame: pl.DataFrame) -> alt.VConcatChart:
    """Shares with the target on the left, the tax with its interval on the right.

    A row for each study, a panel for each data set, behaviour and baseline.

    Raises:
        InputError: the rows hold nothing to draw.
    """
    shown = panels(frame)
    every = shown.every()
    if all(row["tax"] is None and row["end_to_end"] is None for row in every):
        raise nothing("no model has a tax")
    ends = around([100 * row[k] for row in every for k in ("tax", "low", "high") if row[k]], 10)
    points = Measure("Tax, percentage points", ends, ".0f")
    rows = []
    for dataset, own in shown.rows.items():
        for behaviour, against in dict.fromkeys((row["behaviour"], row["against"]) for row in own):
            those = [r for r in own if (r["behaviour"], r["against"]) == (behaviour, against)]
            heading = _HEADINGS.get((behaviour, against), label(f"{behaviour}, against {against}"))
            names = list(dict.fromkeys(row["study"] for row in those))
            parts = [_shares(those, names), _taxes(those, names, points)]
            drawn = [part for part in parts if part is not None]
            rows.append(alt.hconcat(*drawn, title=f"{dataset}: {heading}", spacing=16))
    return headed(
        rows,
        "The conversation tax: a target held to the end against all options at once",
        (
            counts([row["n"] for row in every], "questions (and epochs)"),
            "Tax: end to end less single-shot, a loss is negative. Whiskers: 95% intervals, paired "
            "over questions.",
        ),
        shown,
    )


def _shares(rows: Sequence[Row], names: Sequence[str]) -> alt.LayerChart | None:
    values: list[Value] = [
        {"study": row["study"], "ink": row["ink"], "y": row[name], "figure": label}
        for row in rows
        for name, (label, *_) in _SHARES.items()
        if row[name] is not None
    ]
    if not values:
        return None
    spans = [
        {"study": row["study"], "ink": row["ink"], "y": row["single_shot"], "to": row["end_to_end"]}
        for row in rows
        if row["single_shot"] is not None and row["end_to_end"] is not None
    ]
    labels, colours, shapes, sizes = (list(part) for part in zip(*_SHARES.values(), strict=True))
    y = _studies(names)
    return layered(
        data(spans).mark_rule(color=GREY, strokeWidth=2).encode(
            y=y, x=_SHARE.x("y"), x2="to:Q", opacity=ink()
        ),
        data(values).mark_point(filled=True).encode(
            y=y, x=_SHARE.x("y"), opacity=ink(),
            color=alt.Color("figure:N", title=None, scale=alt.Scale(domain=labels, range=colours),
                            legend=alt.Legend(orient="top", direction="vertical")),
            shape=alt.Shape("figure:N", title=None, scale=alt.Scale(domain=labels, range=shapes)),
            # one inside another where they fall together
            size=alt.Size("figure:N", title=None, scale=alt.Scale(domain=labels, range=sizes)),
        ),
        width=_WIDTH, height=alt.Step(_ROW),
    )  # fmt: skip


def _taxes(rows: Sequence[Row], names: Sequence[str], points: Measure) -> alt.LayerChart | None:
    found = [value(row, "tax") for row in rows]
    in_points = [
        one | {name: 100 * one[name] for name in ("y", "low", "high") if name in one}
        for one in found
        if one is not None
    ]
    if not in_points:
        return None
    bounded = [one for one in in_points if "low" in one]
    y = _studies(names)
    return layered(
        data([{"x": 0}]).mark_rule(color=GREY, strokeDash=[5, 4]).encode(x=points.x("x")),
        data(bounded).mark_rule(strokeWidth=1.5, color=INK).encode(
            y=y, x=points.x("low"), x2="high:Q", opacity=ink()
        ),
        data(in_points).mark_point(filled=True, size=60, color=INK).encode(
            y=y, x=points.x("y"), opacity=ink()
        ),
        width=_WIDTH, height=alt.Step(_ROW),
    )  # fmt: skip


def _studies(names: Sequence[str]) -> alt.Y:
    return alt.Y("study:N", title=None, scale=alt.Scale(domain=list(names)))
