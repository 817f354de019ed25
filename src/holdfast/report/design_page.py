"""Designs as people read them: questions at each number of epochs, and what to ask more of."""

from dataclasses import asdict
from typing import Any

from holdfast.errors import counted
from holdfast.render.tables import markdown
from holdfast.results import Designs
from holdfast.results.designs import MOST
from holdfast.results.grid import Cell, Grid, Line, RowBlock, percent


def designs_told(found: Designs) -> dict[str, Any]:
    """The designs as an object for machines; figures are shares."""
    pilot = found.pilot
    return {
        "questions": found.each[0].questions, "kind": found.kind, "effect": found.effect,
        "bound": found.bound, "correlation": pilot.alike, "pilot_questions": pilot.questions,
        "calls_of_one": pilot.calls, "designs": [asdict(one) for one in found.each],
        "verdict_questions": found.sequential,
    }  # fmt: skip


def designs_text(found: Designs, power: float, most: int | None) -> str:
    """What to ask, and a table of what else would do.

    Args:
        found: what was counted.
        power: chance that it was counted for.
        most: questions there are; None where that is not known.
    """
    effect, bound = percent(found.effect), percent(found.bound)
    aim = {
        "difference": f"find a {'drop' if found.effect > 0 else 'rise'} of "
        f"{percent(abs(found.effect))} points",
        "drop": f"decide a drop of at most {bound} points where it is {effect}",
        "share": f"decide an accuracy of at least {bound}% where it is {effect}%",
    }[found.kind]
    one = found.each[0]
    lines = [f"To {aim} with a chance of {power:.0%}:"]
    enough = [each for each in found.each if most is None or each.questions <= most]
    if most is None or one.questions <= most:
        advice = f"ask {counted(one.questions, 'question')} once, the fewest calls"
    elif enough:
        few = enough[0]
        advice = (
            f"ask more questions ({one.questions:,} once are the fewest calls), or of the "
            f"{most:,} there are {few.questions:,} in {few.epochs} epochs"
        )
    else:
        tried = f" in up to {found.each[-1].epochs} epochs" if len(found.each) > 1 else ""
        advice = f"ask more questions: {one.questions:,} once; the {most:,} there are{tried} do not"
    lines.append(f"{advice}.")
    rows = tuple(
        Line(
            str(each.epochs),
            (
                Cell(f"{each.questions:,}"),
                Cell(f"{each.calls:,}"),
                Cell("" if each.cost is None else f"${each.cost:,.2f}"),
            ),
        )
        for each in found.each
    )
    notes = [
        "Counted on drawn studies, tested as the tables, compare and gate test them. Calls: those "
        f"of what is compared alone, {found.pilot.calls:g} for a question and epoch.",
    ]
    if found.sequential:
        half, nearly = (f"{n:,}" if n else f"over {MOST:,}" for n in found.sequential)
        notes.append(
            f"holdfast run --until, this rule alone: decided within {half} questions in half of "
            f"the studies, {nearly} in nine of ten."
        )
    if found.pilot.alike is None:
        notes.append(
            "Epochs: not known from a pilot of one epoch; give --correlation, or ask a pilot in "
            "several."
        )
    else:
        notes.append(f"Correlation of the epochs of a question: {found.pilot.alike:.2f}.")
    grid = Grid("Epochs", ("Questions", "Calls", "Cost"), (RowBlock("", (rows,)),), tuple(notes))
    return f"{' '.join(lines)}\n\n{markdown([grid])}"
