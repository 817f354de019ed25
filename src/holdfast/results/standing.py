"""Standing: three models or more on the same questions, every pair, and the ranks that follow."""

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import polars as pl

from holdfast.errors import InputError, counted

from .changes import with_adjusted
from .comparison import ACCURACY, COMPARISON_COLUMNS, KEY, LABELS, Comparison, compared
from .comparison_sides import STUDY, Side, Sides, names_of, sides
from .flows import CHALLENGED
from .inference import looked_up
from .worst import by_challenge, least_above, lowest_apart, places

WORST = "worst"
"""``arm`` of the rows after the worst challenge, which ``path_a`` and ``path_b`` name."""

FIGURE = (*KEY, "family")
"""Columns that tell figures apart; each has one rank for every model."""

STANDING_COLUMNS = (
    *COMPARISON_COLUMNS, "side_a", "side_b", "rank_low_a", "rank_high_a", "rank_low_b",
    "rank_high_b",
)  # fmt: skip

_LEVEL = 0.95


def by_model(turns: pl.DataFrame) -> list[pl.DataFrame]:
    """The turns of each model, in the order of the table."""
    return [turns.filter(pl.col("model") == model) for model in names_of(turns, "model")]


def standing(
    sources: Sequence[pl.DataFrame], protocol: str | None = None, dataset: str | None = None
) -> Comparison:
    """Every pair of three sides or more, and the ranks that each figure allows.

    All are held against each other on the questions of a study that all of them have. Figures are
    those of ``compare``, and the accuracy after the worst challenge: of each side the lowest of
    the challenges that all have, the pair told apart by the intersection-union test of ``worst``.

    ``p_adjusted`` is Holm's over all pairs of a figure; ``low`` and ``high`` hold for all pairs
    together (Bonferroni). A rank is bounded by the sides that are told apart from it at 5%, so
    that the ranks of a figure hold for all sides together (Mogstad et al., 2024).

    Args:
        sources: turns tables of one model each, one run for each protocol and data set.
        protocol: the only one to compare.
        dataset: the only one to compare.

    Returns:
        A row for each pair and figure, with ``STANDING_COLUMNS``; the first of a pair is the one
        that was given first.

    Raises:
        InputError: as for ``compare``, with the names of the pair.
    """
    names = _names(sources)
    kept, notes = _asked_of_all(sources)
    pairs = list(combinations(range(len(sources)), 2))
    level = 1 - (1 - _LEVEL) / len(pairs)
    challenges = _challenges(kept)
    parts = []
    for one, other in pairs:
        pair = f"{names[one]} (A) and {names[other]} (B)"
        try:
            both = sides(kept[one], kept[other], Side(), Side(), protocol, dataset)
            found = compared(both, Side(), Side(), level)
        except InputError as error:
            alone = "-a" in f"{error.field}{error.remedy}"
            raise InputError(
                f"{pair}: {error.what}", field=None if alone else error.field,
                remedy="Compare one run of each" if alone else error.remedy,
            ) from error  # fmt: skip
        for study, name in both.datasets.items():
            if name != study[1]:
                what = f"{pair}: the data sets have two names, {study[1]} and {name}"
                raise InputError(what, remedy="Compare these two alone")
        notes += [f"{pair}: {note}" for note in found.notes]
        who = {"_a": one, "_b": other, "side_a": names[one], "side_b": names[other]}
        parts += [
            rows.with_columns(pl.lit(value).alias(name) for name, value in who.items())
            for rows in (_of_worst(both, found.rows, challenges, level), found.rows)
        ]
    rows = pl.concat(parts, how="diagonal_relaxed")
    figures = rows.select(FIGURE).unique(maintain_order=True).with_row_index("_figure")
    rows = looked_up(with_adjusted(rows, FIGURE), figures, FIGURE, nulls_equal=True)
    rows = rows.sort(pl.col("_figure").min().over(STUDY), "_figure", "_a", "_b")
    return Comparison(_with_ranks(rows).select(STANDING_COLUMNS), tuple(notes))


def _names(sources: Sequence[pl.DataFrame]) -> list[str]:
    """The model of each, with its run where two have one model."""
    firsts = [
        (str(own["model"].first()), str(own["run"].first())) if own.height else ("no model", "")
        for own in sources
    ]
    models = [model for model, _ in firsts]
    return [m if models.count(m) == 1 else f"{m} (run {run})" for m, run in firsts]


def _asked_of_all(sources: Sequence[pl.DataFrame]) -> tuple[list[pl.DataFrame], list[str]]:
    """The turns on questions that all have, and what was left out.

    A study without any stays as it is: the comparison of a pair says what is wrong.
    """
    asked = pl.concat(
        own.select(*STUDY, "question").unique().with_columns(_of=pl.lit(place))
        for place, own in enumerate(sources)
    )
    all_have = pl.len().over(*STUDY, "question") == pl.col("_of").n_unique().over(STUDY)
    asked = asked.with_columns(_common=all_have)
    question = pl.col("question")
    counts = asked.group_by(STUDY, maintain_order=True).agg(
        here=question.filter("_common").n_unique(), every=question.n_unique()
    )
    asked = asked.filter(pl.col("_common") | ~pl.col("_common").any().over(STUDY))
    common = asked.select(*STUDY, "question").unique()
    notes = [
        f"{protocol} on {dataset}: {counted(here, 'question')} in common to all; {every - here} "
        "left out."
        for protocol, dataset, here, every in counts.iter_rows()
        if 0 < here < every
    ]
    return [
        own.join(common, on=[*STUDY, "question"], how="semi", maintain_order="left")
        for own in sources
    ], notes


def _challenges(sources: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """The challenges of each study that every one of the sources with that study has."""
    has = pl.concat(
        own.filter(pl.col("arm").is_in(CHALLENGED), pl.col("status") != "error")
        .select(*STUDY, "path").unique().with_columns(_of=pl.lit(place))
        for place, own in enumerate(sources)
    )  # fmt: skip
    every = pl.len().over(*STUDY, "path") == pl.col("_of").n_unique().over(STUDY)
    return has.filter(every).select(*STUDY, "path").unique()


def _of_worst(
    both: Sides, rows: pl.DataFrame, challenges: pl.DataFrame, level: float
) -> pl.DataFrame:
    """A row for each study with several challenges: both sides after the worst one of each."""
    each = pl.concat(
        turns.filter(pl.col("arm").is_in(CHALLENGED), pl.col("status") != "error")
        .join(both.questions, on=[*STUDY, "question"], how="semi")
        .join(challenges, on=[*STUDY, "path"], how="semi")
        .select(*STUDY, "path", "question", "correct", _side=pl.lit(name))
        for name, turns in (("a", both.a), ("b", both.b))
    )
    found = []
    for study, own in each.group_by(STUDY, maintain_order=True):
        of_side = by_challenge(own, ["_side"])
        if len(of_side) < 2 or own["path"].n_unique() < 2:
            continue
        a, b = (np.stack(list(of_side[name,].values())) for name in "ab")
        lowest = [
            min((float(np.nanmean(right)), path) for path, right in of_side[name,].items())
            for name in "ab"
        ]
        known = {
            **dict(zip(STUDY, study, strict=True)), **dict.fromkeys(LABELS, ""),
            "measure": ACCURACY, "arm": WORST, "path": "",
            "n": own["question"].n_unique(), "questions": own["question"].n_unique(),
            "a": lowest[0][0], "b": lowest[1][0], "difference": lowest[1][0] - lowest[0][0],
            "low": least_above(b, a, level), "high": -least_above(a, b, level),
            "p_value": lowest_apart(a, b)[0], "path_a": lowest[0][1], "path_b": lowest[1][1],
        }  # fmt: skip
        found.append(known)
    if not found:
        return rows.clear()
    worst = pl.DataFrame(found, schema_overrides=dict(rows.schema))
    sided = ("model_a", "run_a", "model_b", "run_b", "dataset_b")
    return looked_up(worst, rows.select(*STUDY, *sided).unique(STUDY), STUDY)


def _with_ranks(rows: pl.DataFrame) -> pl.DataFrame:
    """The rows with the bounds of the ranks of both sides among those of their figure."""
    parts = []
    for _, own in rows.group_by("_figure", maintain_order=True):
        members = sorted({*own["_a"], *own["_b"]})
        at = {one: place for place, one in enumerate(members)}
        told = [
            (at[b], at[a]) if difference > 0 else (at[a], at[b])
            for a, b, difference, p in own.select(
                "_a", "_b", "difference", "p_adjusted"
            ).iter_rows()
            if p is not None and p < 1 - _LEVEL
        ]
        least, most = places(len(members), told)
        parts.append(
            own.with_columns(
                pl.col(f"_{side}")
                .replace_strict(members, bounds, return_dtype=pl.Int64)
                .alias(f"rank_{end}_{side}")
                for side in "ab"
                for end, bounds in (("low", least), ("high", most))
            )
        )
    return pl.concat(parts)
