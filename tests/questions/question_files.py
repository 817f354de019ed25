"""Files of questions in every kind of format, and how they load."""

import csv
import io
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from holdfast.errors import InputError
from holdfast.questions.fields import Fields
from holdfast.questions.loading import load_questions
from holdfast.questions.question import Question

Row = dict[str, Any]

MEDQA_ROW: Row = {
    "question": "A woman faints. Why?",
    "answer": "Syncope",
    "options": {"A": "Seizure", "B": "Syncope", "C": "Stroke", "D": "Sleep"},
    "meta_info": "step2&3",
    "answer_idx": "B",
}


def write_jsonl(path: Path, rows: Sequence[Row]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")


def write_json(path: Path, rows: Sequence[Row]) -> None:
    path.write_text(json.dumps(rows, ensure_ascii=False), "utf-8")


def write_csv(path: Path, rows: Sequence[Row], delimiter: str = ",") -> None:
    text = io.StringIO(newline="")
    writer = csv.writer(text, delimiter=delimiter)
    writer.writerow(rows[0])
    for row in rows:
        writer.writerow(
            json.dumps(cell) if isinstance(cell, (dict, list)) else cell for cell in row.values()
        )
    path.write_bytes(text.getvalue().encode())


def write_tsv(path: Path, rows: Sequence[Row]) -> None:
    write_csv(path, rows, "\t")


def write_parquet(path: Path, rows: Sequence[Row]) -> None:
    pl.DataFrame(list(rows)).write_parquet(path)


KINDS: dict[str, Callable[[Path, Sequence[Row]], None]] = {
    "jsonl": write_jsonl,
    "ndjson": write_jsonl,
    "json": write_json,
    "csv": write_csv,
    "tsv": write_tsv,
    "parquet": write_parquet,
}


def write(folder: Path, kind: str, *rows: Row) -> str:
    """A file of this kind."""
    path = folder / f"set.{kind}"
    KINDS[kind](path, rows)
    return str(path)


def jsonl(folder: Path, *rows: object) -> str:
    """A JSONL file of these rows; text stands for a line as it is."""
    path = folder / "set.jsonl"
    lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return str(path)


def without(row: Row, *names: str) -> Row:
    return {name: value for name, value in row.items() if name not in names}


def only(source: str, columns: Fields | None = None) -> Question:
    """The one question of a file."""
    (question,) = load_questions(source, columns).questions
    return question


def refusal(source: str, columns: Fields | None = None) -> InputError:
    """The error with which a file is refused: one line with a remedy."""
    with pytest.raises(InputError) as caught:
        load_questions(source, columns)
    assert str(caught.value).splitlines() == [str(caught.value)]
    assert caught.value.remedy
    return caught.value
