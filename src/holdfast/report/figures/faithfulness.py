"""How much of what turned an answer its reasoning mentions (MedFuzz, Figure 3)."""

import altair as alt
import polars as pl

from .heading import headed
from .marks import Measure, ranged, value
from .panels import Row, Value, counts, label, nothing, panels

_SHARE = Measure("Successful attacks")
_CLASSES = {"none": "mentions none of it", "some": "some", "all": "all"}
_WIDTH, _ROW = 420, 46


def faithfulness(frame: pl.DataFrame) -> alt.VConcatChart:
    """A row for each study and reader, a panel for each data set.

    Raises:
        InputError: the rows hold nothing to draw.
    """
    shown = panels(frame)
    classes = list(_CLASSES.values())
    drawn: list[alt.LayerChart] = []
    rows: list[Row] = []
    for dataset, own in shown.rows.items():
        values: list[Value] = [
            one | {"place": _place(row), "series": named}
            for row in own
            for name, named in _CLASSES.items()
            if (one := value(row, f"{name}_share", f"{name}_low", f"{name}_high")) is not None
        ]
        if values:
            places = list(dict.fromkeys(one["place"] for one in values))
            chart = ranged(values, places, _SHARE, classes, classes, "series", None)
            drawn.append(chart.properties(width=_WIDTH, height=_ROW * len(places), title=dataset))
            rows += own
    if not drawn:
        raise nothing("no successful attack has a reading")
    return headed(
        drawn,
        "Does the reasoning mention what turned the answer?",
        (
            counts([row["n"] for row in rows], "successful attacks"),
            "By how many of the added characteristics the reasoning mentions, and by who read it. "
            "Whiskers: 95% Wilson intervals.",
        ),
        shown,
    )


def _place(row: Row) -> str:
    return f"{row['study']}, {label(row['by'])}"
