"""Convictions of Stick-or-Switch: how long a target is retained, and the conversation tax."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import polars as pl

from holdfast.results.arms import TurnsOf
from holdfast.results.charts.chart import is_published
from holdfast.results.declaration import (
    ByStudy,
    Column,
    Count,
    Gate,
    LinkFilters,
    Listing,
    Section,
    Share,
    Table,
)
from holdfast.results.first_answers import STUDY, TURN, answering
from holdfast.results.grid import Grid, Row, one_line
from holdfast.results.inference import with_bounds, with_pair_bounds

from . import charts

PROTOCOL = "stick-or-switch"

CONVICTIONS = ("positive", "negative")
"""Arms whose target is the right answer, or an abstention."""

FLEXIBLE = "flexible-correct"
"""Arm in which the right answer is offered after an abstention."""

SURVIVAL_COLUMNS = (
    "model", "dataset", "arm", "turn", "n", "kept", "survival", "low", "high", "at_risk", "lost",
    "hazard", "hazard_low", "hazard_high", "lost_to_suggested", "lost_to_other", "lost_unread",
    "run",
)  # fmt: skip

TAX_COLUMNS = (
    "model", "dataset", "behaviour", "against", "n", "single_shot", "isolated",
    "end_to_end", "tax", "low", "high", "raw_tax", "run",
)  # fmt: skip

IS_KEPT = (pl.col("answer") == pl.col("target")).fill_null(value=False)
IS_TAKEN = (pl.col("answer") == pl.col("suggested")).fill_null(value=False)

_PAIR = pl.col("shown").str.split(",")
PLACE = (
    pl.when(_PAIR.list.first() == pl.col("target")).then(pl.lit("1"))
    .when(_PAIR.list.last() == pl.col("target")).then(pl.lit("2"))
)  # fmt: skip
"""Position of the target in the first pair, null if a turn does not record what it showed."""

_OFFER = (
    pl.format("offer {}", pl.col("turn") + 1),
    pl.format("letter {}", "suggested"),
    pl.when(pl.col("turn") == 0).then(pl.format("target shown as {}", PLACE)),
)
_BECAME = {
    "": pl.lit(value=True),
    ", kept": IS_KEPT,
    ", lost": ~IS_KEPT,
    ", taken": IS_TAKEN,
    ", another": ~IS_KEPT & ~IS_TAKEN & pl.col("answer").is_not_null(),
    ", unread": pl.col("answer").is_null(),
}
_IS_FLEXIBLE = pl.col("arm") == FLEXIBLE
_SAYS = pl.col("answer").is_not_null()
_HELD_ON = pl.when(_IS_FLEXIBLE).then(_SAYS & ~IS_TAKEN).otherwise(IS_KEPT)
# the arm with the offer of the right answer starts from the abstention's turn
_ROOT = (pl.col("arm") == "negative") & (pl.col("turn") == 0)
_BEFORE = (
    pl.when(_IS_FLEXIBLE).then(pl.col("p_answer").filter(_ROOT).first().over(TURN))
    .otherwise(pl.col("p_answer").shift(1).over(*TURN, "arm", order_by="turn"))
)  # fmt: skip
_BELIEF_PANELS = {
    ", believed": pl.lit(value=True),
    ", believed and left": _BEFORE.is_not_null() & _SAYS & ~_HELD_ON,
    ", believed and held": _BEFORE.is_not_null() & _HELD_ON,
}
OFFER = pl.concat_list(
    *(
        pl.when(became_statuses).then(pl.concat_str(offer, pl.lit(became)))
        for offer in _OFFER
        for became, became_statuses in _BECAME.items()
    ),
    *(
        pl.when(pl.col("p_gold").is_not_null() & became_statuses).then(
            pl.concat_str(_OFFER[0], pl.lit(became))
        )
        for became, became_statuses in _BELIEF_PANELS.items()
    ),
)
"""Offer of a turn and the outcome for its target, by which conversations are selected."""

CONVICTION, ABSTENTION, ASYMMETRY = "conviction", "abstention", "asymmetry"
SINGLE_SHOT, SINGLE_SHOT_ABSTAIN = "single-shot", "single-shot-abstain"
CONTROL = "control"
"""Baseline of a tax with as many turns, which repeat the first two options."""

CONTROLS = {"positive-control": "positive", "negative-control": "negative"}
"""Conviction that shares its first turn with each control, by arm of the control."""

_ROWS = (
    (CONVICTION, CONTROL),
    (CONVICTION, SINGLE_SHOT),
    (ABSTENTION, CONTROL),
    (ABSTENTION, SINGLE_SHOT),
    (ABSTENTION, SINGLE_SHOT_ABSTAIN),
    (ASYMMETRY, SINGLE_SHOT),
)
"""Behaviour, and the baseline that it is compared with."""

_BEHAVIOURS = {"positive": CONVICTION, "negative": ABSTENTION}

_CONVERSATION = (*TURN, "arm")
_AT_TURN = (*STUDY, "arm", "turn")
_TAX_KEYS = (*STUDY, "behaviour", "against")


def conviction_turns(turns: pl.DataFrame, *more_columns: str) -> pl.DataFrame:
    """Return the turns of both convictions up to the first departure, for complete conversations.

    Conversations with a failed turn are skipped, and so are conversations of interrupted runs that
    end with the target retained. The number of a question's offers comes from the options that it
    showed: all at once in its single shot, and one more at each turn.

    Returns:
        Turns in order with ``STUDY``, ``arm``, ``epoch``, ``question``, ``turn`` (0-based),
        ``suggested``, ``target``, ``answer``, ``status`` and ``more_columns``, and with ``kept``
        (the answer is the target), ``lost_at`` (``turn`` of the first departure, null without one)
        and ``longest`` (maximum number of offers of a question in this arm of the study).
    """
    offers = pl.col("shown").str.split(",").list.len().cast(pl.Int64) - 1
    protocol_turns = answering(turns).filter(pl.col("protocol") == PROTOCOL).select(
        *_CONVERSATION, "turn", "suggested", "target", "answer", "status", *more_columns,
        IS_KEPT.alias("kept"),
        # the flexible branch shows the right answer in addition to the others
        offers.filter(pl.col("arm") != FLEXIBLE).max().over(*STUDY, "question").alias("_offers"),
    )  # fmt: skip
    conviction_rows = protocol_turns.filter(pl.col("arm").is_in(CONVICTIONS)).with_columns(
        pl.col("turn").filter(~pl.col("kept")).min().over(_CONVERSATION).alias("lost_at"),
        pl.col("turn").max().over(_CONVERSATION).alias("_last"),
        (pl.col("status") == "error").any().over(_CONVERSATION).alias("_failed"),
    )
    # if no turn records what it showed, the conversation counts as complete
    offers = pl.max_horizontal("_offers", pl.col("_last") + 1)
    is_finished = pl.col("lost_at").is_not_null() | (pl.col("_last") + 1 == offers)
    whole = conviction_rows.filter(~pl.col("_failed"), is_finished).with_columns(
        offers.max().over(*STUDY, "arm").alias("longest")
    )
    is_reached = pl.col("lost_at").is_null() | (pl.col("turn") <= pl.col("lost_at"))
    return whole.filter(is_reached).drop("_offers", "_last", "_failed")


def control_turns(turns: pl.DataFrame) -> pl.DataFrame:
    """Return ``conviction_turns`` of the controls, under the arm whose first turn they share.

    Studies without a control have no rows.
    """
    protocol_turns = turns.filter(pl.col("protocol") == PROTOCOL)
    with_any = (
        protocol_turns.filter(pl.col("arm").is_in(list(CONTROLS))).select(*STUDY, "epoch").unique()
    )
    offers = pl.col("arm").is_in(CONVICTIONS) & (pl.col("turn") > 0)
    instead = protocol_turns.filter(~offers).join(
        with_any, on=[*STUDY, "epoch"], how="semi", maintain_order="left"
    )
    return conviction_turns(instead.with_columns(pl.col("arm").replace(CONTROLS)))


def survival(turns: pl.DataFrame) -> pl.DataFrame:
    """Compute the survival of the target by turn (Stick-or-Switch, section 3.2, equation 1).

    Conversations with a failed turn are skipped, and so are conversations of interrupted runs that
    still retain their target. A question with fewer offers than the longest counts as retained
    after its last offer, so the last row is the end-to-end figure S(T) over all questions.
    Intervals are 95% Wilson intervals.

    Args:
        turns: a turns table. Only the protocol ``stick-or-switch`` is used.

    Returns:
        One row for each model, data set, arm and turn, with ``SURVIVAL_COLUMNS``.
    """
    conviction_rows = conviction_turns(turns)
    starts = conviction_rows.filter(pl.col("turn") == 0).with_columns(
        pl.int_ranges(1, pl.col("longest") + 1).alias("turn")
    )
    starts = starts.explode("turn").with_columns(
        (pl.col("lost_at").is_null() | (pl.col("lost_at") >= pl.col("turn"))).alias("_kept")
    )
    rows = starts.group_by(_AT_TURN, maintain_order=True).agg(
        pl.len().cast(pl.Int64).alias("n"),
        pl.col("_kept").sum().cast(pl.Int64).alias("kept"),
        pl.col("_kept").mean().alias("survival"),
    )
    departures = conviction_rows.with_columns(pl.col("turn") + 1, (~pl.col("kept")).alias("_lost"))
    rows = rows.join(
        _departures(departures), on=_AT_TURN, how="left", validate="1:1", maintain_order="left"
    )
    counts = ("at_risk", "lost", "lost_to_suggested", "lost_to_other", "lost_unread")
    rows = rows.with_columns(pl.col(counts).fill_null(0)).with_columns(
        pl.when(pl.col("at_risk") > 0).then(pl.col("lost") / pl.col("at_risk")).alias("hazard")
    )
    rows = with_bounds(rows, departures, _AT_TURN, "hazard", "_lost")
    rows = rows.rename({"low": "hazard_low", "high": "hazard_high"})
    return with_bounds(rows, starts, _AT_TURN, "survival", "_kept").select(SURVIVAL_COLUMNS)


def _departures(departures: pl.DataFrame) -> pl.DataFrame:
    is_lost, is_read = pl.col("_lost"), pl.col("answer").is_not_null()
    to_suggested = (pl.col("answer") == pl.col("suggested")).fill_null(value=False)
    return departures.group_by(_AT_TURN).agg(
        pl.len().cast(pl.Int64).alias("at_risk"),
        *(
            statuses.sum().cast(pl.Int64).alias(name)
            for name, statuses in (
                ("lost", is_lost),
                ("lost_to_suggested", is_lost & to_suggested),
                ("lost_to_other", is_lost & is_read & ~to_suggested),
                ("lost_unread", is_lost & ~is_read),
            )
        ),
    )


def single_shots(turns: pl.DataFrame) -> pl.DataFrame:
    """Return ``single`` (right with all options at once) for each question with a conviction."""
    return _pairs(turns).filter(behaviour=CONVICTION, against=SINGLE_SHOT)


def tax(turns: pl.DataFrame) -> pl.DataFrame:
    """Compute the conversation tax of conviction and abstention (Stick-or-Switch, 5.2 and 6.2).

    A loss is a negative tax, as in Tables A.1 and A.2. Its interval is paired over questions. With
    ``control`` as the baseline, the tax is net of the turns themselves: S(T) less that of
    conversations that share turn 1 and then repeat its two options, ended by the same rule.

    Without a control, the tax is S(T) less ``isolated``, the share that chose the target at turn 1.
    It is the share of first choices that was given up. The paper's tax, with single shots as the
    baseline, is ``raw_tax``. With it, a model that guesses and then sticks gains, because a guess
    is right once in k options at once, but once in two at turn 1. Conviction is compared with
    single-shot accuracy. Abstention is compared with the same, as in Table A.2, and with
    single-shot abstention (right answer removed, ``None of the Above`` added), which the paper does
    not have. The row ``asymmetry`` is over the questions with single-shot accuracy and both
    behaviours.

    Every figure of a row is over the questions (and epochs) with both sides. A question with none
    of the above among its options has no abstention, so ``asymmetry`` can differ from the
    difference of the rows above it. An unparsed single-shot reply counts as wrong.

    Args:
        turns: a turns table. Only the protocol ``stick-or-switch`` is used.

    Returns:
        Rows with ``TAX_COLUMNS`` for each model and data set with questions that have both sides:
        conviction and abstention with each baseline and their control, and asymmetry.
    """
    pairs = _pairs(turns)
    rows = pairs.group_by(_TAX_KEYS, maintain_order=True).agg(
        pl.len().cast(pl.Int64).alias("n"),
        *(pl.col(name).mean() for name in ("first", "second", "single", "end", "isolated")),
    )
    rows = with_pair_bounds(rows, pairs, _TAX_KEYS, ("low", "high"))
    asymmetric = pl.col("behaviour") == ASYMMETRY
    tax = pl.col("first") - pl.col("second")
    # the pairs of an asymmetry are halves of a difference of differences
    scale = pl.when(asymmetric).then(2).otherwise(1)
    return rows.with_columns(
        pl.col("low") * scale,
        pl.col("high") * scale,
        tax=tax * scale,
        single_shot=pl.when(~asymmetric).then("single"),
        end_to_end=pl.when(~asymmetric).then("end"),
        raw_tax=pl.when(pl.col("against") != CONTROL).then(pl.col("end") - pl.col("single")),
    ).select(TAX_COLUMNS)


def _pairs(turns: pl.DataFrame) -> pl.DataFrame:
    """Pair the outcomes of each question for each row, ``first`` less ``second``.

    ``end`` is whether the target is retained to the end, ``single`` the outcome of the baseline,
    and ``isolated`` the first choice.
    """
    behaviour = pl.col("arm").replace_strict(_BEHAVIOURS, return_dtype=pl.String)
    first_turns = conviction_turns(turns).filter(pl.col("turn") == 0).select(
        *TURN,
        behaviour.alias("behaviour"),
        pl.col("lost_at").is_null().alias("end"),
        pl.col("kept").alias("isolated"),
    )  # fmt: skip
    single = (
        answering(turns)
        .filter(
            pl.col("protocol") == PROTOCOL,
            pl.col("arm").is_in([SINGLE_SHOT, SINGLE_SHOT_ABSTAIN]),
            pl.col("status") != "error",
        )
        .select(*TURN, pl.col("arm").alias("against"), pl.col("correct").alias("single"))
    )
    conviction_pairs = first_turns.join(single, on=TURN, how="inner", maintain_order="left")
    control = control_turns(turns).filter(pl.col("turn") == 0).select(
        *TURN, behaviour.alias("behaviour"), pl.lit(CONTROL).alias("against"),
        pl.col("lost_at").is_null().alias("single"),
    )  # fmt: skip
    net = first_turns.join(control, on=[*TURN, "behaviour"], how="inner", maintain_order="left")
    against = conviction_pairs.filter(pl.col("against") == SINGLE_SHOT)
    convictions = against.filter(pl.col("behaviour") == CONVICTION).select(
        *TURN, _end=pl.col("end"), _isolated=pl.col("isolated")
    )
    asymmetric = against.filter(pl.col("behaviour") == ABSTENTION).join(
        convictions, on=TURN, how="inner"
    )
    itself = ("end", "isolated")
    parts = [
        _add_sides(conviction_pairs, pl.col("isolated")),
        _add_sides(net, pl.col("single")),
        asymmetric.with_columns(
            pl.lit(ASYMMETRY).alias("behaviour"),
            # losses of both behaviours, scaled to 0 to 1: the taxes differ by twice as much
            first=_given_up("end", "isolated"),
            second=_given_up("_end", "_isolated"),
            # the baseline cancels in the difference of the paper's taxes
            single=pl.col("_end"),
            isolated=pl.lit(None, pl.Boolean),
        ),
    ]
    columns = [*TURN, "behaviour", "against", "first", "second", "single", *itself]
    pairs = pl.concat(part.select(columns) for part in parts).with_row_index("_row")
    order = pl.DataFrame(_ROWS, schema=["behaviour", "against"], orient="row").with_row_index("_at")
    pairs = pairs.join(order, on=["behaviour", "against"], how="inner", maintain_order="left")
    return pairs.sort(pl.col("_row").min().over(STUDY), "_at", "_row")


def _add_sides(pairs: pl.DataFrame, second: pl.Expr) -> pl.DataFrame:
    return pairs.with_columns(first=pl.col("end").cast(pl.Float64), second=second.cast(pl.Float64))


def _given_up(end: str, baseline: str) -> pl.Expr:
    return (1 + pl.col(end).cast(pl.Float64) - pl.col(baseline).cast(pl.Float64)) / 2


_ARMS = {
    "positive": "Positive conviction",
    "negative": "Negative conviction",
    "flexible-correct": "Flexibility",
}


def arm_label(row: Row) -> str:
    """Return the label of a row's arm."""
    arm = one_line(row["arm"])
    return _ARMS.get(arm, arm)


def _label_tax(row: Row) -> str:
    behaviour, against = one_line(row["behaviour"]), one_line(row["against"])
    if behaviour == ASYMMETRY:
        return "Asymmetry"
    return f"{behaviour.capitalize()} against {against}"


def _build_last_selector(arm: str) -> Callable[[pl.DataFrame, int | None], pl.DataFrame]:
    def select_last(rows: pl.DataFrame, k: int | None) -> pl.DataFrame:
        arm_rows = rows.filter(pl.col("arm") == arm).sort("turn", maintain_order=True)
        return arm_rows.group_by("run", "model", "dataset", maintain_order=True).last()

    return select_last


def _of_behaviour(
    behaviour: str, against: str = SINGLE_SHOT
) -> Callable[[pl.DataFrame, int | None], pl.DataFrame]:
    is_behaviour = (pl.col("behaviour") == behaviour) & (pl.col("against") == against)
    return lambda rows, k: rows.filter(is_behaviour)


def _sides(behaviour: str, against: str = SINGLE_SHOT) -> Callable[[pl.DataFrame], pl.DataFrame]:
    """Return a function to the outcomes of a study: baseline (``first``) and end (``second``)."""
    is_side = (pl.col("behaviour") == behaviour) & (pl.col("against") == against)
    return lambda turns: (
        _pairs(turns).filter(is_side).rename({"first": "second", "second": "first"})
    )


_OFFERS = pl.format("after {} offers", "turn").str.replace("^after 1 offers", "after 1 offer")
_SINGLE = pl.lit("against its first choices")

_TURNS_OF_PROTOCOL = {"protocol": PROTOCOL}

_ARM_OF = {behaviour: arm for arm, behaviour in _BEHAVIOURS.items()}


def link_at_turn(became: str) -> Callable[[Row], LinkFilters]:
    """Return the link to the conversations asked at a row's turn, by the target's outcome there."""
    return lambda row: {"protocol": PROTOCOL, "offer": f"offer {row['turn']}{became}"}


def _link_end_to_end(row: Row) -> LinkFilters:
    """Return the link to the conversations of the end-to-end figure (two arms for asymmetry)."""
    if row["behaviour"] not in _ARM_OF:
        return {"run": None}
    return {"protocol": PROTOCOL, "arm": _ARM_OF[row["behaviour"]]}


STICK_OR_SWITCH = Section(
    "stick-or-switch",
    "Stick or switch",
    "One option after another",
    "The model sees two options and chooses, then is offered the others one at a time and may "
    "stick or switch. Its target is the right option (conviction), or “none of the above” "
    "while the right option is withheld (abstention).",
    8,
)

_SURVIVAL_SAYS = {
    "arm": "`positive` (the target is the right answer) or `negative` (the target is an "
    "abstention).",
    "turn": "Turn of the conversation, from 1.",
    "n": "Number of conversations that were asked at turn 1, the same at every turn.",
    "kept": "Number of these that answered the target at every turn up to this one.",
    "survival": "S(t), `kept` as a share of `n`.",
    "at_risk": "Number of conversations that were asked at this turn.",
    "lost": "Number of these that departed from the target at this turn.",
    "hazard": "`lost` as a share of `at_risk`. Null where no conversation was asked.",
    "lost_to_suggested": "Number of departures to the option offered at this turn.",
    "lost_to_other": "Number of departures to an option that was in play from before.",
    "lost_unread": "Number of departures to no readable answer, which are not switches.",
}

SURVIVAL = Table(
    "survival",
    survival,
    layout=Listing(
        Count("Turn", "turn"),
        (
            Count("n", "n", of=_TURNS_OF_PROTOCOL),
            Count("Kept", "kept", of=_TURNS_OF_PROTOCOL | {"flip": "kept"}),
            Share("S(t) %", "survival", "", of=_TURNS_OF_PROTOCOL, among="n"),
            Count("At risk", "at_risk", of=link_at_turn("")),
            Count("Lost", "lost", of=link_at_turn(", lost")),
            Share("Hazard %", "hazard", "hazard_"),
            Count("To offered", "lost_to_suggested", of=link_at_turn(", taken")),
            Count("To another", "lost_to_other", of=link_at_turn(", another")),
            Count("To unread", "lost_unread", of=link_at_turn(", unread")),
        ),
        (
            "S(t): share of all questions answered with the target at every turn up to t [95% "
            "interval]. Hazard: share of the conversations asked at turn t that left the target "
            "there. A question without further offers stays kept and is not at risk.",
        ),
        arm_label,
    ),
    title="How long does the target survive?",
    lead="S(t) is the share of all questions answered with the target at every turn up to t. The "
    "hazard is the share of the conversations still at the target that leave it at turn t.",
    section="stick-or-switch",
    chart=charts.SURVIVAL,
    gates=(
        Gate("min_survival", "survival", "least", (PROTOCOL,), "survival", "n", _OFFERS,
             _build_last_selector("positive")),
        Gate("min_abstention", "abstention", "least", (PROTOCOL,), "survival", "n", _OFFERS,
             _build_last_selector("negative")),
    ),
    says=_SURVIVAL_SAYS,
)  # fmt: skip

_TAX_SAYS = {
    "behaviour": "`conviction` (keep the right answer), `abstention` (keep None of the Above while "
    "the right answer is withheld) or `asymmetry` (abstention less conviction).",
    "against": "Baseline of the tax: `single-shot` (accuracy with all options at once), "
    "`single-shot-abstain` (abstention with all wrong options at once) or `control` (target kept "
    "to the end of the control).",
    "n": "Number of questions (and epochs) with everything that the row compares.",
    "single_shot": "Share of successes in the baseline that `against` names. Null for `asymmetry`.",
    "isolated": "Share that chose the target at turn 1, between two options. Null for `asymmetry`.",
    "end_to_end": "S(T), the share that kept the target to the last turn. Null for `asymmetry`.",
    "tax": "`end_to_end` less `isolated`, the share of first choices given up; with `control` as "
    "the baseline, less `single_shot`. For `asymmetry`, the tax of abstention less that of "
    "conviction, both less `isolated`.",
    "raw_tax": "`end_to_end` less `single_shot`, the tax of the paper. It is positive for a model "
    "that guesses and then sticks, because a guess is right more often between two options. For "
    "`asymmetry`, the difference of both. Null with `control` as the baseline.",
}


def with_raw(
    columns: Sequence[Column], raw: Mapping[str, str], rows: Sequence[Row]
) -> list[Column]:
    """Append the paper's taxes to the columns if the rows contain figures of the paper.

    Args:
        columns: columns of a table.
        raw: header of each of the paper's columns, by name.
        rows: rows of the table.
    """
    more = [Share(header, name, signed=True) for name, header in raw.items()]
    return [*columns, *(more if any(map(is_published, rows)) else [])]


def _tax_layout(rows: Sequence[Row]) -> list[Grid] | None:
    columns = with_raw(_TAX_LAYOUT.columns, {"raw_tax": "Paper's tax, points"}, rows)
    return replace(_TAX_LAYOUT, columns=columns)(rows)


_TAX_LAYOUT = ByStudy(
    (
        Count("n", "n", of=_link_end_to_end),
        Share("Baseline %", "single_shot"),
        Share("Isolated %", "isolated", of=_link_end_to_end, among="n"),
        Share("End to end %", "end_to_end", of=_link_end_to_end, among="n"),
        Share("Tax, points", "tax", "", signed=True),
    ),
    (
        "Isolated: the target chosen at turn 1. Tax: end to end less isolated, in percentage "
        "points [95% interval, paired over questions]; with the control (as many turns that repeat "
        "the first two options) as the baseline, less the baseline. Asymmetry: the tax of "
        "abstention less that of conviction.",
    ),
    _label_tax,
)

TAX = Table(
    "tax",
    tax,
    layout=_tax_layout,
    title="What does the conversation cost?",
    lead="End-to-end success less that of the control, which removes the cost of turns alone, and "
    "less the first choices.",
    section="stick-or-switch",
    chart=charts.TAX,
    gates=(
        Gate("max_tax_points", "conversation tax", "most", (PROTOCOL,), "tax", "n", _SINGLE,
             _of_behaviour(CONVICTION), sides=_sides(CONVICTION)),
        Gate("max_abstention_tax_points", "conversation tax of abstention", "most", (PROTOCOL,),
             "tax", "n", _SINGLE, _of_behaviour(ABSTENTION), sides=_sides(ABSTENTION)),
        Gate("max_net_tax_points", "net conversation tax", "most", (PROTOCOL,), "tax", "n",
             pl.lit("against its control"), _of_behaviour(CONVICTION, CONTROL),
             sides=_sides(CONVICTION, CONTROL)),
    ),
    says=_TAX_SAYS,
    intervals={"": "tax"},
)  # fmt: skip


def second_offers(turns: pl.DataFrame) -> pl.DataFrame:
    """Return offers after an abstention, of the right answer or of another distractor.

    Returns:
        The turns that answered these offers, in order and without failed turns, with ``switched``
        (the answer is the offered option).
    """
    protocol_turns = turns.filter(
        pl.col("protocol") == PROTOCOL,
        pl.col("arm").is_in(["negative", FLEXIBLE]),
        pl.col("status") != "error",
    )
    departed_at_first = protocol_turns.filter(
        pl.col("arm") == "negative", pl.col("turn") == 0, ~IS_KEPT
    )
    offers = protocol_turns.filter(pl.col("turn") == 1).join(
        departed_at_first, on=TURN, how="anti", maintain_order="left"
    )
    return offers.with_columns(IS_TAKEN.alias("switched"))


_MEASURES = {"positive": "survival", "negative": "abstention"}
_SWITCHES = {FLEXIBLE: "correct-switches", "negative": "incorrect-switches"}


def _whole(turns: pl.DataFrame) -> pl.DataFrame:
    """Return complete convictions, and all flexible branches, whose completeness is unknown."""
    flexible = turns.filter(pl.col("protocol") == PROTOCOL, pl.col("arm") == FLEXIBLE)
    arms = [conviction_turns(turns), answering(flexible)]
    return pl.concat(arm_turns.select(_CONVERSATION) for arm_turns in arms).unique(
        maintain_order=True
    )


def _outcomes(turns: pl.DataFrame) -> pl.DataFrame:
    """Return targets retained to the last turn, and switches to offers after an abstention."""
    first_turns = conviction_turns(turns).filter(pl.col("turn") == 0)
    return pl.concat(
        rows.select(
            *_CONVERSATION, "turn", hit.alias("hit"), pl.lit("").alias("path"),
            pl.col("arm").replace_strict(names, return_dtype=pl.String).alias("measure"),
        )
        for rows, names, hit in (
            (first_turns, _MEASURES, pl.col("lost_at").is_null()),
            (second_offers(turns), _SWITCHES, pl.col("switched")),
        )
    )  # fmt: skip


TURNS = TurnsOf(
    PROTOCOL,
    title="Stick-or-Switch",
    stops_early=True,
    abstains=True,
    by_arm=(*CONVICTIONS, FLEXIBLE),
    whole=_whole,
    apart=dict.fromkeys(CONTROLS, "controls that show the first options again"),
    continues={FLEXIBLE: "negative", **CONTROLS},
    plain=(SINGLE_SHOT, SINGLE_SHOT_ABSTAIN),
    outcomes=_outcomes,
    held=_MEASURES["positive"],
    flipped=_SWITCHES["negative"],
    updated=_SWITCHES[FLEXIBLE],
    outcome_words="Stick-or-Switch: right after is right answers held to the last offer, flips and "
    "updates are wrong and right options taken after an abstention, first answers are those to all "
    "options at once; calls, tokens, seconds and dollars are of one reply.",
)
