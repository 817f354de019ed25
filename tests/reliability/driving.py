"""A small study put to the faulty server, and what came of it."""

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from tests.faults import FaultyServer
from tests.studies import Done, holdfast, question_rows, write_jsonl

MARK = "Map each option"
"""What the prompt of one technique alone says."""

FAULT_PATH = "option-mapping"
TECHNIQUES = 5
TURNS = 1 + TECHNIQUES + 2

DIFFERS = ("latency",)
"""Columns that tell of time."""


Sound = Callable[[str], pl.DataFrame]
"""Turns by provider."""


@dataclass(frozen=True)
class Study:
    """Questions put to a model behind the faulty server.

    Attributes:
        server: where the model is.
        folder: for the questions and the logs.
        provider: ``lean`` or ``openai``.
        n: questions.
        techniques: those asked.
    """

    server: FaultyServer
    folder: Path
    provider: str = "lean"
    n: int = 3
    techniques: str = "rethink"

    @property
    def log_dir(self) -> Path:
        """Log directory."""
        return self.folder / "r"

    def command(self, *more: str | Path) -> list[str | Path]:
        """The command line."""
        questions = write_jsonl(self.folder / "q.jsonl", question_rows(self.n))
        return [
            "run", "followup", "--model", f"{self.provider}/bench", "--model-base-url",
            self.server.api, "--questions", questions, "-T", f"techniques={self.techniques}",
            "--log-dir", self.log_dir, *more,
        ]  # fmt: skip

    def run(self, *more: str | Path) -> Done:
        """Run it in this process."""
        return holdfast(*self.command(*more))

    def outcome(self, *more: str | Path, code: int = 0) -> dict[str, Any]:
        """Run it in this process, and what it printed for machines."""
        result = self.run("--json", *more)
        assert result.returncode == code, result.stderr
        outcome: dict[str, Any] = json.loads(result.stdout)
        return outcome

    def turns(self) -> pl.DataFrame:
        """The turns table that it left, without what tells of time."""
        return pl.read_parquet(self.log_dir / "turns.parquet").drop(DIFFERS)


def apart() -> dict[str, str]:
    """Environment of a command line of its own, whose cache goes beside its logs."""
    return {k: v for k, v in os.environ.items() if k != "HOLDFAST_CACHE_DIR"}
