"""Measures of Stick-or-Switch against the size of the model (Figures 2 to 6 by parameters)."""

from collections.abc import Sequence

import altair as alt
import polars as pl

from .heading import headed
from .marks import Measure, around, data, layered
from .panels import Row, Value, label, nothing, panels
from .theme import GREY, colour, ink, shape

_CONVICTION = {
    "single_shot": "Single-shot accuracy",
    "isolated": "Isolated choice, turn 1",
    "conviction": "Conviction S(T)",
    "tax": "Tax of conviction",
    "correct_rate": "Correct switch rate",
}
_ABSTENTION = {
    "single_shot_abstention": "Single-shot abstention",
    "isolated_abstention": "Isolated abstention, turn 1",
    "abstention": "Abstention S(T)",
    "abstention_tax": "Tax of abstention",
    "incorrect_rate": "Incorrect switch rate",
}
_TAXES = ("tax", "abstention_tax")
_SHARE = Measure("share")
_UNKNOWN = "unknown family"
_WIDTH, _HEIGHT = 130, 150


def scale(frame: pl.DataFrame) -> alt.VConcatChart:
    """A point for each model of known size, a panel for each measure, families in colour.

    Raises:
        InputError: no model has both a known size and a figure.
    """
    shown = panels(frame)
    every = shown.every()
    sized = [row for row in every if row["parameters"] is not None]
    if not any(row[name] is not None for row in sized for name in (*_CONVICTION, *_ABSTENTION)):
        raise nothing(
            "no model of known size", "Name sizes with --models CSV (model,family,parameters)"
        )
    families = tuple(dict.fromkeys(_family(row) for row in sized))
    billions = [row["parameters"] for row in sized]
    sizes = (min(billions) / 1.4, max(billions) * 1.4)
    ends = around(
        [100 * row[name] for row in sized for name in _TAXES if row[name] is not None], 10
    )
    rows: list[alt.HConcatChart] = []
    for dataset, own in shown.rows.items():
        columns = [
            (first, second)
            for first, second in zip(_CONVICTION, _ABSTENTION, strict=True)
            if _values(own, first) or _values(own, second)
        ]
        for place, measures in enumerate((_CONVICTION, _ABSTENTION)):
            drawn = []
            for column in columns:
                name = column[place]
                y = Measure("percentage points", ends, ".0f") if name in _TAXES else _SHARE
                # a measure without figures keeps its place, empty: rows stand below each other
                chart = _panel(_values(own, name), y, sizes, families)
                drawn.append(chart.properties(title=measures[name]))
            row = alt.hconcat(*drawn, spacing=14)
            rows += [row if place else row.properties(title=dataset)] if drawn else []
    unsized = dict.fromkeys(row["study"] for row in every if row["parameters"] is None)
    models = len({row["study"] for row in sized})
    return headed(
        rows,
        "Conviction, abstention and flexibility by the size of the model",
        (
            f"{models} {'model' if models == 1 else 'models'} of known size; a line joins the "
            "models of a family. n and 95% intervals: tables survival, tax and flexibility.",
            "S(T): target kept to the last turn. Taxes: to single-shot accuracy.",
            f"Size unknown, not drawn: {', '.join(unsized)}." if unsized else "",
        ),
        shown,
        spacing=14,
    )


def _family(row: Row) -> str:
    return label(row["family"]) or _UNKNOWN


def _values(rows: Sequence[Row], name: str) -> list[Value]:
    times = 100 if name in _TAXES else 1
    return [
        {
            "family": _family(row),
            "ink": row["ink"],
            "x": row["parameters"],
            "y": row[name] * times,
        }
        for row in rows
        if row["parameters"] is not None and row[name] is not None
    ]


def _panel(
    values: list[Value], y: Measure, sizes: tuple[float, float], families: tuple[str, ...]
) -> alt.LayerChart:
    hues = colour(families, "family", "Family")
    x = alt.X(
        "x:Q",
        title="Parameters, bn (log)",
        scale=alt.Scale(type="log", domain=list(sizes), nice=False),
        axis=alt.Axis(values=[0.1, 0.3, 1, 3, 10, 30, 100, 300, 1000, 3000], format="~g"),
    )
    zero = data([{"y": 0}]).mark_rule(color=GREY, strokeDash=[5, 4]).encode(y=y.y("y"))
    return layered(
        *([zero] if y.domain[0] < 0 < y.domain[1] else []),
        data(values).mark_line(strokeWidth=1, opacity=0.5).encode(
            x=x, y=y.y("y"), color=hues, detail="ink:N"
        ),
        data(values).mark_point(filled=True, size=60).encode(
            x=x, y=y.y("y"), color=hues, shape=shape(families, "family", "Family"), opacity=ink()
        ),
        width=_WIDTH, height=_HEIGHT,
    )  # fmt: skip
