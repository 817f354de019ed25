"""Wordings: whether a family average generalises from its wordings to similar wordings."""

import math

import polars as pl

from holdfast.stats.intervals import Floats, student_t

from .declaration import Computed, Count, Listing, Share, Table
from .first_answers import STUDY, with_first
from .flows import CHALLENGED_ARMS, IS_MITIGATED, by_protocol, family_label
from .grid import Row, percent
from .inference import with_pair_bounds

WORDINGS_COLUMNS = (
    "model", "dataset", "protocol", "family", "techniques", "questions", "drop", "low", "high",
    "spread", "in_general_low", "in_general_high", "minimum_half_width", "run",
)  # fmt: skip


def wordings(turns: pl.DataFrame) -> pl.DataFrame:
    """Compute the drop in accuracy under each family, for its wordings and for similar wordings.

    ``low`` and ``high`` treat the wordings as fixed and sample only questions. ``in_general_low``
    and ``in_general_high`` sample wordings too: questions and techniques are crossed random
    effects. The variance of the mean is (MS(questions) + MS(techniques) - MS(residual)) / n, at
    least the larger of the first two over n. The quantile is Student's t with one degree of freedom
    less than techniques, because Satterthwaite's (1946) are too many for two techniques.

    Args:
        turns: a turns table. Follow-ups and single-turn biases without a mitigation are used.

    Returns:
        One row for each study and family with at least two techniques, with ``WORDINGS_COLUMNS``.
        Values that need two questions are null with fewer.
    """
    challenged_turns = with_first(turns, arms=CHALLENGED_ARMS).filter(
        pl.col("arm").is_in(CHALLENGED_ARMS), ~IS_MITIGATED, pl.col("first_correct").is_not_null()
    )
    keys = [*STUDY, "family"]
    challenged_turns = challenged_turns.with_columns(
        _techniques=pl.col("technique").n_unique().over(keys)
    ).filter(
        pl.col("_techniques") > 1,
        pl.col("technique").n_unique().over(*keys, "question") == pl.col("_techniques"),
    )
    pairs = challenged_turns.select(
        *keys, "technique", "question",
        pl.col("first_correct").alias("first"), pl.col("correct").alias("second"),
    )  # fmt: skip
    cells = pairs.group_by(*keys, "question", "technique").agg(
        _drop=pl.col("first").mean() - pl.col("second").mean()
    )
    cells = cells.sort("question", "technique")
    estimates = [
        (
            *key,
            *_estimate_drop(
                family_cells["_drop"].to_numpy().reshape(family_cells["question"].n_unique(), -1)
            ),
        )
        for key, family_cells in cells.group_by(keys, maintain_order=True)
    ]
    schema = {name: turns.schema[name] for name in keys} | _ESTIMATE_SCHEMA
    rows = pl.DataFrame(estimates, schema=schema, orient="row").with_columns(
        pl.col(pl.Float64).fill_nan(None)
    )
    # an interval for similar wordings cannot be narrower than for these wordings
    rows = with_pair_bounds(rows, pairs, keys, ("low", "high")).with_columns(
        in_general_low=pl.min_horizontal("in_general_low", "low"),
        in_general_high=pl.max_horizontal("in_general_high", "high"),
    )
    order = challenged_turns.select(keys).unique(maintain_order=True)
    return order.join(rows, on=keys, nulls_equal=True, maintain_order="left").select(
        WORDINGS_COLUMNS
    )


_ESTIMATE_SCHEMA = {"techniques": pl.Int64(), "questions": pl.Int64()} | dict.fromkeys(
    ("drop", "spread", "in_general_low", "in_general_high", "minimum_half_width"), pl.Float64()
)


def _estimate_drop(drops: Floats) -> tuple[float | int, ...]:
    """Return the estimates of a table of questions by techniques, as in ``_ESTIMATE_SCHEMA``."""
    questions, techniques = drops.shape
    mean = float(drops.mean())
    low, high, spread, least_half = crossed_bounds(drops)
    return techniques, questions, mean, spread, low, high, least_half


def crossed_bounds(values: Floats, level: float = 0.95) -> tuple[float, float, float, float]:
    """Compute the interval of a mean over crossed random rows and columns, one value in each cell.

    Args:
        values: numbers from -1 to 1, shape (rows, columns).
        level: coverage.

    Returns:
        Bounds in -1 to 1, the standard deviation between columns, and the half-width with unlimited
        rows. NaN with fewer than two rows or columns.
    """
    rows, columns = values.shape
    if min(rows, columns) < 2:
        return math.nan, math.nan, math.nan, math.nan
    mean = float(values.mean())
    by_row, by_column = values.mean(axis=1), values.mean(axis=0)
    residuals = values - by_row[:, None] - by_column[None, :] + mean
    of_rows = columns * float(by_row.var(ddof=1))
    of_columns = rows * float(by_column.var(ddof=1))
    of_rest = float((residuals**2).sum()) / ((rows - 1) * (columns - 1))
    quantile = student_t(0.5 + level / 2, columns - 1)
    half = quantile * math.sqrt(
        max(of_rows + of_columns - of_rest, of_rows, of_columns) / values.size
    )
    spread = math.sqrt(max(of_columns - of_rest, 0.0) / rows)
    least_half = quantile * spread / math.sqrt(columns)
    return max(mean - half, -1.0), min(mean + half, 1.0), spread, least_half


def _general(row: Row) -> str:
    low, high = (percent(row[f"in_general_{end}"], with_sign=True) for end in ("low", "high"))
    return f"[{low}, {high}]" if low and high else ""


WORDINGS = Table(
    "variance by wording",
    wordings,
    layout=Listing(
        Computed("Family", "family", show=family_label),
        (
            Count("Wordings", "techniques"),
            Count("Questions", "questions"),
            Share("Drop, points", "drop", "", signed=True),
            Share("Between wordings, points", "spread", None),
            Computed("In general, points", "in_general_low", show=_general),
            Share("Wording alone, ± points", "minimum_half_width", None),
        ),
        (
            "Drop: right at first less right after the challenge, mean of the family's wordings "
            "[95% interval for these wordings]. Between wordings: standard deviation. In "
            "general: 95% interval if the wordings are a sample of such wordings. Wording alone: "
            "half-width of that interval with unlimited questions. Only more wordings narrow it.",
        ),
        by_protocol,
    ),
    title="These wordings, or wordings in general?",
    lead="A family average covers the wordings that were used. The more these wordings differ, "
    "the less the average says about other wordings.",
    section="accuracy",
    says={
        "techniques": "Number of techniques of the family. Each technique is one wording.",
        "questions": "Number of questions that were asked with every one of the techniques.",
        "drop": "Share of right first answers less share of right replies after the challenge: the "
        "mean over questions and techniques, epochs by their mean.",
        "spread": "Standard deviation of `drop` between techniques that their questions do not "
        "explain.",
        "in_general_low": "Lower bound of the 95% interval of `drop` if the wordings are a "
        "sample too. It is never above `low`.",
        "in_general_high": "Upper bound of that interval. It is never below `high`.",
        "minimum_half_width": "Half-width of the interval in general with unlimited questions: t "
        "times `spread` over the root of `techniques`.",
    },
    intervals={"in_general": "drop"},
)
