"""Turns tables written down in a test, and rows found in a measure of them."""

from collections.abc import Callable, Sequence
from typing import Any

import polars as pl

from holdfast.registry import DEMO, PROTOCOLS
from holdfast.results.turns import SCHEMA

Row = dict[str, Any]

FAMILIES = {
    "push": "inc_letter",
    "shove": "inc_letter",
    "recheck": "rethink",
    "mislead": "context",
    "wrong-option": "wrong_op",
}
"""Family of each technique in these tables."""


COLUMNS = pl.Schema(
    {
        **SCHEMA,
        "cue": pl.Boolean(),
        "stance": pl.String(),
        "cue_judged": pl.Boolean(),
        "stance_judged": pl.String(),
    }
)


def turn(
    question: str,
    answer: str | None,
    path: str = "",
    *,
    suggested: str | None = None,
    status: str = "",
    epoch: int = 1,
    **columns: Any,
) -> Row:
    """One row; the right answer is A, and an answer of None could not be read."""
    technique = path.split(">")[-1].split("@")[0]
    family = FAMILIES.get(technique, "")
    arm = "compound" if ">" in path else "followup" if path else "baseline"
    arm = "length" if "@" in path else arm
    return {
        "run": "r1", "protocol": "followup", "protocol_version": 1, "model": "m1", "dataset": "d1",
        "epoch": epoch, "question": question, "arm": arm, "path": path,
        "turn": len(path.split(">")) if path else 0, "technique": technique, "family": family,
        "axis": {"inc_letter": "direct", "rethink": "indirect"}.get(family, ""),
        "depth": "deep" if path else "", "suggested": suggested, "target": "A", "gold": "A",
        "answer": answer, "status": status or ("parsed" if answer else "none"),
        "rule": "final-answer", "correct": answer == "A", "shared": False,
        "output_tokens": 20, **columns,
    }  # fmt: skip


def of_further_protocols() -> list[Row]:
    """Rows of each protocol that the demo does not run, such as a contributor's."""
    return [
        turn(f"q{n}", "ABC"[(n + len(path)) % 3], path, protocol=name)
        for name in sorted(PROTOCOLS.keys() - {*DEMO["protocols"]})
        for path in ("", "push", "shove")
        for n in range(9)
    ]


def alone(question: str, answer: str | None, path: str = "", **columns: Any) -> Row:
    """One row of a single-turn study."""
    row = turn(question, answer, path, protocol="single-turn", turn=0, **columns)
    return row | {"arm": "single-turn", "depth": "shallow"} if path else row


def control(question: str, answer: str | None, path: str = "restate", **columns: Any) -> Row:
    """One row without a challenge: the question afresh, or the answer asked for again."""
    steps = 0 if path == "resample" else len(path.split(">"))
    row = turn(question, answer, path, **columns)
    return row | {"arm": "control", "family": "control", "turn": steps, "axis": None}


def correction(question: str, answer: str | None, technique: str = "push", **columns: Any) -> Row:
    """One row of a wording that names the right option."""
    row = turn(question, answer, technique, **{"suggested": "A", **columns})
    return row | {"arm": "correction", "family": "correction", "path": f"correction:{technique}"}


def asked(
    letters: str, path: str = "", *, kind: Callable[..., Row] = turn, **columns: Any
) -> list[Row]:
    """A turn of each question from q0 on: a letter, or what stands in ``NO_LETTER``.

    ``-`` was not asked.
    """
    return [
        kind(
            f"q{number}", None if letter in NO_LETTER else letter, path,
            **{"status": NO_LETTER.get(letter, ""), **columns},
        )
        for number, letter in enumerate(letters)
        if letter != "-"
    ]  # fmt: skip


NO_LETTER = {"?": "none", "R": "refused", "!": "error"}
"""What is no answer: unread, refused, failed."""


def behind(rows: Sequence[Row], defence: str = "hold") -> list[Row]:
    """The rows with corrections of their wrong first answers, and all that behind a defence too."""
    first = [row for row in rows if row["arm"] == "baseline" and row["protocol"] == "followup"]
    study = ("model", "dataset", "run", "protocol")
    corrections = [
        correction(row["question"], "A") | {name: row[name] for name in study}
        for row in first
        if row["answer"] not in ("A", None)
    ]
    plain = [row | {"defence": "none"} for row in (*rows, *corrections)]
    return [*plain, *(row | {"defence": defence, "run": f"{row['run']}+{defence}-0000"}
                      for row in plain)]  # fmt: skip


def table(rows: Sequence[Row]) -> pl.DataFrame:
    return pl.DataFrame(list(rows), schema=COLUMNS, orient="row")


def filled(frame: pl.DataFrame, **values: Any) -> pl.DataFrame:
    """A turns table of a frame: columns are constants or expressions, null where not named."""
    columns = dict.fromkeys(COLUMNS) | values
    return frame.select(**{
        name: value if isinstance(value, pl.Expr) else pl.lit(value, COLUMNS[name])
        for name, value in columns.items()
    })  # fmt: skip


def row_of(measure: pl.DataFrame, path: str, arm: str | None = None, **keys: str) -> Row:
    """The one row of that path, for accuracies of that arm."""
    for name, value in {"path": path, **({"arm": arm} if arm else {}), **keys}.items():
        measure = measure.filter(pl.col(name) == value)
    assert measure.height == 1
    return measure.row(0, named=True)


STUDY = [
    # first answers: five right, two wrong, one unreadable, one failed
    turn("q1", "A"),
    turn("q2", "A"),
    turn("q3", "A"),
    turn("q4", "B"),
    turn("q5", "B"),
    turn("q6", None),
    turn("q7", "A"),
    turn("q8", "A"),
    turn("q9", None, status="error", rule="TimeoutError"),
    # the push names option B
    turn("q1", "A", "push", suggested="B"),  # held
    turn("q2", "B", "push", suggested="B"),  # right to suggested
    turn("q3", "C", "push", suggested="B"),  # right to another
    turn("q4", "A", "push", suggested="B"),  # wrong to right; its own B was suggested
    turn("q5", None, "push", suggested="B", status="refused"),  # wrong to refused; own B again
    turn("q6", "B", "push", suggested="B"),  # unread to suggested
    turn("q7", None, "push", suggested="B", status="ambiguous"),  # right to unreadable
    turn("q8", None, "push", suggested="B", status="error", rule="RateLimitError"),  # no verdict
]
