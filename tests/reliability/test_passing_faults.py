"""Faults that pass are tried again, and leave no trace in what is measured."""

import time
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from inspect_ai.log import list_eval_logs, read_eval_log
from inspect_ai.model import ChatMessageUser, GenerateConfig, get_model

from tests.faults import TRANSIENT, Fault, Latency, faulty_server

from .driving import TURNS, Sound, Study


@pytest.mark.slow
@pytest.mark.parametrize("kind", [*TRANSIENT, "slow-drip"])
def test_a_passing_fault_is_retried(kind: str, sound: pl.DataFrame, tmp_path: Path) -> None:
    with faulty_server(Fault(kind, attempts=1, seconds=0.2)) as server:
        study = Study(server, tmp_path)
        outcome = study.outcome()
        stats = server.stats()
    assert study.turns().equals(sound)
    assert outcome["calls"] == 3 * TURNS
    assert stats["faults"] == {kind: 3 * TURNS}
    assert (stats["finished"], stats["repeated"]) == (3 * TURNS, 0)
    again = 0 if kind == "slow-drip" else 3 * TURNS
    assert stats["attempts"] == 3 * TURNS + again


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["status-429-after", "status-502", "reset-inside", "hang"])
def test_a_passing_fault_is_retried_by_openai(kind: str, sound_by: Sound, tmp_path: Path) -> None:
    with faulty_server(Fault(kind, attempts=1, seconds=0.2)) as server:
        study = Study(server, tmp_path, provider="openai")
        study.outcome()
        stats = server.stats()
    assert study.turns().equals(sound_by("openai"))
    assert (stats["finished"], stats["repeated"]) == (3 * TURNS, 0)
    assert stats["attempts"] == 2 * 3 * TURNS


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["hang", "slow-drip"])
@pytest.mark.parametrize("provider", ["lean", "openai"])
async def test_a_hanging_attempt_is_abandoned_and_retried(provider: str, kind: str) -> None:
    with faulty_server(Fault(kind, attempts=1, seconds=60)) as server:
        more: dict[str, Any] = {"responses_api": False} if provider == "openai" else {}
        model = get_model(
            f"{provider}/bench",
            base_url=server.api,
            config=GenerateConfig(max_retries=1, attempt_timeout=1),
            memoize=False,
            **more,
        )
        began = time.monotonic()
        async with model:
            output = await model.generate([ChatMessageUser(content="Which?")])
        assert "Final Answer" in output.completion
        assert 1 <= time.monotonic() - began < 20
        assert server.stats()["attempts"] == 2


def test_a_run_gives_every_attempt_ten_minutes(tmp_path: Path) -> None:
    with faulty_server() as server:
        study = Study(server, tmp_path, n=1)
        study.outcome()
    (log,) = list_eval_logs(str(study.log_dir))
    header = read_eval_log(log, header_only=True)
    assert header.eval.model_generate_config.attempt_timeout is None
    assert header.plan.config.attempt_timeout == 600


@pytest.mark.slow
def test_mixed_faults_and_latencies_leave_no_trace(sound: pl.DataFrame, tmp_path: Path) -> None:
    faults = Fault("|".join(TRANSIENT), rate=0.3, seconds=0.2)
    with faulty_server(faults, latency=Latency("lognormal", 20, 1.0), seed=7) as server:
        study = Study(server, tmp_path)
        study.outcome()
        stats = server.stats()
    assert study.turns().equals(sound)
    assert stats["repeated"] == 0
    assert len(stats["faults"]) >= 3
