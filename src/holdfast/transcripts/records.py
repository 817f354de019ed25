"""Records: the rows of a file of transcripts, one after the other, with the row they stand in."""

import csv
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from holdfast.errors import InputError
from holdfast.questions import check_file, read_rows

Record = tuple[int, Any]
"""1-based row (line of a JSONL file, data row of a table), and its text or its fields."""

SUFFIXES = (".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".parquet", ".eval")

_UNDECODED = re.compile("[\udc80-\udcff]")


def read_records(path: Path, encoding: str = "utf-8", delimiter: str | None = None) -> (
    Iterator[Record]
):  # fmt: skip
    """The records of a file, streamed."""
    check_file(path)
    match path.suffix.lower():
        case ".jsonl" | ".ndjson":
            for number, line in enumerate(_lines(path, encoding), start=1):
                if line.strip():
                    yield number, line
        case ".json":
            yield from _array(path, encoding)
        case ".csv" | ".tsv" as suffix:
            yield from _table(path, encoding, delimiter or ("\t" if suffix == ".tsv" else ","))
        case ".parquet":
            yield from read_rows(path)
        case ".eval":
            from .inspect_logs import read_log  # the library takes long to load

            yield from read_log(path)
        case other:
            raise InputError(
                f"unknown kind of file '{other or path.name}'",
                str(path),
                remedy=f"Use one of {', '.join(SUFFIXES)}",
            )


def fields_of(record: Record, file: str) -> dict[str, Any]:
    """The fields of a record."""
    number, value = record
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError) as error:  # ValueError: a number of 4,301 digits
            raise InputError(f"broken JSON ({error})", file, number, remedy="Mend the line") from (
                error
            )
    if not isinstance(value, dict):
        raise InputError("is not a JSON object", file, number, remedy="Give one object a line")
    return value


def _lines(
    path: Path, encoding: str, row: Callable[[int], int] = lambda line: line
) -> Iterator[str]:
    """Lines, split at line feeds alone: U+2028 is legal inside a JSON text and a CSV cell."""
    named = "utf-8-sig" if encoding.lower().replace("_", "-") in ("utf-8", "utf8") else encoding
    number = 0
    try:
        # what cannot be decoded is kept until its line is known
        with path.open(encoding=named, errors="surrogateescape", newline="\n") as file:
            for line in file:
                number += 1
                if not line.isascii() and _UNDECODED.search(line):
                    raise _undecoded(path, number, row(number), encoding)
                yield line
    except UnicodeError as error:
        raise _undecoded(path, number + 1, row(number + 1), encoding) from error


def _undecoded(path: Path, line: int, row: int, encoding: str) -> InputError:
    return InputError(
        f"line {line} of the file is not {encoding.upper()}",
        str(path),
        row,
        remedy="Save the file as UTF-8, or name its encoding in the mapping",
    )


def _array(path: Path, encoding: str) -> Iterator[Record]:
    try:
        value = json.loads("".join(_lines(path, encoding)))
    except (ValueError, RecursionError) as error:
        raise InputError(f"broken JSON ({error})", str(path), remedy="Mend the file") from error
    if not isinstance(value, list):
        raise InputError("is not a JSON array of objects", str(path), remedy="Use JSONL instead")
    yield from ((n, None if isinstance(row, str) else row) for n, row in enumerate(value, start=1))


def _table(path: Path, encoding: str, delimiter: str) -> Iterator[Record]:
    csv.field_size_limit(2**31 - 1)
    number = 0
    lines = _lines(path, encoding, lambda _: number + 1)
    cells = csv.reader(lines, delimiter=delimiter, strict=True)
    try:
        header = next(cells, [])
        twice = sorted({name for name in header if header.count(name) > 1})
        if twice:
            raise InputError("is named twice", str(path), None, twice[0], "Rename one of the two")
        for row in cells:
            if not row:
                continue
            number += 1
            if len(row) != len(header):
                raise InputError(
                    f"has {len(row)} cells where the header has {len(header)}",
                    str(path),
                    number,
                    remedy="Mend the row, or name the delimiter in the mapping",
                )
            yield number, dict(zip(header, row, strict=True))
    except csv.Error as error:
        raise InputError(
            f"broken CSV ({error})", str(path), number + 1, remedy="Check the quotes"
        ) from error
