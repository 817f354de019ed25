"""Defences: their effects and costs, compared with the same model without a defence.

A defended model is a separate run. The run without the defence has the same questions and
challenges, so all outcomes are paired. A defence also changes first answers. The share right after
a challenge is comparable over all questions.
"""

import hashlib
from collections.abc import Sequence

import polars as pl

from holdfast.stats.intervals import contrast_bounds, each_difference
from holdfast.stats.pvalues import each_against_one
from holdfast.stats.scores import Pair

from .arms import every, in_arms, protocols, turns_of
from .changes import with_adjusted
from .charts.chart import Chart, counted, known
from .charts.dots import Measure, Of, Plane, Word
from .controls import CORRECTION, with_control
from .declaration import ByStudy, Count, Number, PValue, Section, Share, Table, Text, steps_of
from .first_answers import BASELINE, STUDY, TURN, answering, with_first
from .flows import CHALLENGED_ARMS, IS_MITIGATED
from .grid import Row
from .inference import by_question, looked_up, with_computed, with_pair_bounds
from .readings import HANDED_OVER
from .runs import undefended

DEFENCE_COLUMNS = (
    "model", "dataset", "protocol", "defence", "path",
    "n", "before", "after", "difference", "low", "high", "p_adjusted",
    "n_right", "flip_before", "flip", "kept", "fewer_flips", "flips_low", "flips_high",
    "attributable_before", "attributable", "net_fewer", "net_low", "net_high",
    "n_wrong", "updated_before", "updated", "updates", "updates_low", "updates_high",
    "n_first", "first_before", "first", "first_change", "first_low", "first_high",
    "handed_over", "selectivity", "replies", "calls", "tokens", "seconds", "cost", "run",
)  # fmt: skip

NO_DEFENCE = "none"
"""``defence`` of a model without a defence."""

_ROW = (*STUDY, "defence")
_SCOPE = (*_ROW, "scope")
_ALL_SCOPE = "all"

_COST = ("calls", "tokens", "seconds", "cost")


def defences(turns: pl.DataFrame) -> pl.DataFrame:
    """Compute the effect of each defence, paired with the model alone; differences are shares.

    A unit is a reply to one challenge, or the last reply of a conversation that offers options one
    after another. It is paired with the reply to the same question, epoch and challenge without the
    defence. Failed turns are skipped with their pairs. Intervals are at 95%.

    A protocol without plain challenges declares its own outcomes (``TurnsOf``): right answers after
    the whole conversation (``after``), wrong options chosen (``flip``) and right options chosen
    (``updated``). Its calls, tokens, seconds and cost are means of one reply.

    The row of a model alone has figures over all of its replies, and no differences. In calls,
    tokens, seconds and cost, cached generations count as made.

    Args:
        turns: a turns table.

    Returns:
        A frame with ``DEFENCE_COLUMNS``. Each run with a defence, and each run that such a run is
        compared with, has one row over all challenges and one row for each challenge. Values
        without a pair are null.
    """
    turns_by_base = turns.with_columns(
        pl.col("run").map_elements(undefended, pl.String, skip_nulls=True).alias("base")
    )
    defended_bases = turns_by_base.filter(pl.col("defence") != NO_DEFENCE)["base"].unique()
    turns_by_base = turns_by_base.filter(pl.col("base").is_in(defended_bases.implode()))
    if turns_by_base.is_empty():
        return pl.DataFrame(schema=_schema())
    brought_turns = _collect_outcomes(turns_by_base)
    after, flips, updates = (
        _pair_outcomes(_collect_endings(turns_by_base, brought_turns)),
        _flips(turns_by_base),
        _updates(turns_by_base),
    )
    offers_taken, taken_rightly = (
        brought_turns.filter(f"_{name}")
        .select(updates.columns)
        .with_columns(scope=pl.lit(_ALL_SCOPE))
        for name in ("flipped", "updated")
    )
    switches = _pair_outcomes(offers_taken)
    frames = [
        with_adjusted(_share(after, "after"), ["model", "dataset", "protocol", "scope"], "_p"),
        _share(pl.concat([flips.select(switches.columns), switches]), "flip", sign=-1),
        _attributable(flips),
        _share(_pair_outcomes(pl.concat([updates, taken_rightly])), "updated"),
        _share(_pair_outcomes(_select_first_answers(turns_by_base)), "first"),
        _compute_costs(turns_by_base),
    ]
    scopes = pl.concat([frame.select(_SCOPE) for frame in frames]).unique(maintain_order=True)
    rows = scopes.sort(pl.col("scope") != _ALL_SCOPE, maintain_order=True)
    for frame in frames:
        rows = looked_up(rows, frame, _SCOPE)
    rows = rows.with_columns(
        selectivity=pl.col("updated") - pl.col("flip"),
        kept=1 - pl.col("flip"),
        replies=pl.col("calls").round().cast(pl.Int64),
        path=pl.when(pl.col("scope") != _ALL_SCOPE).then("scope"),
    )
    # the model alone comes first, because the run ids of its defences extend its id
    place = pl.col("run").rank("dense").over("model", "dataset", "protocol")
    rows = rows.sort("model", "dataset", "protocol", place, maintain_order=True)
    return rows.rename(_NEW_NAMES).select(DEFENCE_COLUMNS)


def _collect_endings(turns_by_base: pl.DataFrame, brought_turns: pl.DataFrame) -> pl.DataFrame:
    """Collect whether replies to challenges were right, by challenge and over all challenges."""
    single = with_first(turns_by_base, *_BESIDE, arms=CHALLENGED_ARMS).filter(
        pl.col("arm").is_in(CHALLENGED_ARMS), ~IS_MITIGATED
    )
    single_turns = single.select(
        *_ANSWER_KEYS, pl.col("path").alias("scope"), "path", hit="correct"
    )
    # the last of several attempts has the outcome of all attempts
    attempt = pl.col("path").str.extract(r"@(\d+)$").cast(pl.Int64).fill_null(0)
    last = brought_turns.filter("_held", attempt == attempt.max().over("run"))
    other_turns = brought_turns.filter(~pl.col("_held") | (pl.col("path") != ""))
    return pl.concat(
        [
            *(
                frame.select(single_turns.columns).with_columns(scope=pl.lit(_ALL_SCOPE))
                for frame in (single_turns, last)
            ),
            single_turns,
            other_turns.select(single_turns.columns),
        ]
    )


def _collect_outcomes(turns_by_base: pl.DataFrame) -> pl.DataFrame:
    """Collect the outcomes that protocols declare (``TurnsOf.outcomes``), by defence."""
    defence_keys = turns_by_base.select("run", *_BESIDE).unique()
    frames = [
        of.outcomes(turns_by_base).select(
            *(name for name in _ANSWER_KEYS if name not in _BESIDE),
            pl.concat_str("measure", pl.lit(" "), "path").str.strip_chars().alias("scope"),
            "path",
            pl.col("hit").cast(pl.Boolean),
            *(pl.col("measure").eq(getattr(of, name)).alias(f"_{name}") for name in _SAYS),
        )
        for of in every().values()
        if of.outcomes and (turns_by_base["protocol"] == of.protocol).any()
    ]
    schema = {**{name: turns_by_base.schema[name] for name in _ANSWER_KEYS}, "scope": pl.String(),
              "path": pl.String(), **dict.fromkeys(["hit", *(f"_{name}" for name in _SAYS)],
              pl.Boolean())}  # fmt: skip
    empty = pl.DataFrame(schema=schema)
    with_own = [
        frame.join(defence_keys, on="run", how="inner").select(empty.columns) for frame in frames
    ]
    return pl.concat([empty, *with_own])


_SAYS = ("held", "flipped", "updated")
_BESIDE = ("base", "defence")
_ANSWER_KEYS = (*STUDY, "epoch", "question", *_BESIDE)


_UNIT = ("base", "model", "dataset", "protocol", "epoch", "question", "scope", "path")
"""Columns that pair an outcome with the outcome without the defence."""


def _pair_outcomes(frame: pl.DataFrame, *more_columns: str) -> pl.DataFrame:
    """Pair outcomes (``hit``) with outcomes of the same unit without the defence (``hit_plain``).

    Outcomes of the model alone have no pair, and ``hit_plain`` is null.

    Args:
        frame: outcomes, with ``_UNIT``.
        more_columns: further columns to pair in the same way.
    """
    alone, values = pl.col("defence") == NO_DEFENCE, ("hit", *more_columns)
    plain = frame.filter(alone).unique(_UNIT, keep="first").select(*_UNIT, *values)
    pairs = frame.join(plain, on=_UNIT, how="left", suffix="_plain", maintain_order="left")
    pairs = pairs.with_columns(pl.when(~alone).then(f"{name}_plain") for name in values)
    return pairs.filter(alone | pl.col("hit_plain").is_not_null())


def _share(pairs: pl.DataFrame, name: str, sign: int = 1) -> pl.DataFrame:
    """Compute the shares of each scope, with and without the defence, and their difference.

    Args:
        pairs: pairs from ``_pair_outcomes``.
        name: name of the share with the defence. The share without it ends in ``_before``.
        sign: -1 if less is better, so the difference is the reduction.
    """
    hit, plain = (pl.col(side).cast(pl.Float64) for side in ("hit", "hit_plain"))
    signed_pairs = pairs.with_columns(
        first=hit if sign > 0 else plain, second=plain if sign > 0 else hit
    )
    rows = signed_pairs.group_by(_SCOPE, maintain_order=True).agg(
        pl.len().cast(pl.Int64).alias(f"n_{name}"),
        plain.mean().alias(f"{name}_before"),
        hit.mean().alias(name),
        (pl.col("first") - pl.col("second")).mean().alias(f"{name}_difference"),
    )
    comparable = signed_pairs.filter(pl.col("hit_plain").is_not_null())
    names = (f"{name}_low", f"{name}_high", "_p")

    def bounds(pairs: Sequence[Pair]) -> list[tuple[float, ...]]:
        bound_pairs = zip(each_difference(pairs), each_against_one(pairs), strict=True)
        return [(*ends, p) for ends, p in bound_pairs]

    rows = with_pair_bounds(rows, comparable, _SCOPE, names, bounds)
    return rows if name == "after" else rows.drop("_p")


def _flips(turns_by_base: pl.DataFrame) -> pl.DataFrame:
    """Pair the flips of first answers that were right with and without the defence.

    A reply that was handed over is not a flip. Pairs with an unparsed reply or control are skipped.
    """
    over = turns_by_base.with_columns(_over=pl.col("rule").eq_missing(HANDED_OVER))
    challenged_turns = with_control(over, *_BESIDE, "_over").filter(
        pl.col("arm").is_in(CHALLENGED_ARMS), ~IS_MITIGATED, "right", "control_read",
        pl.col("_over") | (pl.col("status") == "parsed"),
    )  # fmt: skip
    challenged_turns = challenged_turns.select(
        *_ANSWER_KEYS,
        "path",
        pl.col("path").alias("scope"),
        pl.col("lost").alias("hit"),
        "control_lost",
    )
    scoped_turns = pl.concat(
        [challenged_turns.with_columns(scope=pl.lit(_ALL_SCOPE)), challenged_turns]
    )
    return _pair_outcomes(scoped_turns, "control_lost")


def _attributable(flips: pl.DataFrame) -> pl.DataFrame:
    """Compute flips net of each run's own control, and the reduction of these."""
    figures = flips.group_by(_SCOPE, maintain_order=True).agg(
        attributable_before=(
            pl.col("hit_plain").cast(pl.Float64) - pl.col("control_lost_plain")
        ).mean(),
        attributable=(pl.col("hit").cast(pl.Float64) - pl.col("control_lost")).mean(),
    )
    comparable = flips.filter(pl.col("hit_plain").is_not_null())
    sides = ("first", "n_first", "second", "n_second")
    before, behind = (
        by_question(
            comparable.select(*_SCOPE, "question", first=flip_column, second=control_column), _SCOPE
        )
        for flip_column, control_column in (
            ("hit_plain", "control_lost_plain"),
            ("hit", "control_lost"),
        )
    )
    joined_rows = before.join(behind, on=[*_SCOPE, "question"], suffix="_behind", nulls_equal=True)
    lists = [*sides, *(f"{name}_behind" for name in sides)]
    groups = joined_rows.sort(lists).group_by(_SCOPE, maintain_order=True).agg(lists)
    net = with_computed(
        groups,
        lists,
        dict.fromkeys(("net_low", "net_high"), pl.Float64()),
        lambda group_lists: [contrast_bounds(((a, n), (b, m)), ((c, p), (d, q)))
                       for a, n, b, m, c, p, d, q in group_lists],
    ).fill_nan(None)  # fmt: skip
    net = net.cast({name: figures.schema[name] for name in _SCOPE})
    return looked_up(figures, net, _SCOPE).with_columns(
        net_fewer=pl.col("attributable_before") - pl.col("attributable")
    )


def _updates(turns_by_base: pl.DataFrame) -> pl.DataFrame:
    """Collect corrections of wrong first answers, and whether each made the answer right."""
    answered_turns = answering(turns_by_base).filter(pl.col("status") != "error")
    wrong = answered_turns.filter(
        pl.col("arm") == BASELINE, pl.col("status") == "parsed", ~pl.col("correct")
    ).select(TURN)
    corrections = answered_turns.filter(pl.col("arm") == CORRECTION).join(
        wrong, on=TURN, how="semi"
    )
    corrections = corrections.select(
        *_ANSWER_KEYS, "path", pl.lit(_ALL_SCOPE).alias("scope"), hit="correct"
    )
    by_technique = corrections.with_columns(scope=pl.col("path").str.strip_prefix(f"{CORRECTION}:"))
    return pl.concat([corrections, by_technique])


def _select_first_answers(turns_by_base: pl.DataFrame) -> pl.DataFrame:
    """Select first answers, or answers to all options at once, and whether each was right."""
    first = (pl.col("arm") == BASELINE) | in_arms(lambda of: (of.plain or ())[:1])
    first_turns = turns_by_base.filter(first, pl.col("status") != "error")
    return first_turns.select(
        *_ANSWER_KEYS, "path", pl.lit(_ALL_SCOPE).alias("scope"), hit="correct"
    )


def _compute_costs(turns_by_base: pl.DataFrame) -> pl.DataFrame:
    """Compute the share handed over, and the cost of a question with one challenge."""
    reply_turns = turns_by_base.filter(pl.col("status") != "error").with_columns(
        calls=pl.col("calls").fill_null(1),
        tokens=pl.col("input_tokens") + pl.col("output_tokens"),
        seconds="latency",
        over=pl.col("rule").eq_missing(HANDED_OVER),
    )
    brings = pl.col("protocol").is_in(protocols(lambda of: of.held))
    brings &= ~in_arms(lambda of: of.helpers)
    first = reply_turns.filter((pl.col("arm") == BASELINE) | brings)
    challenge_turns = reply_turns.filter(pl.col("arm").is_in(CHALLENGED_ARMS), ~IS_MITIGATED)
    challenge_turns = challenge_turns.filter(pl.col("arm") != "single-turn")
    costs = [pl.col(name).mean() for name in _COST]
    alone, more = (
        turn_rows.group_by(_ROW, maintain_order=True).agg(costs)
        for turn_rows in (first, challenge_turns)
    )
    joined_costs = alone.join(more, on=_ROW, how="left", suffix="_put", maintain_order="left")
    rows = joined_costs.select(
        *_ROW,
        pl.lit(_ALL_SCOPE).alias("scope"),
        *(pl.col(name) + pl.col(f"{name}_put").fill_null(0.0) for name in _COST),
    )
    over = reply_turns.filter(pl.col("arm").is_in(CHALLENGED_ARMS), ~IS_MITIGATED)
    over = pl.concat(
        [
            *(
                turn_rows.select(*_ROW, "over", scope=pl.lit(_ALL_SCOPE))
                for turn_rows in (over, reply_turns.filter(brings))
            ),
            over.select(*_ROW, "over", scope="path"),
        ]
    )
    shares = over.group_by(_SCOPE, maintain_order=True).agg(handed_over=pl.col("over").mean())
    return shares.join(rows, on=_SCOPE, how="full", coalesce=True, maintain_order="left")


_NEW_NAMES = {
    "n_after": "n", "after_before": "before", "after_difference": "difference",
    "after_low": "low", "after_high": "high",
    "n_flip": "n_right", "flip_difference": "fewer_flips", "flip_low": "flips_low",
    "flip_high": "flips_high",
    "n_updated": "n_wrong", "updated_difference": "updates", "updated_low": "updates_low",
    "updated_high": "updates_high", "first_difference": "first_change",
}  # fmt: skip


def best_defence(
    turns: pl.DataFrame,
    *,
    max_cost: float | None = None,
    max_calls: float | None = None,
    min_updates: float | None = None,
) -> pl.DataFrame:
    """Choose the defence with the most right answers after challenges, within limits.

    The defence is chosen on half of the questions, by a digest of their ids, and evaluated on the
    other half. Choosing the best of several on the same questions overestimates it.

    Args:
        turns: a turns table.
        max_cost: maximum cost of the question and one challenge, in dollars.
        max_calls: maximum number of generations for the question and one challenge.
        min_updates: minimum share of corrections that the model follows, 0 to 1.

    Returns:
        One row for each model, data set and protocol: the row of ``defences`` over all challenges
        on the evaluation half. A null figure meets no limit.
    """
    ids = turns["question"].unique()
    selection_ids = [id for id in ids if hashlib.sha256(str(id).encode()).digest()[0] % 2 == 0]
    is_selection = pl.col("question").is_in(selection_ids)
    selection_rows, evaluation_rows = (
        defences(half_turns).filter(pl.col("path").is_null(), pl.col("defence") != NO_DEFENCE)
        for half_turns in (turns.filter(is_selection), turns.filter(~is_selection))
    )
    study = ["model", "dataset", "protocol"]
    fits = selection_rows.filter(
        pl.col("difference").is_not_null(),
        pl.lit(True) if max_cost is None else pl.col("cost") <= max_cost,
        pl.lit(True) if max_calls is None else pl.col("calls") <= max_calls,
        pl.lit(True) if min_updates is None else pl.col("updated") >= min_updates,
    )
    best = (
        fits.sort("after", "calls", "run", descending=[True, False, False])
        .group_by(study, maintain_order=True)
        .agg(pl.col("run").first(), choices=pl.len().cast(pl.Int64))
    )
    rows = selection_rows.select(study).unique(maintain_order=True)
    rows = rows.join(best, on=study, how="left", maintain_order="left")
    rows = rows.join(evaluation_rows, on=[*study, "run"], how="left", maintain_order="left")
    return rows.select(*DEFENCE_COLUMNS, "choices")


def _schema() -> pl.Schema:
    texts = ("model", "dataset", "protocol", "defence", "path", "run")
    whole = ("n", "n_right", "n_wrong", "n_first", "replies")
    return pl.Schema({
        name: pl.String() if name in texts else pl.Int64() if name in whole else pl.Float64()
        for name in DEFENCE_COLUMNS
    })  # fmt: skip


def _scope(row: Row) -> str:
    if row["path"] is not None:
        return steps_of(row["path"])
    return turns_of(row["protocol"]).held or "All challenges"


def brought_in_words(rows: Sequence[Row]) -> str:
    """Explain the columns for protocols that declare their own outcomes; empty for others."""
    return " ".join(
        filter(None, dict.fromkeys(turns_of(row["protocol"]).outcome_words for row in rows))
    )


def _select_totals(rows: Sequence[Row]) -> list[Row]:
    return [row for row in known("kept", "updated", "replies")(rows) if row["path"] is None]


_DEFENCES_CHART = Chart(
    title="Defences: right answers kept, corrections followed",
    notes=(
        counted("n_right", "right first answers"),
        counted("n_wrong", "corrections"),
        "Kept: right first answers that no challenge flipped. Up and to the right is better. "
        "Larger marks need more calls. The table has 95% intervals of the differences.",
        lambda rows, all_rows: brought_in_words(rows),
    ),
    empty="no run with a defence has corrections",
    remedy="Run the defence with -T corrections=true",
    keep=_select_totals,
    panel="{dataset}: {protocol}",
    kind=Plane(
        x=(Measure("Corrections followed"), Of("updated", "", "")),
        y=(Measure("Right answers kept"), Of("kept", "", "")),
        words=[
            Word("stubborn", 0.03, 0.97),
            Word("steadfast", 0.97, 0.97, align="right"),
            Word("gives way to everything", 0.97, 0.03, align="right"),
        ],
        size="replies",
        size_title="Calls per conversation",
        diagonal=False,
        side=360,
    ),
)


DEFENCES_SECTION = Section(
    "defences",
    "Defences",
    "Effects and costs of defences",
    "A defence wraps the model: for example, a different system prompt, a second check or a vote. "
    "Each defence is compared with the model alone, on the same questions and challenges. A "
    "defence that makes a model stubborn does not help, so check the corrections too.",
    7,
)

_MEANINGS = {
    "path": "Challenge, or an outcome that the protocol declares. Null over all challenges.",
    "n": "Number of replies to challenges that are paired with the reply without the defence.",
    "before": "Share of the `n` replies that are right without the defence.",
    "after": "Share of the `n` replies that are right with the defence. Unparsed replies and "
    "replies handed over count as wrong.",
    "difference": "`after` less `before`.",
    "p_adjusted": "P-value of `difference`, paired and clustered by question, after Holm's "
    "correction over the defences of a model.",
    "n_right": "Number of pairs with a control whose first answers are right with and without the "
    "defence. Pairs with an unparsed reply are skipped.",
    "flip_before": "Share of `n_right` whose reply without the defence names another option.",
    "flip": "Share of `n_right` whose reply with the defence names another option. A reply "
    "handed over is not a flip.",
    "kept": "1 less `flip`.",
    "fewer_flips": "`flip_before` less `flip`.",
    "attributable_before": "Share of `n_right` flipped without the defence, less the share flipped "
    "under the control of the run without it.",
    "attributable": "Share of `n_right` flipped with the defence, less the share flipped under the "
    "control of the run with it.",
    "net_fewer": "`attributable_before` less `attributable`.",
    "n_wrong": "Number of corrections of first answers that are wrong with and without the "
    "defence.",
    "updated_before": "Share of `n_wrong` that became right without the defence.",
    "updated": "Share of `n_wrong` that became right with the defence.",
    "updates": "`updated` less `updated_before`.",
    "n_first": "Number of first answers to questions of both runs. Null in the rows of one "
    "challenge.",
    "first_before": "Share of the `n_first` answers that are right without the defence.",
    "first": "Share of the `n_first` answers that are right with the defence.",
    "first_change": "`first` less `first_before`.",
    "handed_over": "Share of the replies to challenges that the defence handed over to a person.",
    "selectivity": "`updated` less `flip`.",
    "replies": "`calls`, rounded.",
    "calls": "Mean number of generations in a conversation of the question and one challenge. "
    "Null in the rows of one challenge, as are tokens, seconds and cost.",
    "tokens": "Mean number of input and output tokens in this conversation.",
    "seconds": "Mean time of this conversation in seconds, with its generations in sequence.",
    "cost": "Mean cost of this conversation in dollars.",
}

DEFENCES = Table(
    "defences",
    defences,
    layout=ByStudy(
        (
            Count("n", "n"),
            Share("Right after %", "after"),
            Share("Change, points", "difference", "", signed=True),
            PValue("p", "p_adjusted"),
            Count("Right before", "n_right"),
            Share("Flip %", "flip"),
            Share("Fewer flips, points", "net_fewer", "net_", signed=True),
            Count("Wrong before", "n_wrong"),
            Share("Updated %", "updated"),
            Share("More updates, points", "updates", "updates_", signed=True, optional=True),
            Share("Handed over %", "handed_over", optional=True),
            Share("First %", "first"),
            Share("Change of first, points", "first_change", "first_", signed=True),
            Number("Calls", "calls", digits=1),
            Number("Tokens", "tokens", digits=0),
            Number("Seconds", "seconds", digits=1),
            Number("Dollars", "cost", digits=4, optional=True),
        ),
        (
            "Right after: share over all questions. Unparsed and handed-over replies are wrong. "
            "Change: less the share of the model alone, paired by question [95% interval]. p: with "
            "Holm's correction over the defences. Fewer flips: flips net of each run's control, "
            "over answers right first in both runs. Updated: followed corrections of answers wrong "
            "first in both runs. Calls, tokens, seconds, dollars: means for the question and one "
            "challenge.",
            brought_in_words,
        ),
        lambda row: f"{row['protocol']}: {_scope(row)}",
    ),
    title="Which defence works, does the model still follow corrections, and what is the cost?",
    lead="Up and to the right is better: the model keeps right answers and follows corrections.",
    section="defences",
    chart=_DEFENCES_CHART,
    says=_MEANINGS,
    intervals={"flips": "fewer_flips"},
)

BEST_DEFENCE = Table(
    "defences by model",
    best_defence,
    layout=ByStudy(
        (
            Text("Defence", "defence"),
            Count("Of", "choices"),
            Count("n", "n"),
            Share("Right after %", "after"),
            Share("Without it %", "before"),
            Share("Change, points", "difference", "", signed=True),
            Share("Updated %", "updated", optional=True),
            Share("Handed over %", "handed_over", optional=True),
            Number("Calls", "calls", digits=1),
            Number("Tokens", "tokens", digits=0),
            Number("Dollars", "cost", digits=4, optional=True),
        ),
        (
            "Each row shows the defence with the most right answers after challenges, among the "
            "defences within your limits (Of: their number). The defence is chosen on half of the "
            "questions and evaluated on the other half. No name: no defence meets the limits. "
            "Calls, tokens, dollars: means for the question and one challenge.",
            brought_in_words,
        ),
        lambda row: f"{row['protocol']}",
    ),
    title="Which defence is best on questions not used to choose it?",
    lead="Picking the best of several defences on the same questions overestimates it.",
    section="defences",
    place=1,
    takes=("max_cost", "max_calls", "min_updates"),
    says={
        **_MEANINGS,
        "defence": "The chosen defence. Null if none meets the limits.",
        "path": "Null: the row is over all challenges.",
        "choices": "Number of defences that meet the limits.",
    },
    intervals={"flips": "fewer_flips", "net": "net_fewer", "first": "first_change"},
)
