"""Correct against incorrect switches (Stick-or-Switch, Figure 6)."""

import altair as alt
import polars as pl

from .heading import headed
from .marks import Measure, data, diagonal, layered
from .panels import Row, Value, counts, nothing, panels
from .theme import GREY, colour, ink, shape

_CORRECT = Measure("Correct switch rate")
_INCORRECT = Measure("Incorrect switch rate")
_SIDE, _ACROSS = 330, 2


def flexibility(frame: pl.DataFrame) -> alt.VConcatChart:
    """A point for each study in the plane of both rates, with the diagonal of blind switching.

    Raises:
        InputError: the rows hold nothing to draw.
    """
    shown = panels(frame)
    drawn = []
    for dataset, own in shown.rows.items():
        values = [_point(row) for row in own if None not in _rates(row)]
        if values:
            drawn.append(_plane(values, shown.names).properties(title=dataset))
    if not drawn:
        raise nothing("no model has both switch rates")
    without = dict.fromkeys(row["study"] for row in shown.every() if None in _rates(row))
    every = shown.every()
    return headed(
        [alt.concat(*drawn, columns=_ACROSS)],
        "Flexibility: abstentions given up for a right and for a wrong offer",
        (
            counts([row["n_correct"] for row in every], "abstentions offered the right answer"),
            counts([row["n_incorrect"] for row in every], "abstentions offered a wrong one"),
            "Whiskers: 95% intervals. Diagonal: blind switching, right and wrong offers taken "
            "alike. Bottom right: right ones only.",
            f"Without one of the rates, not drawn: {', '.join(without)}." if without else "",
        ),
        shown,
    )


def _rates(row: Row) -> tuple[float | None, float | None]:
    return row["correct_rate"], row["incorrect_rate"]


def _point(row: Row) -> Value:
    x, y = _rates(row)
    found = {"study": row["study"], "ink": row["ink"], "x": x, "y": y}
    for side in ("correct", "incorrect"):
        low, high = row[f"{side}_low"], row[f"{side}_high"]
        if low is not None and high is not None:
            found |= {f"{side}_low": low, f"{side}_high": high}
    return found


def _plane(values: list[Value], names: tuple[str, ...]) -> alt.LayerChart:
    hues = colour(names)
    across = [one for one in values if "correct_low" in one]
    along = [one for one in values if "incorrect_low" in one]
    x, y = _CORRECT, _INCORRECT
    return layered(
        diagonal((0, 1), x, y),
        data([{"x": 0.03, "y": 0.09, "text": "blind switching"}])
        .mark_text(angle=315, align="left", color=GREY, fontSize=11)
        .encode(x=x.x("x"), y=y.y("y"), text="text:N"),
        data(across).mark_rule().encode(
            x=x.x("correct_low"), x2="correct_high:Q", y=y.y("y"), color=hues, opacity=ink()
        ),
        data(along).mark_rule().encode(
            x=x.x("x"), y=y.y("incorrect_low"), y2="incorrect_high:Q", color=hues, opacity=ink()
        ),
        data(values).mark_point(filled=True, size=80).encode(
            x=x.x("x"), y=y.y("y"), color=hues, shape=shape(names), opacity=ink()
        ),
        width=_SIDE, height=_SIDE,
    )  # fmt: skip
