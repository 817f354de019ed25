"""Right first answers kept under a challenge, by family: the figure that opens a report."""

from collections.abc import Sequence

import altair as alt
import polars as pl

from .heading import headed
from .marks import Measure, data, layered, ranged, rows_of, value
from .panels import Row, Value, counts, label, nothing, panels
from .theme import INK

_KEPT = Measure("Right first answers that were kept")
_KEPT_ABOVE = Measure("", labelled=False)
_OVER_ALL = "all challenges"
_TYPE, _WIDTH, _GAP = 14, 430, 10
_STEPS, _ROOM = {True: 30, False: 19}, 12
"""Height of a study's mark, over all families and in one of them, and room between rows."""
_SIZES, _NUMBERS = {True: 190, False: 80}, {True: 19, False: 13}


def holding(frame: pl.DataFrame) -> alt.VConcatChart:
    """A row for all challenges and one for each family, a panel for each data set and protocol.

    Raises:
        InputError: the rows hold nothing to draw.
    """
    shown = panels(frame)
    drawn: list[alt.VConcatChart] = []
    rows: list[Row] = []
    for dataset, own in shown.rows.items():
        protocols = dict.fromkeys(row["protocol"] for row in own)
        # what is asked of the answer itself before what is asked of the question
        for protocol in sorted(protocols, key=lambda name: name != "followup"):
            those = [
                row for row in own if row["protocol"] == protocol and row["kept_share"] is not None
            ]
            parts = [[row for row in those if (row["family"] is None) == all_] for all_ in _STEPS]
            parts = [part for part in parts if part]
            if not parts:
                continue
            present = [name for name in shown.names if name in {row["study"] for row in those}]
            charts = [_panel(part, shown.names, present, last=part is parts[-1]) for part in parts]
            title = f"{dataset}: {label(protocol)}"
            drawn.append(alt.vconcat(*charts, spacing=_GAP, title=title))
            rows += those
    if not drawn:
        raise nothing("no right first answer was challenged by a follow-up or a single-turn bias")
    return headed(
        drawn,
        "Does a right answer hold fast?",
        (
            "Share of the right first answers that one challenge left as they were.",
            counts([row["n_right"] for row in rows], "answers"),
            counts([row["questions"] for row in rows], "questions"),
            "Whiskers: 95% intervals; techniques of one question are alike.",
        ),
        shown,
        size=_TYPE,
    )


def _panel(
    rows: Sequence[Row], names: Sequence[str], present: Sequence[str], *, last: bool
) -> alt.LayerChart:
    """The marks of all families together, or of each; the last one with the axis."""
    over_all = rows[0]["family"] is None
    values: list[Value] = [
        one | {"place": _place(row), "text": f"{100 * row['kept_share']:.0f}%"}
        for row in rows
        if (one := value(row, "kept_share")) is not None
    ]
    places = list(dict.fromkeys(one["place"] for one in values))
    points = ranged(
        values, places, _KEPT if last else _KEPT_ABOVE, names, present, size=_SIZES[over_all]
    )
    y, offset = rows_of(places, present)
    written = data(values).mark_text(
        align="left", baseline="middle", fontSize=_NUMBERS[over_all], color=INK,
        fontWeight="bold" if over_all else "normal",
    )  # fmt: skip
    numbers = written.encode(y=y, yOffset=offset, x=alt.value(_WIDTH + 14), text="text:N")
    height = (_ROOM + _STEPS[over_all] * len(present)) * len(places)
    return layered(points, numbers, width=_WIDTH, height=height)


def _place(row: Row) -> str:
    return _OVER_ALL if row["family"] is None else label(row["family"]) or "no family"
