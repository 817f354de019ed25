"""Attempts of MedFuzz, their replicates, and successful attacks that a repetition confirms."""

import math
from functools import cache

import polars as pl

from holdfast.results.arms import TurnsOf
from holdfast.results.changes import with_adjusted
from holdfast.results.first_answers import BASELINE, STUDY, TURN
from holdfast.results.inference import looked_up
from holdfast.results.kept import once
from holdfast.stats.pvalues import benjamini_hochberg

from .attack_arms import (
    AGAIN,
    AGAIN_INERT,
    AGAIN_PLAIN,
    ATTACK,
    ATTACKED_ARM,
    ATTACKER,
    CONTROL,
    CONTROL_WRITER,
    INERT,
    ORIGINAL,
    REASK,
    REFUSALS,
    REPLAYED_ARM,
    UNATTACKED_ARM,
)

PROTOCOL = "medfuzz"

MEDFUZZ_ROW = (*STUDY, "k")
"""Columns that identify a row of a curve."""

COUNTED_OUTCOMES = ("wrong-first", "failed", "succeeded")
"""Outcomes that count in the accuracy; a model error drops its replicate (section 4)."""

MODEL_ERROR, NOT_ATTACKED, UNFINISHED_OUTCOME = "model-error", "not-attacked", "unfinished"

NOTES = (
    "characteristics", "mentioned", "mentioned_visible", "mentioned_judged", "valid_judged",
    "review", "words", "rewrite",
)  # fmt: skip
"""Columns that a study records for a modified question and its answer."""

# columns are selected before rows, because copying the others takes longer than the rest
_COLUMNS = ("arm", "path", "status", "rule", "correct")

# no study has 10,000 attempts, and a number from a text must not create that many rows
_K = pl.col("path").str.extract(r"^fuzz@(\d{1,4})$").cast(pl.Int64)


def attempts(turns: pl.DataFrame) -> pl.DataFrame:
    """Return the attempts to flip an answer, including the attacker's tries.

    Returns:
        One row for each replicate (``TURN``) and 1-based attempt ``k``, in order: ``tries``
        (replies of the attacker), ``invalid_tries``, ``refusals``, ``valid`` (whether a try was
        valid), ``asked`` (whether the modified question was answered), and ``status``, ``rule`` and
        ``correct`` of that answer. Failed calls are neither tries nor answers.
    """
    mine, is_attack = pl.col("arm") == ATTACKER, pl.col("arm") == ATTACK
    is_parsed = pl.col("status") == "parsed"
    return (
        turns.select(*TURN, *_COLUMNS)
        .filter(pl.col("protocol") == PROTOCOL, mine | is_attack)
        .with_columns(_K.alias("k"))
        .filter(pl.col("k").is_not_null(), pl.col("status") != "error")
        .group_by(*TURN, "k", maintain_order=True)
        .agg(
            mine.sum().cast(pl.Int64).alias("tries"),
            (mine & ~is_parsed).sum().cast(pl.Int64).alias("invalid_tries"),
            (mine & (pl.col("status") == "refused")).sum().cast(pl.Int64).alias("refusals"),
            (mine & is_parsed).any().alias("valid"),
            is_attack.any().alias("asked"),
            *(pl.col(name).filter(is_attack).first() for name in ("status", "rule", "correct")),
        )
        .sort("k", maintain_order=True)
    )


@once
def replicates(turns: pl.DataFrame) -> pl.DataFrame:
    """Return the replicates with their outcomes (MedFuzz, section 4).

    The outcome is ``wrong-first``, ``failed`` (still right after the last attempt), ``succeeded``,
    ``not-attacked`` (no attempt had a valid modification), ``model-error``, or ``unfinished``. A
    reply without a parsed answer is a model error of the kind ``refused``, ``filtered`` (by the
    provider) or ``unread``. A replicate with a failed call is unfinished. So is an interrupted one:
    its answer is still right, but it had fewer attacks than the study asks for, or its last attempt
    has no answer. An attempt without a valid modification is over after as many tries as any
    attempt of the study had, or two refusals.

    Returns:
        One row for each replicate (``TURN``), in the order of the table: ``outcome``, ``turned_at``
        (the successful attempt), ``error`` (kind of a model error), ``put`` (number of answered
        attempts) and ``attempts`` (K: the study's setting, or the maximum over replicates in tables
        without it).
    """
    attack_turns = turns.select(*TURN, *_COLUMNS, "attempts").filter(
        pl.col("protocol") == PROTOCOL, pl.col("arm").is_in([BASELINE, ATTACK, ATTACKER])
    )
    first = pl.col("arm") == BASELINE
    outcomes = attack_turns.group_by(TURN, maintain_order=True).agg(
        (pl.col("status") == "error").any().alias("_cut"),
        *(
            pl.col(name).filter(first).first().alias(f"first_{name}")
            for name in ("status", "rule", "correct")
        ),
        pl.max_horizontal(_K.max(), pl.col("attempts").max()).alias("_last"),
    )
    tries = attempts(turns)
    no_more = (pl.col("tries") == pl.col("_most")) | (pl.col("refusals") >= REFUSALS)
    is_over = pl.col("asked") | (~pl.col("valid") & no_more)
    # the first answer that is not right ends an attack
    ends = pl.col("asked") & ~((pl.col("status") == "parsed") & pl.col("correct"))
    outcome_column = (
        tries.with_columns(pl.col("tries").max().over(STUDY).alias("_most"))
        .group_by(TURN)
        .agg(
            is_over.last().alias("_over"),
            pl.col("k").max().alias("_tried"),
            pl.col("asked").sum().cast(pl.Int64).alias("put"),
            *(pl.col(name).filter(ends).first() for name in ("k", "status", "rule")),
        )
    )
    outcomes = outcomes.join(
        outcome_column, on=TURN, how="left", validate="1:1", maintain_order="left"
    )
    right = pl.col("first_correct")
    is_last = (pl.col("_tried") == pl.col("_last").max().over(STUDY)) & pl.col("_over")
    outcome = (
        pl.when(pl.col("_cut") | pl.col("first_status").is_null()).then(pl.lit(UNFINISHED_OUTCOME))
        .when(pl.col("first_status") != "parsed").then(pl.lit(MODEL_ERROR))
        .when(~right).then(pl.lit("wrong-first"))
        .when(pl.col("status") == "parsed").then(pl.lit("succeeded"))
        .when(pl.col("status").is_not_null()).then(pl.lit(MODEL_ERROR))
        .when(~is_last.fill_null(value=False)).then(pl.lit(UNFINISHED_OUTCOME))
        .when(pl.col("put") == 0).then(pl.lit(NOT_ATTACKED))
        .otherwise(pl.lit("failed"))
    )  # fmt: skip
    at_first = pl.col("first_status") != "parsed"
    status, rule = (
        pl.when(at_first).then(f"first_{name}").otherwise(name) for name in ("status", "rule")
    )
    kind = (
        pl.when(rule == "content-filter").then(pl.lit("filtered"))
        .when(status == "refused").then(pl.lit("refused"))
        .otherwise(pl.lit("unread"))
    )  # fmt: skip
    outcomes = outcomes.with_columns(outcome.alias("outcome"))
    return outcomes.select(
        *TURN,
        "outcome",
        pl.when(pl.col("outcome") == "succeeded").then("k").alias("turned_at"),
        pl.when(pl.col("outcome") == MODEL_ERROR).then(kind).alias("error"),
        pl.col("put").fill_null(0),
        pl.col("_last").max().over(STUDY).fill_null(0).alias("attempts"),
    )


def successes(turns: pl.DataFrame) -> pl.DataFrame:
    """Return successful attacks: answers that a modified question flipped.

    Returns:
        One row for each, in the order of the table, with ``TURN``, ``k``, ``gold``, ``answer`` and
        ``NOTES``.
    """
    success_rows = replicates(turns).filter(pl.col("outcome") == "succeeded")
    answers = (
        turns.select(*TURN, "arm", "path", "gold", "answer", *NOTES)
        .filter(pl.col("protocol") == PROTOCOL, pl.col("arm") == ATTACK)
        .with_columns(_K.alias("k"))
        .select(*TURN, "k", "gold", "answer", *NOTES)
    )
    success_keys = success_rows.select(*TURN, pl.col("turned_at").alias("k"))
    return answers.join(success_keys, on=[*TURN, "k"], how="semi", maintain_order="left")


def right_at_each(turns: pl.DataFrame) -> pl.DataFrame:
    """Return whether counted replicates are still right after each number of attempts.

    Returns:
        The rows of ``replicates`` for each ``k`` from 0 to the study's maximum, with ``hit``: the
        first answer is right, and no attempt up to ``k`` flipped it. Null if no attack was valid.
    """
    outcomes = replicates(turns).filter(pl.col("outcome").is_in([*COUNTED_OUTCOMES, NOT_ATTACKED]))
    outcomes = outcomes.with_columns(pl.int_ranges(0, pl.col("attempts") + 1).alias("k")).explode(
        "k"
    )
    right, turned_at = pl.col("outcome") != "wrong-first", pl.col("turned_at")
    is_right = right & (turned_at.is_null() | (turned_at > pl.col("k")))
    return outcomes.with_columns(
        pl.when(pl.col("outcome") != NOT_ATTACKED).then(is_right).alias("hit")
    )


_MEASURE = "accuracy-after-attacks"


def _outcomes(turns: pl.DataFrame) -> pl.DataFrame:
    """Return the benchmark accuracy by attempt as outcomes."""
    return (
        right_at_each(turns)
        .drop_nulls("hit")
        .with_columns(
            pl.lit(_MEASURE).alias("measure"),
            pl.lit(ATTACK).alias("arm"),
            pl.concat_str(pl.lit("fuzz@"), "k").alias("path"),
            pl.lit(0, pl.Int64).alias("turn"),
        )
    )


PROBES = (ORIGINAL, ATTACKED_ARM, CONTROL)
"""Arms of the direct answers of a permutation test."""

HELPERS = (ATTACKER, CONTROL_WRITER)
"""Arms of the attacker's replies."""

REPLAYS = dict.fromkeys((UNATTACKED_ARM, REPLAYED_ARM), "of attacks found on another model")

# the attacker claims that the right option is still right, which nobody has checked
CONTROL_ARMS = (INERT, REASK, AGAIN, AGAIN_PLAIN, AGAIN_INERT)
"""Arms of controls and repetitions."""

APART = {
    **dict.fromkeys([*HELPERS, ATTACK, *PROBES], "to or of an attacker"),
    **dict.fromkeys(CONTROL_ARMS, "of controls and repetitions of attacks"),
    **REPLAYS,
}
NOT_REVIEWED = {
    **dict.fromkeys([*HELPERS, *PROBES], "of an attacker, or probes of an attack"),
    **dict.fromkeys(CONTROL_ARMS, "of controls and repetitions of attacks"),
    **REPLAYS,
}

TURNS = TurnsOf(
    PROTOCOL,
    stops_early=True,
    helpers=HELPERS,
    apart=APART,
    review_exclusions=NOT_REVIEWED,
    continues={ATTACKER: ATTACKER},
    plain=(),
    outcomes=_outcomes,
    held=_MEASURE,
    outcome_words="MedFuzz: right after is right answers after the last attempt; calls, tokens, "
    "seconds and dollars are of one reply.",
)


LEVEL = 0.05
"""Maximum false discovery rate among confirmed attacks."""

CONFIRMED_COLUMNS = (
    "again", "again_wrong", "plain", "plain_wrong", "inert", "inert_wrong", "inert_lasting",
    "confirm_p", "confirm_adjusted", "inert_p", "confirmed",
)  # fmt: skip
"""Columns on a successful attack that was repeated."""

HYPOTHESIS = (*STUDY, "question", "rewrite")
"""Columns that identify an attack; identical attacks on a question are one."""


def confirmed(turns: pl.DataFrame) -> pl.DataFrame:
    """Compare repetitions of successful attacks with their originals.

    ``again`` counts the parsed replies to the attacked question, ``again_wrong`` the wrong ones.
    ``plain`` and ``plain_wrong`` count those to the original, over all replicates with that attack.
    The replies that flipped are not included. ``inert`` counts the inert rewrites in place of the
    attack, ``inert_wrong`` those with a wrong reply. ``confirm_p`` is the larger p-value of two
    one-sided Fisher's exact tests: whether the attacked question is wrong more often than the
    original, and more often than inert rewrites. ``confirm_adjusted`` has the correction of
    Benjamini and Hochberg (1995) over the attacks of the run, with identical attacks counted once.

    A text that flips an answer once may flip it again, whatever its content. ``inert_lasting``
    counts the inert rewrites that were wrong at first and in every repetition. ``inert_p`` is the
    share of these among all rewrites, with the attack added to both. An attack is confirmed if both
    p-values are significant.

    Args:
        turns: a turns table. Only the protocol ``medfuzz`` is used.

    Returns:
        One row for each distinct successful attack with repetitions (``HYPOTHESIS``, or each
        success if the table has no digest of the text), with ``CONFIRMED_COLUMNS``.
    """
    success_rows = hypotheses(turns).select(*TURN, "rewrite")
    confirmations = turns.filter(
        pl.col("protocol") == PROTOCOL,
        pl.col("arm").is_in([AGAIN, AGAIN_PLAIN]),
        pl.col("status") == "parsed",
    ).select(*TURN, "arm", "correct")
    is_attacked, wrong = pl.col("arm") == AGAIN, ~pl.col("correct")
    rows = (
        confirmations.join(success_rows, on=TURN, how="inner", maintain_order="left")
        .group_by(HYPOTHESIS, maintain_order=True)
        .agg(
            is_attacked.sum().cast(pl.Int64).alias("again"),
            (is_attacked & wrong).sum().cast(pl.Int64).alias("again_wrong"),
            (~is_attacked).sum().cast(pl.Int64).alias("plain"),
            (~is_attacked & wrong).sum().cast(pl.Int64).alias("plain_wrong"),
        )
    )
    inert_columns = ("inert", "inert_wrong", "inert_lasting")
    rows = looked_up(rows, _inert(turns, success_rows), HYPOTHESIS).with_columns(
        pl.col(inert_columns).fill_null(0)
    )
    counts = rows.select(CONFIRMED_COLUMNS[:6]).iter_rows()
    p = [max(fisher(*row[:2], *row[2:4]), fisher(*row[:2], *row[4:])) for row in counts]
    rows = rows.with_columns(pl.Series("confirm_p", p, dtype=pl.Float64))
    rows = with_adjusted(rows, STUDY, "confirm_p", benjamini_hochberg)
    rows = rows.rename({"p_adjusted": "confirm_adjusted"}).with_columns(
        inert_p=(pl.col("inert_lasting") + 1) / (pl.col("inert") + 1)
    )
    larger_p = pl.max_horizontal("confirm_adjusted", "inert_p")
    return rows.with_columns(confirmed=larger_p <= LEVEL)


_REWRITE = pl.col("path").str.extract(r">inert@(\d{1,9})")


def _inert(turns: pl.DataFrame, success_rows: pl.DataFrame) -> pl.DataFrame:
    """Count inert rewrites in place of each attack: all, wrong ones, and those that stay wrong."""
    first = ~pl.col("path").str.contains(">again@", literal=True)
    texts = (
        turns.filter(
            pl.col("protocol") == PROTOCOL,
            pl.col("arm") == AGAIN_INERT,
            pl.col("status") == "parsed",
        )
        .select(*TURN, "correct", _text=_REWRITE, first=first)
        .group_by(*TURN, "_text", maintain_order=True)
        .agg(
            _put=pl.col("first").any(),
            _wrong=(~pl.col("correct")).filter("first").any(),
            _lasting=(~pl.col("correct")).all(),
        )
        .filter("_put")
    )
    inert_turns = texts.join(success_rows, on=TURN, how="inner", maintain_order="left")
    return inert_turns.group_by(HYPOTHESIS, maintain_order=True).agg(
        inert=pl.len().cast(pl.Int64),
        inert_wrong=pl.col("_wrong").sum().cast(pl.Int64),
        inert_lasting=pl.col("_lasting").sum().cast(pl.Int64),
    )


def hypotheses(turns: pl.DataFrame) -> pl.DataFrame:
    """Return ``successes`` with a distinct ``rewrite``, also for tables without this column."""
    replicate_key = pl.format("{} {}", "epoch", "k")
    return successes(turns).with_columns(pl.coalesce("rewrite", replicate_key).alias("rewrite"))


@cache
def fisher(n: int, hits: int, other_n: int, other_hits: int) -> float:
    """Compute the one-sided p-value that a share is no larger than another (Fisher's exact test).

    It is implemented here like the other tests, and compared with the library in a test.
    """
    hit_total = hits + other_hits
    ways = sum(
        math.comb(n, x) * math.comb(other_n, hit_total - x)
        for x in range(hits, min(n, hit_total) + 1)
    )
    return ways / math.comb(n + other_n, hit_total)
