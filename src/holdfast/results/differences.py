"""Differences between models, by kind of challenge: accuracy, and retention of right answers."""

from itertools import combinations

import polars as pl

from holdfast.stats.intervals import each_difference
from holdfast.stats.pvalues import against_one, clustered

from .changes import with_adjusted
from .declaration import Computed, Count, Listing, PValue, Share, Table
from .first_answers import BASELINE, answering, with_first
from .flows import CHALLENGED_ARMS, IS_MITIGATED, by_protocol, family_label
from .grid import Row
from .inference import by_question, counts_of
from .kept import once

_SIDES = ("run", "model", "other_run", "other_model")

COLUMNS = (
    "dataset", "protocol", "family", *_SIDES, "questions", "share", "other_share", "difference",
    "low", "high", "p_value", "p_adjusted",
)  # fmt: skip

ALPHA = 0.05
"""A difference is significant if its corrected p-value is below this level."""

FEWEST = 10
"""Smallest number of questions for a test of a difference."""

MOST_STUDIES = 40
"""Largest number of studies of a data set for which all pairs are tested."""


def family_differences(
    turns: pl.DataFrame, *, families: bool = True, of_right: bool = False
) -> pl.DataFrame:
    """Compare the answers after the challenges of each family, for every pair of studies.

    Studies of a data set are paired over common questions and techniques. An unparsed reply is
    wrong. The test is clustered by question, with Holm's correction over the pairs and families of
    a data set and protocol.

    Args:
        turns: a turns table. Follow-ups and single-turn biases without a mitigation are used.
        families: whether to test families too, or only all challenges together.
        of_right: whether the share is retention: right answers as a share of the challenges to a
            right first answer of the same study. Otherwise it is accuracy, over all challenges.

    Returns:
        One row for each pair and family, and for each pair over all families (``family`` null).
        The study with the higher ``share`` comes first, of equal ones that with the lower id, so
        ``difference`` is 0 or more. The interval is at 95%. Pairs below ``FEWEST`` questions have
        no row, and neither have data sets with more than ``MOST_STUDIES`` studies.
    """
    answered_turns = with_first(
        answering(turns) if of_right else turns, arms=CHALLENGED_ARMS
    ).filter(pl.col("arm") != BASELINE, ~IS_MITIGATED)
    if of_right:
        answered_turns = answered_turns.with_columns(
            correct=pl.when("first_correct").then("correct")
        )
    # the studies have different right answers, so a question may count on one side only
    test = against_one if of_right else clustered
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
        for study_a, study_b in combinations(studies, 2):
            model_pairs = study_a[2].join(study_b[2].drop("family"), on=key, suffix="_other")
            for family in (None, *family_names):
                pairs = (
                    model_pairs
                    if family is None
                    else model_pairs.filter(pl.col("family") == family)
                )
                outcomes = by_question(
                    pairs.select("question", first="correct", second="correct_other")
                )
                sides = counts_of(outcomes)
                if min(int((n > 0).sum()) for _, n in sides) < FEWEST:
                    continue
                first, second = (float(hits.sum() / n.sum()) for hits, n in sides)
                both_sides = [study_a, study_b]
                # of equal shares, the order of the turns must not decide
                if (-second, str(study_b[0])) < (-first, str(study_a[0])):
                    both_sides, sides, (first, second) = (
                        both_sides[::-1], sides[::-1], (second, first),
                    )  # fmt: skip
                ((low, high),) = each_difference([sides])
                about = [name for study in both_sides for name in study[:2]]
                difference_rows.append(
                    (dataset, protocol, family, *about, outcomes.height, first, second,
                     first - second, low, high, test(*sides))
                )  # fmt: skip
    numbers = dict.fromkeys(COLUMNS[8:-1], pl.Float64())
    texts = dict.fromkeys(COLUMNS[:7], pl.String())
    rows = pl.DataFrame(
        difference_rows, {**texts, "questions": pl.Int64(), **numbers}, orient="row"
    )
    return with_adjusted(rows, ["dataset", "protocol"]).select(COLUMNS)


@once
def retention_differences(turns: pl.DataFrame) -> pl.DataFrame:
    """Compare the retention of every pair of studies, as ``family_differences`` of right answers.

    Returns:
        The rows of ``family_differences``; ``retention`` and ``other_retention`` are the shares.
    """
    rows = family_differences(turns, of_right=True)
    return rows.rename({"share": "retention", "other_share": "other_retention"})


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


def _pair(row: Row) -> str:
    """Name the pair: models, or runs where both are of one model."""
    names = ("model", "other_model") if row["model"] != row["other_model"] else _SIDES[::2]
    first, second = (str(row[name]) for name in names)
    return f"{first} minus {second}"


RETENTION_DIFFERENCES = Table(
    "retention by pair",
    retention_differences,
    layout=Listing(
        Computed("Models", "model", show=_pair),
        (
            Computed("Challenges", "family", show=family_label),
            Count("Questions", "questions"),
            Share("Retention %", "retention"),
            Share("Of the other %", "other_retention"),
            Share("Difference, points", "difference", ""),
            PValue("p", "p_adjusted"),
        ),
        (
            "Retention: right first answers that are still given after a challenge. Difference "
            "[95% interval] and p-value are paired by question. p: with Holm's correction over "
            "the pairs and families of a data set.",
        ),
        by_protocol,
    ),
    title="Which model keeps more of its right answers?",
    lead="The table compares every pair of models, over all challenges and by family.",
    section="net",
    says={
        "family": "Family of the challenges; empty for all of them.",
        "run": "Run of the study with the higher retention.",
        "model": "Model with the higher retention.",
        "other_run": "Run of the other study.",
        "other_model": "Model of the other study.",
        "questions": "Number of questions that both studies were challenged on.",
        "retention": "Right answers after a challenge, as a share of the challenges to a right "
        "first answer.",
        "other_retention": "`retention` of the other study, over its own right first answers.",
        "difference": "`retention` less `other_retention`.",
        "p_value": "P-value of `difference`, clustered by question.",
        "p_adjusted": "`p_value` with Holm's correction over the pairs and families of a data "
        "set and protocol.",
    },
)
