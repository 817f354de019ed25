"""``holdfast export``: whole files or none, counts, and the loaders of `datasets`."""

import csv
import json
import os
from importlib import import_module
from pathlib import Path
from typing import Any

import datasets
import polars as pl
import pytest
from benchmarks.drive import measured
from polars.testing import assert_frame_equal
from tests.results.frames import turn
from tests.studies import HOLDFAST, holdfast, holdfast_apart
from tests.transcripts.export_frames import spoken

from holdfast.cli.transcripts import FORMATS
from holdfast.results.turns import SCHEMA
from holdfast.spreadsheet import plain_cells
from holdfast.transcripts.export import FORMATS as KNOWN

ROWS = [
    turn("q1", "A", reply="It is A.\u2028Surely."),
    turn("q1", "B", "push", suggested="B", model="m1"),
    turn("q1", "A", epoch=2, reply="It is A.\u2028Surely."),
    turn("q1", "A", "push", suggested="B", epoch=2, reply="=A, \U0001f9e0"),
    turn("q1", "C", epoch=3, reply="It is C."),
]


@pytest.fixture
def turns(tmp_path: Path) -> str:
    path = tmp_path / "turns.parquet"
    spoken(ROWS).write_parquet(path)
    return str(path)


def load_dataset(path: Path) -> Any:
    return datasets.load_dataset(
        "json", data_files=str(path), split="train", cache_dir=str(path.parent / "cache")
    )


def test_help_lists_formats_and_standard_output_works(turns: str, tmp_path: Path) -> None:
    assert FORMATS == KNOWN
    text = " ".join(holdfast("export", "--help").stdout.split())
    assert all(name in text for name in FORMATS)
    out = tmp_path / "chats.jsonl"
    holdfast("export", turns, "--format", "openai-chat", "-o", out)
    assert holdfast_apart("export", turns, "--format", "openai-chat").stdout == out.read_text()


def test_parquet_and_csv_are_the_turns_table(turns: str, tmp_path: Path) -> None:
    table, text = tmp_path / "t.parquet", tmp_path / "t.csv"
    assert holdfast("export", turns, "--format", "parquet", "-o", table).returncode == 0
    assert_frame_equal(pl.read_parquet(table), pl.read_parquet(turns))
    result = holdfast("export", turns, "--format", "csv", "-o", text)
    assert result.stderr == f"csv: 5 turns of 5 turns, in {text}\n"
    assert_frame_equal(plain_cells(pl.read_csv(text, schema=SCHEMA)), pl.read_parquet(turns))
    assert "'=A, " in text.read_text("utf-8")


def test_counts_are_printed_as_text_and_json(turns: str, tmp_path: Path) -> None:
    out = tmp_path / "pairs.jsonl"
    result = holdfast("export", turns, "--format", "trl-dpo", "-o", out, "--json")
    assert result.returncode == 0
    assert json.loads(result.stdout) == {
        "format": "trl-dpo",
        "file": str(out),
        "turns": 5,
        "pairs_written": 2,
        "left_out": {"repeated words": 1},
        "origins": {"asked": 5},
        "notes": ["Kinds: first 1, retained 1."],
    }
    assert result.stderr.splitlines() == [
        f"trl-dpo: 2 pairs of 5 turns, in {out}",
        "Turns skipped: 1 repeated words.",
        "Kinds: first 1, retained 1.",
    ]


def test_simulated_replies_are_announced(tmp_path: Path) -> None:
    path = tmp_path / "turns.parquet"
    rows = [row | {"model": "simulated/sycophant"} for row in ROWS]
    rows += [row | {"run": "imported-1"} for row in ROWS]
    spoken(rows).write_parquet(path)
    result = holdfast("export", path, "--format", "trl-sft", "-o", tmp_path / "s.jsonl")
    assert "SIMULATED, not a measurement of a model: 5 turns." in result.stderr
    assert "IMPORTED, not collected by holdfast: 5 turns." in result.stderr


def test_datasets_reads_the_training_data(turns: str, tmp_path: Path) -> None:
    files = {format: tmp_path / f"{format}.jsonl" for format in FORMATS[2:5]}
    for format, path in files.items():
        assert holdfast("export", turns, "--format", format, "-o", path).returncode == 0
    chats, demonstrations, pairs = (load_dataset(path) for path in files.values())
    assert chats.num_rows == 3
    assert chats[0]["messages"][1] == {"role": "assistant", "content": "It is A.\u2028Surely."}
    assert chats[1]["holdfast"]["rows"][1]["answer"] == "A"
    assert set(demonstrations.column_names) == {"messages", "holdfast"}
    assert demonstrations["holdfast"][0]["kind"] == "retained"
    assert [message["role"] for message in demonstrations["messages"][0]] == [
        "user",
        "assistant",
    ] * 2
    assert set(pairs.column_names) == {"prompt", "chosen", "rejected", "holdfast"}
    assert pairs[1]["chosen"] == [{"role": "assistant", "content": "=A, \U0001f9e0"}]
    assert pairs[1]["prompt"][-1]["role"] == "user"
    strict = pairs.filter(lambda pair: pair["holdfast"]["prefix"] == "same")
    assert strict.num_rows == 2


def test_a_review_opens_in_a_spreadsheet(turns: str, tmp_path: Path) -> None:
    out = tmp_path / "review.csv"
    assert holdfast("export", turns, "--format", "review", "-o", out).returncode == 0
    assert out.read_bytes().startswith(b"\xef\xbb\xbfrank,verdict,comment,")
    with out.open(encoding="utf-8-sig", newline="") as file:
        (row,) = csv.DictReader(file)
    assert (row["shift"], row["verdict"], row["before"], row["after"]) == (
        "right to pushed", "", "A", "B",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "fact"),
    [
        (["--format", "trl-dp"], "Did you mean 'trl-dpo'"),
        (["--format", "csv", "--limit", "0"], "Invalid value for '--limit'"),
        (["--format", "csv", "--json"], "--json: standard output cannot hold both"),
        (["--format", "csv", "-o", "no/such/place.csv"], "no/such/place.csv: cannot be written"),
        (["--format", "csv", "-o", "nul\0.csv"], "cannot be written"),
    ],
)
def test_bad_arguments_end_in_one_line(
    arguments: list[str], fact: str, turns: str, tmp_path: Path
) -> None:
    result = holdfast("export", turns, *arguments)
    assert (result.returncode, result.stdout) == (2, "")
    assert fact in result.stderr
    assert result.stderr.count("\n") == 1
    assert os.listdir(tmp_path) == ["turns.parquet"]


def test_a_table_without_texts_or_a_missing_log_dir_is_refused(turns: str, tmp_path: Path) -> None:
    path = tmp_path / "silent.parquet"
    pl.read_parquet(turns).drop("prompt", "reply").write_parquet(path)
    for format in FORMATS[2:-1]:
        result = holdfast("export", path, "--format", format, "-o", tmp_path / "out")
        assert result.returncode == 2
        assert "no texts" in result.stderr
    assert holdfast("export", path, "--format", "csv", "-o", tmp_path / "out").returncode == 0
    result = holdfast("export", tmp_path / "none", "--format", "csv", "-o", tmp_path / "out")
    assert (result.returncode, "no such log dir" in result.stderr) == (2, True)


def test_a_failed_write_leaves_the_earlier_file(
    turns: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out.jsonl"
    out.write_text("before")

    def fails(*_: object) -> None:
        raise OSError(28, "No space left on device")

    # the package has a function of the module's name
    monkeypatch.setattr(import_module("holdfast.transcripts.export"), "json_text", fails)
    result = holdfast("export", turns, "--format", "openai-chat", "-o", out)
    assert result.returncode == 2
    assert "cannot be written (No space left on device)" in result.stderr
    assert out.read_text() == "before"
    assert sorted(os.listdir(tmp_path)) == ["out.jsonl", "turns.parquet"]


@pytest.mark.slow
def test_exports_take_bounded_time_and_memory(tmp_path: Path) -> None:
    path, out = tmp_path / "many.parquet", tmp_path / "many.jsonl"
    words = "reasoning " * 100
    rows = [
        turn(f"q{n}", "A" if n % 3 else "B", path, suggested="B" if path else None,
             reply=f"{words}{n} {path}")
        for n in range(2_000)
        for path in ("", *(f"push{k}" for k in range(10)))
    ]  # fmt: skip
    spoken(rows).write_parquet(path)
    cost = measured(
        [str(HOLDFAST), "export", str(path), "--format", "openai-chat", "-o", str(out)],
        tmp_path / "output",
    )
    # 20,000 conversations: a tenth of the number that may take a minute and 2 GB
    assert cost.cpu_s < 30
    assert cost.peak_rss_mb < 780
    assert sum(1 for _ in out.open()) == 20_000
