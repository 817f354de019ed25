"""Figures that follow-ups and biases in a question share."""

from collections.abc import Sequence

from holdfast.results import BASELINE, FAMILY_AVERAGE
from holdfast.results.defences import brought_in_words
from holdfast.results.flagging import SIGNALS
from holdfast.results.grid import grouped

from .dots import Dots, Measure, Of, Plane, Series, Word
from .figure import Figure, Row, chain_label, counted, counts, known, label, path_label
from .flows import Flows
from .lines import Axis, Lines

_ARMS = (BASELINE, "followup", "single-turn", FAMILY_AVERAGE)
ACCURACY_AXIS = Measure("Accuracy")


def averages_last(rows: Sequence[Row]) -> list[Row]:
    """The first answers, then each family's rows with their average last."""
    found = [row for row in rows if row["arm"] == BASELINE]
    for own in grouped([row for row in rows if row["arm"] != BASELINE], "family"):
        found += sorted(own, key=lambda row: row["arm"] == FAMILY_AVERAGE)
    return found


def _challenged(rows: Sequence[Row]) -> list[Row]:
    """Accuracies where there is one after a challenge; all else has figures of its own."""
    own = [row for row in known("accuracy")(rows) if row["arm"] in _ARMS]
    groups = grouped(own, "dataset", "protocol")
    return [row for group in groups for row in group if any(r["arm"] != BASELINE for r in group)]


def _challenge(row: Row) -> str:
    if row["arm"] == BASELINE:
        return "first answer"
    if row["arm"] != FAMILY_AVERAGE:
        return path_label(row)
    family, path = label(f"average of {row['family']}"), path_label(row)
    return f"{family}, {path}" if path else family


ACCURACY = Figure(
    title="Accuracy after each challenge",
    notes=(
        lambda rows, every: counts([r["n"] for r in every if r["arm"] in _ARMS], "replies"),
        "Whiskers: 95% intervals (Wilson; of a run that a verdict stopped, confidence sequences). "
        "Averages: the mean over a family's challenges.",
    ),
    empty="no follow-up and no single-turn bias has an accuracy",
    remedy="Stick-or-Switch has figures of its own, such as --table survival",
    keep=_challenged,
    panel="{dataset}: {protocol}",
    across=2,
    kind=Dots(
        x=ACCURACY_AXIS, of=[Of("accuracy")], place=_challenge, order=averages_last, width=240
    ),
)


def _family(row: Row) -> str:
    mitigation = f", {path_label(row)}" if row["path"] else ""
    return f"{label(row['family']) or 'no family'}{mitigation}"


_CHANGE = ("relative_change", "change_low", "change_high")

FAMILY_CHANGES = Figure(
    title="Change of accuracy by family of challenges",
    notes=(
        lambda rows, every: counts([row["n"] for row in rows], "replies"),
        "Mean over a family's challenges, relative to the first answers to the same questions. "
        "Whiskers: 95% intervals, paired by question.",
    ),
    empty="no family of challenges has an average",
    keep=known("relative_change"),
    panel="{dataset}: {protocol}",
    kind=Dots(
        x=Measure("Relative change", around=_CHANGE),
        of=[Of(*_CHANGE)],
        place=_family,
        zero=True,
        width=430,
    ),
)
"""Figure 2 of MedQA-Followup."""


def _fall(row: Row) -> str:
    ends = (f"{100 * row[name]:.0f}%" for name in ("first", "after") if row[name] is not None)
    return f"{' → '.join(ends)}, {chain_label(row['challenge'], _SHORT)}"


_SHORT = 30


def _of_lowest(rows: Sequence[Row], every: Sequence[Row]) -> str:
    """What the marks are where the challenge is the lowest of several."""
    if not any(row["challenges"] for row in rows):
        return "Whiskers: 95% intervals."
    named = "Named: the challenge that leaves the fewest right answers. Whiskers: 95% intervals"
    if any("cross_fitted" in row for row in rows):  # the table, with the plain minimum
        return f"{named}; of several challenges, for the lowest of all of them."
    return f"{named}. The challenge is chosen on one half of the questions and read on the other."


WORST = Figure(
    title="Right at first, and after",
    notes=(
        counted("asked", "questions (and epochs)"),
        _of_lowest,
    ),
    empty="no first answer was challenged by a follow-up or a single-turn bias",
    keep=lambda rows: sorted(known("after")(rows), key=lambda row: -row["after"]),
    panel="{dataset}: {protocol}",
    size=13,
    kind=Dots(
        x=Measure("Right answers"),
        of=[
            Of("first", "first_low", "first_high", "right at first"),
            Of("after", series="right after", n="asked"),
        ],
        series=Series(names=("right at first", "right after"), sizes=(170, 60)),
        place=lambda row: row["study"],
        flat=("first", "after"),
        text=(_fall, 13, "normal"),
        room=(10, 16),
        width=430,
        size=110,
    ),
)


def _kept(row: Row) -> str:
    return f"{100 * row['kept_share']:.0f}%"


def _followups_first(rows: Sequence[Row]) -> list[Row]:
    """What is asked of the answer itself before what is asked of the question."""
    own = known("kept_share")(rows)
    return sorted(own, key=lambda row: row["protocol"] != "followup")


HOLDING = Figure(
    title="Does a right answer hold fast?",
    notes=(
        "Share of the right first answers that one challenge left as they were.",
        counted("n_right", "answers"),
        counted("questions", "questions"),
        "Whiskers: 95% intervals; techniques of one question are alike.",
    ),
    empty="no right first answer was challenged by a follow-up or a single-turn bias",
    keep=_followups_first,
    panel="{dataset}: {protocol}",
    size=14,
    kind=[
        [Dots(
            x=Measure("", format=""), of=[Of("kept_share", n="questions")],
            place=lambda row: "any challenge",
            only=lambda row: row["family"] is None, text=(_kept, 19, "bold"), width=430,
            room=(12, 30), size=190,
        )],
        [Dots(
            x=Measure("Right first answers that were kept"), of=[Of("kept_share", n="questions")],
            place=lambda row: label(row["family"]) or "no family",
            only=lambda row: row["family"] is not None, text=(_kept, 13, "normal"), width=430,
            room=(12, 19), size=80,
        )],
    ],
)  # fmt: skip


ATTRIBUTABLE = Figure(
    title="Flips beyond those of the control",
    notes=(
        counted("pairs", "answers"),
        "Share of right answers flipped by a challenge less the share flipped without one.",
        "Zero: the challenge did nothing. Whiskers: 95% intervals, paired by question.",
    ),
    empty="no challenge has a control",
    remedy="Run followup or single-turn without -T controls=false",
    keep=lambda rows: [row for row in known("attributable")(rows) if row["path"] is None],
    panel="{dataset}: {protocol}",
    kind=Dots(
        x=Measure(
            "Attributable flips, percentage points", format=".0f", times=100, to=10,
            around=("attributable", "attributable_low", "attributable_high"), harm=True,
        ),
        of=[Of("attributable", "attributable_low", "attributable_high", n="pairs")],
        place=lambda row: "any challenge" if row["family"] is None else label(row["family"]),
        zero=True, width=430,
    ),
)  # fmt: skip


def _totals(rows: Sequence[Row], every: Sequence[Row]) -> str:
    paths = grouped(rows, "dataset", "study", "protocol", "path")
    totals = [sum(row["n"] for row in own) for own in paths]
    least, most = min(totals), max(totals)
    several = "" if least == most else f"{least:,} to "
    return (
        f"n = {several}{most:,} answers a challenge, counted beside the bars. Left: first answers, "
        "right ones on top. Right: answers to the challenge: right, the suggested option, another "
        "wrong one, unread."
    )


FLOWS = Figure(
    title="What the first answers became",
    notes=(_totals, "No intervals: see the table flips."),
    empty="no first answer was challenged by a follow-up or a single-turn bias",
    keep=lambda rows: [row for row in rows if row["share"]],
    panel="{study} ({dataset}, {protocol})",
    kind=Flows(),
)


def _of_all(rows: Sequence[Row]) -> list[Row]:
    return [row for row in known("kept", "updated", "replies")(rows) if row["path"] is None]


DEFENCES = Figure(
    title="Defences: right answers kept, corrections taken",
    notes=(
        counted("n_right", "right first answers"),
        counted("n_wrong", "corrections"),
        "Kept: right first answers that no challenge flipped. Up and to the right is better; a "
        "larger mark takes more calls. 95% intervals of the differences: in the table.",
        lambda rows, every: brought_in_words(rows),
    ),
    empty="no defence was measured with corrections",
    remedy="Run it with -T corrections=true",
    keep=_of_all,
    panel="{dataset}: {protocol}",
    kind=Plane(
        x=(Measure("Corrections taken"), Of("updated", "", "")),
        y=(Measure("Right answers kept"), Of("kept", "", "")),
        words=[
            Word("stubborn", 0.03, 0.97),
            Word("steadfast", 0.97, 0.97, align="right"),
            Word("gives way to anything", 0.97, 0.03, align="right"),
        ],
        size="replies",
        sized="Calls a conversation",
        diagonal=False,
        side=360,
    ),
)


FLAGGING = Figure(
    title="Harmful flips caught by a review",
    notes=(
        counted("harmful", "harmful flips"),
        "Share of the harmful flips among the conversations with the highest scores. Band: 95% "
        "interval, bootstrap over questions. A signal that says nothing catches the share that is "
        "reviewed.",
    ),
    empty="no conversation has a harmful flip and a signal",
    panel="{study} ({dataset}): {protocol}",
    across=2,
    kind=Lines(
        x=Axis("percent", "Conversations reviewed, %", "numbers"),
        series=Series(
            "Review first if",
            lambda row: SIGNALS.get(row["signal"], label(row["signal"])),
        ),
        y=Measure("Harmful flips caught"),
        of=[Of("caught")],
    ),
)
