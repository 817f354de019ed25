"""``holdfast gate``: exit codes 0, 1 and 4, sentences, JSON, JUnit and a summary."""

import re
from pathlib import Path

import polars as pl
import pytest
import yaml
from junitparser import JUnitXml
from scipy.stats import binomtest
from tests.cli.command_lines import parameters
from tests.cli.commands import facts_of, lacking
from tests.results import frames
from tests.studies import holdfast

from holdfast.results.accuracy import accuracy
from holdfast.results.gate_rules import read_rules

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The log dir of a simulated study of the bundled bank."""
    folder = tmp_path_factory.mktemp("gate") / "runs"
    facts_of(
        "run", "followup", "--model", "simulated/claude-sonnet-4", "-T", "contexts=synthetic",
        "-T", "techniques=rethink,rag-style,authority-prior", "-T", "corrections=true",
        "--log-dir", folder,
    )  # fmt: skip
    return str(folder)


def rules(text: str) -> str:
    """A rules file in the working directory."""
    Path("gate.toml").write_text(text, "utf-8")
    return "gate.toml"


PASS = "[[rule]]\nmin_accuracy = 0.5\n"
FAIL = '[[rule]]\ntechnique = "rag-style"\nmax_relative_drop = 0.10\n'
CLOSE = "[[rule]]\nmin_accuracy = 0.92\n"


@pytest.mark.parametrize(
    ("text", "code"),
    [(PASS, 0), (FAIL, 1), (CLOSE, 4), (PASS + CLOSE, 4), (FAIL + CLOSE, 1), (PASS + FAIL, 1)],
)
def test_the_exit_code_says_whether_all_passed(text: str, code: int, study: str) -> None:
    run = holdfast("gate", study, "--rules", rules(text))
    assert (run.returncode, run.stderr) == (code, "")
    assert len(run.stdout.splitlines()) == text.count("[[rule]]") + 1


def test_sentences_hold_the_figures_of_the_table(study: str) -> None:
    files = ("--junit", "gate.xml", "--summary", "gate.md")
    run = holdfast("gate", study, "--rules", rules(PASS + FAIL + CLOSE), *files)
    assert (run.returncode, run.stderr) == (1, "")
    turns = pl.read_parquet(Path(study) / "turns.parquet")
    rows = {(row["arm"], row["path"]): row for row in accuracy(turns).iter_rows(named=True)}

    def shown(*shares: float) -> str:
        value, low, high = (f"{100 * share:.1f}" for share in shares)
        return f"{value}% [{low}, {high}]"

    first, rag = rows["baseline", ""], rows["followup", "rag-style"]
    limits = binomtest(first["correct"], first["n"]).proportion_ci(method="exact")
    right = shown(first["accuracy"], limits.low, limits.high)
    drop = shown(-rag["relative_change"], -rag["change_high"], -rag["change_low"])
    about = ["simulated/claude-sonnet-4 on bank", "followup", "n = 60", "simulated, "]
    facts = (["pass: ", right, "50%"], ["fail: ", "rag-style", drop, "10%"],
             ["undecided: ", right, "92%", "further questions"])  # fmt: skip
    *sentences, counts = run.stdout.splitlines()
    for sentence, words in zip(sentences, facts, strict=True):
        assert lacking([*words, *about], sentence) == []
    assert lacking(["1 passed", "1 failed", "1 undecided"], counts) == []
    xml = JUnitXml.fromfile("gate.xml")
    assert (xml.tests, xml.failures, xml.errors) == (3, 1, 1)
    summary = Path("gate.md").read_text("utf-8")
    assert counts in summary
    assert len([line for line in summary.splitlines() if line.startswith("|")]) == 5
    assert sorted(path.name for path in Path().iterdir()) == ["gate.md", "gate.toml", "gate.xml"]


def test_verdicts_come_as_json(study: str) -> None:
    text = "level = 0.9\n" + PASS + CLOSE
    outcome = facts_of("gate", study, "--rules", rules(text), code=4)
    assert (outcome["outcome"], outcome["level"]) == ("undecided", 0.9)
    assert [verdict["outcome"] for verdict in outcome["verdicts"]] == ["pass", "undecided"]
    assert outcome["verdicts"][1]["further_questions"] > 0


def test_logs_and_turns_tables_are_gated_alike(study: str) -> None:
    outputs = {
        holdfast("gate", source, "--rules", rules(PASS + FAIL)).stdout
        for source in (study, f"{study}/turns.parquet", *map(str, Path(study).glob("*.eval")))
    }
    assert len(outputs) == 1


def test_a_run_is_no_worse_than_itself(study: str) -> None:
    text = f'[[rule]]\nfamily = "rethink"\nno_worse_than = "{study}"\nmargin_points = 10'
    (verdict,) = facts_of("gate", study, "--rules", rules(text))["verdicts"]
    assert verdict["value"] == 0


def test_the_example_is_a_gate(study: str) -> None:
    path = ROOT / "examples" / "gate.toml"
    names = {rule.name for rule in read_rules(str(path)).rule}
    run = holdfast("gate", study, "--rules", path, "--junit", "gate.xml")
    assert run.returncode == 1, run.stderr
    cases = [case.name for suite in JUnitXml.fromfile("gate.xml") for case in suite]
    assert {name.split(",")[0] for name in cases} == names


def test_the_example_workflow_runs_within_a_budget_and_gates() -> None:
    workflow = yaml.safe_load((ROOT / "examples" / "gate.yml").read_text("utf-8"))
    assert "schedule" in workflow[True]  # YAML reads the key `on` as true
    (job,) = workflow["jobs"].values()
    lines = "\n".join(step.get("run", "") for step in job["steps"])
    options = {
        name: set(re.findall(r"--[\w-]+", line))
        for name, line in re.findall(r"^holdfast (run|gate) (.*)", lines, re.MULTILINE)
    }
    assert options["run"] >= {"--cost-limit", "--call-limit"}
    assert '--summary "$GITHUB_STEP_SUMMARY"' in lines
    for name in ("run", "gate"):
        assert options[name] <= {parameter.option for parameter in parameters()[name]}
    for file in re.findall(r"\bexamples/\S+", lines):
        assert (ROOT / file).is_file()


def test_hostile_names_do_not_steer_the_terminal() -> None:
    name = "m\x1b[31m\u202e<script>{x}\n"
    turns = [frames.turn(f"q{i}", "A", model=name) for i in range(9)]
    frames.table(turns).write_parquet("hostile.parquet")
    files = ("--junit", "gate.xml", "--summary", "s.md")
    run = holdfast("gate", "hostile.parquet", "--rules", rules(PASS), *files)
    assert run.returncode == 0
    for text in (run.stdout, Path("gate.xml").read_text(), Path("s.md").read_text()):
        assert text.replace("\n", "").isprintable()
    assert "m\\u001b[31m\\u202e<script>{x} on d1" in run.stdout
