"""Accuracy by model, data set and path, and the average of each family."""

from collections.abc import Sequence

import polars as pl

from .changes import CHANGE, with_adjusted, with_change_bounds
from .convictions import PROTOCOL as STICK_OR_SWITCH
from .first_answers import BASELINE, CHALLENGE, STUDY, with_first
from .readings import NON_RESPONSE
from .trials import with_bounds

FAMILY_AVERAGE = "family-average"
"""``arm`` of the rows that average the techniques of a family."""

ACCURACY_COLUMNS = (
    *STUDY[1:], *CHALLENGE, "n", "correct", "accuracy", "low", "high", "baseline",
    *CHANGE, "unparsed", "refused", "non_response", "run",
)  # fmt: skip

_AVERAGED = ("followup", "single-turn")
_COUNTS = ("n", "correct", "unparsed", "refused", "non_response")


def accuracy(turns: pl.DataFrame) -> pl.DataFrame:
    """Accuracy by path with 95% Wilson intervals, and the average of each family.

    A turn that failed (status ``error``) is a malfunction and does not count; an unparsed reply
    counts as wrong and is counted apart, refusals and non-responses among them. ``baseline`` is the
    first-answer accuracy over the same questions, and ``relative_change`` is (accuracy - baseline)
    / baseline (MedQA-Followup, Table 2). Both are null where there is no first answer; where some
    questions lack one, the change is that of the others. ``change_low`` and ``change_high`` are its
    95% interval (``change_bounds``), ``p_value`` is that of the paired test: McNemar's exact one,
    clustered by question where that has several turns. ``p_adjusted`` is Holm's, over the
    techniques of a family and arm in a study, and over its averages. A family's accuracy is the
    mean of its techniques' accuracies; its interval counts each question once however many
    techniques were put to it.

    Averaged are follow-ups and single-turn biases, no chains and no context lengths. A mitigation
    has averages of its own, with its name as ``path``; every other average has an empty path.

    Of stick-or-switch these are the questions put as such: its single shots and first choices.
    Later turns are asked of those alone who still hold their target; ``survival`` has them.

    Args:
        turns: a turns table.

    Returns:
        One row for each model, data set, protocol and path, with ``ACCURACY_COLUMNS``, and then
        one for each family.
    """
    # a dialogue recorded elsewhere shows no options, and goes on whatever was answered
    offered = (pl.col("protocol") == STICK_OR_SWITCH) & pl.col("shown").is_not_null()
    selected = offered & (pl.col("turn") > 0)
    answered = with_first(turns.filter(~selected))
    return with_change(rated(answered), answered).select(ACCURACY_COLUMNS)


def rated(answered: pl.DataFrame, by: Sequence[str] = ()) -> pl.DataFrame:
    """Rows and family averages of accuracy, within each stratum.

    Args:
        answered: turns with their first answers.
        by: further columns that tell rows apart.

    Returns:
        The columns of ``accuracy`` but ``CHANGE``, those of ``by``, and ``compared``:
        the accuracy over the questions that have a first answer, null where none has one.
    """
    keys = [*STUDY, *by, *CHALLENGE]
    first = pl.col("first_correct")
    rows = answered.group_by(keys, maintain_order=True).agg(
        pl.len().alias("n"),
        pl.col("correct").sum().alias("correct"),
        pl.col("correct").mean().alias("accuracy"),
        first.mean().alias("baseline"),
        pl.col("correct").filter(first.is_not_null()).mean().alias("compared"),
        (pl.col("status") != "parsed").sum().alias("unparsed"),
        (pl.col("status") == "refused").sum().alias("refused"),
        (pl.col("rule") == NON_RESPONSE).sum().alias("non_response"),
    )
    rows = with_bounds(rows, answered, keys)
    return pl.concat([rows, _family_averages(rows, answered, by)], how="diagonal_relaxed")


def with_change(
    rows: pl.DataFrame,
    answered: pl.DataFrame,
    by: Sequence[str] = (),
    overall: pl.DataFrame | None = None,
) -> pl.DataFrame:
    """The rows with ``CHANGE``: what became of the first answers, its interval and its test.

    Args:
        rows: those of ``rated``.
        answered: the turns that they are of.
        by: further columns that tell rows apart.
        overall: all first answers of each study, where ``baseline`` is their accuracy.

    Returns:
        ``rows`` in their order. ``relative_change`` goes from ``baseline`` to ``compared`` and is
        null from zero; the rest is null where no first answer stands against the row, and of the
        first answers themselves.
    """
    baseline = pl.col("baseline")
    change = pl.when(baseline > 0).then((pl.col("compared") - baseline) / baseline)
    rows = rows.with_columns(change.alias("relative_change")).with_row_index("_place")
    pairs = answered.filter(pl.col("arm") != BASELINE)
    if overall is None:
        pairs = pairs.filter(pl.col("first_correct").is_not_null())
    keys, average = [*STUDY, *by, *CHALLENGE], pl.col("arm") == FAMILY_AVERAGE
    family = [*STUDY, *by, "family", "path"]
    averaged = _of_averages(pairs).pipe(_with_weight, family)
    both = pl.concat(
        [
            with_change_bounds(rows.filter(~average), pairs, keys, overall),
            with_change_bounds(rows.filter(average), averaged, family, overall),
        ]
    )
    # the techniques of a family make one set of tests, the averages of a study another
    of_one = pl.when(~average).then("family")
    both = both.with_columns(of_one.alias("_family"), pl.col("arm").alias("_arm"))
    return with_adjusted(both.sort("_place"), [*STUDY, "_arm", "_family"]).drop(
        "_place", "_family", "_arm"
    )


def _with_weight(turns: pl.DataFrame, family: Sequence[str]) -> pl.DataFrame:
    """The turns with ``weight`` where techniques of a family have unlike numbers of them.

    Each technique counts alike in its average, however many of its turns failed.
    """
    counts = turns.group_by(*family, "technique").agg(pl.len().alias("_n"))
    alike = pl.col("_n").sum().over(family) / (pl.len().over(family) * pl.col("_n"))
    weights = counts.select(*family, "technique", alike.alias("weight"))
    if (weights["weight"] == 1).all():
        return turns
    return turns.join(
        weights, on=[*family, "technique"], how="left", nulls_equal=True, maintain_order="left"
    )


def _family_averages(rows: pl.DataFrame, answered: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    keys = [*STUDY, *by, "family", "path"]
    averages = (
        _of_averages(rows)
        .group_by(keys, maintain_order=True)
        .agg(
            pl.lit(FAMILY_AVERAGE).alias("arm"),
            pl.lit("").alias("technique"),
            *(
                pl.when(pl.col(name).n_unique() == 1).then(pl.col(name).first()).alias(name)
                for name in ("axis", "depth")
            ),
            *(pl.col(name).sum() for name in _COUNTS),
            *(
                # in a fixed order: the last digit of a sum depends on it
                pl.col(name).sort_by("technique").mean()
                for name in ("accuracy", "baseline", "compared")
            ),
        )
    )
    return with_bounds(averages, _of_averages(answered), keys)


def _of_averages(frame: pl.DataFrame) -> pl.DataFrame:
    """What is averaged, with the path of its average."""
    return frame.filter(pl.col("arm").is_in(_AVERAGED)).with_columns(
        pl.col("path").str.replace(r">?[^>]*$", "")
    )
