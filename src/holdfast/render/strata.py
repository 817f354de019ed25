"""Figures of follow-ups (MedQA-Followup, Figures 3 to 9, Table 3 and appendix C)."""

from collections.abc import Sequence

from holdfast.results import FAMILY_AVERAGE
from holdfast.results.grid import grouped

from .cells import Heat
from .dots import Of, Series
from .figure import (
    INTERVALS,
    Figure,
    Row,
    counted,
    distinct,
    known,
    label,
)  # fmt: skip
from .lines import Axis, Lines
from .shared import ACCURACY_AXIS


def _strata(by: str, plural: str, order: str) -> Figure:
    """A heat map for each family: strata as lines, studies as columns."""

    def lines(rows: Sequence[Row]) -> list[str]:
        """Each stratum as shown, with n where its studies agree."""
        found: dict[str, str] = {}
        for own in grouped(rows, by):
            numbers = {row["n"] for row in own} - {None}
            n = f" (n = {numbers.pop():,})" if len(numbers) == 1 else ""
            found[own[0][by]] = distinct(f"{label(own[0][by], 72)}{n}", found.values())
        return [found[row[by]] for row in rows]

    def meaning(rows: Sequence[Row], every: Sequence[Row]) -> str:
        """What a cell is, and relative to what."""
        meanings = {"stratum": f"of the same {by}", "overall": "of the model to all questions"}
        found = [meanings.get(one) for one in dict.fromkeys(row["relative_to"] for row in rows)]
        said = " or, where published, ".join(one for one in found if one)
        return (
            f"Cells: relative change in percent; orange is a loss. {plural} {order}. "
            f"{f'Relative to the first answers {said}. ' if said else ''}"
            "No intervals: check n before you read a change."
        )

    return Figure(
        title=f"Change of the family's average accuracy, by {by}",
        notes=(counted("n", "replies"), meaning),
        empty=f"no family has an average by {by}",
        remedy="Give the questions labels with run --labels FILE",
        keep=_averages,
        panel="{named}",
        words={"named": _family},
        across=2,
        together=True,
        published="narrower",
        kind=Heat(
            column=lambda row: str(row["study"]), labels=lines, share="relative_change",
            legend="Relative change", harm="below", cell=(58, 20),
        ),
    )  # fmt: skip


def _averages(rows: Sequence[Row]) -> list[Row]:
    return [row for row in known("relative_change")(rows) if row["arm"] == FAMILY_AVERAGE]


def _family(row: Row) -> str:
    protocol = row["protocol"] if row["protocol"] != "followup" else ""
    parts = (row["family"], row["path"], protocol)
    return label(", ".join(part for part in parts if part), 80)


_WORST_LAST = "from the least to the most degraded on average"
STEPS = _strata("step", "Steps", "in their order")
SYSTEMS = _strata("system", "Systems", _WORST_LAST)
SPECIALTIES = _strata("specialty", "Specialties", _WORST_LAST)
SUBJECTS = _strata("subject", "Subjects", _WORST_LAST)


def _lengthened(rows: Sequence[Row]) -> list[Row]:
    found = known("accuracy")(rows)
    return found if any(row["sentences"] is not None for row in found) else []


LENGTHS = Figure(
    title="Accuracy after a follow-up, by the length of its context",
    notes=(
        counted("n", "questions (and epochs)"),
        f"{INTERVALS} Dashed: accuracy of the first answers to the same questions.",
    ),
    empty="no context of a fixed length has an accuracy",
    keep=_lengthened,
    panel="{study} ({dataset})",
    across=3,
    kind=Lines(
        x=Axis("sentences", "Sentences of the context", "numbers"),
        y=ACCURACY_AXIS,
        of=[Of("accuracy")],
        series=Series("Technique", lambda row: label(row["technique"])),
        first="baseline",
        width=250,
        height=190,
    ),
)
