"""Attacks: the fall in accuracy when an assumption of the examination is violated (MedFuzz)."""

import json
from collections.abc import Iterator, Sequence

import polars as pl

from holdfast.errors import counted
from holdfast.results.declaration import (
    Column,
    Computed,
    Count,
    Gate,
    Listing,
    Number,
    Section,
    Share,
    Table,
    Text,
    YesNo,
    count,
)  # fmt: skip
from holdfast.results.first_answers import BASELINE, STUDY, TURN
from holdfast.results.grid import (
    Grid,
    HeatmapCell,
    Row,
    Studies,
    matrix,
    one_line,
    percent,
    studies,
)
from holdfast.results.inference import looked_up, with_bounds
from holdfast.stats.intervals import bootstrap_shares

from . import charts
from .attack_arms import ATTACK, ATTACKER, MOST_AGAIN
from .net_attacks import last_attempt
from .published import medfuzz
from .replicates import (
    CONFIRMED_COLUMNS,
    CONTROL_ARMS,
    HYPOTHESIS,
    LEVEL,
    MODEL_ERROR,
    NOT_ATTACKED,
    PROTOCOL,
    UNFINISHED_OUTCOME,
    attempts,
    confirmed,
    hypotheses,
    replicates,
    right_at_each,
)  # fmt: skip
from .replicates import MEDFUZZ_ROW as _ROW
from .significance import TEST_SAYS, permutation

ATTACKS_COLUMNS = (
    "model", "dataset", "k", "attempts", "questions", "replicates", "accuracy", "low", "high",
    "bootstrap_low", "bootstrap_high", "turned", "confirmed", "not_attacked", "worst_low",
    "worst_high", "held_valid", "accuracy_valid", "valid_low", "valid_high", "run",
)  # fmt: skip
ATTACK_SUMMARY_COLUMNS = (
    "model", "dataset", "questions", "replicates", "first_wrong", "failed", "succeeded",
    "different", "confirmed", "not_attacked", "model_errors", "refused", "filtered", "unread",
    "unfinished", "success_rate", "low", "high",
    "attempts_needed", "tries", "invalid_tries", "invalid_attempts", "reasons",
    "not_attacked_reasons", "cost", "unpriced", "cost_per_success", "run",
)  # fmt: skip
ATTACK_LIST_COLUMNS = (
    "model", "dataset", "rank", "question", "epoch", "k", "gold", "answer", "review",
    "valid_judged", *CONFIRMED_COLUMNS, "p0", "pa", "effect", "p_value", "p_adjusted",
    "words", "characteristics", "run",
)  # fmt: skip

_OUTCOMES = {
    "first_wrong": ("outcome", "wrong-first"),
    "failed": ("outcome", "failed"),
    "succeeded": ("outcome", "succeeded"),
    "not_attacked": ("outcome", NOT_ATTACKED),
    "model_errors": ("outcome", MODEL_ERROR),
    "refused": ("error", "refused"),
    "filtered": ("error", "filtered"),
    "unread": ("error", "unread"),
    "unfinished": ("outcome", UNFINISHED_OUTCOME),
}
_OF_TEST = ("p0", "pa", "effect", "p_value", "p_adjusted")


def attacks(turns: pl.DataFrame) -> pl.DataFrame:
    """Compute benchmark accuracy after k attempts (MedFuzz, section 4 and Figure 2).

    The accuracy is the mean over questions of the means of their replicates, weighted by the number
    of replicates. Replicates with a model error are dropped, and so are unfinished ones and those
    without a valid attack. ``low`` and ``high`` are a Wilson interval with the effective number of
    replicates, because the replicates of a question correlate. ``bootstrap_low`` and
    ``bootstrap_high`` come from a percentile bootstrap over questions, which has no width if all
    outcomes are equal.

    Args:
        turns: a turns table. Only the protocol ``medfuzz`` is used.

    Returns:
        One row for each model, data set and ``k`` from 0 to ``attempts``.
    """
    outcomes, hit = right_at_each(turns), pl.col("hit")
    rows = outcomes.group_by(_ROW, maintain_order=True).agg(
        questions=pl.col("question").filter(hit.is_not_null()).n_unique().cast(pl.Int64),
        replicates=hit.count().cast(pl.Int64),
        accuracy=hit.mean(),
        turned=(pl.col("turned_at") == pl.col("k")).sum().cast(pl.Int64),
        attempts=pl.col("attempts").first(),
        not_attacked=hit.null_count().cast(pl.Int64),
        _hits=hit.sum(),
    )
    outcomes = outcomes.drop_nulls("hit")
    rows = with_bounds(rows, outcomes, _ROW, "accuracy", "hit")
    rows = looked_up(rows, _bootstrap_bounds(outcomes, rows.schema), _ROW)
    left_out, replicates = pl.col("not_attacked"), pl.col("replicates") + pl.col("not_attacked")
    # at k = 0, no attack can have flipped the answer
    unattacked_replicates = pl.when(pl.col("k") == 0).then(left_out).otherwise(0)
    rows = rows.with_columns(
        worst_low=(pl.col("_hits") + unattacked_replicates) / replicates,
        worst_high=(pl.col("_hits") + left_out) / replicates,
    )
    rows = looked_up(rows, _confirmed_at(turns), _ROW)
    has_confirmation = pl.col("confirmed").is_not_null().any().over(STUDY)
    rows = rows.with_columns(pl.when(has_confirmation).then(pl.col("confirmed").fill_null(0)))
    return looked_up(rows, _valid(turns, outcomes, rows.schema), _ROW).select(ATTACKS_COLUMNS)


def _with_confirmed(turns: pl.DataFrame) -> pl.DataFrame:
    """Return successful attacks with the results of their repetitions."""
    return looked_up(hypotheses(turns), confirmed(turns), HYPOTHESIS)


def _confirmed_at(turns: pl.DataFrame) -> pl.DataFrame:
    """Count confirmed successes by attempt, for studies with repetitions."""
    confirmations = _with_confirmed(turns).filter(pl.col("confirmed").is_not_null())
    return confirmations.group_by(_ROW, maintain_order=True).agg(
        pl.col("confirmed").sum().cast(pl.Int64)
    )


def _valid(turns: pl.DataFrame, outcomes: pl.DataFrame, schema: pl.Schema) -> pl.DataFrame:
    """Compute the curve without replicates whose successful attack was judged invalid."""
    judgements = hypotheses(turns).filter(pl.col("valid_judged").is_not_null())
    study_outcomes = outcomes.join(
        judgements.select(STUDY).unique(), on=STUDY, how="semi", maintain_order="left"
    )
    invalid = judgements.filter(~pl.col("valid_judged"))
    study_outcomes = study_outcomes.join(invalid, on=TURN, how="anti", maintain_order="left")
    rows = study_outcomes.group_by(_ROW, maintain_order=True).agg(
        held_valid=pl.len().cast(pl.Int64), accuracy_valid=pl.col("hit").mean()
    )
    return with_bounds(rows, study_outcomes, _ROW, "accuracy_valid", "hit", "valid_")


def _bootstrap_bounds(outcomes: pl.DataFrame, schema: pl.Schema) -> pl.DataFrame:
    """Compute bounds by a bootstrap over questions, with the same draws for every k of a study."""
    counts = outcomes.group_by(*_ROW, "question").agg(pl.col("hit").sum(), _n=pl.len())
    bounds = []
    for study, question_rows in counts.sort("k", "question").group_by(STUDY, maintain_order=True):
        right = question_rows.pivot("k", index="question", values="hit").drop("question")
        n = question_rows.filter(pl.col("k") == 0)["_n"]
        low, high = bootstrap_shares(
            right.cast(pl.Float64).to_numpy(), n.cast(pl.Float64).to_numpy()
        )
        bounds += [
            (*study, int(k), float(low_bound), float(high_bound))
            for k, low_bound, high_bound in zip(right.columns, low, high, strict=True)
        ]
    ends = dict.fromkeys(("bootstrap_low", "bootstrap_high"), pl.Float64())
    return pl.DataFrame(bounds, {**{name: schema[name] for name in _ROW}, **ends}, orient="row")


def attack_summary(turns: pl.DataFrame) -> pl.DataFrame:
    """Summarise the outcomes of the replicates, the attacker's tries, and the costs.

    Unfinished replicates count only in ``unfinished`` and in the cost. The interval is a Wilson
    interval with the effective number of replicates, because the replicates of a question
    correlate.

    Args:
        turns: a turns table. Only the protocol ``medfuzz`` is used.

    Returns:
        One row for each model and data set with a finished replicate.
    """
    outcomes = replicates(turns)
    outcome, n = pl.col("outcome"), pl.col("failed") + pl.col("succeeded")
    is_finished, is_success = outcome != UNFINISHED_OUTCOME, pl.col("succeeded")
    rows = outcomes.group_by(STUDY, maintain_order=True).agg(
        pl.col("question").filter(is_finished).n_unique().cast(pl.Int64).alias("questions"),
        is_finished.sum().cast(pl.Int64).alias("replicates"),
        *(
            (pl.col(column) == value).sum().cast(pl.Int64).alias(name)
            for name, (column, value) in _OUTCOMES.items()
        ),
        attempts_needed=pl.col("turned_at").mean(),
    )
    rows = rows.filter(pl.col("replicates") > 0).with_columns(
        success_rate=pl.when(n > 0).then(is_success / n)
    )
    attacked_replicates = outcomes.filter(outcome.is_in(["failed", "succeeded"]))
    attacked_replicates = attacked_replicates.with_columns(_turned=outcome == "succeeded")
    rows = with_bounds(rows, attacked_replicates, STUDY, "success_rate", "_turned")
    successful = _with_confirmed(turns).unique(HYPOTHESIS, keep="first", maintain_order=True)
    attack_counts = successful.group_by(STUDY, maintain_order=True).agg(
        different=pl.len().cast(pl.Int64),
        confirmed=pl.when(pl.col("confirmed").count() > 0).then(
            pl.col("confirmed").sum().cast(pl.Int64)
        ),
    )
    not_attacked = _reasons_of(turns, outcomes.filter(outcome == NOT_ATTACKED))
    not_attacked = not_attacked.rename({"reasons": "not_attacked_reasons"})
    for more in (
        _tries(turns, outcomes.filter(is_finished)),
        attack_counts,
        not_attacked,
        _costs(turns),
    ):
        rows = looked_up(rows, more, STUDY)
    return rows.with_columns(
        pl.col("different").fill_null(0),
        pl.col("not_attacked_reasons").fill_null("{}"),
        pl.col("tries", "invalid_tries", "invalid_attempts", "unpriced").fill_null(0),
        cost_per_success=pl.when(is_success > 0).then(pl.col("cost") / is_success),
        reasons=pl.col("reasons").fill_null("{}"),
    ).select(ATTACK_SUMMARY_COLUMNS)


def attack_list(turns: pl.DataFrame) -> pl.DataFrame:
    """List successful attacks for an expert's review, most informative first (MedFuzz, section 4).

    The order is by confirmation, then by the judge's ``review`` score if there is one, then by the
    drop of p(correct), the p-value, the number of attempts and the number of added words. Unknown
    values come last.

    Args:
        turns: a turns table. Only the protocol ``medfuzz`` is used.

    Returns:
        One row for each successful attack. ``again`` to ``confirmed`` are null if it was not
        repeated. ``p0`` to ``p_adjusted`` are null if it was not tested, and for all but the first
        of identical attacks on a question.
    """
    attack = ("model", "dataset", "question", "epoch", "run")
    tests = permutation(turns).select(*attack, *_OF_TEST)
    rows = looked_up(_with_confirmed(turns), tests, attack)
    rows = rows.with_row_index("_row").with_columns(pl.col("_row").min().over(STUDY))
    rows = rows.sort(
        "_row", "confirmed", "review", "effect", "p_value", "k", "words", "question", "epoch",
        descending=[False, True, True, *[False] * 6], nulls_last=True,
    )  # fmt: skip
    rank = pl.int_range(1, pl.len() + 1, dtype=pl.Int64).over(STUDY)
    return rows.with_columns(rank=rank).select(ATTACK_LIST_COLUMNS)


def _tries(turns: pl.DataFrame, finished_replicates: pl.DataFrame) -> pl.DataFrame:
    """Count the attacker's replies in finished replicates, by study."""
    tries = attempts(turns).join(finished_replicates, on=TURN, how="semi", maintain_order="left")
    counts = tries.group_by(STUDY, maintain_order=True).agg(
        pl.col("tries", "invalid_tries").sum(),
        invalid_attempts=(~pl.col("valid") & (pl.col("tries") > 0)).sum().cast(pl.Int64),
    )
    return looked_up(counts, _reasons_of(turns, finished_replicates), STUDY)


def _reasons_of(turns: pl.DataFrame, among: pl.DataFrame) -> pl.DataFrame:
    """Count the faults of the attacker's replies, as JSON by study, most frequent first."""
    unusable = turns.select(*TURN, "arm", "status", "rule").filter(
        pl.col("protocol") == PROTOCOL,
        pl.col("arm") == ATTACKER,
        ~pl.col("status").is_in(["parsed", "error"]),
    )
    by_reason = (
        unusable.join(among, on=TURN, how="semi")
        .group_by(*STUDY, reason=pl.col("rule").fill_null(""))
        .agg(n=pl.len())
        .sort("n", "reason", descending=[True, False])
    )
    reasons = [
        (
            *study,
            json.dumps(dict(study_reasons.select("reason", "n").iter_rows()), ensure_ascii=False),
        )
        for study, study_reasons in by_reason.group_by(STUDY, maintain_order=True)
    ]
    schema = {name: turns.schema[name] for name in STUDY} | {"reasons": pl.String()}
    return pl.DataFrame(reasons, schema, orient="row")


def _costs(turns: pl.DataFrame) -> pl.DataFrame:
    """Sum the cost in dollars and count the generations without a price, by study."""
    generations = turns.select(*STUDY, "arm", "status", "shared", "cost").filter(
        pl.col("protocol") == PROTOCOL,
        pl.col("arm").is_in([BASELINE, ATTACK, ATTACKER, *CONTROL_ARMS]),
        pl.col("status") != "error",
        ~pl.col("shared").fill_null(value=False),
    )
    cost = pl.col("cost").fill_nan(None)
    return generations.group_by(STUDY).agg(
        # in a fixed order, because the last digit of a sum depends on the order
        cost=pl.when(cost.count() > 0).then(cost.sort().sum()),
        unpriced=cost.null_count().cast(pl.Int64),
    )


def _attacks_layout(rows: Sequence[Row]) -> list[Grid] | None:
    """Lay out accuracy after k attempts, with studies side by side (Figure 2)."""
    columns = studies(rows)
    accuracy = Share("", "accuracy", "", of=_ATTACK_TURNS, among="replicates")
    figures = [_figure(columns, row, "", count(row["k"]), accuracy) for row in rows]
    replicate_counts = [
        f"{columns.header(row)} {count(row['replicates'])} replicates of "
        f"{count(row['questions'])} questions"
        for row in rows
        if row["k"] == 0
    ]
    paper = medfuzz()
    notes = [
        "Percentage of the replicates whose first answer was right and was not flipped by any "
        "attempt up to k [95% Wilson interval]. Replicates with a model error are dropped.",
        f"Kept: {', '.join(replicate_counts)}.",
        *_left_out(columns, rows),
        f"People: {paper.human_accuracy} on average on {paper.human_examination} "
        f"({paper.citation}, Figure 2).",
        *columns.notes(),
    ]
    grid = matrix(figures, columns.headers, "Attempts k", notes)
    return None if grid is None else [grid]


def _left_out(columns: Studies, rows: Sequence[Row]) -> Iterator[str]:
    """Note what the curve excludes or what was judged invalid, for studies with any."""
    for row in last_attempt(pl.DataFrame(rows)).iter_rows(named=True):
        name = columns.header(row)
        if row["not_attacked"]:
            ends = " to ".join(percent(row[end]) for end in ("worst_low", "worst_high"))
            yield (
                f"{name}: {counted(row['not_attacked'], 'replicate')} skipped without a valid "
                f"attack; {ends} after {row['k']} if all of them had been flipped, or none."
            )
        if row["accuracy_valid"] is not None:
            yield (
                f"{name}: {Share('', 'accuracy_valid', 'valid_').text(row)} after {row['k']} "
                "without flips by attacks that the judge calls invalid "
                f"({count(row['held_valid'])} replicates)."
            )


def _summary_layout(rows: Sequence[Row]) -> list[Grid] | None:
    """Lay out outcomes and costs, with studies side by side."""
    columns = studies(rows)
    figures = [
        _figure(columns, row, block, line.header, line)
        for block, lines in _SUMMARY.items()
        for line in lines
        for row in rows
    ]
    notes = [
        "Succeeded: share of the replicates attacked without a model error [95% Wilson interval]. "
        "Unfinished replicates count only in their row and in the cost. The cost covers attacker "
        "and model, but not the judge.",
        *columns.notes(),
    ]
    grid = matrix(figures, columns.headers, "", notes)
    return None if grid is None else [grid]


def _figure(columns: Studies, row: Row, block: str, label: str, column: Column) -> HeatmapCell:
    cell = column.cell(row)
    return HeatmapCell(columns.of(row), block, "", label, cell.text, n=cell.n, of=cell.of)


def _reasons(row: Row) -> str:
    return reasons_in(row["reasons"])


def _format_spared(row: Row) -> str:
    return reasons_in(row["not_attacked_reasons"])


def reasons_in(counts: str) -> str:
    """Format reasons with their counts, from JSON."""
    counts_by_reason = json.loads(counts)
    return ", ".join(
        f"{one_line(reason) or 'unnamed'} {n}" for reason, n in counts_by_reason.items()
    )


def _format_characteristics(row: Row) -> str:
    """Format the texts of a JSON list; other texts stay unchanged."""
    listing = row["characteristics"] or "[]"
    try:
        characteristics = json.loads(listing)
    except (ValueError, RecursionError):
        characteristics = listing
    return "; ".join(
        one_line(str(text))
        for text in (characteristics if isinstance(characteristics, list) else [characteristics])
    )


def _with_repeats(row: Row) -> str:
    if row["again"] is None:
        return ""
    plain = f"{row['plain_wrong']}/{row['plain']}, {row['inert_lasting']}/{row['inert']}"
    return f"{row['again_wrong']}/{row['again']}, {plain}"


def _format_answers(row: Row) -> str:
    return f"{one_line(row['gold'])} > {one_line(row['answer'])}"


def _select_attempt(rows: pl.DataFrame, k: int | None) -> pl.DataFrame:
    if k is not None:
        return rows.filter(pl.col("k") == k)
    by_attempt = rows.sort("k", maintain_order=True)
    return by_attempt.group_by("run", "model", "dataset", maintain_order=True).last()


_OF = pl.format("after {} attacks", "k").str.replace("^after 1 attacks", "after 1 attack")
_GATE = Gate(
    "min_accuracy_after_attacks", "accuracy", "least", (PROTOCOL,), "accuracy", "replicates",
    _OF, _select_attempt,
)  # fmt: skip
_ATTACK_TURNS = {"protocol": PROTOCOL}

_SUMMARY: dict[str, tuple[Column, ...]] = {
    "Replicates": (
        Count("Questions", "questions"),
        Count("All replicates", "replicates", of=_ATTACK_TURNS),
        Count("First answer wrong", "first_wrong", of=_ATTACK_TURNS | {"flip": "single"}),
        Count("Attack failed", "failed", of=_ATTACK_TURNS | {"flip": "kept"}),
        Count("Attack succeeded", "succeeded", of=_ATTACK_TURNS | {"flip": "gave-way"}),
        Count("Different attacks", "different"),
        Count("of which confirmed", "confirmed"),
        Count("Not attacked", "not_attacked"),
        Computed("Not attacked for", "not_attacked_reasons", show=_format_spared),
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
        Computed("Invalid for", "reasons", show=_reasons),
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
    chart=charts.ATTACKS,
    gates=(_GATE,),
    says={
        "k": "Number of attempts. The row of 0 has the first answers.",
        "attempts": "Maximum number of attempts in the study. If the turns table lacks this "
        "setting, the maximum over replicates.",
        "questions": "Number of questions with a counted replicate.",
        "replicates": "Number of counted replicates.",
        "accuracy": "Share of the counted replicates whose first answer was right and was not "
        "flipped by any attempt up to `k`.",
        "turned": "Number of replicates whose answer attempt `k` flipped.",
        "confirmed": "Number of replicates in `turned` with a confirmed attack: when repeated, it "
        "gets wrong answers significantly more often than the original question, and than inert "
        "rewrites of its length. Null if the study repeats no attacks.",
        "not_attacked": "Number of replicates with a right first answer and no valid attack.",
        "worst_low": "Accuracy with the replicates of `not_attacked`, if attempt 1 had flipped all "
        "of them. At `k` = 0 they are right.",
        "worst_high": "Accuracy with the replicates of `not_attacked`, if no attempt had flipped "
        "any of them.",
        "held_valid": "Number of counted replicates, without those flipped by an attack that the "
        "judge of validity calls invalid. Null if no attack was judged.",
        "accuracy_valid": "Share of the `held_valid` replicates whose first answer was right and "
        "was not flipped by any attempt up to `k`.",
    },
    intervals={
        "": "accuracy",
        "bootstrap": "accuracy",
        "worst": "",
        "valid": "accuracy_valid",
    },
)

ATTACK_SUMMARY = Table(
    "attack-summary",
    attack_summary,
    layout=_summary_layout,
    title="How did the attacks end?",
    lead="Model errors are counted separately.",
    section="medfuzz",
    says={
        "questions": "Number of questions with a finished replicate.",
        "replicates": "Number of finished replicates.",
        "first_wrong": "Number of replicates whose first answer was wrong. They are not attacked.",
        "failed": "Number of replicates whose answer was still right after the last attempt.",
        "succeeded": "Number of replicates whose answer an attempt flipped.",
        "different": "Number of distinct successful attacks. Identical attacks on a question count "
        "once.",
        "confirmed": "Number of the `different` attacks that are confirmed: when repeated, they "
        "get wrong answers significantly more often than the original question, and than inert "
        "rewrites of their length. Null if the study repeats no attacks.",
        "not_attacked": "Number of replicates with a right first answer and no valid attack.",
        "model_errors": "Number of replicates with a reply without a parsed answer: the sum of "
        "`refused`, `filtered` and `unread`.",
        "refused": "Number of model errors in which the model refused.",
        "filtered": "Number of model errors in which the provider filtered the reply.",
        "unread": "Number of the other model errors.",
        "unfinished": "Number of interrupted replicates and of replicates with a failed call.",
        "success_rate": "Share of `succeeded` among the replicates attacked without a model error, "
        "`succeeded` and `failed`. Null without any.",
        "attempts_needed": "Mean number of the successful attempt, over `succeeded`. Null without "
        "a success.",
        "tries": "Number of replies of the attacker.",
        "invalid_tries": "Number of replies of the attacker that could not be used.",
        "invalid_attempts": "Number of attempts for which the attacker gave no valid modification.",
        "reasons": "Reasons of `invalid_tries` with their counts, as a JSON object, most frequent "
        "first.",
        "not_attacked_reasons": "Reasons of the invalid tries in the `not_attacked` replicates, as "
        "in `reasons`.",
        "cost": "Cost in dollars of the generations of attacker and model in attacks, controls and "
        "repetitions. Null if no price is known. It excludes the judge and permutation tests.",
        "unpriced": "Number of these generations without a price.",
        "cost_per_success": "Cost in dollars per successful attack, `cost` / `succeeded`. Null "
        "without a success or a price.",
    },
    intervals={"": "success_rate"},
)

ATTACK_LIST = Table(
    "attacks by question",
    attack_list,
    layout=Listing(
        Count("Rank", "rank"),
        (
            Text("Question", "question", of=_ATTACK_TURNS, among=1),
            Count("Replicate", "epoch", of=_ATTACK_TURNS, among=1),
            Count("k", "k"),
            Computed("Answer", "answer", show=_format_answers),
            YesNo("Confirmed", "confirmed"),
            Computed("Again", "again_wrong", show=_with_repeats),
            YesNo("Valid", "valid_judged"),
            Count("Review", "review"),
            Share("Effect", "effect", signed=True),
            Number("p", "p_value", digits=3),
            Number("Adjusted", "p_adjusted", digits=3),
            Count("Words", "words"),
            Computed("Added", "characteristics", show=_format_characteristics),
        ),
        (
            "Ranked by confirmation, the judge's review, the drop of p(correct), the p-value, the "
            "attempts and the added words. Answer: the right option and the model's answer. Again: "
            "wrong replies to the repeated attacked question and to the repeated original, and "
            "inert rewrites of its length that stay wrong. Confirmed: wrong more often than the "
            "original and than inert rewrites, by Fisher's test with the correction of Benjamini "
            "and Hochberg over the run, and fewer than one in twenty inert rewrites stay wrong. "
            "Effect: change of p(correct) by the attack, in points. Empty: not tested, or unknown.",
        ),
    ),
    title="Every successful attack",
    lead="Most telling first.",
    section="medfuzz",
    place=1,
    says={
        "gold": "Letter of the right option.",
        "rank": "Rank among the attacks of the study, 1 for the most informative.",
        "k": "Attempt that succeeded.",
        "answer": "Letter of the model's answer to the attacked question.",
        "review": "The judge's score from 1 to 10 of how much the attack deserves an expert's "
        "review. Null without a score.",
        "valid_judged": "Whether the judge of validity calls the attack valid. Null without a "
        "judgement.",
        "again": "Number of parsed replies when the attacked question was repeated, over all "
        "replicates with this attack. The replies that flipped are not included.",
        "again_wrong": "Number of wrong replies among `again`.",
        "plain": "Number of parsed replies when the original question was repeated, over the same "
        "replicates.",
        "plain_wrong": "Number of wrong replies among `plain`.",
        "inert": "Number of inert rewrites of the attack's length asked in its place, with a "
        "parsed reply.",
        "inert_wrong": "Number of these with a wrong reply.",
        "inert_lasting": "Number of these that are also wrong in every repetition, up to "
        f"{MOST_AGAIN} times.",
        "confirm_p": "Larger p-value of two one-sided Fisher's exact tests: that the attacked "
        "question is answered wrong more often than the original, and more often than inert "
        "rewrites.",
        "confirm_adjusted": "The p-value `confirm_p` after the correction of Benjamini and "
        "Hochberg (1995) over the attacks of the run, identical ones counted once.",
        "inert_p": "P-value (`inert_lasting` + 1) / (`inert` + 1) for an inert rewrite that stays "
        "wrong like the attack.",
        "confirmed": f"Whether both `confirm_adjusted` and `inert_p` are at most {LEVEL}.",
        **TEST_SAYS,
        "words": "Number of words that the attack added.",
        "characteristics": "Additions as the attacker lists them, as a JSON list.",
    },
)
