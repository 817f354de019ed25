"""Permutation: is an attack more than any text of its length would be (MedFuzz, Algorithm 2)?"""

import polars as pl

from holdfast.results.arms import TurnsOf
from holdfast.results.changes import with_adjusted
from holdfast.results.declaration import Count, Listing, Number, Share, Shown, Table, Text
from holdfast.results.first_answers import STUDY, TURN
from holdfast.results.grid import Row
from holdfast.results.inference import benjamini_hochberg, looked_up

from .arms import ATTACKER
from .replicates import APART, PROBES, UNREVIEWED, successes

PROTOCOL = "medfuzz-test"

TURNS = TurnsOf(PROTOCOL, helpers=(ATTACKER,), apart=APART, unreviewed=UNREVIEWED)

PERMUTATION_COLUMNS = (
    "model", "dataset", "question", "epoch", "k", "p0", "pa", "effect", "m", "b", "p_value",
    "p_plus_one", "p_adjusted", "samples", "by", "controls", "invalid", "failed", "unread",
    "attacked_run", "run",
)  # fmt: skip

TOLERANCE = 1e-12
"""Changes of p(correct) that differ by less are equal: means of floats tie only up to rounding."""

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
        One row for each tested attack. ``k`` is the attempt that succeeded and ``attacked_run``
        its run: the one that the test names, else the only one that has such an attack; null where
        that cannot be told.
    """
    read = ("arm", "path", "status", "correct", "p_gold", "attacked_run")
    own = turns.select(*TURN, *read).filter(pl.col("protocol") == PROTOCOL)
    estimate, text = pl.col("estimate"), pl.col("_text")
    tested = _texts(own).group_by(TURN, maintain_order=True).agg(
        pl.col("samples", "by").first(),
        pl.col("unread").sum(),
        pl.col("attacked_run").drop_nulls().first(),
        p0=estimate.filter(text == "original").first(),
        pa=estimate.filter(text == "attacked").first(),
        _estimates=estimate.filter(text.str.starts_with("control@")).drop_nulls(),
    )  # fmt: skip
    b, m = pl.col("b"), pl.col("m")
    rows = looked_up(tested, _begun(own), TURN).with_columns(
        _at_least(tested),
        pl.col("controls", "invalid").fill_null(0),
        effect=pl.col("pa") - pl.col("p0"),
        m=pl.col("_estimates").list.len().cast(pl.Int64),
    )
    rows = rows.with_columns(
        failed=pl.col("controls") - m - pl.col("invalid"),
        p_value=b / m,
        p_plus_one=(b + 1) / (m + 1),
    )
    rows = with_adjusted(rows, STUDY, "p_plus_one", benjamini_hochberg)
    return _with_attack(rows, turns).select(PERMUTATION_COLUMNS)


def _texts(own: pl.DataFrame) -> pl.DataFrame:
    """One row for each text that was probed, with its p(correct) where that can be told."""
    probes = own.filter(pl.col("arm").is_in(PROBES)).with_columns(
        pl.col("p_gold").fill_nan(None),
        _text=pl.col("path").str.split(">").list.first(),
        _failed=pl.col("status") == "error",
    )
    failed, p_gold = pl.col("_failed"), pl.col("p_gold")
    # an attack of which nothing was answered was not tested
    probes = probes.filter((~failed).any().over(TURN))
    believed = p_gold.is_not_null().any().over(TURN)
    read = pl.when(believed).then(p_gold.is_not_null()).otherwise(pl.col("status") == "parsed")
    probes = probes.with_columns(
        by=pl.when(believed).then(pl.lit("logprobs")).otherwise(pl.lit("sampling")),
        _p=pl.when(believed).then("p_gold").otherwise(pl.col("correct").cast(pl.Float64)),
        _unread=~read & ~failed,
    )
    texts = probes.group_by(*TURN, "_text", maintain_order=True).agg(
        failed.any(),
        pl.col("by").first(),
        pl.col("attacked_run").drop_nulls().first(),
        # in a fixed order: the last digit of a sum depends on it
        estimate=pl.col("_p").drop_nulls().sort().mean(),
        unread=pl.col("_unread").sum().cast(pl.Int64),
        _probes=pl.len().cast(pl.Int64),
    )
    samples = pl.col("_probes").max().over(STUDY)
    whole = ~failed & (pl.col("_probes") == samples)
    return texts.with_columns(pl.when(whole).then("estimate").alias("estimate"), samples=samples)


def _begun(own: pl.DataFrame) -> pl.DataFrame:
    """Controls begun, and those that the attacker gave no valid text for, by attack."""
    mine, parsed = pl.col("arm") == ATTACKER, pl.col("status") == "parsed"
    each = (
        own.filter(mine | (pl.col("arm") == "control"))
        .with_columns(_text=pl.col("path").str.extract(r"^(control@\d+)(?:>|$)"))
        .drop_nulls("_text")
        .group_by(*TURN, "_text")
        .agg(
            _valid=(~mine | parsed).any(),
            # a call that failed is no verdict on the attacker
            _cut=(pl.col("status") == "error").any(),
            _tries=mine.sum(),
        )
    )
    # given up after as many tries as any had; with fewer it was cut off
    last = pl.col("_tries") == pl.col("_tries").max().over(STUDY)
    invalid = ~pl.col("_valid") & ~pl.col("_cut") & last
    return (
        each.with_columns(invalid=invalid)
        .group_by(TURN)
        .agg(controls=pl.len().cast(pl.Int64), invalid=pl.col("invalid").sum().cast(pl.Int64))
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


def _with_attack(rows: pl.DataFrame, turns: pl.DataFrame) -> pl.DataFrame:
    """The rows with the attack that was tested: its run and attempt."""
    found = successes(turns).select(*_ATTACK, "k", attacked_run="run")
    only = found.filter(pl.len().over(_ATTACK) == 1).select(*_ATTACK, _run="attacked_run")
    rows = looked_up(rows, only, _ATTACK)
    rows = rows.with_columns(attacked_run=pl.coalesce("attacked_run", "_run"))
    return looked_up(rows, found, [*_ATTACK, "attacked_run"])


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
    figure="holdfast.protocols.medfuzz.figures:PERMUTATION",
)
