"""``holdfast run medfuzz``: replicates, and what is planned and spent."""

import json
from collections.abc import Sequence
from pathlib import Path

import polars as pl
import pytest
from tests.cli.commands import plan_of, study_of
from tests.fuzzing import (
    ATTACKER,
    ATTACKS_ALONE,
    TARGET,
    TRADES,
    Reply,
    Request,
    answering,
    at,
    attacking,
    gold_in,
    script_server,
    serving,
)
from tests.studies import question_rows, write_jsonl

from holdfast.results.declaration import TABLES

MEDFUZZ = ("medfuzz", *ATTACKS_ALONE)
MODELS = ("--model", "simulated/fuzz-swayed", "--model-role", "attacker=simulated/attacker")


def questions(n: int) -> tuple[str, str]:
    return "--questions", write_jsonl(Path("q.jsonl"), question_rows(n))


def by_replicate(request: Request) -> str:
    """The seed decides which attempt turns the answer: the first replicate's first, and so on."""
    assert request.seed is not None
    return serving(answering(*TRADES[request.seed - 42 :]))(request)


def test_five_replicates_are_five_trajectories() -> None:
    with script_server(by_replicate) as site:
        _, turns = study_of(*MEDFUZZ, *at(site), *questions(2))
        for model, calls in ((TARGET, 5 + 15), (ATTACKER, 15)):
            seeds = [request.seed for request in site.by(model)]
            counts = {seed: seeds.count(seed) for seed in seeds}
            more = model == TARGET
            assert counts == {42 + r: 2 * (r + 1 + more) for r in range(5)}
            assert len(seeds) == 2 * calls
        assert site.repeated == 0
    curve = TABLES["attacks"](turns)
    assert curve["accuracy"].to_list() == pytest.approx([1.0, 0.8, 0.6, 0.4, 0.2, 0.0])
    assert curve["replicates"].to_list() == [10] * 6
    assert curve["questions"].to_list() == [2] * 6


@pytest.mark.slow
def test_a_seed_fixes_the_five_replicates(monkeypatch: pytest.MonkeyPatch) -> None:
    def turns_of(name: str, *more: str) -> pl.DataFrame:
        monkeypatch.setenv("HOLDFAST_CACHE_DIR", str(Path(f"cache-{name}").absolute()))
        outcome, turns = study_of(*MEDFUZZ, *MODELS, *questions(3), *more, "--log-dir", name)
        assert outcome["cached"] == 0
        return turns.drop("latency")

    first = turns_of("a")
    assert first.equals(turns_of("b"))
    assert sorted(first["epoch"].unique()) == [1, 2, 3, 4, 5]
    answers = ["question", "epoch", "arm", "path", "answer"]
    assert not first.select(answers).equals(turns_of("c", "--seed", "43").select(answers))
    # independent draws: no two replicates went alike on all of the questions
    paths = first.filter(pl.col("arm") == "attacker").group_by("epoch").agg("prompt", "reply")
    assert len({str(row) for row in paths.drop("epoch").rows()}) == 5


@pytest.mark.slow
def test_epochs_can_be_added() -> None:
    order = ("question", "epoch")
    with script_server(by_replicate) as site:
        study = [*MEDFUZZ, *at(site), *questions(2), "--log-dir", "r"]
        _, two = study_of(*study, "--epochs", "2")
        assert {request.seed for request in site.requests} == {42, 43}
        before = len(site.requests)
        assert before == 2 * (3 + 5)
        _, three = study_of(*study, "--epochs", "3")
        assert {request.seed for request in site.requests[before:]} == {44}
        assert (len(site.requests), site.repeated) == (before + 2 * 7, 0)
    first_two = three.filter(pl.col("epoch") < 3).drop("latency", "run")
    assert first_two.sort(order, maintain_order=True).equals(
        two.drop("latency", "run").sort(order, maintain_order=True)
    )


def never_right(messages: Sequence[tuple[str, str]]) -> str:
    return f"Final Answer: ({'B' if gold_in(messages[-1][1]) == 'A' else 'A'})"


EXTREMES: dict[str, tuple[Reply, Reply, tuple[float, float]]] = {
    # shares of the bounds that target and attacker reach
    "all wrong at first": (never_right, attacking, (1 / 6, 0.0)),
    "nothing turns": (answering(), attacking, (1.0, 1 / 4)),
    "nothing is valid": (answering(), lambda _: "Prose.", (1 / 6, 1.0)),
    "turned at the second": (answering("sailor"), attacking, (1 / 2, 1 / 10)),
}


@pytest.mark.rest_slow
@pytest.mark.parametrize("name", EXTREMES)
def test_requests_stay_within_the_plan(name: str) -> None:
    target, attacker, shares = EXTREMES[name]

    def reply(request: Request) -> str:
        return "[true]" if request.model == "gpt-4-judge" else serving(target, attacker)(request)

    with script_server(reply) as site:
        judge = f"judge={{model: openai/gpt-4-judge, base_url: {site.url}}}"
        study = [*MEDFUZZ, *at(site), *questions(2), "--epochs", "2", "--model-role", judge]
        rows = plan_of(*study)
        assert site.requests == []
        outcome, _ = study_of(*study)
        calls = [len(site.by(model)) for model in (TARGET, ATTACKER, "gpt-4-judge")]
    assert [row["protocol"] for row in rows] == [
        "medfuzz", "medfuzz: attacker", "medfuzz: judge",
    ]  # fmt: skip
    assert not any(row["exact"] for row in rows)
    assert outcome["calls"] == sum(calls)
    for row, number in zip(rows, calls, strict=True):
        assert row["at_least"] <= number <= row["generations"]
    for row, number, share in zip(rows, calls, shares, strict=False):
        assert number == pytest.approx(share * row["generations"])
    assert rows[0]["at_least"] == 2 * 2


def test_a_replicate_that_is_cut_short_has_no_outcome() -> None:
    with script_server(by_replicate) as site:
        study = [*MEDFUZZ, *at(site), *questions(2), "--log-dir", "r"]
        outcome, turns = study_of(*study, "--call-limit", "31", code=3)
        assert outcome["calls"] == len(site.requests) == 31
    (row,) = TABLES["attack-summary"](turns).iter_rows(named=True)
    assert row["unfinished"] > 0
    assert row["replicates"] + row["unfinished"] <= 10


def test_a_success_costs_target_and_attacker_calls() -> None:
    price = {"input": 10.0, "output": 10.0, "input_cache_read": 10.0, "input_cache_write": 10.0}
    prices = {f"openai/{model}": price for model in (TARGET, ATTACKER)}
    Path("prices.json").write_text(json.dumps(prices), "utf-8")
    with script_server(by_replicate) as site:
        study = (*MEDFUZZ, *at(site), *questions(1), "--prices", "prices.json")
        outcome, turns = study_of(*study)
    (row,) = TABLES["attack-summary"](turns).iter_rows(named=True)
    assert row["cost"] == pytest.approx(outcome["cost"])
    assert row["cost"] == pytest.approx(outcome["tokens"] * 10 / 1e6)
    assert (row["succeeded"], row["unpriced"]) == (5, 0)
    assert row["cost_per_success"] == pytest.approx(outcome["cost"] / 5)
