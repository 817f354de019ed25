"""A reader and ``holdfast score``: replies are read again, and nothing is asked twice."""

import json
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from benchmarks.server import Server, running_server
from tests.studies import HOLDFAST, finished_generations, holdfast, holdfast_apart

from holdfast.reading.extraction import READING_VERSION
from holdfast.results.readings import READINGS_FILE
from holdfast.results.turns import turns_table

TURN = ["question", "epoch", "arm", "path", "turn"]
READ = ["answer", "status", "rule", "answer_rules", "answer_reader", "reader_status"]


def ran(log_dir: Path, *settings: str, model: str = "simulated/sycophant") -> dict[str, Any]:
    """The outcome of a small study."""
    run = holdfast(
        "run", "followup", "--model", model, "--limit", "12", "--log-dir", log_dir, "--json",
        *settings,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    outcome: dict[str, Any] = json.loads(run.stdout)
    return outcome


def scored(log_dir: Path, *settings: str) -> dict[str, Any]:
    """What became of the one run of a log dir."""
    done = holdfast("score", log_dir, "--json", *settings)
    assert done.returncode == 0, done.stderr
    (run,) = json.loads(done.stdout)["runs"]
    return dict(run)


def turns(log_dir: Path) -> pl.DataFrame:
    return turns_table([str(log_dir)]).sort(TURN)


def agreements(log_dir: Path) -> dict[str | None, dict[str, Any]]:
    table = holdfast("table", log_dir, "--table", "reading", "--format", "json")
    assert table.returncode == 0, table.stderr
    return {row["arm"]: row for row in json.loads(table.stdout)}


@pytest.mark.rest_slow
@pytest.mark.parametrize("errors", [0, 20])
def test_the_table_finds_the_error_rate_of_a_reader_that_is_known(
    errors: int, tmp_path: Path
) -> None:
    run = holdfast(
        "run", "followup", "--model", "simulated/gpt-4.1", "--log-dir", tmp_path / "r",
        "--model-role", f"reader-all=simulated/reader-{errors}", "-T", "controls=false",
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    rows = agreements(tmp_path / "r")
    assert set(rows) == {None, "baseline", "followup"}
    every = rows[None]
    # equal replies to equal options are one reading, but no two of 60 questions share options
    assert every["n"] == 60 * 15
    assert every["low"] <= 1 - errors / 100 <= every["high"]
    assert (every["agree"] == every["n"]) == (errors == 0)
    assert every["unreadable"] == every["rules_none"] == 0
    assert every["reader_none"] / every["n"] == pytest.approx(errors / 200, abs=0.03)
    told = f"simulated/reader-{errors} [SIMULATED] read 900 turns"
    assert told in run.stdout


@pytest.mark.slow
def test_a_reader_given_later_is_as_if_it_had_been_there(tmp_path: Path) -> None:
    reader = ("--model-role", "reader-all=simulated/reader-20")
    ran(tmp_path / "at once", *reader)
    ran(tmp_path / "later")
    told = scored(tmp_path / "later", *reader)
    at_once, later = turns(tmp_path / "at once"), turns(tmp_path / "later")
    assert later.select(*TURN, *READ).equals(at_once.select(*TURN, *READ))
    assert later["correct"].equals(at_once["correct"])
    assert set(later["run"]) == set(at_once["run"]) == {told["run"]}
    assert told["read"] == later.height == sum(told["readings"].values())
    # and given to the same command it is asked for nothing that it has read
    assert ran(tmp_path / "later", *reader)["calls"] == 0
    assert turns(tmp_path / "later").select(READ).equals(later.select(READ))


def test_reading_again_asks_no_model_under_test(server: Server, tmp_path: Path) -> None:
    at_server = ("--model-base-url", f"{server.url}/v1", "-T", "techniques=rethink")
    ran(tmp_path, *at_server, model="openai/bench")
    asked, before = server.stats()["calls"], turns(tmp_path)
    rules = scored(tmp_path)
    assert (rules["read"], rules["changed"], rules["calls"]) == (before.height, 0, 0)
    assert turns(tmp_path).equals(before)
    reader = ("--model-role", f"reader-all={{model: openai/reader, base_url: {server.url}/v1}}")
    told = scored(tmp_path, *reader)
    assert server.stats()["calls"] - asked == told["calls"] > 0
    # what this server says is no reading: the rules' stays
    assert told["readings"] == {"unreadable": before.height}
    assert told["changed"] == 0
    after = turns(tmp_path)
    assert set(after["reader"]) == {"openai/reader"}
    assert after.select(READ[:4]).equals(before.select(READ[:4]))
    # once more, and nothing is asked
    asked = server.stats()["calls"]
    assert scored(tmp_path, *reader)["calls"] == 0
    assert server.stats()["calls"] == asked
    # without a reader the readings are the rules' again
    assert scored(tmp_path)["changed"] == 0
    assert turns(tmp_path).equals(before)


def test_a_reading_holds_for_the_record_that_it_was_made_of(tmp_path: Path) -> None:
    ran(tmp_path, "-T", "techniques=rethink")
    scored(tmp_path, "--model-role", "reader-all=simulated/reader-100")
    wrong = turns(tmp_path)
    assert (wrong["answer"] == wrong["answer_rules"]).sum() == 0
    # the study grows: what is new is read as its log says
    ran(tmp_path)
    grown = turns(tmp_path)
    old = grown.join(wrong, on=TURN, how="semi")
    assert old.select(*TURN, *READ).equals(wrong.select(*TURN, *READ))
    new = grown.join(wrong, on=TURN, how="anti")
    assert new.height == 12 * 9
    assert new["reader"].null_count() == new.height
    assert (new["answer"] == new["answer_rules"]).all()
    (tmp_path / READINGS_FILE).write_bytes(b"no parquet")
    broken = holdfast("table", tmp_path)
    assert (broken.returncode, broken.stdout) == (2, "")
    (line,) = broken.stderr.splitlines()
    assert f"{READINGS_FILE}: is not a file of readings" in line
    assert "Remove it and run 'holdfast score LOGDIR'" in line


def test_a_run_goes_on_with_its_reader_and_not_without_or_with_another(tmp_path: Path) -> None:
    ran(tmp_path, "-T", "techniques=rethink", "--model-role", "reader=simulated/reader")
    # one that has read some may read all
    outcome = ran(
        tmp_path, "-T", "techniques=rethink", "--model-role", "reader-all=simulated/reader"
    )
    assert outcome["calls"] > 0
    for other in (
        (),
        ("--model-role", "reader=simulated/reader-20"),
        ("--model-role", "reader=simulated/reader"),
    ):
        run = holdfast("run", "followup", "--model", "simulated/sycophant", "--limit", "12",
                       "-T", "techniques=rethink", "--log-dir", tmp_path, *other)  # fmt: skip
        assert run.returncode == 2, run.stdout
        (line,) = run.stderr.splitlines()
        assert "--model-role reader" in line


@pytest.mark.slow
def test_conversations_that_hang_on_answers_are_those_of_one_reader(tmp_path: Path) -> None:
    reader = ("--model-role", "reader-all=simulated/reader-20")
    settings = ("stick-or-switch", "--model", "simulated/gpt-4.1", "--limit", "8", "--json")

    def asked(log_dir: str, *more: str) -> pl.DataFrame:
        run = holdfast("run", *settings, "--log-dir", tmp_path / log_dir, *more)
        assert run.returncode == 0, run.stderr
        return turns(tmp_path / log_dir).select(*TURN, *READ)

    rules, at_once = asked("r"), asked("new", *reader)
    told = scored(tmp_path / "r", *reader)
    # read again, the conversations stay as they were held, and those that would not are counted
    assert turns(tmp_path / "r").select(TURN).equals(rules.select(TURN))
    assert told["elsewhere"] > 0
    # run again, they go on as the reader's answers have it, and nothing is left of the others
    assert not at_once.select(TURN).equals(rules.select(TURN))
    assert asked("r", *reader).equals(at_once)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("score", "r", "--model-role", "judge=simulated/judge"),
         "the role 'judge'. Give reader=MODEL or reader-all=MODEL"),
        (("score", "r", "--model-role", "reader=simulated/sycophant"),
         "--model-role: 'simulated/sycophant' is also the model under test"),
        (("run", "followup", "--model", "simulated/sycophant",
          "--model-role", "reader=simulated/sycophant"),
         "--model-role: 'simulated/sycophant' is also the model under test. Give another model"),
        (("run", "followup", "--model", "simulated/steadfast",
          "--model-role", "reader=simulated/reader",
          "--model-role", "reader-all=simulated/reader"), "has a model both"),
        (("run", "--dry-run", "followup", "--model", "openai/x",
          "--model-role", "reader=openai/x"), "is also the model"),
        (("score", "nowhere"), "nowhere: no such log dir"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_in_a_line(
    arguments: tuple[str, ...], said: str, tmp_path: Path
) -> None:
    if "r" in arguments:
        ran(Path("r"), "-T", "techniques=none")
    run = holdfast(*arguments)
    assert (run.returncode, run.stdout) == (2, "")
    (line,) = run.stderr.splitlines()
    assert said in line


def test_a_plan_counts_the_readings() -> None:
    command = (
        "run",
        "--dry-run",
        "followup",
        "--model",
        "openai/gpt-4.1",
        "--limit",
        "2",
        "--json",
    )
    for role, least in (("reader", 0), ("reader-all", 34)):
        plan = holdfast(*command, "--model-role", f"{role}=openai/gpt-4.1-mini")
        assert plan.returncode == 0, plan.stderr
        target, reader = json.loads(plan.stdout)
        assert reader["model"] == "openai/gpt-4.1-mini"
        assert (reader["generations"], reader["at_least"]) == (target["generations"], least)


def test_a_reading_cut_short_by_the_budget_goes_on(server: Server, tmp_path: Path) -> None:
    ran(tmp_path, "-T", "techniques=rethink")
    before = turns(tmp_path)
    command = ("score", tmp_path, "--json", "--model-role",
               f"reader-all={{model: openai/reader, base_url: {server.url}/v1}}")  # fmt: skip
    cut = holdfast(*command, "--call-limit", "20")
    assert (cut.returncode, cut.stdout) == (3, "")
    assert "Nothing was written. Repeat the command to resume." in cut.stderr
    assert turns(tmp_path).equals(before)
    assert server.stats()["calls"] == 20
    done = holdfast(*command)
    assert done.returncode == 0, done.stderr
    (run,) = json.loads(done.stdout)["runs"]
    assert run["calls"] == server.stats()["calls"] - 20
    assert server.stats()["repeated"] == 0


@pytest.mark.slow
def test_a_killed_reader_is_asked_for_no_finished_reading_again(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    place, connections = tmp_path / "r", 4
    with running_server(latency_ms=30) as server:
        run = (
            "run", "followup", "--model", "simulated/sycophant", "--limit", "20",
            "--log-dir", str(place), "--max-connections", str(connections),
            "--model-role", f"reader-all={{model: openai/reader, base_url: {server.url}/v1}}",
        )  # fmt: skip
        running = subprocess.Popen(
            [str(HOLDFAST), *run],
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        deadline = time.monotonic() + 120
        while server.stats()["calls"] < 100 and time.monotonic() < deadline:
            time.sleep(0.02)
        running.send_signal(signal.SIGKILL)
        running.wait()
        asked, kept = server.stats()["calls"], finished_generations(place)
        assert asked >= 100
        assert kept > 0
        resumed = holdfast_apart(*run, "--json", env=environment)
        assert resumed.returncode == 0, resumed.stderr
        # only what was in flight at the kill is asked once more
        assert server.stats()["repeated"] <= connections
        asked = server.stats()["calls"]
        again = holdfast_apart(*run, "--json", env=environment)
        assert json.loads(again.stdout)["calls"] == 0
        assert server.stats()["calls"] == asked
    table = turns(place)
    assert table.height == 340
    assert set(table["reader_status"]) == {"unreadable"}
    assert set(table["reading_version"]) == {READING_VERSION}
