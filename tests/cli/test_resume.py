"""A run that was killed goes on: nothing finished is asked again, nothing is lost."""

import json
import signal
import subprocess
import time
from pathlib import Path

import polars as pl
import pytest
from benchmarks.server import running_server
from tests.studies import HOLDFAST, finished_generations, holdfast_apart

CONNECTIONS = 8


@pytest.mark.slow
def test_a_killed_run_ends_with_the_same_turns_and_repeats_nothing_that_was_finished(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    with running_server(latency_ms=30) as server:

        def command(log_dir: Path) -> list[str]:
            return [
                "run", "followup", "--model", "openai/bench", "--model-base-url",
                f"{server.url}/v1", "--limit", "20", "--json",
                "--max-connections", str(CONNECTIONS), "--log-dir", str(log_dir),
            ]  # fmt: skip

        unbroken = holdfast_apart(*command(tmp_path / "unbroken"), env=environment)
        assert unbroken.returncode == 0, unbroken.stderr
        assert server.stats()["calls"] == 340
        server.reset()

        killed = subprocess.Popen(
            [str(HOLDFAST), *command(tmp_path / "killed")],
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        deadline = time.monotonic() + 60
        while server.stats()["calls"] < 150 and time.monotonic() < deadline:
            time.sleep(0.02)
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        asked = server.stats()["calls"]
        assert 150 <= asked < 340
        stored = finished_generations(tmp_path / "killed")

        resumed = holdfast_apart(*command(tmp_path / "killed"), env=environment)
        assert resumed.returncode == 0, resumed.stderr
        outcome = json.loads(resumed.stdout)
        # only what was in flight at the kill is asked once more
        assert outcome["calls"] == 340 - stored
        assert asked - stored <= CONNECTIONS
        assert server.stats()["repeated"] <= CONNECTIONS

    expected = pl.read_parquet(json.loads(unbroken.stdout)["turns"])
    turns = pl.read_parquet(outcome["turns"])
    measured = ["latency"]
    assert turns.drop(measured).equals(expected.drop(measured))


@pytest.mark.slow
def test_an_interrupted_run_says_so_and_goes_on(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    with running_server(latency_ms=30) as server:
        command = [
            "run", "followup", "--model", "openai/bench", "--model-base-url", f"{server.url}/v1",
            "--limit", "20", "--json", "--log-dir", str(tmp_path / "r"),
        ]  # fmt: skip
        running = subprocess.Popen(
            [str(HOLDFAST), *command],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        deadline = time.monotonic() + 60
        while server.stats()["calls"] < 100 and time.monotonic() < deadline:
            time.sleep(0.02)
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=60)
        assert (running.returncode, out) == (130, "")
        assert "holdfast: Interrupted. Repeat the command to resume." in err
        assert holdfast_apart(*command, env=environment).returncode == 0
    assert pl.read_parquet(tmp_path / "r" / "turns.parquet").height == 340
