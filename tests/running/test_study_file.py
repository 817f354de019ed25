"""A study from a file: its keys are the options, its paths are beside it, what is given wins."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.studies import holdfast, question_rows, write_jsonl

import holdfast as python
from holdfast.errors import InputError
from holdfast.results.runs import logs_in
from holdfast.running.resolved import resolved
from holdfast.running.study_file import with_study_file

STUDY = """
protocols = ["followup"]
model = "simulated/sycophant"
questions = "q.jsonl"
limit = 2
seed = 7
log_dir = "runs"

[settings]
techniques = "rethink"
controls = false

[model_role]
judge = "simulated/judge"

[generate_config]
max_retries = 3
"""


@pytest.fixture
def study(tmp_path: Path) -> Path:
    """A study file with its questions beside it."""
    folder = tmp_path / "studies"
    folder.mkdir()
    write_jsonl(folder / "q.jsonl", question_rows(3))
    (folder / "study.toml").write_text(STUDY)
    return folder / "study.toml"


def options(study: Path, **arguments: Any) -> dict[str, Any]:
    return with_study_file({"protocols": [str(study)], **arguments})


def test_a_study_runs_from_its_file(study: Path) -> None:
    run = holdfast("run", study, "--json")
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout)["log_dir"] == str(study.parent / "runs")
    (log,) = logs_in(str(study.parent / "runs"))
    assert log.eval.task_args["seed"] == 7
    assert log.eval.dataset.sample_ids == ["q0", "q1"]
    assert log.plan.config.max_retries == 3
    assert set(log.eval.model_roles or {}) == {"judge"}
    again = holdfast("run", study, "--json")
    assert json.loads(again.stdout)["calls"] == 0


def test_arguments_override_the_file(study: Path) -> None:
    resolved_options = options(
        study,
        limit=1,
        seed=8,
        task_args=["controls=true"],
        model_role=["judge=simulated/other", "reader=simulated/reader"],
        generate_config="{timeout: 9}",
        model=["simulated/steadfast"],
    )
    assert (resolved_options["limit"], resolved_options["seed"], resolved_options["model"]) == (
        1,
        8,
        ["simulated/steadfast"],
    )
    assert resolved_options["task_args"] == {"techniques": "rethink", "controls": "true"}
    assert resolved_options["model_role"] == ["judge=simulated/other", "reader=simulated/reader"]
    assert resolved_options["generate_config"].values == {"max_retries": 3, "timeout": 9}
    study.write_text(STUDY.replace("[settings]", "[settings]\nseed = 9"))
    assert "seed" not in options(study, seed=8)["task_args"]


def test_paths_are_relative_to_the_file(study: Path) -> None:
    study.write_text(
        STUDY.replace("[settings]", '[settings]\ncontexts = "c.jsonl"\nsuggest = "second-best"')
        .replace('questions = "q.jsonl"', 'questions = ["q.jsonl", "bank", "hf:own/set@1"]')
        .replace("limit = 2", 'defence = ["abstain", "mine.toml+abstain"]\nprices = "p.json"')
        .replace('"simulated/sycophant"', '["recorded/r.jsonl", "simulated/sycophant"]')
    )
    resolved_options, folder = options(study), study.parent
    assert resolved_options["questions"] == [str(folder / "q.jsonl"), "bank", "hf:own/set@1"]
    assert resolved_options["defence"] == ["abstain", str(folder / "mine.toml+abstain")]
    assert resolved_options["prices"] == str(folder / "p.json")
    assert resolved_options["model"] == [f"recorded/{folder / 'r.jsonl'}", "simulated/sycophant"]
    assert resolved_options["task_args"]["contexts"] == str(folder / "c.jsonl")
    assert resolved_options["task_args"]["suggest"] == "second-best"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("limt = 2", "field 'limt': unknown key 'limt'. Did you mean 'limit'?"),
        ('limit = "2"', "field 'limit': is not a whole number"),
        ("limit = 0", "field 'limit': 0 is too small: give 1 or more"),
        ("limit = true", "field 'limit': is not a whole number"),
        ("cost_limit = nan", "field 'cost_limit': is not a number"),
        ("shards = 2", "unknown key 'shards'"),
        ("defence = [1]", "field 'defence': is neither text nor a list of texts"),
        ("settings = 1", "field 'settings': is not a table"),
        ("generate_config = {temprature = 1}", "field 'temprature': unknown setting"),
        ("generate_config = {temperature = 1}", "field 'temperature': 'simulated/sycophant' does"),
        ("= 1", "is not valid TOML"),
    ],
)
def test_a_bad_key_or_value_is_named_in_one_line(line: str, words: str, study: Path) -> None:
    study.write_text(f'protocols = "followup"\nmodel = "simulated/sycophant"\n{line}\n')
    run = holdfast("run", study)
    assert (run.returncode, run.stdout) == (2, "")
    (line_printed,) = run.stderr.strip().splitlines()
    assert line_printed.startswith(f"holdfast: {study}")
    assert words in line_printed


def test_a_study_file_is_the_only_protocol_argument(study: Path) -> None:
    with pytest.raises(InputError, match="stands alone"):
        with_study_file({"protocols": [str(study), "followup"]})
    study.write_text("limit = 1\n")
    with pytest.raises(InputError, match="is missing"):
        options(study)


def test_rules_in_the_file_end_the_run(study: Path) -> None:
    (study.parent / "rules.toml").write_text("[[rule]]\nmin_accuracy = 0.01\n")
    study.write_text(STUDY.replace("seed = 7", 'until = "rules.toml"'))
    run = holdfast("run", study, "--json")
    assert run.returncode == 4, run.stderr
    assert json.loads(run.stdout)["ended"] == "questions"
    with pytest.raises(InputError, match=r"Call holdfast\.verdict"):
        python.run(str(study))
    assert python.verdict(study.parent / "rules.toml", protocols=study).calls == 0


def test_python_runs_and_plans_a_study_file(study: Path) -> None:
    plan = python.plan(study, limit=1).table
    assert plan["generations"].to_list() == [6, 5]
    running = resolved(options(study))
    assert [str(model) for model in running.models] == ["simulated/sycophant"]
    assert python.run(study, limit=1).run_turns["question"].unique().to_list() == ["q0"]


def test_check_reports_the_inputs_of_a_study(study: Path) -> None:
    result = holdfast("check", study, "--json")
    assert result.returncode == 0, result.stderr
    report = json.loads(result.stdout)
    assert report == {
        "source": str(study),
        "kind": "study",
        "protocols": ["followup"],
        "questions": ["q"],
        "defences": [],
        "models": ["simulated/sycophant"],
        "roles": ["judge=simulated/judge"],
        "problems": [],
    }
    assert not (study.parent / "runs").exists()


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("limit = 2", "limt = 2", "Did you mean 'limit'?"),
        ('["followup"]', '["folowup"]', "Did you mean 'followup'?"),
        ("controls = false", "control = false", "Did you mean 'controls'?"),
        ('techniques = "rethink"', 'techniques = "rethnk"', "rethnk"),
        ('"q.jsonl"', '"p.jsonl"', "p.jsonl"),
        ("simulated/sycophant", "simulated/sycofant", "sycofant"),
        ("seed = 7", 'until = "rules.toml"', "rules.toml"),
    ],
)
def test_check_and_run_refuse_the_same(old: str, new: str, words: str, study: Path) -> None:
    study.write_text(STUDY.replace(old, new))
    result = holdfast("check", study)
    assert result.returncode == 2
    assert words in result.stderr.splitlines()[-1]
