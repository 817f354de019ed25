"""Changes from first answers, each with its interval and paired test."""

import math
from collections.abc import Callable, Iterable, Sequence

import numpy as np
import polars as pl

from holdfast.stats.intervals import change_bounds
from holdfast.stats.pvalues import against_one, clustered, holm, sign_flips, two_sided
from holdfast.stats.scores import Counts, Floats, difference_statistic, filled, paired_change

from .first_answers import STUDY
from .inference import by_question, coded, looked_up, with_computed

CHANGE = ("relative_change", "change_low", "change_high", "p_value", "p_adjusted")
"""Columns of a relative change in a table."""

_LEVEL = 0.95

_WHOLE = 2.0**40
"""Number of parts that a weight of 1 is divided into, to sum weights as whole numbers."""

_Study = tuple[dict[str, int], Floats]
"""Positions of a study's questions; right and all first answers, shape (2, questions)."""

_BOUND_COLUMNS = ("change_low", "change_high", "p_value")
_SIDES = ("_hits", "_firsts", "_trials")


def with_change_bounds(
    rows: pl.DataFrame,
    pairs: pl.DataFrame,
    keys: Sequence[str],
    overall: pl.DataFrame | None = None,
    *,
    averages: bool = False,
) -> pl.DataFrame:
    """Add the 95% interval of the relative change to the rows, and the p-value of the pairs.

    Args:
        rows: one row for each combination of ``keys``.
        pairs: answered turns with their first answers, and an optional ``weight``.
        keys: columns that identify a row.
        overall: first answers of whole studies, if the change is relative to these.
        averages: whether one first answer is compared with several techniques.

    Returns:
        ``rows`` in their order with ``change_low``, ``change_high`` and ``p_value``, null if
        undefined.
    """
    clusters = _clusters(pairs, keys, firsts=overall is None)
    texts = pl.Schema({name: rows.schema[name] for name in keys})
    if overall is None:
        pair_bounds = _compute_pair_bounds(clusters, keys, averages=averages)
    else:
        lists = (
            clusters.cast({"question": pl.String()})
            .sort("question")
            .group_by(keys, maintain_order=True)
            .agg("question", "_hits", "_trials")
        )
        test = against_one if averages else clustered
        overall_bounds = _compute_overall_bounds(lists.cast(texts), overall, test)
        bounds = pl.DataFrame(
            overall_bounds, schema=dict.fromkeys(_BOUND_COLUMNS, pl.Float64()), orient="row"
        )
        pair_bounds = pl.concat([lists.select(keys), bounds], how="horizontal")
    pair_bounds = pair_bounds.cast(texts).with_columns(pl.col(_BOUND_COLUMNS).fill_nan(None))
    return looked_up(rows, pair_bounds, keys, nulls_equal=True)


def _clusters(pairs: pl.DataFrame, keys: Sequence[str], *, firsts: bool) -> pl.DataFrame:
    """Count right turns, right first answers and turns of each question, and the difference."""
    # sums of whole numbers are the same in every order
    weight = (pl.col("weight") * _WHOLE).round() if "weight" in pairs.columns else pl.lit(1)
    right = pl.col("correct").cast(pl.Int64)
    first = pl.col("first_correct").cast(pl.Int64) if firsts else pl.lit(0, pl.Int64)
    turns = pairs.select(
        *keys, "question", _right=right, _first=first, _weight=weight.cast(pl.Int64)
    )
    right, first, weight = pl.col("_right"), pl.col("_first"), pl.col("_weight")
    clusters = (
        coded(turns, [*keys, "question"])
        .group_by(*keys, "question")
        .agg(
            _hits=(right * weight).sum(),
            _firsts=(first * weight).sum(),
            _trials=weight.sum(),
            _difference=(right - first).sum(),
        )
    )
    if "weight" not in pairs.columns:
        return clusters
    return clusters.with_columns(pl.col("_hits", "_firsts", "_trials") / _WHOLE)


def _compute_pair_bounds(
    clusters: pl.DataFrame, keys: Sequence[str], *, averages: bool
) -> pl.DataFrame:
    """Compare turns with the first answers to the same questions: bounds and p-values."""
    kinds = clusters.group_by(*keys, *_SIDES, "_difference").agg(pl.len().alias("_questions"))
    outcomes = (*_SIDES, "_difference", "_questions")
    # in a fixed order, because the last digit of a sum depends on the order
    rows = kinds.sort(outcomes).group_by(keys).agg(outcomes)

    def computed(groups: Sequence[tuple[Floats, ...]]) -> Iterable[tuple[float, ...]]:
        figures = filled([np.stack([*sides, questions]) for *sides, _, questions in groups])
        low, high = paired_change(figures, _LEVEL)
        p = [
            two_sided(statistic)
            if averages and trials.max() > 1
            else sign_flips(np.repeat(differences.astype(np.int64), questions.astype(np.int64)))
            for statistic, (_, _, trials, differences, questions) in zip(
                difference_statistic(figures).tolist(), groups, strict=True
            )
        ]
        return zip(low.tolist(), high.tolist(), p, strict=True)

    return with_computed(rows, outcomes, dict.fromkeys(_BOUND_COLUMNS, pl.Float64()), computed)


def with_adjusted(
    rows: pl.DataFrame,
    within: Sequence[str],
    p_value: str = "p_value",
    adjust: Callable[[Floats], Floats] = holm,
) -> pl.DataFrame:
    """Add ``p_adjusted`` to the rows: p-values corrected within each group, by default by Holm."""
    adjusted_p = np.full(len(rows), math.nan)
    numbered_rows = rows.with_row_index("_row").drop_nulls(p_value)
    for _, test_set in numbered_rows.group_by(within, maintain_order=True):
        adjusted_p[test_set["_row"].to_numpy()] = adjust(test_set[p_value].to_numpy())
    return rows.with_columns(pl.Series("p_adjusted", adjusted_p).fill_nan(None))


def _compute_overall_bounds(
    lists: pl.DataFrame, overall: pl.DataFrame, test: Callable[[Counts, Counts], float]
) -> list[tuple[float, ...]]:
    pairs = overall.select(*STUDY, "question", first=None, second="correct")
    studies = {
        key: (
            {name: place for place, name in enumerate(study_pairs["question"])},
            study_pairs.select("second", "n_second").to_numpy().T,
        )
        for key, study_pairs in by_question(pairs, STUDY).group_by(STUDY, maintain_order=True)
    }
    nothing: _Study = {}, np.zeros((2, 0))
    bounds: list[tuple[float, ...]] = []
    for *key, questions, hits, trials in lists.select(
        *STUDY, "question", "_hits", "_trials"
    ).iter_rows():
        counts = _place_counts(studies.get(tuple(key), nothing), questions, hits, trials)
        bounds.append((*change_bounds(*counts), test(*counts)))
    return bounds


def _place_counts(
    study: _Study, questions: Sequence[str], hits: Sequence[float], trials: Sequence[float]
) -> tuple[Counts, Counts]:
    """Place a row's counts next to the study's first answers, by question.

    Questions without a first answer come last.
    """
    places, firsts = dict(study[0]), study[1]
    at = [places.setdefault(name, len(places)) for name in questions]
    of_row, of_study = np.zeros((2, len(places))), np.zeros((2, len(places)))
    of_row[:, at] = hits, trials
    of_study[:, : firsts.shape[1]] = firsts
    return (of_row[0], of_row[1]), (of_study[0], of_study[1])
