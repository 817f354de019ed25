"""Figures of follow-ups (MedQA-Followup, Figures 3 to 9, Table 3 and appendix C)."""

from collections.abc import Sequence

from holdfast.results import FAMILY_AVERAGE
from holdfast.results.controls import FEWEST

from .dots import Dots, Measure, Of, Series
from .figure import Figure, Row, counted, known, label
from .lines import Axis, Lines
from .shared import ACCURACY_AXIS


def _strata(by: str, plural: str, order: str) -> Figure:
    """A panel for each family: a row for each stratum, a dot for each study."""

    def meaning(rows: Sequence[Row], every: Sequence[Row]) -> str:
        """What a dot is, and relative to what."""
        meanings = {"stratum": f"of the same {by}", "overall": "of the model to all questions"}
        found = [meanings.get(one) for one in dict.fromkeys(row["relative_to"] for row in rows)]
        said = " or, where published, ".join(one for one in found if one)
        return (
            f"{plural} {order}. Whiskers: 95% intervals. "
            f"{f'Relative to the first answers {said}. ' if said else ''}"
        ).rstrip()

    return Figure(
        title=f"Change of the family's average accuracy, by {by}",
        notes=(counted("questions", "questions"), meaning, _few),
        empty=f"no family has an average by {by} over {FEWEST} questions or more",
        remedy="Give the questions labels with run --labels FILE",
        keep=_averages,
        panel="{named}",
        words={"named": _family},
        across=2,
        together=True,
        kind=Dots(
            x=Measure("Relative change", around=("relative_change", *_ENDS)),
            of=[Of("relative_change", *_ENDS)],
            place=lambda row: label(row[by], 60), zero=True, width=300,
        ),
    )  # fmt: skip


_ENDS = ("change_low", "change_high")


def _averages(rows: Sequence[Row]) -> list[Row]:
    own = [row for row in known("relative_change")(rows) if row["arm"] == FAMILY_AVERAGE]
    # what is published says no number
    return [row for row in own if row["questions"] is None or row["questions"] >= FEWEST]


def _few(rows: Sequence[Row], every: Sequence[Row]) -> str:
    changes = [row for row in known("relative_change")(every) if row["arm"] == FAMILY_AVERAGE]
    few = len(changes) - len(rows)
    return f"Not drawn: {few:,} of fewer than {FEWEST} questions." if few else ""


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
        "Whiskers: 95% intervals. Dashed: accuracy of the first answers to the same questions.",
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
        level=lambda row: row["baseline"],
        whiskers=True,
        width=250,
        height=190,
    ),
)
