"""A page that follows a run, and how it is known that one is at work."""

import os
from pathlib import Path

import pytest
from tests.studies import holdfast

from holdfast.running.log_dir import at_work, lock_log_dir, lock_shard
from holdfast.running.shard import Shard


def test_a_running_process_is_known_and_readers_are_let_in(tmp_path: Path) -> None:
    log_dir = tmp_path / "r"
    assert not at_work(str(log_dir))
    with lock_log_dir(str(log_dir)):
        assert at_work(str(log_dir))
    assert not at_work(str(log_dir))
    with lock_shard(str(log_dir), Shard(2, 1)):
        assert at_work(str(log_dir))
    assert not at_work(str(log_dir))
    (log_dir / ".holdfast.pid").write_text("999999999")  # of a process that was killed
    assert not at_work(str(log_dir))


@pytest.mark.slow
def test_a_page_is_renewed_until_the_run_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page, log_dir = tmp_path / "page.html", tmp_path / "r"
    pages: list[str] = []
    has_begun = False

    def begins(_: float) -> None:
        nonlocal has_begun
        if not has_begun:  # the first look has found nothing to show
            has_begun = True
            run = ("run", "followup", "--model", "simulated/sycophant", "--limit", "2")
            assert not page.exists()
            (log_dir / ".holdfast.pid").unlink()
            assert holdfast(*run, "--log-dir", log_dir).returncode == 0
            (log_dir / ".holdfast.pid").write_text(f"{os.getpid()}")
            return
        pages.append(page.read_text("utf-8"))
        (log_dir / ".holdfast.pid").unlink()

    monkeypatch.setattr("holdfast.cli.results.time.sleep", begins)
    log_dir.mkdir()
    (log_dir / ".holdfast.pid").write_text(f"{os.getpid()}")
    result = holdfast("report", log_dir, "-o", page, "--watch")
    assert result.returncode == 0, result.stderr
    assert ['http-equiv="refresh"' in html for html in pages] == [True]
    assert 'http-equiv="refresh"' not in page.read_text("utf-8")
