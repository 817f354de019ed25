"""Differences between two models or settings, with their intervals (a forest plot)."""

from collections.abc import Mapping, Sequence

import altair as alt
import polars as pl

from holdfast.report.comparison_words import comparison_label
from holdfast.results import FAMILY_AVERAGE, is_simulated

from .heading import headed
from .marks import Measure, around, data, layered
from .panels import Panels, Row, Value, label, nothing
from .theme import COLOURS, GREY

_WIDTH, _ROW = 420, 22
_KINDS = {"challenge": "circle", "average": "diamond"}
_LIGHT, _DARK = COLOURS[0], COLOURS[5]
_NOTES = ("Points with 95% intervals, paired over questions; diamonds average a family.",)
_ON_DARK = {"background": "#16181c", "text": "#e8e8e8", "faint": "#3a3f47"}


def comparison(frame: pl.DataFrame, *, dark: bool = False) -> alt.VConcatChart:
    """A row for each difference, a panel for each protocol and data set.

    Args:
        frame: rows of ``holdfast.results.compare``.
        dark: drawn light on dark, for a screen.

    Raises:
        InputError: the rows hold nothing to draw.
    """
    rows = [row for row in frame.to_dicts() if row["low"] is not None]
    if not rows:
        raise nothing("nothing was compared")
    ends = around([100 * row[name] for row in rows for name in ("low", "high")], 5)
    points = Measure("B less A, percentage points", ends, "+.0f")
    drawn = []
    for study in dict.fromkeys((row["protocol"], row["dataset"]) for row in rows):
        own = [row for row in rows if (row["protocol"], row["dataset"]) == study]
        forest = _forest(own, points, _DARK if dark else _LIGHT)
        drawn.append(forest.properties(title=label(f"{study[0]}, {study[1]}")))
    simulated = any(is_simulated(str(row[name])) for row in rows for name in ("model_a", "model_b"))
    chart = headed(drawn, "B less A", _NOTES, Panels({}, (), (), simulated))
    if dark:
        chart.config = _dark(chart.config)
    return chart


def _forest(rows: Sequence[Row], points: Measure, hue: str) -> alt.LayerChart:
    places = _places(rows)
    values: list[Value] = [
        {
            "place": place,
            "kind": "average" if row["arm"] == FAMILY_AVERAGE else "challenge",
            **{
                name: 100 * row[column]
                for name, column in (("y", "difference"), ("low", "low"), ("high", "high"))
            },
        }
        for place, row in zip(places, rows, strict=True)
    ]
    y = alt.Y("place:N", title=None, scale=alt.Scale(domain=places))
    kinds = alt.Shape(
        "kind:N",
        legend=None,
        scale=alt.Scale(domain=list(_KINDS), range=list(_KINDS.values())),
    )
    return layered(
        data([{"x": 0}]).mark_rule(color=GREY, strokeDash=[5, 4]).encode(x=points.x("x")),
        data(values).mark_rule(strokeWidth=1.5, color=hue).encode(
            y=y, x=points.x("low"), x2="high:Q"
        ),
        data(values).mark_point(filled=True, size=70, color=hue, opacity=1).encode(
            y=y, x=points.x("y"), shape=kinds
        ),
        width=_WIDTH, height=_ROW * len(places),
    )  # fmt: skip


def _places(rows: Sequence[Row]) -> list[str]:
    """A label for each row; two that are shown alike are numbered."""
    places: list[str] = []
    for row in rows:
        name, number = label(comparison_label(row)), 2
        found = name
        while found in places:
            found, number = f"{name} ({number})", number + 1
        places.append(found)
    return places


def _dark(config: alt.Config) -> alt.Config:
    settings: Mapping[str, dict[str, str]] = {
        "axis": {
            "labelColor": _ON_DARK["text"], "titleColor": _ON_DARK["text"],
            "gridColor": _ON_DARK["faint"],
        },
        "title": {"color": _ON_DARK["text"], "subtitleColor": _ON_DARK["text"]},
        "view": {"stroke": _ON_DARK["faint"]},
    }  # fmt: skip
    as_light = config.to_dict()
    merged = {name: {**as_light.get(name, {}), **own} for name, own in settings.items()}
    return alt.Config.from_dict({**as_light, **merged, "background": _ON_DARK["background"]})
