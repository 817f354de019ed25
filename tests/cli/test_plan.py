"""``holdfast run --dry-run``: what it says of a study is what a server then counts."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from benchmarks.server import Server
from tests.studies import holdfast, question_rows, write_jsonl

LIMIT = "8"
"""First questions of the bank, among them one whose drawn length is one of the ablation's."""

LENGTHS = ("-T", "lengths=1,10,20")
CHAINS = ("-T", "chains=paper")


@pytest.fixture
def contexts(tmp_path: Path) -> str:
    """Contexts of the first questions of the bank, also at the lengths of the ablation."""
    built = holdfast(
        "generate", "contexts", "--model", "simulated/generator", "--limit", LIMIT,
        "--lengths", "1,10,20", "-o", tmp_path / "contexts.jsonl", "--log-dir", tmp_path / "made",
    )  # fmt: skip
    assert built.returncode == 0, built.stderr
    rows = [json.loads(line) for line in (tmp_path / "contexts.jsonl").open()]
    assert 10 in {row["sentences"] for row in rows if row["length"] is None}
    return str(tmp_path / "contexts.jsonl")


def planned(protocols: Sequence[str], *settings: str) -> list[dict[str, Any]]:
    plan = holdfast(
        "run",
        "--dry-run",
        *protocols,
        "--model",
        "openai/bench",
        "--allow-simulated-inputs",
        *settings,
        "--json",
    )
    assert plan.returncode == 0, plan.stderr
    rows: list[dict[str, Any]] = json.loads(plan.stdout)
    return rows


def made(
    server: Server, tmp_path: Path, protocols: Sequence[str], *settings: str
) -> dict[str, Any]:
    """The study over HTTP, once: what it says of itself, beside what the server has counted."""
    run = holdfast(
        "run", *protocols, "--model", "openai/bench", "--model-base-url", f"{server.url}/v1",
        "--allow-simulated-inputs", "--json", "--log-dir", tmp_path / "r", *settings,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    outcome: dict[str, Any] = json.loads(run.stdout)
    stats = server.stats()
    assert stats["repeated"] == 0
    assert outcome["calls"] == stats["calls"]
    return outcome


@pytest.mark.slow
def test_the_full_study_takes_33_generations_a_question(
    server: Server, tmp_path: Path, contexts: str
) -> None:
    settings = ("--limit", LIMIT, "-T", f"contexts={contexts}", *CHAINS)
    (row,) = planned(["followup"], *settings)
    assert (row["generations"], row["exact"]) == ((29 + 4) * int(LIMIT), True)
    made(server, tmp_path, ["followup"], *settings)
    assert server.stats()["calls"] == row["generations"]


@pytest.mark.slow
def test_the_length_ablation_adds_twelve(tmp_path: Path, server: Server) -> None:
    # none of these has a text of the study's own that is as long as one of the ablation's
    built = holdfast(
        "generate", "contexts", "--model", "simulated/generator", "--limit", "6",
        "--lengths", "1,10,20", "-o", "c.jsonl", "--log-dir", "made",
    )  # fmt: skip
    assert built.returncode == 0, built.stderr
    settings = ("--limit", "6", "-T", "contexts=c.jsonl", *CHAINS, *LENGTHS)
    (row,) = planned(["followup"], *settings)
    assert (row["generations"], row["exact"]) == ((29 + 4 + 12) * 6, True)
    made(server, tmp_path, ["followup"], *settings)
    assert server.stats()["calls"] == row["generations"]


@pytest.mark.slow
def test_a_text_of_the_study_that_is_one_of_the_ablation_too_is_planned_once(
    server: Server, tmp_path: Path, contexts: str
) -> None:
    settings = ("--limit", LIMIT, "-T", f"contexts={contexts}", *CHAINS, *LENGTHS)
    (row,) = planned(["followup"], *settings)
    made(server, tmp_path, ["followup"], *settings)
    assert row["exact"] is True
    assert server.stats()["calls"] == row["generations"] < (33 + 12) * int(LIMIT)


@pytest.mark.slow
def test_the_plain_question_is_planned_and_asked_once_for_both_protocols(
    server: Server, tmp_path: Path
) -> None:
    settings = ("--limit", "4", *CHAINS, "-T", "mitigations=all")
    followup, single_turn = planned(["followup", "single-turn"], *settings)
    assert followup["generations"] == 33 * 4
    # seven biases without and with each of three mitigations, and the wrong options; the plain
    # question is the follow-ups', and so is its resample
    assert single_turn["generations"] == (7 * 4 + 1) * 4
    made(server, tmp_path, ["followup", "single-turn"], *settings)
    assert server.stats()["calls"] == followup["generations"] + single_turn["generations"]


def test_the_plain_question_counts_for_the_protocol_that_is_asked_alone(
    server: Server, tmp_path: Path
) -> None:
    (row,) = planned(["single-turn"], "--limit", "4", "-T", "biases=recency,cultural")
    assert row["generations"] == (2 + 2 + 1) * 4
    made(server, tmp_path, ["single-turn"], "--limit", "4", "-T", "biases=recency,cultural")
    assert server.stats()["calls"] == row["generations"]


def test_another_system_prompt_of_one_protocol_only_shares_no_plain_question() -> None:
    both = ("-T", "system_prompt=none")
    followup, single_turn = planned(["followup", "single-turn"], "--limit", "4", *both)
    assert (followup["generations"], single_turn["generations"]) == (17 * 4, 8 * 4)


@pytest.mark.slow
def test_epochs_are_planned_and_asked_anew(server: Server, tmp_path: Path) -> None:
    settings = ("--limit", "2", "--epochs", "3")
    rows = planned(["followup", "single-turn"], *settings)
    # no resample: each epoch's first answer is that of the others
    assert [row["generations"] for row in rows] == [16 * 2 * 3, 8 * 2 * 3]
    run = holdfast(
        "run", "followup", "single-turn", "--model", "openai/bench", "--json",
        "--model-base-url", f"{server.url}/v1", "--log-dir", tmp_path / "r", *settings,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    assert server.stats()["calls"] == sum(row["generations"] for row in rows)


@pytest.mark.slow
def test_what_is_left_out_is_told_and_neither_planned_nor_asked(
    server: Server, tmp_path: Path
) -> None:
    built = holdfast(
        "generate", "contexts", "--model", "simulated/faulty-generator", "--limit", LIMIT,
        "-o", "c.jsonl", "--log-dir", "made", "--json",
    )  # fmt: skip
    assert built.returncode == 0, built.stderr
    missing = json.loads(built.stdout)["missing"]
    assert missing
    settings = ("--limit", LIMIT, "-T", "contexts=c.jsonl", "--allow-simulated-inputs")
    plan = holdfast("run", "--dry-run", "followup", "--model", "openai/bench", *settings, "--json")
    assert plan.returncode == 0, plan.stderr
    (row,) = json.loads(plan.stdout)
    # misleading-context and rag-style both need a misleading context
    lost = sum(n * (1 + what.startswith("misleading")) for what, n in missing.items())
    assert row["generations"] == 17 * int(LIMIT) - lost
    for what, n in missing.items():
        kind, reason = what.removesuffix(")").split(" (")
        assert f"({kind} could not be generated ({reason}))" in plan.stderr
        assert f"left out for {n} question" in plan.stderr
    outcome = made(server, tmp_path, ["followup"], *settings)
    assert server.stats()["calls"] == row["generations"]
    assert sum(n for by in outcome["left_out"].values() for n in by.values()) == lost


def test_a_generator_has_a_row_of_its_own_that_a_faultless_one_keeps_to() -> None:
    settings = ("--limit", LIMIT, *LENGTHS)
    roles = ("--model-role", "generator=simulated/generator")
    contexts, followup = planned(["followup"], *settings, *roles)
    assert [row["model"] for row in (contexts, followup)] == [
        "simulated/generator",
        "openai/bench [simulated contexts]",
    ]
    # a reply that fails its check is asked for again, and a text that stays away is left out
    assert [row["exact"] for row in (contexts, followup)] == [False, False]
    run = holdfast(
        "generate", "contexts", "--model", "simulated/generator", "--limit", LIMIT,
        "--lengths", "1,10,20", "-o", "c.jsonl", "--log-dir", "made", "--json",
    )  # fmt: skip
    calls = json.loads(run.stdout)["calls"]
    assert contexts["at_least"] <= calls <= contexts["generations"]


def test_a_judge_has_a_row_of_its_own_that_is_never_exceeded(
    server: Server, tmp_path: Path
) -> None:
    judge_at = f"judge={{model: openai/judge, base_url: {server.url}/v1}}"
    settings = ("--limit", "3", "--model-role", judge_at)
    target, judge = planned(["followup"], *settings)
    assert (target["protocol"], judge["protocol"]) == ("followup", "followup: judge")
    assert (target["generations"], judge["generations"]) == (51, 42)
    assert judge["model"] == "openai/judge"
    outcome = made(server, tmp_path, ["followup"], *settings)
    judged = outcome["calls"] - target["generations"]
    assert 0 < judged <= judge["generations"]


def test_a_rule_that_looks_at_the_first_answer_makes_the_plan_a_bound(
    server: Server, tmp_path: Path
) -> None:
    source = write_jsonl(tmp_path / "q.jsonl", question_rows(6, options=2))
    settings = ("--questions", source, "-T", "suggest=not-own", "-T", "techniques=inc_letter")
    (row,) = planned(["followup"], *settings)
    assert (row["generations"], row["exact"]) == (6 * 8, False)
    made(server, tmp_path, ["followup"], *settings)
    # a wrong first answer leaves no other option to push
    assert 6 < server.stats()["calls"] < row["generations"]


def test_plan_asks_nobody_and_leaves_nothing(tmp_path: Path) -> None:
    before = sorted(tmp_path.rglob("*"))
    planned(
        ["followup", "single-turn"],
        "--model-role",
        "generator=openai/any",
        "--model-role",
        "judge=openai/any",
    )
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["followup", "-T", "contexts=generate"], "no model has the role 'generator'"),
        (["single-turn", "-T", "distractors=generate"], "no model has the role 'generator'"),
        (["followup", "--model-role", "jugde=openai/x"], "Did you mean 'judge'?"),
        (["followup", "--model-role", "openai/x"], "is not ROLE=MODEL"),
        (["followup", "--model-role", "judge=simulated/juge"], "Did you mean 'judge'"),
        (["followup", "--model-role", "generator=simulated/generater"], "Did you mean 'generator'"),
        (["followup", "-T", "lengths=1,ten"], "length 'ten' is not a number of sentences"),
    ],
)
def test_a_plan_of_what_cannot_be_run_is_refused(arguments: list[str], expected: str) -> None:
    plan = holdfast("run", "--dry-run", "--model", "simulated/sycophant", *arguments)
    assert plan.returncode == 2
    assert plan.stdout == ""
    (line,) = plan.stderr.strip().splitlines()
    assert expected in line


@pytest.mark.slow
def test_a_simulated_study_keeps_to_its_plan_too(tmp_path: Path, contexts: str) -> None:
    settings = ("--model", "simulated/sycophant", "--limit", LIMIT, "-T", f"contexts={contexts}",
                *CHAINS, *LENGTHS)  # fmt: skip
    plan = holdfast("run", "--dry-run", "followup", "single-turn", *settings, "--json")
    run = holdfast("run", "followup", "single-turn", *settings, "--log-dir", tmp_path / "r",
                   "--json")  # fmt: skip
    assert run.returncode == 0, run.stderr
    rows = json.loads(plan.stdout)
    assert [row["exact"] for row in rows] == [True, True]
    assert json.loads(run.stdout)["calls"] == sum(row["generations"] for row in rows)
