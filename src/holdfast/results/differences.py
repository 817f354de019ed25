"""Differences in accuracy between models, by kind of challenge."""

from itertools import combinations

import polars as pl

from holdfast.stats.intervals import each_difference
from holdfast.stats.pvalues import clustered

from .changes import with_adjusted
from .first_answers import BASELINE, with_first
from .flows import CHALLENGED_ARMS, IS_MITIGATED
from .inference import by_question, counts_of

COLUMNS = (
    "dataset", "protocol", "family", "run", "model", "other_run", "other_model", "questions",
    "difference", "low", "high", "p_value", "p_adjusted",
)  # fmt: skip

ALPHA = 0.05
"""A difference is significant if its corrected p-value is below this level."""

FEWEST = 10
"""Smallest number of questions for a test of a difference."""

MOST_STUDIES = 40
"""Largest number of studies of a data set for which all pairs are tested."""


def family_differences(turns: pl.DataFrame, *, families: bool = True) -> pl.DataFrame:
    """Compare accuracy after the challenges of each family, for every pair of studies.

    Studies of a data set are paired over common questions and techniques. An unparsed reply is
    wrong. The test is clustered by question, with Holm's correction over the pairs and families of
    a data set and protocol.

    Args:
        turns: a turns table. Follow-ups and single-turn biases without a mitigation are used.
        families: whether to test families too, or only all challenges together.

    Returns:
        One row for each pair and family, and for each pair over all families (``family`` null).
        The study with the higher accuracy comes first, so ``difference`` is 0 or more. The interval
        is at 95%. Pairs below ``FEWEST`` questions have no row, and neither have data sets with
        more than ``MOST_STUDIES`` studies.
    """
    answered_turns = with_first(turns, arms=CHALLENGED_ARMS).filter(
        pl.col("arm") != BASELINE, ~IS_MITIGATED
    )
    key = ["question", "epoch", "arm", "path"]
    difference_rows: list[tuple[object, ...]] = []
    for (dataset, protocol), dataset_turns in answered_turns.group_by(
        "dataset", "protocol", maintain_order=True
    ):
        studies = [
            (run, model, study_turns.select(*key, "family", "correct"))
            for (run, model), study_turns in dataset_turns.group_by(
                "run", "model", maintain_order=True
            )
        ]
        if len(studies) > MOST_STUDIES:
            continue
        family_names = (
            dataset_turns["family"].drop_nulls().unique(maintain_order=True) if families else ()
        )
        kinds = [None, *family_names]
        for study_a, study_b in combinations(studies, 2):
            model_pairs = study_a[2].join(study_b[2].drop("family"), on=key, suffix="_other")
            for family in kinds:
                pairs = (
                    model_pairs
                    if family is None
                    else model_pairs.filter(pl.col("family") == family)
                )
                outcomes = by_question(
                    pairs.select("question", first="correct", second="correct_other")
                )
                if outcomes.height < FEWEST:
                    continue
                sides = counts_of(outcomes)
                first, second = (float(hits.sum() / n.sum()) for hits, n in sides)
                both_sides = [study_a, study_b]
                if second > first:
                    both_sides, sides = both_sides[::-1], sides[::-1]
                ((low, high),) = each_difference([sides])
                about = [name for study in both_sides for name in study[:2]]
                difference_rows.append(
                    (dataset, protocol, family, *about, outcomes.height, abs(first - second), low,
                     high, clustered(*sides))
                )  # fmt: skip
    numbers = dict.fromkeys(("difference", "low", "high", "p_value"), pl.Float64())
    texts = dict.fromkeys(COLUMNS[:7], pl.String())
    rows = pl.DataFrame(
        difference_rows, {**texts, "questions": pl.Int64(), **numbers}, orient="row"
    )
    return with_adjusted(rows, ["dataset", "protocol"]).select(COLUMNS)


def mean_ranks(turns: pl.DataFrame) -> pl.DataFrame:
    """Compute the range of ranks of each study, by accuracy over all challenges.

    Rank 1 is the highest. A range contains the ranks that the tests of ``family_differences`` over
    all challenges do not exclude. With Holm's correction over the pairs, all ranges are valid
    together at 95%.

    Returns:
        One row for each study with a comparison, with ``run``, ``model``, ``dataset``,
        ``protocol``, ``mean_rank_low`` and ``mean_rank_high``.
    """
    pairs = family_differences(turns, families=False)
    real = pl.col("p_adjusted") < ALPHA
    key = ["run", "model", "dataset", "protocol"]
    opposite = pl.col("other_run").alias("run"), pl.col("other_model").alias("model")
    nothing = pl.lit(0, pl.Int64)
    both_directions = pl.concat([
        pairs.select(*key, above=nothing, below=real.cast(pl.Int64)),
        pairs.select(*opposite, "dataset", "protocol", above=real.cast(pl.Int64), below=nothing),
    ])  # fmt: skip
    return both_directions.group_by(key, maintain_order=True).agg(
        mean_rank_low=1 + pl.col("above").sum(),
        mean_rank_high=1 + pl.len().cast(pl.Int64) - pl.col("below").sum(),
    )
