"""A server that keeps several processes busy is asked by several, and nobody need know."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from benchmarks.server import running_server

import holdfast
from holdfast.errors import InputError
from holdfast.running import shards
from holdfast.running.resolved import Outcome

pytestmark = pytest.mark.slow

QUESTIONS = 6
CALLS = QUESTIONS * 17


@pytest.fixture
def two_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shards, "_processors", lambda: 2)
    monkeypatch.setattr(shards, "FULL", 1)
    monkeypatch.setattr(shards, "WORTH", 20)


def run(log_dir: Path, url: str, model: str = "lean/bench", **more: Any) -> Outcome:
    return holdfast.run(
        "followup", model, shards="auto", log_dir=str(log_dir), limit=QUESTIONS,
        model_base_url=url, max_connections=5, **more,
    )  # fmt: skip


def logs(log_dir: Path) -> list[str]:
    return sorted(log.name for log in log_dir.glob("*.eval"))


def turns(log_dir: Path) -> pl.DataFrame:
    return pl.read_parquet(log_dir / "turns.parquet").drop("latency")


@pytest.mark.usefixtures("two_processors")
def test_a_fast_server_gets_a_process_per_processor(
    tmp_path: Path,
) -> None:
    with running_server() as server:
        first = run(tmp_path / "split", f"{server.url}/v1")
        first_logs = logs(tmp_path / "split")
        again = run(tmp_path / "split", f"{server.url}/v1")
        assert server.stats()["calls"] == server.stats()["distinct"] == CALLS
    assert (first.unfinished, first.budget.calls, first.budget.cached) == ("", CALLS, 0)
    assert (again.unfinished, again.budget.calls) == ("", 0)
    assert len(first_logs) == 2
    assert logs(tmp_path / "split") == first_logs
    with running_server() as server:
        holdfast.run(
            "followup", "lean/bench", log_dir=str(tmp_path / "alone"), limit=QUESTIONS,
            model_base_url=f"{server.url}/v1",
        )  # fmt: skip
    assert turns(tmp_path / "split").equals(turns(tmp_path / "alone"))


@pytest.mark.usefixtures("two_processors")
@pytest.mark.parametrize(
    ("full", "more"),
    [(1, {"call_limit": 1000}), (1, {"model": "simulated/steadfast"}), (1_000_000, {})],
    ids=["budget", "simulated", "slow"],
)
def test_other_models_are_asked_by_this_process(
    full: int, more: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shards, "FULL", full)
    with running_server() as server:
        outcome = run(tmp_path / "r", f"{server.url}/v1", **more)
    assert not outcome.unfinished
    assert len(logs(tmp_path / "r")) == 1


@pytest.mark.usefixtures("two_processors")
def test_a_folder_above_a_sharded_run_is_refused_first(tmp_path: Path) -> None:
    with running_server() as server:
        run(tmp_path / "split", f"{server.url}/v1")
        with pytest.raises(InputError, match="contains this run;"):
            run(tmp_path, f"{server.url}/v1")
        # half of it here and half there is no run
        for half, log in zip(("a", "b"), logs(tmp_path / "split"), strict=True):
            (tmp_path / "apart" / half).mkdir(parents=True)
            (tmp_path / "split" / log).rename(tmp_path / "apart" / half / log)
        assert run(tmp_path / "apart", f"{server.url}/v1").unfinished == ""
