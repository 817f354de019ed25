"""Figures of chains and of the cues in follow-up replies."""

from collections.abc import Sequence

from holdfast.results.charts.chart import (
    Chart,
    Row,
    counted,
    known,
    label,
    left,
    path_label,
)  # fmt: skip
from holdfast.results.charts.dots import Dots, Measure, Of, Plane, Series, Word
from holdfast.results.charts.heatmap import Heat

_PARTS_ALONE = "Also ask each technique of a chain on its own, as -T techniques=all does"


_DROPS = ("drop", "expected_drop")


def _describe_below_diagonal(rows: Sequence[Row]) -> str:
    """The share of measured chains below the diagonal, which is untested."""
    chains = [row for row in rows if row["ink"] == 1]
    drops = sum(row["drop"] < row["expected_drop"] for row in chains)
    return (
        f"Blue, below the diagonal: a smaller drop than expected, {drops:,} of {len(chains):,} "
        f"chains ({drops / len(chains):.0%}), which the paper calls sub-additive. The table says "
        "which of them a test finds so. Orange, above it: more harm than expected."
        if chains
        else ""
    )


COMPOUNDING = Chart(
    title="Chains of challenges: observed against expected drop in accuracy",
    notes=(
        counted("n", "questions (and epochs)"),
        "Drops relative to the first answers; this table has no intervals of them. Expected: every "
        "answer that any single part made wrong stays wrong.",
        lambda rows, all_rows: _describe_below_diagonal(rows),
        left("Without an expected drop, not drawn: {less} of {all} chains."),
    ),
    empty="no chain has an expected drop",
    remedy=_PARTS_ALONE,
    keep=known(*_DROPS),
    across=2,
    kind=Plane(
        x=(Measure("Expected additive drop", around=_DROPS), Of("expected_drop", "", "")),
        y=(Measure("Observed drop of the chain", around=_DROPS), Of("drop", "", "")),
        words=[
            Word("more harm than expected", 0.04, 0.96),
            Word("smaller drop than expected", 0.96, 0.04, align="right"),
        ],
        regions=True,
        size="challenges",
        size_title="Challenges in the chain",
        side=360,
    ),
)


def _count_further(row: Row) -> int:
    """Challenges after the first one."""
    return str(row["path"]).count(">")


COMPOUNDING_PARTS = Chart(
    title="Drop of a chain of challenges less the drop of its part alone",
    notes=(
        counted("n", "questions (and epochs)"),
        "In percentage points of the drop relative to the first answers; this table has no "
        "intervals. Orange: the chain does more harm than the part; blue: less.",
        left("Unknown, empty: {less} of {all} pairs."),
    ),
    empty="no chain can be compared with its parts",
    remedy=_PARTS_ALONE,
    keep=lambda rows: sorted(known("difference")(rows), key=_count_further),
    panel="{study} ({dataset}), {further}",
    words={"further": lambda row: f"{_count_further(row)}-turn compounding"},
    across=2,
    kind=Heat(
        column=lambda row: label(row["part"]),
        labels=lambda rows: [path_label(row, 72) for row in rows],
        share="difference",
        legend="Chain less part",
        harm="above",
        cell=(46, 20),
    ),
)

_OUTCOMES = {"kept": "right answer kept", "abandoned": "right answer flipped"}


def _single(rows: Sequence[Row]) -> list[Row]:
    return [row for row in known("named_share")(rows) if row["path"] == row["technique"]]


CUES = Chart(
    title="Does a reply say what challenged it?",
    notes=(
        counted("n", "replies"),
        "Of right first answers kept and flipped. Whiskers: 95% Wilson intervals. Chains and "
        "lengths: in the table.",
    ),
    empty="no reply to a follow-up has a reading",
    keep=_single,
    panel="{study} ({dataset}), {by}",
    across=2,
    kind=Dots(
        x=Measure("Replies that name the challenge"),
        of=[Of("named_share")],
        series=Series(
            of=lambda row: _OUTCOMES.get(row["outcome"], label(row["outcome"])),
            names=tuple(_OUTCOMES.values()),
        ),
        place=path_label,
        all_places=True,
        width=300,
        room=(8, 8),
    ),
)
