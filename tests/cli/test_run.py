"""``holdfast run``, ``demo`` and Inspect's own command line as a user meets them."""

import re
from pathlib import Path

import polars as pl
import pytest
from inspect_ai.log import list_eval_logs, read_eval_log
from tests.cli.commands import facts_of, inspect_eval, rows_of, study_of
from tests.studies import holdfast, question_rows, write_jsonl

from holdfast.protocols import settings
from holdfast.questions import loading
from holdfast.results.declaration import TABLES
from holdfast.results.turns import turns_table


@pytest.mark.rest_slow
@pytest.mark.parametrize("texts", [True, False])
def test_the_turns_table_can_omit_texts(texts: bool) -> None:
    more = () if texts else ("--no-text",)
    _, turns = study_of("followup", "--model", "simulated/sycophant", "--limit", "1", *more)
    assert turns.height == 17
    for name in ("prompt", "reply"):
        assert turns[name].null_count() == (0 if texts else 17)


@pytest.mark.slow
def test_the_demo_leaves_a_report_and_a_row_for_each_challenge(tmp_path: Path) -> None:
    run = holdfast("demo", "--log-dir", tmp_path / "demo")
    assert run.returncode == 0, run.stderr
    for words in ("simulated/claude-sonnet-4 on bank", "SIMULATED", "rag-style", "keeps more"):
        assert words in run.stdout
    assert str(tmp_path / "demo" / "report.html") in run.stdout
    assert (tmp_path / "demo" / "report.html").exists()
    rows = rows_of(tmp_path / "demo")
    turns = turns_table([str(tmp_path / "demo")])
    measures = TABLES["accuracy"](turns)
    assert len(rows) == measures.height == 2 * (15 + 3 + 14 + 9 + 2 + 4 + 1 + 16 + 4)


@pytest.mark.slow
def test_a_run_prints_only_its_results_in_order() -> None:
    place = ("--limit", "2", "--log-dir", "r")
    facts_of("run", "single-turn", "--model", "simulated/noisy", *place)
    protocols = ("single-turn", "stick-or-switch")
    names = [f"simulated/{name}" for name in ("steadfast", "claude-sonnet-4", "sycophant")]
    study = (*protocols, *(part for name in names for part in ("--model", name)), *place)
    run = holdfast("run", *study)
    assert run.returncode == 0, run.stderr
    titles = re.findall(r"^(\S+) on bank: ([\w-]+)  \[SIM", run.stdout, re.MULTILINE)
    assert titles == [(name, protocol) for name in names for protocol in protocols]
    assert "noisy" not in run.stdout
    outcome, _ = study_of(*study)
    assert {row["model"] for row in outcome["accuracy"]} == set(names)
    order = dict.fromkeys((row["model"], row["protocol"]) for row in rows_of("r"))
    noisy = ("simulated/noisy", "single-turn")  # runs of the same second come in any order
    assert noisy in order
    assert [pair for pair in order if pair != noisy] == titles


def test_a_recording_of_simulated_turns_stays_simulated() -> None:
    study = ("run", "followup", "--limit", "2", "--log-dir")
    facts_of(*study, "a", "--model", "simulated/sycophant")
    replay = holdfast(*study, "b", "--model", "recorded/a/turns.parquet")
    assert replay.returncode == 0, replay.stderr
    assert "SIMULATED" in replay.stdout
    assert turns_table(["b"])["model"].str.contains("[simulated]", literal=True).all()


def test_a_turn_in_several_sources_counts_once() -> None:
    facts_of("run", "followup", "--model", "simulated/sycophant", "--limit", "2", "--log-dir", "r")
    rows = rows_of("r")
    assert rows_of("r", "accuracy", "r/turns.parquet") == rows
    assert [rows_of(log) for log in Path("r").glob("*.eval")] == [rows]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("task", "arguments", "bounds"),
    [
        ("followup", (), (2 * 17, 2 * 17)),
        ("stick_or_switch", ("--model", "simulated/steadfast"), (2 * 4, 2 * 13)),
        ("medfuzz", ("--model", "simulated/fuzz-swayed", "--model-role",
                     "attacker=simulated/attacker"), (2 * 5, 10**4)),
    ],
)  # fmt: skip
def test_inspect_runs_a_protocol(
    task: str, arguments: tuple[str, ...], bounds: tuple[int, int], tmp_path: Path
) -> None:
    model = arguments or ("--model", "simulated/sycophant")
    run = inspect_eval(task, *model, cwd=tmp_path)
    assert run.returncode == 0, run.stdout + run.stderr
    (info,) = list_eval_logs(str(tmp_path / "logs"))
    assert read_eval_log(info).status == "success"
    turns = turns_table([info.name])
    assert bounds[0] <= turns.height <= bounds[1]
    assert turns["protocol"].unique().to_list() == [task.replace("_", "-")]
    if task == "medfuzz":
        (row,) = TABLES["attack-summary"](turns).iter_rows(named=True)
        assert (row["replicates"], row["unfinished"]) == (2 * 5, 0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("task", "arguments", "words"),
    [
        ("stick_or_switch", ("-T", "beliefs=maybe"), "beliefs is 'maybe', not true or false"),
        # the target is not let to attack itself
        ("medfuzz", ("--epochs", "1"), "no model has the role 'attacker'"),
    ],
)
def test_inspect_is_refused_with_the_reason(
    task: str, arguments: tuple[str, ...], words: str, tmp_path: Path
) -> None:
    run = inspect_eval(task, "--model", "simulated/steadfast", *arguments, cwd=tmp_path)
    assert words in " ".join((run.stdout + run.stderr).split())
    for info in list_eval_logs(str(tmp_path / "logs")):
        assert read_eval_log(info).status == "error"
        assert turns_table([info.name]).is_empty()


def test_inputs_of_a_study_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    source = write_jsonl(Path("q.jsonl"), question_rows(3))
    names: list[str] = []
    load = loading.load_questions

    def counting(questions: str, *more: object) -> object:
        names.append(questions)
        return load(questions, *more)  # type: ignore[arg-type]

    monkeypatch.setattr(settings, "load_questions", counting)
    models = ("--model", "simulated/sycophant", "--model", "simulated/steadfast")
    _, turns = study_of("followup", *models, "--questions", source)
    assert names == [source]
    assert turns.filter(pl.col("turn") == 0).group_by("model").len().height == 2


def test_the_json_of_a_run_has_the_tables_of_every_protocol() -> None:
    outcome, turns = study_of("followup", "--model", "simulated/sycophant", "--limit", "2")
    assert outcome["attacks"] == outcome["survival"] == []
    assert len(outcome["accuracy"]) == TABLES["accuracy"](turns).height > 0
