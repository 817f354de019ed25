"""Controls: requests without a challenge, and the effect of a challenge beyond its control.

A reply that changes without a challenge is not an effect of the challenge. A control asks without a
challenge: ``resample`` asks the first question in a new conversation, and ``restate`` asks for the
answer again in the same conversation. A challenge is compared with the control at the same turn of
the conversation. If a challenge with a generated text has an inert version (a passage without an
argument), it is compared with that version.
"""

from collections.abc import Sequence

import polars as pl

from holdfast.stats.intervals import each_difference, excess_bounds
from holdfast.stats.pvalues import each_against_one
from holdfast.stats.scores import Pair

from .first_answers import BASELINE, STUDY, TURN, answering, with_first
from .inference import with_pair_bounds
from .kept import once

CONTROL = "control"
"""``arm`` and ``family`` of the controls; for attacks, only the arm."""

CORRECTION = "correction"
"""``arm`` and ``family`` of challenges that name the right option to a wrong first answer."""

BESIDE = dict.fromkeys((CONTROL, CORRECTION), "controls and corrections")
"""Arms without challenges, in the form of ``TurnsOf.apart``."""

RESAMPLE = "resample"
"""``path`` of the first question, asked in a new conversation."""

INERT = "inert"
"""``family`` of the controls in a challenge's wording, with a passage without an argument.

Their ``path`` is ``inert:`` and the path of the challenge.
"""

EPOCHS = "epochs"
"""``control`` of questions whose other epochs serve as resamples."""

NET = (
    "pairs", "lost", "lost_control", "attributable", "attributable_low", "attributable_high",
    "attributable_p", "causal_share", "causal_low", "causal_high",
)  # fmt: skip
"""Columns of a row that are net of the control."""

EFFECT = NET[3:]
"""Columns of ``NET`` that other tables show next to their own figures."""

FEWEST = 10
"""Smallest number of questions for figures about noise."""


def controls_of(turns: pl.DataFrame) -> pl.DataFrame:
    """Return the controls of each question, by turn of the conversation.

    If a question has several epochs and no resamples, the first answers of the other epochs serve
    as the resamples of each epoch.

    Args:
        turns: a turns table.

    Returns:
        One row for each ``TURN`` and ``turn`` with ``control`` (its path, or ``epochs`` for the
        other epochs), ``control_read`` (whether any of its replies was parsed), ``control_lost``
        and ``control_right`` (shares of the parsed replies, 0 to 1), and ``control_kept`` (share
        of all replies that are right, 0 to 1, including unparsed ones).
    """
    answered_turns = answering(turns).filter(pl.col("status") != "error")
    control_rows = _select_controls(answered_turns, CONTROL)
    first = answered_turns.filter(pl.col("arm") == BASELINE).select(
        *TURN, "turn", "status", "correct"
    )
    question = [*STUDY, "question"]
    other_epochs = first.join(
        first.select(*question, "epoch", "status", "correct"), on=question, suffix="_other"
    ).filter(pl.col("epoch") != pl.col("epoch_other"))
    is_read = pl.col("status_other") == "parsed"
    epochs = other_epochs.group_by(*TURN, "turn", maintain_order=True).agg(
        pl.lit(EPOCHS).alias("control"),
        is_read.any().alias("control_read"),
        (~pl.col("correct_other")).filter(is_read).mean().fill_null(0.0).alias("control_lost"),
        pl.col("correct_other").filter(is_read).mean().fill_null(0.0).alias("control_right"),
        pl.col("correct_other").mean().alias("control_kept"),
    )
    epoch_controls = epochs.join(
        control_rows, on=[*TURN, "turn"], how="anti", maintain_order="left"
    )
    return pl.concat([control_rows, epoch_controls.select(control_rows.columns)])


def inert_controls(turns: pl.DataFrame) -> pl.DataFrame:
    """Return the controls that replace a challenge's text by a passage without an argument.

    Args:
        turns: a turns table.

    Returns:
        Rows as in ``controls_of``. ``control`` is ``inert:`` and the challenge's path.
    """
    return _select_controls(answering(turns).filter(pl.col("status") != "error"), INERT)


def _select_controls(answered_turns: pl.DataFrame, family: str) -> pl.DataFrame:
    is_read, right = pl.col("status") == "parsed", pl.col("correct")
    family_controls = answered_turns.filter(pl.col("arm") == CONTROL, pl.col("family") == family)
    return family_controls.select(
        *TURN, "turn",
        pl.col("path").alias("control"),
        is_read.alias("control_read"),
        (is_read & ~right).cast(pl.Float64).alias("control_lost"),
        right.cast(pl.Float64).alias("control_right"),
        right.cast(pl.Float64).alias("control_kept"),
    ).unique([*TURN, "turn", "control" if family == INERT else "turn"],
             keep="first", maintain_order=True)  # fmt: skip


_CONTROL = ("control", "control_read", "control_lost", "control_right", "control_kept")


def join_control(challenged_turns: pl.DataFrame, turns: pl.DataFrame) -> pl.DataFrame:
    """Add to each challenged turn its control, null without a control.

    A path with inert passages in the same study has no other control. A turn whose inert passage is
    missing has no control.

    Args:
        challenged_turns: rows with ``TURN``, ``turn`` and ``path``.
        turns: the turns table behind ``challenged_turns``.

    Returns:
        ``challenged_turns`` in their order, with the columns of ``controls_of``.
    """
    controlled_turns = challenged_turns.join(
        controls_of(turns), on=[*TURN, "turn"], how="left", maintain_order="left"
    )
    inert = inert_controls(turns).with_columns(path=pl.col("control").str.strip_prefix(f"{INERT}:"))
    if inert.is_empty():
        return controlled_turns
    inert_paths = inert.select(*STUDY, "path").unique().with_columns(_inert=pl.lit(value=True))
    controlled_turns = controlled_turns.join(
        inert_paths, on=[*STUDY, "path"], how="left", maintain_order="left"
    ).join(
        inert.drop("turn"), on=[*TURN, "path"], how="left", suffix="_inert", maintain_order="left"
    )
    return controlled_turns.with_columns(
        pl.when(pl.col("_inert")).then(f"{name}_inert").otherwise(name).alias(name)
        for name in _CONTROL
    ).drop("_inert", *(f"{name}_inert" for name in _CONTROL))


@once
def with_control(turns: pl.DataFrame, *more_columns: str) -> pl.DataFrame:
    """Return challenged turns, each with its question's first answer and its control.

    Args:
        turns: a turns table.
        more_columns: further columns to keep.

    Returns:
        The turns of ``with_first`` that challenge a first answer and have a control, with
        ``control``, ``right`` (the first answer is right), ``wrong`` (the first answer is parsed
        and wrong), ``pair`` (both replies are parsed), ``lost`` and ``control_lost``.
    """
    challenged_turns = with_first(answering(turns), *more_columns).filter(
        ~pl.col("arm").is_in([BASELINE, CONTROL, CORRECTION]), pl.col("first_correct").is_not_null()
    )
    is_read = pl.col("status") == "parsed"
    controlled_turns = join_control(challenged_turns, turns).filter(pl.col("control").is_not_null())
    return controlled_turns.with_columns(
        pl.col("first_correct").alias("right"),
        (~pl.col("first_correct") & pl.col("first_answer").is_not_null()).alias("wrong"),
        (is_read & pl.col("control_read")).alias("pair"),
        (is_read & ~pl.col("correct")).alias("lost"),
        is_read.alias("read"),
    )


def with_net(
    rows: pl.DataFrame, controlled_turns: pl.DataFrame, keys: Sequence[str]
) -> pl.DataFrame:
    """Add ``NET`` to the rows: right answers lost to the challenge beyond the control's losses.

    A lost answer is a right first answer whose later reply names another option. Pairs with an
    unparsed reply are skipped. ``attributable`` is the share lost to the challenge less the share
    lost to the control, over ``pairs``. Its interval comes from ``difference_bounds``, its test
    from ``against_one``. ``causal_share`` is attributable / (1 - share lost to the control): the
    losses to the challenge, as a share of the answers kept under the control. It assumes that noise
    acts equally on challenged and control replies. It can be negative, and is null if the control
    lost all answers. Its interval is null below ``FEWEST`` questions. If the control lost no
    answer, it equals the interval of ``attributable``.

    Args:
        rows: one row for each combination of ``keys``.
        controlled_turns: challenged turns from ``with_control``, with ``keys``.
        keys: columns that identify a row.

    Returns:
        ``rows`` in their order, with null for rows without a pair.
    """
    pairs = controlled_turns.filter("right", "pair").select(
        *keys, "question", pl.col("lost").alias("first"), pl.col("control_lost").alias("second")
    )
    figures = pairs.group_by(keys, maintain_order=True).agg(
        pl.len().cast(pl.Int64).alias("pairs"),
        pl.col("first").mean().alias("lost"),
        pl.col("second").sort().mean().alias("lost_control"),
        pl.col("question").n_unique().alias("_questions"),
    )
    kept_share = 1 - pl.col("lost_control")
    attributable = pl.col("lost") - pl.col("lost_control")
    figures = figures.with_columns(
        attributable.alias("attributable"),
        pl.when(kept_share > 0).then(attributable / kept_share).alias("causal_share"),
    )
    figures = with_pair_bounds(figures, pairs, keys, _BOUNDS, _net_bounds)
    # with few questions the bounds mean nothing; if the control kept all, both figures are equal
    has_few, silent = pl.col("_questions") < FEWEST, pl.col("lost_control") == 0
    figures = figures.with_columns(
        pl.when(~has_few).then(pl.when(silent).then(f"attributable_{end}").otherwise(f"causal_{end}"))
        .alias(f"causal_{end}")
        for end in ("low", "high")
    )  # fmt: skip
    return rows.join(
        figures.select(*keys, *NET), on=keys, how="left", nulls_equal=True, maintain_order="left"
    )


_BOUNDS = (
    "attributable_low", "attributable_high", "attributable_p", "causal_low", "causal_high",
)  # fmt: skip


def _net_bounds(pairs: Sequence[Pair]) -> list[tuple[float, ...]]:
    kept_counts = [tuple((n - hits, n) for hits, n in pair) for pair in pairs]
    causal = (excess_bounds(challenge_counts, usual) for challenge_counts, usual in kept_counts)
    bounds = zip(each_difference(pairs), each_against_one(pairs), causal, strict=True)
    return [(*difference, p, *share) for difference, p, share in bounds]
