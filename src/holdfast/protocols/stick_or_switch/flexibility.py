"""Flexibility in Stick-or-Switch: accepted offers, previous answers, and probabilities."""

import math
from collections.abc import Callable
from statistics import NormalDist
from typing import Literal

import polars as pl

from holdfast.errors import InputError
from holdfast.results.declaration import (
    ByStudy,
    Computed,
    Count,
    Gate,
    LinkFilters,
    Listing,
    Number,
    Share,
    Table,
    Text,
)
from holdfast.results.first_answers import STUDY, TURN, answering, carried_forward
from holdfast.results.grid import Row, one_line
from holdfast.results.inference import (
    looked_up,
    one_by_one,
    with_bounds,
    with_mean_bounds,
    with_pair_bounds,
)
from holdfast.stats.intervals import Counts, detection_bounds, mean_difference_bounds

from . import charts
from .convictions import (
    CONVICTIONS,
    FLEXIBLE,
    IS_TAKEN,
    PLACE,
    PROTOCOL,
    arm_label,
    conviction_turns,
    link_at_turn,
    second_offers,
)

FLEXIBILITY_COLUMNS = (
    "model", "dataset", "n_correct", "correct_switches", "correct_rate", "correct_low",
    "correct_high", "n_incorrect", "incorrect_switches", "incorrect_rate", "incorrect_low",
    "incorrect_high", "difference", "difference_low", "difference_high", "d_prime",
    "d_prime_low", "d_prime_high", "criterion", "criterion_low", "criterion_high", "switching",
    "margin", "run",
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
    "difference", "difference_low", "difference_high", "n_all", "target_all", "target_all_low",
    "target_all_high", "run",
)  # fmt: skip

_PAIR_SIDES = {"correct": "first", "incorrect": "second"}
_DETECTION = (
    "d_prime", "d_prime_low", "d_prime_high", "criterion", "criterion_low", "criterion_high",
)  # fmt: skip
_MEANS = ("target", "suggested", "before_switch", "before_stick")
_BELIEFS = ("p_gold", "p_suggested", "p_answer")
_ARM = (*STUDY, "arm")
_AT_TURN = (*STUDY, "arm", "turn")


BLIND, NOT_BLIND, UNDETERMINED_VERDICT = "blind", "not blind", "undetermined"

MARGIN = 0.5
"""Default d' up to which switches are practically blind."""


def flexibility(turns: pl.DataFrame, margin: float = MARGIN) -> pl.DataFrame:
    """Compute switches from an abstention to right and wrong offers (Stick-or-Switch, section 7).

    A switch is an answer that accepts the offer. An unparsed reply is not a switch. Failed turns
    are skipped. In terms of signal detection, switches to the right answer are hits, and switches
    to a wrong answer are false alarms. Both rates have the log-linear correction, (count + 0.5) /
    (n + 1). Intervals are at 95%: Wilson for the rates, paired over questions for other figures.

    Args:
        turns: a turns table. Only the protocol ``stick-or-switch`` is used.
        margin: d' up to which switches are practically blind, 0 or more.

    Returns:
        One row for each model and data set with abstentions requested. A rate over 0 trials is
        null, and so are figures computed from it.

    Raises:
        InputError: the margin is below 0.
    """
    if not margin >= 0:
        remedy = f"Give a d' of 0 or more, such as {MARGIN}"
        raise InputError(f"'{margin}' is not a margin", field="margin", remedy=remedy)
    protocol_turns = answering(turns).filter(
        pl.col("protocol") == PROTOCOL,
        pl.col("arm").is_in(["negative", FLEXIBLE]),
        pl.col("status") != "error",
    )
    pairs = _pairs(protocol_turns)
    counts = pairs.group_by(STUDY).agg(
        *(pl.col(hit).count().cast(pl.Int64).alias(f"n_{side}")
          for side, hit in _PAIR_SIDES.items()),
        *(pl.col(hit).sum().cast(pl.Int64).alias(f"{side}_switches")
          for side, hit in _PAIR_SIDES.items()),
    )  # fmt: skip
    rows = looked_up(protocol_turns.select(STUDY).unique(maintain_order=True), counts, STUDY)
    rows = rows.with_columns(pl.exclude(STUDY).fill_null(0))
    for side, hit in _PAIR_SIDES.items():
        n, switches = pl.col(f"n_{side}"), pl.col(f"{side}_switches")
        rows = rows.with_columns(pl.when(n > 0).then(switches / n).alias(f"{side}_rate"))
        trials = pairs.drop_nulls(hit)
        rows = with_bounds(rows, trials, STUDY, f"{side}_rate", hit, ends=f"{side}_")
    rows = with_pair_bounds(rows, pairs, STUDY, ("difference_low", "difference_high"))
    rows = with_pair_bounds(rows, pairs, STUDY, _DETECTION, one_by_one(_of_detection))
    rows = with_pair_bounds(
        rows,
        pairs,
        STUDY,
        ("_low", "_high"),
        one_by_one(lambda right, wrong: detection_bounds(right, wrong, 0.9)[0]),
    )
    within = (pl.col("_low") >= -margin) & (pl.col("_high") <= margin)
    apart = (pl.col("d_prime_low") > 0) | (pl.col("d_prime_high") < 0)
    rows = rows.with_columns(
        difference=pl.col("correct_rate") - pl.col("incorrect_rate"),
        switching=pl.when(within).then(pl.lit(BLIND))
        .when(apart).then(pl.lit(NOT_BLIND))
        .when(pl.col("d_prime").is_not_null()).then(pl.lit(UNDETERMINED_VERDICT)),
        margin=pl.lit(float(margin)),
    )  # fmt: skip
    return rows.select(FLEXIBILITY_COLUMNS)


def _pairs(protocol_turns: pl.DataFrame) -> pl.DataFrame:
    """Return whether abstentions gave way to a right (``first``) and a wrong offer (``second``)."""
    has_switched, right = pl.col("switched"), pl.col("arm") == FLEXIBLE
    return (
        second_offers(protocol_turns)
        .group_by(TURN)
        .agg(first=has_switched.filter(right).first(), second=has_switched.filter(~right).first())
    )


def _of_detection(hits: Counts, false_alarms: Counts) -> tuple[float, ...]:
    """Compute values and bounds of ``_DETECTION``."""
    sums = [float(part.sum()) for side in (hits, false_alarms) for part in side]
    bounds = detection_bounds(hits, false_alarms)
    if not (sums[1] and sums[3]):
        return math.nan, *bounds[0], math.nan, *bounds[1]
    return d_prime(*sums), *bounds[0], criterion(*sums), *bounds[1]


def log_linear(successes: float, n: float) -> float:
    """Compute a rate with the log-linear correction, never 0 or 1 (Hautus, 1995)."""
    return (successes + 0.5) / (n + 1)


def d_prime(hits: float, n_hits: float, false_alarms: float, n_false_alarms: float) -> float:
    """Compute sensitivity d' = z(hit rate) - z(false-alarm rate), log-linear; 0 means none."""
    z = NormalDist().inv_cdf
    return z(log_linear(hits, n_hits)) - z(log_linear(false_alarms, n_false_alarms))


def criterion(hits: float, n_hits: float, false_alarms: float, n_false_alarms: float) -> float:
    """Compute criterion c = -(z(hit rate) + z(false-alarm rate)) / 2; negative favours switches."""
    z = NormalDist().inv_cdf
    return -(z(log_linear(hits, n_hits)) + z(log_linear(false_alarms, n_false_alarms))) / 2


def positions(turns: pl.DataFrame) -> pl.DataFrame:
    """Compute targets retained, by display position, letter of the offered option, and offer.

    The two options of turn 1 count as the first offer. ``position`` skips turns that do not record
    what they showed. If only content decides, the shares of an effect's levels differ only by
    chance. Shares by offer also differ because the targets retained longest are those that the
    model knows best. Intervals are 95% Wilson intervals.

    Args:
        turns: a turns table. Only the protocol ``stick-or-switch`` is used.

    Returns:
        One row for each model, data set, arm, effect and level, with levels in order.
    """
    conviction_rows = conviction_turns(turns, "shown").with_row_index("_row")
    levels = {
        "position": pl.when(pl.col("turn") == 0).then(PLACE),
        "index": pl.col("suggested"),
        "offer": (pl.col("turn") + 1).cast(pl.String),
    }
    place_rows = pl.concat(
        conviction_rows.with_columns(effect=pl.lit(effect), _at=pl.lit(number), level=level)
        for number, (effect, level) in enumerate(levels.items())
    ).drop_nulls("level")
    rows = _shares(place_rows, (*_ARM, "_at", "effect", "level"), "kept")
    return rows.rename({"hits": "kept"}).select(POSITIONS_COLUMNS)


def winners(turns: pl.DataFrame) -> pl.DataFrame:
    """Compute how often each distractor's letter was adopted when it was offered.

    The two options of turn 1 count as the first offer. Intervals are 95% Wilson intervals.

    Args:
        turns: a turns table. Only the protocol ``stick-or-switch`` is used.

    Returns:
        One row for each model, data set, arm and offered letter.
    """
    offers = conviction_turns(turns).with_row_index("_row").drop_nulls("suggested")
    offers = offers.with_columns(adopted=IS_TAKEN, level="suggested")
    rows = _shares(offers, (*_ARM, "level"), "adopted")
    names = {"level": "index", "n": "offered", "hits": "adopted"}
    return rows.rename(names).select(WINNERS_COLUMNS)


def _shares(scored_rows: pl.DataFrame, keys: tuple[str, ...], hit: str) -> pl.DataFrame:
    """Compute number and share of hits with bounds; studies and arms in order, levels sorted."""
    rows = scored_rows.group_by(keys).agg(
        pl.col("_row").min(),
        n=pl.len().cast(pl.Int64),
        hits=pl.col(hit).sum().cast(pl.Int64),
        share=pl.col(hit).mean(),
    )
    rows = with_bounds(rows, scored_rows, keys, "share", hit)
    # B before AA, 2 before 10
    by_level = [name for name in ("_at",) if name in keys]
    return rows.sort(
        pl.col("_row").min().over(STUDY), pl.col("_row").min().over(_ARM), *by_level,
        pl.col("level").str.len_chars(), "level",
    )  # fmt: skip


def beliefs(turns: pl.DataFrame) -> pl.DataFrame:
    """Compute probabilities by turn, and confidence before a switch compared with no switch.

    Source: Stick-or-Switch, Limitations. All figures except ``n_all`` and ``target_all`` cover
    survivors only: once a target is given up, its later turns do not count. Departures to an
    unparsed answer count neither as a switch nor as no switch. Turn 1 has no earlier answer.
    Intervals are at 95%, by question.

    In the arm ``flexible-correct``, the abstention is the current answer and the right answer is
    offered. The turns table does not contain the probability of the abstention after the offer.

    Args:
        turns: a turns table. Only the protocol ``stick-or-switch`` is used, and only turns with
            ``p_gold``, which needs log-probabilities.

    Returns:
        One row for each model, data set, arm and turn with probabilities.
    """
    turn_rows = _with_before(turns).drop_nulls("p_gold")
    # in a fixed order, because the last digit of a sum depends on the order
    mean = {name: pl.col(name).sort().mean() for name in _MEANS}
    rows = turn_rows.group_by(_AT_TURN).agg(
        pl.col("_row").min(),
        **mean,
        n=pl.len().cast(pl.Int64),
        n_switched=pl.col("before_switch").count().cast(pl.Int64),
        n_stuck=pl.col("before_stick").count().cast(pl.Int64),
    )
    for name in _MEANS:
        rows = with_mean_bounds(rows, turn_rows, _AT_TURN, name, f"{name}_")
    pairs = turn_rows.rename({"before_switch": "first", "before_stick": "second"})
    names = ("difference_low", "difference_high")
    rows = with_pair_bounds(rows, pairs, _AT_TURN, names, one_by_one(mean_difference_bounds))
    rows = rows.with_columns(difference=pl.col("before_switch") - pl.col("before_stick"))
    turns_with_beliefs = answering(turns).filter(
        pl.col("protocol") == PROTOCOL,
        pl.col("arm").is_in(CONVICTIONS),
        pl.col("status") != "error",
        pl.col("p_gold").is_not_null(),
    )
    carried_rows = carried_forward(turns_with_beliefs, ["arm"], "p_gold", "target_all").drop_nulls(
        "target_all"
    )
    carried_rows = carried_rows.with_columns(pl.col("turn") + 1)
    over_all = carried_rows.group_by(_AT_TURN).agg(
        pl.col("target_all").sort().mean(), n_all=pl.len().cast(pl.Int64)
    )
    over_all = with_mean_bounds(over_all, carried_rows, _AT_TURN, "target_all", "target_all_")
    rows = looked_up(rows, over_all, _AT_TURN)
    rows = rows.sort(pl.col("_row").min().over(STUDY), pl.col("_row").min().over(_ARM), "turn")
    # remove rounding errors of sums, so that equal probabilities stay equal
    return rows.select(BELIEFS_COLUMNS).with_columns(pl.col(pl.Float64).round(12))


def _with_before(turns: pl.DataFrame) -> pl.DataFrame:
    """Return turns with a retained target, and the probabilities to average."""
    conviction_rows = conviction_turns(turns, *_BELIEFS)
    answer, flexible = pl.col("answer"), pl.col("arm") == FLEXIBLE
    is_stick = answer.is_not_null() & (answer != pl.col("suggested"))
    branch = answering(turns).filter(
        pl.col("protocol") == PROTOCOL, flexible, pl.col("status") != "error"
    )
    columns = [*TURN, "arm", "turn", "answer", "status", "suggested", *_BELIEFS, "kept"]
    branches = [conviction_rows.select(columns), branch.with_columns(kept=is_stick).select(columns)]
    # both branches of an abstention continue from the same turn
    root = pl.when(flexible).then(pl.lit("negative")).otherwise("arm")
    offers = pl.concat(branches).with_row_index("_row").with_columns(_root=root)
    is_kept = (answer == pl.col("target")).fill_null(value=False)
    before = conviction_rows.filter(is_kept).select(
        *TURN, pl.col("turn") + 1, _root="arm", _before="p_answer"
    )
    offers = looked_up(offers, before, [*TURN, "_root", "turn"])
    return offers.with_columns(
        pl.col("turn") + 1,
        target=pl.when(~flexible).then("p_gold"),
        suggested="p_suggested",
        before_switch=pl.when(answer.is_not_null() & ~pl.col("kept")).then("_before"),
        before_stick=pl.when("kept").then("_before"),
    )


def _level(row: Row) -> str:
    effect = one_line(row["effect"])
    return f"{_EFFECTS.get(effect, effect)} {one_line(row['level'])}"


def _gate(key: str, measure: str, sense: Literal["least", "most"], side: str) -> Gate:
    condition = pl.lit("after an abstention")
    return Gate(key, measure, sense, (PROTOCOL,), f"{side}_rate", f"n_{side}", condition,
                lambda rows, k: rows, f"{side}_")  # fmt: skip


_AXIS_NAMES = {"position": "target shown as", "index": "letter", "offer": "offer"}


def _link_conversations(became: str) -> Callable[[Row], LinkFilters]:
    """Return a function to the link for a row's conversations, by the outcome for the target."""
    return lambda row: {
        "protocol": PROTOCOL,
        "offer": f"{_AXIS_NAMES[row['effect']]} {row['level']}{became}",
    }


def _link_letters(became: str) -> Callable[[Row], LinkFilters]:
    return lambda row: {"protocol": PROTOCOL, "offer": f"letter {row['index']}{became}"}


_ABSTENTIONS = {"protocol": PROTOCOL, "arm": "negative", "flip": "was-right"}
_FLEXIBLE_TURNS = {"protocol": PROTOCOL, "arm": FLEXIBLE}
"""Filters for abstentions with a wrong and the right offer as next turns."""

_EFFECTS = {"position": "Target shown as number", "index": "Option offered", "offer": "Offer"}

_FLEXIBILITY_SAYS = {
    "n_correct": "Number of abstentions at turn 1 to which turn 2 offered the right answer (arm "
    "`flexible-correct`).",
    "correct_switches": "Number of these that switched to the right answer.",
    "correct_rate": "`correct_switches` as a share of `n_correct`.",
    "n_incorrect": "Number of abstentions at turn 1 to which turn 2 offered another wrong option "
    "(arm `negative`).",
    "incorrect_switches": "Number of these that switched to that wrong option.",
    "incorrect_rate": "`incorrect_switches` as a share of `n_incorrect`.",
    "difference": "`correct_rate` less `incorrect_rate`.",
    "d_prime": "Sensitivity d' = z(hit rate) - z(false-alarm rate), 0 for a model that cannot "
    "distinguish right from wrong offers.",
    "criterion": "Criterion c = -(z(hit rate) + z(false-alarm rate)) / 2, negative for a model "
    "that switches readily.",
    "switching": "`blind` if the 90% interval of `d_prime` is within `margin` of 0 (an equivalence "
    "test at 5%), else `not blind` if its 95% interval excludes 0, else `undetermined`. Null if "
    "`d_prime` is null.",
    "margin": "Largest distance of d' from 0 at which switches still count as blind.",
}

FLEXIBILITY = Table(
    "flexibility",
    flexibility,
    layout=ByStudy(
        (
            Share(
                "Incorrect %", "incorrect_rate", "incorrect_", of=_ABSTENTIONS, among="n_incorrect"
            ),
            Count("of n", "n_incorrect", of=_ABSTENTIONS),
            Share("Correct %", "correct_rate", "correct_", of=_FLEXIBLE_TURNS, among="n_correct"),
            Count("of n", "n_correct", of=_FLEXIBLE_TURNS),
            Share("Difference", "difference", "difference_", signed=True),
            Number("d'", "d_prime", "d_prime_"),
            Number("c", "criterion", "criterion_"),
            Computed("Switching", "switching", show=lambda row: row["switching"] or ""),
        ),
        (
            "Of abstentions at turn 1: switches to the option that turn 2 offered, an incorrect or "
            "the correct one [95% interval], and their difference in points. d' and criterion c "
            "with the log-linear correction. Blind: the 90% interval of d' lies within "
            f"{MARGIN:g} of 0, or within --margin; not blind: its 95% interval excludes 0.",
        ),
    ),
    title="Does it switch for the right reason?",
    lead="After an abstention, the right option is offered to one half and a wrong one to the "
    "other. A model that switches to both equally often switches blindly: d' (how well the model "
    "distinguishes them) is then 0.",
    section="stick-or-switch",
    chart=charts.FLEXIBILITY,
    takes=("margin",),
    gates=(
        _gate("max_incorrect_switch", "switches to a wrong offer", "most", "incorrect"),
        _gate("min_correct_switch", "switches to the right offer", "least", "correct"),
    ),
    says=_FLEXIBILITY_SAYS,
)

_POSITIVE = "`positive` (the target is the right answer)"
_NEGATIVE = "`negative` (the target is an abstention)"
_ARM_SAYS = f"{_POSITIVE} or {_NEGATIVE}."
_INDEX_SAYS = "letter that the offered option has in the question itself"

_POSITIONS_SAYS = {
    "arm": _ARM_SAYS,
    "effect": "Grouping of the offers: `position` (place of the target at turn 1), `index` "
    f"({_INDEX_SAYS}) or `offer` (turn of the offer).",
    "level": "Value of the effect: `1` (target shown first) or `2` for `position`, the letter for "
    "`index`, the turn from 1 for `offer`.",
    "n": "Number of offers made while the target was kept, for `position` those of turn 1.",
    "kept": "Number of these offers after which the target was answered.",
    "share": "`kept` as a share of `n`.",
}

_WINNERS_SAYS = {
    "arm": _ARM_SAYS,
    "index": f"{_INDEX_SAYS.capitalize()}.",
    "offered": "Number of offers of this option while the target was kept.",
    "adopted": "Number of these offers accepted at once.",
    "share": "`adopted` as a share of `offered`.",
}

_BELIEFS_SAYS = {
    "arm": f"{_POSITIVE}, {_NEGATIVE} or `flexible-correct` (the right answer is offered to an "
    "abstention).",
    "turn": "Turn of the conversation, from 1.",
    "n": "Number of turns with beliefs that were asked while the target was kept.",
    "target": "Mean probability of the target after the reply, over these turns. Null in arm "
    "`flexible-correct`.",
    "suggested": "Mean probability of the offered option after the reply, over these turns.",
    "n_switched": "Number of these turns that switched from the current answer, if its belief at "
    "the previous turn is known.",
    "before_switch": "Mean probability of the current answer at the previous turn, over the "
    "`n_switched` turns.",
    "n_stuck": "Number of these turns that kept the current answer, if its belief at the previous "
    "turn is known.",
    "before_stick": "Mean probability of the current answer at the previous turn, over the "
    "`n_stuck` turns.",
    "difference": "`before_switch` less `before_stick`, negative if low confidence predicts a "
    "switch.",
    "n_all": "Number of conversations of the arm with a belief at this or an earlier turn, "
    "whatever they answered. Null in arm `flexible-correct`.",
    "target_all": "Mean probability of the target over the `n_all` conversations. An ended "
    "conversation keeps its last value. Null in arm `flexible-correct`.",
}

POSITIONS = Table(
    "positions",
    positions,
    layout=Listing(
        Computed("", "level", show=_level),
        (
            Count("n", "n", of=_link_conversations("")),
            Count("Kept", "kept", of=_link_conversations(", kept")),
            Share("Kept %", "share", ""),
        ),
        (
            "Offers after which the target was kept, as a share [95% interval]: by the target's "
            "place at turn 1, by the letter of the offered option in the question, and by the turn "
            "of the offer.",
        ),
        arm_label,
    ),
    title="Does the place of an option matter?",
    lead="Targets kept, by position.",
    section="stick-or-switch",
    chart=charts.POSITIONS,
    says=_POSITIONS_SAYS,
)

WINNERS = Table(
    "positions by winner",
    winners,
    layout=Listing(
        Text("Option", "index"),
        (
            Count("Offered", "offered", of=_link_letters("")),
            Count("Adopted", "adopted", of=_link_letters(", taken")),
            Share("Adopted %", "share", ""),
        ),
        ("Letters as in the question itself. In percent of the offers [95% interval].",),
        arm_label,
    ),
    title="Which options win?",
    lead="How often each letter was adopted.",
    section="stick-or-switch",
    chart=charts.WINNERS,
    says=_WINNERS_SAYS,
)

BELIEFS = Table(
    "beliefs",
    beliefs,
    layout=Listing(
        Count("Turn", "turn"),
        (
            Count("n", "n", of=link_at_turn(", believed")),
            Share("Target %", "target", "target_"),
            Share("Of all %", "target_all", "target_all_"),
            Share("Offered %", "suggested", "suggested_"),
            Count("Switched", "n_switched", of=link_at_turn(", believed and left")),
            Share("Held before a switch %", "before_switch", "before_switch_"),
            Count("Stuck", "n_stuck", of=link_at_turn(", believed and held")),
            Share("Held before none %", "before_stick", "before_stick_"),
            Share("Difference", "difference", "difference_", signed=True),
        ),
        (
            "Mean probability of the target and of the offered option after the reply, and of the "
            "current answer at the previous turn, before a switch and before none [95% interval]. "
            "Only survivors count, except for Of all: the target in all conversations, also after "
            "it was given up. An ended conversation keeps its last value.",
        ),
        arm_label,
    ),
    title="What did the model believe?",
    lead="From log-probabilities, by turn.",
    section="stick-or-switch",
    chart=charts.BELIEFS,
    says=_BELIEFS_SAYS,
)
