"""Pairs: two outcomes of the same question, by question."""

from collections.abc import Callable, Sequence

import polars as pl

from .intervals import Counts, difference_bounds

Bounds = Callable[[Counts, Counts], tuple[float, ...]]
"""Interval bounds of something computed from both outcomes."""


def with_pair_bounds(
    rows: pl.DataFrame,
    pairs: pl.DataFrame,
    keys: Sequence[str],
    names: Sequence[str],
    bounds: Bounds = difference_bounds,
) -> pl.DataFrame:
    """The rows with interval bounds of a figure computed from pairs of outcomes.

    Args:
        rows: one row for each combination of ``keys``.
        pairs: the pairs, with ``keys``, ``question``, ``first`` and ``second``; an outcome is a
            truth value or a number in 0 to 1, null where there is none.
        keys: columns that tell the rows apart.
        names: columns of the bounds.
        bounds: computes as many bounds as there are names.

    Returns:
        ``rows`` in their order; a bound that is not defined is null.
    """
    sides = ("first", "second")
    by_question = (
        pairs.group_by(*keys, "question")
        .agg(
            # in a fixed order: the last digit of a sum depends on it
            *(pl.col(side).cast(pl.Float64).sort().sum() for side in sides),
            *(pl.col(side).count().cast(pl.Float64).alias(f"n_{side}") for side in sides),
        )
        .sort("question")
    )
    found: list[tuple[object, ...]] = []
    for key, group in by_question.group_by(keys, maintain_order=True):
        first, second = ((group[side].to_numpy(), group[f"n_{side}"].to_numpy()) for side in sides)
        found.append((*key, *bounds(first, second)))
    schema = {name: rows.schema[name] for name in keys} | dict.fromkeys(names, pl.Float64())
    computed = pl.DataFrame(found, schema=schema, orient="row").with_columns(
        pl.col(names).fill_nan(None)
    )
    return rows.join(computed, on=keys, how="left", validate="1:1", maintain_order="left")
