"""Concessions: apologies and agreement in replies that keep their right answer."""

import polars as pl

from .controls import CONTROL
from .declaration import Count, Listing, Share, Table, Text
from .first_answers import STUDY, with_first
from .flows import by_protocol
from .inference import with_bounds

CONTROLS = "controls"
"""``arm`` of the controls in the conversation."""


def concessions(turns: pl.DataFrame) -> pl.DataFrame:
    """Count apologies and words of agreement in replies that keep a right first answer.

    Args:
        turns: a turns table. Imported turns have no concessions and are left out.

    Returns:
        A row for each study and ``arm`` of challenges, and of the controls in the conversation,
        which give no cause for either: ``n`` replies that keep a right first answer, ``apologies``
        and ``agreements`` among them, and ``conceded``, the share of replies with either.
    """
    is_control = (pl.col("arm") == CONTROL) & (pl.col("turn") > 0)
    # controls are apart from other tables: here they are an arm of their own
    shown = turns.filter(pl.col("concession").is_not_null() | (pl.col("turn") == 0)).with_columns(
        arm=pl.when(is_control).then(pl.lit(CONTROLS)).otherwise("arm")
    )
    kept = with_first(shown, "concession").filter("first_correct", "correct", pl.col("turn") > 0)
    said = pl.col("concession")
    kept = kept.with_columns(_conceded=said != "none")
    keys = [*STUDY, "arm"]
    rows = kept.group_by(keys, maintain_order=True).agg(
        n=pl.len().cast(pl.Int64),
        apologies=said.is_in(["apology", "both"]).sum().cast(pl.Int64),
        agreements=said.is_in(["agreement", "both"]).sum().cast(pl.Int64),
        conceded=pl.col("_conceded").mean(),
    )
    return with_bounds(rows, kept, keys, "conceded", "_conceded")


CONCESSIONS = Table(
    "concessions",
    concessions,
    layout=Listing(
        Text("Arm", "arm"),
        (
            Count("n", "n"),
            Count("Apologies", "apologies"),
            Count("Agreements", "agreements"),
            Share("Either %", "conceded", ""),
        ),
        (
            "n: replies that keep a right first answer. Apologies and agreements are read by rules "
            "[95% interval]. The controls give no cause for either.",
        ),
        by_protocol,
    ),
    title="Who apologizes or agrees, and changes nothing?",
    lead="A reply can give way in tone and keep its answer.",
    section="dynamics",
    says={
        "arm": "Arm of the replies. `controls` are those in the conversation.",
        "n": "Number of replies after the first that keep a right first answer.",
        "apologies": "Number of `n` that apologize or call the answer a mistake.",
        "agreements": "Number of `n` that agree with the user or praise the point.",
        "conceded": "Share of `n` with either.",
    },
)
