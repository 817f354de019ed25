"""Changes against first answers: the interval and the paired test of each."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from .first_answers import STUDY
from .intervals import Counts, Floats, change_bounds
from .testing import clustered, holm, sign_flips

CHANGE = ("relative_change", "change_low", "change_high", "p_value", "p_adjusted")
"""A relative change as tables have it."""

_COMPUTED = ("change_low", "change_high", "p_value")


def with_change_bounds(
    rows: pl.DataFrame,
    pairs: pl.DataFrame,
    keys: Sequence[str],
    overall: pl.DataFrame | None = None,
) -> pl.DataFrame:
    """The rows with the 95% interval of the relative change, and the p-value of the pairs.

    Args:
        rows: one row for each combination of ``keys``.
        pairs: turns with a first answer, with ``keys``, ``question``, ``correct`` and
            ``first_correct``, and with ``weight`` where some count for more.
        keys: columns that tell the rows apart, those of ``STUDY`` among them.
        overall: all first answers of each study (``STUDY``, ``question``, ``correct``), where the
            change is from these; ``first_correct`` is not read then.

    Returns:
        ``rows`` in their order with ``change_low``, ``change_high`` and ``p_value``, null where
        they are not defined.
    """
    weight = pl.col("weight") if "weight" in pairs.columns else pl.lit(1.0)
    right = pl.col("correct").cast(pl.Float64)
    first = pl.lit(0.0) if overall is not None else pl.col("first_correct").cast(pl.Float64)
    clusters = (
        pairs.with_columns(weight.alias("_weight"))
        .group_by(*keys, "question")
        .agg(
            # in a fixed order: the last digit of a sum depends on it
            (right * pl.col("_weight")).sort().sum().alias("_hits"),
            (first * pl.col("_weight")).sort().sum().alias("_firsts"),
            pl.col("_weight").sort().sum().alias("_trials"),
            (right - first).sum().cast(pl.Int64).alias("_difference"),
        )
        .sort("question")
        .group_by(keys, maintain_order=True)
        .agg("question", "_hits", "_firsts", "_trials", "_difference")
    )
    lists = (clusters[name] for name in ("_hits", "_firsts", "_trials", "_difference"))
    found: list[tuple[float, ...]] = []
    if overall is None:
        for hits, firsts, trials, differences in zip(*lists, strict=True):
            n = trials.to_numpy()
            bounds = change_bounds((hits.to_numpy(), n), (firsts.to_numpy(), n))
            found.append((*bounds, sign_flips(differences.to_numpy())))
    else:
        studies = _studies(overall)
        each = clusters.select(*STUDY, "question", "_hits", "_trials")
        for *study, questions, hits, trials in each.iter_rows():
            first_answers = studies.get(tuple(study))
            if first_answers is None:
                found.append((math.nan,) * len(_COMPUTED))
                continue
            places, second = first_answers
            own = _placed(places, second, questions, hits, trials)
            found.append((*change_bounds(*own), clustered(*own)))
    computed = pl.DataFrame(found, schema=dict.fromkeys(_COMPUTED, pl.Float64()), orient="row")
    computed = pl.concat([clusters.select(keys), computed.fill_nan(None)], how="horizontal")
    return rows.join(
        computed, on=keys, how="left", validate="1:1", nulls_equal=True, maintain_order="left"
    )


def with_adjusted(rows: pl.DataFrame, within: Sequence[str]) -> pl.DataFrame:
    """The rows with ``p_adjusted``: Holm's correction of ``p_value`` within each group.

    Args:
        rows: rows with ``p_value``, null where nothing was tested.
        within: columns that tell the groups apart.
    """
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
