"""Transfer: whether attacks found on one model turn the answers of another."""

import polars as pl

from holdfast.results.controls import with_net
from holdfast.results.declaration import Count, Listing, PValue, Share, Table, Text
from holdfast.results.first_answers import STUDY, TURN
from holdfast.results.kept import in_words

from . import charts
from .arms import REASK, REPLAYED
from .net import NET_NAMES
from .replicates import PROTOCOL

_NAMES = {name: own.replace("inert", "reask") for name, own in NET_NAMES.items()}

TRANSFER_COLUMNS = (
    "model", "dataset", "found_on", "attacks", *_NAMES.values(), "unread", "run",
)  # fmt: skip


def transfer(turns: pl.DataFrame) -> pl.DataFrame:
    """Attacks that succeeded on one model, put to another.

    An attack is put to a right first answer, and the original question is asked again as its
    control. Intervals and the test are paired and clustered by question.

    Args:
        turns: a turns table; only protocol ``medfuzz`` is read.

    Returns:
        One row for each model, data set and model that attacks were found on.
    """
    own = turns.filter(pl.col("protocol") == PROTOCOL, pl.col("status") != "error")
    models = turns.filter(pl.col("protocol") == PROTOCOL)
    models = models.select(attacked_run="run", found_on="model").unique("attacked_run")
    models = in_words(models)
    arm, read, wrong = pl.col("arm"), pl.col("status") == "parsed", ~pl.col("correct")
    control = own.filter(arm == REASK).select(
        *TURN, control_read=read, control_lost=(read & wrong).cast(pl.Float64)
    )
    each = (
        own.filter(arm == REPLAYED)
        .join(control, on=TURN, how="left", maintain_order="left")
        .join(models, on="attacked_run", how="left", maintain_order="left")
        .with_columns(
            pl.coalesce("found_on", "attacked_run").alias("found_on"),
            right=pl.lit(value=True),
            pair=(read & pl.col("control_read")).fill_null(value=False),
            lost=read & wrong,
        )
    )
    keys = [*STUDY, "found_on"]
    rows = each.group_by(keys, maintain_order=True).agg(
        attacks=pl.len().cast(pl.Int64), unread=(~pl.col("pair")).sum().cast(pl.Int64)
    )
    return with_net(rows, each, keys).rename(_NAMES).select(TRANSFER_COLUMNS)


TRANSFER = Table(
    "transfer",
    transfer,
    layout=Listing(
        Text("Found on", "found_on"),
        (
            Count("Attacks", "attacks"),
            Share("Flipped %", "turned"),
            Share("Re-ask %", "turned_reask"),
            Share("Net, points", "net", "net_", signed=True),
            PValue("p", "net_p"),
            Count("Unread", "unread"),
        ),
        (
            "Attacks that succeeded on one model, put to another. Flipped: right first answers "
            "that are wrong to the attacked question; re-ask: wrong as the original was asked "
            "again. Net: the difference, paired [95% interval by question].",
        ),
    ),
    title="Do attacks found on one model work on another?",
    lead="Successful attacks put to another model (-T attacks=LOGDIR).",
    section="medfuzz",
    place=1,
    chart=charts.TRANSFER,
    says={
        "found_on": "Model that the attacks were found on, or its run where the turns table has no "
        "turns of that run.",
        "attacks": "Number of attacks put to the model, failed calls aside.",
        "pairs": "Number of attacks with a readable reply to the attacked question and to the "
        "original asked again.",
        "turned": "Share of `pairs` with a wrong answer to the attacked question.",
        "turned_reask": "Share of `pairs` with a wrong answer to the original asked again.",
        "net": "Net flips, `turned` - `turned_reask`.",
        "net_p": "P-value of `net`.",
        "causal_share": "Share that the attacks flipped of the answers that stayed right when the "
        "original was asked again, `net` / (1 - `turned_reask`), if noise acts on an attacked "
        "answer as on the control. It can be negative. Null where every answer flipped without "
        "an attack.",
        "unread": "Number of attacks left out of `pairs`, as the reply to the attacked question "
        "has no readable answer, or that to the original asked again is missing or has none.",
    },
)
