"""``holdfast run stick-or-switch``: what is asked over HTTP, what is left out, and its time."""

from pathlib import Path

import polars as pl
import pytest
from benchmarks.drive import measured
from benchmarks.server import Server
from tests.cli.commands import lacking, plan_of, study_of
from tests.studies import HOLDFAST, holdfast, question_rows, write_jsonl

NAME = "stick-or-switch"


def at(server: Server) -> list[str]:
    return ["--model", "openai/bench", "--model-base-url", f"{server.url}/v1"]


def calls_of(turns: pl.DataFrame) -> dict[str, int]:
    """By question, the generations that its answers call for, whatever rows the table has."""
    calls: dict[str, int] = {}
    for (question,), rows in turns.group_by("question"):
        row = {(r["arm"], r["turn"]): r for r in rows.iter_rows(named=True)}
        offers = len(row["single-shot", 0]["shown"].split(",")) - 1
        number = 2
        for arm in ("positive", "negative"):
            holds = [row[arm, turn]["answer"] == row[arm, turn]["target"] for turn in range(offers)
                     if (arm, turn) in row]  # fmt: skip
            first = holds.index(False) + 1 if False in holds else offers
            number += first + (arm == "negative" and holds[0])
            # its control shares turn 1 and stops by the same rule
            controls = [row[f"{arm}-control", turn] for turn in range(1, offers)
                        if (f"{arm}-control", turn) in row]  # fmt: skip
            stays = [control["answer"] == control["target"] for control in controls]
            ends = stays.index(False) + 1 if False in stays else offers - 1
            number += ends if holds[0] else 0
        calls[str(question)] = number
    return calls


@pytest.mark.slow
def test_conversations_stop_at_the_first_departure(server: Server) -> None:
    (row,) = plan_of(NAME, "--model", "openai/bench")
    assert (row["questions"], row["at_least"], row["generations"]) == (60, 4 * 60, 13 * 60)
    assert row["exact"] is False
    outcome, turns = study_of(NAME, *at(server))
    stats, calls = server.stats(), calls_of(turns)
    assert outcome["calls"] == stats["calls"] == stats["distinct"] == sum(calls.values())
    assert turns.height == stats["calls"]
    assert row["at_least"] < stats["calls"] < row["generations"]
    assert set(calls.values()) <= set(range(4, 14))
    # the server's answers are right by chance, so that every kind of ending is among them
    assert set(turns.filter(arm="positive")["turn"]) == {0, 1, 2}
    assert "flexible-correct" in set(turns["arm"])
    assert set(turns["status"]) >= {"parsed", "none"}
    again, _ = study_of(NAME, *at(server))
    assert (again["calls"], server.stats()["calls"]) == (0, stats["calls"])


@pytest.mark.slow
def test_four_options_take_at_most_thirteen_generations() -> None:
    outcome, turns = study_of(NAME, "--model", "simulated/steadfast", "--limit", "40")
    by_question = turns.group_by("question").len()
    assert outcome["calls"] == turns.height
    # a wrong first choice ends a conversation; half of a wrong abstention ends two
    assert set(by_question["len"]) <= {4, 8, 9, 13}
    assert by_question["len"].max() == 13
    assert calls_of(turns) == dict(by_question.iter_rows())


def test_omitted_arms_are_counted() -> None:
    rows = question_rows(6)
    rows[1]["options"]["C"] = "None of these options"
    rows[2]["options"][rows[2]["gold"]] = "none of the above"
    source = write_jsonl(Path("q.jsonl"), rows)
    dev = [row | {"id": f"dev{i}", "stem": f"Case {i}?"} for i, row in enumerate(question_rows(4))]
    exemplars = write_jsonl(Path("dev.jsonl"), [*dev, rows[0]])
    study = (NAME, "--model", "simulated/steadfast", "--questions", source,
             "-T", f"exemplars={exemplars}")  # fmt: skip
    outcome, _ = study_of(*study)
    (reason,) = {reason for reasons in outcome["left_out"].values() for reason in reasons}
    arms = ["flexible-correct", "negative", "single-shot-abstain"]
    assert outcome["left_out"] == {arm: {reason: 2} for arm in arms}
    (remark,) = outcome["remarks"]
    assert remark.startswith("1 exemplar")
    output = " ".join(holdfast("run", *study).stdout.split())
    assert lacking([*arms, reason, remark], output) == []
    plan = holdfast("run", "--dry-run", *study)
    assert lacking(["negative", "2 questions", reason], plan.stderr) == []
    (row,) = plan_of(*study)
    assert (row["at_least"], row["generations"]) == (4 * 4 + 2 * 2, 4 * 13 + 2 * 6)
    assert row["at_least"] <= outcome["calls"] <= row["generations"]


@pytest.mark.slow
def test_the_turns_table_holds_a_models_beliefs(server: Server) -> None:
    names = ["p_gold", "p_suggested", "p_answer"]
    beliefs = ("--limit", "6", "-T", "beliefs=true")
    _, turns = study_of(NAME, "--model", "simulated/sycophant", *beliefs, "--log-dir", "s")
    assert turns["p_gold"].null_count() == turns["p_answer"].null_count() == 0
    shares = turns.select((pl.col(names).is_between(0, 1) | pl.col(names).is_null()).all())
    assert shares.row(0) == (True, True, True)
    outcome, turns = study_of(NAME, *at(server), *beliefs)
    assert outcome["complete"]
    assert turns.select(pl.col(names).is_null().all()).row(0) == (True, True, True)


@pytest.mark.slow
def test_all_of_medmcqa_takes_less_than_five_minutes_and_600_mb(
    resources: Path, tmp_path: Path
) -> None:
    questions = resources / "data" / "medmcqa" / "dev.jsonl"
    cost = measured(
        [str(HOLDFAST), "run", NAME, "--model", "simulated/sycophant",
         "--questions", str(questions), "--log-dir", str(tmp_path / "r"), "--json"],
        tmp_path / "output",
    )  # fmt: skip
    turns = pl.read_parquet(tmp_path / "r" / "turns.parquet", columns=["question"])
    assert turns["question"].n_unique() == 4183 - 21  # 21 repeat an option
    # nothing is waited for, so on an idle machine the process's own time is the time it takes
    assert cost.cpu_s < 300
    assert cost.peak_rss_mb < 600
