"""Export: a turns table as files that people, spreadsheets and trainers read."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, BinaryIO

import polars as pl

from holdfast.errors import InputError, unknown
from holdfast.parquet import write_parquet
from holdfast.spreadsheet import safe_cells

from .audit_sheet import audit_sheet, drawn
from .dialogues import Dialogues, chats_of, dialogues, json_text, messages
from .review import review_sheet, shifts
from .training import demonstration_lines, demonstrations, origin, pair_lines, pairs, usable

FORMATS = ("parquet", "csv", "openai-chat", "trl-sft", "trl-dpo", "review", "audit", "hub")
"""What ``holdfast export --format`` takes."""

REVIEW_LIMIT = 50
"""Conversations in a review, unless more are asked for."""

AUDIT_LIMIT = 200
"""Units of an audit, unless told otherwise."""

VERSION = 1
"""Of the object ``holdfast`` on each line; raised when a reader has to know of a change."""

TEXTS = ("prompt", "reply")


@dataclass(frozen=True)
class Export:
    """What will be written, already chosen.

    Attributes:
        noun: what one of them is called.
        count: how many are written.
        turns: how many turns the source has.
        content: the file, in pieces; or a table, written as the format says.
        left_out: how many of these turns are in none, by reason; where every turn is, none.
        origins: how many of the source's turns are ``simulated``, ``imported`` or ``asked``.
        notes: what else a reader must know, one line each.
    """

    noun: str
    count: int
    turns: int
    content: Iterator[bytes] | pl.DataFrame
    left_out: Mapping[str, int] = field(default_factory=dict)
    origins: Mapping[str, int] = field(default_factory=dict)
    notes: Sequence[str] = ()


def export(turns: pl.DataFrame, format: str, limit: int | None = None, seed: int = 0) -> Export:
    """Choose what of a turns table a format writes.

    Args:
        turns: a turns table; all formats but ``parquet``, ``csv`` and ``hub`` need its texts.
        format: one of ``FORMATS``; ``hub`` is a folder (``write_hub``).
        limit: at most so many rows, conversations or pairs are written; all unless given, of a
            review 50, of an audit 200.
        seed: of the sample of an audit.

    Raises:
        InputError: the format is unknown, the limit no number above 0, or texts are wanted and
            the table has none.
    """
    if format not in FORMATS:
        raise unknown("format", format, FORMATS, "--format")
    if limit is not None and limit < 1:
        raise InputError(f"is {limit}", field="--limit", remedy="Give 1 or more")
    wants_text = format not in ("parquet", "csv", "hub")
    if wants_text and turns.height and turns["reply"].null_count() == turns.height:
        raise InputError(
            "the turns have no texts, they were written with --no-text",
            field="--format",
            remedy="Give the log dir with its logs, or choose parquet or csv",
        )
    match format:
        case "parquet" | "csv" | "hub":
            return _table(turns, format, limit)
        case "openai-chat":
            return _chats(turns, limit)
        case "trl-sft":
            return _demonstrations(turns, limit)
        case "trl-dpo":
            return _pairs(turns, limit)
        case "audit":
            return _audit(turns, AUDIT_LIMIT if limit is None else limit, seed)
        case _:
            return _review(turns, REVIEW_LIMIT if limit is None else limit)


def write_table(table: pl.DataFrame, format: str, file: BinaryIO) -> None:
    """Write a table in the format of an export: Parquet, or CSV for data tools or spreadsheets."""
    if format == "parquet":
        write_parquet(table, file)
    else:
        # without its mark, spreadsheets do not take a CSV for UTF-8; data tools stumble over it
        table.write_csv(file, include_bom=format in ("review", "audit"))


def _table(turns: pl.DataFrame, format: str, limit: int | None) -> Export:
    selected_turns = turns[:limit]
    safe_turns = safe_cells(selected_turns) if format == "csv" else selected_turns
    return _export(
        "turn", selected_turns.height, turns, safe_turns, {}, turns.height - selected_turns.height
    )


def _chats(turns: pl.DataFrame, limit: int | None) -> Export:
    of = dialogues(turns)
    ends = of.ends()[:limit]
    beyond = turns.height - len({row for end in ends for row in of.up_to(end)})
    return _export("conversation", len(ends), turns, chat_lines(turns, of, ends), {}, beyond)


def _demonstrations(turns: pl.DataFrame, limit: int | None) -> Export:
    of = dialogues(turns)
    usable_turns = usable(turns, of)
    all_rows, left_out = demonstrations(turns, usable_turns)
    exported_rows = all_rows[:limit]
    lines = demonstration_lines(turns, of, exported_rows, usable_turns)
    notes = _kinds(usable_turns.turns[row].kind for row in exported_rows)
    beyond = len(all_rows) - len(exported_rows)
    return _export("conversation", len(exported_rows), turns, lines, left_out, beyond, notes)


def _pairs(turns: pl.DataFrame, limit: int | None) -> Export:
    of = dialogues(turns)
    all_pairs, left_out = pairs(turns, usable(turns, of))
    exported_pairs = all_pairs[:limit]
    notes = _kinds(pair.kind for pair in exported_pairs)
    borrowed_count = sum(pair.prefix == "chosen" for pair in exported_pairs)
    if borrowed_count:
        reason = "the rejected reply was given after other words for the same answers"
        notes = (*notes, f'In {borrowed_count} {reason} (holdfast.prefix is "chosen").')
    lines, beyond = (
        pair_lines(turns, of, exported_pairs),
        2 * (len(all_pairs) - len(exported_pairs)),
    )
    return _export("pair", len(exported_pairs), turns, lines, left_out, beyond, notes)


def _review(turns: pl.DataFrame, limit: int) -> Export:
    of = dialogues(turns)
    all_shifts, left_out = shifts(turns, of)
    exported_shifts = all_shifts[:limit]
    sheet, cut = review_sheet(turns, of, exported_shifts)
    beyond = len(all_shifts) - len(exported_shifts)
    return _export(
        "conversation",
        len(exported_shifts),
        turns,
        sheet,
        left_out,
        beyond,
        _describe_shortening(cut),
    )


def _audit(turns: pl.DataFrame, limit: int, seed: int) -> Export:
    sample = drawn(turns, limit, seed)
    sheet, cut = audit_sheet(turns, dialogues(turns), sample)
    inside = {row for pair in sample.select("row", "first_row").rows() for row in pair} - {None}
    left_out = {"not drawn": turns.height - len(inside)}
    return _export("row", sheet.height, turns, sheet, left_out, 0, _describe_shortening(cut))


def _describe_shortening(cut: int) -> list[str]:
    note = f"{cut} of the cells were too long for a spreadsheet and lost their middle."
    return [note] if cut else []


def _export(
    noun: str,
    count: int,
    turns: pl.DataFrame,
    content: Iterator[bytes] | pl.DataFrame,
    left_out: Mapping[str, int],
    beyond: int,
    notes: Sequence[str] = (),
) -> Export:
    counts = {reason: n for reason, n in sorted(left_out.items()) if n}
    counts |= {"beyond the limit": beyond} if beyond else {}
    origins: Counter[str] = Counter()
    for run, model, n in turns.group_by("run", "model", maintain_order=True).len().iter_rows():
        origins[origin(run, model)] += n
    ordered_origins = dict(sorted(origins.items()))
    return Export(noun, count, turns.height, content, counts, ordered_origins, notes)


def _kinds(kinds: Iterable[str]) -> tuple[str, ...]:
    """How many show what, in a line; none where there are none."""
    counts = ", ".join(f"{kind} {n}" for kind, n in sorted(Counter(kinds).items()))
    return (f"Kinds: {counts}.",) if counts else ()


def chat_lines(turns: pl.DataFrame, of: Dialogues, ends: Sequence[int]) -> Iterator[bytes]:
    r"""Conversations up to the rows that end them, one JSON object a line.

    ``messages`` holds the user and the assistant message of every turn; ``holdfast`` the
    ``version`` and ``rows``: for each turn all columns of the turns table but prompt and reply,
    and ``row``, its place in the table. A turn that several conversations share, such as a first
    answer, stands in each with the same ``row``. Numbers that JSON lacks stand as the strings
    ``NaN``, ``Infinity`` and ``-Infinity``; everything beyond ASCII is written ``\uXXXX``, so that
    nothing in a text can end a line.
    """
    turns_without_text = turns.drop(TEXTS, strict=False)
    for chats, texts in chats_of(turns, of, ends):
        row_fields = dict(zip(texts, turns_without_text[list(texts)].rows(named=True), strict=True))
        # of the many conversations that share a first answer, its row is written out once
        json_by_row = {
            row: json_text({"row": row} | _finite(row_fields[row])) for row in row_fields
        }
        for chat in chats:
            rows = ", ".join(json_by_row[row] for row in chat)
            about = f'{{"version": {VERSION}, "rows": [{rows}]}}'
            messages_json = json_text(messages(texts, chat))
            yield f'{{"messages": {messages_json}, "holdfast": {about}}}\n'.encode()


def _finite(columns: dict[str, Any]) -> dict[str, Any]:
    """The columns with names for the numbers that JSON lacks."""
    return {
        name: {math.inf: "Infinity", -math.inf: "-Infinity"}.get(value, "NaN")
        if isinstance(value, float) and not math.isfinite(value)
        else value
        for name, value in columns.items()
    }
