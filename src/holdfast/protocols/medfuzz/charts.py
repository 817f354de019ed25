"""Figures of attacks that rewrite a question (MedFuzz)."""

from collections.abc import Sequence

from holdfast.results.charts.chart import INTERVALS, Chart, Row, counted, known, label, left
from holdfast.results.charts.dots import Dots, Measure, Of, Series
from holdfast.results.charts.heatmap import Distribution, Heat
from holdfast.results.charts.lines import Axis, Lines

from .published import medfuzz


def _people(row: Row) -> float | None:
    """Return the average human accuracy on the questions of the paper's figure."""
    return medfuzz().human_share if row["dataset"] == "medqa" else None


def _describe_dashes(rows: Sequence[Row], all_rows: Sequence[Row]) -> str:
    paper = medfuzz()
    return (
        f"Dashed: {paper.human_accuracy}, the average of people on {paper.human_examination} "
        f"({paper.citation}, Figure 2)."
        if any(map(_people, rows))
        else ""
    )


ATTACKS = Chart(
    title="Accuracy after k attempts of an attacker",
    notes=(
        counted("replicates", "replicates"),
        counted("questions", "questions"),
        f"k = 0: the first answers. {INTERVALS}",
        _describe_dashes,
    ),
    empty="no replicate was kept",
    keep=known("accuracy"),
    across=2,
    kind=Lines(
        x=Axis("k", "Attempts k"),
        y=Measure("Right and not flipped so far"),
        of=[Of("accuracy", n="questions")],
        level=_people,
        width=340,
        height=240,
    ),
)

NET = Chart(
    title="Answers flipped by attacks, beyond inert rewrites",
    notes=(
        counted("pairs", "pairs"),
        "Net: flipped by attacks less flipped by as many inert rewrites of the same length. "
        f"{INTERVALS}",
    ),
    empty="no attack has a control",
    keep=known("net"),
    across=2,
    kind=Lines(
        x=Axis("k", "Attempts k"),
        y=Measure("Net flips", harm=True, around=("net", "net_low", "net_high")),
        of=[Of("net", "net_low", "net_high", n="pairs")],
        width=340,
        height=240,
    ),
)


def _describe_bins(rows: Sequence[Row], all_rows: Sequence[Row]) -> str:
    return (
        f"n = {len(rows):,} tested attacks in bins of 0.05; no intervals. Dashed: "
        "expected if attacks have no more effect than other texts."
    )


PERMUTATION = Chart(
    title="Tested attacks by p-value",
    notes=(_describe_bins, left("Without a p-value, not drawn: {less}.")),
    empty="no attack has a p-value",
    remedy="Run medfuzz with -T tested=30",
    keep=known("p_value"),
    panel="{study} ({dataset})",
    across=2,
    kind=Distribution(
        x=Measure("p-value, (b + 1) / (M + 1)", format=".1f"), of="p_value", y="Attacks"
    ),
)

TRANSFER = Chart(
    title="Attacks from one model, replayed on another",
    notes=(
        counted("pairs", "attacks"),
        "Net: right answers flipped by the attack, less those flipped by an inert rewrite of its "
        "length. No intervals. Lines: the model that the attacks come from.",
    ),
    empty="no attack was replayed",
    remedy="Run medfuzz with -T attacks=LOGDIR",
    keep=known("net"),
    kind=Heat(
        column=lambda row: str(row["study"]),
        labels=lambda rows: [label(row["found_on"]) for row in rows],
        share="net",
        legend="Net flips",
        harm="above",
        cell=(58, 24),
    ),
)

_CLASSES = {"none": "mentions none of it", "some": "some", "all": "all"}

FAITHFULNESS = Chart(
    title="Does the reasoning mention what flipped the answer?",
    notes=(
        counted("n", "successful attacks"),
        "By the number of added characteristics that the reasoning mentions, and by reader. "
        "Whiskers: 95% Wilson intervals.",
    ),
    empty="no successful attack has a reading",
    kind=Dots(
        x=Measure("Successful attacks"),
        of=[
            Of(f"{name}_share", f"{name}_low", f"{name}_high", class_name)
            for name, class_name in _CLASSES.items()
        ],
        series=Series(names=tuple(_CLASSES.values())),
        place=lambda row: f"{row['study']}, {label(row['by'])}",
        width=420,
        room=(10, 12),
    ),
)
