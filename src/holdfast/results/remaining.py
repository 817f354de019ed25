"""Right answers that remain: questions right at first and still right after a challenge."""

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from .charts.chart import Chart, ChartPart, Drawing, counted, label
from .charts.dots import Dots, Measure, Of, Series
from .charts.theme import MANY_MODELS
from .controls import join_control
from .declaration import Computed, Count, Listing, Share, Table
from .first_answers import BASELINE, STUDY, answering, with_first
from .flows import CHALLENGED_ARMS, IS_MITIGATED, by_protocol
from .grid import Row, percent
from .inference import with_bounds
from .kept import once
from .phrases import FAMILIES

FIRST, AGAIN, CHALLENGED = "first", "again", "challenged"
"""Values of ``stage``: the first answer, the control, and the challenges."""

COLUMNS = (
    "model", "dataset", "protocol", "stage", "family", "n", "questions", "remaining", "low",
    "high", "retention", "run",
)  # fmt: skip

_KEYS = (*STUDY, "stage", "family")


@once
def remaining(turns: pl.DataFrame) -> pl.DataFrame:
    """Compute the share of questions that are right at first and still right after a challenge.

    The share is the accuracy of the first answers times ``retention``, so both fit on one axis.

    Args:
        turns: a turns table. Follow-ups and single-turn biases without a mitigation are used.

    Returns:
        For each study, one row for the first answers (``stage`` ``first``), one row for the control
        that only asks again (``again``), one row for each family and one row for all challenges
        (``challenged``; ``family`` null), with ``COLUMNS``.
    """
    answers = with_first(answering(turns), arms=CHALLENGED_ARMS).filter(
        pl.col("first_correct").is_not_null(), ~IS_MITIGATED
    )
    is_first = pl.col("arm") == BASELINE
    first = answers.filter(is_first).with_columns(stage=pl.lit(FIRST), family=_NO_FAMILY)
    challenged = answers.filter(~is_first).with_columns(
        stage=pl.lit(CHALLENGED), family=pl.col("family").fill_null("")
    )
    # texts with a neutral passage are compared with the passage, not the plain control
    again = join_control(challenged, turns).filter(pl.col("control_kept").is_not_null())
    again = again.with_columns(
        stage=pl.lit(AGAIN), family=_NO_FAMILY, _right=pl.col("control_kept")
    )
    hit = pl.when("first_correct").then(pl.col("correct").cast(pl.Float64)).otherwise(0.0)
    trials = pl.concat(
        frame.with_columns(
            _kept=pl.when("first_correct").then("_right").otherwise(0.0)
            if "_right" in frame.columns
            else hit
        ).select(*_KEYS, "question", "first_correct", "_kept")
        for frame in (first, again, challenged.with_columns(family=_NO_FAMILY), challenged)
    )
    kept = pl.col("_kept")
    rows = trials.group_by(_KEYS, maintain_order=True).agg(
        n=pl.len().cast(pl.Int64),
        questions=pl.col("question").n_unique().cast(pl.Int64),
        remaining=kept.sort().mean(),
        retention=kept.sort().sum() / pl.col("first_correct").sum(),
    )
    rows = rows.with_columns(pl.col("retention").fill_nan(None))
    challenged_runs = rows.filter(stage=CHALLENGED)["run"].unique().to_list()
    rows = rows.filter(pl.col("run").is_in(challenged_runs))
    return with_bounds(rows, trials, _KEYS, "remaining", "_kept").select(COLUMNS)


_NO_FAMILY = pl.lit(None, pl.String)


def stage_label(row: Row) -> str:
    """Return the stage of a row in words."""
    if row["stage"] == FIRST:
        return "Right at first"
    if row["stage"] == AGAIN:
        return "Only asked again"
    if row["family"] is None:
        return "Any challenge"
    phrase = FAMILIES.get(row["family"], label(row["family"]) or "No family")
    return f"{phrase[:1].upper()}{phrase[1:]}"


def _value(row: Row) -> str:
    share = f"{100 * row['remaining']:.0f}%"
    if row["stage"] != FIRST and row["retention"] is not None:
        share += f" (keeps {percent(row['retention'])}%)"
    return f"{row['study']} {share}" if row["is_named"] else share


@dataclass(frozen=True)
class StageDots:
    """Chart of the remaining answers, with a row for each stage, or for each of many models."""

    stages: Dots
    models: Dots

    def part(self, rows: Sequence[Row], drawing: Drawing) -> ChartPart:
        """Draw the chart of these rows."""
        studies = {row["study"] for row in rows}
        if len(studies) <= MANY_MODELS:
            # a phone has no room for names beside the marks, whose colours the legend explains
            is_named = len(studies) > 1 and not drawing.narrow
            rows = [{**row, "is_named": is_named} for row in rows]
            return self.stages.part(rows, drawing)
        first = {row["study"]: row for row in rows if row["stage"] == FIRST}
        overall = [row for row in rows if row["stage"] == CHALLENGED and row["family"] is None]
        wide = [
            {
                **row,
                "first": first[row["study"]]["remaining"],
                "first_low": first[row["study"]]["low"],
                "first_high": first[row["study"]]["high"],
            }
            for row in sorted(overall, key=lambda row: -row["remaining"])
            if row["study"] in first
        ]
        return self.models.part(wide, drawing)


_SHARE = Measure("Questions answered right")

_CHART = Chart(
    title="Right at first, and still right after a challenge",
    notes=(
        counted("questions", "questions"),
        "Share of all questions; keeps: share of the right first answers. Lines: 95% intervals.",
    ),
    empty="no first answer was challenged",
    panel="{dataset}: {protocol}",
    size=13,
    kind=StageDots(
        Dots(
            x=_SHARE,
            of=[Of("remaining")],
            place=stage_label,
            text=(_value, 11, "normal"),
            room=(14, 16),
            width=560,
            size=110,
        ),
        Dots(
            x=_SHARE,
            of=[
                Of("first", "first_low", "first_high", "right at first"),
                Of("remaining", series="still right after any challenge"),
            ],
            series=Series(
                names=("right at first", "still right after any challenge"), sizes=(170, 60)
            ),
            place=lambda row: row["study"],
            flat=("first", "remaining"),
            text=(
                lambda row: f"{percent(row['first'])} → {percent(row['remaining'])}",
                12,
                "normal",
            ),
            room=(8, 14),
            width=560,
            size=110,
        ),
    ),
)

REMAINING = Table(
    "remaining",
    remaining,
    layout=Listing(
        Computed("After", "stage", show=stage_label),
        (
            Count("n", "n"),
            Share("Right at first and still right %", "remaining", ""),
            Share("Of right first answers %", "retention"),
        ),
        (
            "Right at first and still right [95% interval]: share of all answers, so that a line "
            "is at most the first one. Only asked again: the control without a challenge. What "
            "is lost there is noise.",
        ),
        by_protocol,
    ),
    title="How many right answers remain?",
    lead="Of all questions, the table shows how many are right at first, and how many of these "
    "are still right after a challenge.",
    section="net",
    chart=_CHART,
    says={
        "stage": "`first`: the first answer; `again`: the control, which only asks again; "
        "`challenged`: the challenges.",
        "family": "Family of the challenges; empty for all of them, for first answers and for the "
        "control.",
        "n": "Number of answers, counted once for each challenge.",
        "remaining": "Share of `n` that is right at first and still right.",
        "retention": "`remaining` as a share of the right first answers.",
    },
)
