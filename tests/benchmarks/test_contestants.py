"""All who drive the study in the benchmark say the same, and their figures are worked out right."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from benchmarks.contestants import (
    BenchmarkError,
    Cost,
    Drive,
    drive_holdfast,
    drive_naive,
    drive_peer,
    has_peer,
    techniques,
)
from benchmarks.drive import compare, many_questions, medians
from benchmarks.server import Server, running_server

from holdfast.questions.loading import load_questions

N = 2
CALLS = N * (1 + len(techniques()))


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with running_server(log=tmp_path / "asked") as server:
        yield server


@pytest.mark.slow
def test_contestants_agree(server: Server) -> None:
    assert drive_holdfast(server, "bank", N, 4, "lean").calls == CALLS
    ours = server.answered()
    assert drive_peer("bare", sys.executable, server, "bank", N, 4).calls == CALLS
    bare = server.answered()[len(ours) :]
    assert drive_naive(server, "bank", N, 4).calls == CALLS + N * len(techniques())
    naive = server.answered()[len(ours) + len(bare) :]
    assert sorted(ours) == sorted(bare)
    assert len(set(naive)) == CALLS  # in the words of the SDK, so by their number alone


def test_a_missing_peer_is_reported(server: Server) -> None:
    assert has_peer(sys.executable, "aiohttp")
    assert not has_peer(sys.executable, "no_such_peer")
    with pytest.raises(BenchmarkError, match="invalid choice"):
        drive_peer("no-such-peer", sys.executable, server, "bank", 1, 1)


def drive(cpu_s: float, calls: int, asking_s: float) -> Drive:
    return Drive.of(Cost(10.0, cpu_s, 100.0), calls, 0, asking_s)


def test_rates_count_request_time() -> None:
    result = drive(cpu_s=6.0, calls=3000, asking_s=6.0)
    assert result.calls_per_s == 500
    assert result.cpu_ms_per_call == 2.0
    assert medians([result, drive(9.0, 3000, 7.5), drive(12.0, 3000, 10.0)])["calls_per_s"] == 400


def test_a_second_call_excludes_startup() -> None:
    comparison = compare(
        {"holdfast": lambda *_: drive(7.0, 1500, 9.0), "bare": lambda *_: drive(1.0, 1500, 7.5)},
        {"holdfast": drive(4.03, 15, 1.0), "bare": drive(0.109, 15, 1.0)},
        latency_ms=500,
        connections=100,
        rounds=1,
    )
    ours, bare = comparison["contestants"]["holdfast"], comparison["contestants"]["bare"]
    assert ours["cpu_ms_further_call"] == pytest.approx(2.0)  # 2.97 s for 1,485 calls
    assert bare["cpu_ms_further_call"] == pytest.approx(0.6)  # 0.891 s for them
    assert (ours["to_ideal"], bare["to_ideal"]) == (1.2, 1.0)  # of 1500 x 0.5 s / 100
    assert comparison["to_holdfast"]["bare"]["cpu_per_further_call"] == pytest.approx(0.3)
    assert comparison["to_holdfast"]["bare"]["cpu"] == pytest.approx(1 / 7)


def test_generated_questions_all_differ(tmp_path: Path) -> None:
    path, n = tmp_path / "many.jsonl", 500
    many_questions(path, "bank", n)
    questions = load_questions(str(path)).questions
    assert len({json.loads(line)["id"] for line in path.read_text("utf-8").splitlines()}) == n
    assert len({question.content_hash for question in questions}) == n
    assert {question.gold for question in questions} <= set("ABCDEFGHIJ")
