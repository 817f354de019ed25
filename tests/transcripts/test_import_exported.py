"""Exports of holdfast are read without a mapping."""

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal
from tests.studies import study, turns_of

from holdfast.errors import InputError
from holdfast.results.turns import SCHEMA
from holdfast.transcripts.export import export, write_table
from holdfast.transcripts.importing import import_transcripts
from holdfast.transcripts.reimport import is_exported

SUFFIXES = {"parquet": "parquet", "csv": "csv", "openai-chat": "jsonl"}


@pytest.fixture(scope="module")
def turns() -> pl.DataFrame:
    return turns_of(study("simulated/gpt-4.1", limit=1))


def write_export(turns: pl.DataFrame, format: str, folder: Path) -> Path:
    path = folder / f"export.{SUFFIXES[format]}"
    content = export(turns, format).content
    with path.open("wb") as file:
        if isinstance(content, pl.DataFrame):
            write_table(content, format, file)
        else:
            file.writelines(content)
    return path


@pytest.mark.parametrize("format", SUFFIXES)
def test_an_import_of_an_export_is_the_same_table(
    turns: pl.DataFrame, format: str, tmp_path: Path
) -> None:
    place = pl.int_range(pl.len()) % 4
    odd = turns.with_columns(
        reply=place.replace_strict(
            {0: "=1+1", 1: 'a\u2028b\r\n"q", {x} \x85', 2: "", 3: "'=x"}, return_dtype=pl.String
        ),
        p_gold=place.replace_strict(
            {0: float("nan"), 1: float("inf"), 2: None, 3: float("-inf")}, return_dtype=pl.Float64
        ),
        subject=place.replace_strict({0: "", 1: None, 2: "null", 3: "NaN"}, return_dtype=pl.String),
    )
    for table in (turns, odd):
        path = write_export(table, format, tmp_path)
        assert is_exported(path)
        copy = import_transcripts(path).turns
        assert copy.schema == SCHEMA
        assert_frame_equal(copy, table)


def line(**row: Any) -> dict[str, Any]:
    return {
        "messages": [{"role": "user", "content": "Q"}, {"role": "assistant", "content": "A"}],
        "holdfast": {"version": 1, "rows": [{"row": 0, "turn": 0, **row}]},
    }


@pytest.mark.parametrize(
    ("second", "fact"),
    [
        ({"messages": []}, "is missing or contains no rows"),
        (line(row="0"), "contains a row without its number"),
        (line(colour="red"), "contains the unknown column 'colour'"),
        (line(row=1, cost="dear"), "contains no number in 'cost'"),
        (line() | {"holdfast": {"version": 2, "rows": []}}, "has version 2"),
        (line() | {"messages": [{"role": "user", "content": "Q"}]}, "has 1 rows for 0 replies"),
        (line() | {"messages": "Q"}, "field 'messages': is not a list of messages"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, second: dict[str, Any], fact: str) -> None:
    path = tmp_path / "export.jsonl"
    path.write_text(f"{json.dumps(line())}\n{json.dumps(second)}\n")
    with pytest.raises(InputError) as caught:
        import_transcripts(path)
    assert (caught.value.file, caught.value.row) == (str(path), 2)
    assert fact in str(caught.value)
    path.write_text(json.dumps(line(epoch="one")))
    with pytest.raises(InputError, match="contains a value of another type"):
        import_transcripts(path)


def test_other_files_are_not_taken_for_exports(tmp_path: Path) -> None:
    for name, text in (("a.jsonl", '{"messages": []}\n'), ("b.csv", "run,turn\nx,1\n"),
                       ("c.jsonl", "{\n"), ("d.json", "[]")):  # fmt: skip
        (tmp_path / name).write_text(text)
        assert not is_exported(tmp_path / name)
