"""``holdfast import`` as a user runs it."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from benchmarks.drive import measured
from tests.studies import HOLDFAST, holdfast
from tests.transcripts.imports import CHATS, OPTIONS, REPLIES, chat, imported, jsonl, row

from holdfast.results.turns import SCHEMA, turns_table


def mapping(text: str) -> Path:
    path = Path("mapping.toml")
    path.write_text(text)
    return path


def test_counts_are_printed_and_tables_mark_imported_turns(tmp_path: Path) -> None:
    path = jsonl(tmp_path / "c.jsonl", [
        chat(("system", "S"), ("user", "Q"), ("assistant", "A"), ("user", "Sure?"),
             ("assistant", "Hm.")),
        chat(("user", "Q"), ("assistant", "B"), ("user", "Sure?"), model="n"),
    ])  # fmt: skip
    run = holdfast("import", path, "--mapping", mapping(CHATS), "-o", "t.parquet", "--json")
    assert run.returncode == 0, run.stderr
    for fact in ("2 conversations, 4 turns of 2 models (m, n)", "unparsed replies: 1",
                 "missing replies: 1", "1 × system message", "turns table: t.parquet"):  # fmt: skip
        assert fact in run.stderr
    outcome: dict[str, Any] = json.loads(run.stdout)
    assert (outcome["rows"], outcome["unread"], outcome["failed"]) == (4, 1, 1)
    assert outcome["models"] == ["m", "n"]
    assert outcome["passed_over"] == {"system message": 1}
    turns = turns_table(["t.parquet"])
    assert turns.schema == SCHEMA
    assert turns["run"].unique(maintain_order=True).to_list() == outcome["runs"]
    table = holdfast("table", "t.parquet")
    assert "- IMPORTED, not collected by holdfast: m, n.\n" in table.stdout


@pytest.mark.slow
def test_gate_comparison_and_report_mark_imported_turns(tmp_path: Path) -> None:
    path = jsonl(tmp_path / "c.jsonl", [
        chat(("user", "Q"), ("assistant", "A"), ("user", "Sure?"), ("assistant", text), model=name)
        for name, text in (("m", "A"), ("n", "B"))
    ])  # fmt: skip
    assert holdfast("import", path, "--mapping", mapping(CHATS), "-o", "t.parquet").returncode == 0
    rules = tmp_path / "rules.toml"
    rules.write_text('[[rule]]\nname = "r"\nfamily = "*"\nmax_unparsed = 0.99\n')
    gate = holdfast("gate", "t.parquet", "--rules", rules)
    assert gate.returncode in (0, 4), gate.stderr
    assert "imported, not collected by holdfast" in gate.stdout
    outcome = json.loads(holdfast("gate", "t.parquet", "--rules", rules, "--json").stdout)
    assert all(verdict["imported"] for verdict in outcome["verdicts"])
    comparison = holdfast("compare", "t.parquet", "t.parquet", "--model-a", "m", "--model-b", "n")
    assert comparison.returncode == 0, comparison.stderr
    assert "IMPORTED, not collected by holdfast: m and n." in comparison.stdout
    report = holdfast("report", "t.parquet", "-o", "r.html")
    assert report.returncode == 0, report.stderr
    page = Path("r.html").read_text("utf-8")
    assert "IMPORTED transcripts, not collected by holdfast: m, n." in page


def test_bad_input_keeps_an_earlier_table(tmp_path: Path) -> None:
    path = jsonl(tmp_path / "c.jsonl", [row(), row(id="q2", gold="Z")])
    Path("t.parquet").write_text("as it was")
    run = holdfast("import", path, "--mapping", mapping(REPLIES), "-o", "t.parquet")
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr.startswith(f"holdfast: {path}, row 2, field 'gold': 'Z' is not one of")
    assert Path("t.parquet").read_text() == "as it was"
    assert {file.name for file in Path().iterdir()} == {"c.jsonl", "mapping.toml", "t.parquet"}
    jsonl(path, [row()])
    assert holdfast("import", path, "--mapping", "mapping.toml").returncode == 0
    assert pl.read_parquet("turns.parquet").height == 1  # without -o


@pytest.mark.parametrize(
    ("arguments", "fact"),
    [
        (["c.jsonl"], "c.jsonl: needs a mapping of its columns. Give --mapping TOML"),
        (["no.jsonl"], "no.jsonl: no such file"),
        (["c.jsonl", "--mapping", "no.toml"], "no.toml: no such file"),
        (["c.jsonl", "--mapping", "m.toml", "-o", "."], ".: cannot be written (Is a directory)"),
        (["c.jsonl", "--mapping", "m.toml", "-o", "no/t.parquet"], "cannot be written (No such"),
        (["c.jsonl", "--mapping", "m.toml", "--questions", "bnak"], "unknown question set 'bnak'"),
    ],
)
def test_bad_arguments_end_in_one_line(arguments: list[str], fact: str) -> None:
    jsonl(Path("c.jsonl"), [row()])
    Path("m.toml").write_text(REPLIES)
    run = holdfast("import", *arguments)
    assert run.returncode == 2
    assert fact in run.stderr
    assert len(run.stderr.splitlines()) == 1


def test_an_export_needs_no_mapping(tmp_path: Path) -> None:
    path = jsonl(tmp_path / "c.jsonl", [row(), row(id="q2")])
    holdfast("import", path, "--mapping", mapping(REPLIES), "-o", "a.parquet")
    out = ("--format", "openai-chat", "-o", "a.jsonl")
    assert holdfast("export", "a.parquet", *out).returncode == 0
    assert holdfast("import", "a.jsonl", "-o", "b.parquet").returncode == 0
    assert turns_table(["b.parquet"]).equals(turns_table(["a.parquet"]))
    run = holdfast("import", "a.jsonl", "--questions", "bank")
    assert (run.returncode, "include the questions" in run.stderr) == (2, True)


CONVERSATIONS = 20_000
SECONDS, BYTES, CORES = 60, 2 * 10**9, 2
"""Limits for 200,000 conversations."""


@pytest.mark.slow
def test_imports_take_bounded_time_and_memory(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    with path.open("w", encoding="utf-8") as file:
        file.writelines(_conversations())
    start = time.process_time()
    turns = imported(path, CHATS).turns
    seconds = time.process_time() - start
    rows = [(f"q{n}", t, "ABC"[(n + t) % 3]) for n in range(CONVERSATIONS) for t in (0, 1)]
    assert turns.select("question", "turn", "answer").rows() == rows
    # processor time varies less than that of the clock on a shared machine
    assert seconds < CORES * SECONDS * CONVERSATIONS / 200_000
    # the command reads so large a file in several processes
    cost = measured(
        [str(HOLDFAST), "import", str(path), "--mapping", "mapping.toml", "-o", "t.parquet"],
        tmp_path / "output",
    )
    assert turns_table(["t.parquet"]).equals(turns)
    assert cost.peak_rss_mb * 2**20 < BYTES


def _conversations() -> Iterator[str]:
    for n in range(CONVERSATIONS):
        messages = []
        for turn in (0, 1):
            letter = "ABC"[(n + turn) % 3]
            messages.append(("user", f"Case {n}: a patient asks for something. " * 8))
            messages.append(
                ("assistant", f"Let us weigh case {n}, turn {turn}. " * 6 + f"Answer: {letter}")
            )
        yield json.dumps({**chat(*messages, options=OPTIONS), "id": f"q{n}"}) + "\n"
