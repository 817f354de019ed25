"""Comparisons in words."""

import math
from collections.abc import Sequence

from holdfast.results import BASELINE, FAMILY_AVERAGE, is_simulated
from holdfast.results.grid import Row, percent

from .tables import one_line

SIGNIFICANT = 0.05
"""A difference is said to show where its corrected p-value is below this."""

CONVERSATIONS = {
    "survival": "right answer kept to the end",
    "abstention": "abstention kept to the end",
    "correct-switches": "switch from the abstention to the right answer",
    "incorrect-switches": "switch from the abstention to a wrong option",
}

CHANGED = ("gained_questions", "lost_questions")


def sentences(rows: Sequence[Row]) -> list[str]:
    """What the comparison says: first the differences that show, last the first answers.

    Averages of families speak for their techniques, the last attempt for those before it.
    """
    averaged = {_family(row) for row in rows if row["arm"] == FAMILY_AVERAGE}
    attempts = {
        (row["protocol"], row["dataset"]): row["path"]
        for row in rows
        if row["measure"] == "accuracy-after-attacks"
    }
    said = [
        row
        for row in rows
        if row["arm"] == FAMILY_AVERAGE
        or (row["measure"] == "accuracy" and row["arm"] == BASELINE)
        or (row["arm"] in ("followup", "single-turn") and _family(row) not in averaged)
        or row["measure"] in CONVERSATIONS
        or row["arm"] in ("single-shot", "single-shot-abstain")
        or (
            row["measure"] == "accuracy-after-attacks"
            and attempts[row["protocol"], row["dataset"]] == row["path"]
        )
    ]
    # first answers are what challenges are read against, and not what was asked
    said.sort(
        key=lambda row: (
            row["arm"] in (BASELINE, "single-shot", "single-shot-abstain"),
            not _shows(row),
        )
    )
    several = len({(row["protocol"], row["dataset"]) for row in rows}) > 1
    return [sentence(row, named=several) for row in said]


def sentence(row: Row, *, named: bool = False) -> str:
    """One row in words."""
    what = _what(row) + (f" ({row['protocol']}, {row['dataset']})" if named else "")
    if row["p_adjusted"] is None or math.isnan(row["p_adjusted"]):
        return one_line(f"{what}: nothing to compare.")
    p, holm = p_value(row["p_value"]), p_value(row["p_adjusted"])
    tested = f"p {p}" if holm == p else f"p {p} ({holm.removeprefix('= ')} after Holm)"
    behind = f"{percent(row['b'])}% against {percent(row['a'])}%, {tested}."
    if not _shows(row):
        shown = f"{percent(row['difference'], signed=True)} points {signed_interval(row)}"
        return one_line(f"{what}: no difference shows between B and A, {shown}, {behind}")
    size, bounds, word = abs(100 * row["difference"]), (row["low"], row["high"]), "more"
    if row["difference"] < 0:
        bounds, word = (-row["high"], -row["low"]), "fewer"
    low, high = map(percent, bounds)
    unit = "point" if f"{size:.1f}" == "1.0" else "points"
    return one_line(f"{what}: B has {size:.1f} {unit} {word} than A [{low}, {high}], {behind}")


def comparison_label(row: Row) -> str:
    """What a row is of, as people read it."""
    measure, arm, path = row["measure"], row["arm"], row["path"]
    if measure in CONVERSATIONS:
        return CONVERSATIONS[measure]
    if measure == "accuracy-after-attacks":
        attempts = path.rpartition("@")[2]
        return "before the attacks" if attempts == "0" else f"after attempt {attempts}"
    if arm == BASELINE:
        return "First answers"
    if arm == FAMILY_AVERAGE:
        return one_line(f"{row['family']} (average)")
    return one_line(path).replace(">", " > ") or one_line(arm)


def side_lines(rows: Sequence[Row]) -> list[str]:
    """A line for each side: model, mitigation, runs, data sets, and whether it is simulated."""
    lines = []
    for name in ("a", "b"):
        settings: dict[tuple[str, str | None], list[Row]] = {}
        for row in rows:
            settings.setdefault((row[f"model_{name}"], row[f"mitigation_{name}"]), []).append(row)
        known = []
        for (model, mitigation), own in settings.items():
            runs = dict.fromkeys(str(row[f"run_{name}"]) for row in own)
            datasets = dict.fromkeys(row["dataset" if name == "a" else "dataset_b"] for row in own)
            parts = [
                f"{model} [SIMULATED]" if is_simulated(model) else model,
                *([f"mitigation {mitigation}"] if mitigation else []),
                f"{'run' if len(runs) == 1 else 'runs'} {', '.join(runs)}",
                ", ".join(datasets),
            ]
            known.append(", ".join(parts))
        lines.append(one_line(f"{name.upper()}: {'; '.join(known)}"))
    return lines


def changes(rows: Sequence[Row]) -> list[str]:
    """The questions that changed, a sentence for each row that has any."""
    found = []
    for row in rows:
        parts = [
            f"{word} {', '.join(map(one_line, row[name]))}"
            for word, name in (("gained", CHANGED[0]), ("lost", CHANGED[1]))
            if row[name]
        ]
        if parts:
            found.append(f"{comparison_label(row)}: {'; '.join(parts)}.")
    return found


def signed_interval(row: Row) -> str:
    """The interval of a difference in points, as ``[-1.2, +3.4]``."""
    low, high = (percent(row[name], signed=True) for name in ("low", "high"))
    return f"[{low}, {high}]" if low and high else ""


def p_value(p: float | None) -> str:
    """A p-value with what joins it to the word: ``= 0.012``, ``below 1e-300``."""
    if p is None or math.isnan(p):
        return ""
    if p == 0:
        return "below 1e-300"
    # a sign for less would be markup, and the exponent says more
    return f"= {p:.3f}" if f"{p:.3f}" != "0.000" else f"= {p:.0e}"


def _shows(row: Row) -> bool:
    p: float | None = row["p_adjusted"]
    return p is not None and p < SIGNIFICANT


def _what(row: Row) -> str:
    measure, arm = row["measure"], row["arm"]
    if measure in CONVERSATIONS:
        return CONVERSATIONS[measure].capitalize()
    if measure == "accuracy-after-attacks":
        return f"Right answers {comparison_label(row)}"
    if arm == BASELINE:
        return "Right first answers"
    if arm == FAMILY_AVERAGE:
        return f"Right answers after {row['family']}, average"
    return f"Right answers, {comparison_label(row)}"


def _family(row: Row) -> tuple[str, str, str]:
    return row["protocol"], row["dataset"], row["family"]
