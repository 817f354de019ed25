"""Replays: earlier turns that an assistant was sent again, and how its replies to them differ."""

import polars as pl

from .arms import in_arms
from .declaration import Count, Listing, Share, Table, Text
from .first_answers import STUDY
from .inference import with_bounds

COLUMNS = (
    *STUDY[1:], "questions", "replays", "differ", "differ_share", "differ_low", "differ_high",
    "moved", "moved_share", "moved_low", "moved_high", "run",
)  # fmt: skip


def replays(turns: pl.DataFrame) -> pl.DataFrame:
    """Count the replies to earlier turns that differ when these are sent again in a new session.

    An assistant that is sent the newest turn alone remembers the turns before it. Each branch of a
    conversation has a session of its own, in which the turns before the branch are sent again. A
    reply that differs then is noise, in challenged conversations and in controls alike.

    Args:
        turns: a turns table. Turns that share a generation count once, failed ones do not.

    Returns:
        One row for each study in which turns were sent again, with ``COLUMNS``: ``differ`` counts
        other texts, ``moved`` other answers. Intervals are at 95%, clustered by question.
    """
    helping = in_arms(lambda protocol: protocol.helpers)
    sent_again = turns.filter(
        pl.col("replays") > 0, ~pl.col("shared"), pl.col("status") != "error", ~helping
    )
    place = pl.int_ranges(0, pl.col("replays")).alias("place")
    trials = sent_again.select(
        *STUDY, "question", "replays_differ", "replays_moved", place
    ).explode("place")
    trials = trials.with_columns(
        differs=pl.col("place") < pl.col("replays_differ"),
        moves=pl.col("place") < pl.col("replays_moved"),
    )
    rows = trials.group_by(STUDY, maintain_order=True).agg(
        questions=pl.col("question").n_unique().cast(pl.Int64),
        replays=pl.len().cast(pl.Int64),
        differ=pl.col("differs").sum().cast(pl.Int64),
        moved=pl.col("moves").sum().cast(pl.Int64),
    )
    for name, hit in (("differ", "differs"), ("moved", "moves")):
        rows = rows.with_columns((pl.col(name) / pl.col("replays")).alias(f"{name}_share"))
        rows = with_bounds(rows, trials, STUDY, f"{name}_share", hit, f"{name}_")
    return rows.select(COLUMNS)


REPLAYS_TABLE = Table(
    "replays",
    replays,
    layout=Listing(
        Text("Protocol", "protocol"),
        (
            Count("Replies", "replays"),
            Count("Other text", "differ"),
            Share("Other text %", "differ_share", "differ_"),
            Count("Other answer", "moved"),
            Share("Other answer %", "moved_share", "moved_"),
        ),
        (
            "Replies: to turns that were sent again at the start of a new session. Other text, "
            "other answer: than the first time [95% interval, clustered by question]. This noise "
            "is in the controls too, and is subtracted with them.",
        ),
    ),
    title="What does the assistant answer when a conversation is replayed?",
    lead="The assistant is sent the newest turn alone, so each branch replays the turns before it.",
    section="reading",
    says={
        "replays": "Number of replies to turns that were sent again in a new session.",
        "differ": "Number of them with another text than the first time.",
        "differ_share": "`differ` over `replays`.",
        "moved": "Number of them in which another answer is read than the first time.",
        "moved_share": "`moved` over `replays`.",
    },
)
