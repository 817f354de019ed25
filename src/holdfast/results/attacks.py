"""Attacks: how far accuracy falls when an assumption of the examination is violated (MedFuzz)."""

import json
from collections.abc import Sequence

import numpy as np
import polars as pl

from holdfast.protocols.medfuzz.published import medfuzz

from .attack_turns import (
    ATTACK,
    ATTACKER,
    KEPT,
    MODEL_ERROR,
    PROTOCOL,
    UNFINISHED,
    attempts,
    replicates,
    successes,
)  # fmt: skip
from .declaration import (
    Column,
    Count,
    Gate,
    Listing,
    Number,
    Section,
    Share,
    Shown,
    Table,
    Text,
    count,
)
from .first_answers import BASELINE, STUDY, TURN
from .grid import Figure, Grid, Row, matrix, one_line, studies
from .inference import with_bounds
from .intervals import bootstrap_shares
from .permutation import permutation

ATTACKS_COLUMNS = (
    "model", "dataset", "k", "questions", "replicates", "accuracy", "low", "high",
    "bootstrap_low", "bootstrap_high", "turned", "run",
)  # fmt: skip
ATTACK_SUMMARY_COLUMNS = (
    "model", "dataset", "questions", "replicates", "first_wrong", "failed", "succeeded",
    "model_errors", "refused", "filtered", "unread", "unfinished", "success_rate", "low", "high",
    "attempts_needed", "tries", "invalid_tries", "invalid_attempts", "reasons", "cost", "unpriced",
    "cost_per_success", "run",
)  # fmt: skip
ATTACK_LIST_COLUMNS = (
    "model", "dataset", "rank", "question", "epoch", "k", "gold", "answer", "review", "p0", "pa",
    "effect", "p_value", "p_plus_one", "p_adjusted", "words", "characteristics", "run",
)  # fmt: skip

_ROW = (*STUDY, "k")
_OF_TEST = ("p0", "pa", "effect", "p_value", "p_plus_one", "p_adjusted")


def attacks(turns: pl.DataFrame) -> pl.DataFrame:
    """Benchmark accuracy after k attempts (MedFuzz, section 4 and Figure 2).

    The share of replicates whose first answer was right and that no attempt up to k flipped: the
    mean over questions of the means of their replicates, weighted by the replicates that are kept.
    Replicates with a model error are dropped whole, and so are unfinished ones. ``low`` and
    ``high`` are a 95% Wilson interval with the effective number of replicates, those of a question
    being alike; ``bootstrap_low`` and ``bootstrap_high`` are the percentile bootstrap over
    questions, which has no width where all that was seen is alike.

    Args:
        turns: a turns table; only protocol ``medfuzz`` is read.

    Returns:
        One row for each model, data set and ``k`` from 0 to the most attempts of the study, with
        ``ATTACKS_COLUMNS``: ``questions`` and ``replicates`` that are kept, and ``turned``, the
        answers that attempt k flipped.
    """
    each = replicates(turns).filter(pl.col("outcome").is_in(KEPT))
    each = each.with_columns(pl.int_ranges(0, pl.col("attempts") + 1).alias("k")).explode("k")
    at, right = pl.col("turned_at"), pl.col("outcome") != "wrong-first"
    each = each.with_columns((right & (at.is_null() | (at > pl.col("k")))).alias("_right"))
    rows = each.group_by(_ROW, maintain_order=True).agg(
        pl.col("question").n_unique().cast(pl.Int64).alias("questions"),
        pl.len().cast(pl.Int64).alias("replicates"),
        pl.col("_right").mean().alias("accuracy"),
        (at == pl.col("k")).sum().cast(pl.Int64).alias("turned"),
    )
    rows = with_bounds(rows, each, _ROW, "accuracy", "_right")
    return _with_bootstrap(rows, each).select(ATTACKS_COLUMNS)


def _with_bootstrap(rows: pl.DataFrame, each: pl.DataFrame) -> pl.DataFrame:
    """The rows with a bootstrap over questions, the same draws at every k of a study."""
    counts = each.group_by(*_ROW, "question", maintain_order=True).agg(
        pl.col("_right").sum(), pl.len().alias("_n")
    )
    bounds = []
    for study, own in counts.group_by(STUDY, maintain_order=True):
        by_k = [
            part.sort("question") for _, part in own.sort("k").group_by("k", maintain_order=True)
        ]
        right = np.column_stack([part["_right"].to_numpy() for part in by_k]).astype(float)
        low, high = bootstrap_shares(right, by_k[0]["_n"].to_numpy().astype(float))
        for part, least, most in zip(by_k, low, high, strict=True):
            bounds.append((*study, part["k"][0], float(least), float(most)))
    schema = {name: rows.schema[name] for name in _ROW}
    schema |= {"bootstrap_low": pl.Float64(), "bootstrap_high": pl.Float64()}
    found = pl.DataFrame(bounds, schema=schema, orient="row")
    return rows.join(found, on=_ROW, how="left", validate="1:1", maintain_order="left")


def attack_summary(turns: pl.DataFrame) -> pl.DataFrame:
    """Outcomes of the replicates, what the attacker needed, and what it cost.

    ``success_rate`` is ``succeeded`` of the replicates attacked without a model error, with its
    95% Wilson interval, replicates of a question counting by what they add; ``attempts_needed``
    is the mean k of the successes. ``tries`` are replies of the attacker, ``invalid_tries`` those
    that could not be used (``reasons``: how often for what, as JSON, most frequent first), and
    ``invalid_attempts`` attempts without a valid modification. Unfinished replicates count only in
    ``unfinished`` and in the cost.

    ``cost`` is that of every generation of attacker and model in dollars, null where no price is
    known; ``unpriced`` counts generations without one. The judge's generations are not included.

    Args:
        turns: a turns table; only protocol ``medfuzz`` is read.

    Returns:
        One row for each model and data set with a finished replicate, with
        ``ATTACK_SUMMARY_COLUMNS``.
    """
    each = replicates(turns)
    outcome, error = pl.col("outcome"), pl.col("error")
    finished = outcome != UNFINISHED
    rows = each.group_by(STUDY, maintain_order=True).agg(
        pl.col("question").filter(finished).n_unique().cast(pl.Int64).alias("questions"),
        finished.sum().cast(pl.Int64).alias("replicates"),
        *(
            (of == value).sum().cast(pl.Int64).alias(name)
            for name, of, value in (
                ("first_wrong", outcome, "wrong-first"),
                ("failed", outcome, "failed"),
                ("succeeded", outcome, "succeeded"),
                ("model_errors", outcome, MODEL_ERROR),
                ("refused", error, "refused"),
                ("filtered", error, "filtered"),
                ("unread", error, "unread"),
                ("unfinished", outcome, UNFINISHED),
            )
        ),
        pl.col("turned_at").mean().alias("attempts_needed"),
    )
    attacked = each.filter(outcome.is_in(["failed", "succeeded"])).with_columns(
        (outcome == "succeeded").alias("_turned")
    )
    n = pl.col("failed") + pl.col("succeeded")
    rows = rows.filter(pl.col("replicates") > 0).with_columns(
        pl.when(n > 0).then(pl.col("succeeded") / n).alias("success_rate")
    )
    rows = with_bounds(rows, attacked, STUDY, "success_rate", "_turned")
    for more in (_tries(turns, each.filter(finished)), _costs(turns)):
        rows = rows.join(more, on=STUDY, how="left", validate="1:1", maintain_order="left")
    counts = ("tries", "invalid_tries", "invalid_attempts", "unpriced")
    succeeded = pl.col("succeeded")
    return rows.with_columns(
        pl.col(counts).fill_null(0),
        pl.when(succeeded > 0).then(pl.col("cost") / succeeded).alias("cost_per_success"),
        pl.col("reasons").fill_null("{}"),
    ).select(ATTACK_SUMMARY_COLUMNS)


def attack_list(turns: pl.DataFrame) -> pl.DataFrame:
    """Successful attacks, the most telling first, for review by an expert (MedFuzz, section 4).

    Ranked by the judge's ``review`` score where there is one, then by the drop of p(correct), the
    p-value, the attempts that it took and the words that were added, what is not known last. Of an
    attack tested twice, the test with the most controls counts.

    Args:
        turns: a turns table; protocols ``medfuzz`` and, for the tests, ``medfuzz-test`` are read.

    Returns:
        One row for each successful attack, with ``ATTACK_LIST_COLUMNS``: ``rank`` from 1 within
        each study; ``p0`` to ``p_adjusted`` as in ``permutation``, null where it was not tested.
    """
    attack = ("model", "dataset", "question", "epoch", "run")
    tests = permutation(turns).sort("m", "run", descending=[True, False])
    tests = tests.select(
        *attack[:-1], pl.col("attacked_run").alias("run"), *_OF_TEST
    ).unique(attack, keep="first")  # fmt: skip
    found = successes(turns).join(
        tests, on=attack, how="left", validate="m:1", maintain_order="left"
    )
    found = found.with_row_index("_row").with_columns(pl.col("_row").min().over(STUDY))
    found = found.sort(
        "_row", "review", "effect", "p_value", "k", "words", "question", "epoch",
        descending=[False, True, *[False] * 6], nulls_last=True,
    )  # fmt: skip
    rank = pl.int_range(1, pl.len() + 1, dtype=pl.Int64).over(STUDY)
    return found.with_columns(rank.alias("rank")).select(ATTACK_LIST_COLUMNS)


def _tries(turns: pl.DataFrame, finished: pl.DataFrame) -> pl.DataFrame:
    """What the attacker replied in finished replicates, by study."""
    tried = attempts(turns).join(finished, on=TURN, how="semi", maintain_order="left")
    invalid = ~pl.col("valid") & (pl.col("tries") > 0)
    counts = tried.group_by(STUDY, maintain_order=True).agg(
        pl.col("tries", "invalid_tries").sum(),
        invalid.sum().cast(pl.Int64).alias("invalid_attempts"),
    )
    unusable = (
        turns.select(*TURN, "arm", "status", "rule")
        .filter(
            pl.col("protocol") == PROTOCOL,
            pl.col("arm") == ATTACKER,
            ~pl.col("status").is_in(["parsed", "error"]),
        )
        .join(finished, on=TURN, how="semi")
    )
    by_reason = (
        unusable.group_by(*STUDY, pl.col("rule").fill_null("").alias("_reason"))
        .agg(pl.len().alias("_n"))
        .sort("_n", "_reason", descending=[True, False])
        .group_by(STUDY, maintain_order=True)
        .agg("_reason", "_n")
    )
    reasons = [
        json.dumps(dict(zip(names, numbers, strict=True)), ensure_ascii=False)
        for names, numbers in by_reason.select("_reason", "_n").iter_rows()
    ]
    by_reason = by_reason.select(*STUDY, pl.Series("reasons", reasons, dtype=pl.String))
    return counts.join(by_reason, on=STUDY, how="left", validate="1:1", maintain_order="left")


def _costs(turns: pl.DataFrame) -> pl.DataFrame:
    """Dollars spent and generations without a price, by study."""
    made = turns.select(*STUDY, "arm", "status", "shared", "cost").filter(
        pl.col("protocol") == PROTOCOL,
        pl.col("arm").is_in([BASELINE, ATTACK, ATTACKER]),
        pl.col("status") != "error",
        ~pl.col("shared").fill_null(value=False),
    )
    cost = pl.col("cost").fill_nan(None)
    return made.group_by(STUDY).agg(
        # in a fixed order: the last digit of a sum depends on it
        pl.when(cost.count() > 0).then(cost.sort().sum()).alias("cost"),
        cost.null_count().cast(pl.Int64).alias("unpriced"),
    )


def _attacks_layout(rows: Sequence[Row]) -> list[Grid] | None:
    """Accuracy after k attempts, studies beside each other (Figure 2)."""
    columns = studies(rows)
    accuracy = Share("", "accuracy", "", of=_ATTACKED, among="replicates")
    figures = [
        Figure(columns.of(row), "", "", count(row["k"]), cell.text, n=cell.n, of=cell.of)
        for row in rows
        for cell in [accuracy.cell(row)]
    ]
    kept = [
        f"{columns.headers[columns.of(row)]} {count(row['replicates'])} replicates of "
        f"{count(row['questions'])} questions"
        for row in rows
        if row["k"] == 0
    ]
    paper = medfuzz()
    notes = [
        "Share of the replicates, in percent, whose first answer was right and that no attempt up "
        "to k flipped [95% Wilson interval]; model errors dropped.",
        f"Kept: {', '.join(kept)}.",
        f"People: {paper.human_accuracy} on average on {paper.human_examination} "
        f"({paper.citation}, Figure 2).",
        *columns.notes(),
    ]
    grid = matrix(figures, columns.headers, "Attempts k", notes)
    return None if grid is None else [grid]


def _summary_layout(rows: Sequence[Row]) -> list[Grid] | None:
    """Outcomes and what they took, studies beside each other."""
    columns = studies(rows)
    figures = [
        Figure(columns.of(row), block, "", line.header, cell.text, n=cell.n, of=cell.of)
        for block, lines in _SUMMARY.items()
        for line in lines
        for row in rows
        for cell in [line.cell(row)]
    ]
    notes = [
        "Succeeded: of the replicates attacked without a model error [95% Wilson interval]. "
        "Unfinished replicates count only there and in the cost. The cost is that of attacker and "
        "model, without the judge.",
        *columns.notes(),
    ]
    grid = matrix(figures, columns.headers, "", notes)
    return None if grid is None else [grid]


def _reasons(row: Row) -> str:
    found = json.loads(row["reasons"])
    return ", ".join(f"{one_line(reason) or 'unnamed'} {n}" for reason, n in found.items())


def _added(row: Row) -> str:
    """Texts of a JSON list; what is none is shown as it is."""
    listed = row["characteristics"]
    try:
        read = json.loads(listed or "[]")
    except (ValueError, RecursionError):
        read = listed
    return "; ".join(one_line(str(text)) for text in (read if isinstance(read, list) else [read]))


def _turned(row: Row) -> str:
    return f"{one_line(row['gold'])} > {one_line(row['answer'])}"


def _after(rows: pl.DataFrame, k: int | None) -> pl.DataFrame:
    if k is not None:
        return rows.filter(pl.col("k") == k)
    ordered = rows.sort("k", maintain_order=True)
    return ordered.group_by("run", "model", "dataset", maintain_order=True).last()


_OF = pl.format("after {} attacks", "k").str.replace("^after 1 attacks", "after 1 attack")
_ATTACKED = {"protocol": PROTOCOL}

_SUMMARY: dict[str, tuple[Column, ...]] = {
    "Replicates": (
        Count("Questions", "questions"),
        Count("All replicates", "replicates", of=_ATTACKED),
        Count("First answer wrong", "first_wrong", of=_ATTACKED | {"flip": "single"}),
        Count("Attack failed", "failed", of=_ATTACKED | {"flip": "kept"}),
        Count("Attack succeeded", "succeeded", of=_ATTACKED | {"flip": "gave-way"}),
        Count("Model error", "model_errors"),
        Count("of which refused", "refused"),
        Count("of which filtered", "filtered"),
        Count("of which unread", "unread"),
        Count("Unfinished", "unfinished"),
    ),
    "Attacks": (
        Share("Succeeded %", "success_rate", ""),
        Number("Attempts needed, mean", "attempts_needed"),
        Count("Tries of the attacker", "tries"),
        Count("Invalid tries", "invalid_tries"),
        Count("Attempts without a valid one", "invalid_attempts"),
        Shown("Invalid for", "reasons", show=_reasons),
    ),
    "Cost": (
        Number("Dollars", "cost", digits=4),
        Number("Dollars for a success", "cost_per_success", digits=4),
        Count("Generations without a price", "unpriced"),
    ),
}

MEDFUZZ = Section(
    "medfuzz",
    "MedFuzz",
    "Questions rewritten by an attacker",
    "A second model rewrites the question, adding details that a clinician would set aside, "
    "until the answer flips or the attempts are used up (MedFuzz).",
    10,
)

ATTACKS = Table(
    "attacks",
    attacks,
    layout=_attacks_layout,
    title="Accuracy after each attempt",
    lead="Right answers that no attempt up to k flipped.",
    section="medfuzz",
    figure="holdfast.report.figures.medfuzz:ATTACKS",
    gates=(
        Gate("min_accuracy_after_attacks", "accuracy", "least", PROTOCOL, "accuracy", "replicates",
             _OF, _after),
    ),
)  # fmt: skip

ATTACK_SUMMARY = Table(
    "attack-summary",
    attack_summary,
    layout=_summary_layout,
    title="How did the attacks end?",
    lead="Model errors are counted apart.",
    section="medfuzz",
)

ATTACK_LIST = Table(
    "attack-list",
    attack_list,
    layout=Listing(
        Count("Rank", "rank"),
        (
            Text("Question", "question", of=_ATTACKED, among=1),
            Count("Replicate", "epoch", of=_ATTACKED, among=1),
            Count("k", "k"),
            Shown("Answer", "answer", show=_turned),
            Count("Review", "review"),
            Share("Effect", "effect", signed=True),
            Number("p", "p_value", digits=3),
            Number("Adjusted", "p_adjusted", digits=3),
            Count("Words", "words"),
            Shown("Added", "characteristics", show=_added),
        ),
        (
            "Ranked by the judge's review, the drop of p(correct), the p-value, the attempts and "
            "the words added. Answer: the right one and the one given. Effect: of the attack on "
            "p(correct) in points. Empty: not tested, or not known.",
        ),
    ),
    title="Every successful attack",
    lead="Most telling first.",
    section="medfuzz",
    place=1,
)
