"""A log dir of the version before replies were read into statements: it resumes, reads, reports.

``tests/fixtures/read_by_version_1`` was left by that version, run on two questions::

    holdfast run followup single-turn stick-or-switch --model simulated/sycophant --limit 2
        --seed 7 -T techniques=authority-prior,double-check -T biases=recency -T chains=none

The bank has other wrong options now, with which no run of that time goes on; it is given back those
of that time, which stand in a file beside the log dir.
"""

import json
import shutil
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.studies import finished_generations, holdfast

from holdfast.protocols.single_turn import distractors
from holdfast.questions import bank_items
from holdfast.reading import READING_VERSION
from holdfast.results import SCHEMA, turns_table

FIXTURES = Path(__file__).parents[1] / "fixtures"
KEPT = FIXTURES / "read_by_version_1"
COMMAND = (
    "run", "followup", "single-turn", "stick-or-switch", "--seed", "7",
    "-T", "techniques=authority-prior,double-check", "-T", "biases=recency", "-T", "chains=none",
    "-T", "controls=false", "-T", "exemplar_answers=paper",  # there was nothing else
)  # fmt: skip
TURN = ["question", "epoch", "protocol", "arm", "path", "turn"]
SAID = [*TURN, "prompt", "reply"]


@pytest.fixture
def old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy to work on; its kept generations stand in it."""
    monkeypatch.delenv("HOLDFAST_CACHE_DIR")
    lines = (FIXTURES / "first_wrong_options_of_the_bank.jsonl").read_text("utf-8").splitlines()
    texts = {row["question"]: [*row["distractors"].values()] for row in map(json.loads, lines)}
    items = [{**item, "replacement_distractors": texts[item["id"]]} for item in bank_items()]
    monkeypatch.setattr(distractors, "bank_items", lambda: items)
    return Path(shutil.copytree(KEPT, tmp_path / "old"))


def ran(
    log_dir: Path, limit: int, model: str = "simulated/sycophant"
) -> tuple[dict[str, Any], pl.DataFrame]:
    run = holdfast(
        *COMMAND, "--model", model, "--limit", str(limit), "--log-dir", log_dir, "--json"
    )
    assert run.returncode == 0, run.stderr
    outcome = json.loads(run.stdout)
    return outcome, turns_table([str(log_dir)])


def test_its_turns_were_read_by_version_1(old: Path) -> None:
    logged, table = turns_table([str(old)]), turns_table([str(old / "turns.parquet")])
    assert logged.schema == SCHEMA
    assert logged.equals(table)
    assert set(logged["reading_version"]) == {1}
    assert logged["answer_rules"].equals(logged["answer"].alias("answer_rules"))
    assert logged["reader"].null_count() == logged["answer_reader"].null_count() == logged.height


def test_it_resumes_without_asking_for_what_is_finished(old: Path, tmp_path: Path) -> None:
    before, kept = turns_table([str(old)]), finished_generations(old)
    outcome, after = ran(old, 2)
    assert (outcome["calls"], outcome["complete"]) == (0, True)
    assert after.select(SAID).equals(before.select(SAID))
    # one question more is all that is asked
    outcome, after = ran(old, 3)
    fresh, anew = ran(tmp_path / "new", 3)
    assert 0 < outcome["calls"] == fresh["calls"] - kept
    assert after.sort(TURN).select(SAID).equals(anew.sort(TURN).select(SAID))
    assert set(after["run"]) == set(before["run"]) == set(anew["run"])
    # every protocol has a setting that it had not: all of it was put again from what is kept, and
    # read by the rules of today
    assert set(after["reading_version"]) == {READING_VERSION}
    told = holdfast(*COMMAND, "--model", "simulated/sycophant", "--limit", "3", "--log-dir", old)
    assert "the replies were not read in the same way" not in told.stdout


@pytest.mark.parametrize("name", ["accuracy", "flips", "single-turn", "survival", "tax"])
def test_its_tables(old: Path, name: str) -> None:
    table = holdfast("table", old, "--table", name, "--format", "json")
    assert table.returncode == 0, table.stderr
    assert json.loads(table.stdout)


@pytest.mark.slow
def test_its_report_and_export(old: Path, tmp_path: Path) -> None:
    assert holdfast("report", old, "-o", tmp_path / "r.html").returncode == 0
    assert "simulated/sycophant" in (tmp_path / "r.html").read_text("utf-8")
    out = tmp_path / "chats.jsonl"
    assert holdfast("export", old, "--format", "openai-chat", "-o", out).returncode == 0
    assert holdfast("import", out, "-o", tmp_path / "t.parquet").returncode == 0
    turns = turns_table([str(old)])
    assert turns_table([str(tmp_path / "t.parquet")]).equals(turns)


def test_it_is_compared_and_held_to_a_gate_once_it_is_read_again(old: Path, tmp_path: Path) -> None:
    new = tmp_path / "new"
    ran(new, 2, "simulated/gpt-4.1")
    rules = tmp_path / "rules.toml"
    rules.write_text(
        f'[[rule]]\nname = "r"\nfamily = "*"\nno_worse_than = "{new}"\nmargin_points = 50\n'
    )
    commands = (("compare", old, new), ("gate", old, "--rules", rules))
    for command in commands:
        refused = holdfast(*command)
        assert (refused.returncode, refused.stdout) == (2, "")
        (line,) = refused.stderr.splitlines()
        assert "the replies were not read in the same way" in line
        assert "version 1 of the rules; " in line
        assert f"version {READING_VERSION} of the rules" in line
        assert "'holdfast score LOGDIR'" in line
    before = turns_table([str(old)])
    again = holdfast("score", old, "--json")
    assert again.returncode == 0, again.stderr
    runs = json.loads(again.stdout)["runs"]
    assert sum(run["read"] for run in runs) == before.height
    assert {run[name] for run in runs for name in ("lacking", "elsewhere", "calls")} == {0}
    turns = turns_table([str(old)])
    assert set(turns["reading_version"]) == {READING_VERSION}
    assert turns.select(SAID).equals(before.select(SAID))
    for command in commands:
        assert holdfast(*command).returncode in (0, 1, 4)
