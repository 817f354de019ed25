"""Runs in processes of their own, which can be killed."""

import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from tests.faults import FaultyServer
from tests.studies import HOLDFAST, finished_generations, question_rows, write_jsonl

from .driving import apart


@dataclass(frozen=True)
class Run:
    """A follow-up study of all 14 techniques put to a faulty server.

    Attributes:
        server: where the model is.
        log_dir: where the logs go, and the generations beside them.
        n: questions.
        connections: requests in flight.
    """

    server: FaultyServer
    log_dir: Path
    n: int
    connections: int

    def start(self) -> "subprocess.Popen[str]":
        """The command in a process of its own, at work."""
        questions = write_jsonl(self.log_dir.parent / "q.jsonl", question_rows(self.n))
        command = [
            HOLDFAST, "run", "followup", "--model", "lean/bench", "--model-base-url",
            self.server.api, "--questions", questions, "-T", "contexts=synthetic",
            "--allow-simulated-inputs",
            "--max-connections", self.connections, "--log-dir", self.log_dir, "--json",
        ]  # fmt: skip
        return subprocess.Popen(
            list(map(str, command)),
            env=apart(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def kept(self) -> int:
        """Generations kept beside the logs."""
        return finished_generations(self.log_dir)

    def turns(self) -> pl.DataFrame:
        """The turns table that it left."""
        return pl.read_parquet(self.log_dir / "turns.parquet")


def wait_for(server: FaultyServer, generations: int, process: "subprocess.Popen[str]") -> None:
    """Until the server has finished so many generations, or the process has ended."""
    deadline = time.monotonic() + 600
    while server.stats()["finished"] < generations and process.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.01)
