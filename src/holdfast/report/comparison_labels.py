"""Labels of the sides and measures of a comparison."""

from collections.abc import Mapping, Sequence

from holdfast.render.tables import one_line
from holdfast.results.first_answers import BASELINE, FAMILY_AVERAGE
from holdfast.results.grid import (
    Row,
    short_names,
)
from holdfast.results.standing import WORST

CONVERSATIONS = {
    "survival": "right answer kept to the end",
    "abstention": "abstention kept to the end",
    "correct-switches": "switch from the abstention to the right answer",
    "incorrect-switches": "switch from the abstention to a wrong option",
}


def of_many(rows: Sequence[Row]) -> bool:
    """Whether the rows come from ``holdfast.results.standing``."""
    return bool(rows) and "side_a" in rows[0]


def side_names(rows: Sequence[Row]) -> tuple[str, str]:
    """Return the shortest names that distinguish A and B.

    If the models are the same, the names show the path or mitigation that differs. The names are
    A and B if a side has several models, paths or mitigations.
    """
    for name in ("path", "model", "mitigation"):
        (a, *more), (b, *more_of_b) = (
            list({row[f"{name}_{end}"] or f"no {name}" for row in rows}) for end in "ab"
        )
        if more or more_of_b:
            break
        if a != b:
            short_sides = short_names([a, b])
            return one_line(short_sides[a]), one_line(short_sides[b])
    return "A", "B"


def comparison_label(row: Row) -> str:
    """Return the readable label of a row."""
    measure, arm, path = row["measure"], row["arm"], row["path"]
    if arm == WORST:
        return "After the worst challenge"
    if row["path_a"]:
        of_a, of_b = (one_line(row[name]).replace(">", " > ") for name in ("path_a", "path_b"))
        return f"{of_b} compared with {of_a}"
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


def pair_label(row: Row, short: Mapping[str, str] | None = None) -> str:
    """Return the label of a pair, in the order of its difference."""
    a, b = ((short or {}).get(name, name) for name in (row["side_a"], row["side_b"]))
    return one_line(f"{b} minus {a}")
