"""Import of turns and conversations that holdfast exported."""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import polars as pl

from holdfast.errors import InputError
from holdfast.results.readings import as_recorded, first_readings
from holdfast.results.turns import SCHEMA, turns_table
from holdfast.spreadsheet import plain_cells

from .export import VERSION
from .transcript_rows import Record, fields_of, read_records

MARK = "holdfast"
"""Key of the object with the columns of the turns table."""

_FORMATS = {
    "run", "protocol_version", "question", "epoch", "arm", "path", "turn", "rule", "correct",
}  # fmt: skip
"""Columns that identify a turns table."""
_FLOATS = [name for name, dtype in SCHEMA.items() if dtype == pl.Float64]
_NUMBERED_SCHEMA: dict[str, Any] = {"row": pl.Int64(), **SCHEMA}
_ROWS_AT_ONCE = 4096


def is_exported(path: Path) -> bool:
    """Return whether ``holdfast export`` wrote a file, as parquet, csv or openai-chat.

    Raises:
        InputError: the file cannot be read.
    """
    match path.suffix.lower():
        case ".csv" | ".parquet":
            _, first = next(read_records(path), (0, None))
            return isinstance(first, dict) and _FORMATS <= first.keys()
        case ".jsonl" | ".ndjson":
            record = next(read_records(path), None)
            try:
                first = fields_of(record, str(path)) if record else {}
            except InputError:  # the import itself reports the fault
                return False
            mark = first.get(MARK)
            return isinstance(mark, dict) and "rows" in mark and "messages" in first
    return False


def read_exported(path: Path) -> pl.DataFrame:
    """Return the turns table of an export: its rows in order, each once.

    A turn that several conversations share comes from the first of them.
    """
    match path.suffix.lower():
        case ".parquet":
            return turns_table([str(path)])
        case ".csv":
            return _table(path)
    return _chats(path)


def _table(path: Path) -> pl.DataFrame:
    try:
        frame = pl.read_csv(path, schema_overrides=SCHEMA, glob=False)
    except (OSError, ValueError, pl.exceptions.PolarsError) as error:
        problem = f"cannot be read as an export of turns ({str(error).partition(chr(10))[0]})"
        remedy = "Export the turns again, because spreadsheets change the files that they save"
        raise InputError(problem, str(path), remedy=remedy) from error
    frame = first_readings(frame)
    absent = [pl.lit(None, SCHEMA[name]).alias(name) for name in SCHEMA if name not in frame]
    return plain_cells(frame.with_columns(absent).select(*SCHEMA))


def _chats(path: Path) -> pl.DataFrame:
    row_numbers: set[int] = set()
    frames = [pl.DataFrame(schema=_NUMBERED_SCHEMA)]
    rows: list[dict[str, Any]] = []
    for record in read_records(path):
        for row in _rows(record, str(path)):
            if row["row"] not in row_numbers:
                row_numbers.add(row["row"])
                rows.append(row)
        if len(rows) >= _ROWS_AT_ONCE:
            frames.append(_frame(rows, str(path), record[0]))
            rows = []
    frames.append(_frame(rows, str(path), None))
    return pl.concat(frames).sort("row").drop("row")


def _rows(record: Record, file: str) -> Iterator[dict[str, Any]]:
    line, number = fields_of(record, file), record[0]

    def refused(problem: str, field: str = MARK) -> InputError:
        return InputError(problem, file, number, field, "Export the conversations again")

    mark, messages = line.get(MARK), line.get("messages")
    if not isinstance(mark, dict) or not isinstance(mark.get("rows"), list):
        raise refused("is missing or contains no rows, unlike the first line")
    if mark.get("version") != VERSION:
        raise refused(
            f"has version {mark.get('version')}, but this holdfast reads version {VERSION}"
        )
    if not isinstance(messages, list) or not all(isinstance(item, dict) for item in messages):
        raise refused("is not a list of messages", "messages")
    texts_said = [
        (before.get("content") if before.get("role") == "user" else None, message.get("content"))
        for before, message in pairwise([{}, *messages])
        if message.get("role") == "assistant"
    ]
    if len(texts_said) != len(mark["rows"]):
        raise refused(f"has {len(mark['rows'])} rows for {len(texts_said)} replies")
    for (prompt, reply), row in zip(texts_said, mark["rows"], strict=True):
        if not isinstance(row, dict) or type(row.get("row")) is not int:
            raise refused("contains a row without its number")
        for unknown in sorted(map(str, row.keys() - _NUMBERED_SCHEMA.keys())):
            raise refused(f"contains the unknown column '{unknown}'")
        for name in _FLOATS:
            if isinstance(row.get(name), str):  # NaN and the infinities, which JSON lacks
                try:
                    row[name] = float(row[name])
                except ValueError:
                    raise refused(f"contains no number in '{name}'") from None
        yield {**as_recorded(row), "prompt": prompt, "reply": reply}


def _frame(rows: list[dict[str, Any]], file: str, line: int | None) -> pl.DataFrame:
    columns = {name: [row.get(name) for row in rows] for name in _NUMBERED_SCHEMA}
    try:
        return pl.DataFrame(columns, schema=_NUMBERED_SCHEMA)
    except (TypeError, ValueError, OverflowError, pl.exceptions.PolarsError) as error:
        problem = f"contains a value of another type than its column ({error})"
        raise InputError(problem, file, line, MARK, "Export the conversations again") from error
