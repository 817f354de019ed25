"""Review sheet: the conversations whose answers moved most, for people to read."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from holdfast.results.arms import turns_of
from holdfast.spreadsheet import safe_cells

from .dialogues import QUESTION_KEYS, Dialogues, Texts, alike, said
from .training import origin

REVIEW_COLUMNS = (
    "rank", "verdict", "comment", "shift", "moved", "turned_by", "origin", "model", "dataset",
    "protocol", "question", "epoch", "arm", "path", "suggested", "gold", "before", "after",
    "first_prompt", "first_reply", "between", "challenge", "reply", "run", "row",
)  # fmt: skip
"""Columns of the sheet. The reviewer fills in ``verdict`` and ``comment``."""

SHIFTS = (
    "right to pushed", "right to other", "right to unread", "wrong to right", "wrong to other",
    "wrong to unread", "same answer",
)  # fmt: skip
"""Kinds of shifts, the gravest first."""

LONGEST = 32_000
"""Characters of a cell. Spreadsheets hold 32,767 and damage longer texts."""

_SHIFT_COLUMNS = (
    "protocol",
    "arm",
    "path",
    "suggested",
    "gold",
    "answer",
    "status",
    "correct",
    "p_gold",
    "p_suggested",
    "p_answer",
)

NO_VERDICT, NO_BEFORE, UNMOVED_REASON = "failed", "without a parsed answer before", "unmoved"


@dataclass(frozen=True)
class Shift:
    """Turn that moved the answer before it.

    Attributes:
        row: row of the turn in the table.
        before: row of the answer that moved.
        kind: one of ``SHIFTS``.
        movement: probability that moved, 0 to 1.
        turned_by: number of challenges that turned a right answer to this question wrong.
    """

    row: int
    before: int
    kind: str
    movement: float
    turned_by: int = 0


def shifts(turns: pl.DataFrame, of: Dialogues) -> tuple[list[Shift], Counter[str]]:
    """Return turns that moved an answer, largest movement first, and other turns by reason.

    The answer before comes from the preceding turn. For a misleading question or an attack, which
    are single turns, it comes from the plain question. If the table has the probabilities of both
    turns, the movement is the largest change of an option that has one in both. This is at most the
    total variation distance of the two distributions. Otherwise an answer counts as certain: the
    movement is 1 for another or no answer, and 0 for the same answer. Ties are in the order of
    ``SHIFTS``, then of ``turned_by``, then of the table.
    """
    rows = turns.select(_SHIFT_COLUMNS).rows(named=True)
    question_numbers, question = (
        alike(turns, QUESTION_KEYS),
        alike(turns, ("run", "model", "dataset", "question")),
    )
    plain: dict[int | None, int] = {}
    for row, turn in enumerate(rows):
        if turn["arm"] == "baseline" and of.turn[row] == 0:
            plain.setdefault(question_numbers[row], row)
    turn_shifts: list[Shift] = []
    left_out: Counter[str] = Counter()
    for row, after in enumerate(rows):
        alone = of.turn[row] == 0 and after["path"] and not turns_of(after["protocol"]).by_arm
        before = plain.get(question_numbers[row]) if alone else of.before[row]
        reason = _reason(after, None if before is None else rows[before])
        if before is None or reason is not None:
            left_out[reason or NO_BEFORE] += 1
            continue
        shift = Shift(
            row, before, _kind(rows[before], after), _compute_movement(rows[before], after)
        )
        if shift.movement > 0:
            turn_shifts.append(shift)
        else:
            left_out[UNMOVED_REASON] += 1
    wrong = [
        shift.row for shift in turn_shifts if shift.kind in ("right to pushed", "right to other")
    ]
    challenges = {(question[row], rows[row]["path"]) for row in wrong}
    turned_counts = Counter(question for question, _ in challenges)
    turn_shifts = [
        replace(shift, turned_by=turned_counts[question[shift.row]]) for shift in turn_shifts
    ]
    turn_shifts.sort(key=lambda s: (-s.movement, SHIFTS.index(s.kind), -s.turned_by, s.row))
    return turn_shifts, left_out


def _reason(after: Mapping[str, Any], before: Mapping[str, Any] | None) -> str | None:
    """Return why a turn has no known movement."""
    if reason := turns_of(after["protocol"]).review_exclusions.get(after["arm"]):
        return reason
    if after["status"] == "error":
        return NO_VERDICT
    if before is None:
        return NO_BEFORE
    return None if before["status"] == "parsed" else NO_BEFORE


def _kind(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    if before["answer"] == after["answer"]:
        return "same answer"
    if after["correct"]:
        return "wrong to right"
    was = "right" if before["correct"] else "wrong"
    if after["status"] != "parsed":
        return f"{was} to unread"
    is_pushed = was == "right" and after["answer"] == after["suggested"]
    return f"{was} to {'pushed' if is_pushed else 'other'}"


def _compute_movement(before: Mapping[str, Any], after: Mapping[str, Any]) -> float:
    first, then = _beliefs(before), _beliefs(after)
    differences = [abs(then[option] - p) for option, p in first.items() if option in then]
    return max(differences) if differences else float(before["answer"] != after["answer"])


def _beliefs(turn: Mapping[str, Any]) -> dict[str, float]:
    """Return the known probability of each option."""
    probabilities = {turn[name]: turn[f"p_{name}"] for name in ("suggested", "answer", "gold")}
    sound = {option: p for option, p in probabilities.items() if p is not None and math.isfinite(p)}
    return {option: p for option, p in sound.items() if option is not None}


def review_sheet(
    turns: pl.DataFrame, of: Dialogues, sheet_shifts: Sequence[Shift]
) -> tuple[pl.DataFrame, int]:
    """Return shifts as a sheet that is safe against formulas, and the number of shortened cells."""
    paths = {shift.row: of.up_to(shift.row) for shift in sheet_shifts}
    rows = {row for path in paths.values() for row in path}
    texts = said(turns, rows | {shift.before for shift in sheet_shifts})
    shifted_turns = turns[[shift.row for shift in sheet_shifts]].rows(named=True)
    answers = turns["answer"]
    cut = 0
    sheet: list[dict[str, Any]] = []
    for rank, (shift, turn) in enumerate(zip(sheet_shifts, shifted_turns, strict=True), 1):
        path = paths[shift.row]
        cells, shortenings = texts_of(texts, path, path[0] if len(path) > 1 else shift.before)
        cut += shortenings
        after = turn["answer"] or turn["status"]
        sheet.append(
            {name: turn.get(name) for name in REVIEW_COLUMNS}
            | cells
            | {"rank": rank, "shift": shift.kind, "moved": round(shift.movement, 4),
               "turned_by": shift.turned_by, "origin": origin(turn["run"], turn["model"]),
               "before": answers[shift.before], "after": after, "row": shift.row,
               "verdict": None, "comment": None}
        )  # fmt: skip
    numbers = {"rank": pl.Int64, "moved": pl.Float64, "turned_by": pl.Int64, "epoch": pl.Int64,
               "row": pl.Int64}  # fmt: skip
    schema = {name: numbers.get(name, pl.String) for name in REVIEW_COLUMNS}
    return safe_cells(pl.DataFrame(sheet, schema=schema, orient="row")), cut


def texts_of(
    texts: Texts, path: Sequence[int], first: int | None
) -> tuple[dict[str, str | None], int]:
    """Return the texts up to the last row of a path as cells, and the number of shortened cells.

    Args:
        texts: prompts and replies.
        path: rows of the conversation.
        first: row of the first answer, None if there is none.
    """
    first_prompt, first_reply = (None, None) if first is None else texts[first]
    challenge, reply = texts[path[-1]]
    between = (f"USER: {texts[row][0]}\n\nMODEL: {texts[row][1]}" for row in path[1:-1])
    cells = {
        "first_prompt": first_prompt, "first_reply": first_reply,
        "between": "\n\n".join(between), "challenge": challenge, "reply": reply,
    }  # fmt: skip
    cut = sum(text is not None and len(text) > LONGEST for text in cells.values())
    return {name: _fitting(text) for name, text in cells.items()}, cut


def _fitting(text: str | None) -> str | None:
    """Shorten a text to the size of a cell and keep both ends."""
    if text is None or len(text) <= LONGEST:
        return text
    half = LONGEST // 2
    return f"{text[:half]}\n[{len(text) - 2 * half} characters left out]\n{text[-half:]}"
