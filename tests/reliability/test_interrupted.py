"""Ctrl-C, a scheduler's SIGTERM and a lost terminal end a run alike, ready to go on."""

import json
import os
import signal
import subprocess
from pathlib import Path

import polars as pl
import pytest

from tests.faults import Latency, faulty_server
from tests.studies import HOLDFAST, holdfast_apart

from .driving import TURNS, Study, apart
from .killing import wait_for

N = 8

# whatever the tests were started with: under nohup, or in the background of a script
AT_HAND = ("env", "--default-signal=HUP,INT")
IN_BACKGROUND = ("env", "--default-signal=HUP", "--ignore-signal=INT")


@pytest.mark.slow
@pytest.mark.parametrize("shards", [0, 2])
@pytest.mark.parametrize(
    ("launcher", "stop_signal"),
    [(AT_HAND, signal.SIGINT), (AT_HAND, signal.SIGTERM), (AT_HAND, signal.SIGHUP),
     (IN_BACKGROUND, signal.SIGTERM), (IN_BACKGROUND, signal.SIGHUP)],
)  # fmt: skip
def test_an_ended_run_leaves_turns_and_a_summary(
    launcher: tuple[str, ...], stop_signal: signal.Signals, shards: int, tmp_path: Path
) -> None:
    with faulty_server(latency=Latency(median_ms=60)) as server:
        study = Study(server, tmp_path, n=N)
        more = ["--max-connections", "2", *(["--shards", str(shards)] if shards else [])]
        process = subprocess.Popen(
            [*launcher, str(HOLDFAST), *map(str, study.command(*more))],
            env=apart(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        wait_for(server, 3 * TURNS, process)
        process.send_signal(stop_signal)
        out, err = process.communicate(timeout=60)
        assert process.returncode == 130, err
        assert err.strip().splitlines()[-1] == (
            "holdfast: Interrupted. Repeat the command to resume."
        )
        assert "successfully" not in err + out
        assert "Traceback" not in err
        assert f"Turns: {study.log_dir}/turns.parquet" in out
        assert "lean/bench on q: followup" in out
        turns = pl.read_parquet(study.log_dir / "turns.parquet")
        assert 0 < turns.height < N * TURNS

        resumption = holdfast_apart(*study.command("--json", *more), env=apart())
        assert resumption.returncode == 0, resumption.stderr
        assert json.loads(resumption.stdout)["complete"]
        # what was on its way may have been finished by the server alone
        assert server.stats()["repeated"] <= 2 * max(shards, 1)
    assert study.turns().height == N * TURNS


@pytest.mark.slow
def test_a_run_resumes_after_its_terminal_closes(tmp_path: Path) -> None:
    with faulty_server(latency=Latency(median_ms=60)) as server:
        study = Study(server, tmp_path, n=N)
        more = ["--max-connections", "2"]
        ours, theirs = os.openpty()
        process = subprocess.Popen(
            [*AT_HAND, "setsid", "-c", "-w", str(HOLDFAST), *map(str, study.command(*more))],
            env=apart(), stdin=theirs, stdout=theirs, stderr=theirs, text=True,
        )  # fmt: skip
        os.close(theirs)
        wait_for(server, 3 * TURNS, process)
        os.close(ours)
        process.wait(60)
        turns = pl.read_parquet(study.log_dir / "turns.parquet")
        assert 0 < turns.height < N * TURNS
        resumption = holdfast_apart(*study.command("--json", *more), env=apart())
        assert resumption.returncode == 0, resumption.stderr
        assert server.stats()["repeated"] <= 2
    assert study.turns().height == N * TURNS


@pytest.mark.slow
def test_a_run_under_nohup_outlives_its_terminal(tmp_path: Path) -> None:
    with faulty_server(latency=Latency(median_ms=60)) as server:
        study = Study(server, tmp_path, n=2)
        process = subprocess.Popen(
            ["nohup", str(HOLDFAST), *map(str, study.command())],
            env=apart(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        wait_for(server, 1, process)
        process.send_signal(signal.SIGHUP)
        assert process.wait(60) == 0
    assert study.turns().height == 2 * TURNS
