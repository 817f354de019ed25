"""``holdfast run stick-or-switch``: what is asked over HTTP, what is told, how long it takes."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from benchmarks.drive import measured
from benchmarks.server import Server, running_server
from inspect_ai.log import list_eval_logs, read_eval_log
from tests.studies import (
    HOLDFAST,
    finished_generations,
    holdfast,
    holdfast_apart,
    question_rows,
    write_jsonl,
)

from holdfast.results.turns import turns_table

INSPECT = Path(sys.executable).with_name("inspect")


def ran(*arguments: str | Path) -> dict[str, Any]:
    run = holdfast("run", "stick-or-switch", *arguments, "--json")
    assert run.returncode == 0, run.stderr
    outcome: dict[str, Any] = json.loads(run.stdout)
    return outcome


def at(server: Server) -> list[str]:
    return ["--model", "openai/bench", "--model-base-url", f"{server.url}/v1"]


def refused(*arguments: str | Path) -> str:
    """The one line that a refused run prints."""
    run = holdfast("run", "stick-or-switch", "--model", "simulated/steadfast", *arguments)
    assert run.returncode == 2, run.stdout + run.stderr
    assert run.stdout == ""
    (line,) = run.stderr.strip().splitlines()
    assert not Path("runs").exists()
    return line


# --- counts ---


def expected_calls(turns: pl.DataFrame) -> dict[str, int]:
    """By question, the generations that its answers call for, whatever rows the table has."""
    calls: dict[str, int] = {}
    for (question,), own in turns.group_by("question"):
        row = {(r["arm"], r["turn"]): r for r in own.iter_rows(named=True)}
        offers = len(row["single-shot", 0]["shown"].split(",")) - 1
        needed = 2
        for arm in ("positive", "negative"):
            kept = [row[arm, turn]["answer"] == row[arm, turn]["target"] for turn in range(offers)
                    if (arm, turn) in row]  # fmt: skip
            first = kept.index(False) + 1 if False in kept else offers
            needed += first + (arm == "negative" and kept[0])
            # its control shares turn 1 and stops by the same rule
            asked = [row[f"{arm}-control", turn] for turn in range(1, offers)
                     if (f"{arm}-control", turn) in row]  # fmt: skip
            held = [one["answer"] == one["target"] for one in asked]
            ends = held.index(False) + 1 if False in held else offers - 1
            needed += ends if kept[0] else 0
        calls[str(question)] = needed
    return calls


@pytest.mark.slow
def test_over_http_conversations_stop_at_the_first_departure(
    server: Server, tmp_path: Path
) -> None:
    plan = holdfast("run", "--dry-run", "stick-or-switch", "--model", "openai/bench", "--json")
    (row,) = json.loads(plan.stdout)
    assert (row["questions"], row["at_least"], row["generations"]) == (60, 4 * 60, 13 * 60)
    assert row["exact"] is False
    outcome = ran(*at(server), "--log-dir", tmp_path / "r")
    stats = server.stats()
    turns = pl.read_parquet(outcome["turns"])
    needed = expected_calls(turns)
    assert outcome["calls"] == stats["calls"] == stats["distinct"] == sum(needed.values())
    assert turns.height == stats["calls"]
    assert row["at_least"] < stats["calls"] < row["generations"]
    assert set(needed.values()) <= set(range(4, 14))
    # the server's answers are right by chance, so that every kind of ending is among them
    assert set(turns.filter(pl.col("arm") == "positive")["turn"]) == {0, 1, 2}
    assert "flexible-correct" in set(turns["arm"])
    assert set(turns["status"]) >= {"parsed", "none"}
    again = ran(*at(server), "--log-dir", tmp_path / "r")
    assert (again["calls"], server.stats()["calls"]) == (0, stats["calls"])


@pytest.mark.slow
def test_four_options_take_thirteen_generations_at_the_most(tmp_path: Path) -> None:
    outcome = ran("--model", "simulated/steadfast", "--log-dir", tmp_path / "r", "--limit", "40")
    turns = pl.read_parquet(outcome["turns"])
    by_question = turns.group_by("question").len()["len"]
    assert outcome["calls"] == turns.height == by_question.sum()
    # a wrong first choice ends a conversation; half of a wrong abstention ends two
    assert set(by_question) <= {4, 8, 9, 13}
    assert by_question.max() == 13
    assert expected_calls(turns) == dict(turns.group_by("question").len().iter_rows())


@pytest.mark.slow
def test_a_budget_stops_a_run_that_the_same_command_goes_on_with(
    server: Server, tmp_path: Path
) -> None:
    command = [*at(server), "--log-dir", str(tmp_path / "r"), "--limit", "20"]
    stopped = holdfast("run", "stick-or-switch", *command, "--call-limit", "40", "--json")
    assert stopped.returncode != 0
    assert json.loads(stopped.stdout)["complete"] is False
    assert server.stats()["calls"] == 40
    outcome = ran(*command)
    stats = server.stats()
    assert (outcome["complete"], stats["repeated"]) == (True, 0)
    assert stats["calls"] == 40 + outcome["calls"]
    turns = pl.read_parquet(outcome["turns"])
    assert stats["calls"] == sum(expected_calls(turns).values()) == turns.height


@pytest.mark.slow
def test_a_killed_run_ends_with_the_same_turns_and_asks_nothing_finished_again(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    connections = 8
    with running_server(latency_ms=30) as server:

        def command(log_dir: Path) -> list[str]:
            return [
                "run", "stick-or-switch", *at(server), "--json",
                "--max-connections", str(connections), "--log-dir", str(log_dir),
            ]  # fmt: skip

        unbroken = holdfast_apart(*command(tmp_path / "unbroken"), env=environment)
        assert unbroken.returncode == 0, unbroken.stderr
        total = server.stats()["calls"]
        server.reset()
        killed = subprocess.Popen(
            [str(HOLDFAST), *command(tmp_path / "killed")],
            env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        deadline = time.monotonic() + 60
        while server.stats()["calls"] < total // 2 and time.monotonic() < deadline:
            time.sleep(0.02)
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        asked = server.stats()["calls"]
        assert total // 2 <= asked < total
        stored = finished_generations(tmp_path / "killed")
        resumed = holdfast_apart(*command(tmp_path / "killed"), env=environment)
        assert resumed.returncode == 0, resumed.stderr
        outcome = json.loads(resumed.stdout)
        # only what was in flight at the kill is asked once more
        assert outcome["calls"] == total - stored
        assert server.stats()["repeated"] <= connections
    expected = pl.read_parquet(json.loads(unbroken.stdout)["turns"]).drop("latency")
    assert pl.read_parquet(outcome["turns"]).drop("latency").equals(expected)


# --- what is told ---


def test_what_is_left_out_is_counted_for_people_and_machines(tmp_path: Path) -> None:
    rows = question_rows(6)
    rows[1]["options"]["C"] = "None of these options"
    rows[2]["options"][rows[2]["gold"]] = "none of the above"
    source = write_jsonl(tmp_path / "q.jsonl", rows)
    dev = [row | {"id": f"dev{i}", "stem": f"Case {i}?"} for i, row in enumerate(question_rows(4))]
    exemplars = write_jsonl(tmp_path / "dev.jsonl", [*dev, rows[0]])
    command = [
        "--model",
        "simulated/steadfast",
        "--questions",
        source,
        "-T",
        f"exemplars={exemplars}",
    ]
    outcome = ran(*command)
    reason = {"an option already says none of the above": 2}
    arms = ["flexible-correct", "negative", "single-shot-abstain"]
    assert outcome["left_out"] == dict.fromkeys(arms, reason)
    remark = "1 exemplar left out, being among the questions"
    assert outcome["remarks"] == [remark]
    told = holdfast("run", "stick-or-switch", *command)
    assert told.returncode == 0, told.stderr
    for arm in arms:
        line = f"{arm}: skipped for 2 questions (an option already says none of the above)"
        assert line in " ".join(told.stdout.split())
    assert remark in told.stdout
    plan = holdfast("run", "--dry-run", "stick-or-switch", *command, "--json")
    (row,) = json.loads(plan.stdout)
    assert (row["at_least"], row["generations"]) == (4 * 4 + 2 * 2, 4 * 13 + 2 * 6)
    assert row["at_least"] <= outcome["calls"] <= row["generations"]
    assert "negative: skipped for 2 questions" in plan.stderr


def test_too_few_exemplars_are_refused_with_the_file_and_the_remedy(tmp_path: Path) -> None:
    rows = question_rows(4)
    source = write_jsonl(tmp_path / "q.jsonl", rows)
    other = rows[0] | {"id": "dev", "stem": "Another case?"}
    exemplars = write_jsonl(tmp_path / "dev.jsonl", [*rows[:2], other])
    line = refused("--questions", source, "-T", f"exemplars={exemplars}")
    assert line.startswith(f"holdfast: {exemplars}")
    assert "has 1 exemplar that can be shown" in line
    assert "-T shots=0" in line
    assert "no such file" in refused("-T", "exemplars=none.jsonl")


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        ("beliefs=maybe", "beliefs is 'maybe', not true or false"),
        ("shots=x", "shots is 'x', not a whole number"),
        ("shots=-1", "shots is '-1', not a number of exemplars"),
        ("shots=7", "bank, field 'exemplars': has 6 exemplars"),
        ("shot=1", "Did you mean 'shots'?"),
    ],
)
def test_a_bad_setting_is_refused_before_anything_is_asked(setting: str, expected: str) -> None:
    assert expected in refused("-T", setting)


def test_identical_options_are_refused_with_their_row(tmp_path: Path) -> None:
    rows = question_rows(3)
    rows[2]["options"]["D"] = rows[2]["options"]["A"]
    line = refused("--questions", write_jsonl(tmp_path / "q.jsonl", rows))
    assert "row 3" in line
    assert "options A and D have the same text" in line


def test_another_setting_in_the_same_log_dir_is_refused_by_name() -> None:
    command = ["--model", "simulated/steadfast", "--limit", "1", "--log-dir", "r"]
    ran(*command)
    for other, name in (("shots=1", "shots"), ("beliefs=true", "beliefs")):
        run = holdfast("run", "stick-or-switch", *command, "-T", other)
        assert run.returncode == 2
        assert name in run.stderr


# --- beliefs ---


def test_beliefs_reach_the_turns_table_where_a_model_has_them(
    server: Server, tmp_path: Path
) -> None:
    named = ["p_gold", "p_suggested", "p_answer"]
    beliefs = ("--limit", "6", "-T", "beliefs=true")
    own = pl.read_parquet(ran("--model", "simulated/sycophant", *beliefs)["turns"])
    assert own["p_gold"].null_count() == own["p_answer"].null_count() == 0
    assert own.select((pl.col(named).is_between(0, 1) | pl.col(named).is_null()).all()).row(0) == (
        True, True, True,
    )  # fmt: skip
    outcome = ran(*at(server), *beliefs, "--log-dir", tmp_path / "http")
    assert outcome["complete"]
    none = pl.read_parquet(outcome["turns"])
    assert none.select(pl.col(named).is_null().all()).row(0) == (True, True, True)


# --- Inspect's own command line ---


@pytest.mark.slow
def test_inspects_own_command_line_runs_the_protocol(tmp_path: Path) -> None:
    def run(*settings: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(INSPECT), "eval", "holdfast/stick_or_switch", "--model", "simulated/steadfast",
             "--limit", "2", "--display", "plain", "--log-dir", "logs", *settings],
            cwd=tmp_path, capture_output=True, text=True, timeout=100, check=False,
        )  # fmt: skip

    done = run()
    assert done.returncode == 0, done.stdout + done.stderr
    (info,) = list_eval_logs(str(tmp_path / "logs"))
    log = read_eval_log(info)
    assert log.status == "success"
    assert 2 * 4 <= turns_table([log.location]).height <= 2 * 13
    bad = run("-T", "beliefs=maybe")
    assert bad.returncode != 0
    assert "beliefs is 'maybe', not true or false" in bad.stdout + bad.stderr


# --- time and memory ---


@pytest.mark.slow
def test_all_of_medmcqa_takes_less_than_five_minutes_and_600_mb(
    shared: Path, tmp_path: Path
) -> None:
    questions = shared / "data" / "medmcqa" / "dev.jsonl"
    cost = measured(
        [str(HOLDFAST), "run", "stick-or-switch", "--model", "simulated/sycophant",
         "--questions", str(questions), "--log-dir", str(tmp_path / "r"), "--json"],
        tmp_path / "output",
    )  # fmt: skip
    turns = pl.read_parquet(tmp_path / "r" / "turns.parquet", columns=["question"])
    assert turns["question"].n_unique() == 4183 - 21  # 21 repeat an option
    # nothing is waited for, so on an idle machine the process's own time is the time it takes
    assert cost.cpu_s < 300
    assert cost.peak_rss_mb < 600
