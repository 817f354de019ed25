"""Inference: intervals of shares and of pairs of outcomes, and their tests."""

from collections.abc import Callable, Iterable, Mapping, Sequence

import polars as pl

from holdfast.stats.intervals import each_difference, effective_n, mean_bounds, wilson
from holdfast.stats.scores import Counts, Floats, Pair


def looked_up(
    rows: pl.DataFrame, lookup: pl.DataFrame, on: Sequence[str], *, nulls_equal: bool = False
) -> pl.DataFrame:
    """Return the rows in their order with the columns of ``lookup``, null without a match."""
    return rows.join(
        lookup, on=on, how="left", validate="m:1", nulls_equal=nulls_equal, maintain_order="left"
    )


def with_bounds(
    rows: pl.DataFrame,
    turns: pl.DataFrame,
    keys: Sequence[str],
    share: str = "accuracy",
    hit: str = "correct",
    ends: str = "",
    level: float = 0.95,
    trial_weight: float = 1.0,
) -> pl.DataFrame:
    """Add the Wilson interval of a share to the rows.

    Turns of a question correlate and count by their effective number (``effective_n``).

    Args:
        rows: one row for each combination of ``keys``.
        turns: the trials, with ``keys``, ``question`` and ``hit``. Each trial belongs to one row.
        keys: columns that identify a row.
        share: column of the share.
        hit: column of the trials that is true for a success.
        ends: prefix of ``low`` and ``high`` in the names of the bounds.
        level: coverage.
        trial_weight: factor for the number of trials, below 1 if their shares are dependent.

    Returns:
        ``rows`` in their order. The bounds are null without a trial.
    """
    clusters = (
        coded(turns.select(*keys, "question", hit), [*keys, "question"])
        .group_by(*keys, "question")
        .agg(pl.col(hit).sum().cast(pl.Float64).alias("_hits"), pl.len().alias("_trials"))
        # in a fixed order, so that sums of rounded numbers are reproducible
        .sort("_hits", "_trials")
        .group_by(keys, maintain_order=True)
        .agg("_hits", pl.col("_trials").cast(pl.Float64))
        .cast({name: rows.schema[name] for name in keys})
    )
    bounds_by_group = with_computed(
        clusters,
        ("_hits", "_trials"),
        {"_effective": pl.Float64()},
        lambda groups: [(_effective(hits, trials),) for hits, trials in groups],
    )
    n = (
        looked_up(rows, bounds_by_group, keys, nulls_equal=True)["_effective"]
        .fill_null(0.0)
        .to_numpy()
    )
    n = trial_weight * n
    # without a trial there is no share
    low, high = wilson(rows[share].fill_null(0.0).to_numpy() * n, n, level)
    return rows.with_columns(
        pl.Series(f"{ends}low", low, dtype=pl.Float64).fill_nan(None),
        pl.Series(f"{ends}high", high, dtype=pl.Float64).fill_nan(None),
    )


def with_computed(
    figures: pl.DataFrame,
    lists: Sequence[str],
    schema: Mapping[str, pl.DataType],
    compute: Callable[[Sequence[tuple[Floats, ...]]], Iterable[tuple[float, ...]]],
) -> pl.DataFrame:
    """Add columns computed from lists of numbers, which they replace.

    Figures of few questions often have equal lists. Each distinct list is computed once.
    """
    columns = ([list_value.to_numpy() for list_value in figures[name]] for name in lists)
    groups = list(zip(*columns, strict=True))
    keys = [tuple(values.tobytes() for values in group) for group in groups]
    distinct_groups = dict(zip(keys, groups, strict=True))
    computed = dict(zip(distinct_groups, compute(list(distinct_groups.values())), strict=True))
    results = pl.DataFrame([computed[key] for key in keys], schema=dict(schema), orient="row")
    return pl.concat([figures.drop(lists), results], how="horizontal")


def coded(frame: pl.DataFrame, columns: Sequence[str]) -> pl.DataFrame:
    """Replace texts by numbers, which group several times faster."""
    texts = [name for name in columns if frame.schema[name] == pl.String]
    return frame.with_columns(pl.col(texts).cast(pl.Categorical))


def _effective(hits: Floats, trials: Floats) -> float:
    n = float(trials.sum())
    if n == len(trials):
        return n
    return effective_n(hits, trials)


Bounds = Callable[[Sequence[Pair]], Sequence[tuple[float, ...]]]
"""Function from the outcomes of both sides of several figures to their bounds."""


def one_by_one(bounds: Callable[[Counts, Counts], tuple[float, ...]]) -> Bounds:
    """Turn a function for the bounds of one figure into a function for several figures."""
    return lambda pairs: [bounds(*pair) for pair in pairs]


SIDES = ("first", "second")
"""Columns of the two outcomes of a pair."""


def by_question(pairs: pl.DataFrame, keys: Sequence[str] = ()) -> pl.DataFrame:
    """Sum both outcomes of each question, sorted: ``first`` and ``second``, with trials ``n_*``.

    Each pair counts with its ``weight``, or once without such a column.
    """
    weight = pl.col("weight") if "weight" in pairs.columns else pl.lit(1.0)

    def whole(values: pl.Expr) -> pl.Expr:
        # sums of whole numbers are equal in every order
        return (values * _WHOLE).round().cast(pl.Int64)

    weighted_pairs = pairs.select(
        *keys,
        "question",
        *(whole(pl.col(side).cast(pl.Float64) * weight) for side in SIDES),
        *(whole(pl.when(pl.col(s).is_not_null()).then(weight)).alias(f"n_{s}") for s in SIDES),
    )
    sums = (
        coded(weighted_pairs, [*keys, "question"]).group_by(*keys, "question").agg(pl.all().sum())
    )
    numbers = pl.col(*SIDES, *(f"n_{side}" for side in SIDES)) / _WHOLE
    return sums.with_columns(numbers).cast({"question": pl.String()}).sort("question")


_WHOLE = 2.0**40
"""Number of parts that a weight of 1 is divided into, to sum weights as whole numbers."""


def counts_of(outcomes: pl.DataFrame) -> tuple[Counts, Counts]:
    """Return both sides of the outcomes from ``by_question``."""
    first, second = (
        (outcomes[side].to_numpy(), outcomes[f"n_{side}"].to_numpy()) for side in SIDES
    )
    return first, second


def with_pair_bounds(
    rows: pl.DataFrame,
    pairs: pl.DataFrame,
    keys: Sequence[str],
    names: Sequence[str],
    bounds: Bounds = each_difference,
) -> pl.DataFrame:
    """Add the interval bounds of a figure of pairs of outcomes to the rows.

    Args:
        rows: one row for each combination of ``keys``.
        pairs: the pairs, with ``keys``, ``question``, ``first``, ``second``, and optionally
            ``weight``. An outcome is a truth value or a number in 0 to 1, null if missing.
        keys: columns that identify a row.
        names: columns of the bounds.
        bounds: function that computes one bound for each name, for all rows at once.

    Returns:
        ``rows`` in their order. Undefined bounds are null.
    """
    sides = ("first", "n_first", "second", "n_second")
    # in a fixed order, because the last digit of a sum depends on the order
    outcomes = by_question(pairs, keys).sort(sides).group_by(keys, maintain_order=True).agg(sides)
    bounds_by_group = with_computed(
        outcomes,
        sides,
        dict.fromkeys(names, pl.Float64()),
        lambda groups: bounds([((a, n), (b, m)) for a, n, b, m in groups]),
    )
    bounds_by_group = bounds_by_group.cast({name: rows.schema[name] for name in keys})
    return looked_up(
        rows, bounds_by_group.with_columns(pl.col(names).fill_nan(None)), keys, nulls_equal=True
    )


def with_mean_bounds(
    rows: pl.DataFrame, turns: pl.DataFrame, keys: Sequence[str], value: str, ends: str
) -> pl.DataFrame:
    """Add the 95% interval of the mean of a value in 0 to 1 to the rows (``mean_bounds``)."""
    pairs = turns.select(*keys, "question", pl.col(value).alias("first"), second=None)
    names = (f"{ends}low", f"{ends}high")
    bounds = one_by_one(lambda values, _: mean_bounds(values))
    return with_pair_bounds(rows, pairs, keys, names, bounds)
