"""Inference: intervals of shares and of pairs of outcomes, and the tests beside them."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from .intervals import (
    alike,
    each_difference,
    effective_n,
    influence_of_difference,
    mean_bounds,
    wilson,
    with_added,
)
from .scores import Counts, Floats, Pair, difference_statistic, outcomes_of


def looked_up(
    rows: pl.DataFrame, found: pl.DataFrame, on: Sequence[str], *, nulls_equal: bool = False
) -> pl.DataFrame:
    """The rows in their order with what was found of each, null where nothing was."""
    return rows.join(
        found, on=on, how="left", validate="m:1", nulls_equal=nulls_equal, maintain_order="left"
    )


def with_bounds(
    rows: pl.DataFrame,
    turns: pl.DataFrame,
    keys: Sequence[str],
    share: str = "accuracy",
    hit: str = "correct",
    ends: str = "",
    level: float = 0.95,
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
    found = with_computed(
        clusters,
        ("_hits", "_trials"),
        {"_effective": pl.Float64()},
        lambda each: [(_effective(hits, trials),) for hits, trials in each],
    )
    n = looked_up(rows, found, keys, nulls_equal=True)["_effective"].fill_null(0.0).to_numpy()
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
    own = figures.select(lists).with_row_index("_place")
    alike = own.group_by(lists, maintain_order=True).agg("_place")
    arrays = ([one.to_numpy() for one in alike[name]] for name in lists)
    computed = compute(list(zip(*arrays, strict=True)))
    found = pl.DataFrame(list(computed), schema=dict(schema), orient="row")
    found = found.with_columns(alike["_place"]).explode("_place").sort("_place").drop("_place")
    return pl.concat([figures.drop(lists), found], how="horizontal")


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
"""What is computed from both outcomes of several figures, such as the bounds of intervals."""


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

    weighted = pairs.select(
        *keys,
        "question",
        *(whole(pl.col(side).cast(pl.Float64) * weight) for side in SIDES),
        *(whole(pl.when(pl.col(s).is_not_null()).then(weight)).alias(f"n_{s}") for s in SIDES),
    )
    sums = coded(weighted, [*keys, "question"]).group_by(*keys, "question").agg(pl.all().sum())
    numbers = pl.col(*SIDES, *(f"n_{side}" for side in SIDES)) / _WHOLE
    return sums.with_columns(numbers).cast({"question": pl.String()}).sort("question")


_WHOLE = 2.0**40
"""What weighted outcomes are counted in parts of."""


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
    found = with_computed(
        outcomes,
        sides,
        dict.fromkeys(names, pl.Float64()),
        lambda each: bounds([((a, n), (b, m)) for a, n, b, m in each]),
    )
    found = found.cast({name: rows.schema[name] for name in keys})
    return looked_up(rows, found.with_columns(pl.col(names).fill_nan(None)), keys, nulls_equal=True)


def with_mean_bounds(
    rows: pl.DataFrame, turns: pl.DataFrame, keys: Sequence[str], value: str, ends: str
) -> pl.DataFrame:
    """The rows with the 95% interval of the mean of a value in 0 to 1 (``mean_bounds``)."""
    pairs = turns.select(*keys, "question", pl.col(value).alias("first"), second=None)
    names = (f"{ends}low", f"{ends}high")
    bounds = one_by_one(lambda values, _: mean_bounds(values))
    return with_pair_bounds(rows, pairs, keys, names, bounds)


MOST = 400
"""Questions that differ, by unlike amounts, up to which every assignment of signs is counted."""


def clustered(first: Counts, second: Counts) -> float:
    """Two-sided p-value of the difference of two shares whose trials are clustered by question.

    Where each question has as many trials of one side as of the other, the sign of its difference
    is as likely either way if the sides do not differ: the p-value is the share of all assignments
    of signs whose sum is at least as far from zero, counted in full. With one trial a question that
    is McNemar's (1947) exact test. It asks of a difference that it is symmetric about zero, which
    holds for epochs; several challenges against one first answer are for ``against_one``. Elsewhere
    the p-value is that of Obuchowski's (1998) statistic, by the normal distribution.

    Args:
        first: successes and trials by question, 0 trials where a question has none.
        second: the same questions of the other share.

    Returns:
        A p-value in 0 to 1; NaN where either share is of nothing.
    """
    if not (first[1].sum() and second[1].sum()):
        return math.nan
    differences = first[0] - second[0]
    whole = np.rint(differences)
    if np.array_equal(first[1], second[1]) and np.array_equal(whole, differences):
        return sign_flips(whole.astype(np.int64))
    difference, influence = influence_of_difference(first, second)
    spread = math.sqrt(float((influence**2).sum()))
    if spread == 0:
        return 1.0 if difference == 0 else 0.0
    return two_sided(difference / spread)


def against_one(several: Counts, one: Counts) -> float:
    """Two-sided p-value of a difference of shares where one reply stands against several.

    With one trial a question it is McNemar's exact test. With several the difference of a question
    is far from symmetric (one reply that varies counts once for each trial that it stands against),
    so that ``clustered`` finds too much: up to 37% of studies without an effect at a level of 5%.
    Here it is that of the statistic whose interval ``difference_bounds`` is.

    Args:
        several: successes and trials by question, 0 trials where a question has none.
        one: the same questions of the share that is held against each of those trials.

    Returns:
        A p-value in 0 to 1; NaN where either share is of nothing.
    """
    return each_against_one([(several, one)])[0]


def each_against_one(pairs: Sequence[Pair]) -> list[float]:
    """``against_one`` of several figures, far faster than one by one."""
    several = [max(side[1].max(initial=0) for side in pair) > 1 for pair in pairs]
    scored = [more and alike(*pair) for more, pair in zip(several, pairs, strict=True)]
    chosen = [pair for one, pair in zip(scored, pairs, strict=True) if one]
    statistics = iter(difference_statistic(outcomes_of(chosen)).tolist())
    found = []
    for more, one, pair in zip(several, scored, pairs, strict=True):
        if one:
            found.append(two_sided(next(statistics)))
        elif not more or not all(side[1].any() for side in pair):
            found.append(clustered(*pair))
        else:
            difference, influence = influence_of_difference(*with_added(*pair))
            found.append(two_sided(difference / math.sqrt(float((influence**2).sum()))))
    return found


def two_sided(z: float) -> float:
    """P-value of a standard normal statistic."""
    # by its complement: 1 less the distribution has no digits left beyond 1e-16
    return math.erfc(abs(z) / math.sqrt(2))


def sign_flips(differences: NDArray[np.int64]) -> float:
    """Two-sided p-value of a sum of whole numbers, one a question, each of either sign alike.

    It is the share of the 2^questions assignments of signs with a sum at least as far from zero;
    above ``MOST`` numbers of several sizes it is by the normal distribution, where it is the same
    for all purposes.
    """
    counts = np.bincount(np.abs(differences))
    sizes = np.flatnonzero(counts[1:]) + 1
    counts = counts[sizes]
    if len(sizes) > 1 and counts.sum() > MOST:
        spread = math.sqrt(float((differences**2).sum()))
        return two_sided(int(differences.sum()) / spread)
    return _assigned(tuple(sizes.tolist()), tuple(counts.tolist()), abs(int(differences.sum())))


@lru_cache(maxsize=4096)
def _assigned(sizes: tuple[int, ...], counts: tuple[int, ...], seen: int) -> float:
    """Share of assignments of signs to numbers of these sizes whose sum is at least as far out."""
    # how many of the signs are positive, sizes taken as steps: sums of independent binomials
    steps = np.ones(1)
    for size, count in zip(sizes, counts, strict=True):
        spaced = np.zeros(size * count + 1)
        spaced[::size] = coin(count)
        steps = _convolved(steps, spaced)
    total = sum(size * count for size, count in zip(sizes, counts, strict=True))
    # a sum of 2 * steps - total is at most -seen
    tail = float(steps[: (total - seen) // 2 + 1].sum())
    return min(1.0, 2 * tail) if seen else 1.0


def holm(p: ArrayLike) -> Floats:
    """P-values (k,) adjusted to control the chance of any false finding (Holm, 1979).

    They stay in their order; NaN, where nothing was tested, stays and does not count as a test.
    """
    given = np.asarray(p, np.float64)
    adjusted = np.full(given.shape, math.nan)
    tested = np.flatnonzero(~np.isnan(given))
    rising = tested[np.argsort(given[tested], kind="stable")]
    scaled = given[rising] * np.arange(len(rising), 0, -1)
    adjusted[rising] = np.minimum(np.maximum.accumulate(scaled), 1.0)
    return adjusted


def benjamini_hochberg(p: Floats) -> Floats:
    """P-values (k,) adjusted to control the false discovery rate (Benjamini and Hochberg, 1995).

    They stay in their order. Written out as ``wilson`` is; tests hold it against the library.
    """
    falling = np.argsort(-p, kind="stable")
    scaled = p[falling] * len(p) / np.arange(len(p), 0, -1)
    adjusted = np.empty_like(p)
    adjusted[falling] = np.minimum(np.minimum.accumulate(scaled), 1.0)
    return adjusted


def cohens_kappa(first: Sequence[object], second: Sequence[object]) -> float | None:
    """Agreement of two readers beyond chance (Cohen, 1960).

    Args:
        first: classes that one reader found.
        second: classes that the other found of the same things.

    Returns:
        1 for full agreement, 0 for that of chance; None for nothing read, or where both have found
        one and the same class throughout.
    """
    n = len(first)
    if n == 0:
        return None
    agreed = sum(a == b for a, b in zip(first, second, strict=True))
    # in whole numbers, so that agreement by chance alone is exactly 1 where it is
    by_chance = sum(first.count(of) * second.count(of) for of in dict.fromkeys(first))
    if by_chance == n * n:
        return None
    return (n * agreed - by_chance) / (n * n - by_chance)


def coin(n: int) -> Floats:
    """Probabilities of 0 to ``n`` heads of as many tosses of a fair coin, shape (n + 1,)."""
    logs = log_factorials(n)
    chances: Floats = np.exp(logs[n] - logs - logs[::-1] - n * math.log(2))
    return chances


def log_factorials(n: int) -> Floats:
    """Natural logarithms of 0! to n!, shape (n + 1,)."""
    return np.array([math.lgamma(k + 1) for k in range(n + 1)])


def _convolved(first: Floats, second: Floats) -> Floats:
    """Distribution of the sum of two independent whole numbers from 0."""
    if len(first) == 1:
        only: Floats = second * first[0]
        return only
    # over the shorter one's few entries that are not zero: no transform, whose rounding would
    # swamp small tails
    longer, shorter = (first, second) if np.count_nonzero(second) < len(first) else (second, first)
    out = np.zeros(len(first) + len(second) - 1)
    for place in np.flatnonzero(shorter).tolist():
        out[place : place + len(longer)] += shorter[place] * longer
    return out
