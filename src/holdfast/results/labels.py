"""Labels of questions next to the logs: strata that replace those of the question file."""

import json
import zlib
from collections.abc import Iterable, Mapping
from typing import Any

import polars as pl

from holdfast.files import putting

from .readings import newest_readings

LABELS_FILE = "labels.jsonl"
"""Name of the label file in a log directory; its labels apply to every table of the directory."""

_QUESTION = ("dataset", "question")
_CHECKSUM = "crc32"


def with_labels(turns: pl.DataFrame, log_dir: str, strata: tuple[str, ...]) -> pl.DataFrame:
    """Replace the strata of the turns by those of the log directory's label file."""
    rows = label_rows(log_dir)
    if rows is None:
        return turns
    # name every column, because polars infers an empty column if its values start late
    names = (*_QUESTION, *strata)
    cells = [[row.get(name) for name in names] for row in rows]
    labels = pl.DataFrame(cells, dict.fromkeys(names, pl.String()), orient="row")
    labels = labels.unique(_QUESTION, keep="last")
    labelled_turns = turns.join(
        labels, on=_QUESTION, how="left", suffix=" label", validate="m:1", maintain_order="left"
    )
    return labelled_turns.with_columns(
        pl.coalesce(pl.col(f"{name} label"), pl.col(name)).alias(name) for name in strata
    ).select(turns.columns)


def label_rows(log_dir: str) -> list[dict[str, str]] | None:
    """Read the rows of the log directory's label file, None without one.

    Raises:
        InputError: the file cannot be read, or the checksum of a row does not match its content.
    """
    remedy = "Remove the file and repeat the command of its run with --labels FILE"
    return newest_readings(log_dir, LABELS_FILE, _rows, "cannot be read as labels", remedy)


def put_labels(rows: Iterable[Mapping[str, str]], log_dir: str) -> None:
    """Write the label file of a log directory, with a checksum in each row."""
    with putting(log_dir, LABELS_FILE) as file:
        for row in rows:
            with_checksum = {**row, _CHECKSUM: _checksum(row)}
            file.write(f"{json.dumps(with_checksum, ensure_ascii=False)}\n".encode())


def _rows(content: bytes) -> list[dict[str, str]]:
    lines = enumerate(content.decode().split("\n"), start=1)  # labels can contain line separators
    return [_row(number, json.loads(line)) for number, line in lines if line]


def _row(number: int, row: Any) -> dict[str, str]:
    if not isinstance(row, dict) or not all(isinstance(row.get(name), str) for name in _QUESTION):
        raise ValueError(f"row {number} does not name a question")
    checksum = row.pop(_CHECKSUM, None)
    if not all(isinstance(value, str) for value in row.values()):
        raise ValueError(f"row {number} contains something other than text")
    if checksum != _checksum(row):
        raise ValueError(f"row {number} is damaged: its checksum does not match")
    return row


def _checksum(row: Mapping[str, str]) -> int:
    return zlib.crc32(json.dumps(sorted(row.items())).encode())
