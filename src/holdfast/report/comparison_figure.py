"""Forest plot of differences between models or settings, with intervals."""

from collections.abc import Mapping, Sequence

import altair as alt
import polars as pl

from holdfast.results.charts.chart import (
    Drawing,
    Panels,
    Row,
    chain_label,
    distinct,
    headed,
    known,
    label,
    nothing,
)
from holdfast.results.charts.dots import Dots, Measure, Of
from holdfast.results.charts.theme import COLOURS
from holdfast.results.first_answers import FAMILY_AVERAGE
from holdfast.results.grid import grouped, short_names
from holdfast.results.runs import is_simulated
from holdfast.results.standing import FIGURE

from .comparison_labels import comparison_label, of_many, pair_label, side_names

_LIGHT, _DARK = COLOURS[0], COLOURS[5]
_NOTE = "Bars are 95% intervals, paired by question. Diamonds are averages of a family."
_ON_DARK = {"background": "#16181c", "text": "#e8e8e8", "faint": "#3a3f47"}


def comparison(frame: pl.DataFrame, *, dark: bool = False) -> alt.VConcatChart:
    """Draw a row for each difference and a panel for each protocol and data set.

    For three or more models, each measure also has its own panel.

    Args:
        frame: rows of ``holdfast.results.compare`` or ``standing``.
        dark: whether to draw light on dark, for a screen.

    Raises:
        InputError: the rows contain nothing to draw.
    """
    rows = known("low")(frame.to_dicts())
    if not rows:
        raise nothing("nothing was compared")
    drawing = Drawing(rows)
    is_many = of_many(rows)
    a, b = side_names(rows)
    short = (
        short_names((row[side] for row in rows for side in ("side_a", "side_b")), 0)
        if is_many
        else {}
    )
    less = "Differences between models" if is_many else f"{b} minus {a}"
    forest = Dots(
        x=Measure(
            "Difference, percentage points", format="+.0f", times=100, around=("low", "high"), to=5
        ),
        of=[Of("difference")],
        place=lambda row: str(row["place"]),
        series=None,
        zero=True,
        hue=_DARK if dark else _LIGHT,
        diamond=lambda row: row["arm"] == FAMILY_AVERAGE,
        width=420,
        room=(22, 0),
    )
    charts = []
    for figure_rows in grouped(rows, *(FIGURE if is_many else ("protocol", "dataset"))):
        figure = f": {comparison_label(figure_rows[0])}" * is_many
        title = label(f"{figure_rows[0]['protocol']}, {figure_rows[0]['dataset']}{figure}")
        charts.append(
            forest.part(_label_rows(figure_rows, short), drawing).chart.properties(title=title)
        )
    is_any_simulated = any(
        is_simulated(str(row[name])) for row in rows for name in ("model_a", "model_b")
    )
    notes = (_NOTE, drawing.note())
    chart = headed(charts, less, notes, Panels({}, (), (), is_any_simulated))
    if dark:
        chart.config = _darken(chart.config)
    return chart


def _label_rows(rows: Sequence[Row], short: Mapping[str, str]) -> list[Row]:
    """Return the rows with labels, numbered where two labels are equal."""
    placed_rows: list[Row] = []
    for row in rows:
        label = pair_label(row, short) if of_many([row]) else comparison_label(row)
        place = distinct(
            chain_label(label.replace(" > ", ">")),
            (row_above["place"] for row_above in placed_rows),
        )
        placed_rows.append({**row, "place": place, "study": "", "ink": 1.0})
    return placed_rows


def _darken(config: alt.Config) -> alt.Config:
    settings: Mapping[str, dict[str, str]] = {
        "axis": {
            "labelColor": _ON_DARK["text"], "titleColor": _ON_DARK["text"],
            "gridColor": _ON_DARK["faint"],
        },
        "title": {"color": _ON_DARK["text"], "subtitleColor": _ON_DARK["text"]},
        "view": {"stroke": _ON_DARK["faint"]},
    }  # fmt: skip
    as_light = config.to_dict()
    merged_settings = {
        name: {**as_light.get(name, {}), **light_settings}
        for name, light_settings in settings.items()
    }
    return alt.Config.from_dict(
        {**as_light, **merged_settings, "background": _ON_DARK["background"]}
    )
