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
from tests.resolved import medfuzz_study
from tests.studies import Done, holdfast, question_rows, write_jsonl

from holdfast.results.declaration import TABLES
from holdfast.results.turns import turns_table

MODELS = ("--model", "simulated/fuzz-swayed", "--model-role", "attacker=simulated/attacker")


def sized(texts: int, samples: int) -> tuple[str, ...]:
    """The settings of a test of that size."""
    return "-T", f"tested={texts}", "-T", f"samples={samples}"


SMALL = sized(3, 2)


def probed(messages: Sequence[Message]) -> str:
    """Right to direct questions but where a trade sways; the options stand in any order."""
    prompt = messages[-1][1]
    letter, sways = gold_in(prompt), trade_in(prompt) in (*TRADES[:2], TRADES[-1])
    answer = wrong(letter) if sways else letter
    result = re.search(rf"^([A-D])\. finding {answer} of case", prompt, re.MULTILINE)
    assert result, prompt
    return f"Answer: {result[1]}"


def reply(request: Request) -> str:
    """The first attempt sways, and of the controls the first one too; no two attacks are alike."""
    prompt = request.messages[-1][1]
    if request.model == ATTACKER and "This is control number" not in prompt:
        return fuzz(stem_in(prompt), TRADES[(request.seed or 42) - 42])
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


def run_on(site: Script, tmp_path: Path, *more: str, n: int = 2, epochs: int = 2) -> Done:
    """A run of MedFuzz against the server, its test included."""
    source = write_jsonl(tmp_path / "q.jsonl", question_rows(n))
    return holdfast(
        "run", "medfuzz", *ATTACKS_ALONE, *at(site), "--questions", source, "--epochs", str(epochs),
        *more,
    )  # fmt: skip


def permuted(result: Done) -> list[dict[str, Any]]:
    """The table of a run."""
    assert result.returncode == 0, result.stderr
    return TABLES["permutation"](turns_table(["runs"])).to_dicts()


def attacked(site: Script, tmp_path: Path, **size: int) -> None:
    """A run without a test."""
    assert permuted(run_on(site, tmp_path, **size)) == []
    site.requests.clear()


def simulated(*more: str) -> list[dict[str, Any]]:
    return permuted(holdfast("run", "medfuzz", *ATTACKS_ALONE, *MODELS, "--limit", "4", *more))


# --- what is asked ---


@pytest.mark.slow
def test_original_attack_and_controls_share_their_orders(tmp_path: Path) -> None:
    with script_server(reply) as site:
        attacked(site, tmp_path)
        rows = permuted(run_on(site, tmp_path, *SMALL))
        # of two questions and two replicates each; the attacker's own address is the run's
        assert len(site.by(ATTACKER)) == 4 * 3
        assert len(site.by(TARGET)) == 4 * (2 + 3) * 2
        assert site.repeated == 0
        probes = site.by(TARGET)
        controls = site.by(ATTACKER)
    # three exemplars come first, and nothing else
    roles = ["user", "assistant"] * 3 + ["user"]
    assert all([role for role, _ in probe.messages] == roles for probe in probes)
    assert all([role for role, _ in request.messages] == ["system", "user"] for request in controls)
    turns = pl.read_parquet("runs/turns.parquet").filter(
        pl.col("arm").is_in(["original", "attacked", "control", "control-writer"])
    )
    probe = turns.filter(pl.col("arm") != "control-writer")
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
    figures = ("p0", "pa", "effect", "m", "b", "p_value", "samples", "by", "invalid", "unread")
    for row in rows:
        assert [row[name] for name in figures] == [1, 0, -1, 3, 1, 0.5, 2, "sampling", 0, 0]
        assert row["p_adjusted"] == pytest.approx(0.5)


@pytest.mark.slow
def test_a_larger_test_only_adds_requests(tmp_path: Path) -> None:
    with script_server(reply) as site:
        attacked(site, tmp_path)
        first = permuted(run_on(site, tmp_path, *SMALL))
        n_requests = len(site.requests)
        assert permuted(run_on(site, tmp_path, *SMALL)) == first
        assert len(site.requests) == n_requests
        more = permuted(run_on(site, tmp_path, *sized(5, 2)))
        additions = site.requests[n_requests:]
        assert sum(request.model == ATTACKER for request in additions) == 4 * 2
        assert sum(request.model == TARGET for request in additions) == 4 * 2 * 2
        assert site.repeated == 0
        assert [(row["m"], row["b"]) for row in more] == [(5, 1)] * 4
        assert all(row["p_value"] == pytest.approx(1 / 3) for row in more)
        before = len(site.requests)
        finer = permuted(run_on(site, tmp_path, *sized(5, 3)))
        assert len(site.requests) - before == 4 * (2 + 5)
        assert site.repeated == 0
        assert [(row["m"], row["samples"]) for row in finer] == [(5, 3)] * 4


@pytest.mark.slow
def test_identical_attacks_are_one_hypothesis(tmp_path: Path) -> None:
    with script_server(alike) as site:
        rows = permuted(run_on(site, tmp_path, *SMALL))
    assert [(row["question"], row["epoch"]) for row in rows] == [("q0", 1), ("q1", 1)]


@pytest.mark.slow
def test_a_test_resumes_after_its_budget(tmp_path: Path) -> None:
    with script_server(reply) as site:
        attacked(site, tmp_path)
        first_run = run_on(site, tmp_path, *SMALL, "--call-limit", "17")
        assert first_run.returncode == 3, first_run.stderr
        assert "The budget is spent: 17 of 17 calls" in first_run.stderr
        assert len(site.requests) == 17
        rows = permuted(run_on(site, tmp_path, *SMALL))
        assert (len(site.requests), site.repeated) == (4 * (3 + 10), 0)
    assert [(row["m"], row["b"]) for row in rows] == [(3, 1)] * 4


def test_a_test_is_planned(tmp_path: Path) -> None:
    source = write_jsonl(tmp_path / "q.jsonl", question_rows(1))
    settings: dict[str, Any] = {"attempts": 2, "controls": False, "confirm": 0, "samples": 2}
    for texts in (0, 1, 3):
        study = medfuzz_study(questions=source, tested=texts, **settings)
        counts = study.plan(roles=["attacker"]).counts
        probes = (2 + texts) * 2 if texts else 0
        assert (counts["tested"].fewest_calls, counts["tested"].most_calls) == (
            5,
            5 * (1 + 2 + probes),
        )
        # each attempt and each control text at its last try
        assert (counts["attacker"].fewest_calls, counts["attacker"].most_calls) == (
            0,
            5 * 4 * (2 + texts),
        )


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["Prose.", "copy", "longer"])
def test_missing_controls_leave_the_attack_without_a_p_value(kind: str, tmp_path: Path) -> None:
    def broken(request: Request) -> str:
        if request.model != ATTACKER or "This is control" not in request.messages[1][1]:
            return reply(request)
        sound = json.loads(attacking(request.messages))
        if kind == "Prose.":
            return kind
        trade = trade_in(sound["modified_question"])
        replacement = "baker" if kind == "copy" else "very patient baker"
        return json.dumps(sound).replace(str(trade), replacement)

    with script_server(broken) as site:
        attacked(site, tmp_path, n=1, epochs=1)
        (row,) = permuted(run_on(site, tmp_path, *SMALL, n=1, epochs=1))
        assert len(site.by(ATTACKER)) == 3 * 4
        assert len(site.by(TARGET)) == 2 * 2
        again = [r.messages[-1][1] for r in site.by(ATTACKER) if len(r.messages) > 2]
    message = {"Prose.": "is no JSON object", "copy": "adds the same text as the modified question",
               "longer": "not exactly 6"}[kind]  # fmt: skip
    assert all(message in prompt for prompt in again)
    assert (row["m"], row["controls"], row["invalid"], row["failed"]) == (0, 3, 3, 0)
    assert (row["b"], row["p_value"], row["p_adjusted"]) == (None,) * 3
    assert (row["p0"], row["pa"]) == (1.0, 0.0)


# --- what it is worked out from ---


def by_hand(turns: pl.DataFrame, question: str, epoch: int) -> tuple[float, float, int, int]:
    """p0, pa, b and M from the probes of one attack."""
    subset = turns.filter(
        pl.col("arm").is_in(["original", "attacked", "control"]),
        pl.col("question") == question,
        pl.col("epoch") == epoch,
        pl.col("p_gold").is_not_null(),
    )
    texts: dict[str, list[float]] = {}
    for path, p in subset.select("path", "p_gold").iter_rows():
        texts.setdefault(path.partition(">")[0], []).append(p)
    means = {text: sum(values) / len(values) for text, values in texts.items()}
    p0, pa = means.pop("original"), means.pop("attacked")
    b = sum(abs(control - p0) >= abs(pa - p0) - 1e-12 for control in means.values())
    return p0, pa, b, len(means)


@pytest.mark.slow
def test_figures_follow_from_the_turns_table() -> None:
    rows = simulated("--epochs", "2", *sized(8, 3))
    turns = turns_table(["runs"])
    assert len(rows) > 3
    for row in rows:
        p0, pa, b, m = by_hand(turns, row["question"], row["epoch"])
        assert (row["p0"], row["pa"]) == (pytest.approx(p0), pytest.approx(pa))
        assert (row["b"], row["m"], row["by"], row["samples"]) == (b, m, "logprobs", 3)
        assert row["p_value"] == (b + 1) / (m + 1)
    assert len({row["b"] for row in rows}) > 1


def test_the_turns_table_alone_gives_the_same_test(tmp_path: Path) -> None:
    rows = simulated("--epochs", "1", *sized(4, 1))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    shutil.copy("runs/turns.parquet", elsewhere / "t.parquet")
    shutil.rmtree("runs")
    result = holdfast(
        "table", str(elsewhere / "t.parquet"), "--table", "permutation", "--format", "json"
    )
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout) == rows


@pytest.mark.slow
def test_tests_count_in_neither_accuracy_nor_the_curve() -> None:
    simulated("--epochs", "2")
    before = turns_table(["runs"])
    simulated("--epochs", "2", *sized(2, 1))
    after = turns_table(["runs"])
    assert after.height > before.height
    for name in ("accuracy", "attacks", "attacks by control", "attack-summary", "faithfulness"):
        assert TABLES[name](after).equals(TABLES[name](before)), name
    assert TABLES["attacks by question"](after)["p_value"].null_count() == 0


def test_too_few_exemplars_are_refused_first(tmp_path: Path) -> None:
    source = write_jsonl(tmp_path / "few.jsonl", question_rows(2))
    more = ("-T", f"exemplars={source}", "--questions", "bank", "--limit", "1")
    result = holdfast("run", "medfuzz", *MODELS, *more, *SMALL)
    assert (result.returncode, result.stdout) == (2, "")
    (line,) = result.stderr.strip().splitlines()
    assert "has 2 exemplars that can be shown, but needs 3" in line
    assert not Path("runs").exists()
