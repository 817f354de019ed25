"""What the letters were worth."""

from dataclasses import replace
from functools import partial

import polars as pl

from holdfast.render.reported import HEADLINE, ReportOf, paths
from holdfast.results.arms import TurnsOf
from holdfast.results.charts.chart import Chart, chain_label, counted, known
from holdfast.results.charts.dots import Dots, Measure, Of
from holdfast.results.controls import BESIDE
from holdfast.results.declaration import (
    Computed,
    Count,
    Listing,
    PValue,
    Share,
    Table,
    steps_of,
)  # fmt: skip
from holdfast.results.first_answers import BASELINE, STUDY, with_first
from holdfast.results.inference import with_pair_bounds
from holdfast.results.pull import difference_and_test
from holdfast.results.recovery import USER

OPEN = "open"
"""The protocol."""

TURNS = TurnsOf(
    OPEN, title="Open answers", helpers=(USER,), apart=BESIDE | {USER: "messages of the user"},
    review_exclusions=BESIDE,
)  # fmt: skip


def letters(turns: pl.DataFrame) -> pl.DataFrame:
    """Compare answers with the options hidden and shown, on the same questions.

    Args:
        turns: a turns table with studies of ``open`` and of ``followup`` of a model.

    Returns:
        A row for each study of ``open`` and path that both have: ``n`` questions (and epochs),
        ``shown`` and ``hidden`` (shares right), ``difference`` (hidden less shown), paired by
        question, and ``kept_shown`` and ``kept_hidden`` (of right first answers).
    """
    same = ("model", "dataset", "defence", "question", "epoch", "path")
    answers = with_first(turns, "defence").filter(pl.col("arm").is_in([BASELINE, "followup"]))
    hidden = answers.filter(pl.col("protocol") == OPEN)
    shown = answers.filter(pl.col("protocol") == "followup").unique(same, keep="first")
    pairs = hidden.select(*STUDY, *same[2:], first="correct", _hidden="first_correct").join(
        shown.select(*same, second="correct", _shown="first_correct"), on=same, nulls_equal=True,
        maintain_order="left",
    )  # fmt: skip
    keys = [*STUDY, "path"]
    rows = pairs.group_by(keys, maintain_order=True).agg(
        n=pl.len().cast(pl.Int64), shown=pl.col("second").mean(), hidden=pl.col("first").mean(),
        kept_shown=pl.col("second").filter("_shown").mean(),
        kept_hidden=pl.col("first").filter("_hidden").mean(),
    )  # fmt: skip
    rows = rows.with_columns(difference=pl.col("hidden") - pl.col("shown"))
    names = ("difference_low", "difference_high", "difference_p")
    return with_pair_bounds(rows, pairs, keys, names, difference_and_test)


LETTERS = Table(
    "letters", letters,
    layout=Listing(
        Computed("Challenge", "path", show=lambda row: steps_of(row["path"]) or "first answer"),
        (
            Count("n", "n"), Share("Shown %", "shown"), Share("Hidden %", "hidden"),
            Share("Difference, points", "difference", "difference_", signed=True),
            PValue("p", "difference_p"), Share("Kept, shown %", "kept_shown"),
            Share("Kept, hidden %", "kept_hidden"),
        ),
        ("Right answers with the options shown (followup) and hidden (open), on the same "
         "questions. Kept: of the right first answers of each. Errors of the judge count as wrong "
         "with the options hidden: compare table judges.",),
    ),
    title="What were the letters worth?",
    lead="The same questions and challenges, with the options shown and hidden. Where they are "
    "hidden, a judge says which of the known answers a reply gives.",
    section="accuracy",
    chart=Chart(
        title="Right answers with the options hidden, less with the options shown",
        notes=(counted("n", "questions"), "Whiskers: 95% intervals, paired by question."),
        empty="no question was asked both ways", remedy="Run followup and open into one log dir",
        keep=known("difference"),
        kind=Dots(
            x=Measure("Difference, percentage points", format=".0f", times=100, to=10,
                      around=("difference", "difference_low", "difference_high")),
            of=[Of("difference", "difference_low", "difference_high")],
            place=lambda row: chain_label(row["path"]) or "first answer", zero=True,
        ),
    ),
    says={
        "n": "Number of questions, and epochs, that were asked both ways.",
        "shown": "Share of `n` right with the options shown.",
        "hidden": "Share of `n` right with the options hidden.",
        "difference": "`hidden` less `shown`.", "difference_p": "P-value, paired by question.",
        "kept_shown": "Share of right first answers still right, with the options shown.",
        "kept_hidden": "The same with the options hidden.",
    },
)  # fmt: skip

REPORT = ReportOf(
    OPEN, partial(paths, stepwise=True),
    opening=replace(
        HEADLINE, place=4, when="after the worst challenge to an open answer",
        challenge="after a challenge to an open answer",
    ),
    tables=("judges", "letters"),
)  # fmt: skip
