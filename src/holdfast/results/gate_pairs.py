"""Figures of a gate that are computed from two sides of the same questions."""

import polars as pl

from .gate_figure import Bounds, Figure, known
from .gate_rows import Row
from .intervals import Counts, change_bounds, difference_bounds


def difference(study: Row, of: str, pairs: pl.DataFrame, n: int | None = None) -> Figure:
    """A difference of two shares, first less second, of a family the mean over its techniques.

    Args:
        study: ``run``, ``model``, ``dataset`` and ``protocol``.
        of: what of the study it is of.
        pairs: ``path``, ``question``, ``first`` and ``second``, null where there is none.
        n: trials, if not one for each pair.
    """
    means = pairs.group_by("path").agg(pl.col("first", "second").mean())
    value = means.select((pl.col("first") - pl.col("second")).sort().mean()).item()
    return _figure(study, of, pairs, value, difference_bounds, n)


def relative_drop(study: Row, of: str, pairs: pl.DataFrame, value: float | None) -> Figure:
    """What of the share ``first`` is lost in the share ``second``, as ``difference`` takes them."""
    return _figure(study, of, pairs, value, _drop_bounds)


def _drop_bounds(first: Counts, second: Counts, level: float) -> tuple[float, float]:
    # a drop is a change with its sign turned
    low, high = change_bounds(second, first, level)
    return -high, -low


def _figure(
    study: Row,
    of: str,
    pairs: pl.DataFrame,
    value: float | None,
    bounds: Bounds,
    n: int | None = None,
) -> Figure:
    several = pl.col("path").n_unique()
    # each technique counts alike, however many of its turns failed
    weight = pl.len() / (several * pl.len().over("path"))
    sides = ("first", "second")
    by_question = (
        pairs.with_columns(weight.alias("_weight"))
        .group_by("question")
        .agg(
            *((pl.col(side).cast(pl.Float64) * pl.col("_weight")).sort().sum() for side in sides),
            *(
                pl.col("_weight").filter(pl.col(side).is_not_null()).sort().sum().alias(f"n_{side}")
                for side in sides
            ),
        )
        .sort("question")
    )
    first, second = (
        (by_question[side].to_numpy(), by_question[f"n_{side}"].to_numpy()) for side in sides
    )
    low, high = bounds(first, second, 0.95)
    n = pairs.height if n is None else n
    found = (first, second), bounds
    return Figure(study, of, known(value), known(low), known(high), n, by_question.height, *found)
