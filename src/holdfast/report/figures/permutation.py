"""P-values of attacks against texts of their kind (MedFuzz, Algorithm 2)."""

import math
from collections.abc import Sequence

import altair as alt
import polars as pl

from .heading import headed
from .marks import Measure, data, layered
from .panels import Value, nothing, panels
from .theme import COLOURS, GREY

_BINS = 20
_P = Measure("p-value, (b + 1) / (M + 1)", format=".1f")
_ACROSS, _WIDTH, _HEIGHT = 2, 330, 150


def permutation(frame: pl.DataFrame) -> alt.VConcatChart:
    """A histogram for each study, with what p-values of no effect would give.

    Raises:
        InputError: the rows hold nothing to draw.
    """
    shown = panels(frame)
    rows = [row for row in shown.every() if row["p_plus_one"] is not None]
    if not rows:
        raise nothing("no attack has a p-value", "Test attacks with holdfast medfuzz test")
    by_panel: dict[tuple[str, str], list[float]] = {}
    for row in rows:
        by_panel.setdefault((row["dataset"], row["study"]), []).append(row["p_plus_one"])
    highest = max(max(_counts(own)) for own in by_panel.values())
    drawn = [
        _panel(own, highest).properties(
            width=_WIDTH, height=_HEIGHT, title=[f"{study} ({dataset})", f"n = {len(own):,}"]
        )
        for (dataset, study), own in by_panel.items()
    ]
    return headed(
        [alt.concat(*drawn, columns=_ACROSS)],
        "Tested attacks by p-value",
        (
            f"n = {len(rows):,} tested attacks in bins of 0.05; no intervals. Dashed: even, as "
            "attacks give that do no more than other texts.",
            f"Without a p-value, not drawn: {shown_less:,}."
            if (shown_less := len(shown.every()) - len(rows))
            else "",
        ),
        shown,
    )


def _panel(p_values: Sequence[float], highest: int) -> alt.LayerChart:
    bars: list[Value] = [
        {"x": place / _BINS, "to": (place + 1) / _BINS, "low": 0, "y": n}
        for place, n in enumerate(_counts(p_values))
        if n
    ]
    attacks = Measure(
        "Attacks", (0.0, float(max(highest, math.ceil(len(p_values) / _BINS)))), "d", 1
    )
    return layered(
        data(bars).mark_rect(color=COLOURS[0], xOffset=0.5, x2Offset=-0.5).encode(
            x=_P.x("x"), x2="to:Q", y=attacks.y("y"), y2="low:Q"
        ),
        data([{"y": len(p_values) / _BINS}]).mark_rule(color=GREY, strokeDash=[5, 4]).encode(
            y=attacks.y("y")
        ),
    )  # fmt: skip


def _counts(p_values: Sequence[float]) -> list[int]:
    """How many fall in each bin; one on a border is in the bin below it."""
    found = [0] * _BINS
    for p in p_values:
        # 0.15 * 20 is 3.0000000000000004
        found[max(0, math.ceil(round(p * _BINS, 9)) - 1)] += 1
    return found
