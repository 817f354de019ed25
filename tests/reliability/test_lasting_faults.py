"""Faults that last leave their branch errored, its siblings finished, and the run resumable."""

import json
from pathlib import Path

import polars as pl
import pytest

from tests.faults import Fault, faulty_server

from .driving import FAULT_PATH, MARK, TURNS, Study

ONCE = ("--generate-config", "{max_retries: 0}")


@pytest.mark.rest_slow
@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("status-500", "HTTP 500: told to answer 500"),
        ("reset-before", "ServerDisconnectedError"),
        ("reset-inside", "ContentLengthError"),
        ("truncated-json", "not a chat completion (JSONDecodeError"),
        ("malformed-json", "not a chat completion (JSONDecodeError"),
        ("invalid-utf8", "not a chat completion (UnicodeDecodeError"),
        ("hang", "ServerDisconnectedError"),
    ],
)
def test_a_lasting_fault_stops_one_branch_and_a_rerun_mends_it(
    kind: str, words: str, sound: pl.DataFrame, tmp_path: Path
) -> None:
    with faulty_server(Fault(kind, match=MARK, seconds=0.1)) as server:
        study = Study(server, tmp_path)
        run = study.run(*ONCE)
        assert run.returncode == 3
        last = run.stderr.strip().splitlines()[-1]
        assert last.startswith("holdfast: 3 questions unfinished: ")
        assert words in last
        assert f"{FAULT_PATH}: " in last
        assert last.endswith("Repeat the command to resume.")
        assert f"{FAULT_PATH}: 3 turns failed" in run.stdout

        at_fault = pl.col("path") == FAULT_PATH
        turns = study.turns()
        assert turns.filter(~at_fault).equals(sound.filter(~at_fault))
        assert turns.filter(at_fault)["status"].to_list() == ["error"] * 3
        assert server.stats()["finished"] == 3 * (TURNS - 1)

        server.set()
        outcome = study.outcome(*ONCE)
        assert (outcome["calls"], outcome["complete"]) == (3, True)
        assert server.stats()["repeated"] == 0
    assert study.turns().equals(sound)


@pytest.mark.rest_slow
@pytest.mark.parametrize("provider", ["lean", "openai"])
def test_a_run_resumes_with_a_new_key(
    provider: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"{provider.upper()}_API_KEY"
    monkeypatch.setenv(name, "the-old-key")
    with faulty_server(Fault("status-401", after=7)) as server:
        study = Study(server, tmp_path, provider=provider)
        run = study.run("--json", "--max-connections", "1")
        assert run.returncode == 3
        assert "401" in run.stderr.strip().splitlines()[-1]
        # asked once each, for trying again does not help
        assert server.stats()["attempts"] <= 3 * TURNS
        assert server.stats()["finished"] == 7

        server.set()
        monkeypatch.setenv(name, "the-new-key")
        outcome = study.outcome()
        stats = server.stats()
    assert outcome["calls"] == 3 * TURNS - 7
    assert (stats["finished"], stats["repeated"]) == (3 * TURNS, 0)
    assert set(stats["keys"]) == {"Bearer the-old-key", "Bearer the-new-key"}
    assert study.turns().height == 3 * TURNS


def test_a_failed_first_answer_spares_the_other_questions(
    sound: pl.DataFrame, tmp_path: Path
) -> None:
    with faulty_server(Fault("status-503", match="Vignette number 1.")) as server:
        study = Study(server, tmp_path)
        run = study.run("--json", *ONCE)
    assert run.returncode == 3
    assert json.loads(run.stdout)["unfinished"].startswith("1 question unfinished: 1 x ")
    elsewhere = pl.col("question") != "q1"
    assert study.turns().filter(elsewhere).equals(sound.filter(elsewhere))
    failures = study.turns().filter(~elsewhere)
    assert failures.select("path", "status", "rule").rows() == [("", "error", "ServerError")]


def test_failed_turns_are_in_no_measure(sound: pl.DataFrame, tmp_path: Path) -> None:
    with faulty_server(Fault("status-500", match=MARK)) as server:
        outcome = Study(server, tmp_path).outcome(*ONCE, code=3)
    by_path = {row["path"]: row for row in outcome["accuracy"] if row["arm"] == "followup"}
    assert FAULT_PATH not in by_path or by_path[FAULT_PATH]["n"] == 0
    for path, row in by_path.items():
        if path not in ("", FAULT_PATH):
            right = sound.filter(pl.col("path") == path)["correct"].sum()
            assert (row["n"], row["correct"]) == (3, right)
