"""The server that goes wrong goes wrong the same way in any order."""

import json
import statistics
import urllib.error
import urllib.request
from typing import Any

import pytest

from tests.faults import KINDS, TRANSIENT, Fault, FaultyServer, FaultySite, Latency, faulty_server

REQUESTS = [
    {"model": "m", "messages": [{"role": "user", "content": f"Question {i}"}]} for i in range(200)
]


def due(site: FaultySite, order: list[int]) -> dict[int, Any]:
    return {i: [site.due(REQUESTS[i], f"{i:032x}", attempt) for attempt in (0, 1)] for i in order}


def test_faults_depend_on_request_attempt_and_seed() -> None:
    faults = [Fault("status-500|status-429|reset-before", rate=0.3)]
    forwards = due(FaultySite(faults, Latency(), 1), list(range(200)))
    backwards = due(FaultySite(faults, Latency(), 1), list(range(199, -1, -1)))
    assert forwards == backwards
    assert forwards != due(FaultySite(faults, Latency(), 2), list(range(200)))
    hit = [fault for attempts in forwards.values() for fault in attempts if fault]
    assert 0.2 < len(hit) / 400 < 0.4
    assert {kind for kind, _ in hit} == {"status-500", "status-429", "reset-before"}


def test_faults_can_be_narrowed() -> None:
    site = FaultySite([Fault("hang", match="on 7", attempts=1, seconds=3)], Latency(), 1)
    assert site.due(REQUESTS[7], "d", 0) == ("hang", 3)
    assert site.due(REQUESTS[7], "d", 1) is None
    assert site.due(REQUESTS[8], "d", 0) is None
    site.faults = [Fault("status-401", after=1)]
    assert site.due(REQUESTS[8], "d", 0) is None
    site.finished["x", None] += 1
    assert site.due(REQUESTS[8], "d", 5) == ("status-401", 30.0)


@pytest.mark.parametrize(
    ("shape", "low", "high", "spread"),
    [("fixed", 0.1, 0.1, 0.0), ("uniform", 0.05, 0.15, 0.0289), ("lognormal", 0.0, 9.0, None)],
)
def test_latencies_have_their_median_and_shape(
    shape: str, low: float, high: float, spread: float | None
) -> None:
    latency = Latency(shape, 100, 0.5)
    latencies = [latency.seconds((i + 0.5) / 1000) for i in range(1000)]
    assert statistics.median(latencies) == pytest.approx(0.1, rel=0.01)
    assert low <= min(latencies) <= max(latencies) <= high
    if spread is not None:
        assert statistics.pstdev(latencies) == pytest.approx(spread, abs=1e-3)
    else:
        assert statistics.quantiles(latencies, n=100)[97] > 0.25


def post(server: FaultyServer, request: dict[str, Any]) -> bytes:
    call = urllib.request.Request(
        f"{server.api}/chat/completions", json.dumps(request).encode(), method="POST"
    )
    with urllib.request.urlopen(call, timeout=10) as response:
        body: bytes = response.read()
    return body


def test_only_whole_replies_count_as_finished() -> None:
    with faulty_server(Fault("status-500", match="on 3")) as server:
        post(server, REQUESTS[1])
        with pytest.raises(urllib.error.HTTPError):
            post(server, REQUESTS[3])
        stats = server.stats()
        assert (stats["attempts"], stats["finished"], stats["repeated"]) == (2, 1, 0)
        server.set()
        for request in (REQUESTS[3], REQUESTS[1]):
            post(server, request)
        stats = server.stats()
        assert (stats["finished"], stats["distinct"], stats["repeated"]) == (3, 2, 1)
        server.reset()
        assert server.stats()["finished"] == 0


def test_every_kind_that_passes_is_known() -> None:
    assert set(TRANSIENT) < set(KINDS)
