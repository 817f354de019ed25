"""Changes against first answers: the interval and the paired test of each."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from .first_answers import STUDY
from .inference import clustered, coded, holm, mcnemar, sign_flips
from .intervals import Counts, Floats, PairMoments, change_bounds, change_bounds_by_moments

CHANGE = ("relative_change", "change_low", "change_high", "p_value", "p_adjusted")
"""A relative change as tables have it."""

_WHOLE = 2.0**40
"""What weights are counted in parts of."""

_COMPUTED = ("change_low", "change_high", "p_value")


def with_change_bounds(
    rows: pl.DataFrame,
    pairs: pl.DataFrame,
    keys: Sequence[str],
    overall: pl.DataFrame | None = None,
) -> pl.DataFrame:
    """The rows with the 95% interval of the relative change, and the p-value of the pairs.

    Returns:
        ``rows`` in their order with ``change_low``, ``change_high`` and ``p_value``, null where
        they are not defined.
    """
    clusters = _clusters(pairs, keys, firsts=overall is None)
    texts = pl.Schema({name: rows.schema[name] for name in keys})
    if overall is None and "weight" not in pairs.columns:
        computed = _of_pairs(clusters, keys)
    else:
        lists = (
            clusters.cast({"question": pl.String()})
            .sort("question")
            .group_by(keys, maintain_order=True)
            .agg("question", "_hits", "_firsts", "_trials", "_difference")
        )
        found = _of_weighted(lists) if overall is None else _of_overall(lists.cast(texts), overall)
        bounds = pl.DataFrame(found, schema=dict.fromkeys(_COMPUTED, pl.Float64()), orient="row")
        computed = pl.concat([lists.select(keys), bounds], how="horizontal")
    computed = computed.cast(texts).with_columns(pl.col(_COMPUTED).fill_nan(None))
    return rows.join(
        computed, on=keys, how="left", validate="1:1", nulls_equal=True, maintain_order="left"
    )


def _clusters(pairs: pl.DataFrame, keys: Sequence[str], *, firsts: bool) -> pl.DataFrame:
    """Right turns, right first answers and turns of each question, and their difference."""
    # sums of whole numbers are the same in every order
    weight = (pl.col("weight") * _WHOLE).round() if "weight" in pairs.columns else pl.lit(1)
    right = pl.col("correct").cast(pl.Int64)
    first = pl.col("first_correct").cast(pl.Int64) if firsts else pl.lit(0, pl.Int64)
    turns = pairs.select(
        *keys,
        "question",
        right.alias("_right"),
        first.alias("_first"),
        weight.cast(pl.Int64).alias("_weight"),
    )
    clusters = (
        coded(turns, [*keys, "question"])
        .group_by(*keys, "question")
        .agg(
            (pl.col("_right") * pl.col("_weight")).sum().alias("_hits"),
            (pl.col("_first") * pl.col("_weight")).sum().alias("_firsts"),
            pl.col("_weight").sum().alias("_trials"),
            (pl.col("_right") - pl.col("_first")).sum().alias("_difference"),
        )
    )
    if "weight" not in pairs.columns:
        return clusters
    return clusters.with_columns(pl.col("_hits", "_firsts", "_trials") / _WHOLE)


def _of_pairs(clusters: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    """Bounds and p-values where every turn counts alike."""
    hits, firsts, difference = (pl.col(name) for name in ("_hits", "_firsts", "_difference"))
    rows = clusters.group_by(keys).agg(
        hits.sum(),
        firsts.sum(),
        pl.col("_trials").sum(),
        pl.len().alias("_questions"),
        (hits * hits).sum().alias("_hits_hits"),
        (firsts * firsts).sum().alias("_firsts_firsts"),
        (hits * firsts).sum().alias("_hits_firsts"),
        (difference < 0).sum().alias("_lost"),
        (difference > 0).sum().alias("_gained"),
        difference.abs().max().alias("_most"),
        difference,
    )
    numbers = {
        name: rows[name].to_numpy().astype(np.float64)
        for name in rows.columns
        if name not in (*keys, "_difference")
    }
    moments = PairMoments(
        *(numbers[name] for name in ("_hits", "_firsts", "_trials", "_questions")),
        *(numbers[name] for name in ("_hits_hits", "_firsts_firsts", "_hits_firsts")),
    )
    low, high = change_bounds_by_moments(moments)
    p = mcnemar(numbers["_lost"], numbers["_gained"])
    for place in np.flatnonzero(numbers["_most"] > 1).tolist():
        p[place] = sign_flips(rows["_difference"][place].to_numpy())
    bounds = dict(zip(_COMPUTED, (low, high, p), strict=True))
    return rows.select(keys).with_columns(
        pl.Series(name, values, dtype=pl.Float64) for name, values in bounds.items()
    )


def _of_weighted(lists: pl.DataFrame) -> list[tuple[float, ...]]:
    columns = (lists[name] for name in ("_hits", "_firsts", "_trials", "_difference"))
    found: list[tuple[float, ...]] = []
    for hits, firsts, trials, differences in zip(*columns, strict=True):
        n = trials.to_numpy()
        bounds = change_bounds((hits.to_numpy(), n), (firsts.to_numpy(), n))
        found.append((*bounds, sign_flips(differences.to_numpy())))
    return found


def _of_overall(lists: pl.DataFrame, overall: pl.DataFrame) -> list[tuple[float, ...]]:
    studies = _studies(overall)
    found: list[tuple[float, ...]] = []
    for *study, questions, hits, trials in lists.select(
        *STUDY, "question", "_hits", "_trials"
    ).iter_rows():
        first_answers = studies.get(tuple(study))
        if first_answers is None:
            found.append((math.nan,) * len(_COMPUTED))
            continue
        own = _placed(*first_answers, questions, hits, trials)
        found.append((*change_bounds(*own), clustered(*own)))
    return found


def with_adjusted(rows: pl.DataFrame, within: Sequence[str]) -> pl.DataFrame:
    """The rows with ``p_adjusted``: Holm's correction of ``p_value`` within each group."""
    numbered = rows.with_row_index("_row")
    adjusted = np.full(len(rows), math.nan)
    tested = numbered.drop_nulls("p_value").group_by(within).agg("_row", "p_value")
    for places, p_values in tested.select("_row", "p_value").iter_rows():
        adjusted[places] = holm(p_values)
    return rows.with_columns(pl.Series("p_adjusted", adjusted).fill_nan(None))


def _studies(
    overall: pl.DataFrame,
) -> Mapping[tuple[object, ...], tuple[Mapping[str, int], Counts]]:
    """First answers of each study by question, and where each question stands in them."""
    by_question = (
        overall.group_by(*STUDY, "question")
        .agg(pl.col("correct").sum().cast(pl.Float64), pl.len().cast(pl.Float64).alias("_trials"))
        .sort("question")
    )
    found: dict[tuple[object, ...], tuple[Mapping[str, int], Counts]] = {}
    for key, group in by_question.group_by(STUDY, maintain_order=True):
        places = {name: place for place, name in enumerate(group["question"])}
        found[key] = (places, (group["correct"].to_numpy(), group["_trials"].to_numpy()))
    return found


def _placed(
    places: Mapping[str, int],
    second: Counts,
    questions: Sequence[str],
    hits: Sequence[float],
    trials: Sequence[float],
) -> tuple[Counts, Counts]:
    """A row's counts over its study's questions, and the first answers to these.

    A question without a first answer stands at the end.
    """
    new = [name for name in questions if name not in places]
    at_end = {name: len(places) + place for place, name in enumerate(new)}
    at = [places[name] if name in places else at_end[name] for name in questions]
    first: list[Floats] = []
    for values in (hits, trials):
        all_of_them = np.zeros(len(places) + len(new))
        all_of_them[at] = values
        first.append(all_of_them)
    none = np.zeros(len(new))
    of_firsts = (np.concatenate([second[0], none]), np.concatenate([second[1], none]))
    return (first[0], first[1]), of_firsts
