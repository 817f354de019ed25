"""Study designs for people: number of questions by number of epochs, with advice."""

from dataclasses import asdict
from typing import Any

from holdfast.errors import counted
from holdfast.render.tables import markdown
from holdfast.results.designs import MOST_QUESTIONS, Designs
from holdfast.results.grid import Cell, Grid, Line, RowBlock, percent


def designs_json(study_designs: Designs) -> dict[str, Any]:
    """Return the designs as a JSON object. Values are shares."""
    pilot = study_designs.pilot
    return {
        "questions": study_designs.designs[0].questions,
        "kind": study_designs.kind,
        "effect": study_designs.effect,
        "bound": study_designs.bound,
        "correlation": pilot.correlation,
        "pilot_questions": pilot.questions,
        "calls_of_one": pilot.calls,
        "designs": [asdict(design) for design in study_designs.designs],
        "verdict_questions": study_designs.sequential,
    }


def designs_text(study_designs: Designs, power: float, limit: int | None) -> str:
    """Return advice on the number of questions, and a table of alternatives.

    Args:
        study_designs: the computed designs.
        power: power of the designs, 0 to 1.
        limit: number of available questions, or None if unknown.
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
            f"ask {single.questions:,} questions once (the fewest calls), or ask "
            f"{fewest_epochs.questions:,} of the {limit:,} available in {fewest_epochs.epochs} "
            "epochs"
        )
    else:
        attempt_text = (
            f" in up to {study_designs.designs[-1].epochs} epochs"
            if len(study_designs.designs) > 1
            else ""
        )
        advice = (
            f"ask {single.questions:,} questions once. The {limit:,} available "
            f"questions{attempt_text} are not enough"
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
        "Computed from simulated studies, tested as in the tables, compare and gate. "
        f"Calls count only the compared turns: {study_designs.pilot.calls:g} per "
        "question and epoch.",
    ]
    if study_designs.sequential:
        half, nearly = (
            f"{n:,}" if n else f"over {MOST_QUESTIONS:,}" for n in study_designs.sequential
        )
        notes.append(
            f"With this rule alone, holdfast run --until decides within {half} questions in "
            f"half of the studies, and within {nearly} in 90%."
        )
    if study_designs.pilot.correlation is None:
        notes.append(
            "A pilot with one epoch does not show the correlation between epochs. Give "
            "--correlation, or a pilot with several epochs."
        )
    else:
        notes.append(
            f"Correlation between the epochs of a question: {study_designs.pilot.correlation:.2f}."
        )
    grid = Grid("Epochs", ("Questions", "Calls", "Cost"), (RowBlock("", (rows,)),), tuple(notes))
    return f"{' '.join(lines)}\n\n{markdown([grid])}"
