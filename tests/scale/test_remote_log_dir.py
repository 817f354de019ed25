"""Shards that write into a log dir at a URL, as they would into a bucket."""

import json
import signal
import subprocess
import time
from pathlib import Path

import psutil
import pytest
from benchmarks.server import running_server

from holdfast.dialogue.generations import Generations
from tests.studies import HOLDFAST

# a file system of its own name that several processes see, as every Python process starts
SHELF = """
import fsspec
from fsspec.implementations.local import LocalFileSystem


class Shelf(fsspec.AbstractFileSystem):
    protocol = "shelf"
    root_marker = "/"
    _disk = LocalFileSystem(auto_mkdir=True)

    @classmethod
    def _strip_protocol(cls, path):
        return "/" + str(path).removeprefix("shelf://").strip("/")

    def ls(self, path, detail=True, **kwargs):
        return self._disk.ls(self._strip_protocol(path), detail=detail)

    def info(self, path, **kwargs):
        return self._disk.info(self._strip_protocol(path))

    def makedirs(self, path, exist_ok=False):
        self._disk.makedirs(self._strip_protocol(path), exist_ok=exist_ok)

    def mkdir(self, path, create_parents=True, **kwargs):
        self.makedirs(path, exist_ok=True)

    def _open(self, path, mode="rb", **kwargs):
        return self._disk.open(self._strip_protocol(path), mode)

    def rm_file(self, path):
        self._disk.rm_file(self._strip_protocol(path))


fsspec.register_implementation("shelf", Shelf, clobber=True)
"""
CALLS = 2 * 17
CONNECTIONS = 4
BEFORE = 8
"""Generations that are kept before the process is lost."""


def kept(bucket: Path) -> int:
    return len(Generations(bucket / ".cache"))


@pytest.mark.slow
def test_a_lost_shards_generations_come_from_the_remote_log_dir(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(SHELF)
    environment["PYTHONPATH"] = str(tmp_path / "site")
    with running_server(latency_ms=800) as server:
        command = [
            "run", "followup", "--model", "lean/bench", "--model-base-url", f"{server.url}/v1",
            "--limit", "2", "--max-connections", str(CONNECTIONS), "--shards", "1", "--json",
            "--log-dir", f"shelf://{tmp_path}/bucket",
        ]  # fmt: skip
        running = subprocess.Popen(
            [str(HOLDFAST), *command],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        deadline = time.monotonic() + 60
        while kept(tmp_path / "bucket") < BEFORE:
            assert running.poll() is None, running.communicate()
            assert time.monotonic() < deadline
            time.sleep(0.02)
        children = psutil.Process(running.pid).children(recursive=True)
        shards = [child for child in children if "spawn_main" in " ".join(child.cmdline())]
        shards[0].send_signal(signal.SIGKILL)
        out, err = running.communicate(timeout=120)
        assert running.returncode == 0, err
        stats = server.stats()
    outcome = json.loads(out)
    assert outcome["complete"]
    assert stats["distinct"] == CALLS
    # what the lost process has kept is there for the one after it
    assert outcome["cached"] >= BEFORE
    # asked once more is at most what was answered in the two seconds before, and in flight
    assert stats["repeated"] <= CONNECTIONS * (2 / 0.8 + 2)
    assert (tmp_path / "bucket" / "turns.parquet").is_file()
    assert list((tmp_path / "bucket").glob("*.eval"))
