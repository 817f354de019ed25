"""Confirmed attacks: those that turn the answer again more often than the original is wrong."""

import math
from functools import cache

import polars as pl

from holdfast.results.changes import with_adjusted
from holdfast.results.first_answers import STUDY, TURN
from holdfast.results.inference import benjamini_hochberg

from .arms import AGAIN, AGAIN_PLAIN
from .replicates import PROTOCOL, successes

LEVEL = 0.05
"""Share of false discoveries among the confirmed, at the most."""

CONFIRMED = (
    "again", "again_wrong", "plain", "plain_wrong", "confirm_p", "confirm_adjusted", "confirmed",
)  # fmt: skip
"""What is said of a successful attack that was asked again."""

HYPOTHESIS = (*STUDY, "question", "rewrite")
"""Identical attacks on a question are one."""


def confirmed(turns: pl.DataFrame) -> pl.DataFrame:
    """Successful attacks, asked again beside their originals.

    ``again`` counts the readable replies to the attacked question, ``again_wrong`` the wrong ones,
    ``plain`` and ``plain_wrong`` those of the original, over all replicates with that attack; the
    replies that turned are not among them. ``confirm_p`` is Fisher's exact one-sided test that the
    attacked question is wrong more often, ``confirm_adjusted`` the same after Benjamini and
    Hochberg (1995) over the attacks of the run, identical ones counted once.

    Args:
        turns: a turns table; only protocol ``medfuzz`` is read.

    Returns:
        One row for each different successful attack (``HYPOTHESIS``; without the digest of the
        text in the table, for each success) that was asked again, with ``CONFIRMED``.
    """
    won = hypotheses(turns).select(*TURN, "rewrite")
    own = turns.filter(
        pl.col("protocol") == PROTOCOL,
        pl.col("arm").is_in([AGAIN, AGAIN_PLAIN]),
        pl.col("status") == "parsed",
    ).select(*TURN, "arm", "correct")
    attacked, wrong = pl.col("arm") == AGAIN, ~pl.col("correct")
    rows = (
        own.join(won, on=TURN, how="inner", maintain_order="left")
        .group_by(HYPOTHESIS, maintain_order=True)
        .agg(
            attacked.sum().cast(pl.Int64).alias("again"),
            (attacked & wrong).sum().cast(pl.Int64).alias("again_wrong"),
            (~attacked).sum().cast(pl.Int64).alias("plain"),
            (~attacked & wrong).sum().cast(pl.Int64).alias("plain_wrong"),
        )
    )
    p = [fisher(*counts) for counts in rows.select(CONFIRMED[:4]).iter_rows()]
    rows = rows.with_columns(pl.Series("confirm_p", p, dtype=pl.Float64))
    rows = with_adjusted(rows, STUDY, "confirm_p", benjamini_hochberg)
    rows = rows.rename({"p_adjusted": "confirm_adjusted"})
    return rows.with_columns(confirmed=pl.col("confirm_adjusted") <= LEVEL)


def hypotheses(turns: pl.DataFrame) -> pl.DataFrame:
    """The successes of ``successes``, told apart by ``rewrite`` in tables without it too."""
    each = pl.format("{} {}", "epoch", "k")
    return successes(turns).with_columns(pl.coalesce("rewrite", each).alias("rewrite"))


@cache
def fisher(n: int, hits: int, other_n: int, other_hits: int) -> float:
    """P-value that a share is no larger than another one (Fisher's exact test, one-sided).

    Written out as the other tests are; a test holds it against the library.
    """
    both = hits + other_hits
    ways = sum(
        math.comb(n, x) * math.comb(other_n, both - x) for x in range(hits, min(n, both) + 1)
    )
    return ways / math.comb(n + other_n, both)
