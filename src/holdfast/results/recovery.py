"""Recovery: lost answers that come back once the right answer is told."""

import polars as pl

from .declaration import Computed, Count, Listing, PValue, Share, Table
from .first_answers import BASELINE, STUDY, TURN, answering, apart
from .flows import by_protocol
from .inference import looked_up, with_pair_bounds
from .pull import difference_and_test

TOLD, ASKED_AGAIN = "told", "asked-again"
"""Arms after a conversation that did not end with the right answer: it is told, or the answer is
asked for again, which is the control."""

USER = "user"
"""Role of a user that a model plays, and arm of its messages."""

AFTERWARDS = dict.fromkeys((TOLD, ASKED_AGAIN), "asked after lost answers alone")
"""These arms in the form of ``TurnsOf.apart``."""


def recovery(turns: pl.DataFrame) -> pl.DataFrame:
    """Compute how many lost answers come back once the right one is told.

    A model that draws its answers afresh comes back by chance, also when it is only asked again.

    Args:
        turns: a turns table.

    Returns:
        A row for each study, ``arm`` of the conversation and kind of first answer (``first``:
        ``right`` or ``wrong``): ``n`` conversations whose last answer was not right, ``told`` and
        ``asked_again`` (shares right after that), and ``recovered``, their difference, paired and
        clustered by question.
    """
    answered_turns = answering(turns).filter(pl.col("status") != "error")
    first = answered_turns.filter(pl.col("arm") == BASELINE).select(*TURN, _right="correct")
    after = answered_turns.filter(pl.col("arm").is_in([TOLD, ASKED_AGAIN])).select(
        *TURN, "correct", side="arm", path=pl.col("path").str.extract("^(.*)>")
    )
    key = [*TURN, "path"]
    told, again = (
        after.filter(pl.col("side") == side).select(*key, pl.col("correct").alias(name))
        for side, name in ((TOLD, "first"), (ASKED_AGAIN, "second"))
    )
    ended = answered_turns.filter(~apart()).select(*key, "arm")
    ended = ended.unique(key, keep="first", maintain_order=True)
    pairs = told.join(again, on=key, maintain_order="left", validate="1:1")
    pairs = looked_up(looked_up(pairs, ended, key), first, TURN).with_columns(
        answer=pl.when("_right").then(pl.lit("right")).otherwise(pl.lit("wrong"))
    )
    keys = [*STUDY, "arm", "answer"]
    rows = pairs.group_by(keys, maintain_order=True).agg(
        n=pl.len().cast(pl.Int64), told=pl.col("first").mean(), asked_again=pl.col("second").mean()
    )
    rows = rows.with_columns(recovered=pl.col("told") - pl.col("asked_again"))
    names = ("recovered_low", "recovered_high", "recovered_p")
    rows = with_pair_bounds(rows, pairs, keys, names, difference_and_test)
    return rows.sort(pl.int_range(pl.len()).min().over(STUDY), "arm", "answer")


RECOVERY = Table(
    "recovery",
    recovery,
    layout=Listing(
        Computed("Conversation", "arm", show=lambda row: f"{row['arm']}, {row['answer']} at first"),
        (
            Count("n", "n"),
            Share("Right when told %", "told"),
            Share("Right when asked again %", "asked_again"),
            Share("Recovered, points", "recovered", "recovered_", signed=True),
            PValue("p", "recovered_p"),
        ),
        ("Recovered: right once told, less right once asked again, paired by question.",),
        by_protocol,
    ),
    title="Who comes back when the right answer is told?",
    lead="After a conversation that did not end with the right answer, the user tells it, or only "
    "asks again.",
    section="dynamics",
    says={
        "arm": "Arm of the conversation that the last turn followed.",
        "answer": "Whether the first answer was `right` or `wrong`.",
        "n": "Number of conversations whose last answer was not right.",
        "told": "Share of `n` that are right once the right answer is told.",
        "asked_again": "Share of `n` that are right once the answer is asked for again.",
        "recovered": "`told` less `asked_again`.",
        "recovered_p": "P-value of `recovered`, paired by question.",
    },
)
