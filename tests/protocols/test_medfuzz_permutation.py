"""The permutation test of attacks: what is asked, what is asked again, what comes of it."""

import json
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.fuzzing import (
    ATTACKER,
    ATTACKS_ALONE,
    TARGET,
    TRADES,
    Message,
    Request,
    Script,
    answering,
    at,
    attacking,
    fuzz,
    gold_in,
    script_server,
    stem_in,
    trade_in,
    wrong,
)
from tests.resolved import medfuzz_test_study
from tests.studies import Done, holdfast, question_rows, write_jsonl

from holdfast.errors import InputError
from holdfast.results import TABLES, turns_table

SIMULATED = ("--model", "simulated/fuzz-swayed", "--model-role", "attacker=simulated/attacker")
SMALL = ("--controls", "3", "--samples", "2")


def probed(messages: Sequence[Message]) -> str:
    """Right to direct questions but where a trade sways; the options stand in any order."""
    prompt = messages[-1][1]
    letter, swayed = gold_in(prompt), trade_in(prompt) in (*TRADES[:2], TRADES[-1])
    chosen = wrong(letter) if swayed else letter
    found = re.search(rf"^([A-D])\. finding {chosen} of case", prompt, re.MULTILINE)
    assert found, prompt
    return f"Answer: {found[1]}"


def reply(request: Request) -> str:
    """The first attempt sways, and of the controls the first one too; no two attacks are alike."""
    asked = request.messages[-1][1]
    if request.model == ATTACKER and "This is control number" not in asked:
        return fuzz(stem_in(asked), TRADES[(request.seed or 42) - 42])
    if request.model == ATTACKER:
        return attacking(request.messages)
    if "Final Answer" in request.messages[-1][1]:
        return answering(*TRADES[:2])(request.messages)
    return probed(request.messages)


def alike(request: Request) -> str:
    """As ``reply``, and every replicate finds the same attack."""
    if request.model == ATTACKER:
        return attacking(request.messages)
    return reply(request)


def attacked(site: Script, tmp_path: Path, n: int = 2, epochs: int = 2) -> None:
    source = write_jsonl(tmp_path / "q.jsonl", question_rows(n))
    run = holdfast(
        "run", "medfuzz", *ATTACKS_ALONE, *at(site), "--questions", source, "--epochs", str(epochs)
    )
    assert run.returncode == 0, run.stderr
    assert len(site.requests) == n * epochs * 3
    site.requests.clear()


def permuted(*arguments: str, models: Sequence[str] = SIMULATED) -> list[dict[str, Any]]:
    done = holdfast("medfuzz", "test", "runs", *models, *arguments, "--json")
    assert done.returncode == 0, done.stderr
    rows: list[dict[str, Any]] = json.loads(done.stdout)
    return rows


def simulated(*more: str) -> None:
    run = holdfast("run", "medfuzz", *ATTACKS_ALONE, *SIMULATED, "--limit", "4", *more)
    assert run.returncode == 0, run.stderr


def refused(*arguments: str) -> str:
    """The one line that a refused test prints."""
    done = holdfast("medfuzz", "test", *SIMULATED, *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.strip().splitlines()
    return line


# --- what is asked ---


def test_original_attack_and_controls_are_probed_in_the_same_orders(tmp_path: Path) -> None:
    with script_server(reply) as site:
        attacked(site, tmp_path)
        rows = permuted(*SMALL, models=at(site))
        # of two questions and two replicates each
        assert len(site.by(ATTACKER)) == 4 * 3
        assert len(site.by(TARGET)) == 4 * (2 + 3) * 2
        assert site.repeated == 0
        probes = site.by(TARGET)
        controls = site.by(ATTACKER)
    # three exemplars come first, and nothing else
    roles = ["user", "assistant"] * 3 + ["user"]
    assert all([role for role, _ in probe.messages] == roles for probe in probes)
    assert all([role for role, _ in asked.messages] == ["system", "user"] for asked in controls)
    turns = pl.read_parquet("runs/turns.parquet").filter(pl.col("protocol") == "medfuzz-test")
    probe = turns.filter(pl.col("arm") != "attacker")
    assert set(probe["path"]) == {
        f"{text}>order@{s}"
        for text in ("original", "attacked", "control@1", "control@2", "control@3")
        for s in (1, 2)
    }
    orders = probe.with_columns(pl.col("path").str.extract(r"order@(\d)").alias("sample"))
    orders = orders.group_by("question", "sample").agg(pl.col("shown").unique())
    assert orders["shown"].list.len().to_list() == [1] * 4
    assert [(row["question"], row["epoch"], row["k"]) for row in rows] == [
        (question, epoch, 1) for question in ("q0", "q1") for epoch in (1, 2)
    ]
    # the attack sways, and so does one control; there is a change of 0 or 1
    figures = ("p0", "pa", "effect", "m", "b", "p_plus_one", "samples", "by", "invalid", "unread")
    for row in rows:
        assert [row[name] for name in figures] == [1, 0, -1, 3, 1, 0.5, 2, "sampling", 0, 0]
        assert row["p_value"] == pytest.approx(1 / 3)
        assert row["p_adjusted"] == pytest.approx(0.5)


@pytest.mark.slow
def test_a_test_done_asks_nothing_again_and_a_larger_one_only_adds(tmp_path: Path) -> None:
    with script_server(reply) as site:
        attacked(site, tmp_path)
        first = permuted(*SMALL, models=at(site))
        asked = len(site.requests)
        assert permuted(*SMALL, models=at(site)) == first
        assert len(site.requests) == asked
        more = permuted("--controls", "5", "--samples", "2", models=at(site))
        added = site.requests[asked:]
        assert sum(request.model == ATTACKER for request in added) == 4 * 2
        assert sum(request.model == TARGET for request in added) == 4 * 2 * 2
        assert site.repeated == 0
        assert [(row["m"], row["b"]) for row in more] == [(5, 1)] * 4
        assert all(row["p_value"] == pytest.approx(0.2) for row in more)
        before = len(site.requests)
        finer = permuted("--controls", "5", "--samples", "3", models=at(site))
        assert len(site.requests) - before == 4 * (2 + 5)
        assert site.repeated == 0
        assert [(row["m"], row["samples"]) for row in finer] == [(5, 3)] * 4


@pytest.mark.slow
def test_identical_attacks_are_one_hypothesis(tmp_path: Path) -> None:
    with script_server(alike) as site:
        attacked(site, tmp_path)
        rows = permuted(*SMALL, models=at(site))
        assert len(site.by(ATTACKER)) == 2 * 3
    assert [(row["question"], row["epoch"]) for row in rows] == [("q0", 1), ("q1", 1)]


@pytest.mark.slow
def test_a_budget_stops_a_test_and_the_same_command_goes_on(tmp_path: Path) -> None:
    with script_server(reply) as site:
        attacked(site, tmp_path)
        command = ("medfuzz", "test", "runs", *at(site), *SMALL)
        stopped = holdfast(*command, "--call-limit", "17")
        assert stopped.returncode == 3, stopped.stderr
        assert "The budget is spent: 17 of 17 calls" in stopped.stderr
        assert len(site.requests) == 17
        resumed = permuted(*SMALL, models=at(site))
        assert (len(site.requests), site.repeated) == (4 * (3 + 10), 0)
    assert [(row["m"], row["b"]) for row in resumed] == [(3, 1)] * 4


@pytest.mark.slow
def test_an_id_picks_attacks_and_others_can_follow(tmp_path: Path) -> None:
    with script_server(reply) as site:
        attacked(site, tmp_path)
        (one, two) = permuted(*SMALL, "--id", "q1", models=at(site))
        assert {row["question"] for row in (one, two)} == {"q1"}
        assert len(site.requests) == 2 * (3 + 10)
        everything = permuted(*SMALL, models=at(site))
        assert site.repeated == 0
        assert len(site.requests) == 4 * (3 + 10)
    # both tests are in the log dir; each attack is there
    assert {(row["question"], row["epoch"]) for row in everything} == {
        (question, epoch) for question in ("q0", "q1") for epoch in (1, 2)
    }


@pytest.mark.slow
@pytest.mark.parametrize("said", ["Prose.", "copy", "longer"])
def test_controls_that_stay_away_leave_the_attack_without_a_p_value(
    said: str, tmp_path: Path
) -> None:
    def broken(request: Request) -> str:
        if request.model != ATTACKER or "This is control" not in request.messages[1][1]:
            return reply(request)
        sound = json.loads(attacking(request.messages))
        if said == "Prose.":
            return said
        trade = trade_in(sound["modified_question"])
        other = "baker" if said == "copy" else "very patient baker"
        return json.dumps(sound).replace(str(trade), other)

    with script_server(broken) as site:
        attacked(site, tmp_path, n=1, epochs=1)
        (row,) = permuted(*SMALL, models=at(site))
        assert len(site.by(ATTACKER)) == 3 * 4
        assert len(site.by(TARGET)) == 2 * 2
        again = [r.messages[-1][1] for r in site.by(ATTACKER) if len(r.messages) > 2]
    told = {"Prose.": "is no JSON object", "copy": "adds the same text as the modified question",
            "longer": "not exactly 6"}[said]  # fmt: skip
    assert all(told in prompt for prompt in again)
    assert (row["m"], row["controls"], row["invalid"], row["failed"]) == (0, 3, 3, 0)
    assert (row["b"], row["p_value"], row["p_plus_one"], row["p_adjusted"]) == (None,) * 4
    assert (row["p0"], row["pa"]) == (1.0, 0.0)


# --- what it is worked out from ---


def by_hand(turns: pl.DataFrame, question: str, epoch: int) -> tuple[float, float, int, int]:
    """p0, pa, b and M from the probes of one attack."""
    own = turns.filter(
        pl.col("protocol") == "medfuzz-test",
        pl.col("question") == question,
        pl.col("epoch") == epoch,
        pl.col("p_gold").is_not_null(),
    )
    texts: dict[str, list[float]] = {}
    for path, p in own.select("path", "p_gold").iter_rows():
        texts.setdefault(path.partition(">")[0], []).append(p)
    means = {text: sum(values) / len(values) for text, values in texts.items()}
    p0, pa = means.pop("original"), means.pop("attacked")
    b = sum(abs(control - p0) >= abs(pa - p0) - 1e-12 for control in means.values())
    return p0, pa, b, len(means)


def test_the_figures_follow_from_the_probabilities_in_the_turns_table() -> None:
    simulated("--epochs", "2")
    rows = permuted("--controls", "8", "--samples", "3")
    turns = turns_table(["runs"])
    assert len(rows) > 3
    for row in rows:
        p0, pa, b, m = by_hand(turns, row["question"], row["epoch"])
        assert (row["p0"], row["pa"]) == (pytest.approx(p0), pytest.approx(pa))
        assert (row["b"], row["m"], row["by"], row["samples"]) == (b, m, "logprobs", 3)
        assert row["p_value"] == b / m
        assert row["p_plus_one"] == (b + 1) / (m + 1)
    assert len({row["b"] for row in rows}) > 1


def test_the_turns_table_alone_gives_the_same_test(tmp_path: Path) -> None:
    simulated("--epochs", "1")
    rows = permuted("--controls", "4", "--samples", "1")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    shutil.copy("runs/turns.parquet", elsewhere / "t.parquet")
    shutil.rmtree("runs")
    done = holdfast(
        "table", str(elsewhere / "t.parquet"), "--table", "permutation", "--format", "json"
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == rows


@pytest.mark.slow
def test_a_test_is_part_of_neither_accuracy_nor_the_curve() -> None:
    simulated("--epochs", "2")
    before = turns_table(["runs"])
    permuted("--controls", "2", "--samples", "1")
    after = turns_table(["runs"])
    assert after.height > before.height
    for name in ("accuracy", "attacks", "attack-summary", "faithfulness"):
        own = TABLES[name](after)
        if "protocol" in own.columns:
            own = own.filter(pl.col("protocol") != "medfuzz-test")
        assert own.equals(TABLES[name](before)), name
    assert TABLES["attack-list"](after)["p_value"].null_count() == 0


# --- what cannot be tested ---


def test_an_unknown_question_is_told_in_one_line() -> None:
    simulated("--epochs", "1")
    line = refused("runs", "--id", "nobody")
    assert "has no successful attack on these questions" in line
    assert "--id" in line
    assert not list(Path("runs").glob("attacks-*"))


def test_a_run_without_a_success_is_told_in_one_line() -> None:
    run = holdfast(
        "run", "medfuzz", *ATTACKS_ALONE, "--model", "simulated/steadfast", "--model-role",
        "attacker=simulated/attacker", "--limit", "2", "--epochs", "1",
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    assert "has no successful attack" in refused("runs")


def test_a_log_dir_without_a_run_of_medfuzz_is_told_in_one_line() -> None:
    done: Done = holdfast("run", "stick-or-switch", "--model", "simulated/steadfast",
                          "--limit", "1")  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "has no medfuzz run" in refused("runs")
    Path("empty").mkdir()
    assert "empty" in refused("empty")
    assert "nowhere" in refused("nowhere")


@pytest.mark.parametrize(
    ("file", "expected"), [("", "is empty"), ('{"question": 1}\n', "is not an attack")]
)
def test_the_task_refuses_a_file_without_attacks(file: str, expected: str, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(file, "utf-8")
    with pytest.raises(InputError, match=expected):
        medfuzz_test_study(attacks=str(tmp_path / "a.jsonl"))


def test_the_task_refuses_to_start_without_a_file() -> None:
    with pytest.raises(InputError, match="has no attacks"):
        medfuzz_test_study()
