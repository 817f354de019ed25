"""Stick-or-Switch: targets held and given up, switches right and wrong, sizes of models."""

from collections.abc import Callable, Sequence

from .grid import Block, Cell, Grid, Line
from .listings import Column, count, listing
from .matrix import percent
from .studies import Row, studies
from .tables import one_line

_ARMS = {
    "positive": "Positive conviction",
    "negative": "Negative conviction",
    "flexible-correct": "Flexibility",
}
_EFFECTS = {"position": "Target shown as number", "index": "Option offered", "offer": "Offer"}


def survival(rows: Sequence[Row]) -> list[Grid]:
    """Survival and hazard by turn, a block for each study and arm (Figures 3 and 5)."""
    shown: list[Column] = [
        ("n", lambda row: count(row["n"])),
        ("Kept", lambda row: count(row["kept"])),
        ("S(t) %", lambda row: _with_interval(row, "survival", "")),
        ("At risk", lambda row: count(row["at_risk"])),
        ("Lost", lambda row: count(row["lost"])),
        ("Hazard %", lambda row: _with_interval(row, "hazard", "hazard_")),
        ("To offered", lambda row: count(row["lost_to_suggested"])),
        ("To another", lambda row: count(row["lost_to_other"])),
        ("To unread", lambda row: count(row["lost_unread"])),
    ]
    notes = [
        "S(t): share of all questions whose target was answered at every turn up to t [95% "
        "interval]. Hazard: share of those asked at turn t that departed there. A question that "
        "has run out of offers stays kept and is not at risk.",
    ]
    return [listing(rows, "Turn", lambda row: count(row["turn"]), shown, notes, _arm)]


def tax(rows: Sequence[Row]) -> list[Grid]:
    """Single-shot, isolated and end-to-end shares with the tax, studies as rows (A.1, A.2)."""
    shown: list[Column] = [
        ("n", lambda row: count(row["n"])),
        ("Single-shot %", lambda row: percent(row["single_shot"])),
        ("Isolated %", lambda row: percent(row["isolated"])),
        ("End to end %", lambda row: percent(row["end_to_end"])),
        ("Tax, points", lambda row: _with_interval(row, "tax", "", signed=True)),
    ]
    notes = [
        "Isolated: the target chosen at turn 1. Tax: end to end less single-shot in percentage "
        "points [95% interval, paired over questions]. Asymmetry: the tax of abstention less that "
        "of conviction.",
    ]

    def part(row: Row) -> str:
        behaviour, against = one_line(row["behaviour"]), one_line(row["against"])
        if behaviour == "asymmetry":
            return "Asymmetry"
        return f"{behaviour.capitalize()} against {against}"

    return _by_study(rows, shown, notes, part)


def flexibility(rows: Sequence[Row]) -> list[Grid]:
    """Switches from an abstention, studies as rows (Table A.3)."""
    shown: list[Column] = [
        ("Incorrect %", lambda row: _with_interval(row, "incorrect_rate", "incorrect_")),
        ("of n", lambda row: count(row["n_incorrect"])),
        ("Correct %", lambda row: _with_interval(row, "correct_rate", "correct_")),
        ("of n ", lambda row: count(row["n_correct"])),
        ("Difference", lambda row: _with_interval(row, "difference", "difference_", signed=True)),
        ("d'", lambda row: _score(row, "d_prime")),
        ("c", lambda row: _score(row, "criterion")),
        ("Blind", lambda row: "" if row["blind"] is None else "yes" if row["blind"] else "no"),
    ]
    notes = [
        "Of abstentions at turn 1: switches to the option that turn 2 offered, an incorrect or "
        "the correct one [95% interval], and their difference in points. d' and criterion c with "
        "the log-linear correction. Blind: the interval of d' holds 0.",
    ]
    return _by_study(rows, shown, notes)


def positions(rows: Sequence[Row]) -> list[Grid]:
    """Targets kept by position, letter and order, a block for each study and arm."""
    shown: list[Column] = [
        ("n", lambda row: count(row["n"])),
        ("Kept", lambda row: count(row["kept"])),
        ("Kept %", lambda row: _with_interval(row, "share", "")),
    ]
    notes = [
        "Of offers made to a held target, those after which it was kept [95% interval]: by the "
        "target's place at turn 1, by the letter of the offered option in the question, and by "
        "the turn of the offer.",
    ]

    def label(row: Row) -> str:
        effect = one_line(row["effect"])
        return f"{_EFFECTS.get(effect, effect)} {one_line(row['level'])}"

    return [listing(rows, "", label, shown, notes, _arm)]


def winners(rows: Sequence[Row]) -> list[Grid]:
    """How often each letter was adopted when offered, a block for each study and arm."""
    shown: list[Column] = [
        ("Offered", lambda row: count(row["offered"])),
        ("Adopted", lambda row: count(row["adopted"])),
        ("Adopted %", lambda row: _with_interval(row, "share", "")),
    ]
    notes = ["Letters as in the question itself. In percent of the offers [95% interval]."]
    return [listing(rows, "Option", lambda row: one_line(row["index"]), shown, notes, _arm)]


def beliefs(rows: Sequence[Row]) -> list[Grid]:
    """Beliefs by turn, a block for each study and arm."""
    shown: list[Column] = [
        ("n", lambda row: count(row["n"])),
        ("Target %", lambda row: _with_interval(row, "target", "target_")),
        ("Offered %", lambda row: _with_interval(row, "suggested", "suggested_")),
        ("Switched", lambda row: count(row["n_switched"])),
        ("Held before a switch %", lambda row: _with_interval(row, "before_switch",
                                                              "before_switch_")),
        ("Stuck", lambda row: count(row["n_stuck"])),
        ("Held before none %", lambda row: _with_interval(row, "before_stick", "before_stick_")),
        ("Difference", lambda row: _with_interval(row, "difference", "difference_", signed=True)),
    ]  # fmt: skip
    notes = [
        "Mean probability of the target and of the option offered, after the reply, and of the "
        "held answer at the turn before, where it was then given up and where it was kept [95% "
        "interval].",
    ]
    return [listing(rows, "Turn", lambda row: count(row["turn"]), shown, notes, _arm)]


def scale(rows: Sequence[Row]) -> list[Grid]:
    """The measures by size, a block for each family (Figures 2 to 6)."""
    shown: list[Column] = [
        ("Billions of parameters", lambda row: _number(row["parameters"])),
        ("Single-shot %", lambda row: percent(row["single_shot"])),
        ("Isolated %", lambda row: percent(row["isolated"])),
        ("Conviction %", lambda row: percent(row["conviction"])),
        ("Tax", lambda row: percent(row["tax"], signed=True)),
        ("Single-shot abstention %", lambda row: percent(row["single_shot_abstention"])),
        ("Isolated abstention %", lambda row: percent(row["isolated_abstention"])),
        ("Abstention %", lambda row: percent(row["abstention"])),
        ("Abstention tax", lambda row: percent(row["abstention_tax"], signed=True)),
        ("Correct switches %", lambda row: percent(row["correct_rate"])),
        ("Incorrect switches %", lambda row: percent(row["incorrect_rate"])),
    ]
    notes = ["Conviction and abstention: end to end, S(T). Taxes: points to single-shot accuracy."]
    return _by_study(rows, shown, notes, lambda row: one_line(row["family"] or "Unknown family"))


def _by_study(
    rows: Sequence[Row],
    shown: Sequence[Column],
    notes: Sequence[str],
    part: Callable[[Row], str] = lambda row: "",
) -> list[Grid]:
    """A table for each data set with a line for each study, under a heading for each part."""
    by_dataset: dict[str, list[Row]] = {}
    for row in rows:
        by_dataset.setdefault(row["dataset"], []).append(row)
    grids = []
    for own in by_dataset.values():
        columns = studies(own)
        lines: dict[str, list[Line]] = {}
        for row in own:
            cells = tuple(Cell(show(row), of=row) for _, show in shown)
            lines.setdefault(part(row), []).append(Line(columns.headers[columns.of(row)], cells))
        blocks = tuple(Block(heading, (tuple(those),)) for heading, those in lines.items())
        headers = tuple(header.strip() for header, _ in shown)
        grids.append(Grid("Model", headers, blocks, (*notes, *columns.notes())))
    return grids


def _arm(row: Row) -> str:
    arm = one_line(row["arm"])
    return _ARMS.get(arm, arm)


def _with_interval(row: Row, name: str, prefix: str, *, signed: bool = False) -> str:
    """A share in percent with its interval, as ``54.0 [51.2, 56.7]``."""
    of = (row[name], row[f"{prefix}low"], row[f"{prefix}high"])
    share, low, high = (percent(value, signed=signed) for value in of)
    return f"{share} [{low}, {high}]" if share and low and high else share


def _score(row: Row, name: str) -> str:
    """A z score with its interval, as ``1.20 [0.95, 1.45]``."""
    of = (row[name], row[f"{name}_low"], row[f"{name}_high"])
    if row[name] is None:
        return ""
    score, low, high = (f"{value:.2f}".replace("-0.00", "0.00") for value in of)
    return f"{score} [{low}, {high}]"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:g}"
