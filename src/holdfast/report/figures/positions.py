"""Position and order of what is offered, and which option wins (Stick-or-Switch)."""

from collections.abc import Callable, Sequence

import altair as alt
import polars as pl

from .heading import headed
from .marks import Measure, dodged, value
from .panels import Row, Value, counts, label, nothing, panels
from .survival import ARMS

_EFFECTS = {
    "position": "Place of the target at turn 1",
    "index": "Letter of the option offered",
    "offer": "Turn of the offer",
}
_KEPT = Measure("Target kept at the offer")
_ADOPTED = Measure("Adopted when offered")
_HEIGHT, _PLACE = 170, 18


def positions(frame: pl.DataFrame) -> alt.VConcatChart:
    """Targets kept by display position, letter and order: a panel each, arms below each other.

    Raises:
        InputError: the rows hold nothing to draw.
    """
    return _figure(
        frame,
        "Position and order: targets kept by where and when an option is offered",
        "offers to a held target",
        "n",
        lambda row: (row["effect"], row["level"]),
        _KEPT,
        "Where content alone decides, the levels of a panel differ by chance; turns also because "
        "those who hold a target longest are those who know it.",
    )


def winners(frame: pl.DataFrame) -> alt.VConcatChart:
    """How often each letter was adopted when it was offered: a panel for each arm.

    Raises:
        InputError: the rows hold nothing to draw.
    """
    return _figure(
        frame,
        "Which option wins: offers adopted there and then, by the option's letter",
        "offers to a held target",
        "offered",
        lambda row: ("index", row["index"]),
        _ADOPTED,
        "Letters as in the question itself.",
    )


def _figure(
    frame: pl.DataFrame,
    title: str,
    noun: str,
    n: str,
    of: Callable[[Row], tuple[str, str]],
    measure: Measure,
    note: str,
) -> alt.VConcatChart:
    shown = panels(frame)
    rows = []
    for dataset, own in shown.rows.items():
        for arm in dict.fromkeys(row["arm"] for row in own):
            those = [row for row in own if row["arm"] == arm]
            drawn = [
                _panel([row for row in those if of(row)[0] == effect], of, measure, shown.names)
                for effect in dict.fromkeys(of(row)[0] for row in those)
            ]
            kept = [one for one in drawn if one is not None]
            if kept:
                rows.append(alt.hconcat(*kept, title=f"{dataset}: {ARMS.get(arm, label(arm))}"))
    if not rows:
        raise nothing("no share in any row")
    known = counts([row[n] for row in shown.every()], noun)
    return headed(rows, title, (known, f"Whiskers: 95% intervals. {note}"), shown)


def _panel(
    rows: Sequence[Row], of: Callable[[Row], tuple[str, str]], y: Measure, names: tuple[str, ...]
) -> alt.LayerChart | None:
    values: list[Value] = []
    levels = [label(level, 16) for level in dict.fromkeys(of(row)[1] for row in rows)]
    for row in rows:
        one = value(row, "share")
        values += [] if one is None else [one | {"x": label(of(row)[1], 16)}]
    if not values:
        return None
    effect = of(rows[0])[0]

    def x() -> alt.X:
        return alt.X(
            "x:N", title=_EFFECTS.get(effect, label(effect)), scale=alt.Scale(domain=levels),
            axis=alt.Axis(labelAngle=0),
        )  # fmt: skip

    wide = max(_PLACE * len(names), 36) * len(levels)
    return dodged(values, x, y, names).properties(width=wide, height=_HEIGHT)
