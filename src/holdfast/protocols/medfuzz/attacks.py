"""Attacks: how far accuracy falls when an assumption of the examination is violated (MedFuzz)."""

import json
from collections.abc import Sequence

import polars as pl

from holdfast.results.declaration import (
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
)  # fmt: skip
from holdfast.results.first_answers import BASELINE, STUDY, TURN
from holdfast.results.grid import Figure, Grid, Row, Studies, matrix, one_line, studies
from holdfast.results.inference import looked_up, with_bounds
from holdfast.results.intervals import bootstrap_shares

from .published import medfuzz
from .replicates import (
    ATTACK,
    ATTACKER,
    MODEL_ERROR,
    PROTOCOL,
    UNFINISHED,
    attempts,
    replicates,
    right_at_each,
    successes,
)  # fmt: skip
from .significance import permutation

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

_OUTCOMES = {
    "first_wrong": ("outcome", "wrong-first"),
    "failed": ("outcome", "failed"),
    "succeeded": ("outcome", "succeeded"),
    "model_errors": ("outcome", MODEL_ERROR),
    "refused": ("error", "refused"),
    "filtered": ("error", "filtered"),
    "unread": ("error", "unread"),
    "unfinished": ("outcome", UNFINISHED),
}
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
        One row for each model, data set and ``k`` from 0 to the most attempts of the study:
        ``questions`` and ``replicates`` that are kept, and ``turned``, the answers that attempt k
        flipped.
    """
    each = right_at_each(turns)
    rows = each.group_by(_ROW, maintain_order=True).agg(
        questions=pl.col("question").n_unique().cast(pl.Int64),
        replicates=pl.len().cast(pl.Int64),
        accuracy=pl.col("hit").mean(),
        turned=(pl.col("turned_at") == pl.col("k")).sum().cast(pl.Int64),
    )
    rows = with_bounds(rows, each, _ROW, "accuracy", "hit")
    return looked_up(rows, _bootstrapped(each, rows.schema), _ROW).select(ATTACKS_COLUMNS)


def _bootstrapped(each: pl.DataFrame, schema: pl.Schema) -> pl.DataFrame:
    """Bounds by a bootstrap over questions, the same draws at every k of a study."""
    counts = each.group_by(*_ROW, "question").agg(pl.col("hit").sum(), _n=pl.len())
    bounds = []
    for study, own in counts.sort("k", "question").group_by(STUDY, maintain_order=True):
        right = own.pivot("k", index="question", values="hit").drop("question")
        n = own.filter(pl.col("k") == 0)["_n"]
        low, high = bootstrap_shares(
            right.cast(pl.Float64).to_numpy(), n.cast(pl.Float64).to_numpy()
        )
        bounds += [
            (*study, int(k), float(least), float(most))
            for k, least, most in zip(right.columns, low, high, strict=True)
        ]
    ends = dict.fromkeys(("bootstrap_low", "bootstrap_high"), pl.Float64())
    return pl.DataFrame(bounds, {**{name: schema[name] for name in _ROW}, **ends}, orient="row")


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
        One row for each model and data set with a finished replicate.
    """
    each = replicates(turns)
    outcome, n = pl.col("outcome"), pl.col("failed") + pl.col("succeeded")
    finished, succeeded = outcome != UNFINISHED, pl.col("succeeded")
    rows = each.group_by(STUDY, maintain_order=True).agg(
        pl.col("question").filter(finished).n_unique().cast(pl.Int64).alias("questions"),
        finished.sum().cast(pl.Int64).alias("replicates"),
        *(
            (pl.col(of) == value).sum().cast(pl.Int64).alias(name)
            for name, (of, value) in _OUTCOMES.items()
        ),
        attempts_needed=pl.col("turned_at").mean(),
    )
    rows = rows.filter(pl.col("replicates") > 0).with_columns(
        success_rate=pl.when(n > 0).then(succeeded / n)
    )
    attacked = each.filter(outcome.is_in(["failed", "succeeded"]))
    attacked = attacked.with_columns(_turned=outcome == "succeeded")
    rows = with_bounds(rows, attacked, STUDY, "success_rate", "_turned")
    for more in (_tries(turns, each.filter(finished)), _costs(turns)):
        rows = looked_up(rows, more, STUDY)
    return rows.with_columns(
        pl.col("tries", "invalid_tries", "invalid_attempts", "unpriced").fill_null(0),
        cost_per_success=pl.when(succeeded > 0).then(pl.col("cost") / succeeded),
        reasons=pl.col("reasons").fill_null("{}"),
    ).select(ATTACK_SUMMARY_COLUMNS)


def attack_list(turns: pl.DataFrame) -> pl.DataFrame:
    """Successful attacks, the most telling first, for review by an expert (MedFuzz, section 4).

    Ranked by the judge's ``review`` score where there is one, then by the drop of p(correct), the
    p-value, the attempts that it took and the words that were added, what is not known last. Of an
    attack tested twice, the test with the most controls counts.

    Args:
        turns: a turns table; protocols ``medfuzz`` and, for the tests, ``medfuzz-test`` are read.

    Returns:
        One row for each successful attack: ``rank`` from 1 within each study; ``p0`` to
        ``p_adjusted`` as in ``permutation``, null where it was not tested.
    """
    attack = ("model", "dataset", "question", "epoch", "run")
    tests = permutation(turns).sort("m", "run", descending=[True, False])
    tests = tests.with_columns(run="attacked_run").unique(attack, keep="first")
    found = looked_up(successes(turns), tests.select(*attack, *_OF_TEST), attack)
    found = found.with_row_index("_row").with_columns(pl.col("_row").min().over(STUDY))
    found = found.sort(
        "_row", "review", "effect", "p_value", "k", "words", "question", "epoch",
        descending=[False, True, *[False] * 6], nulls_last=True,
    )  # fmt: skip
    rank = pl.int_range(1, pl.len() + 1, dtype=pl.Int64).over(STUDY)
    return found.with_columns(rank=rank).select(ATTACK_LIST_COLUMNS)


def _tries(turns: pl.DataFrame, finished: pl.DataFrame) -> pl.DataFrame:
    """What the attacker replied in finished replicates, by study."""
    tried = attempts(turns).join(finished, on=TURN, how="semi", maintain_order="left")
    counts = tried.group_by(STUDY, maintain_order=True).agg(
        pl.col("tries", "invalid_tries").sum(),
        invalid_attempts=(~pl.col("valid") & (pl.col("tries") > 0)).sum().cast(pl.Int64),
    )
    unusable = turns.select(*TURN, "arm", "status", "rule").filter(
        pl.col("protocol") == PROTOCOL,
        pl.col("arm") == ATTACKER,
        ~pl.col("status").is_in(["parsed", "error"]),
    )
    by_reason = (
        unusable.join(finished, on=TURN, how="semi")
        .group_by(*STUDY, reason=pl.col("rule").fill_null(""))
        .agg(n=pl.len())
        .sort("n", "reason", descending=[True, False])
    )
    reasons = [
        (*study, json.dumps(dict(own.select("reason", "n").iter_rows()), ensure_ascii=False))
        for study, own in by_reason.group_by(STUDY, maintain_order=True)
    ]
    schema = dict.fromkeys([*STUDY, "reasons"], pl.String())
    return looked_up(counts, pl.DataFrame(reasons, schema, orient="row"), STUDY)


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
        cost=pl.when(cost.count() > 0).then(cost.sort().sum()),
        unpriced=cost.null_count().cast(pl.Int64),
    )


def _attacks_layout(rows: Sequence[Row]) -> list[Grid] | None:
    """Accuracy after k attempts, studies beside each other (Figure 2)."""
    columns = studies(rows)
    accuracy = Share("", "accuracy", "", of=_ATTACKED, among="replicates")
    figures = [_figure(columns, row, "", count(row["k"]), accuracy) for row in rows]
    kept = [
        f"{columns.header(row)} {count(row['replicates'])} replicates of "
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
        _figure(columns, row, block, line.header, line)
        for block, lines in _SUMMARY.items()
        for line in lines
        for row in rows
    ]
    notes = [
        "Succeeded: of the replicates attacked without a model error [95% Wilson interval]. "
        "Unfinished replicates count only there and in the cost. The cost is that of attacker and "
        "model, without the judge.",
        *columns.notes(),
    ]
    grid = matrix(figures, columns.headers, "", notes)
    return None if grid is None else [grid]


def _figure(columns: Studies, row: Row, block: str, label: str, column: Column) -> Figure:
    cell = column.cell(row)
    return Figure(columns.of(row), block, "", label, cell.text, n=cell.n, of=cell.of)


def _reasons(row: Row) -> str:
    found = json.loads(row["reasons"])
    return ", ".join(f"{one_line(reason) or 'unnamed'} {n}" for reason, n in found.items())


def _added(row: Row) -> str:
    """Texts of a JSON list; what is none is shown as it is."""
    listed = row["characteristics"] or "[]"
    try:
        read = json.loads(listed)
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
_GATE = Gate(
    "min_accuracy_after_attacks", "accuracy", "least", PROTOCOL, "accuracy", "replicates",
    _OF, _after,
)  # fmt: skip
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
    figure="holdfast.protocols.medfuzz.figures:ATTACKS",
    gates=(_GATE,),
)

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
