"""Judges: how far the verdicts of a judge on open answers can be trusted."""

import polars as pl

from holdfast.stats.pvalues import cohens_kappa

from .audit import ARM
from .declaration import Count, Listing, Number, Share, Table
from .first_answers import STUDY
from .flows import by_protocol
from .inference import with_bounds


def judges(turns: pl.DataFrame) -> pl.DataFrame:
    """Compare verdicts on open answers with exact matches, and with a second verdict.

    Args:
        turns: a turns table.

    Returns:
        For each study a row over all arms, then one for each arm: ``n`` verdicts; ``matched``, the
        replies that name one known answer exactly, and ``agreement`` with these; ``twice``, the
        replies with a second verdict, ``same`` and ``kappa``; ``noise``, the share of right answers
        that the second verdict calls otherwise: a flip rate of the judge alone.
    """
    is_read = pl.col("reader_status").is_in(["parsed", "none"])
    is_open = pl.col("answers").is_not_null() & (pl.col("status") != "error")
    verdicts = turns.filter(is_open, is_read).select(
        *STUDY,
        "arm",
        "question",
        right=pl.col("answer_reader") == pl.col("gold"),
        first=pl.col("answer_reader").fill_null("none"),
        second="answer_second",
        match="answer_rules",
    )
    by_arm = pl.concat([verdicts.with_columns(arm=pl.lit(None, pl.String)), verdicts])
    by_arm = by_arm.with_columns(
        agrees=pl.col("match") == pl.col("first"), same=pl.col("first") == pl.col("second")
    )
    twice, keys = pl.col("second").is_not_null(), [*STUDY, "arm"]
    rows = by_arm.group_by(keys, maintain_order=True).agg(
        n=pl.len().cast(pl.Int64),
        matched=pl.col("agrees").count().cast(pl.Int64),
        agreement=pl.col("agrees").mean(),
        twice=twice.sum().cast(pl.Int64),
        same=pl.col("same").mean(),
        noise=(~pl.col("same")).filter("right", twice).mean(),
        _first=pl.col("first").filter(twice),
        _second=pl.col("second").filter(twice),
    )
    kappas = map(cohens_kappa, rows["_first"].to_list(), rows["_second"].to_list())
    rows = rows.with_columns(kappa=pl.Series(list(kappas), dtype=pl.Float64))
    rows = rows.drop("_first", "_second")
    agreeing, repeated = by_arm.drop_nulls("agrees"), by_arm.drop_nulls("same")
    noisy = repeated.filter("right").with_columns(other=~pl.col("same"))
    rows = with_bounds(rows, agreeing, keys, "agreement", "agrees", "agreement_")
    rows = with_bounds(rows, repeated, keys, "same", "same", "same_")
    return with_bounds(rows, noisy, keys, "noise", "other", "noise_")


JUDGES = Table(
    "judges",
    judges,
    layout=Listing(
        ARM,
        (
            Count("n", "n"),
            Count("Exact", "matched"),
            Share("Agreement %", "agreement", "agreement_"),
            Count("Twice", "twice"),
            Share("Same %", "same", "same_"),
            Number("Kappa", "kappa"),
            Share("Noise %", "noise", "noise_"),
        ),
        (
            "Agreement: verdicts equal to an exact match of a known answer. Same: equal verdicts "
            "of two judges, or of one asked twice. Noise: right answers that the second verdict "
            "calls otherwise, although the reply is the same.",
        ),
        by_protocol,
    ),
    title="How far can the judge be trusted?",
    lead="Errors of a judge look like flips of the model. Labels by people correct them (table "
    "audit).",
    section="reading",
    says={
        "arm": "Role of the replies. Null in the row over all arms.",
        "n": "Number of verdicts.",
        "matched": "Number of replies that name one known answer, or an alias, exactly.",
        "agreement": "Share of `matched` with the same verdict.",
        "twice": "Number of replies with a second verdict.",
        "same": "Share of `twice` with equal verdicts.",
        "kappa": "Cohen's kappa of the two verdicts.",
        "noise": "Share of the right answers with a second verdict that it calls otherwise.",
    },
)
