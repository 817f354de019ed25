"""Accuracy within strata of the questions: examination step, organ system, specialty, subject."""

import re
from typing import Literal, get_args

import polars as pl

from holdfast.errors import InputError, did_you_mean

from .accuracy import FAMILY_AVERAGE, rated, with_change
from .changes import CHANGE
from .first_answers import BASELINE, STUDY, with_first

Stratum = Literal["step", "system", "specialty", "subject"]
RelativeTo = Literal["stratum", "overall"]


def strata_columns(by: Stratum) -> tuple[str, ...]:
    """Columns of ``strata``; the stratum's column is named as what it is."""
    return (
        *STUDY[1:], "arm", "path", "technique", "family", by, "n", "correct", "accuracy", "low",
        "high", "baseline", *CHANGE, "relative_to", "unparsed", "refused", "non_response", "run",
    )  # fmt: skip


def strata(turns: pl.DataFrame, by: Stratum, relative_to: RelativeTo = "stratum") -> pl.DataFrame:
    """The rows of ``accuracy`` within each stratum.

    Args:
        turns: a turns table. Questions without a stratum count in no row, but they do in the
            overall first-answer accuracy.
        by: which stratum.
        relative_to: what ``baseline`` is. ``stratum``: first-answer accuracy over the row's own
            questions. ``overall``: the model's first-answer accuracy over all its questions
            (MedQA-Followup, appendix D.3 and Table 3).

    Returns:
        One row for each study, path and stratum, with ``strata_columns(by)``, and one for each
        family average. The rows of a family stand together, those of a stratum within them.
        Steps come in their natural order; other strata from the least to the most degraded, by
        the family's mean relative change over the models (MedQA-Followup, Figures 7-9), and in
        natural order where there is no such mean.

    Raises:
        InputError: ``relative_to`` is neither.
    """
    if relative_to not in get_args(RelativeTo):
        raise InputError(
            f"unknown baseline '{relative_to}'",
            field="relative_to",
            remedy=did_you_mean(relative_to, get_args(RelativeTo)),
        )
    answered = with_first(turns, by)
    known = answered.filter(pl.col(by).is_not_null())
    rows, firsts = rated(known, (by,)), answered.filter(pl.col("arm") == BASELINE)
    if relative_to == "overall":
        overall = firsts.group_by(STUDY).agg(pl.col("correct").mean().alias("baseline"))
        rows = rows.drop("baseline").join(overall, on=STUDY, how="left", maintain_order="left")
        rows = rows.with_columns(pl.col("accuracy").alias("compared"))
    rows = with_change(
        rows, known, (by,), firsts if relative_to == "overall" else None
    ).with_columns(pl.lit(relative_to).alias("relative_to"))
    return _ordered(rows, by).select(strata_columns(by))


def _ordered(rows: pl.DataFrame, by: Stratum) -> pl.DataFrame:
    block = ["protocol", "family"]
    places = {name: place for place, name in enumerate(sorted(rows[by].unique(), key=_natural))}
    rows = rows.with_row_index("_row").with_columns(
        pl.col("_row").min().over("protocol").alias("_protocol"),
        pl.col("_row").min().over(block).alias("_family"),
        pl.col(by).replace_strict(places, return_dtype=pl.Int64).alias("_place"),
    )
    # mitigations have averages with a path; the family's own has none
    averages = rows.filter(pl.col("arm") == FAMILY_AVERAGE, pl.col("path") == "")
    degradation = averages.group_by(*block, by).agg(
        (-pl.col("relative_change").sort().mean()).alias("_degradation")
    )
    rows = rows.join(degradation, on=[*block, by], how="left", maintain_order="left")
    natural = ["_place", "_row"]
    within = natural if by == "step" else ["_degradation", *natural]
    return rows.sort("_protocol", "_family", *within, nulls_last=True)


def _natural(name: str) -> list[tuple[str, int]]:
    """Sorts numbers within names by their value."""
    parts = re.findall(r"(\D*)(\d*)", name)
    return [(text, int(digits) if digits else -1) for text, digits in parts]
