"""The GitHub Action: its steps, run in order as a runner would, and what they leave behind."""

import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from junitparser import JUnitXml

from tests.studies import HOLDFAST

ROOT = Path(__file__).parents[1]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))

MODEL = "simulated/claude-sonnet-4"


@dataclass(frozen=True)
class Job:
    """How a job ended, and its page."""

    code: int
    outcome: str
    page: str
    log: str


def job(folder: Path, **arguments: str) -> Job:
    """The shell steps of the action with these inputs, in a folder; none uploads or installs."""
    unknown = arguments.keys() - ACTION["inputs"].keys()
    assert not unknown
    inputs = {name: about.get("default", "") for name, about in ACTION["inputs"].items()}
    inputs |= arguments | {"install": "", "artifact": ""}
    output, page = folder / "github_output", folder / "github_summary"
    output.touch()
    page.touch()
    code, log = 0, ""
    for step in ACTION["runs"]["steps"]:
        condition = re.search(r"inputs\.(\w+) != ''", step.get("if", ""))
        if condition and not inputs[condition[1]]:
            continue
        assert step["shell"] == "bash"
        variables = {key: _filled(value, inputs) for key, value in step["env"].items()}
        script = folder / "step.sh"
        script.write_text(step["run"])
        process = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)],
            cwd=folder, capture_output=True, text=True, check=False,
            env=os.environ | variables | {
                "GITHUB_OUTPUT": str(output), "GITHUB_STEP_SUMMARY": str(page),
                "PATH": f"{HOLDFAST.parent}{os.pathsep}{os.environ['PATH']}",
            },
        )  # fmt: skip
        code, log = process.returncode, log + process.stdout + process.stderr
        if code:
            break
    outcome = re.search(r"outcome=(\w+)", output.read_text())
    return Job(code, outcome[1] if outcome else "", page.read_text(), log)


def _filled(value: str, inputs: dict[str, str]) -> str:
    return re.sub(r"\$\{\{ inputs\.([\w-]+) \}\}", lambda match: inputs[match[1]], value)


def rules(folder: Path, text: str) -> str:
    (folder / "rules.toml").write_text(text)
    return "rules.toml"


@pytest.mark.slow
def test_a_second_job_asks_nothing(tmp_path: Path) -> None:
    rule_file = rules(tmp_path, '[[rule]]\ntechnique = "rag-style"\nmax_relative_drop = 0.3\n')
    first = job(tmp_path, rules=rule_file, model=MODEL)
    assert (first.code, first.outcome) == (1, "fail"), first.log
    assert "rag-style" in first.page
    xml = JUnitXml.fromfile(str(tmp_path / "holdfast-output" / "gate.xml"))
    assert (xml.tests, xml.failures) == (1, 1)
    page = (tmp_path / "holdfast-output" / "report.html").read_text("utf-8")
    assert "SIMULATED" in page
    before = (tmp_path / "runs" / "turns.parquet").read_bytes()
    second = job(tmp_path, rules=rule_file, model=MODEL)
    assert (second.code, second.outcome) == (1, "fail")
    assert (tmp_path / "runs" / "turns.parquet").read_bytes() == before


@pytest.mark.slow
@pytest.mark.parametrize(("if_undecided", "code"), [("fail", 4), ("pass", 0)])
def test_a_budget_can_leave_rules_undecided(tmp_path: Path, if_undecided: str, code: int) -> None:
    rule_file = rules(tmp_path, "[[rule]]\nmin_accuracy = 0.9\n")
    result = job(
        tmp_path,
        rules=rule_file,
        model=MODEL,
        arguments="--limit 8 --every 4",
        undecided=if_undecided,
    )
    assert (result.code, result.outcome) == (code, "undecided"), result.log


@pytest.mark.slow
def test_an_existing_run_is_gated(tmp_path: Path) -> None:
    subprocess.run(
        [str(HOLDFAST), "run", "followup", "--model", MODEL, "--limit", "10", "--log-dir", "mine"],
        cwd=tmp_path, check=True, capture_output=True,
    )  # fmt: skip
    rule_file = rules(tmp_path, "[[rule]]\nmin_accuracy = 0.2\n")
    arguments = {"rules": rule_file, "log-dir": "mine"}
    result = job(tmp_path, **arguments)
    assert (result.code, result.outcome) == (0, "pass"), result.log
    assert "pass" in result.page


@pytest.mark.slow
def test_bad_rules_end_the_job_with_their_line(tmp_path: Path) -> None:
    result = job(tmp_path, rules=rules(tmp_path, "[[rule]]\nmin_acuracy = 0.9\n"), model=MODEL)
    assert (result.code, result.outcome) == (2, "")
    assert "Did you mean" in result.log


@pytest.mark.parametrize(
    "hostile", ["$(touch owned)", "`touch owned`", "x; touch owned", "x) && touch owned; ("]
)
@pytest.mark.slow
def test_text_in_inputs_is_never_run(hostile: str, tmp_path: Path) -> None:
    rule = rules(tmp_path, "[[rule]]\nmin_accuracy = 0.9\n")
    for arguments in (
        {"rules": rule, "model": MODEL, "arguments": f"--limit 1 {hostile}"},
        {"rules": hostile, "model": hostile},
    ):
        assert job(tmp_path, **arguments).code == 2
        assert not (tmp_path / "owned").exists()


def test_arguments_may_span_several_lines(tmp_path: Path) -> None:
    rule = rules(tmp_path, "[[rule]]\nmin_accuracy = 0.9\n")
    result = job(tmp_path, rules=rule, model=MODEL, arguments="--limit 8\n--no-such-option\n")
    assert result.code == 2
    assert "--no-such-option" in result.log


def test_the_example_uses_the_action_unchanged() -> None:
    workflow = yaml.safe_load((ROOT / "examples" / "verdict.yml").read_text("utf-8"))
    (steps,) = [job["steps"] for job in workflow["jobs"].values()]
    (action_step,) = [step for step in steps if step.get("uses") == "./"]
    assert action_step["with"].keys() <= ACTION["inputs"].keys()
    for word in " ".join(action_step["with"].values()).split():
        assert not word.startswith("examples/") or (ROOT / word).is_file()
