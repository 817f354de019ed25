"""Export: a turns table as files that people, spreadsheets and trainers read."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import BinaryIO

import polars as pl

from holdfast.cells import safe_cells
from holdfast.errors import InputError, did_you_mean

from .chats import chat_lines
from .dialogues import dialogues
from .pairs import pair_lines, pairs
from .review import review_sheet, shifts
from .training import demonstration_lines, demonstrations, origin, usable

FORMATS = ("parquet", "csv", "openai-chat", "trl-sft", "trl-dpo", "review")
"""What ``holdfast export --format`` takes."""

REVIEWED = 50
"""Conversations in a review, unless more are asked for."""


@dataclass(frozen=True)
class Export:
    """What will be written, already chosen.

    Attributes:
        noun: what one of them is called.
        count: how many are written.
        turns: how many turns the source has.
        left_out: how many of these turns are in none, by reason; where every turn is, none.
        origins: how many of the source's turns are ``simulated``, ``imported`` or ``asked``.
        notes: what else a reader must know, one line each.
        content: the file, in pieces; or a table, written as the format says.
    """

    noun: str
    count: int
    turns: int
    content: Iterator[bytes] | pl.DataFrame
    left_out: Mapping[str, int] = field(default_factory=dict)
    origins: Mapping[str, int] = field(default_factory=dict)
    notes: Sequence[str] = ()


def export(turns: pl.DataFrame, format: str, limit: int | None = None) -> Export:
    """Choose what of a turns table a format writes.

    Args:
        turns: a turns table; all formats but ``parquet`` and ``csv`` need its texts.
        format: one of ``FORMATS``.
        limit: at most so many rows, conversations or pairs are written; all unless given, of a
            review 50.

    Raises:
        InputError: the format is unknown, the limit no number above 0, or texts are wanted and
            the table has none.
    """
    if format not in FORMATS:
        raise InputError(
            f"unknown format '{format}'", field="--format", remedy=did_you_mean(format, FORMATS)
        )
    if limit is not None and limit < 1:
        raise InputError(f"is {limit}", field="--limit", remedy="Give 1 or more")
    wants_text = format not in ("parquet", "csv")
    if wants_text and turns.height and turns["reply"].null_count() == turns.height:
        raise InputError(
            "the turns have no texts, they were written with --no-text",
            field="--format",
            remedy="Give the log dir with its logs, or choose parquet or csv",
        )
    match format:
        case "parquet" | "csv":
            return _table(turns, format, limit)
        case "openai-chat":
            return _chats(turns, limit)
        case "trl-sft":
            return _demonstrations(turns, limit)
        case "trl-dpo":
            return _pairs(turns, limit)
        case _:
            return _review(turns, REVIEWED if limit is None else limit)


def write_table(table: pl.DataFrame, format: str, file: BinaryIO) -> None:
    """Write a table in the format of an export: Parquet, or CSV for data tools or spreadsheets."""
    if format == "parquet":
        table.write_parquet(file, compression="zstd", row_group_size=4096)
    else:
        # without its mark, spreadsheets do not take a CSV for UTF-8; data tools stumble over it
        table.write_csv(file, include_bom=format == "review")


def _table(turns: pl.DataFrame, format: str, limit: int | None) -> Export:
    kept = turns.head(turns.height if limit is None else limit)
    left_out = _beyond({}, turns.height - kept.height)
    written = safe_cells(kept) if format == "csv" else kept
    return Export("turn", kept.height, turns.height, written, left_out, _origins(turns))


def _chats(turns: pl.DataFrame, limit: int | None) -> Export:
    of = dialogues(turns)
    ends = of.ends()
    kept = ends[:limit]
    covered = turns.height
    if len(kept) < len(ends):
        covered = len({row for end in kept for row in of.up_to(end)})
    return Export(
        "conversation",
        len(kept),
        turns.height,
        chat_lines(turns, of, kept),
        _beyond({}, turns.height - covered),
        _origins(turns),
    )


def _demonstrations(turns: pl.DataFrame, limit: int | None) -> Export:
    of = dialogues(turns)
    told = usable(turns, of)
    chosen, left_out = demonstrations(turns, told)
    kept = chosen[:limit]
    return Export(
        "conversation",
        len(kept),
        turns.height,
        demonstration_lines(turns, of, kept, told.kind),
        _beyond(left_out, len(chosen) - len(kept)),
        _origins(turns),
        (_kinds(told.kind[row] for row in kept),) if kept else (),
    )


def _pairs(turns: pl.DataFrame, limit: int | None) -> Export:
    of = dialogues(turns)
    found, left_out = pairs(turns, usable(turns, of))
    kept = found[:limit]
    notes = []
    if kept:
        notes = [_kinds(pair.kind for pair in kept)]
    borrowed = sum(pair.prefix == "chosen" for pair in kept)
    if borrowed:
        notes.append(
            f"In {borrowed} the rejected reply was given after other words for the same answers "
            '(holdfast.prefix is "chosen").'
        )
    return Export(
        "pair",
        len(kept),
        turns.height,
        pair_lines(turns, of, kept),
        _beyond(left_out, 2 * (len(found) - len(kept))),
        _origins(turns),
        notes,
    )


def _review(turns: pl.DataFrame, limit: int) -> Export:
    of = dialogues(turns)
    found, turned_by, left_out = shifts(turns, of)
    kept = found[:limit]
    sheet, cut = review_sheet(turns, of, kept, turned_by)
    notes = []
    if cut:
        notes = [f"{cut} of the cells were too long for a spreadsheet and lost their middle."]
    return Export(
        "conversation",
        len(kept),
        turns.height,
        sheet,
        _beyond(left_out, len(found) - len(kept)),
        _origins(turns),
        notes,
    )


def _beyond(left_out: Mapping[str, int], more: int) -> dict[str, int]:
    counts = {reason: n for reason, n in sorted(left_out.items()) if n}
    return counts | ({"beyond the limit": more} if more else {})


def _kinds(kinds: Iterator[str]) -> str:
    return "Kinds: " + ", ".join(f"{kind} {n}" for kind, n in sorted(Counter(kinds).items())) + "."


def _origins(turns: pl.DataFrame) -> dict[str, int]:
    counts: Counter[str] = Counter()
    for run, model, n in turns.group_by("run", "model", maintain_order=True).len().iter_rows():
        counts[origin(run, model)] += n
    return dict(sorted(counts.items()))
