"""Shards as tasks of a real Ray cluster on this machine, one of its workers killed."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import psutil
import pytest
from benchmarks.server import Server, running_server

from holdfast.running.shards import run_in_task

pytest.importorskip("ray")

HOLDFAST = Path(sys.executable).with_name("holdfast")
QUESTIONS = 6
CALLS = QUESTIONS * 17
CONNECTIONS = 4


def command(url: str, log_dir: str, *more: str) -> list[str]:
    return [
        str(HOLDFAST), "run", "followup", "--model", "lean/bench",
        "--model-base-url", f"{url}/v1", "--limit", str(QUESTIONS), "--json",
        "--max-connections", str(CONNECTIONS), "--log-dir", log_dir, *more,
    ]  # fmt: skip


def tasks_of(process: "subprocess.Popen[str]") -> list[psutil.Process]:
    """Workers that are at a shard: Ray names them by what they do."""
    workers = []
    for child in psutil.Process(process.pid).children(recursive=True):
        try:
            if child.cmdline()[:1] == [f"ray::{run_in_task.__name__}"]:
                workers.append(child)
        except psutil.Error:  # gone meanwhile
            continue
    return workers


def until_asked(calls: int, server: Server, running: "subprocess.Popen[str]") -> None:
    deadline = time.monotonic() + 120
    while server.stats()["calls"] < calls:
        assert running.poll() is None, running.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.02)


def alive(process: psutil.Process) -> bool:
    try:
        return process.status() != psutil.STATUS_ZOMBIE  # ended, and nobody waits for it
    except psutil.Error:
        return False


def listening(process: psutil.Process) -> set[str]:
    """Addresses at which a process and its children take connections."""
    addresses: set[str] = set()
    for member in [process, *process.children(recursive=True)]:
        try:
            sockets = member.net_connections("tcp")
        except psutil.Error:
            continue
        # an IPv4 address comes in IPv6's notation too
        addresses |= {
            at.laddr.ip.removeprefix("::ffff:") for at in sockets if at.status == psutil.CONN_LISTEN
        }
    return addresses


def test_a_killed_workers_shard_is_rerun_and_the_table_unchanged(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    with running_server() as server:
        whole = subprocess.run(
            command(server.url, str(tmp_path / "whole")), env=environment, capture_output=True,
            text=True, timeout=200, check=True,
        )  # fmt: skip
    with running_server(latency_ms=200) as server:
        # a URL of fsspec's
        running = subprocess.Popen(
            command(server.url, f"file://{tmp_path}/parts", "--shards", "2", "--ray", "local"),
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            until_asked(30, server, running)
            cluster = psutil.Process(running.pid).children(recursive=True)
            assert listening(psutil.Process(running.pid)) == {"127.0.0.1"}
            workers = tasks_of(running)
            assert len(workers) == 2
            workers[0].send_signal(signal.SIGKILL)
            out, err = running.communicate(timeout=200)
            assert running.returncode == 0, err
        finally:
            running.kill()
        stats = server.stats()
        assert stats["distinct"] == CALLS
        assert stats["repeated"] <= CONNECTIONS
    outcome = json.loads(out)
    assert outcome["complete"]
    unsharded_turns, turns = (
        pl.read_parquet(json.loads(text)["turns"]).drop("latency") for text in (whole.stdout, out)
    )
    assert turns.equals(unsharded_turns)
    psutil.wait_procs(cluster, timeout=20)
    assert [member for member in cluster if alive(member)] == []
