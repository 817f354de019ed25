"""Which of several models is right more often under each kind of challenge."""

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
"""A difference is significant where its corrected p-value is below."""

FEWEST = 10
"""Questions below which no difference is tested."""

MOST_STUDIES = 40
"""Studies of a data set up to which every pair is tested; of more there are too many pairs."""


def family_differences(turns: pl.DataFrame, *, families: bool = True) -> pl.DataFrame:
    """Accuracy after the challenges of each family, of every pair of studies of a data set.

    Paired over the questions that both were asked, each technique of the family on both sides. An
    unread reply is wrong. The test is clustered by question, with Holm's correction over the pairs
    and families of a data set and protocol.

    Args:
        turns: a turns table; follow-ups and single-turn biases without a mitigation are read.
        families: whether families are tested too, or all challenges together alone.

    Returns:
        One row for each pair and family, and over all of them (``family`` null): the study with
        the higher accuracy first, ``difference`` 0 or more, and its 95% interval. Null below
        ``FEWEST`` questions. None of a data set with more than ``MOST_STUDIES`` studies.
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
    """Places that a study can have by its accuracy over all challenges.

    Places are those that the tests of ``family_differences`` leave, over all challenges alone: 1
    for the highest, with Holm's correction over the pairs, so that all of them hold at 95%.

    Returns:
        ``run``, ``model``, ``dataset``, ``protocol``, ``mean_rank_low`` and ``mean_rank_high``, one
        row for each study that is compared with another.
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
