"""What a measured process took is its own, whatever the measuring one has grown to."""

import sys
from pathlib import Path

import numpy as np
import pytest
from benchmarks.contestants import earlier_command
from benchmarks.drive import BenchmarkError, measured


def test_memory_is_measured_per_command(tmp_path: Path) -> None:
    ballast = np.ones(40_000_000)  # 305 MiB that the command must not be charged with
    small = measured([sys.executable, "-S", "-c", "pass"], tmp_path / "output")
    assert 1 < small.peak_rss_mb < 100
    large = measured([sys.executable, "-S", "-c", "held = b'x' * (200 << 20)"], tmp_path / "output")
    assert 200 < large.peak_rss_mb < 300
    assert ballast.sum() == len(ballast)


def test_wall_and_processor_time_are_measured(tmp_path: Path) -> None:
    pause = measured(
        [sys.executable, "-S", "-c", "import time; time.sleep(0.5)"], tmp_path / "output"
    )
    assert pause.wall_s >= 0.5 > pause.cpu_s > 0


def test_a_failed_command_is_reported_with_its_output(tmp_path: Path) -> None:
    with pytest.raises(BenchmarkError, match=r"(?s)ended with 3:.*no such thing"):
        measured([sys.executable, "-c", "print('no such thing'); exit(3)"], tmp_path / "output")


OTHER_VERSION = """
def holdfast_command(questions, model, log_dir, *more):
    return ["other", questions, model, str(log_dir.parent), *more]
"""


def version(folder: Path, code: str) -> Path:
    """The repository of another version whose benchmark is that code."""
    (folder / ".venv/bin").mkdir(parents=True)
    (folder / ".venv/bin/python").symlink_to(sys.executable)
    (folder / "benchmarks").mkdir()
    (folder / "benchmarks/contestants.py").write_text(code)
    return folder


def test_another_version_states_its_own_command(tmp_path: Path) -> None:
    command = earlier_command(version(tmp_path, OTHER_VERSION))
    arguments = command("q.jsonl", "lean/x", Path("logs/here"), "--limit", "2")
    assert arguments == ["other", "q.jsonl", "lean/x", "logs", "--limit", "2"]


def test_a_missing_or_broken_version_is_reported(tmp_path: Path) -> None:
    with pytest.raises(BenchmarkError, match="python is not there"):
        earlier_command(tmp_path / "nowhere")
    broken_command = earlier_command(version(tmp_path, "raise ValueError('no such study')"))
    with pytest.raises(BenchmarkError, match="no such study"):
        broken_command("q.jsonl", "lean/x", Path("logs"))
