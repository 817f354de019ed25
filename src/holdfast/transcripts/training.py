"""Training data: which turns can teach a model something, and why the others cannot."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import polars as pl

from holdfast.results import is_imported, is_simulated

from .chats import json_text
from .dialogues import (
    APART,
    OFFERING,
    Dialogues,
    alike,
    in_batches,
    messages,
    no_challenge,
    said,
)

Kind = Literal["first", "biased", "held", "mended"]
"""What a turn shows.

``first``, an answer before any challenge; ``biased``, one to a question that misleads from the
start; ``held``, one after the right answer; ``mended``, one after a wrong answer, or after an
abstention that is right no longer.
"""

ATTACKED, FAILED, GAP, TEXTLESS, UNREAD, AFTER_UNREAD, REPEATED = (
    "to or of an attacker",
    "failed, or after a failed turn",
    "after a turn that the table lacks",
    "without text",
    "unread or refused",
    "after an unread or refused answer",
    "the same words as another",
)
UNCHALLENGED, WRONG = "without a challenge", "wrong"
BESIDE = "controls and corrections"


@dataclass(frozen=True)
class Usable:
    """Turns that were read, with everything before them.

    Attributes:
        rows: their rows in the table, in order.
        kind: what each shows, by row.
        prompt: number of all messages before the reply, by row; equal where the words are.
        case: the same with the answers given so far in place of the assistant's words.
        left_out: how many turns are no such, by reason.
    """

    rows: list[int]
    kind: dict[int, Kind]
    prompt: dict[int, int]
    case: dict[int, int]
    left_out: Counter[str]


def usable(turns: pl.DataFrame, of: Dialogues) -> Usable:
    """The turns whose answer could be read, in conversations that are whole and were read.

    Left out are controls and corrections, failed turns and what follows on them, unread and refused
    answers and what follows on those, everything that MedFuzz's attacker wrote or that answers it
    (that the right option is still right there is its claim, which nobody has checked), and
    repeated words: what an earlier turn replied to the very same messages.

    Args:
        turns: a turns table with texts.
        of: its conversations.
    """
    # an imported answer can be known without its words
    textless = pl.any_horizontal(
        pl.col("prompt", "reply").str.strip_chars().fill_null("").str.len_bytes() == 0
    )
    told = turns.select("protocol", "arm", "path", "gold", "answer", "status", textless).rows()
    prompts, replies = alike(turns, ["prompt"]), alike(turns, ["reply"])
    rows = [(*turn, *words) for turn, *words in zip(told, prompts, replies, strict=True)]
    numbers: dict[tuple[Any, ...], int] = {}

    def numbered(*key: Any) -> int:
        return numbers.setdefault(key, len(numbers))

    found: dict[int, tuple[Kind, int, int]] = {}
    closed: dict[int, tuple[int, int]] = {}  # as prompt and case, with reply and answer
    reasons: dict[int, str] = {}
    replied: set[tuple[int, str]] = set()
    # a turn after the one that it follows on, whatever the order of the table
    for row in sorted(range(len(rows)), key=of.turn.__getitem__):
        protocol, arm, path, gold, answer, status, empty, prompt, reply = rows[row]
        before = of.before[row]
        reason = _reason(protocol, arm, status, textless=empty)
        if reason is None and before is None and of.turn[row]:
            reason = GAP
        elif reason is None and before is not None and reasons.get(before, REPEATED) != REPEATED:
            reason = AFTER_UNREAD if reasons[before] == UNREAD else reasons[before]
        if reason is not None:
            reasons[row] = reason
            continue
        words, answers = closed.get(before, (-1, -1)) if before is not None else (-1, -1)
        asked = numbered("asked", words, prompt)
        case = numbered("case", answers, prompt)
        whole = numbered("replied", asked, reply)
        closed[row] = whole, numbered("answered", case, answer)
        if (whole, gold) in replied:
            reasons[row] = REPEATED
            continue
        replied.add((whole, gold))
        if before is None:
            kind: Kind = "biased" if path and protocol != OFFERING else "first"
        else:
            kind = "held" if rows[before][4] == gold else "mended"
        found[row] = kind, asked, case
    ordered = sorted(found)
    return Usable(
        ordered,
        {row: found[row][0] for row in ordered},
        {row: found[row][1] for row in ordered},
        {row: found[row][2] for row in ordered},
        Counter(reasons[row] for row in sorted(reasons)),
    )


def _reason(protocol: str, arm: str, status: str, *, textless: bool) -> str | None:
    """Why a turn cannot be used, looked at alone."""
    if no_challenge(protocol, arm):
        return BESIDE
    if arm in APART:
        return ATTACKED
    if status == "error":
        return FAILED
    if textless:
        return TEXTLESS
    return None if status == "parsed" else UNREAD


def demonstrations(turns: pl.DataFrame, told: Usable) -> tuple[list[int], Counter[str]]:
    """Turns that answered a challenge right, and how many others were left out, by reason.

    The right answer was kept (``held``), given at last (``mended``) or given to a misleading
    question (``biased``).

    Args:
        turns: a turns table.
        told: its usable turns.
    """
    right = turns["correct"].to_list()
    chosen: list[int] = []
    left_out = told.left_out.copy()
    for row in told.rows:
        if told.kind[row] == "first":
            left_out[UNCHALLENGED] += 1
        elif not right[row]:
            left_out[WRONG] += 1
        else:
            chosen.append(row)
    return chosen, left_out


def demonstration_lines(
    turns: pl.DataFrame, of: Dialogues, chosen: Sequence[int], kind: Mapping[int, str]
) -> Iterator[bytes]:
    """Conversations for supervised fine-tuning, one JSON object a line.

    ``messages`` is trl's conversational format; ``holdfast`` says where the last reply comes from.

    Args:
        turns: a turns table with texts.
        of: its conversations.
        chosen: row of the last turn of each.
        kind: what a turn shows, by row.
    """
    for batch in in_batches(chosen):
        chats = [of.up_to(row) for row in batch]
        texts = said(turns, (row for chat in chats for row in chat))
        sources = sources_of(turns, batch)
        for chat in chats:
            source = {"version": 1, "kind": kind[chat[-1]]} | sources[chat[-1]]
            line = {"messages": messages(texts, chat), "holdfast": source}
            yield f"{json_text(line)}\n".encode()


_SOURCE = ("run", "model", "dataset", "protocol", "question", "epoch", "arm", "path", "suggested",
           "gold", "answer")  # fmt: skip


def sources_of(turns: pl.DataFrame, rows: Sequence[int]) -> dict[int, dict[str, Any]]:
    """Where turns come from, by row: columns of the table, ``row`` and ``origin``.

    Texts throughout, empty where the table has none: loaders want one type for a field.
    """
    wanted = sorted(set(rows))
    told = turns[wanted].select(_SOURCE).with_columns(pl.col(pl.String).fill_null(""))
    return {
        row: {"row": row, "origin": origin(source["run"], source["model"])} | source
        for row, source in zip(wanted, told.iter_rows(named=True), strict=True)
    }


def origin(run: str, model: str) -> str:
    """``simulated``, ``imported``, or ``asked`` for replies that holdfast asked a model for."""
    if is_simulated(model):
        return "simulated"
    return "imported" if is_imported(run) else "asked"
