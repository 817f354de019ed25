"""A run in shards: nothing asked twice, one table, and lost processes made good."""

import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import polars as pl
import psutil
import pytest
from benchmarks.server import Server, running_server

from tests.studies import HOLDFAST, holdfast_apart

pytestmark = pytest.mark.slow

QUESTIONS = 6
CALLS = QUESTIONS * 17
CONNECTIONS = 4


def command(server: Server, log_dir: Path, *more: str) -> list[str]:
    return [
        "run", "followup", "--model", "lean/bench", "--model-base-url", f"{server.url}/v1",
        "--limit", str(QUESTIONS), "--max-connections", str(CONNECTIONS),
        "--log-dir", str(log_dir), "--json", *more,
    ]  # fmt: skip


def turns(log_dir: Path) -> pl.DataFrame:
    return pl.read_parquet(log_dir / "turns.parquet").drop("latency")


def outcome(process: "subprocess.CompletedProcess[str]") -> dict[str, Any]:
    assert process.returncode == 0, process.stderr
    summary: dict[str, Any] = json.loads(process.stdout)
    return summary


def started(arguments: list[str], environment: dict[str, str]) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        # a shell has what it starts in the background ignore Ctrl-C
        ["env", "--default-signal=INT", str(HOLDFAST), *arguments],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def shards_of(process: "subprocess.Popen[str]") -> list[psutil.Process]:
    children = psutil.Process(process.pid).children(recursive=True)
    return [child for child in children if "spawn_main" in " ".join(child.cmdline())]


def until_asked(server: Server, calls: int) -> None:
    deadline = time.monotonic() + 120
    while server.stats()["calls"] < calls:
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> pl.DataFrame:
    log_dir = tmp_path_factory.mktemp("unsharded")
    subset = {k: v for k, v in os.environ.items() if k != "HOLDFAST_CACHE_DIR"}
    with running_server() as server:
        outcome(holdfast_apart(*command(server, log_dir), env=subset))
    return turns(log_dir)


def test_two_shards_ask_each_request_once_and_give_the_unsharded_table(
    server: Server, tmp_path: Path, environment: dict[str, str], reference: pl.DataFrame
) -> None:
    process = holdfast_apart(*command(server, tmp_path / "r", "--shards", "2"), env=environment)
    summary = outcome(process)
    assert (summary["calls"], summary["complete"]) == (CALLS, True)
    stats = server.stats()
    assert (stats["calls"], stats["repeated"]) == (CALLS, 0)
    assert turns(tmp_path / "r").equals(reference)
    # what was finished is in the logs: with neither cache nor the same split is it asked again
    shutil.rmtree(tmp_path / "r" / ".cache")
    for more in (["--shards", "3"], []):
        again = holdfast_apart(*command(server, tmp_path / "r", *more), env=environment)
        assert outcome(again)["calls"] == 0
        assert turns(tmp_path / "r").equals(reference)
    assert server.stats()["calls"] == CALLS
    # the tables are made from the log dir as from any other
    table = ["table", str(tmp_path / "r"), "--table", "accuracy", "--format", "json"]
    (baseline, *_) = json.loads(holdfast_apart(*table, env=environment).stdout)
    assert baseline["n"] == QUESTIONS


def test_a_killed_shard_resumes_in_another_process(
    tmp_path: Path, environment: dict[str, str], reference: pl.DataFrame
) -> None:
    with running_server(latency_ms=60) as server:
        running = started(command(server, tmp_path / "r", "--shards", "2"), environment)
        until_asked(server, 30)
        shards_of(running)[0].send_signal(signal.SIGKILL)
        out, err = running.communicate(timeout=120)
        assert running.returncode == 0, err
        assert "was lost (killed by signal 9). It continues in another process" in err
        assert json.loads(out)["complete"]
        assert server.stats()["repeated"] <= CONNECTIONS
        assert server.stats()["distinct"] == CALLS
    assert turns(tmp_path / "r").equals(reference)


def test_a_killed_run_is_finished_with_other_shards(
    tmp_path: Path, environment: dict[str, str], reference: pl.DataFrame
) -> None:
    with running_server(latency_ms=60) as server:
        running = started(command(server, tmp_path / "r", "--shards", "2"), environment)
        until_asked(server, 20)
        orphans = shards_of(running)
        running.kill()
        running.communicate(timeout=60)
        # none goes on without the one who started it
        dead, alive = psutil.wait_procs(orphans, timeout=20)
        assert (len(dead), alive) == (2, [])
        calls_before = server.stats()["calls"]
        assert calls_before < CALLS
        options = ["--shards", "3", "--call-limit", "24"]
        partly = holdfast_apart(*command(server, tmp_path / "r", *options), env=environment)
        assert partly.returncode == 3
        assert json.loads(partly.stdout)["calls"] == 24  # three shares of eight
        assert "The budget is spent" in partly.stderr
        assert server.stats()["calls"] == calls_before + 24
        outcome(holdfast_apart(*command(server, tmp_path / "r"), env=environment))
        assert server.stats()["distinct"] == CALLS
        assert server.stats()["repeated"] <= 2 * CONNECTIONS
    assert turns(tmp_path / "r").equals(reference)


def test_under_a_budget_a_lost_shard_is_not_restarted(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    with running_server(latency_ms=100) as server:
        budget_command = command(server, tmp_path / "r", "--shards", "2", "--call-limit", "1000")
        running = started(budget_command, environment)
        until_asked(server, 10)
        shards_of(running)[0].send_signal(signal.SIGKILL)
        out, err = running.communicate(timeout=120)
    assert running.returncode == 3
    assert not json.loads(out)["complete"]
    assert "was lost (killed by signal 9)" in err
    assert "another process" not in err


def test_an_interrupted_run_stops_its_shards_and_says_so(
    tmp_path: Path, environment: dict[str, str], reference: pl.DataFrame
) -> None:
    with running_server(latency_ms=100) as server:
        running = started(command(server, tmp_path / "r", "--shards", "2"), environment)
        until_asked(server, 10)
        shards = shards_of(running)
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=120)
        assert (running.returncode, out) == (130, ""), err
        assert "holdfast: Interrupted. Repeat the command to resume." in err
        assert not psutil.wait_procs(shards, timeout=20)[1]


def test_manual_shards_are_gathered_by_the_plain_command(
    server: Server, tmp_path: Path, environment: dict[str, str], reference: pl.DataFrame
) -> None:
    for number in (2, 1):
        by_hand = command(server, tmp_path / "r", "--shard", f"{number}/2")
        summary = outcome(holdfast_apart(*by_hand, env=environment))
        assert (summary["shard"], summary["calls"], summary["missing"]) == (
            f"{number}/2",
            CALLS // 2,
            0,
        )
    assert not (tmp_path / "r" / "turns.parquet").exists()
    assert outcome(holdfast_apart(*command(server, tmp_path / "r"), env=environment))["calls"] == 0
    assert server.stats()["calls"] == CALLS
    assert turns(tmp_path / "r").equals(reference)


def test_another_setting_is_refused_in_one_line(
    server: Server, tmp_path: Path, environment: dict[str, str]
) -> None:
    first = command(server, tmp_path / "r", "--shard", "1/6")
    assert outcome(holdfast_apart(*first, env=environment))["calls"] == 17
    changed_command = command(server, tmp_path / "r", "--shards", "2", "--seed", "7")
    refusal = holdfast_apart(*changed_command, env=environment)
    assert refusal.returncode == 2
    last = refusal.stderr.strip().splitlines()[-1]
    assert "contains a run of 'lean/bench' with another setting: seed was 42, now it is 7" in last
