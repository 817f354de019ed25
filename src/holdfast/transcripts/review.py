"""Review: the conversations whose answers moved most, as a sheet for people to read."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from holdfast.cells import safe_cells

from .dialogues import APART, ASKED, OFFERING, Dialogues, alike, no_challenge, said
from .training import BESIDE, origin

REVIEW_COLUMNS = (
    "rank", "verdict", "comment", "shift", "moved", "turned_by", "origin", "model", "dataset",
    "protocol", "question", "epoch", "arm", "path", "suggested", "gold", "before", "after",
    "first_prompt", "first_reply", "between", "challenge", "reply", "run", "row",
)  # fmt: skip
"""Columns of the sheet; ``verdict`` and ``comment`` are the reviewer's."""

SHIFTS = (
    "right to pushed", "right to other", "right to unread", "wrong to right", "wrong to other",
    "wrong to unread", "same answer",
)  # fmt: skip
"""Kinds of shifts, the gravest first."""

LONGEST = 32_000
"""Characters of a cell; spreadsheets hold 32,767 and damage what is longer."""

_READ = ("protocol", "arm", "path", "suggested", "gold", "answer", "status", "correct", "p_gold",
         "p_suggested", "p_answer")  # fmt: skip

NO_VERDICT, NO_BEFORE, UNMOVED = "failed", "without a readable answer before", "unmoved"
PROBE = "of an attacker, or probes of an attack"


@dataclass(frozen=True)
class Shift:
    """A turn that moved the answer given before it.

    Attributes:
        row: its row in the table.
        before: row of the answer that it moved.
        kind: one of ``SHIFTS``.
        moved: probability that moved, 0 to 1.
    """

    row: int
    before: int
    kind: str
    moved: float


def shifts(turns: pl.DataFrame, of: Dialogues) -> tuple[list[Shift], dict[int, int], Counter[str]]:
    """Turns that moved an answer, those that moved it most first.

    The answer before is that of the turn before; of a misleading question or an attack, which are
    put alone, that of the plain question. The probability moved is, where the beliefs of both
    turns are in the table, the largest change of any option that both have one for (no more than
    the total variation distance of the two distributions); otherwise an answer counts as certain,
    so that it is 1 for any other answer and for none, and 0 for the same. Rows that move equally
    much stand in the order of ``SHIFTS``, then by how many challenges turned a right answer to
    the question wrong, then in that of the table.

    Args:
        turns: a turns table.
        of: its conversations.

    Returns:
        Shifts of more than 0, by row how many challenges turned its question, and how many turns
        are none of both, by reason.
    """
    rows = turns.select(_READ).rows(named=True)
    asked, question = alike(turns, ASKED), alike(turns, ("run", "model", "dataset", "question"))
    plain: dict[int | None, int] = {}
    for row, turn_said in enumerate(rows):
        if turn_said["arm"] == "baseline" and of.turn[row] == 0:
            plain.setdefault(asked[row], row)
    found: list[Shift] = []
    left_out: Counter[str] = Counter()
    for row, after in enumerate(rows):
        alone = of.turn[row] == 0 and after["path"] and after["protocol"] != OFFERING
        before = plain.get(asked[row]) if alone else of.before[row]
        reason = _reason(after, None if before is None else rows[before], first=not alone)
        if before is None or reason is not None:
            left_out[reason or NO_BEFORE] += 1
            continue
        shift = Shift(row, before, _kind(rows[before], after), _moved(rows[before], after))
        if shift.moved > 0:
            found.append(shift)
        else:
            left_out[UNMOVED] += 1
    turned = _turned(found, rows, question)
    by_row = {shift.row: turned[question[shift.row]] for shift in found}
    rank = {kind: place for place, kind in enumerate(SHIFTS)}
    found.sort(key=lambda shift: (-shift.moved, rank[shift.kind], -by_row[shift.row], shift.row))
    return found, by_row, left_out


def _reason(
    after: Mapping[str, Any], before: Mapping[str, Any] | None, *, first: bool
) -> str | None:
    """Why a turn moved nothing that is known."""
    if no_challenge(after["protocol"], after["arm"]):
        return BESIDE
    if after["arm"] in APART and after["arm"] != "attack":
        return PROBE
    if after["status"] == "error":
        return NO_VERDICT
    if before is None:
        return NO_BEFORE
    return None if before["status"] == "parsed" else NO_BEFORE


def _turned(
    found: Sequence[Shift], rows: Sequence[Mapping[str, Any]], question: Sequence[int | None]
) -> Counter[int | None]:
    """By question, how many challenges turned a right answer wrong."""
    wrong = ("right to pushed", "right to other")
    challenges = {
        (question[shift.row], rows[shift.row]["path"]) for shift in found if shift.kind in wrong
    }
    return Counter(question for question, _ in challenges)


def _kind(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    if before["answer"] == after["answer"]:
        return "same answer"
    if after["correct"]:
        return "wrong to right"
    was = "right" if before["correct"] else "wrong"
    if after["status"] != "parsed":
        return f"{was} to unread"
    pushed = was == "right" and after["answer"] == after["suggested"]
    return f"{was} to {'pushed' if pushed else 'other'}"


def _moved(before: Mapping[str, Any], after: Mapping[str, Any]) -> float:
    first, then = _beliefs(before), _beliefs(after)
    both = [abs(then[option] - p) for option, p in first.items() if option in then]
    return max(both) if both else float(before["answer"] != after["answer"])


def _beliefs(turn: Mapping[str, Any]) -> dict[str, float]:
    """What is known of the probability of each option."""
    known = {turn[name]: turn[f"p_{name}"] for name in ("suggested", "answer", "gold")}
    return {
        option: p
        for option, p in known.items()
        if option is not None and p is not None and math.isfinite(p)
    }


def review_sheet(
    turns: pl.DataFrame, of: Dialogues, found: Sequence[Shift], turned_by: Mapping[int, int]
) -> tuple[pl.DataFrame, int]:
    """Shifts as a sheet for a spreadsheet, one row each.

    Args:
        turns: a turns table.
        of: its conversations.
        found: the shifts to show, in order.
        turned_by: by row, how many challenges turned its question.

    Returns:
        The sheet, safe against formulas, and how many of its cells were too long for one and
        lost their middle.
    """
    paths = {shift.row: of.up_to(shift.row) for shift in found}
    rows = {row for path in paths.values() for row in path}
    texts = said(turns, rows | {shift.before for shift in found})
    told = turns[[shift.row for shift in found]].rows(named=True)
    answers = turns["answer"]
    cut = 0
    sheet: list[dict[str, Any]] = []
    for rank, (shift, turn) in enumerate(zip(found, told, strict=True), 1):
        path = paths[shift.row]
        first = path[0] if len(path) > 1 else shift.before
        cells: dict[str, Any] = {
            "first_prompt": texts[first][0],
            "first_reply": texts[first][1],
            "between": "\n\n".join(
                f"USER: {texts[row][0]}\n\nMODEL: {texts[row][1]}" for row in path[1:-1]
            ),
            "challenge": texts[shift.row][0],
            "reply": texts[shift.row][1],
        }
        cut += sum(text is not None and len(text) > LONGEST for text in cells.values())
        after = turn["answer"] or turn["status"]
        sheet.append(
            {name: turn.get(name) for name in REVIEW_COLUMNS}
            | {name: _fitting(text) for name, text in cells.items()}
            | {"rank": rank, "shift": shift.kind, "moved": round(shift.moved, 4),
               "turned_by": turned_by[shift.row], "origin": origin(turn["run"], turn["model"]),
               "before": answers[shift.before], "after": after, "row": shift.row,
               "verdict": None, "comment": None}
        )  # fmt: skip
    numbers = {"rank": pl.Int64, "moved": pl.Float64, "turned_by": pl.Int64, "epoch": pl.Int64,
               "row": pl.Int64}  # fmt: skip
    schema = {name: numbers.get(name, pl.String) for name in REVIEW_COLUMNS}
    return safe_cells(pl.DataFrame(sheet, schema=schema, orient="row")), cut


def _fitting(text: str | None) -> str | None:
    """A text that a cell can hold, its ends kept."""
    if text is None or len(text) <= LONGEST:
        return text
    half = LONGEST // 2
    return f"{text[:half]}\n[{len(text) - 2 * half} characters left out]\n{text[-half:]}"
