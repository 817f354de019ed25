"""A log that cannot be read is named by who reads it, and set aside by the run that goes on."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.faults import faulty_server
from tests.studies import holdfast

from .driving import TURNS, Study


def cut(log: Path) -> None:
    """Leave the first half of a file."""
    log.write_bytes(log.read_bytes()[: log.stat().st_size // 2])


def flip(log: Path) -> None:
    """Spoil the records of a log, and leave its table of contents."""
    content = bytearray(log.read_bytes())
    start = content.index(b"samples/") + 100
    content[start : start + 200] = bytes(200)
    log.write_bytes(content)


def fill(log: Path) -> None:
    """Leave the size alone."""
    log.write_bytes(bytes(log.stat().st_size))


RULES = '[[rule]]\nname = "a"\nprotocol = "followup"\nmin_accuracy = 0.1\n'

Damage = Callable[[Path], None]


@pytest.fixture
def left(tmp_path: Path) -> Path:
    """A finished run's log."""
    with faulty_server() as server:
        study = Study(server, tmp_path)
        study.outcome()
    (log,) = study.log_dir.glob("*.eval")
    return log


@pytest.mark.rest_slow
@pytest.mark.parametrize("damage", [cut, flip, fill])
@pytest.mark.parametrize("kind", ["log", "log dir"])
def test_readers_name_a_damaged_log(damage: Damage, kind: str, left: Path, tmp_path: Path) -> None:
    damage(left)
    before = left.read_bytes()
    source = left if kind == "log" else left.parent
    rules = tmp_path / "rules.toml"
    rules.write_text(RULES)
    for command in (
        ("table", source, "--table", "accuracy"),
        ("report", source, "-o", tmp_path / "report.html"),
        ("export", source, "--format", "openai-chat", "-o", tmp_path / "chats.jsonl"),
        ("gate", source, "--rules", rules),
        ("compare", source, source),
    ):
        result = holdfast(*command)
        assert result.returncode == 2, (command, result.stderr)
        assert len(result.stderr.splitlines()) == 1, result.stderr
        assert f"{left}: is damaged and cannot be read (" in result.stderr
        assert "resumes from the cached" in result.stderr
    assert not (tmp_path / "report.html").exists()
    assert not (tmp_path / "chats.jsonl").exists()
    assert left.read_bytes() == before


@pytest.mark.rest_slow
@pytest.mark.parametrize("shards", [0, 2])
@pytest.mark.parametrize("damage", [cut, flip, fill])
def test_a_run_sets_a_damaged_log_aside(damage: Damage, shards: int, tmp_path: Path) -> None:
    with faulty_server() as server:
        study = Study(server, tmp_path)
        study.outcome()
        turns = study.turns()
        (log,) = study.log_dir.glob("*.eval")
        damage(log)
        content = log.read_bytes()
        run = study.run("--json", *(["--shards", str(shards)] if shards else []))
        assert run.returncode == 0, run.stderr
        assert server.stats()["attempts"] == 3 * TURNS
    aside = log.with_name(f"{log.name}.damaged")
    assert aside.read_bytes() == content
    assert not log.exists()
    assert f"{log} is damaged and cannot be read" in " ".join(run.stderr.split())
    assert str(aside) in run.stderr
    assert json.loads(run.stdout)["calls"] == 0
    assert study.turns().equals(turns)


def test_an_empty_log_of_a_kill_is_skipped(left: Path) -> None:
    (left.parent / f"2020{left.name[4:]}").touch()
    assert holdfast("table", left.parent, "--table", "accuracy").returncode == 0
