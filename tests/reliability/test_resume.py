"""A run goes on from wherever it was cut short, and repeats no finished generation."""

import json
import shutil
import signal
import subprocess
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from inspect_ai.log import EvalLog

import holdfast.dialogue.budget
from holdfast.running.evaluation import Evaluation
from tests.faults import Fault, Latency, drawn, faulty_server
from tests.studies import HOLDFAST, finished_generations, holdfast_apart

from .driving import TURNS, Study, apart
from .killing import wait_for

CONNECTIONS = 8


def started(study: Study, *more: str) -> "subprocess.Popen[str]":
    """The command in a process of its own, at work."""
    command = [str(HOLDFAST), *map(str, study.command("--json", *more))]
    return subprocess.Popen(
        command, env=apart(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def kill_at(study: Study, moments: list[int], *more: str) -> None:
    """Start the run and kill it, each time after that many generations."""
    for moment in moments:
        process = started(study, "--max-connections", str(CONNECTIONS), *more)
        wait_for(study.server, moment, process)
        process.send_signal(signal.SIGKILL)
        process.communicate()


def run_whole(study: Study, *more: str) -> Any:
    """Run in a process of its own to the end; what it prints for machines."""
    result = holdfast_apart(*study.command("--json", *more), env=apart())
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def unbroken(study: Study) -> Study:
    """The same study in another folder."""
    folder = study.folder / "unbroken"
    folder.mkdir()
    return replace(study, folder=folder)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_run_killed_at_any_moment_resumes_and_repeats_nothing(seed: int, tmp_path: Path) -> None:
    n = 20
    moments = sorted(int(drawn(seed, kill) * n * TURNS) for kill in range(2))
    with faulty_server(latency=Latency("lognormal", 20, 0.7), seed=seed) as server:
        study = Study(server, tmp_path, n=n)
        kill_at(study, moments)
        n_kept = finished_generations(study.log_dir)
        assert run_whole(study)["calls"] == n * TURNS - n_kept
        # only what was on its way to the process as it was killed
        assert server.stats()["repeated"] <= CONNECTIONS * len(moments)
        whole = unbroken(study)
        run_whole(whole)
    assert study.turns().equals(whole.turns())


@pytest.mark.slow
def test_a_killed_run_behind_defences_resumes_and_repeats_nothing(tmp_path: Path) -> None:
    behind = ("--defence", "rederive", "--defence", "vote", "--defence", "hardened+abstain")
    n = 10
    with faulty_server(latency=Latency("lognormal", 20, 0.7), seed=5) as server:
        study = Study(server, tmp_path, n=n)
        moments = [n * TURNS // 2, 2 * n * TURNS]
        kill_at(study, moments, *behind)
        n_kept = finished_generations(study.log_dir)
        assert n_kept > n * TURNS
        calls = run_whole(study, *behind)["calls"]
        # samples of a vote differ in nothing but their seed: what is kept says how many there are
        generations = finished_generations(study.log_dir)
        assert server.stats()["finished"] - generations <= CONNECTIONS * len(moments)
        assert calls == generations - n_kept
        whole = unbroken(study)
        run_whole(whole, *behind)
        assert generations == finished_generations(whole.log_dir)
    # runs stand in the order in which they were begun
    first, second = (part.turns().sort("run", maintain_order=True) for part in (study, whole))
    assert first.equals(second)


@pytest.mark.slow
def test_a_second_process_is_refused_at_once(tmp_path: Path) -> None:
    with faulty_server(latency=Latency(median_ms=4000)) as server:
        study = Study(server, tmp_path)
        first = started(study)
        wait_for(server, 1, first)
        began = time.monotonic()
        second = study.run()
        took = time.monotonic() - began
        assert second.returncode == 2
        assert second.stderr.strip().splitlines() == [
            f"holdfast: {study.log_dir}: another process is using this log directory (pid "
            f"{first.pid}). "
            "Wait until it has finished, or give another --log-dir."
        ]
        assert took < 5
        _, err = first.communicate(timeout=120)
        assert first.returncode == 0, err
        assert server.stats()["repeated"] == 0
        assert study.run().returncode == 0


@pytest.mark.slow
def test_the_lock_of_a_dead_process_does_not_block(tmp_path: Path) -> None:
    with faulty_server(latency=Latency(median_ms=200)) as server:
        study = Study(server, tmp_path)
        first = started(study)
        wait_for(server, 1, first)
        first.kill()
        first.communicate()
        left = [path.name for path in study.log_dir.iterdir() if path.name.startswith(".holdfast")]
        assert sorted(left) == [".holdfast.lock", ".holdfast.pid"]
        assert study.run().returncode == 0


def test_another_package_version_resumes_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with faulty_server(Fault("status-503", match="Vignette number 2.")) as server:
        study = Study(server, tmp_path)
        assert study.run("--generate-config", "{max_retries: 0}").returncode == 3
        server.set()
        monkeypatch.setattr("importlib.metadata.version", lambda _: "99.0.0")
        outcome = study.outcome()
        assert outcome["calls"] == TURNS
        assert server.stats()["repeated"] == 0


def test_another_version_of_a_protocol_is_refused_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask = Evaluation._check_settings

    def upgraded(self: Evaluation, log_before: EvalLog, log: EvalLog) -> None:
        log_before.eval.task_version = int(log_before.eval.task_version) + 1
        ask(self, log_before, log)

    with faulty_server() as server:
        study = Study(server, tmp_path)
        study.outcome()
        before = server.stats()["attempts"]
        monkeypatch.setattr(Evaluation, "_check_settings", upgraded)
        run = study.run()
        assert run.returncode == 2
        assert "another setting: version was " in run.stderr
        assert "another --log-dir" in run.stderr
        assert server.stats()["attempts"] == before


@pytest.mark.rest_slow
@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--seed", "7"), "seed was 42, now it is 7"),
        (("--generate-config", "{temperature: 0.7}"), "temperature was 0.0, now it is 0.7"),
        (("--model-base-url", "http://127.0.0.1:9/v1"), "--model-base-url was"),
        (("-M", "top_k=5"), "-M top_k was None, now it is 5"),
    ],
)
def test_a_changed_setting_is_refused_and_nothing_mixed(
    options: tuple[str, ...], words: str, tmp_path: Path
) -> None:
    with faulty_server(Fault("status-503", match="Vignette number 2.")) as server:
        study = Study(server, tmp_path)
        assert study.run("--generate-config", "{max_retries: 0}").returncode == 3
        before = server.stats()["attempts"]
        turns = study.turns()
        run = study.run("--generate-config", "{max_retries: 0}", *options)
        assert run.returncode == 2
        assert words in run.stderr
        assert len(run.stderr.strip().splitlines()) == 1
        assert server.stats()["attempts"] == before
    assert study.turns().equals(turns)


@pytest.mark.slow
def test_an_address_from_the_environment_allows_a_resume(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with faulty_server() as server:
        study = Study(server, tmp_path)
        monkeypatch.setenv("LEAN_BASE_URL", server.api)
        command = study.command("--json")
        at = command.index("--model-base-url")
        del command[at : at + 2]
        for calls in (3 * TURNS, 0):
            run = holdfast_apart(*command)
            assert run.returncode == 0, run.stderr
            assert json.loads(run.stdout)["calls"] == calls


def test_nothing_is_asked_without_room_to_keep_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with faulty_server() as server:
        study = Study(server, tmp_path)
        with monkeypatch.context() as full:
            full.setattr(holdfast.dialogue.budget, "ROOM", 2**60)
            run = study.run()
        assert run.returncode == 3
        assert "MiB are free at" in run.stderr.strip().splitlines()[-1]
        assert server.stats()["attempts"] == 0
        assert study.outcome()["calls"] == 3 * TURNS


@pytest.fixture
def own_mounts() -> None:
    """Skips where a process cannot have file systems of its own."""
    if (
        shutil.which("unshare") is None
        or subprocess.run(["unshare", "-Urm", "true"], capture_output=True, check=False).returncode
    ):
        pytest.skip("no file systems of its own here: unshare -Urm does not work")


def in_namespace(script: str, *arguments: str | Path) -> "subprocess.CompletedProcess[str]":
    """A shell script with file systems of its own; ``$@`` is the command."""
    return subprocess.run(
        ["unshare", "-Urm", "sh", "-c", script, "sh", *map(str, arguments)],
        capture_output=True,
        text=True,
        env=apart(),
        timeout=300,
        check=False,
    )


@pytest.mark.slow
@pytest.mark.usefixtures("own_mounts")
def test_a_run_resumes_after_a_full_disk(
    tmp_path: Path,
) -> None:
    n = 60
    with faulty_server() as server:
        study = Study(server, tmp_path, n=n)
        study.log_dir.mkdir()
        script = f"""
            mount -t tmpfs -o size=66000k tmpfs {study.log_dir} || exit 99
            "$@"; echo "first $?" >&2
            mount -o remount,size=300m {study.log_dir}
            "$@"; echo "second $?" >&2
            cp {study.log_dir}/turns.parquet {tmp_path}/turns.parquet
        """
        result = in_namespace(script, HOLDFAST, *study.command("--max-connections", "4"))
        stats = server.stats()
    assert "first 3\n" in result.stderr, result.stderr
    assert "second 0\n" in result.stderr, result.stderr
    assert "Less than 64 MiB are free" in result.stderr
    assert "Traceback" not in result.stderr
    assert (stats["finished"], stats["repeated"]) == (n * TURNS, 0)
    assert pl.read_parquet(tmp_path / "turns.parquet").height == n * TURNS


@pytest.mark.slow
@pytest.mark.usefixtures("own_mounts")
def test_a_read_only_log_dir_is_refused_first(tmp_path: Path) -> None:
    with faulty_server() as server:
        study = Study(server, tmp_path)
        study.log_dir.mkdir()
        script = f"""
            mount -t tmpfs tmpfs {study.log_dir} && mount -o remount,ro {study.log_dir} || exit 99
            exec "$@"
        """
        result = in_namespace(script, HOLDFAST, *study.command())
        assert result.returncode == 2
        assert result.stderr.strip() == (
            f"holdfast: {study.log_dir}: cannot be written (Read-only file system). "
            "Give another --log-dir."
        )
        assert server.stats()["attempts"] == 0
