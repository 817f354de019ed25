"""Which of several models is right more often under each kind of challenge."""

from itertools import combinations

import polars as pl

from holdfast.stats.intervals import each_difference
from holdfast.stats.pvalues import clustered

from .changes import with_adjusted
from .first_answers import BASELINE, with_first
from .flows import CHALLENGED, MITIGATED
from .inference import by_question, counts_of

COLUMNS = (
    "dataset", "protocol", "family", "run", "model", "other_run", "other_model", "questions",
    "difference", "low", "high", "p_value", "p_adjusted",
)  # fmt: skip

FEWEST = 10
"""Questions below which no difference is tested."""


def family_differences(turns: pl.DataFrame) -> pl.DataFrame:
    """Accuracy after the challenges of each family, of every pair of studies of a data set.

    Paired over the questions that both were asked, each technique of the family on both sides. An
    unread reply is wrong. The test is clustered by question, with Holm's correction over the pairs
    and families of a data set and protocol.

    Args:
        turns: a turns table; follow-ups and single-turn biases without a mitigation are read.

    Returns:
        One row for each pair and family, and over all of them (``family`` null): the study with
        the higher accuracy first, ``difference`` 0 or more, and its 95% interval. Null below
        ``FEWEST`` questions.
    """
    answered = with_first(turns, arms=CHALLENGED).filter(pl.col("arm") != BASELINE, ~MITIGATED)
    key = ["question", "epoch", "arm", "path"]
    found: list[tuple[object, ...]] = []
    for (dataset, protocol), own in answered.group_by("dataset", "protocol", maintain_order=True):
        studies = [
            (run, model, each.select(*key, "family", "correct"))
            for (run, model), each in own.group_by("run", "model", maintain_order=True)
        ]
        families = [None, *own["family"].drop_nulls().unique(maintain_order=True)]
        for one, other in combinations(studies, 2):
            both = one[2].join(other[2].drop("family"), on=key, suffix="_other")
            for family in families:
                pairs = both if family is None else both.filter(pl.col("family") == family)
                outcomes = by_question(
                    pairs.select("question", first="correct", second="correct_other")
                )
                if outcomes.height < FEWEST:
                    continue
                sides = counts_of(outcomes)
                first, second = (float(hits.sum() / n.sum()) for hits, n in sides)
                named = [one, other]
                if second > first:
                    named, sides = named[::-1], sides[::-1]
                ((low, high),) = each_difference([sides])
                about = [name for study in named for name in study[:2]]
                found.append(
                    (dataset, protocol, family, *about, outcomes.height, abs(first - second), low,
                     high, clustered(*sides))
                )  # fmt: skip
    numbers = dict.fromkeys(("difference", "low", "high", "p_value"), pl.Float64())
    texts = dict.fromkeys(COLUMNS[:7], pl.String())
    rows = pl.DataFrame(found, {**texts, "questions": pl.Int64(), **numbers}, orient="row")
    return with_adjusted(rows, ["dataset", "protocol"]).select(COLUMNS)
