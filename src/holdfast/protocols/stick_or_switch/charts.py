"""Figures of conversations that offer one option after another (Stick-or-Switch)."""

from collections.abc import Sequence
from typing import Any

from holdfast.results.charts.chart import (
    INTERVALS,
    Chart,
    Row,
    counted,
    counts,
    is_published,
    label,
    lacking,
)
from holdfast.results.charts.dots import Dots, Measure, Of, Plane, Series, Word
from holdfast.results.charts.lines import Axis, Lines

_ARMS = {
    "positive": "Positive conviction (target: the right answer)",
    "negative": "Negative conviction (target: none of the above)",
    "flexible-correct": "Flexibility (the right answer offered)",
}


def _arm(row: Row) -> str:
    return _ARMS.get(row["arm"], label(row["arm"]))


def _keep_any(*columns: str) -> Any:
    """Return a function that keeps all rows if any of them has a value in one of these columns."""
    return lambda rows: rows if any(r[c] is not None for r in rows for c in columns) else []


_TURNS = Axis("turn", "Turn t (1: the binary choice)")

SURVIVAL = Chart(
    title="Survival of the target over successive offers",
    notes=(
        counted("n", "questions (and epochs)"),
        "S(t): share of all questions answered with the target at every turn up to t. Hazard: "
        "share of the conversations that reach turn t with the target and leave it there.",
        INTERVALS,
    ),
    empty="no turn has a survival",
    keep=_keep_any("survival"),
    panel=("dataset",),
    columns="{dataset}: {arm}",
    words={"arm": _arm},
    kind=[
        [Lines(x=_TURNS, y=Measure("S(t): target kept so far"), of=[Of("survival")])],
        [Lines(
            x=_TURNS, y=Measure("Hazard: departed", harm=True),
            of=[Of("hazard", "hazard_low", "hazard_high", n="at_risk")], with_lines=False,
            height=110,
        )],
    ],
)  # fmt: skip

_SHARES = {
    "single_shot": "baseline: all at once, or the control",
    "isolated": "isolated, the binary choice of turn 1",
    "end_to_end": "end to end, all turns",
}
_TAX_HEADINGS = {
    ("conviction", "control"): "Conviction, against its control (net)",
    ("abstention", "control"): "Abstention, against its control (net)",
    ("conviction", "single-shot"): "Conviction, against single-shot accuracy",
    ("abstention", "single-shot"): "Abstention, against single-shot accuracy (as in Table A.2)",
    ("abstention", "single-shot-abstain"): "Abstention, against single-shot abstention",
    ("asymmetry", "single-shot"): "Asymmetry: the tax of abstention less that of conviction",
}


def _comparable(rows: Sequence[Row]) -> list[Row]:
    """Return the rows, with the paper's tax in all rows if any row is from the paper."""
    if not any(map(is_published, rows)):
        return list(rows)
    bounds = dict.fromkeys(("low", "high", *_bounds("tax"), *_bounds("abstention_tax")))
    return [
        {**row}
        | {name: None for name in bounds if name in row}
        | {name.removeprefix("raw_"): row[name] for name in row if name.startswith("raw_")}
        for row in rows
    ]


def _meaning(rows: Sequence[Row], all_rows: Sequence[Row]) -> str:
    """Explain the baseline of the tax."""
    if any(map(is_published, rows)):
        return "Tax: end to end less the single shots, as in the paper, without intervals."
    return (
        "Tax: end to end less that of the control, or less the choice at turn 1. A loss is "
        "negative. Whiskers: 95% intervals, paired over questions."
    )


def _bounds(name: str) -> tuple[str, str]:
    measure = name.removesuffix("_rate")
    return f"{measure}_low", f"{measure}_high"


def _describe_tax(row: Row) -> str:
    behaviour, against = row["behaviour"], row["against"]
    return _TAX_HEADINGS.get((behaviour, against), label(f"{behaviour}, against {against}"))


_TAX_POINTS = Measure(
    "Tax, percentage points", format=".0f", times=100, around=("tax", "low", "high"), to=10
)

TAX = Chart(
    title="The conversation tax: targets kept to the end, compared with all options at once",
    notes=(
        counted("n", "questions (and epochs)"),
        _meaning,
    ),
    empty="no model has a tax",
    keep=lambda rows: _keep_any("tax", "end_to_end")(_comparable(rows)),
    panel="{dataset}: {taxed}",
    words={"taxed": _describe_tax},
    kind=[[
        Dots(
            x=Measure("Target chosen"),
            of=[Of(name, "", "", meaning) for name, meaning in _SHARES.items()],
            series=Series(names=tuple(_SHARES.values()), sizes=(220, 90, 30)),
            place=lambda row: str(row["study"]), flat=("single_shot", "end_to_end"), room=(22, 0),
        ),
        Dots(
            x=_TAX_POINTS, of=[Of("tax")], series=None, place=lambda row: str(row["study"]),
            zero=True, room=(22, 0),
        ),
    ]],
)  # fmt: skip

FLEXIBILITY = Chart(
    title="Flexibility: switches from an abstention to a right and to a wrong offer",
    notes=(
        counted("n_correct", "abstentions offered the right answer"),
        counted("n_incorrect", "abstentions offered a wrong one"),
        "Whiskers: 95% intervals. Diagonal: blind switching, which accepts right and wrong offers "
        "equally often. Bottom right: only right offers accepted.",
        lacking("Without one of the rates, not drawn", "correct_rate", "incorrect_rate"),
    ),
    empty="no model has both switch rates",
    across=2,
    kind=Plane(
        x=(
            Measure("Correct switch rate"),
            Of("correct_rate", "correct_low", "correct_high", n="n_correct"),
        ),
        y=(
            Measure("Incorrect switch rate"),
            Of("incorrect_rate", "incorrect_low", "incorrect_high", n="n_incorrect"),
        ),
        words=[Word("blind switching", 0.03, 0.09, angle=315)],
    ),
)

_EFFECTS = {
    "position": "Place of the target at turn 1",
    "index": "Letter of the option offered",
    "offer": "Turn of the offer",
}

POSITIONS = Chart(
    title="Position and order: targets kept by where and when an option is offered",
    notes=(
        counted("n", "offers to a held target"),
        "Whiskers: 95% intervals. If only content decides, the levels of a panel differ only by "
        "chance. Turns also differ because the targets kept longest are those that the model knows "
        "best.",
    ),
    empty="no share in any row",
    panel="{dataset}: {arm}",
    columns=("effect",),
    words={"arm": _arm},
    kind=Lines(
        x=Axis("level", "", "levels"),
        axis_title=lambda row: _EFFECTS.get(row["effect"], label(row["effect"])),
        y=Measure("Target kept at the offer"),
        of=[Of("share")],
        with_lines=False,
        width=0,
        height=170,
    ),
)

WINNERS = Chart(
    title="Which option wins: offers accepted at once, by the option's letter",
    notes=(
        counted("offered", "offers to a held target"),
        "Whiskers: 95% intervals. Letters as in the question itself.",
    ),
    empty="no share in any row",
    panel="{dataset}: {arm}",
    words={"arm": _arm},
    kind=Lines(
        x=Axis("index", _EFFECTS["index"], "levels"),
        y=Measure("Adopted when offered"),
        of=[Of("share", n="offered")],
        with_lines=False,
        width=0,
        height=170,
    ),
)

_BELIEFS = {
    "target": "target",
    "suggested": "option offered",
    "before_switch": "held answer, before a switch",
    "before_stick": "held answer, kept",
}
_COUNTS = {"before_switch": "n_switched", "before_stick": "n_stuck"}
_BELIEF_MEASURES = [
    Of(name, f"{name}_low", f"{name}_high", meaning, _COUNTS.get(name, "n"))
    for name, meaning in _BELIEFS.items()
]
_BELIEF_SERIES = Series("Mean probability of", names=tuple(_BELIEFS.values()))
_SHORT_ARMS = {arm: meaning.partition(" (")[0] for arm, meaning in _ARMS.items()}


def _switches(rows: Sequence[Row], all_rows: Sequence[Row]) -> str:
    return counts([row["n_switched"] for row in rows if row["n_switched"]], "switches")


BELIEFS = Chart(
    title="Beliefs by turn, and confidence before a switch",
    notes=(
        counted("n", "turns with beliefs"),
        _switches,
        "Mean probabilities of survivors only: turns up to the first departure. "
        f"{INTERVALS} Below: the belief in the current answer at the turn before a switch, and "
        "before no switch.",
    ),
    empty="no turn has beliefs",
    remedy="Use a model that returns log-probabilities",
    panel="{dataset}: {study}",
    columns="{arm}",
    words={"arm": lambda row: _SHORT_ARMS.get(row["arm"], label(row["arm"]))},
    kind=[
        [Lines(
            x=Axis("turn", "Turn"), y=Measure("Belief after the reply"), of=_BELIEF_MEASURES[:2],
            series=_BELIEF_SERIES, width=230, height=140,
        )],
        [Lines(
            x=Axis("turn", "Turn"), y=Measure("Belief, turn before"), of=_BELIEF_MEASURES[2:],
            series=_BELIEF_SERIES, with_lines=False, width=230, height=100,
        )],
    ],
)  # fmt: skip

_CONVICTION = {
    "single_shot": "Single-shot accuracy",
    "isolated": "Isolated choice, turn 1",
    "conviction": "Conviction S(T)",
    "tax": "Tax of conviction",
    "correct_rate": "Correct switch rate",
}
_ABSTENTION = {
    "single_shot_abstention": "Single-shot abstention",
    "isolated_abstention": "Isolated abstention, turn 1",
    "abstention": "Abstention S(T)",
    "abstention_tax": "Tax of abstention",
    "incorrect_rate": "Incorrect switch rate",
}
_TAXES = ("tax", "abstention_tax")


_SHARE = Measure("share")
_POINTS = Measure(
    "percentage points",
    format=".0f",
    times=100,
    around=(
        "tax",
        "tax_low",
        "tax_high",
        "abstention_tax",
        "abstention_tax_low",
        "abstention_tax_high",
    ),
    to=10,
)


def _select_sized(rows: Sequence[Row]) -> list[Row]:
    sized_rows = [row for row in _comparable(rows) if row["parameters"] is not None]
    return list(_keep_any(*_CONVICTION, *_ABSTENTION)(sized_rows))


def _sizes(rows: Sequence[Row], all_rows: Sequence[Row]) -> str:
    models = len({row["study"] for row in rows})
    return (
        f"{models} {'model' if models == 1 else 'models'} of known size; a line joins the models "
        "of a family. n and 95% intervals: tables survival, tax and flexibility; drawn for S(T), "
        "taxes and rates."
    )


SCALE = Chart(
    title="Conviction, abstention and flexibility by the size of the model",
    notes=(
        _sizes,
        "S(T): target kept to the last turn.",
        _meaning,
        lacking("Size unknown, not drawn", "parameters"),
    ),
    empty="no model of known size",
    remedy="Give sizes with --models CSV (model,family,parameters)",
    keep=_select_sized,
    spacing=14,
    kind=[
        [
            Lines(
                x=Axis("parameters", "Parameters, bn (log)", "logs"),
                y=_POINTS if name in _TAXES else _SHARE,
                of=[Of(name, *_bounds(name))],
                series=Series("Family", lambda row: label(row["family"]) or "unknown family"),
                title=title,
                width=130,
                height=150,
            )
            for name, title in measures.items()
        ]
        for measures in (_CONVICTION, _ABSTENTION)
    ],
)
