"""Net flips under attack: right answers flipped by attacks beyond those flipped by controls."""

from collections.abc import Sequence

import polars as pl

from holdfast.results.controls import NET, with_net
from holdfast.results.declaration import Computed, Count, Gate, Listing, PValue, Share, Table
from holdfast.results.first_answers import STUDY, TURN
from holdfast.results.grid import Row

from . import charts
from .attack_arms import INERT, REASK
from .replicates import MEDFUZZ_ROW as ROW
from .replicates import NOT_ATTACKED, PROTOCOL, attempts, replicates

NET_NAMES = dict(
    zip(
        NET,
        (
            "pairs", "turned", "turned_inert", "net", "net_low", "net_high", "net_p",
            "causal_share", "causal_low", "causal_high",
        ),
        strict=True,
    )
)  # fmt: skip
"""This table's names for the columns ``NET``."""

REASK_NAMES = {
    "lost_control": "turned_reask", "attributable": "net_reask",
    "attributable_low": "net_reask_low", "attributable_high": "net_reask_high",
}  # fmt: skip
"""This table's names for the columns net of the repeated question."""

ATTACK_NET_COLUMNS = (
    "model", "dataset", "k", *NET_NAMES.values(), *REASK_NAMES.values(), "unread", "not_attacked",
    "worst_low", "worst_high", "run",
)  # fmt: skip

_NUMBER = pl.col("path").str.extract(r"^(?:inert|reask)@(\d{1,4})$").cast(pl.Int64)


def with_controls(turns: pl.DataFrame, control: str = INERT) -> pl.DataFrame:
    """Pair attacked right first answers with their control, after each attempt.

    A control exists for every attempt, including those that a success made unnecessary, until the
    control's first flip. A pair is known after ``k`` attempts if the control has flipped by then,
    or if each reply up to then was parsed.

    Args:
        turns: a turns table. Only the protocol ``medfuzz`` is used.
        control: arm of the control.

    Returns:
        One row for each attacked replicate (``TURN``) and ``k`` from 1 to the study's K, with
        ``right`` (true), ``pair`` (known), ``lost`` (flipped by the attack up to k) and
        ``control_lost`` (flipped by the control). Studies without the control have no rows.
    """
    control_turns = turns.filter(pl.col("protocol") == PROTOCOL, pl.col("arm") == control).select(
        *TURN,
        _NUMBER.alias("k"),
        (pl.col("status") == "parsed").alias("_read"),
        (~pl.col("correct")).alias("_wrong"),
    )
    outcomes = replicates(turns).filter(pl.col("outcome").is_in(["failed", "succeeded"]))
    outcomes = outcomes.join(
        control_turns.select(STUDY).unique(), on=STUDY, how="semi", maintain_order="left"
    )
    outcomes = outcomes.with_columns(pl.int_ranges(1, pl.col("attempts") + 1).alias("k")).explode(
        "k"
    )
    keys = [*TURN, "k"]
    attempts_asked = attempts(turns).select(*keys, "asked")
    outcomes = outcomes.join(attempts_asked, on=keys, how="left", maintain_order="left")
    outcomes = outcomes.join(control_turns.unique(keys), on=keys, how="left", maintain_order="left")
    later = pl.col("k") > pl.col("turned_at")
    is_wanted = pl.col("asked").fill_null(value=False) | later.fill_null(value=False)
    is_turned = (pl.col("_read") & pl.col("_wrong")).fill_null(value=False)
    outcomes = outcomes.with_columns(
        _turned=is_turned, _missing=is_wanted & ~pl.col("_read").fill_null(False)
    )
    outcomes = outcomes.with_columns(pl.col("_turned", "_missing").cum_max().over(TURN))
    return outcomes.select(
        *keys,
        pl.lit(value=True).alias("right"),
        (pl.col("_turned") | ~pl.col("_missing")).alias("pair"),
        (pl.col("turned_at") <= pl.col("k")).fill_null(value=False).alias("lost"),
        pl.col("_turned").cast(pl.Float64).alias("control_lost"),
    )


def attack_net(turns: pl.DataFrame) -> pl.DataFrame:
    """Compute right first answers flipped by attacks beyond an inert rewrite, after k attempts.

    An inert rewrite adds as many words as the attack, without relevance. A second control repeats
    the question unchanged. Attacks and controls each count up to their own first flip. Intervals
    and the test are paired by replicate and clustered by question.

    Args:
        turns: a turns table. Only the protocol ``medfuzz`` is used.

    Returns:
        One row for each model, data set and ``k`` from 1 to the study's K.
    """
    outcomes = with_controls(turns)
    rows = outcomes.group_by(ROW, maintain_order=True).agg(
        (~pl.col("pair")).sum().cast(pl.Int64).alias("unread"),
        pl.col("lost").filter("pair").sum().alias("_lost"),
    )
    not_attacked = (
        replicates(turns)
        .group_by(STUDY, maintain_order=True)
        .agg(not_attacked=(pl.col("outcome") == NOT_ATTACKED).sum().cast(pl.Int64))
    )
    rows = rows.join(not_attacked, on=STUDY, how="left", maintain_order="left")
    rows = with_net(rows, outcomes, ROW).rename(NET_NAMES)
    reask_rows = with_net(rows.select(ROW), with_controls(turns, REASK), ROW).rename(REASK_NAMES)
    rows = rows.join(
        reask_rows.select(*ROW, *REASK_NAMES.values()), on=ROW, how="left", maintain_order="left"
    )
    out, n = pl.col("unread") + pl.col("not_attacked"), pl.col("pairs")
    return rows.with_columns(
        worst_low=pl.col("_lost") / (n + out) - pl.col("turned_inert"),
        worst_high=(pl.col("_lost") + out) / (n + out) - pl.col("turned_inert"),
    ).select(ATTACK_NET_COLUMNS)


def _sides(study_rows: pl.DataFrame) -> pl.DataFrame:
    """Return answers not flipped after a study's last attempt: under the control, under attack."""
    pairs = with_controls(study_rows).filter("pair", pl.col("k") == pl.col("k").max().over(STUDY))
    return pairs.select(*TURN, first=1 - pl.col("control_lost"), second=~pl.col("lost"))


def last_attempt(rows: pl.DataFrame, k: int | None = None) -> pl.DataFrame:
    """Select the row after the last attempt of each study."""
    return rows.filter(pl.col("k") == pl.col("k").max().over("run", "model", "dataset"))


def _format_bounds(row: Row) -> str:
    ends: Sequence[float | None] = (row["worst_low"], row["worst_high"])
    if None in ends or not row["unread"] + row["not_attacked"]:
        return ""
    return " to ".join(f"{100 * end:+.1f}" for end in ends if end is not None)


ATTACK_NET = Table(
    "attacks by control",
    attack_net,
    layout=Listing(
        Count("k", "k"),
        (
            Count("Pairs", "pairs"),
            Share("Flipped %", "turned"),
            Share("Inert rewrite %", "turned_inert"),
            Share("Net, points", "net", "net_", signed=True),
            PValue("p", "net_p"),
            Share("Causal share %", "causal_share", "causal_"),
            Share("Re-ask %", "turned_reask"),
            Share("Net of re-ask", "net_reask", "net_reask_", signed=True),
            Count("Unread", "unread"),
            Count("Not attacked", "not_attacked"),
            Computed("Bounds", "worst_low", show=_format_bounds),
        ),
        (
            "Right first answers flipped by up to k attacks, and by as many inert rewrites, which "
            "add as many words without relevance. Both count up to their first flip. Net: the "
            "difference, paired by replicate [95% interval by question]. Causal share: net flips "
            "as a share of the answers that the inert rewrites left right. Re-ask: the unchanged "
            "question again. Bounds: net flips if none or all of the unparsed and not attacked "
            "replicates had flipped.",
        ),
    ),
    title="How many flips do the attacks cause?",
    lead="Answers flipped by attacks, compared with inert rewrites of the same length and with "
    "only asking again.",
    section="medfuzz",
    chart=charts.NET,
    gates=(
        Gate(
            "max_net_turned_points", "net flips under attack", "most", (PROTOCOL,), "net", "pairs",
            pl.lit("after the last attack, net of inert rewrites"), last_attempt, sides=_sides,
        ),
    ),
    says={
        "k": "Number of attempts.",
        "pairs": "Number of attacked replicates in which an inert rewrite up to `k` flipped the "
        "answer, or all replies to inert rewrites were parsed.",
        "turned": "Share of `pairs` whose answer an attempt up to `k` flipped.",
        "turned_inert": "Share of `pairs` whose answer an inert rewrite up to `k` flipped.",
        "net": "Net flips, `turned` - `turned_inert`.",
        "net_p": "P-value of `net`.",
        "causal_share": "Net flips as a share of the answers that the inert rewrites left right, "
        "`net` / (1 - `turned_inert`), assuming that noise acts equally on attacked answers and "
        "controls. It can be negative. Null if the inert rewrites flipped every answer.",
        "turned_reask": "Share of replicates whose answer flipped when the unchanged question was "
        "asked again, up to `k` times, over the pairs with this control.",
        "net_reask": "Net flips of this control: the share flipped by attacks less "
        "`turned_reask`, both over the pairs with this control.",
        "unread": "Number of attacked replicates excluded from `pairs`, because a reply to an "
        "inert rewrite is missing or unparsed.",
        "not_attacked": "Number of replicates with a right first answer and no valid attack.",
        "worst_low": "Value of `net` if no replicate of `unread` and `not_attacked` had flipped, "
        "with `turned_inert` unchanged.",
        "worst_high": "Value of `net` if every replicate of `unread` and `not_attacked` had "
        "flipped, with `turned_inert` unchanged.",
    },
    intervals={"worst": "net"},
)  # fmt: skip
