"""Controls: what is asked without a challenge, and what a challenge did beyond it.

A reply that would have changed anyway is no effect of the challenge. A control asks without one:
``resample`` puts the first question afresh, ``restate`` asks in the conversation for the answer
again. A challenge is held against the control that was as many turns into its conversation; one
with a generated text, where it was also put with a passage that argues for nothing, against that.
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
"""``arm`` and ``family`` of the controls; of attacks the arm alone."""

CORRECTION = "correction"
"""``arm`` and ``family`` of challenges that name the right option to a wrong first answer."""

BESIDE = dict.fromkeys((CONTROL, CORRECTION), "controls and corrections")
"""Arms beside the challenges, as ``TurnsOf.apart`` has them."""

RESAMPLE = "resample"
"""``path`` of the first question asked afresh."""

INERT = "inert"
"""``family`` of the controls in a challenge's own wording, with a passage that argues for nothing.

Their ``path`` is that of the challenge after ``inert:``.
"""

EPOCHS = "epochs"
"""What stands for resamples where each question was asked in several epochs."""

NET = (
    "pairs", "lost", "lost_control", "attributable", "attributable_low", "attributable_high",
    "attributable_p", "causal_share", "causal_low", "causal_high",
)  # fmt: skip
"""What a row says net of the control, beside its plain figures."""

EFFECT = NET[3:]
"""The part of ``NET`` that stands beside the plain figures of other tables."""

FEWEST = 10
"""Questions below which nothing is said of noise."""


def controls_of(turns: pl.DataFrame) -> pl.DataFrame:
    """The controls of each question, by how many turns into a conversation they were put.

    Where a question was asked in several epochs, and no resample was, the first answers of the
    others are the resamples of each.

    Args:
        turns: a turns table.

    Returns:
        One row for each ``TURN`` and ``turn`` with ``control`` (its path, ``epochs`` where it is
        the other epochs), ``control_read`` (whether any of its replies could be read),
        ``control_lost`` and ``control_right`` (0 to 1, shares of the readable ones) and
        ``control_kept`` (0 to 1, the share of all that are right, unread ones among them).
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
    """The controls that put a passage without an argument in the place of a challenge's text.

    Args:
        turns: a turns table.

    Returns:
        Rows as ``controls_of`` has them; ``control`` is the challenge's path after ``inert:``.
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
    """Challenged turns, each with its control, null where it has none.

    A path that was put with an inert passage in the same study has no other control: one whose
    passage is missing is left without.

    Args:
        challenged_turns: rows with ``TURN``, ``turn`` and ``path``.
        turns: the turns table that they are of.

    Returns:
        These rows in their order, with the columns of ``controls_of``.
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
    """Challenged turns, each with its question's first answer and its control.

    Args:
        turns: a turns table.
        more_columns: further columns that are kept.

    Returns:
        The turns of ``with_first`` that challenge a first answer and have a control, with
        ``control``, ``right`` (the first answer was), ``wrong`` (it was readable, and was not),
        ``pair`` (both replies could be read), ``lost`` and ``control_lost``.
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
    """The rows with ``NET``: right answers lost to the challenge beyond those lost without one.

    Lost is a right first answer whose reply names another option; pairs with either reply unread
    are left out. ``attributable`` is the share lost to the challenge less that lost to the control,
    over ``pairs``; its interval is that of ``difference_bounds``, its test ``against_one``.
    ``causal_share`` is attributable / (1 - share lost to the control): of the answers that would
    have been kept, those that the challenge took, on the assumption that noise acts on a challenged
    answer as it does on the control. It may be negative, and is null where the control lost all.
    Its interval is null below ``FEWEST`` questions, and that of ``attributable`` where the control
    lost none.

    Args:
        rows: one row for each combination of ``keys``.
        controlled_turns: challenged turns as ``with_control`` has them, with ``keys``.
        keys: columns that tell the rows apart.

    Returns:
        ``rows`` in their order; what has no pair is null.
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
    # of few questions the ends say nothing, and where the control kept all, both figures are one
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
