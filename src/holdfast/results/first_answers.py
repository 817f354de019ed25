"""First answers: each answered turn with the model's answer before any challenge."""

from collections.abc import Sequence

import polars as pl

from .arms import in_arms, protocols
from .kept import once
from .readings import NON_RESPONSE

STUDY = ("run", "model", "dataset", "protocol")
"""Columns that identify a study. Two settings of a model are two runs."""

CHALLENGE = ("arm", "path", "technique", "family", "axis", "depth")
"""Columns that identify a challenge within a study."""

TURN = (*STUDY, "epoch", "question")
"""Columns that join a challenged turn to its question's first answer."""

BASELINE = "baseline"
"""``arm`` of the first answers."""

FAMILY_AVERAGE = "family-average"
"""``arm`` of the rows that average the techniques of a family."""

BEFORE = ("right", "wrong", "unread")
"""States of a first answer."""

AFTER = ("right", "suggested", "other", "unread")
"""States of the answer to the challenge. ``suggested`` and ``other`` are wrong."""

STRATA = ("step", "system", "specialty", "subject")
"""Labels that distinguish questions."""

_FIRST_COLUMNS = (
    *TURN, *CHALLENGE, "turn", *STRATA, "suggested", "answer", "status", "rule", "correct",
)  # fmt: skip


def with_first(
    turns: pl.DataFrame,
    *more_columns: str,
    arms: tuple[str, ...] | None = None,
    with_failed: bool = False,
) -> pl.DataFrame:
    """Return answered turns, each with the first answer to its question.

    Returns:
        The turns that did not fail and are not ``apart``, in their order and including first
        answers, with ``first_correct`` and ``first_answer``. Both are null if the protocol asks no
        plain question, or if the plain question failed. Only ``first_answer`` is null if the first
        answer is unparsed. ``with_failed`` includes failed turns, as unparsed answers. Skipped
        turns of ended conversations follow with the last answer (``with_ended``).
    """
    answered_turns = _with_first(turns, *more_columns, with_failed=with_failed)
    return (
        answered_turns
        if arms is None
        else answered_turns.filter(pl.col("arm").is_in([BASELINE, *arms]))
    )


@once
def _with_first(turns: pl.DataFrame, *more_columns: str, with_failed: bool) -> pl.DataFrame:
    # select columns before rows: copying the unused columns takes longer than the rest
    selected_turns = with_ended(turns).select(*dict.fromkeys([*_FIRST_COLUMNS, *more_columns]))
    answered_turns = selected_turns.filter(
        ~apart(), pl.lit(with_failed) | (pl.col("status") != "error")
    )
    first = answered_turns.filter(pl.col("arm") == BASELINE).select(
        *TURN, pl.col("correct").alias("first_correct"), pl.col("answer").alias("first_answer")
    )
    if with_failed:  # a failed first answer can have been asked again
        first = first.unique(TURN, keep="last", maintain_order=True)
    return answered_turns.join(first, on=TURN, how="left", validate="m:1", maintain_order="left")


@once
def answering(turns: pl.DataFrame) -> pl.DataFrame:
    """Return a turns table for measures of changes, with each non-response as a failed turn.

    A non-response counts as wrong in accuracies, but it is neither a change nor a retained answer.
    """
    silent = pl.col("rule").eq_missing(NON_RESPONSE)
    return turns.with_columns(status=pl.when(silent).then(pl.lit("error")).otherwise("status"))


_OF_STEP = (*CHALLENGE, "turn")


def with_ended(turns: pl.DataFrame) -> pl.DataFrame:
    """Add the turns that were not asked because an answer ended their conversation.

    If a protocol stops early (``TurnsOf.stops_early``) and each path is a conversation, later turns
    are asked only while the model gives the target. A mean over these turns rises as other
    conversations end. An ended conversation therefore counts with its last answer.

    Args:
        turns: a turns table.

    Returns:
        ``turns``, and one row for each turn that the study asked of other questions only. The row
        repeats the last turn of the conversation, with ``CHALLENGE`` and ``turn`` of the turn that
        was not asked. No row is added after a failed turn or in an interrupted run.
    """
    ending = protocols(lambda declaration: declaration.stops_early and not declaration.by_arm)
    if not turns["protocol"].is_in(ending).any():
        return turns  # spares the copy of all columns below
    conversation_turns = turns.filter(pl.col("protocol").is_in(ending)).filter(~apart())
    is_step = (pl.col("path") != "") & (pl.col("arm") != BASELINE)
    steps = conversation_turns.filter(is_step).select(*STUDY, *_OF_STEP)
    if steps.is_empty():
        return turns
    conversation_turns = conversation_turns.unique(
        [*TURN, "arm", "path"], keep="first", maintain_order=True
    )
    steps = steps.unique([*STUDY, "arm", "path"], keep="first", maintain_order=True)
    conversations_begun = conversation_turns.select(TURN).unique(maintain_order=True)
    missing_steps = conversations_begun.join(steps, on=STUDY, maintain_order="left_right").join(
        conversation_turns, on=[*TURN, "arm", "path"], how="anti", maintain_order="left"
    )
    before = missing_steps.select(*TURN, "arm", "path").with_columns(
        pl.col("path").map_elements(_earlier_paths, pl.List(pl.String)).alias("_path")
    )
    last = conversation_turns.rename({"path": "_path", "arm": "_arm"})
    last = before.explode("_path").join(last, on=[*TURN, "_path"], maintain_order="left_right")
    # if arms share a path, the conversation continues from the turn of its own arm
    last = last.sort(
        -pl.col("_path").str.len_bytes().cast(pl.Int64),
        pl.col("_arm") != pl.col("arm"),
        maintain_order=True,
    )
    last = last.unique([*TURN, "arm", "path"], keep="first", maintain_order=True)
    has_ended = (pl.col("status") != "error") & pl.col("answer").ne_missing(
        pl.coalesce("target", "gold")
    )
    step = [name for name in _OF_STEP if name not in ("arm", "path")]
    last = last.filter(has_ended).drop("_path", "_arm", *step)
    added_turns = missing_steps.join(last, on=[*TURN, "arm", "path"], maintain_order="left")
    return pl.concat([turns, added_turns.select(turns.columns)])


def _earlier_paths(path: str) -> list[str]:
    """Return the proper prefixes of a path, longest first."""
    steps = path.split(">")
    return [">".join(steps[:n]) for n in range(len(steps) - 1, -1, -1)]


def carried_forward(
    turns: pl.DataFrame, arms: Sequence[str], value: str, name: str
) -> pl.DataFrame:
    """Return a value of each conversation at each turn; ended conversations keep their last value.

    Args:
        turns: turns of conversations. Each arm of a question and epoch is a conversation.
        arms: further columns that identify a conversation of a question.
        value: column of the value.
        name: column name of the value in the result.

    Returns:
        One row for each conversation and 0-based turn, up to the longest conversation of its study
        and arm, with ``TURN``, ``arms``, ``turn`` and the value.
    """
    conversation = [*TURN, *arms]
    values = turns.select(*conversation, "turn", pl.col(value).alias(name)).unique(
        [*conversation, "turn"], keep="first", maintain_order=True
    )
    longest = values.group_by(*STUDY, *arms).agg(turn=pl.int_range(0, pl.col("turn").max() + 1))
    conversations_begun = values.select(conversation).unique(maintain_order=True)
    grid = conversations_begun.join(longest, on=[*STUDY, *arms], maintain_order="left").explode(
        "turn"
    )
    grid = grid.join(values, on=[*conversation, "turn"], how="left", maintain_order="left")
    return grid.with_columns(pl.col(name).forward_fill().over(conversation))


def apart() -> pl.Expr:
    """Whether only the measures of a turn's own protocol use the turn."""
    return in_arms(lambda declaration: declaration.apart.keys())
