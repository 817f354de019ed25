"""Designs as people read them: questions at each number of epochs, and what to ask more of."""

from dataclasses import asdict
from typing import Any

from holdfast.errors import counted
from holdfast.render.tables import markdown
from holdfast.results.designs import MOST_QUESTIONS, Designs
from holdfast.results.grid import Cell, Grid, Line, RowBlock, percent


def designs_told(study_designs: Designs) -> dict[str, Any]:
    """The designs as an object for machines; figures are shares."""
    pilot = study_designs.pilot
    return {
        "questions": study_designs.designs[0].questions,
        "kind": study_designs.kind,
        "effect": study_designs.effect,
        "bound": study_designs.bound,
        "correlation": pilot.alike,
        "pilot_questions": pilot.questions,
        "calls_of_one": pilot.calls,
        "designs": [asdict(design) for design in study_designs.designs],
        "verdict_questions": study_designs.sequential,
    }


def designs_text(study_designs: Designs, power: float, limit: int | None) -> str:
    """What to ask, and a table of what else would do.

    Args:
        study_designs: what was counted.
        power: chance that it was counted for.
        limit: questions there are; None where that is not known.
    """
    effect, bound = percent(study_designs.effect), percent(study_designs.bound)
    aim = {
        "difference": f"detect a {'drop' if study_designs.effect > 0 else 'rise'} of "
        f"{percent(abs(study_designs.effect))} points",
        "drop": f"decide a drop of at most {bound} points, if it is {effect}",
        "share": f"decide an accuracy of at least {bound}%, if it is {effect}%",
    }[study_designs.kind]
    single = study_designs.designs[0]
    lines = [f"To {aim} with {power:.0%} power:"]
    enough = [
        design for design in study_designs.designs if limit is None or design.questions <= limit
    ]
    if limit is None or single.questions <= limit:
        advice = f"ask {counted(single.questions, 'question')} once (the fewest calls)"
    elif enough:
        fewest_epochs = enough[0]
        advice = (
            f"ask more questions ({single.questions:,} once are the fewest calls), or of the "
            f"{limit:,} there are {fewest_epochs.questions:,} in {fewest_epochs.epochs} epochs"
        )
    else:
        attempt_text = (
            f" in up to {study_designs.designs[-1].epochs} epochs"
            if len(study_designs.designs) > 1
            else ""
        )
        advice = (
            f"ask more questions: {single.questions:,} once. The {limit:,} "
            f"available{attempt_text} are not enough"
        )
    lines.append(f"{advice}.")
    rows = tuple(
        Line(
            str(design.epochs),
            (
                Cell(f"{design.questions:,}"),
                Cell(f"{design.calls:,}"),
                Cell("" if design.cost is None else f"${design.cost:,.2f}"),
            ),
        )
        for design in study_designs.designs
    )
    notes = [
        "Counted on drawn studies that are tested as the tables, compare and gate test them. "
        f"Calls are those of the compared turns alone, {study_designs.pilot.calls:g} per "
        "question and epoch.",
    ]
    if study_designs.sequential:
        half, nearly = (
            f"{n:,}" if n else f"over {MOST_QUESTIONS:,}" for n in study_designs.sequential
        )
        notes.append(
            f"holdfast run --until, with this rule alone: decided within {half} questions in "
            f"half of the studies, within {nearly} in 90%."
        )
    if study_designs.pilot.alike is None:
        notes.append(
            "Epochs: unknown from a pilot of one epoch. Give --correlation, or a pilot of "
            "several epochs."
        )
    else:
        notes.append(
            f"Correlation between the epochs of a question: {study_designs.pilot.alike:.2f}."
        )
    grid = Grid("Epochs", ("Questions", "Calls", "Cost"), (RowBlock("", (rows,)),), tuple(notes))
    return f"{' '.join(lines)}\n\n{markdown([grid])}"
