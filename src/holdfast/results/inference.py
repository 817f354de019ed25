"""Inference: intervals of shares and of pairs of outcomes, and the tests of them."""

from collections.abc import Callable, Iterable, Mapping, Sequence

import polars as pl

from holdfast.stats.intervals import each_difference, effective_n, mean_bounds, wilson
from holdfast.stats.scores import Counts, Floats, Pair


def looked_up(
    rows: pl.DataFrame, lookup: pl.DataFrame, on: Sequence[str], *, nulls_equal: bool = False
) -> pl.DataFrame:
    """The rows in their order with what was found of each, null where nothing was."""
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
    worth: float = 1.0,
) -> pl.DataFrame:
    """The rows with the Wilson interval of a share.

    Turns of one question are alike and count by what they add (``effective_n``).

    Args:
        rows: one row for each combination of ``keys``.
        turns: the trials, with ``keys``, ``question`` and ``hit``; each belongs to one row.
        keys: columns that tell the rows apart.
        share: column of the share.
        hit: column of the trials that is true for a success.
        ends: what stands before ``low`` and ``high`` in the names of the bounds.
        level: coverage.
        worth: what each trial is worth, where their shares are not independent.

    Returns:
        ``rows`` in their order; the bounds are null where there is no trial.
    """
    clusters = (
        coded(turns.select(*keys, "question", hit), [*keys, "question"])
        .group_by(*keys, "question")
        .agg(pl.col(hit).sum().cast(pl.Float64).alias("_hits"), pl.len().alias("_trials"))
        # in a fixed order, so that sums of rounded numbers are the same each time
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
    n = worth * n
    # no trial, no share
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
    """The figures with what is computed of their lists of numbers, in their place.

    Figures of few questions often came out alike: what is computed is computed once for these.
    """
    lists_by_row = figures.select(lists).with_row_index("_place")
    alike = lists_by_row.group_by(lists, maintain_order=True).agg("_place")
    arrays = ([list_value.to_numpy() for list_value in alike[name]] for name in lists)
    results = compute(list(zip(*arrays, strict=True)))
    result_frame = pl.DataFrame(list(results), schema=dict(schema), orient="row")
    result_frame = (
        result_frame.with_columns(alike["_place"]).explode("_place").sort("_place").drop("_place")
    )
    return pl.concat([figures.drop(lists), result_frame], how="horizontal")


def coded(frame: pl.DataFrame, columns: Sequence[str]) -> pl.DataFrame:
    """The frame with numbered texts, which sort as the texts do and group several times faster."""
    return frame.with_columns(
        frame[name].cast(pl.Enum(frame[name].drop_nulls().unique().sort()))
        for name in columns
        if frame.schema[name] == pl.String
    )


def _effective(hits: Floats, trials: Floats) -> float:
    n = float(trials.sum())
    if n == len(trials):
        return n
    return effective_n(hits, trials)


Bounds = Callable[[Sequence[Pair]], Sequence[tuple[float, ...]]]
"""Function of both outcomes of several figures, such as the bounds of intervals."""


def one_by_one(bounds: Callable[[Counts, Counts], tuple[float, ...]]) -> Bounds:
    """What computes the bounds of one figure, for several."""
    return lambda pairs: [bounds(*pair) for pair in pairs]


SIDES = ("first", "second")
"""Columns of both outcomes of a pair."""


def by_question(pairs: pl.DataFrame, keys: Sequence[str] = ()) -> pl.DataFrame:
    """Both outcomes of each question, sorted by it: sums ``first`` and ``second``, trials ``n_*``.

    Each pair counts as ``weight`` says, once where there is no such column.
    """
    weight = pl.col("weight") if "weight" in pairs.columns else pl.lit(1.0)

    def whole(values: pl.Expr) -> pl.Expr:
        # sums of whole numbers are the same in every order
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
"""Unit in which weighted outcomes are counted."""


def counts_of(outcomes: pl.DataFrame) -> tuple[Counts, Counts]:
    """Both sides of what ``by_question`` gives."""
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
    """The rows with interval bounds of a figure computed from pairs of outcomes.

    Args:
        rows: one row for each combination of ``keys``.
        pairs: the pairs, with ``keys``, ``question``, ``first`` and ``second``, and perhaps a
            ``weight``; an outcome is a truth value or a number in 0 to 1, null where there is none.
        keys: columns that tell the rows apart.
        names: columns of the bounds.
        bounds: computes as many bounds as there are names, of all rows at once.

    Returns:
        ``rows`` in their order; a bound that is not defined is null.
    """
    sides = ("first", "n_first", "second", "n_second")
    # in a fixed order: the last digit of a sum depends on it
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
    """The rows with the 95% interval of the mean of a value in 0 to 1 (``mean_bounds``)."""
    pairs = turns.select(*keys, "question", pl.col(value).alias("first"), second=None)
    names = (f"{ends}low", f"{ends}high")
    bounds = one_by_one(lambda values, _: mean_bounds(values))
    return with_pair_bounds(rows, pairs, keys, names, bounds)
