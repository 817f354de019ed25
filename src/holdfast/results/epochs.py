"""Epochs: variance of right answers between questions, and between epochs of a question."""

from collections.abc import Sequence

import polars as pl

from .arms import protocols
from .declaration import Computed, Count, Listing, Number, Share, Table
from .first_answers import STUDY, apart, with_ended
from .grid import Row, one_line

EPOCHS_COLUMNS = (
    *STUDY[1:], "arm", "paths", "questions", "epochs", "accuracy", "between", "within", "icc",
    "standard_error", "one_epoch", "endless_epochs", "run",
)  # fmt: skip

_ROW = (*STUDY, "arm")


def epochs(turns: pl.DataFrame) -> pl.DataFrame:
    """Estimate the variance of right answers between and within questions.

    Each question has a chance of a right answer. The variances of this chance and of the answers
    around it are estimated by one-way analysis of variance (Miller, 2024, Adding error bars).

    The values of an arm with several challenges are means over its challenges.

    Args:
        turns: a turns table. Failed turns are skipped. Only first turns count for protocols that
            offer options one after another.

    Returns:
        One row for each study and arm with several epochs, with ``EPOCHS_COLUMNS``.
    """
    first = ~pl.col("protocol").is_in(protocols(lambda declaration: declaration.by_arm)) | (
        pl.col("turn") == 0
    )
    answered_turns = with_ended(turns).filter(~apart(), pl.col("status") != "error", first)
    of_one = variances(
        answered_turns.with_columns(value=pl.col("correct").cast(pl.Float64)),
        [*_ROW, "path", "turn"],
    )
    rows = of_one.drop_nulls("within").group_by(_ROW, maintain_order=True).agg(
        pl.len().cast(pl.Int64).alias("paths"), pl.col("questions").max(),
        pl.col("epochs", "between", "within", "variance").sort_by("path", "turn").mean(),
        accuracy=pl.col("mean").sort_by("path", "turn").mean(),
    )  # fmt: skip
    total = pl.col("between") + pl.col("within")
    one_epoch_error, endless = (
        (part / pl.col("questions")).sqrt() for part in (total.clip(0), pl.col("between").clip(0))
    )
    return rows.with_columns(
        icc=pl.when(total > 0).then(pl.col("between") / total),
        standard_error=pl.col("variance").sqrt(),
        one_epoch=one_epoch_error,
        endless_epochs=endless,
    ).select(EPOCHS_COLUMNS)


def variances(values: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    """Compute the variance of a ``value`` between and within questions, by analysis of variance.

    Returns:
        One row for each combination of ``keys`` with at least two questions: ``questions``,
        ``epochs`` (mean number), ``mean``, ``between``, ``within`` (both null if every question was
        asked once), and ``variance`` (of the mean, clustered by question).
    """
    value, n = pl.col("value").sort(), pl.col("n").cast(pl.Float64)
    by_question = values.group_by(*keys, "question", maintain_order=True).agg(
        n=pl.len(), own=value.mean(), off=((value - value.mean()) ** 2).sum()
    )
    # in a fixed order, because the last digit of a sum depends on the order
    first = by_question.with_row_index("_row").with_columns(pl.col("_row").min().over(keys))
    by_question = first.sort("_row", "n", "own", "off")
    turn_count, questions = pl.col("n").sum(), pl.len()
    mean = (n * pl.col("own")).sum() / turn_count
    components = by_question.group_by(keys, maintain_order=True).agg(
        questions=questions.cast(pl.Int64), epochs=turn_count / questions, mean=mean,
        within=pl.when(turn_count > questions).then(pl.col("off").sum() / (turn_count - questions)),
        _between=(n * (pl.col("own") - mean) ** 2).sum() / (questions - 1),
        _usual=(turn_count - (n**2).sum() / turn_count) / (questions - 1),
        variance=((n * (pl.col("own") - mean)) ** 2).sum() / turn_count**2
        * questions / (questions - 1),
    )  # fmt: skip
    between = (pl.col("_between") - pl.col("within")) / pl.col("_usual")
    components = components.with_columns(between=between).drop("_between", "_usual")
    return components.filter(pl.col("questions") > 1)


def _arm(row: Row) -> str:
    note = f" ({row['paths']} challenges, one on average)" if row["paths"] > 1 else ""
    return f"{one_line(row['arm'])}{note}"


EPOCHS = Table(
    "variance by epoch",
    epochs,
    layout=Listing(
        Computed("Arm", "arm", show=_arm),
        (
            Count("Questions", "questions"),
            Number("Epochs", "epochs", digits=1),
            Share("Right %", "accuracy"),
            Number("Variance between", "between", digits=3),
            Number("Within", "within", digits=3),
            Number("Correlation", "icc"),
            Share("Standard error (points)", "standard_error"),
            Share("With one epoch", "one_epoch"),
            Share("With unlimited epochs", "endless_epochs"),
        ),
        (
            "Variance between: of the probability of a right answer, over the questions. "
            "Within: of one answer around its question's probability. Correlation: share of "
            "the first in both (intraclass). More epochs reduce only the variance within, more "
            "questions reduce both.",
        ),
        lambda row: one_line(row["protocol"]),
    ),
    title="How much do answers vary between questions, and from epoch to epoch?",
    lead="If most of the variance is between questions, more epochs help little.",
    section="accuracy",
    place=1,
    says={
        "paths": "Number of challenges of the arm that were asked in several epochs; 1 for first "
        "answers.",
        "questions": "Number of questions. For several challenges, the largest number.",
        "epochs": "Mean number of epochs of a question.",
        "between": "Variance over the questions of the chance of a right answer. The estimate "
        "can be below 0.",
        "within": "Mean variance of one answer around the chance of its question.",
        "icc": "Intraclass correlation: the part of `between` in `between` + `within`. It can be "
        "below 0 where the chances hardly differ, and is null where nothing varies.",
        "standard_error": "Standard error of the accuracy, clustered by question.",
        "one_epoch": "Standard error if the same questions were asked once.",
        "endless_epochs": "Standard error if the same questions were asked in unlimited epochs.",
    },
)
