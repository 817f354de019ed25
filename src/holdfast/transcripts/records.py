"""Records: the rows of a file of transcripts, one after the other, with the row they stand in."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from holdfast.errors import InputError
from holdfast.questions import check_file, csv_rows, json_rows, read_rows
from holdfast.results import is_ours

Record = tuple[int, Any]
"""1-based row (line of a JSONL file, data row of a table), and its text or its fields."""

SUFFIXES = (".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".parquet", ".eval")

_UNDECODED = re.compile("[\udc80-\udcff]")


def read_records(
    path: Path, encoding: str = "utf-8", delimiter: str | None = None
) -> Iterator[Record]:
    """The records of a file, streamed; lines of JSONL as text, to be taken apart elsewhere."""
    check_file(path)
    match path.suffix.lower():
        case ".jsonl" | ".ndjson":
            for number, line in enumerate(_lines(path, encoding), start=1):
                if line.strip():
                    yield number, line
        case ".json":
            for number, value in json_rows("".join(_lines(path, encoding)), path):
                yield number, None if isinstance(value, str) else value
        case ".csv" | ".tsv" as suffix:
            yield from _table(path, encoding, delimiter or ("\t" if suffix == ".tsv" else ","))
        case ".parquet":
            yield from read_rows(path)
        case ".eval":
            yield from read_log(path)
        case other:
            remedy = f"Use one of {', '.join(SUFFIXES)}"
            raise InputError(
                f"unknown kind of file '{other or path.name}'", str(path), remedy=remedy
            )


def fields_of(record: Record, file: str) -> dict[str, Any]:
    """The fields of a record."""
    number, value = record
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError) as error:  # ValueError: a number of 4,301 digits
            what = f"broken JSON ({error})"
            raise InputError(what, file, number, remedy="Fix the line") from error
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
    remedy = "Save the file as UTF-8, or name its encoding in the mapping"
    what = f"line {line} of the file is not {encoding.upper()}"
    return InputError(what, str(path), row, remedy=remedy)


def _table(path: Path, encoding: str, delimiter: str) -> Iterator[Record]:
    number = 0
    lines = _lines(path, encoding, lambda _: number + 1)
    for number, (_, row) in enumerate(csv_rows(lines, delimiter, path), start=1):
        if isinstance(row, str):
            remedy = "Fix the row, or name the delimiter in the mapping"
            raise InputError(row, str(path), number, remedy=remedy)
        yield number, row


_UNREAD = {"events", "attachments", "timelines", "events_data", "store"}


def read_log(path: Path) -> Iterator[Record]:
    """The samples of an Inspect log in their order, by the names that docs/importing.md gives."""
    from inspect_ai.log import read_eval_log, read_eval_log_samples  # takes long to load

    try:
        header = read_eval_log(str(path), header_only=True)
    except Exception as error:  # the library raises many kinds for one meaning: no log
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        what = f"cannot be read as an Inspect log ({reason})"
        raise InputError(what, str(path), remedy="Check the file") from error
    if is_ours(header):
        remedy = "Give it to 'holdfast table' as it is; nothing is to be imported"
        raise InputError("is a log of holdfast's own", str(path), remedy=remedy)
    spec = header.eval
    shared = {"model": spec.model, "task": spec.task, "dataset": spec.dataset.name or spec.task}
    samples = read_eval_log_samples(str(path), all_samples_required=False, exclude_fields=_UNREAD)
    for number, sample in enumerate(samples, start=1):
        target, scores = sample.target, sample.scores or {}
        yield (
            number,
            {
                **shared,
                "id": str(sample.id),
                "epoch": sample.epoch,
                "input": sample.input if isinstance(sample.input, str) else None,
                "choices": sample.choices,
                "target": target if isinstance(target, str) else ">".join(target),
                "messages": [message.model_dump(exclude_none=True) for message in sample.messages],
                "scores": {
                    name: {"value": score.value, "answer": score.answer}
                    for name, score in scores.items()
                },
                "metadata": sample.metadata,
            },
        )
