"""A data set folder with a card, and a CSV that spreadsheets and other tools open."""

import csv
import io
import shutil
import subprocess
from pathlib import Path

import datasets
import polars as pl
import pytest
import yaml
from polars.testing import assert_frame_equal
from tests.results.frames import turn
from tests.studies import holdfast
from tests.transcripts.export_frames import spoken

from holdfast.results.turns import SCHEMA
from holdfast.transcripts.export import export, write_table

ROWS = [
    turn("q1", "A", model="simulated/sycophant", dataset="medqa-followup"),
    turn("q1", "B", "push", suggested="B", model="simulated/sycophant", dataset="medqa-followup"),
    turn("q1", "A", model="m|1", run="imported-1", dataset="mine (no gold)"),
    turn("q2", "A", model="m2", dataset="medmisbench-MEDMISQA"),
]

HOSTILE = [
    "=1+1", "+A1", "-2", "@SUM(A1)", "\t=1", "\r=1", "'=1", 'say "hi", twice', "one\ntwo\r\nthree",
    "lone\rreturn", '=HYPERLINK("http://x","y")', "a,b;c\td", "\u2028x\u00a0", "{{ vars.x }}", "",
    " =1", "\ufeff=1", "file:///etc/passwd", "'file://x", "a file://x", "[1, 2]", '{"a": 1}',
]  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "turns.parquet"
    spoken(ROWS).write_parquet(path)
    result = holdfast("export", path, "--format", "hub", "-o", tmp_path / "set")
    assert result.returncode == 0, result.stderr
    assert result.stderr.startswith(f"hub: 4 turns of 4 turns, in {tmp_path / 'set'}\n")
    assert "SIMULATED, not a measurement of a model: 2 turns." in result.stderr
    return tmp_path / "set"


def test_datasets_loads_the_folder_as_it_is(folder: Path, tmp_path: Path) -> None:
    data_set = datasets.load_dataset(str(folder), split="test", cache_dir=str(tmp_path / "cache"))
    assert data_set.num_rows == 4
    assert_frame_equal(pl.DataFrame(data_set.to_dict(), schema=SCHEMA), spoken(ROWS))
    questions = holdfast("table", folder / "data" / "turns.parquet")
    assert questions.returncode == 0, questions.stderr


def test_the_card_has_counts_licences_and_origins(folder: Path) -> None:
    text = (folder / "README.md").read_text("utf-8")
    front, _, card = text.removeprefix("---\n").partition("\n---\n")
    header = yaml.safe_load(front)
    assert header["tags"] == ["holdfast", "simulated", "imported"]
    assert header["configs"][0]["data_files"] == [{"split": "test", "path": "data/turns.parquet"}]
    assert "4 turns on 2 questions" in card
    assert "- **SIMULATED: not a measurement of a model**: 2 turns\n" in card
    assert "- **IMPORTED: not collected by holdfast**: 1 turns\n" in card
    assert "- medqa-followup: MIT; cite Manczak et al. 2025, MedQA-Followup\n" in card
    assert "- medmisbench-MEDMISQA: other, terms not confirmed; cite Zhou" in card
    assert "- mine (no gold): not known to holdfast, so state it before you publish\n" in card
    (row,) = [line for line in card.splitlines() if "m\\|1" in line]
    assert row.count(" | ") == 8
    assert "| IMPORTED | 1 | 1 |" in row


def test_an_existing_folder_is_not_overwritten(folder: Path, tmp_path: Path) -> None:
    before = sorted(folder.rglob("*"))
    turns = tmp_path / "turns.parquet"
    result = holdfast("export", turns, "--format", "hub", "-o", folder)
    assert (result.returncode, result.stdout) == (2, "")
    assert "already exists. Name a new folder" in result.stderr
    assert sorted(folder.rglob("*")) == before
    assert "Give -o FOLDER" in holdfast("export", turns, "--format", "hub").stderr


def hostile() -> pl.DataFrame:
    rows = [turn(f"q{n}", "A", prompt=f"Q {n}", reply=text) for n, text in enumerate(HOSTILE)]
    return spoken(rows)


def test_the_csv_is_plain_and_computes_nothing(tmp_path: Path) -> None:
    content = export(hostile(), "csv").content
    assert isinstance(content, pl.DataFrame)
    file = io.BytesIO()
    write_table(content, "csv", file)
    text = file.getvalue().decode("utf-8")
    header, *rows = csv.reader(io.StringIO(text, newline=""), strict=True)
    assert header == SCHEMA.names()
    assert {len(row) for row in rows} == {len(header)}
    assert len(rows) == len(HOSTILE)
    at = header.index("reply")
    for row, reply in zip(rows, HOSTILE, strict=True):
        bare = reply.lstrip("'")
        active = bare[:1] in ("=", "+", "-", "@", "\t", "\r") and bare != ""
        active = active or bare.startswith("file://")
        assert row[at] == ("'" + reply if active else reply)
        # numbers are no texts; no other cell begins what a spreadsheet computes
        assert not any(cell[:1] in ("=", "+", "@", "\t", "\r") for cell in row)


@pytest.mark.skipif(shutil.which("soffice") is None, reason="LibreOffice is not installed")
def test_libreoffice_opens_the_csv(tmp_path: Path) -> None:
    with (tmp_path / "t.csv").open("wb") as file:
        content = export(hostile(), "csv").content
        assert isinstance(content, pl.DataFrame)
        write_table(content, "csv", file)
    # comma, quote, UTF-8; text cells quoted; every sheet, here one
    output_format = "csv:Text - txt - csv (StarCalc):44,34,76,1,,0,false,true,false,false,false,-1"
    folder = tmp_path / "opened"
    subprocess.run(
        ["soffice", f"-env:UserInstallation={(tmp_path / 'profile').as_uri()}", "--headless",
         "--infilter=CSV:44,34,76,1", "--convert-to", output_format, "--outdir", folder,
         tmp_path / "t.csv"],
        check=True,
        timeout=120,
    )  # fmt: skip
    (csv_file,) = folder.iterdir()
    before, after = (
        # a cell has one kind of line end there
        list(csv.reader(io.StringIO(file.read_text("utf-8").replace("\r\n", "\n")), strict=True))
        for file in (tmp_path / "t.csv", csv_file)
    )
    assert len(after) == len(HOSTILE) + 1
    libreoffice = {"true": "TRUE", "false": "FALSE"}
    assert after == [
        [libreoffice.get(cell, cell).replace("\r", "\n") for cell in row] for row in before
    ]
