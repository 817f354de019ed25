"""Standing: every pair of three or more models on the same questions, and the resulting ranks."""

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import polars as pl

from holdfast.errors import InputError, counted

from .changes import with_adjusted
from .comparison import ACCURACY, COMPARISON_COLUMNS, KEY, LABELS, Comparison, compared
from .comparison_sides import STUDY, Side, Sides, names_of, sides
from .flows import CHALLENGED_ARMS
from .inference import looked_up
from .worst import by_challenge, least_above, lowest_apart, places

WORST = "worst"
"""``arm`` of the rows after the worst challenge of each side (``path_a`` and ``path_b``)."""

FIGURE = (*KEY, "family")
"""Columns that identify a figure; each figure ranks every model."""

STANDING_COLUMNS = (
    *COMPARISON_COLUMNS, "side_a", "side_b", "rank_low_a", "rank_high_a", "rank_low_b",
    "rank_high_b",
)  # fmt: skip

_LEVEL = 0.95


def by_model(turns: pl.DataFrame) -> list[pl.DataFrame]:
    """Split a turns table by model, in the order of the table."""
    return [turns.filter(pl.col("model") == model) for model in names_of(turns, "model")]


def standing(
    sources: Sequence[pl.DataFrame], protocol: str | None = None, dataset: str | None = None
) -> Comparison:
    """Compare every pair of three or more sides, and compute the possible ranks for each figure.

    All pairs use the questions of a study that every side has. Figures are those of ``compare``,
    and the accuracy after the worst challenge: for each side, the lowest over the common
    challenges. The intersection-union test of ``worst`` compares these.

    ``p_adjusted`` has Holm's correction over all pairs of a figure. ``low`` and ``high`` are valid
    for all pairs together (Bonferroni). The sides that differ significantly at 5% bound a rank, so
    the ranks of a figure are valid for all sides together (Mogstad et al., 2024).

    Args:
        sources: turns tables of one model each, with one run for each protocol and data set.
        protocol: compare only this protocol.
        dataset: compare only this data set.

    Returns:
        One row for each pair and figure, with ``STANDING_COLUMNS``. The sides of a pair are in the
        order of ``sources``.

    Raises:
        InputError: as for ``compare``, with the names of the pair.
    """
    names = _names(sources)
    common_turns, notes = _intersect_questions(sources)
    pairs = list(combinations(range(len(sources)), 2))
    level = 1 - (1 - _LEVEL) / len(pairs)
    challenges = _challenges(common_turns)
    parts = []
    for place_a, place_b in pairs:
        pair = f"{names[place_a]} (A) and {names[place_b]} (B)"
        try:
            side_pair = sides(
                common_turns[place_a], common_turns[place_b], Side(), Side(), protocol, dataset
            )
            comparison = compared(side_pair, Side(), Side(), level)
        except InputError as error:
            alone = "-a" in f"{error.field}{error.remedy}"
            raise InputError(
                f"{pair}: {error.fault}", field=None if alone else error.field,
                remedy="Compare one run of each" if alone else error.remedy,
            ) from error  # fmt: skip
        for study, name in side_pair.datasets.items():
            if name != study[1]:
                problem = f"{pair}: the data sets have different names, {study[1]} and {name}"
                raise InputError(problem, remedy="Compare only these two sources")
        notes += [f"{pair}: {note}" for note in comparison.notes]
        who = {"_a": place_a, "_b": place_b, "side_a": names[place_a], "side_b": names[place_b]}
        parts += [
            rows.with_columns(pl.lit(value).alias(name) for name, value in who.items())
            for rows in (
                _rows_of_worst(side_pair, comparison.rows, challenges, level),
                comparison.rows,
            )
        ]
    rows = pl.concat(parts, how="diagonal_relaxed")
    figures = rows.select(FIGURE).unique(maintain_order=True).with_row_index("_figure")
    rows = looked_up(with_adjusted(rows, FIGURE), figures, FIGURE, nulls_equal=True)
    rows = rows.sort(pl.col("_figure").min().over(STUDY), "_figure", "_a", "_b")
    return Comparison(_with_ranks(rows).select(STANDING_COLUMNS), tuple(notes))


def _names(sources: Sequence[pl.DataFrame]) -> list[str]:
    """Return the model of each table, with its run if two tables have the same model."""
    firsts = [
        (str(source_turns["model"].first()), str(source_turns["run"].first()))
        if source_turns.height
        else ("no model", "")
        for source_turns in sources
    ]
    models = [model for model, _ in firsts]
    return [m if models.count(m) == 1 else f"{m} (run {run})" for m, run in firsts]


def _intersect_questions(sources: Sequence[pl.DataFrame]) -> tuple[list[pl.DataFrame], list[str]]:
    """Return the turns on questions that all sources have, and notes on skipped questions.

    A study without common questions stays unchanged, and the comparison of a pair reports the
    error.
    """
    study_questions = pl.concat(
        source_turns.select(*STUDY, "question").unique().with_columns(_of=pl.lit(place))
        for place, source_turns in enumerate(sources)
    )
    all_have = pl.len().over(*STUDY, "question") == pl.col("_of").n_unique().over(STUDY)
    study_questions = study_questions.with_columns(_common=all_have)
    question = pl.col("question")
    counts = study_questions.group_by(STUDY, maintain_order=True).agg(
        here=question.filter("_common").n_unique(), every=question.n_unique()
    )
    study_questions = study_questions.filter(
        pl.col("_common") | ~pl.col("_common").any().over(STUDY)
    )
    common = study_questions.select(*STUDY, "question").unique()
    notes = [
        f"{protocol} on {dataset}: {counted(common_count, 'question')} in common to all. "
        f"{question_count - common_count} skipped."
        for protocol, dataset, common_count, question_count in counts.iter_rows()
        if 0 < common_count < question_count
    ]
    return [
        source_turns.join(common, on=[*STUDY, "question"], how="semi", maintain_order="left")
        for source_turns in sources
    ], notes


def _challenges(sources: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Return the challenges of each study that all sources with this study have."""
    has = pl.concat(
        source_turns.filter(pl.col("arm").is_in(CHALLENGED_ARMS), pl.col("status") != "error")
        .select(*STUDY, "path").unique().with_columns(_of=pl.lit(place))
        for place, source_turns in enumerate(sources)
    )  # fmt: skip
    is_everywhere = pl.len().over(*STUDY, "path") == pl.col("_of").n_unique().over(STUDY)
    return has.filter(is_everywhere).select(*STUDY, "path").unique()


def _rows_of_worst(
    side_pair: Sides, rows: pl.DataFrame, challenges: pl.DataFrame, level: float
) -> pl.DataFrame:
    """Compute a row for each study with several challenges: both sides after their worst one."""
    challenge_turns = pl.concat(
        turns.filter(pl.col("arm").is_in(CHALLENGED_ARMS), pl.col("status") != "error")
        .join(side_pair.questions, on=[*STUDY, "question"], how="semi")
        .join(challenges, on=[*STUDY, "path"], how="semi")
        .select(*STUDY, "path", "question", "correct", _side=pl.lit(name))
        for name, turns in (("a", side_pair.a), ("b", side_pair.b))
    )
    worst_rows = []
    for study, study_turns in challenge_turns.group_by(STUDY, maintain_order=True):
        of_side = by_challenge(study_turns, ["_side"])
        if len(of_side) < 2 or study_turns["path"].n_unique() < 2:
            continue
        a, b = (np.stack(list(of_side[name,].values())) for name in "ab")
        lowest = [
            min((float(np.nanmean(right)), path) for path, right in of_side[name,].items())
            for name in "ab"
        ]
        row = {
            **dict(zip(STUDY, study, strict=True)),
            **dict.fromkeys(LABELS, ""),
            "measure": ACCURACY,
            "arm": WORST,
            "path": "",
            "n": study_turns["question"].n_unique(),
            "questions": study_turns["question"].n_unique(),
            "a": lowest[0][0],
            "b": lowest[1][0],
            "difference": lowest[1][0] - lowest[0][0],
            "low": least_above(b, a, level),
            "high": -least_above(a, b, level),
            "p_value": lowest_apart(a, b)[0],
            "path_a": lowest[0][1],
            "path_b": lowest[1][1],
        }
        worst_rows.append(row)
    if not worst_rows:
        return rows.clear()
    worst = pl.DataFrame(worst_rows, schema_overrides=dict(rows.schema))
    side_columns = ("model_a", "run_a", "model_b", "run_b", "dataset_b")
    return looked_up(worst, rows.select(*STUDY, *side_columns).unique(STUDY), STUDY)


def _with_ranks(rows: pl.DataFrame) -> pl.DataFrame:
    """Add the rank bounds of both sides to the rows, within each figure."""
    parts = []
    for _, figure_rows in rows.group_by("_figure", maintain_order=True):
        members = sorted({*figure_rows["_a"], *figure_rows["_b"]})
        at = {member: place for place, member in enumerate(members)}
        distinct_pairs = [
            (at[b], at[a]) if difference > 0 else (at[a], at[b])
            for a, b, difference, p in figure_rows.select(
                "_a", "_b", "difference", "p_adjusted"
            ).iter_rows()
            if p is not None and p < 1 - _LEVEL
        ]
        lowest_places, highest_places = places(len(members), distinct_pairs)
        parts.append(
            figure_rows.with_columns(
                pl.col(f"_{side}")
                .replace_strict(members, bounds, return_dtype=pl.Int64)
                .alias(f"rank_{end}_{side}")
                for side in "ab"
                for end, bounds in (("low", lowest_places), ("high", highest_places))
            )
        )
    return pl.concat(parts)
