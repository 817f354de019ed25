"""Permutation: is an attack more than any text of its length would be (MedFuzz, Algorithm 2)?"""

import polars as pl

from .attack_turns import ATTACKER, successes
from .declaration import Count, Listing, Number, Share, Shown, Table, Text
from .first_answers import STUDY, TURN
from .grid import Row
from .inference import benjamini_hochberg

PROTOCOL = "medfuzz-test"

PERMUTATION_COLUMNS = (
    "model", "dataset", "question", "epoch", "k", "p0", "pa", "effect", "m", "b", "p_value",
    "p_plus_one", "p_adjusted", "samples", "by", "controls", "invalid", "failed", "unread",
    "attacked_run", "run",
)  # fmt: skip

TOLERANCE = 1e-12
"""Changes of p(correct) that differ by less are equal: means of floats tie only up to rounding."""

_PROBES = ("original", "attacked", "control")
_ATTACK = ("model", "dataset", "question", "epoch")


def permutation(turns: pl.DataFrame) -> pl.DataFrame:
    """Permutation tests of successful attacks (MedFuzz, section 3.4 and Algorithm 2).

    ``p0``, ``pa`` and each control's p(correct) are means over ``samples`` orders of the options:
    of the probability of the right letter where the model gives log-probabilities (``by`` is
    ``logprobs``), else of whether the answer was right (``sampling``; an unread reply is not).
    ``effect`` is pa - p0. Of ``m`` controls ``b`` have a change from p0 at least as large as the
    attack's, ties included (``TOLERANCE``). ``p_value`` is b / m as in the paper, ``p_plus_one``
    (b + 1) / (m + 1), which is never 0 and the valid one, and ``p_adjusted`` that one after
    Benjamini and Hochberg (1995) over the attacks that the run has tested.

    Nothing stands in for what is missing. A text with a failed probe, with fewer probes than
    others of its run, or without any belief where others have them, has no estimate. Of
    ``controls`` begun, ``invalid`` are those that the attacker gave no valid text for, ``failed``
    those without an estimate for another reason, and ``m`` the rest. Without p0, pa or any control
    ``b`` and the p-values are null. ``unread`` counts probes without a belief, or by sampling
    without a readable answer.

    Args:
        turns: a turns table; protocol ``medfuzz-test`` is read, and of ``medfuzz`` what is tested.

    Returns:
        One row for each tested attack, with ``PERMUTATION_COLUMNS``. ``k`` is the attempt that
        succeeded and ``attacked_run`` its run: the one that the test names, else the only one that
        has such an attack; null where that cannot be told.
    """
    read = ("arm", "path", "status", "correct", "p_gold", "attacked_run")
    own = turns.select(*TURN, *read).filter(pl.col("protocol") == PROTOCOL)
    estimate, text = pl.col("estimate"), pl.col("_text")
    tested = (
        _texts(own)
        .group_by(TURN, maintain_order=True)
        .agg(
            estimate.filter(text == "original").first().alias("p0"),
            estimate.filter(text == "attacked").first().alias("pa"),
            estimate.filter(text.str.starts_with("control@")).drop_nulls().alias("_estimates"),
            pl.col("samples", "by").first(),
            pl.col("unread").sum(),
            pl.col("attacked_run").drop_nulls().first(),
        )
        .join(_begun(own), on=TURN, how="left", validate="1:1", maintain_order="left")
    )
    rows = tested.with_columns(
        (pl.col("pa") - pl.col("p0")).alias("effect"),
        pl.col("_estimates").list.len().cast(pl.Int64).alias("m"),
        pl.col("controls", "invalid").fill_null(0),
        _at_least(tested),
    )
    rows = rows.with_columns(
        (pl.col("controls") - pl.col("m") - pl.col("invalid")).alias("failed"),
        (pl.col("b") / pl.col("m")).alias("p_value"),
        ((pl.col("b") + 1) / (pl.col("m") + 1)).alias("p_plus_one"),
    )
    return _with_attack(_adjusted(rows), turns).select(PERMUTATION_COLUMNS)


def _texts(own: pl.DataFrame) -> pl.DataFrame:
    """One row for each text that was probed, with its p(correct) where that can be told."""
    step, failed = pl.col("path").str.split(">").list.first(), pl.col("status") == "error"
    probes = own.filter(pl.col("arm").is_in(_PROBES)).with_columns(
        step.alias("_text"), failed.alias("_failed"), pl.col("p_gold").fill_nan(None)
    )
    # an attack of which nothing was answered was not tested
    probes = probes.filter((~pl.col("_failed")).any().over(TURN)).with_columns(
        pl.when(pl.col("p_gold").is_not_null().any().over(TURN))
        .then(pl.lit("logprobs"))
        .otherwise(pl.lit("sampling"))
        .alias("by")
    )
    believed = pl.col("by") == "logprobs"
    read = (
        pl.when(believed)
        .then(pl.col("p_gold").is_not_null())
        .otherwise(pl.col("status") == "parsed")
    )
    probes = probes.with_columns(
        pl.when(believed).then("p_gold").otherwise(pl.col("correct").cast(pl.Float64)).alias("_p"),
        (~read & ~pl.col("_failed")).alias("_unread"),
    )
    texts = probes.group_by(*TURN, "_text", maintain_order=True).agg(
        # in a fixed order: the last digit of a sum depends on it
        pl.col("_p").drop_nulls().sort().mean().alias("estimate"),
        pl.len().cast(pl.Int64).alias("_probes"),
        pl.col("_failed").any(),
        pl.col("_unread").sum().cast(pl.Int64).alias("unread"),
        pl.col("by").first(),
        pl.col("attacked_run").drop_nulls().first(),
    )
    samples = pl.col("_probes").max().over(STUDY)
    whole = ~pl.col("_failed") & (pl.col("_probes") == samples)
    return texts.with_columns(
        pl.when(whole).then("estimate").alias("estimate"), samples.alias("samples")
    )


def _begun(own: pl.DataFrame) -> pl.DataFrame:
    """Controls begun, and those that the attacker gave no valid text for, by attack."""
    number = pl.col("path").str.extract(r"^(control@\d+)(?:>|$)").alias("_text")
    mine, parsed = pl.col("arm") == ATTACKER, pl.col("status") == "parsed"
    each = (
        own.filter(mine | (pl.col("arm") == "control"))
        .with_columns(number)
        .filter(pl.col("_text").is_not_null())
        .group_by(*TURN, "_text")
        .agg(
            (~mine | parsed).any().alias("_valid"),
            # a call that failed is no verdict on the attacker
            (pl.col("status") == "error").any().alias("_cut"),
            mine.sum().alias("_tries"),
        )
    )
    # given up after as many tries as any had; with fewer it was cut off
    last = pl.col("_tries") == pl.col("_tries").max().over(STUDY)
    each = each.with_columns(last.alias("_last"))
    return each.group_by(TURN).agg(
        pl.len().cast(pl.Int64).alias("controls"),
        (~pl.col("_valid") & ~pl.col("_cut") & pl.col("_last"))
        .sum()
        .cast(pl.Int64)
        .alias("invalid"),
    )


def _at_least(tested: pl.DataFrame) -> pl.Series:
    """How many controls changed p(correct) at least as much as the attack did."""
    counts = [
        None
        if p0 is None or pa is None or not controls
        else sum(abs(control - p0) >= abs(pa - p0) - TOLERANCE for control in controls)
        for p0, pa, controls in tested.select("p0", "pa", "_estimates").iter_rows()
    ]
    return pl.Series("b", counts, dtype=pl.Int64)


def _adjusted(rows: pl.DataFrame) -> pl.DataFrame:
    rows = rows.with_row_index("_row")
    found = pl.DataFrame(schema={"_row": pl.UInt32(), "p_adjusted": pl.Float64()})
    for _, own in rows.drop_nulls("p_plus_one").group_by(STUDY, maintain_order=True):
        adjusted = pl.Series("p_adjusted", benjamini_hochberg(own["p_plus_one"].to_numpy()))
        found = pl.concat([found, own.select(pl.col("_row").cast(pl.UInt32), adjusted)])
    return rows.join(found, on="_row", how="left", validate="1:1", maintain_order="left")


def _with_attack(rows: pl.DataFrame, turns: pl.DataFrame) -> pl.DataFrame:
    """The rows with the attack that was tested: its run and attempt."""
    found = successes(turns).select(*_ATTACK, pl.col("run").alias("_run"), "k")
    only = found.filter(pl.len().over(_ATTACK) == 1).select(*_ATTACK, "_run")
    rows = rows.join(only, on=_ATTACK, how="left", validate="m:1", maintain_order="left")
    rows = rows.with_columns(pl.coalesce("attacked_run", "_run").alias("attacked_run"))
    found = found.rename({"_run": "attacked_run"})
    return rows.join(
        found, on=[*_ATTACK, "attacked_run"], how="left", validate="m:1", maintain_order="left"
    )


def _as_strong(row: Row) -> str:
    return "" if row["b"] is None else f"{row['b']} of {row['m']}"


_TESTED = {"protocol": PROTOCOL}

PERMUTATION = Table(
    "permutation",
    permutation,
    layout=Listing(
        Text("Question", "question"),
        (
            Count("Replicate", "epoch", of=_TESTED, among=1),
            Count("k", "k"),
            Share("p0 %", "p0"),
            Share("pa %", "pa"),
            Share("Effect", "effect", signed=True),
            Shown("b of M", "b", show=_as_strong, of=_TESTED, among=1),
            Number("b / M", "p_value", digits=3),
            Number("(b + 1) / (M + 1)", "p_plus_one", digits=3),
            Number("Adjusted", "p_adjusted", digits=3),
            Count("Samples", "samples"),
            Text("By", "by"),
            Count("Invalid", "invalid"),
            Count("Failed", "failed"),
            Count("Unread", "unread"),
        ),
        (
            "p0 and pa: p(correct) of the original and of the attacked question. b: controls that "
            "change it at least as much, of M with an estimate. Adjusted: (b + 1) / (M + 1) after "
            "Benjamini and Hochberg over the attacks of the run. Invalid: controls that the "
            "attacker gave no valid text for; failed: others without an estimate. Unread: probes.",
        ),
    ),
    title="Is it the attack, or any added text?",
    lead="Each successful attack against rewritings of the same length without its point "
    "(permutation test). A small p-value: the attack did more than added words do.",
    section="medfuzz",
    figure="holdfast.report.figures.medfuzz:PERMUTATION",
)
