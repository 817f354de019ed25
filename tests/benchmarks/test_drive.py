"""What a measured process took is its own, whatever the measuring one has grown to."""

import sys
from pathlib import Path

import numpy as np
import pytest
from benchmarks.drive import BenchmarkError, measured


def test_memory_is_the_commands_own(tmp_path: Path) -> None:
    ballast = np.ones(40_000_000)  # 305 MiB that the command must not be charged with
    small = measured([sys.executable, "-S", "-c", "pass"], tmp_path / "output")
    assert 1 < small.peak_rss_mb < 100
    large = measured([sys.executable, "-S", "-c", "held = b'x' * (200 << 20)"], tmp_path / "output")
    assert 200 < large.peak_rss_mb < 300
    assert ballast.sum() == len(ballast)


def test_time_is_told_by_the_wall_and_by_the_processor(tmp_path: Path) -> None:
    waited = measured(
        [sys.executable, "-S", "-c", "import time; time.sleep(0.5)"], tmp_path / "output"
    )
    assert waited.wall_s >= 0.5 > waited.cpu_s > 0


def test_a_command_that_failed_is_told_with_what_it_said(tmp_path: Path) -> None:
    with pytest.raises(BenchmarkError, match=r"(?s)ended with 3:.*no such thing"):
        measured([sys.executable, "-c", "print('no such thing'); exit(3)"], tmp_path / "output")
