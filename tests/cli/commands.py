"""Command lines in tests: what a command says of itself, and how it is refused."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
from tests.studies import holdfast

Facts = dict[str, Any]


def facts_of(*arguments: str | Path, code: int = 0) -> Any:
    """What a command prints for machines."""
    run = holdfast(*arguments, "--json")
    assert run.returncode == code, run.stderr
    return json.loads(run.stdout)


def study_of(*arguments: str | Path, code: int = 0) -> tuple[Facts, pl.DataFrame]:
    """What ``holdfast run`` says of itself, and the turns that it leaves."""
    facts: Facts = facts_of("run", *arguments, code=code)
    return facts, pl.read_parquet(facts["turns"])


def plan_of(*arguments: str | Path) -> list[Facts]:
    """The rows of a plan; none of its addresses is asked."""
    rows: list[Facts] = facts_of("run", "--dry-run", *arguments)
    return rows


def rows_of(source: str | Path, table: str = "accuracy", *more: str | Path) -> list[Facts]:
    """The rows of a table, which may be ``NAME by COLUMN``."""
    name, _, by = table.partition(" by ")
    options = ("--table", name, *(("--by", by) if by else ()), "--format", "json")
    run = holdfast("table", source, *options, *more)
    assert run.returncode == 0, run.stderr
    rows: list[Facts] = json.loads(run.stdout)
    return rows


def json_lines(path: Path) -> list[Facts]:
    """The rows of a JSONL file."""
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def files_below(folder: Path) -> dict[str, int]:
    """When each file below a folder was changed, without kept generations and locks."""
    return {
        str(path): 0 if path.is_dir() else path.lstat().st_mtime_ns
        for path in sorted(folder.rglob("*"))
        if not {"cache", ".cache"} & {*path.parts} and not path.name.startswith(".holdfast")
    }


def refusal(*arguments: str | Path) -> str:
    """The one line of a command that is refused and leaves every file as it was."""
    before = files_below(Path())
    run = holdfast(*arguments)
    assert (run.returncode, run.stdout) == (2, ""), run.stdout + run.stderr
    (line,) = run.stderr.strip().splitlines()
    assert re.fullmatch(r"holdfast: .*[.?]", line), line
    assert files_below(Path()) == before
    return line


def lacking(words: tuple[str, ...] | list[str], text: str) -> list[str]:
    """Words that are not in a text."""
    return [word for word in words if word not in text]


def inspect_eval(task: str, *settings: str, cwd: Path) -> "subprocess.CompletedProcess[str]":
    """Two questions through the command line of Inspect itself, logs in ``logs``."""
    command = [str(Path(sys.executable).with_name("inspect")), "eval", f"holdfast/{task}",
               "--limit", "2", "--display", "plain", "--log-dir", "logs", *settings]  # fmt: skip
    return subprocess.run(
        command, cwd=cwd, capture_output=True, text=True, timeout=100, check=False
    )
