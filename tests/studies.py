"""Running a small study in a test, as the command line would."""

import io
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import polars as pl
from inspect_ai import eval
from inspect_ai.log import EvalLog

from holdfast.cli.main import main
from holdfast.dialogue.generations import Generations
from holdfast.results.turns import turns_table
from tests.tasks import followup

HOLDFAST = Path(sys.executable).with_name("holdfast")


def study(model: Any, *, limit: int | None = None, epochs: int = 1, **settings: Any) -> EvalLog:
    """A followup study through a real ``eval``, without controls unless told otherwise."""
    settings.setdefault("controls", False)
    (log,) = eval(
        followup(**settings),
        model=model,
        limit=limit,
        epochs=epochs,
        display="none",
        log_realtime=False,
        log_model_api=False,
    )
    return log


def turns_of(log: EvalLog) -> pl.DataFrame:
    """The turns table of one log."""
    return turns_table([log.location])


@dataclass(frozen=True)
class Done:
    """What a command printed and how it ended."""

    returncode: int
    stdout: str
    stderr: str


def holdfast(*arguments: str | Path) -> Done:
    """The command line in this process: what it prints, and its exit code."""
    out, err = io.StringIO(), io.StringIO()
    with (
        patch.object(sys, "argv", ["holdfast", *map(str, arguments)]),
        redirect_stdout(out),
        redirect_stderr(err),
    ):
        try:
            main()
            code = 0
        except SystemExit as end:
            code = int(end.code or 0)
    return Done(code, out.getvalue(), err.getvalue())


def holdfast_apart(
    *arguments: str | Path, env: Mapping[str, str] | None = None, cwd: Path | None = None
) -> "subprocess.CompletedProcess[str]":
    """The command line in a process of its own."""
    return subprocess.run(
        [str(HOLDFAST), *map(str, arguments)],
        capture_output=True,
        text=True,
        env=dict(env if env is not None else os.environ),
        cwd=cwd,
        timeout=300,
        check=False,
    )


def finished_generations(log_dir: Path) -> int:
    """Generations kept beside the logs of a log dir; one that a kill has torn is none."""
    return len(Generations(log_dir / ".cache"))


def question_rows(n: int, options: int = 4) -> list[dict[str, Any]]:
    """Questions in holdfast's own format, all different."""
    letters = "ABCDEFGHIJ"[:options]
    return [
        {
            "id": f"q{i}",
            "stem": f"Vignette number {i}. Which finding is expected?",
            "options": {letter: f"finding {letter} of case {i}" for letter in letters},
            "gold": letters[i % options],
            "step": ("step1", "step2&3")[i % 2],
        }
        for i in range(n)
    ]


def write_jsonl(path: Path, rows: Sequence[Mapping[str, Any]]) -> str:
    """Write rows to a JSONL file and return its path."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return str(path)


def of_table(name: str) -> tuple[str, ...]:
    """The options of a table: ``accuracy by step`` is ``--table accuracy --by step``."""
    table, _, by = name.partition(" by ")
    return ("--table", table, *(("--by", by) if by else ()))
