"""Permutation: whether an attack has more effect than other text of its length (Algorithm 2)."""

import polars as pl

from holdfast.results.changes import with_adjusted
from holdfast.results.declaration import Computed, Count, Listing, Number, Share, Table, Text
from holdfast.results.first_answers import STUDY, TURN
from holdfast.results.grid import Row
from holdfast.results.inference import looked_up
from holdfast.stats.pvalues import benjamini_hochberg

from . import charts
from .attack_arms import ATTACKED_ARM, CONTROL, CONTROL_WRITER, ORIGINAL
from .replicates import HYPOTHESIS, PROBES, PROTOCOL, hypotheses

PERMUTATION_COLUMNS = (
    "model", "dataset", "question", "epoch", "k", "p0", "pa", "effect", "m", "b", "p_value",
    "p_adjusted", "samples", "by", "controls", "invalid", "failed", "unread",
    "run",
)  # fmt: skip

TEST_SAYS = {
    "p0": "Probability p(correct) of the original question. Null without an estimate.",
    "pa": "Probability p(correct) of the attacked question. Null without an estimate.",
    "effect": "Effect of the attack, `pa` - `p0`.",
    "p_value": "P-value (b + 1) / (M + 1), where b of the M controls with an estimate change "
    "p(correct) at least as much as the attack. It is never 0, as the paper's b / M can be. Null "
    "without `p0`, `pa` or a control.",
    "p_adjusted": "P-value after the correction of Benjamini and Hochberg (1995) over the attacks "
    "that the run tested.",
}
"""Meanings of the columns of a test."""

TOLERANCE = 1e-12
"""Changes of p(correct) within this distance are ties, because means of floats are rounded."""


def permutation(turns: pl.DataFrame) -> pl.DataFrame:
    """Compute permutation tests of successful attacks (MedFuzz, section 3.4 and Algorithm 2).

    The p(correct) of a text is a mean over orders of the options: of the probability of the right
    letter if the model returns log-probabilities, otherwise of right answers (an unparsed reply is
    not right). Missing values are not imputed. A text has no estimate if a probe failed, if it has
    fewer probes than others of its run, or if it has no probabilities while others have. Changes of
    p(correct) tie within ``TOLERANCE``.

    Args:
        turns: a turns table. Only the protocol ``medfuzz`` is used.

    Returns:
        One row for each tested attack. Identical attacks on a question have one row.
    """
    test_turns = turns.select(*TURN, "arm", "path", "status", "correct", "p_gold").filter(
        pl.col("protocol") == PROTOCOL, pl.col("arm").is_in([*PROBES, CONTROL_WRITER])
    )
    estimate, text = pl.col("estimate"), pl.col("_text")
    texts = _texts(test_turns).group_by(TURN, maintain_order=True).agg(
        pl.col("samples", "by").first(),
        pl.col("unread").sum(),
        p0=estimate.filter(text == ORIGINAL).first(),
        pa=estimate.filter(text == ATTACKED_ARM).first(),
        _estimates=estimate.filter(text.str.starts_with(f"{CONTROL}@")).drop_nulls(),
    )  # fmt: skip
    texts = _different(texts, turns)
    b, m = pl.col("b"), pl.col("m")
    rows = looked_up(texts, _count_controls(test_turns), TURN).with_columns(
        _at_least(texts),
        pl.col("controls", "invalid").fill_null(0),
        effect=pl.col("pa") - pl.col("p0"),
        m=pl.col("_estimates").list.len().cast(pl.Int64),
    )
    rows = rows.with_columns(
        failed=pl.col("controls") - m - pl.col("invalid"),
        p_value=(b + 1) / (m + 1),
    )
    rows = with_adjusted(rows, STUDY, "p_value", benjamini_hochberg)
    return rows.select(PERMUTATION_COLUMNS)


def _different(attacks_tested: pl.DataFrame, turns: pl.DataFrame) -> pl.DataFrame:
    """Add the successful attempt to the tests, and drop all but the first of identical attacks."""
    attacks_tested = looked_up(
        attacks_tested, hypotheses(turns).select(*TURN, "k", "rewrite"), TURN
    )
    rewrite = pl.coalesce("rewrite", pl.format("{}", "epoch"))
    first = attacks_tested.with_columns(rewrite=rewrite).unique(
        HYPOTHESIS, keep="first", maintain_order=True
    )
    return first.drop("rewrite")


def _texts(test_turns: pl.DataFrame) -> pl.DataFrame:
    """Return a row for each probed text, with p(correct) if it has an estimate."""
    probes = test_turns.filter(pl.col("arm").is_in(PROBES)).with_columns(
        pl.col("p_gold").fill_nan(None),
        _text=pl.col("path").str.split(">").list.first(),
        _failed=pl.col("status") == "error",
    )
    is_failed, p_gold = pl.col("_failed"), pl.col("p_gold")
    # an attack without any answer was not tested
    probes = probes.filter((~is_failed).any().over(TURN))
    has_beliefs = p_gold.is_not_null().any().over(TURN)
    is_usable = (
        pl.when(has_beliefs).then(p_gold.is_not_null()).otherwise(pl.col("status") == "parsed")
    )
    probes = probes.with_columns(
        by=pl.when(has_beliefs).then(pl.lit("logprobs")).otherwise(pl.lit("sampling")),
        _p=pl.when(has_beliefs).then("p_gold").otherwise(pl.col("correct").cast(pl.Float64)),
        _unread=~is_usable & ~is_failed,
    )
    texts = probes.group_by(*TURN, "_text", maintain_order=True).agg(
        is_failed.any(),
        pl.col("by").first(),
        # in a fixed order, because the last digit of a sum depends on the order
        estimate=pl.col("_p").drop_nulls().sort().mean(),
        unread=pl.col("_unread").sum().cast(pl.Int64),
        _probes=pl.len().cast(pl.Int64),
    )
    samples = pl.col("_probes").max().over(STUDY)
    whole = ~is_failed & (pl.col("_probes") == samples)
    return texts.with_columns(pl.when(whole).then("estimate").alias("estimate"), samples=samples)


def _count_controls(attack_turns: pl.DataFrame) -> pl.DataFrame:
    """Count controls by attack: all, and those without a valid text."""
    mine, is_parsed = pl.col("arm") == CONTROL_WRITER, pl.col("status") == "parsed"
    writings = (
        attack_turns.filter(mine | (pl.col("arm") == CONTROL))
        .with_columns(_text=pl.col("path").str.extract(r"^(control@\d+)(?:>|$)"))
        .drop_nulls("_text")
        .group_by(*TURN, "_text")
        .agg(
            _valid=(~mine | is_parsed).any(),
            # a failed call says nothing about the attacker
            _cut=(pl.col("status") == "error").any(),
            _tries=mine.sum(),
        )
    )
    # a control is given up after the maximum number of tries; with fewer, it was interrupted
    is_last = pl.col("_tries") == pl.col("_tries").max().over(STUDY)
    invalid = ~pl.col("_valid") & ~pl.col("_cut") & is_last
    return (
        writings.with_columns(invalid=invalid)
        .group_by(TURN)
        .agg(controls=pl.len().cast(pl.Int64), invalid=pl.col("invalid").sum().cast(pl.Int64))
    )


def _at_least(attacks_tested: pl.DataFrame) -> pl.Series:
    """Count the controls that changed p(correct) at least as much as the attack."""
    counts = [
        None
        if p0 is None or pa is None or not controls
        else sum(abs(control - p0) >= abs(pa - p0) - TOLERANCE for control in controls)
        for p0, pa, controls in attacks_tested.select("p0", "pa", "_estimates").iter_rows()
    ]
    return pl.Series("b", counts, dtype=pl.Int64)


def _as_strong(row: Row) -> str:
    return "" if row["b"] is None else f"{row['b']} of {row['m']}"


_TEST_TURNS = {"protocol": PROTOCOL}

PERMUTATION = Table(
    "permutation",
    permutation,
    layout=Listing(
        Text("Question", "question"),
        (
            Count("Replicate", "epoch", of=_TEST_TURNS, among=1),
            Count("k", "k"),
            Share("p0 %", "p0"),
            Share("pa %", "pa"),
            Share("Effect", "effect", signed=True),
            Computed("b of M", "b", show=_as_strong, of=_TEST_TURNS, among=1),
            Number("p", "p_value", digits=3),
            Number("Adjusted", "p_adjusted", digits=3),
            Count("Samples", "samples"),
            Text("By", "by"),
            Count("Invalid", "invalid"),
            Count("Failed", "failed"),
            Count("Unread", "unread"),
        ),
        (
            "p0 and pa: p(correct) of the original and of the attacked question. b: controls that "
            "change it at least as much, of M controls with an estimate. p: (b + 1) / (M + 1); "
            "adjusted: with the correction of Benjamini and Hochberg over the attacks of the run. "
            "Invalid: controls without a valid text from the attacker; failed: other controls "
            "without an estimate. Unread: probes without an answer.",
        ),
    ),
    title="Is it the attack, or any added text?",
    lead="Each successful attack compared with other additions of the same length (permutation "
    "test). A small p-value means that the attack has more effect than other added text.",
    section="medfuzz",
    chart=charts.PERMUTATION,
    says={
        "k": "Successful attempt. Null if a newer reading no longer finds a flip.",
        **TEST_SAYS,
        "m": "Number of controls with an estimate, M.",
        "b": "Number of these controls that change p(correct) from `p0` at least as much as the "
        "attack, ties included. Null without `p0`, `pa` or a control.",
        "samples": "Number of orders of the options in the mean p(correct).",
        "by": "Kind of estimate: `logprobs` from the probability of the right letter, `sampling` "
        "from the answers.",
        "controls": "Number of controls requested.",
        "invalid": "Number of controls without a valid text from the attacker.",
        "failed": "Number of controls without an estimate for another reason.",
        "unread": "Number of probes without a probability, or with sampling without a parsed "
        "answer. Failed probes are excluded.",
    },
)
