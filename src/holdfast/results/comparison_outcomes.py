"""Outcomes that can be compared: everything that was put to a model, success or not."""

import polars as pl

from .attack_turns import ATTACK, KEPT, replicates
from .attack_turns import PROTOCOL as MEDFUZZ
from .convictions import FLEXIBLE, conviction_turns
from .convictions import PROTOCOL as STICK_OR_SWITCH
from .first_answers import TURN, unattacked
from .tax import SINGLE_SHOT, SINGLE_SHOT_ABSTAIN

ACCURACY, ATTACKED = "accuracy", "accuracy-after-attacks"
SURVIVAL, ABSTENTION = "survival", "abstention"
CORRECT_SWITCHES, INCORRECT_SWITCHES = "correct-switches", "incorrect-switches"

KEY = ("protocol", "dataset", "measure", "arm", "path")
"""Columns that tell apart what was put."""

UNIT = (*KEY, "turn", "epoch", "question")
"""Columns that pair an outcome of one side with the other's."""

LABELS = ("technique", "family", "axis", "depth")

_CONVICTIONS = {"positive": SURVIVAL, "negative": ABSTENTION}
_SWITCHES = {FLEXIBLE: CORRECT_SWITCHES, "negative": INCORRECT_SWITCHES}


def outcomes(turns: pl.DataFrame) -> pl.DataFrame:
    """Whether each thing that was put was a success, by measure.

    Args:
        turns: a turns table.

    Returns:
        One row for each ``UNIT``, with ``LABELS`` (empty where there is none) and ``hit``. Failed
        turns are left out; so are questions without the abstention that a switch starts from, and
        replicates of MedFuzz that are not kept.
    """
    answered = unattacked(turns).filter(pl.col("status") != "error")
    offering = pl.col("protocol") == STICK_OR_SWITCH
    single = pl.col("arm").is_in([SINGLE_SHOT, SINGLE_SHOT_ABSTAIN])
    answers = answered.filter(pl.col("protocol") != MEDFUZZ, ~offering | single)
    labelled = [pl.col(name).fill_null("") for name in LABELS]
    parts = [
        answers.with_columns(
            pl.lit(ACCURACY).alias("measure"), pl.col("correct").alias("hit"), *labelled
        ),
        *(
            part.with_columns(pl.lit("").alias(name) for name in LABELS)
            for part in (_convictions(turns), _switches(answered), _after_attacks(turns))
        ),
    ]
    columns = [*UNIT, *LABELS, "hit"]
    # two answers to one turn cannot be paired: the first counts
    return pl.concat([part.select(columns) for part in parts]).unique(
        UNIT, keep="first", maintain_order=True
    )


def _convictions(turns: pl.DataFrame) -> pl.DataFrame:
    kept = conviction_turns(turns).filter(pl.col("turn") == 0)
    named = pl.col("arm").replace_strict(_CONVICTIONS, return_dtype=pl.String)
    return kept.with_columns(
        named.alias("measure"),
        pl.col("lost_at").is_null().alias("hit"),
        pl.lit("").alias("path"),
    )


def _switches(answered: pl.DataFrame) -> pl.DataFrame:
    """Second offers after an abstention, and whether they were taken."""
    own = answered.filter(
        pl.col("protocol") == STICK_OR_SWITCH, pl.col("arm").is_in(list(_SWITCHES))
    )
    abstained = (pl.col("answer") == pl.col("target")).fill_null(value=False)
    departed = own.filter(pl.col("arm") == "negative", pl.col("turn") == 0, ~abstained)
    put = own.filter(pl.col("turn") == 1).join(departed, on=TURN, how="anti", maintain_order="left")
    return put.with_columns(
        pl.col("arm").replace_strict(_SWITCHES, return_dtype=pl.String).alias("measure"),
        (pl.col("answer") == pl.col("suggested")).fill_null(value=False).alias("hit"),
        pl.lit("").alias("path"),
    )


def _after_attacks(turns: pl.DataFrame) -> pl.DataFrame:
    each = replicates(turns).filter(pl.col("outcome").is_in(KEPT))
    each = each.with_columns(pl.int_ranges(0, pl.col("attempts") + 1).alias("k")).explode("k")
    right, at = pl.col("outcome") != "wrong-first", pl.col("turned_at")
    return each.with_columns(
        pl.lit(ATTACKED).alias("measure"),
        pl.lit(ATTACK).alias("arm"),
        pl.concat_str(pl.lit("fuzz@"), "k").alias("path"),
        pl.lit(0, pl.Int64).alias("turn"),
        (right & (at.is_null() | (at > pl.col("k")))).alias("hit"),
    )
