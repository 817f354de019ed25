"""A budget holds to within the generations in flight, whatever goes wrong on the way."""

import json
from pathlib import Path

import pytest

from tests.faults import TRANSIENT, Fault, Latency, faulty_server

from .driving import TURNS, Study

FAULTS = Fault("|".join(TRANSIENT), rate=0.2, seconds=0.1)
CONNECTIONS = 4


@pytest.mark.slow
def test_call_limits_are_exact_and_exclude_faults(tmp_path: Path) -> None:
    with faulty_server(FAULTS, latency=Latency("uniform", 10)) as server:
        study = Study(server, tmp_path)
        generations, codes = [], []
        for _ in range(3):
            run = study.run("--json", "--call-limit", str(TURNS))
            codes.append(run.returncode)
            generations.append(server.stats()["finished"])
        stats = server.stats()
    assert codes == [3, 3, 0]
    assert generations == [TURNS, 2 * TURNS, 3 * TURNS]
    assert stats["repeated"] == 0
    assert stats["attempts"] > stats["finished"]


@pytest.mark.slow
@pytest.mark.parametrize("option", ["--token-limit", "--cost-limit"])
def test_token_and_cost_limits_allow_only_requests_in_flight(option: str, tmp_path: Path) -> None:
    prices = tmp_path / "prices.json"
    prices.write_text('{"lean/bench": {"input": 1.0, "output": 1.0}}')
    limit = 3000 if option == "--token-limit" else 0.003
    with faulty_server(FAULTS, latency=Latency("uniform", 10)) as server:
        study = Study(server, tmp_path, n=4)
        more = (option, str(limit), "--prices", prices, "--max-connections", str(CONNECTIONS))
        run = study.run("--json", *more)
        assert run.returncode == 3
        outcome = json.loads(run.stdout)
        assert "The budget is spent" in outcome["unfinished"]
        expense = outcome["tokens"] if option == "--token-limit" else outcome["cost"]
        dearest = expense / outcome["calls"] * 2
        assert limit <= expense < limit + CONNECTIONS * dearest
        assert outcome["cost"] == pytest.approx(outcome["tokens"] / 1e6)
        assert server.stats()["finished"] == outcome["calls"]

        second = study.outcome()
        assert outcome["calls"] + second["calls"] == 4 * TURNS
        assert server.stats()["repeated"] == 0


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["no-usage", "usage-as-text"])
@pytest.mark.parametrize("provider", ["lean", "openai"])
def test_missing_token_counts_are_estimated(provider: str, kind: str, tmp_path: Path) -> None:
    if (provider, kind) == ("openai", "usage-as-text"):
        pytest.skip("openai's library refuses such a reply as a whole")
    prices = tmp_path / "prices.json"
    prices.write_text(f'{{"{provider}/bench": {{"input": 1.0, "output": 1.0}}}}')
    with faulty_server() as server:
        reference = Study(server, tmp_path / "told", provider=provider)
        reference.folder.mkdir()
        tokens = reference.outcome()["tokens"]
    with faulty_server(Fault(kind)) as server:
        study = Study(server, tmp_path, provider=provider)
        for option, limit in (("--token-limit", tokens // 3), ("--cost-limit", tokens / 3e6)):
            run = study.run("--json", option, str(limit), "--prices", prices)
            assert run.returncode == 3
            outcome = json.loads(run.stdout)
            assert "The budget is spent" in outcome["unfinished"]
            assert 0 < outcome["estimated_calls"] == outcome["calls"] < 3 * TURNS
        whole = study.run("--prices", prices)
        assert whole.returncode == 0
        assert server.stats()["repeated"] == 0
    assert "calls; the server reported no tokens)" in " ".join(whole.stdout.split())
    # the server counts four characters a token too, each part of a conversation by itself
    outcome = study.outcome("--call-limit", "0")
    assert outcome["estimated_calls"] == 0
    assert study.turns()["input_tokens"].sum() == 0


def test_estimates_are_near_the_servers_counts(tmp_path: Path) -> None:
    token_counts = []
    for kind in ("no-usage", "slow-drip"):
        with faulty_server(Fault(kind, seconds=0.0)) as server:
            study = Study(server, tmp_path / kind, n=1)
            study.folder.mkdir()
            token_counts.append(study.outcome()["tokens"])
    assert token_counts[0] == pytest.approx(token_counts[1], rel=0.01)


def test_an_empty_budget_asks_nothing(tmp_path: Path) -> None:
    with faulty_server() as server:
        assert Study(server, tmp_path).run("--call-limit", "0").returncode == 3
        assert server.stats()["attempts"] == 0
