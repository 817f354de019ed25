"""Export of a turns table for people, spreadsheets and training."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, BinaryIO

import polars as pl

from holdfast.errors import InputError, counted, unknown
from holdfast.parquet import write_parquet
from holdfast.spreadsheet import safe_cells

from .audit_sheet import audit_sheet, drawn
from .dialogues import Dialogues, chats_of, dialogues, json_text, messages
from .review import review_sheet, shifts
from .training import demonstration_lines, demonstrations, origin, pair_lines, pairs, usable

FORMATS = ("parquet", "csv", "openai-chat", "trl-sft", "trl-dpo", "review", "audit", "hub")
"""Formats of ``holdfast export --format``."""

REVIEW_LIMIT = 50
"""Default number of conversations in a review."""

AUDIT_LIMIT = 200
"""Default number of units in an audit."""

VERSION = 1
"""Version of the object ``holdfast`` on each line. Raise it if readers must know of a change."""

TEXTS = ("prompt", "reply")


@dataclass(frozen=True)
class Export:
    """Selected rows of an export.

    Attributes:
        noun: name of an exported item.
        count: number of exported items.
        turns: number of turns in the source.
        content: the file in pieces, or a table that ``write_table`` writes.
        left_out: number of turns that no item contains, by reason.
        origins: number of turns in the source that are ``simulated``, ``imported`` or ``asked``.
        notes: notes for the reader, one line each.
    """

    noun: str
    count: int
    turns: int
    content: Iterator[bytes] | pl.DataFrame
    left_out: Mapping[str, int] = field(default_factory=dict)
    origins: Mapping[str, int] = field(default_factory=dict)
    notes: Sequence[str] = ()


def export(turns: pl.DataFrame, format: str, limit: int | None = None, seed: int = 0) -> Export:
    """Select the rows of a turns table for a format.

    Args:
        turns: turns table. All formats except ``parquet``, ``csv`` and ``hub`` need its texts.
        format: one of ``FORMATS``. ``hub`` is a folder (``write_hub``).
        limit: maximum number of rows, conversations or pairs. None means all, or 50 for a review
            and 200 for an audit.
        seed: seed of the sample of an audit.

    Raises:
        InputError: the format is unknown, the limit is below 1, or the table lacks texts that the
            format needs.
    """
    if format not in FORMATS:
        raise unknown("format", format, FORMATS, "--format")
    if limit is not None and limit < 1:
        raise InputError(f"is {limit}, which is below 1", field="--limit", remedy="Give 1 or more")
    wants_text = format not in ("parquet", "csv", "hub")
    if wants_text and turns.height and turns["reply"].null_count() == turns.height:
        raise InputError(
            "the turns have no texts, because they were written with --no-text",
            field="--format",
            remedy="Give the log directory with its logs, or choose parquet or csv",
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
    """Write a table as Parquet, or as CSV for data tools or spreadsheets."""
    if format == "parquet":
        write_parquet(table, file)
    else:
        # spreadsheets need the mark to read a CSV as UTF-8, but data tools fail at it
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
        reason = "the rejected reply follows other words for the same answers"
        notes = (
            *notes,
            f'In {counted(borrowed_count, "pair")}, {reason} (holdfast.prefix is "chosen").',
        )
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
    note = (
        f"{counted(cut, 'cell')} exceeded the length limit of a spreadsheet. "
        "The export cut out the middle."
    )
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
    """Return the number of items by kind in a line, or nothing if there are none."""
    counts = ", ".join(f"{kind} {n}" for kind, n in sorted(Counter(kinds).items()))
    return (f"Kinds: {counts}.",) if counts else ()


def chat_lines(turns: pl.DataFrame, of: Dialogues, ends: Sequence[int]) -> Iterator[bytes]:
    r"""Yield conversations up to their last rows, one JSON object per line.

    ``messages`` has the user and assistant message of every turn. ``holdfast`` has the ``version``
    and ``rows``: for each turn all columns of the turns table except prompt and reply, and ``row``,
    its position in the table. A turn that several conversations share, such as a first answer, has
    the same ``row`` in each. Numbers that JSON lacks become the strings ``NaN``, ``Infinity`` and
    ``-Infinity``. Characters beyond ASCII become ``\uXXXX``, so no text can break a line.
    """
    turns_without_text = turns.drop(TEXTS, strict=False)
    for chats, texts in chats_of(turns, of, ends):
        row_fields = dict(zip(texts, turns_without_text[list(texts)].rows(named=True), strict=True))
        # many conversations share a first answer: serialise its row once
        json_by_row = {
            row: json_text({"row": row} | _finite(row_fields[row])) for row in row_fields
        }
        for chat in chats:
            rows = ", ".join(json_by_row[row] for row in chat)
            about = f'{{"version": {VERSION}, "rows": [{rows}]}}'
            messages_json = json_text(messages(texts, chat))
            yield f'{{"messages": {messages_json}, "holdfast": {about}}}\n'.encode()


def _finite(columns: dict[str, Any]) -> dict[str, Any]:
    """Return the columns with names for the numbers that JSON lacks."""
    return {
        name: {math.inf: "Infinity", -math.inf: "-Infinity"}.get(value, "NaN")
        if isinstance(value, float) and not math.isfinite(value)
        else value
        for name, value in columns.items()
    }
