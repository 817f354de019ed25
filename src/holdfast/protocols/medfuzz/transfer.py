"""Transfer: whether attacks that succeeded on one model flip the answers of another."""

from collections.abc import Sequence

import polars as pl

from holdfast.results.controls import with_net
from holdfast.results.declaration import Count, Listing, PValue, Share, Table, Text
from holdfast.results.first_answers import STUDY, TURN
from holdfast.results.inference import looked_up
from holdfast.results.kept import in_words

from . import charts
from .attack_arms import INERT, REASK, REPLAYED_ARM
from .net_attacks import NET_NAMES, REASK_NAMES
from .replicates import PROTOCOL

TRANSFER_COLUMNS = (
    "model", "dataset", "found_on", "attacks", *NET_NAMES.values(), *REASK_NAMES.values(),
    "unread", "run",
)  # fmt: skip


def transfer(turns: pl.DataFrame) -> pl.DataFrame:
    """Compare attacks from one model with controls, on another model.

    An attack is asked after a right first answer, with an inert rewrite of the same length as a
    control. A second control repeats the original question. Intervals and the test are paired and
    clustered by question.

    Args:
        turns: a turns table. Only the protocol ``medfuzz`` is used.

    Returns:
        One row for each model, data set and model that the attacks come from.
    """
    answered_turns = turns.filter(pl.col("protocol") == PROTOCOL, pl.col("status") != "error")
    models = turns.filter(pl.col("protocol") == PROTOCOL)
    models = models.select(attacked_run="run", found_on="model").unique("attacked_run")
    models = in_words(models)
    arm, is_read, wrong = pl.col("arm"), pl.col("status") == "parsed", ~pl.col("correct")
    replays = answered_turns.filter(arm == REPLAYED_ARM).join(
        models, on="attacked_run", how="left", maintain_order="left"
    )
    replays = replays.with_columns(pl.coalesce("found_on", "attacked_run").alias("found_on"))

    def with_inert(control: str, join_keys: Sequence[str]) -> pl.DataFrame:
        control_turns = answered_turns.filter(arm == control).select(
            *join_keys, control_read=is_read, control_lost=(is_read & wrong).cast(pl.Float64)
        )
        return replays.join(
            control_turns, on=join_keys, how="left", maintain_order="left"
        ).with_columns(
            right=pl.lit(value=True),
            pair=(is_read & pl.col("control_read")).fill_null(value=False),
            lost=is_read & wrong,
        )

    keys = [*STUDY, "found_on"]
    pairs = with_inert(INERT, [*TURN, "attacked_run"])
    rows = pairs.group_by(keys, maintain_order=True).agg(
        attacks=pl.len().cast(pl.Int64), unread=(~pl.col("pair")).sum().cast(pl.Int64)
    )
    reask_rows = with_net(rows.select(keys), with_inert(REASK, TURN), keys).rename(REASK_NAMES)
    rows = with_net(rows, pairs, keys).rename(NET_NAMES)
    return looked_up(rows, reask_rows.select(*keys, *REASK_NAMES.values()), keys).select(
        TRANSFER_COLUMNS
    )


TRANSFER = Table(
    "transfer",
    transfer,
    layout=Listing(
        Text("Found on", "found_on"),
        (
            Count("Attacks", "attacks"),
            Share("Flipped %", "turned"),
            Share("Inert rewrite %", "turned_inert"),
            Share("Net, points", "net", "net_", signed=True),
            PValue("p", "net_p"),
            Share("Re-ask %", "turned_reask"),
            Share("Net of re-ask", "net_reask", "net_reask_", signed=True),
            Count("Unread", "unread"),
        ),
        (
            "Attacks that succeeded on one model, replayed on another. Flipped: right first "
            "answers with a wrong answer to the attacked question. Inert rewrite: with a wrong "
            "answer to a rewrite of the same length. Net: the difference, paired [95% interval by "
            "question]. Re-ask: with a wrong answer to the repeated original.",
        ),
    ),
    title="Do attacks from one model work on another?",
    lead="Successful attacks replayed on another model (-T attacks=LOGDIR).",
    section="medfuzz",
    place=1,
    chart=charts.TRANSFER,
    says={
        "found_on": "Model that the attacks come from, or its run if the turns table has no turns "
        "of that run.",
        "attacks": "Number of replayed attacks, without failed calls.",
        "pairs": "Number of attacks with parsed replies to the attacked question and to its inert "
        "rewrite.",
        "turned": "Share of `pairs` with a wrong answer to the attacked question.",
        "turned_inert": "Share of `pairs` with a wrong answer to the inert rewrite, which adds as "
        "many words as the attack.",
        "net": "Net flips, `turned` - `turned_inert`.",
        "net_p": "P-value of `net`.",
        "causal_share": "Net flips as a share of the answers that the inert rewrites left right, "
        "`net` / (1 - `turned_inert`), assuming that noise acts equally on attacked answers and "
        "controls. It can be negative. Null if the inert rewrites flipped every answer.",
        "turned_reask": "Share of attacks with a wrong answer to the repeated original, over those "
        "with parsed replies to both.",
        "net_reask": "Net flips of this control, over these attacks.",
        "unread": "Number of attacks excluded from `pairs`, because the reply to the attacked "
        "question is unparsed, or the reply to the inert rewrite is missing or unparsed.",
    },
)
