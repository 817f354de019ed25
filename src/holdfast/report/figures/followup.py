"""Figures of follow-ups (MedQA-Followup, Figures 3 to 9, Table 3 and appendix C)."""

from collections.abc import Sequence

from holdfast.results import FAMILY_AVERAGE

from .cells import Heat
from .dots import Dots, Measure, Of, Plane, Series, Word
from .figure import (
    INTERVALS,
    Figure,
    Row,
    counted,
    distinct,
    grouped,
    known,
    label,
    left,
    path_label,
)  # fmt: skip
from .lines import Axis, Lines
from .shared import ACCURACY_AXIS

_PARTS_ALONE = "Also ask each technique of a chain on its own, as -T techniques=all does"


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

_DROPS = ("drop", "expected_drop")

COMPOUNDING = Figure(
    title="Chains of challenges: observed against expected drop in accuracy",
    notes=(
        counted("n", "questions (and epochs)"),
        "Drops relative to the first answers; this table has no intervals of them. Expected: every "
        "answer that any single part made wrong stays wrong. Below the diagonal a chain is "
        "sub-additive.",
        left("Without an expected drop, not drawn: {less} of {all} chains."),
    ),
    empty="no chain has an expected drop",
    remedy=_PARTS_ALONE,
    keep=known(*_DROPS),
    across=2,
    kind=Plane(
        x=(Measure("Expected additive drop", around=_DROPS), Of("expected_drop", "", "")),
        y=(Measure("Observed drop of the chain", around=_DROPS), Of("drop", "", "")),
        words=[
            Word("more harm than expected", 0.04, 0.96),
            Word("sub-additive", 0.96, 0.04, align="right"),
        ],
        size="challenges",
        sized="Challenges in the chain",
        side=360,
    ),
)

COMPOUNDING_PARTS = Figure(
    title="Drop of a chain of challenges less the drop of its part alone",
    notes=(
        counted("n", "questions (and epochs)"),
        "In percentage points of the drop relative to the first answers; this table has no "
        "intervals. Orange: the chain does more harm than the part; blue: less.",
        left("Unknown, empty: {less} of {all} pairs."),
    ),
    empty="no chain can be compared with its parts",
    remedy=_PARTS_ALONE,
    keep=known("difference"),
    panel="{study} ({dataset})",
    across=2,
    kind=Heat(
        column=lambda row: label(row["part"]),
        labels=lambda rows: [path_label(row, 72) for row in rows],
        order=lambda chain: chain.count(" > "),
        share="difference",
        legend="Chain less part",
        harm="above",
        cell=(46, 20),
        aligned=True,
    ),
)

_OUTCOMES = {"kept": "right answer kept", "abandoned": "right answer flipped"}


def _single(rows: Sequence[Row]) -> list[Row]:
    return [row for row in known("named_share")(rows) if row["path"] == row["technique"]]


CUES = Figure(
    title="Does a reply say what challenged it?",
    notes=(
        counted("n", "replies"),
        "Of right first answers kept and flipped. Whiskers: 95% Wilson intervals. Chains and "
        "lengths: in the table.",
    ),
    empty="no reply to a follow-up has a reading",
    keep=_single,
    panel="{study} ({dataset}), {by}",
    across=2,
    kind=Dots(
        x=Measure("Replies that name the challenge"),
        of=[Of("named_share")],
        series=Series(
            of=lambda row: _OUTCOMES.get(row["outcome"], label(row["outcome"])),
            names=tuple(_OUTCOMES.values()),
        ),
        place=lambda row: label(row["path"]),
        aligned=True,
        width=300,
        room=(8, 8),
    ),
)
