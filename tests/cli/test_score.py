"""A reader and ``holdfast score``: replies are read again, and nothing is asked twice."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from benchmarks.server import Server
from tests.cli.commands import Facts, facts_of, refusal, rows_of, study_of
from tests.studies import holdfast

from holdfast.reading.extraction import READING_VERSION
from holdfast.results.readings import READINGS_FILE
from holdfast.results.turns import turns_table

TURN = ["question", "epoch", "arm", "path", "turn"]
READING = ["answer", "status", "rule", "answer_rules", "answer_reader", "reader_status"]
RETHINK = ("-T", "techniques=rethink")


def run(*settings: str, model: str = "simulated/sycophant", log_dir: str = "r") -> Facts:
    """The outcome of a small study."""
    return study_of("followup", "--model", model, "--limit", "12", "--log-dir", log_dir,
                    *settings)[0]  # fmt: skip


def score(*settings: str, log_dir: str = "r") -> dict[str, Any]:
    """What became of the one run of a log dir."""
    (facts,) = facts_of("score", log_dir, *settings)["runs"]
    return dict(facts)


def turns(log_dir: str = "r") -> pl.DataFrame:
    return turns_table([log_dir]).sort(TURN)


@pytest.mark.slow
@pytest.mark.parametrize("errors", [0, 20])
def test_the_error_rate_of_a_known_reader_is_measured(errors: int) -> None:
    reader = f"simulated/reader-{errors}"
    study = ("run", "followup", "--model", "simulated/gpt-4.1", "--log-dir", "r", "--model-role",
             f"reader-all={reader}", "-T", "controls=false")  # fmt: skip
    facts_of(*study)
    rows = {row["arm"]: row for row in rows_of("r", "reading")}
    assert set(rows) == {None, "baseline", "followup"}
    total = rows[None]
    # equal replies to equal options are one reading, but no two of 60 questions share options
    assert total["n"] == 60 * 15
    assert total["low"] <= 1 - errors / 100 <= total["high"]
    assert (total["agree"] == total["n"]) == (errors == 0)
    assert total["unreadable"] == total["rules_none"] == 0
    assert total["reader_none"] / total["n"] == pytest.approx(errors / 200, abs=0.03)
    (line,) = (line for line in holdfast(*study).stdout.splitlines() if reader in line)
    assert "SIMULATED" in line
    assert "900" in line


@pytest.mark.slow
def test_a_later_reader_reads_like_an_initial_one() -> None:
    reader = ("--model-role", "reader-all=simulated/reader-20")
    run(*reader, log_dir="first")
    run(log_dir="later")
    facts = score(*reader, log_dir="later")
    first, later = turns("first"), turns("later")
    assert later.select(*TURN, *READING).equals(first.select(*TURN, *READING))
    assert later["correct"].equals(first["correct"])
    assert set(later["run"]) == set(first["run"]) == {facts["run"]}
    assert facts["read"] == later.height == sum(facts["readings"].values())
    # and given to the same command it is asked for nothing that it has read
    assert run(*reader, log_dir="later")["calls"] == 0
    assert turns("later").select(READING).equals(later.select(READING))


@pytest.mark.slow
def test_rereading_asks_no_model_under_test(server: Server) -> None:
    run("--model-base-url", f"{server.url}/v1", *RETHINK, model="openai/bench")
    calls, before = server.stats()["calls"], turns()
    facts = score()
    assert (facts["read"], facts["changed"], facts["calls"]) == (before.height, 0, 0)
    assert turns().equals(before)
    reader = ("--model-role", f"reader-all={{model: openai/reader, base_url: {server.url}/v1}}")
    facts = score(*reader)
    assert server.stats()["calls"] - calls == facts["calls"] > 0
    # what this server says is no reading: the rules' stays
    assert facts["readings"] == {"unreadable": before.height}
    assert facts["changed"] == 0
    after = turns()
    assert set(after["reader"]) == {"openai/reader"}
    assert set(after["reading_version"]) == {READING_VERSION}
    assert after.select(READING[:4]).equals(before.select(READING[:4]))
    # once more, and nothing is asked; without a reader the readings are the rules' again
    calls = server.stats()["calls"]
    assert (score(*reader)["calls"], server.stats()["calls"]) == (0, calls)
    assert score()["changed"] == 0
    assert turns().equals(before)


@pytest.mark.slow
def test_a_reading_applies_to_its_own_turns() -> None:
    run(*RETHINK)
    score("--model-role", "reader-all=simulated/reader-100")
    wrong = turns()
    assert (wrong["answer"] == wrong["answer_rules"]).sum() == 0
    # the study grows: what is new is read as its log says
    run()
    after = turns()
    old = after.join(wrong, on=TURN, how="semi")
    assert old.select(*TURN, *READING).equals(wrong.select(*TURN, *READING))
    new = after.join(wrong, on=TURN, how="anti")
    assert new.height == 12 * 9
    assert new["reader"].null_count() == new.height
    assert (new["answer"] == new["answer_rules"]).all()
    Path("r", READINGS_FILE).write_bytes(b"no parquet")
    line = refusal("table", "r")
    assert READINGS_FILE in line
    assert "holdfast score" in line


@pytest.mark.slow
def test_answer_dependent_conversations_keep_one_reader() -> None:
    reader = ("--model-role", "reader-all=simulated/reader-20")

    def asked_in(log_dir: str, *more: str) -> pl.DataFrame:
        study_of("stick-or-switch", "--model", "simulated/gpt-4.1", "--limit", "8",
                 "--log-dir", log_dir, *more)  # fmt: skip
        return turns(log_dir).select(*TURN, *READING)

    rules, first = asked_in("r"), asked_in("first", *reader)
    facts = score(*reader)
    # read again, the conversations stay as they were held, and those that would not are counted
    assert turns().select(TURN).equals(rules.select(TURN))
    assert facts["elsewhere"] > 0
    # run again, they go on as the reader's answers have it, and nothing is left of the others
    assert not first.select(TURN).equals(rules.select(TURN))
    assert asked_in("r", *reader).equals(first)


def test_a_reading_resumes_after_the_budget(server: Server) -> None:
    run(*RETHINK)
    before = turns()
    command = ("score", "r", "--json", "--model-role",
               f"reader-all={{model: openai/reader, base_url: {server.url}/v1}}")  # fmt: skip
    short = holdfast(*command, "--call-limit", "20")
    assert (short.returncode, short.stdout) == (3, "")
    assert turns().equals(before)
    assert server.stats()["calls"] == 20
    assert score(*command[3:])["calls"] == server.stats()["calls"] - 20
    assert server.stats()["repeated"] == 0
