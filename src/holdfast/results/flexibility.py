"""Offers of Stick-or-Switch: which are taken, after what, and with which belief."""

from statistics import NormalDist
from typing import Any, Literal

import polars as pl

from .convictions import FLEXIBLE, PROTOCOL, arm_label, conviction_turns
from .declaration import ByStudy, Count, Gate, Listing, Number, Share, Shown, Table, Text, YesNo
from .first_answers import STUDY, TURN, answering
from .grid import Row, one_line
from .inference import with_bounds, with_pair_bounds
from .intervals import Counts, detection_bounds, mean_bounds, mean_difference_bounds

FLEXIBILITY_COLUMNS = (
    "model", "dataset", "n_correct", "correct_switches", "correct_rate", "correct_low",
    "correct_high", "n_incorrect", "incorrect_switches", "incorrect_rate", "incorrect_low",
    "incorrect_high", "difference", "difference_low", "difference_high", "d_prime",
    "d_prime_low", "d_prime_high", "criterion", "criterion_low", "criterion_high", "blind", "run",
)  # fmt: skip
POSITIONS_COLUMNS = (
    "model", "dataset", "arm", "effect", "level", "n", "kept", "share", "low", "high", "run",
)  # fmt: skip
WINNERS_COLUMNS = (
    "model", "dataset", "arm", "index", "offered", "adopted", "share", "low", "high", "run",
)  # fmt: skip
BELIEFS_COLUMNS = (
    "model", "dataset", "arm", "turn", "n", "target", "target_low", "target_high", "suggested",
    "suggested_low", "suggested_high", "n_switched", "before_switch", "before_switch_low",
    "before_switch_high", "n_stuck", "before_stick", "before_stick_low", "before_stick_high",
    "difference", "difference_low", "difference_high", "run",
)  # fmt: skip

_SIDES = {"correct": "first", "incorrect": "second"}
_BELIEFS = ("p_gold", "p_suggested", "p_answer")
_ARM = (*STUDY, "arm")
_AT_TURN = (*STUDY, "arm", "turn")


def flexibility(turns: pl.DataFrame) -> pl.DataFrame:
    """Switches from an abstention to a right and to a wrong offer (Stick-or-Switch, section 7).

    Given an abstention at turn 1, ``n_correct`` counts the conversations to which turn 2 offered
    the right answer (arm ``flexible-correct``), ``n_incorrect`` those to which it offered another
    distractor (arm ``negative``). A switch is an answer that takes the offer; an unread
    reply is not. Failed turns are counted on neither side.

    ``d_prime`` and ``criterion`` count switches to the right answer as hits and those to a wrong
    one as false alarms, with the log-linear correction. Intervals are 95%: Wilson for the rates,
    paired over questions for the rest. ``blind``: the interval of d' contains 0, so the
    switches do not tell right from wrong.

    Args:
        turns: a turns table; only protocol ``stick-or-switch`` is read.

    Returns:
        One row for each model and data set with abstentions to ask for, with
        ``FLEXIBILITY_COLUMNS``; a rate over 0 trials, and what is computed from it, is null.
    """
    own = answering(turns).filter(
        pl.col("protocol") == PROTOCOL,
        pl.col("arm").is_in(["negative", FLEXIBLE]),
        pl.col("status") != "error",
    )
    pairs = _pairs(own)
    counts = pairs.group_by(STUDY).agg(
        *(pl.col(of).count().cast(pl.Int64).alias(f"n_{side}") for side, of in _SIDES.items()),
        *(pl.col(of).sum().cast(pl.Int64).alias(f"{side}_switches") for side, of in _SIDES.items()),
    )
    rows = own.select(STUDY).unique(maintain_order=True)
    rows = rows.join(counts, on=STUDY, how="left", validate="1:1", maintain_order="left")
    rows = rows.with_columns(pl.col(counts.columns).exclude(STUDY).fill_null(0)).with_columns(
        pl.when(pl.col(f"n_{side}") > 0)
        .then(pl.col(f"{side}_switches") / pl.col(f"n_{side}"))
        .alias(f"{side}_rate")
        for side in _SIDES
    )
    for side, of in _SIDES.items():
        rows = with_bounds(rows, pairs.drop_nulls(of), STUDY, f"{side}_rate", of)
        rows = rows.rename({"low": f"{side}_low", "high": f"{side}_high"})
    rows = with_pair_bounds(rows, pairs, STUDY, ("difference_low", "difference_high"))
    names = ("d_prime_low", "d_prime_high", "criterion_low", "criterion_high")
    rows = with_pair_bounds(rows, pairs, STUDY, names, _of_detection)
    rows = rows.with_columns(
        (pl.col("correct_rate") - pl.col("incorrect_rate")).alias("difference"),
        *(
            pl.Series(name, [_if_known(row, of) for row in rows.to_dicts()], pl.Float64)
            for name, of in (("d_prime", d_prime), ("criterion", criterion))
        ),
        ((pl.col("d_prime_low") <= 0) & (pl.col("d_prime_high") >= 0)).alias("blind"),
    )
    return rows.select(FLEXIBILITY_COLUMNS)


def _pairs(own: pl.DataFrame) -> pl.DataFrame:
    """Whether each abstention gave way to the right (``first``) and a wrong (``second``) offer."""
    abstained = (pl.col("answer") == pl.col("target")).fill_null(value=False)
    departed = own.filter(pl.col("arm") == "negative", pl.col("turn") == 0, ~abstained)
    switched = (pl.col("answer") == pl.col("suggested")).fill_null(value=False)
    put = own.filter(pl.col("turn") == 1).join(departed, on=TURN, how="anti")
    right = pl.col("arm") == FLEXIBLE
    return put.group_by(TURN).agg(
        switched.filter(right).first().alias("first"),
        switched.filter(~right).first().alias("second"),
    )


def _of_detection(hits: Counts, false_alarms: Counts) -> tuple[float, ...]:
    of_d_prime, of_criterion = detection_bounds(hits, false_alarms)
    return (*of_d_prime, *of_criterion)


def _if_known(row: dict[str, Any], of: Any) -> float | None:
    names = ("correct_switches", "n_correct", "incorrect_switches", "n_incorrect")
    hits, n_hits, false_alarms, n_false_alarms = (row[name] for name in names)
    return of(hits, n_hits, false_alarms, n_false_alarms) if n_hits and n_false_alarms else None


def log_linear(successes: float, n: float) -> float:
    """A rate with the log-linear correction, never 0 or 1 (Hautus, 1995)."""
    return (successes + 0.5) / (n + 1)


def d_prime(hits: float, n_hits: float, false_alarms: float, n_false_alarms: float) -> float:
    """Sensitivity d' = z(hit rate) - z(false-alarm rate), log-linear; 0 for who cannot tell."""
    z = NormalDist().inv_cdf
    return z(log_linear(hits, n_hits)) - z(log_linear(false_alarms, n_false_alarms))


def criterion(hits: float, n_hits: float, false_alarms: float, n_false_alarms: float) -> float:
    """Criterion c = -(z(hit rate) + z(false-alarm rate)) / 2; below 0 for who switches."""
    z = NormalDist().inv_cdf
    return -(z(log_linear(hits, n_hits)) + z(log_linear(false_alarms, n_false_alarms))) / 2


def positions(turns: pl.DataFrame) -> pl.DataFrame:
    """Targets kept, by display position, by the offered option's letter, and by order of offer.

    ``position``: of the conversations at turn 1, by the place of the target in the pair (``1`` is
    shown first); a turn that does not say what it showed is left out. ``index``: of all offers,
    by the letter that the offered option has in the question itself. ``offer``: by the turn of
    the offer, from 1. ``n`` counts offers made while the target was still held, ``kept`` those
    after which it was answered again, and ``share`` is kept / n with its 95% Wilson interval.
    If only content decides, the shares of an effect's levels differ by chance; those by offer
    also because the targets that are held longest are those that the model knows best.

    Args:
        turns: a turns table; only protocol ``stick-or-switch`` is read.

    Returns:
        One row for each model, data set, arm, effect and level, with ``POSITIONS_COLUMNS``,
        levels in their order.
    """
    asked = conviction_turns(turns, "shown").with_row_index("_row")
    pair, first = pl.col("shown").str.split(","), pl.col("turn") == 0
    place = (
        pl.when(pair.list.first() == pl.col("target"))
        .then(pl.lit("1"))
        .when(pair.list.last() == pl.col("target"))
        .then(pl.lit("2"))
    )
    levels = {
        "position": pl.when(first).then(place),
        "index": pl.col("suggested"),
        "offer": (pl.col("turn") + 1).cast(pl.String),
    }
    each = pl.concat(
        asked.with_columns(
            pl.lit(effect).alias("effect"), pl.lit(at).alias("_at"), level.alias("level")
        )
        for at, (effect, level) in enumerate(levels.items())
    ).drop_nulls("level")
    rows = _shares(each, (*_ARM, "_at", "effect", "level"), "kept")
    return rows.rename({"hits": "kept"}).select(POSITIONS_COLUMNS)


def winners(turns: pl.DataFrame) -> pl.DataFrame:
    """Which distractors win: how often each letter was adopted when it was offered.

    ``offered`` counts the offers of the option with that letter in the question (``index``) while
    the target was still held, ``adopted`` the answers that took it at once, ``share`` is
    adopted / offered with its 95% Wilson interval.

    Args:
        turns: a turns table; only protocol ``stick-or-switch`` is read.

    Returns:
        One row for each model, data set, arm and letter offered, with ``WINNERS_COLUMNS``.
    """
    adopted = (pl.col("answer") == pl.col("suggested")).fill_null(value=False)
    each = conviction_turns(turns).with_row_index("_row").drop_nulls("suggested")
    each = each.with_columns(adopted.alias("adopted"), pl.col("suggested").alias("level"))
    rows = _shares(each, (*_ARM, "level"), "adopted")
    names = {"level": "index", "n": "offered", "hits": "adopted"}
    return rows.rename(names).select(WINNERS_COLUMNS)


def _shares(each: pl.DataFrame, keys: tuple[str, ...], hit: str) -> pl.DataFrame:
    """Count and share of hits with bounds; studies and arms as they come, levels sorted."""
    rows = each.group_by(keys).agg(
        pl.len().cast(pl.Int64).alias("n"),
        pl.col(hit).sum().cast(pl.Int64).alias("hits"),
        pl.col(hit).mean().alias("share"),
        pl.col("_row").min(),
    )
    rows = with_bounds(rows, each, keys, "share", hit)
    # B before AA, 2 before 10
    by_level = [name for name in ("_at",) if name in keys]
    return rows.sort(
        pl.col("_row").min().over(STUDY), pl.col("_row").min().over(_ARM), *by_level,
        pl.col("level").str.len_chars(), "level",
    )  # fmt: skip


def beliefs(turns: pl.DataFrame) -> pl.DataFrame:
    """Beliefs by turn, and confidence before a switch against none (Stick-or-Switch, Limitations).

    ``n`` counts the turns with beliefs asked while the target was still held; ``target`` and
    ``suggested`` are the mean probabilities of the target and of the option offered, after the
    reply. ``before_switch`` is the mean probability that the held answer had at the turn before,
    over the ``n_switched`` turns that then left it for another option, ``before_stick`` the same
    over the ``n_stuck`` turns that kept it, and ``difference`` is the first less the second: below
    0 if low confidence predicts a switch. Departures to no readable answer are in neither. At
    turn 1 nothing is held yet. Intervals are 95%, by question.

    In arm ``flexible-correct`` the abstention is held and the right answer offered; the belief
    in the abstention after the offer is not in the turns table, so ``target`` is null there.

    Args:
        turns: a turns table; only protocol ``stick-or-switch`` is read, and of it only turns
            with ``p_gold``, which needs log-probabilities.

    Returns:
        One row for each model, data set, arm and 1-based ``turn`` with beliefs, with
        ``BELIEFS_COLUMNS``.
    """
    each = _with_before(turns).drop_nulls("p_gold")
    rows = each.group_by(_AT_TURN).agg(
        pl.len().cast(pl.Int64).alias("n"),
        *(_mean(name).alias(name) for name in ("target", "suggested", "before_switch",
                                                "before_stick")),
        pl.col("before_switch").count().cast(pl.Int64).alias("n_switched"),
        pl.col("before_stick").count().cast(pl.Int64).alias("n_stuck"),
        pl.col("_row").min(),
    )  # fmt: skip
    for name in ("target", "suggested", "before_switch", "before_stick"):
        one = each.with_columns(pl.col(name).alias("first"), pl.lit(None).alias("second"))
        rows = with_pair_bounds(rows, one, _AT_TURN, (f"{name}_low", f"{name}_high"), _of_first)
    both = each.rename({"before_switch": "first", "before_stick": "second"})
    names = ("difference_low", "difference_high")
    rows = with_pair_bounds(rows, both, _AT_TURN, names, mean_difference_bounds)
    rows = rows.with_columns(
        (pl.col("before_switch") - pl.col("before_stick")).alias("difference")
    ).sort(pl.col("_row").min().over(STUDY), pl.col("_row").min().over(*STUDY, "arm"), "turn")
    # beyond that are the rounding errors of sums: equal beliefs would differ
    return rows.select(BELIEFS_COLUMNS).with_columns(pl.col(pl.Float64).round(12))


def _with_before(turns: pl.DataFrame) -> pl.DataFrame:
    """Turns put to a held target, with the beliefs to be averaged."""
    held = conviction_turns(turns, *_BELIEFS)
    kept = (pl.col("answer") == pl.col("target")).fill_null(value=False)
    flexible = answering(turns).filter(
        pl.col("protocol") == PROTOCOL, pl.col("arm") == FLEXIBLE, pl.col("status") != "error"
    ).select(*TURN, "arm", "turn", "answer", "status", "suggested", *_BELIEFS,
             (pl.col("answer").is_not_null() & (pl.col("answer") != pl.col("suggested")))
             .alias("kept"))  # fmt: skip
    columns = flexible.columns
    put = pl.concat([held.select(columns), flexible]).with_row_index("_row")
    # both branches of an abstention go on from the same turn
    before = held.filter(kept).select(
        *TURN, pl.col("arm").alias("_root"), pl.col("turn") + 1, pl.col("p_answer").alias("_before")
    )
    root = pl.when(pl.col("arm") == FLEXIBLE).then(pl.lit("negative")).otherwise("arm")
    put = put.with_columns(root.alias("_root")).join(
        before, on=[*TURN, "_root", "turn"], how="left", validate="m:1", maintain_order="left"
    )
    read = pl.col("answer").is_not_null()
    return put.with_columns(
        pl.when(pl.col("arm") != FLEXIBLE).then("p_gold").alias("target"),
        pl.col("p_suggested").alias("suggested"),
        pl.when(read & ~pl.col("kept")).then("_before").alias("before_switch"),
        pl.when("kept").then("_before").alias("before_stick"),
        pl.col("turn") + 1,
    )


def _mean(name: str) -> pl.Expr:
    # in a fixed order: the last digit of a sum depends on it
    return pl.col(name).sort().mean()


def _of_first(first: Counts, _: Counts) -> tuple[float, ...]:
    return mean_bounds(first)


def _level(row: Row) -> str:
    effect = one_line(row["effect"])
    return f"{_EFFECTS.get(effect, effect)} {one_line(row['level'])}"


def _gate(key: str, measure: str, sense: Literal["least", "most"], side: str) -> Gate:
    of = pl.lit("after an abstention")
    return Gate(key, measure, sense, PROTOCOL, f"{side}_rate", f"n_{side}", of,
                lambda rows, k: rows, f"{side}_")  # fmt: skip


_ABSTAINED = {"protocol": PROTOCOL, "arm": "negative", "flip": "was-right"}
_FLEXED = {"protocol": PROTOCOL, "arm": FLEXIBLE}
"""Abstentions to which a wrong option was offered next, and the right one."""

_EFFECTS = {"position": "Target shown as number", "index": "Option offered", "offer": "Offer"}

FLEXIBILITY = Table(
    "flexibility",
    flexibility,
    layout=ByStudy(
        (
            Share(
                "Incorrect %", "incorrect_rate", "incorrect_", of=_ABSTAINED, among="n_incorrect"
            ),
            Count("of n", "n_incorrect", of=_ABSTAINED),
            Share("Correct %", "correct_rate", "correct_", of=_FLEXED, among="n_correct"),
            Count("of n", "n_correct", of=_FLEXED),
            Share("Difference", "difference", "difference_", signed=True),
            Number("d'", "d_prime", "d_prime_"),
            Number("c", "criterion", "criterion_"),
            YesNo("Blind", "blind"),
        ),
        (
            "Of abstentions at turn 1: switches to the option that turn 2 offered, an incorrect or "
            "the correct one [95% interval], and their difference in points. d' and criterion c "
            "with the log-linear correction. Blind: the interval of d' contains 0.",
        ),
    ),
    title="Does it switch for the right reason?",
    lead="After an abstention, the right option is offered to one half and a wrong one to "
    "the other. A model that switches to both equally often switches blindly: d' (how well "
    "both are told apart) is then 0.",
    section="stick-or-switch",
    figure="holdfast.report.figures.stick_or_switch:FLEXIBILITY",
    gates=(
        _gate("max_incorrect_switch", "switches to a wrong offer", "most", "incorrect"),
        _gate("min_correct_switch", "switches to the right offer", "least", "correct"),
    ),
)

POSITIONS = Table(
    "positions",
    positions,
    layout=Listing(
        Shown("", "level", show=_level),
        (Count("n", "n"), Count("Kept", "kept"), Share("Kept %", "share", "")),
        (
            "Of offers made to a held target, those after which it was kept [95% interval]: by the "
            "target's place at turn 1, by the letter of the offered option in the question, and by "
            "the turn of the offer.",
        ),
        arm_label,
    ),
    title="Does the place of an option matter?",
    lead="Targets kept, by position.",
    section="stick-or-switch",
    figure="holdfast.report.figures.stick_or_switch:POSITIONS",
)

WINNERS = Table(
    "winners",
    winners,
    layout=Listing(
        Text("Option", "index"),
        (Count("Offered", "offered"), Count("Adopted", "adopted"),
         Share("Adopted %", "share", "")),
        ("Letters as in the question itself. In percent of the offers [95% interval].",),
        arm_label,
    ),
    title="Which options win?",
    lead="How often each letter was adopted.",
    section="stick-or-switch",
    figure="holdfast.report.figures.stick_or_switch:WINNERS",
)  # fmt: skip

BELIEFS = Table(
    "beliefs",
    beliefs,
    layout=Listing(
        Count("Turn", "turn"),
        (
            Count("n", "n"),
            Share("Target %", "target", "target_"),
            Share("Offered %", "suggested", "suggested_"),
            Count("Switched", "n_switched"),
            Share("Held before a switch %", "before_switch", "before_switch_"),
            Count("Stuck", "n_stuck"),
            Share("Held before none %", "before_stick", "before_stick_"),
            Share("Difference", "difference", "difference_", signed=True),
        ),
        (
            "Mean probability of the target and of the option offered, after the reply, and of the "
            "held answer at the turn before, before a switch and before none [95% interval].",
        ),
        arm_label,
    ),
    title="What did the model believe?",
    lead="From log-probabilities, by turn.",
    section="stick-or-switch",
    figure="holdfast.report.figures.stick_or_switch:BELIEFS",
)
