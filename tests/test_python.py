"""What Python calls: one function for each command, the same that the command calls."""

import inspect
import io
import json
import subprocess
import sys
from pathlib import Path

import pytest

import holdfast
from holdfast.cli.run import run as run_command
from holdfast.errors import InputError
from holdfast.files import whole_file
from holdfast.running.provider_options import RunOptions
from tests.cli.test_start import SLOW
from tests.studies import holdfast as command

STUDY = ("followup", "simulated/sycophant")


def test_importing_the_package_is_fast() -> None:
    code = "import json, sys, holdfast; print(json.dumps(sorted(sys.modules)))"
    result = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    )
    assert not {name.partition(".")[0] for name in json.loads(result.stdout)} & {*SLOW, "typer"}


def test_python_takes_every_option_of_the_command() -> None:
    of_the_command = set(inspect.signature(run_command).parameters)
    command_only = {"protocols", "model", "questions", "shards", "ray", "shard", "as_json"}
    command_only |= {"dry_run", "until", "every"}
    assert of_the_command - command_only == set(RunOptions.__annotations__)


def test_python_and_the_command_resume_each_other(tmp_path: Path) -> None:
    log_dir = tmp_path / "runs"
    first = holdfast.run(*STUDY, log_dir=log_dir, limit=2, task_args={"techniques": "rethink"})
    assert (first.unfinished, first.interrupted, first.budget.calls) == ("", False, 16)
    again = command("run", "followup", "--model", STUDY[1], "--limit", "2", "--log-dir", log_dir,
                    "-T", "techniques=rethink", "--json")  # fmt: skip
    assert again.returncode == 0, again.stderr
    assert json.loads(again.stdout)["calls"] == 0
    assert holdfast.read_turns(log_dir).select(first.table.columns).equals(first.table)


@pytest.mark.slow
def test_tables_figures_and_verdicts_match_the_commands(tmp_path: Path) -> None:
    runs = str(tmp_path / "runs")
    rules = tmp_path / "rules.toml"
    rules.write_text('[[rule]]\nfamily = "rethink"\nmin_accuracy = 0.1\n')
    models = ["simulated/sycophant", "simulated/steadfast"]
    holdfast.run("followup", models, log_dir=runs, limit=3, model_role={}, labels=None)
    turns = holdfast.read_turns(runs)
    rows = json.loads(command("table", runs, "--format", "json").stdout)
    assert holdfast.table(turns).height == len(rows)
    assert holdfast.table(runs, "flips").equals(holdfast.table(turns, "flips"))
    assert "vega-lite" in holdfast.figure(turns, "flips", by="family").to_json()
    verdict = holdfast.gate(runs, rules)
    verdict_json = json.loads(command("gate", runs, "--rules", rules, "--json").stdout)
    assert (verdict.outcome, verdict.table.height) == (verdict_json["outcome"], 2)
    assert holdfast.compare(turns, turns, model_a=models[0], model_b=models[1]).rows.height
    # the room of the same name is imported by then
    assert [holdfast.report(runs).headline for _ in range(2)]


def test_a_plan_counts_what_the_command_counts() -> None:
    plan = holdfast.plan(*STUDY, limit=2, task_args={"contexts": "none"})
    rows = json.loads(
        command("run", "--dry-run", "followup", "--model", STUDY[1], "--limit", "2",
                "-T", "contexts=none", "--json").stdout
    )  # fmt: skip
    assert plan.table.to_dicts() == rows
    assert plan.lacking[0].paths
    assert holdfast.power(0.9, 0.05, 0.2) > 0


def test_unusable_arguments_are_refused_with_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="Did you mean 'flips'"):
        holdfast.table(tmp_path / "none.parquet", "flip")
    with pytest.raises(InputError, match="Add --shards"):
        holdfast.run(*STUDY, log_dir=tmp_path, ray="local")
    with pytest.raises(InputError, match="unknown setting"):
        holdfast.plan(*STUDY, task_args={"nope": 1})
    with pytest.raises(InputError, match="unknown option 'limits'"):
        holdfast.plan(*STUDY, limits=1)  # type: ignore[call-arg]


def test_text_only_standard_output_is_written_to(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stream = io.StringIO()
    monkeypatch.setattr("sys.stdout", stream)
    with whole_file(None) as file:
        file.write("a line with a sign: ≥\n".encode())
    assert stream.getvalue() == "a line with a sign: ≥\n"
