"""``holdfast run medfuzz``: replicates, what is planned and spent, going on, Inspect's own way."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from inspect_ai.log import list_eval_logs, read_eval_log
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
from tests.studies import (
    HOLDFAST,
    finished_generations,
    holdfast,
    holdfast_apart,
    question_rows,
    write_jsonl,
)

from holdfast.results.declaration import TABLES
from holdfast.results.turns import turns_table

INSPECT = Path(sys.executable).with_name("inspect")
SIMULATED = ("--model", "simulated/fuzz-swayed", "--model-role", "attacker=simulated/attacker")


def ran(*arguments: str | Path) -> dict[str, Any]:
    run = holdfast("run", "medfuzz", *ATTACKS_ALONE, *arguments, "--json")
    assert run.returncode == 0, run.stderr
    outcome: dict[str, Any] = json.loads(run.stdout)
    return outcome


def refused(*arguments: str | Path) -> str:
    """The one line that a refused command prints."""
    run = holdfast(*arguments)
    assert run.returncode == 2, run.stdout + run.stderr
    assert run.stdout == ""
    (line,) = run.stderr.strip().splitlines()
    return line


def written(tmp_path: Path, n: int) -> tuple[str, str]:
    return "--questions", write_jsonl(tmp_path / "q.jsonl", question_rows(n))


def replies(request: Request) -> int:
    return sum(role == "assistant" for role, _ in request.messages)


def by_replicate(request: Request) -> str:
    """The seed decides which attempt turns the answer: the first replicate's first, and so on."""
    assert request.seed is not None
    return serving(answering(*TRADES[request.seed - 42 :]))(request)


# --- replicates ---


def test_five_replicates_are_five_trajectories_of_their_own(tmp_path: Path) -> None:
    with script_server(by_replicate) as site:
        outcome = ran(*at(site), *written(tmp_path, 2))
        for model, asked in ((TARGET, 5 + 15), (ATTACKER, 15)):
            seeds = [request.seed for request in site.by(model)]
            counts = {seed: seeds.count(seed) for seed in seeds}
            more = model == TARGET
            assert counts == {42 + r: 2 * (r + 1 + more) for r in range(5)}
            assert len(seeds) == 2 * asked
        assert site.repeated == 0
    turns = pl.read_parquet(outcome["turns"])
    curve = TABLES["attacks"](turns)
    assert curve["accuracy"].to_list() == pytest.approx([1.0, 0.8, 0.6, 0.4, 0.2, 0.0])
    assert curve["replicates"].to_list() == [10] * 6
    assert curve["questions"].to_list() == [2] * 6


@pytest.mark.slow
@pytest.mark.parametrize("model", ["simulated", pytest.param("http", marks=pytest.mark.slow)])
def test_the_same_seed_gives_the_same_five_and_another_does_not(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with script_server(by_replicate) as site:

        def turns(name: str, *more: str) -> pl.DataFrame:
            models = SIMULATED if model == "simulated" else at(site)
            monkeypatch.setenv("HOLDFAST_CACHE_DIR", str(tmp_path / f"cache-{name}"))
            outcome = ran(*models, *written(tmp_path, 3), *more, "--log-dir", name)
            assert outcome["cached"] == 0
            return pl.read_parquet(outcome["turns"]).drop("latency")

        first, again = turns("a"), turns("b")
        assert first.equals(again)
        assert sorted(first["epoch"].unique()) == [1, 2, 3, 4, 5]
        other = turns("c", "--seed", "43")
    answers = ["question", "epoch", "arm", "path", "answer"]
    assert not first.select(answers).equals(other.select(answers))
    if model == "simulated":
        # independent draws: no two replicates went alike on all of the questions
        paths = first.filter(pl.col("arm") == "attacker").group_by("epoch").agg("prompt", "reply")
        assert len({str(row) for row in paths.drop("epoch").rows()}) == 5


@pytest.mark.slow
def test_epochs_are_as_many_as_asked_for_and_can_grow(tmp_path: Path) -> None:
    with script_server(by_replicate) as site:
        command = [*at(site), *written(tmp_path, 2), "--log-dir", "r"]
        two = pl.read_parquet(ran(*command, "--epochs", "2")["turns"])
        assert {request.seed for request in site.requests} == {42, 43}
        before = len(site.requests)
        assert before == 2 * (3 + 5)
        three = pl.read_parquet(ran(*command, "--epochs", "3")["turns"])
        assert {request.seed for request in site.requests[before:]} == {44}
        assert (len(site.requests), site.repeated) == (before + 2 * 7, 0)
    same = three.filter(pl.col("epoch") < 3).drop("latency", "run")
    assert same.sort("question", "epoch", maintain_order=True).equals(
        two.drop("latency", "run").sort("question", "epoch", maintain_order=True)
    )


# --- what is planned ---


def planned(*arguments: str | Path) -> list[dict[str, Any]]:
    given = list(arguments)
    where = given.index("--model-base-url")
    plan = holdfast(
        "run", "--dry-run", "medfuzz", *ATTACKS_ALONE, *given[:where], *given[where + 2 :], "--json"
    )
    assert plan.returncode == 0, plan.stderr
    rows: list[dict[str, Any]] = json.loads(plan.stdout)
    return rows


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
def test_what_is_asked_stays_inside_the_plan(name: str, tmp_path: Path) -> None:
    target, attacker, shares = EXTREMES[name]
    with script_server(serving(target, attacker)) as site:
        settings = [*at(site), *written(tmp_path, 2), "--epochs", "2"]
        rows = planned(*settings)
        assert site.requests == []
        outcome = ran(*settings)
        asked = [len(site.by(model)) for model in (TARGET, ATTACKER)]
    assert [row["protocol"] for row in rows] == ["medfuzz", "medfuzz: attacker"]
    assert [row["exact"] for row in rows] == [False, False]
    for row, n, share in zip(rows, asked, shares, strict=True):
        assert row["at_least"] <= n <= row["generations"]
        assert n == pytest.approx(share * row["generations"])
    assert rows[0]["at_least"] == 2 * 2
    assert outcome["calls"] == sum(asked)


def test_a_judge_is_asked_no_more_than_planned(tmp_path: Path) -> None:
    def reply(request: Request) -> str:
        if request.model == "gpt-4-judge":
            return "[true]"
        return serving(answering("baker"))(request)

    with script_server(reply) as site:
        judge = f"judge={{model: openai/gpt-4-judge, base_url: {site.url}}}"
        settings = [*at(site), "--model-role", judge, *written(tmp_path, 3), "--epochs", "1"]
        row = planned(*settings)[2]
        ran(*settings)
        assert row["protocol"] == "medfuzz: judge"
        assert len(site.by("gpt-4-judge")) == row["generations"] == 2 * 3


# --- what is spent ---


def priced(tmp_path: Path) -> str:
    price = {"input": 10.0, "output": 10.0, "input_cache_read": 10.0, "input_cache_write": 10.0}
    prices = {f"openai/{model}": price for model in (TARGET, ATTACKER)}
    file = tmp_path / "prices.json"
    file.write_text(json.dumps(prices), "utf-8")
    return str(file)


@pytest.mark.slow
@pytest.mark.parametrize("budget", [pytest.param("calls", marks=pytest.mark.slow), "cost"])
def test_a_budget_stops_an_attack_and_the_same_command_goes_on(
    budget: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with script_server(by_replicate) as site:
        command = [
            *at(site), *written(tmp_path, 2), "--prices", priced(tmp_path), "--log-dir", "r",
        ]  # fmt: skip
        unbroken = ran(*command[:-1], "unbroken")
        total = len(site.requests)
        assert total == 70
        site.requests.clear()
        limit = ("--call-limit", "31") if budget == "calls" else (
            "--cost-limit", str(unbroken["cost"] * 0.4), "--max-connections", "2"
        )  # fmt: skip
        monkeypatch.setenv("HOLDFAST_CACHE_DIR", str(tmp_path / "own"))
        stopped = holdfast("run", "medfuzz", *ATTACKS_ALONE, *command, *limit, "--json")
        assert stopped.returncode == 3, stopped.stderr
        outcome = json.loads(stopped.stdout)
        assert outcome["complete"] is False
        assert "The budget is spent" in stopped.stderr
        assert "Repeat the command to resume." in stopped.stderr
        spent = len(site.requests)
        assert outcome["calls"] == spent
        if budget == "calls":
            assert spent == 31
        else:  # held to within what is in flight, two requests at the most
            allowed = unbroken["cost"] * 0.4
            (dearest,) = pl.read_parquet(unbroken["turns"]).select(pl.col("cost").max()).row(0)
            assert allowed <= outcome["cost"] <= allowed + 2 * dearest < unbroken["cost"] / 2
        partly = pl.read_parquet(outcome["turns"])
        # a replicate that was cut short has no outcome
        (row,) = TABLES["attack-summary"](partly).iter_rows(named=True)
        assert row["unfinished"] > 0
        assert row["replicates"] + row["unfinished"] <= 10
        resumed = ran(*command)
        assert (len(site.requests), site.repeated) == (total, 0)
    assert resumed["calls"] == total - spent
    turns = pl.read_parquet(resumed["turns"])
    assert turns.drop("latency").equals(pl.read_parquet(unbroken["turns"]).drop("latency"))


def test_cost_per_success_is_what_target_and_attacker_cost(tmp_path: Path) -> None:
    with script_server(by_replicate) as site:
        outcome = ran(*at(site), *written(tmp_path, 1), "--prices", priced(tmp_path))
    (row,) = TABLES["attack-summary"](pl.read_parquet(outcome["turns"])).iter_rows(named=True)
    assert row["cost"] == pytest.approx(outcome["cost"])
    assert row["cost"] == pytest.approx(outcome["tokens"] * 10 / 1e6)
    assert (row["succeeded"], row["unpriced"]) == (5, 0)
    assert row["cost_per_success"] == pytest.approx(outcome["cost"] / 5)


# --- killed ---


@pytest.mark.slow
def test_an_attack_that_was_killed_goes_on_and_ends_as_if_it_had_not_been(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    connections = 4

    def reply(request: Request) -> str:
        # every attempt of every replicate has a try that cannot be used
        if request.model == ATTACKER and replies(request) % 2 == 0:
            return "Prose."
        return by_attempts(request)

    with script_server(reply, latency_ms=30) as site:

        def command(name: str) -> list[str]:
            return [
                "run", "medfuzz", *ATTACKS_ALONE, *at(site), *written(tmp_path, 6),
                "--epochs", "3", "--json", "--max-connections", str(connections),
                "--log-dir", str(tmp_path / name),
            ]  # fmt: skip

        unbroken = holdfast_apart(*command("unbroken"), env=environment)
        assert unbroken.returncode == 0, unbroken.stderr
        total = len(site.requests)
        site.requests.clear()
        killed = subprocess.Popen(
            [str(HOLDFAST), *command("killed")],
            env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        deadline = time.monotonic() + 60
        while len(site.requests) < total // 2 and time.monotonic() < deadline:
            time.sleep(0.01)
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        time.sleep(0.1)
        asked = len(site.requests)
        assert total // 2 <= asked < total
        assert {request.model for request in site.requests} == {TARGET, ATTACKER}
        stored = finished_generations(tmp_path / "killed")
        resumed = holdfast_apart(*command("killed"), env=environment)
        assert resumed.returncode == 0, resumed.stderr
        outcome = json.loads(resumed.stdout)
        # only what was in flight at the kill is asked once more, by either model
        assert outcome["calls"] == total - stored
        assert site.repeated == asked - stored <= 2 * connections
    expected = pl.read_parquet(json.loads(unbroken.stdout)["turns"]).drop("latency")
    assert pl.read_parquet(outcome["turns"]).drop("latency").equals(expected)


def by_attempts(request: Request) -> str:
    """Turned at the third valid attempt; the attacker's odd replies alone count."""
    if request.model == ATTACKER:
        return serving(answering())(request)
    return serving(answering(TRADES[5]))(request)


# --- roles, and Inspect's own command line ---


@pytest.mark.parametrize("way", [(), ("--dry-run",)])
def test_without_an_attacker_one_line_says_so(way: tuple[str, ...]) -> None:
    line = refused("run", *way, "medfuzz", "--model", "simulated/fuzz-swayed")
    assert "medfuzz needs a model in the role 'attacker'" in line
    assert "--model-role attacker=MODEL; it is never the model under test" in line
    assert not Path("runs").exists()


@pytest.mark.parametrize("helper", ["judge", "fuzz-swayed"])
def test_a_model_that_writes_no_attacks_leaves_the_run_incomplete(helper: str) -> None:
    role = f"attacker=simulated/{helper}"
    run = holdfast(
        "run", "medfuzz", *ATTACKS_ALONE, "--model", "simulated/steadfast", "--model-role", role,
        "--limit", "2", "--epochs", "1",
    )  # fmt: skip
    assert run.returncode in (2, 3)
    last = run.stderr.strip().splitlines()[-1]
    assert f"'simulated/{helper}' gives no attack" in last
    assert "Use simulated/attacker" in last


def inspect(tmp_path: Path, *settings: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [str(INSPECT), "eval", "holdfast/medfuzz", "--model", "simulated/fuzz-swayed",
         "--limit", "2", "--display", "plain", "--log-dir", "logs", *settings],
        cwd=tmp_path, capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip


@pytest.mark.slow
def test_inspects_own_command_line_attacks(tmp_path: Path) -> None:
    done = inspect(tmp_path, "--model-role", "attacker=simulated/attacker")
    assert done.returncode == 0, done.stdout + done.stderr
    (info,) = list_eval_logs(str(tmp_path / "logs"))
    assert read_eval_log(info).status == "success"
    turns = turns_table([info.name])
    assert turns["protocol"].unique().to_list() == ["medfuzz"]
    assert turns["epoch"].n_unique() == 5
    (row,) = TABLES["attack-summary"](turns).iter_rows(named=True)
    assert (row["replicates"], row["unfinished"]) == (2 * 5, 0)


@pytest.mark.slow
def test_inspects_own_command_line_refuses_to_let_the_target_attack_itself(tmp_path: Path) -> None:
    done = inspect(tmp_path, "--epochs", "1")
    said = " ".join((done.stdout + done.stderr).split())
    assert "no model has the role 'attacker'" in said
    for info in list_eval_logs(str(tmp_path / "logs")):
        assert read_eval_log(info).status == "error"
        assert turns_table([info.name]).is_empty()
