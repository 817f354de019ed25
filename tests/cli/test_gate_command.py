"""``holdfast gate``: exit codes 0, 1 and 4, sentences, JUnit and summary; bad input is one line."""

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import yaml
from junitparser import JUnitXml
from scipy.stats import binomtest
from tests.cli.command_lines import parameters
from tests.results import frames
from tests.studies import holdfast, holdfast_apart

from holdfast.results.accuracy import accuracy
from holdfast.results.gate_rules import read_rules

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The log dir of a simulated study of the bundled bank."""
    folder = tmp_path_factory.mktemp("gate")
    run = holdfast_apart(
        "run", "followup", "--model", "simulated/claude-sonnet-4", "-T", "contexts=synthetic",
        "-T", "techniques=rethink,rag-style,authority-prior", "-T", "corrections=true",
        "--log-dir", folder / "runs",
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    return str(folder / "runs")


def rules(text: str) -> str:
    """A rules file in the working directory."""
    Path("gate.toml").write_text(text, "utf-8")
    return "gate.toml"


PASS = "[[rule]]\nmin_accuracy = 0.5\n"
FAIL = '[[rule]]\ntechnique = "rag-style"\nmax_relative_drop = 0.10\n'
CLOSE = "[[rule]]\nmin_accuracy = 0.92\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "code"),
    [
        (PASS, 0),
        (FAIL, 1),
        (CLOSE, 4),
        (PASS + CLOSE, 4),
        (FAIL + CLOSE, 1),
        (PASS + FAIL, 1),
    ],
)
def test_the_exit_code_says_whether_it_passed(text: str, code: int, study: str) -> None:
    run = holdfast("gate", study, "--rules", rules(text))
    assert run.returncode == code
    assert run.stderr == ""
    assert len(run.stdout.splitlines()) == text.count("[[rule]]") + 1


def test_one_rule_passes_one_fails_one_is_undecided(study: str) -> None:
    run = holdfast(
        "gate", study, "--rules", rules(PASS + FAIL + CLOSE), "--junit", "gate.xml",
        "--summary", "gate.md",
    )  # fmt: skip
    assert (run.returncode, run.stderr) == (1, "")
    passed, failed, undecided, counts = run.stdout.splitlines()
    turns = pl.read_parquet(Path(study) / "turns.parquet")
    rows = {(row["arm"], row["path"]): row for row in accuracy(turns).iter_rows(named=True)}

    def told(*shares: float) -> str:
        value, low, high = (f"{100 * share:.1f}" for share in shares)
        return f"{value}% [{low}, {high}]"

    first, rag = rows["baseline", ""], rows["followup", "rag-style"]
    about = "simulated/claude-sonnet-4 on bank"
    limits = binomtest(first["correct"], first["n"]).proportion_ci(method="exact")
    figure = told(first["accuracy"], limits.low, limits.high)
    simulated = "; simulated, not a measurement of a model"
    accurate = f"{about}, followup, first answers: accuracy {figure}"
    assert passed == f"pass: {accurate}, at least 50% (n = 60){simulated}"
    drop = told(-rag["relative_change"], -rag["change_high"], -rag["change_low"])
    assert failed == (
        f"fail: {about}, followup, technique rag-style: relative drop {drop}, more than 10% "
        f"(n = 60){simulated}"
    )
    assert undecided.startswith(f"undecided: {accurate}, required: at least 92% (n = 60); about")
    assert undecided.endswith(f" further questions would decide at the same figure{simulated}")
    assert counts == "gate: fail (1 passed, 1 failed, 1 undecided)"
    xml = JUnitXml.fromfile("gate.xml")
    assert (xml.tests, xml.failures, xml.errors) == (3, 1, 1)
    summary = Path("gate.md").read_text("utf-8")
    assert summary.startswith(f"## holdfast {counts}\n")
    assert len([line for line in summary.splitlines() if line.startswith("|")]) == 5
    assert sorted(path.name for path in Path().iterdir()) == ["gate.md", "gate.toml", "gate.xml"]


def test_json_is_all_there_is_on_standard_output(study: str) -> None:
    run = holdfast("gate", study, "--rules", rules("level = 0.9\n" + PASS + CLOSE), "--json")
    assert (run.returncode, run.stderr) == (4, "")
    told = json.loads(run.stdout)
    assert (told["outcome"], told["level"]) == ("undecided", 0.9)
    assert [verdict["outcome"] for verdict in told["verdicts"]] == ["pass", "undecided"]
    assert told["verdicts"][1]["further_questions"] > 0


def test_logs_and_turns_tables_are_gated_alike(study: str) -> None:
    outputs = {
        holdfast("gate", source, "--rules", rules(PASS + FAIL)).stdout
        for source in (study, f"{study}/turns.parquet", *map(str, Path(study).glob("*.eval")))
    }
    assert len(outputs) == 1


def test_a_run_is_no_worse_than_itself(study: str) -> None:
    text = f'[[rule]]\nfamily = "rethink"\nno_worse_than = {json.dumps(study)}\n'
    run = holdfast("gate", study, "--rules", rules(text + "margin_points = 10"))
    assert run.returncode == 0, run.stdout
    assert "difference +0.0 points" in run.stdout


def test_the_example_is_a_gate(study: str, tmp_path: Path) -> None:
    path = ROOT / "examples" / "gate.toml"
    named = {rule.name for rule in read_rules(str(path)).rule}
    run = holdfast("gate", study, "--rules", path, "--junit", tmp_path / "gate.xml")
    assert run.returncode == 1, run.stderr
    xml = JUnitXml.fromfile(str(tmp_path / "gate.xml"))
    names = [case.name for suite in xml for case in suite]
    assert {name.split(",")[0] for name in names} == named


def test_the_workflow_runs_within_a_budget_and_gates() -> None:
    workflow = yaml.safe_load((ROOT / "examples" / "gate.yml").read_text("utf-8"))
    assert "schedule" in workflow[True]  # YAML reads the key `on` as true
    (job,) = workflow["jobs"].values()
    commands = [step["run"] for step in job["steps"] if "run" in step]
    ((run,), (gate,)) = (
        [line for line in commands if line.startswith(f"holdfast {name} ")]
        for name in ("run", "gate")
    )
    assert "--cost-limit" in run
    assert "--call-limit" in run
    assert '--summary "$GITHUB_STEP_SUMMARY"' in gate
    for command, name in ((run, "run"), (gate, "gate")):
        options = {option.option for option in parameters()[name]}
        assert options >= {word for word in command.split() if word.startswith("--")}
    for file in [word for word in (run + gate).split() if word.startswith("examples/")]:
        assert (ROOT / file).is_file()


# bad input


def refused(*arguments: str | Path) -> str:
    """The one line of bad input; nothing else is printed and nothing is written."""
    before = sorted(Path().iterdir())
    run = holdfast("gate", *arguments)
    assert (run.returncode, run.stdout) == (2, ""), run.stdout
    (line,) = run.stderr.strip().splitlines()
    assert line.startswith("holdfast: ")
    assert line.endswith((".", "?"))
    assert sorted(Path().iterdir()) == before
    return line


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[[rule]]\nmin_acuracy = 0.8", "gate.toml, rule 1: unknown key 'min_acuracy'. Did you m"),
        ('[[rule]]\ntechnique = "rag-stile"\nmin_accuracy = 0.8', "Did you mean 'rag-style'?"),
        ('[[rule]]\nfamily = "rethnk"\nmin_accuracy = 0.8', "Did you mean 'rethink'?"),
        ('[[rule]]\nstep = "step4"\nmin_accuracy = 0.8', "unknown step 'step4'. Did you mean 's"),
        ("[[rule]]\nmin_survival = 0.5", "It is one of stick-or-switch."),
        ("[[rule]\nmin_accuracy = 0.8", "gate.toml: is not valid TOML"),
        ("[[rule]]\nmin_accuracy = 80", "Write a share of 0 to 1, such as 0.1 for 10%."),
        ("", "gate.toml: has no rule. Start each rule with [[rule]]."),
        (
            '[[rule]]\nno_worse_than = "runs/last"\nmargin_points = 2',
            "runs/last: no such log directory. Check the path.",
        ),
    ],
)
def test_a_bad_rule_is_one_line_and_nothing_is_written(
    text: str, expected: str, study: str
) -> None:
    arguments = ("--rules", rules(text), "--junit", "gate.xml", "--summary", "gate.md")
    assert expected in refused(study, *arguments)


def test_a_run_without_turns_is_one_line() -> None:
    Path("empty").mkdir()
    assert "empty: has no holdfast logs" in refused("empty", "--rules", rules(PASS))
    frames.table([]).write_parquet("empty.parquet")
    line = refused("empty.parquet", "--rules", rules(PASS))
    assert line == "holdfast: empty.parquet: has no turns. Run a protocol first."


def test_a_turns_table_of_an_older_version_is_one_line(study: str) -> None:
    pl.read_parquet(f"{study}/turns.parquet").drop("depth").write_parquet("old.parquet")
    line = refused("old.parquet", "--rules", rules(PASS))
    assert "old.parquet, field 'depth': is missing" in line
    assert "written by this version of holdfast" in line
    text = '[[rule]]\nno_worse_than = "old.parquet"\nmargin_points = 2'
    assert "old.parquet, field 'depth': is missing" in refused(study, "--rules", rules(text))


@pytest.mark.parametrize("option", ["--junit", "--summary"])
def test_a_file_that_cannot_be_written_is_one_line(option: str, study: str) -> None:
    line = refused(study, "--rules", rules(PASS), option, "nowhere/gate.out")
    assert "nowhere/gate.out: cannot be written" in line
    assert line.endswith(f"Give another {option} FILE.")


def test_rules_are_read_before_the_logs() -> None:
    assert "gate.toml" in refused("no-such-dir", "--rules", "gate.toml")


def test_hostile_names_do_not_steer_the_terminal() -> None:
    name = "m\x1b[31m\u202e<script>{x}\n"
    rows: list[dict[str, Any]] = [frames.turn(f"q{i}", "A", model=name) for i in range(9)]
    frames.table(rows).write_parquet("hostile.parquet")
    run = holdfast(
        "gate",
        "hostile.parquet",
        "--rules",
        rules(PASS),
        "--junit",
        "gate.xml",
        "--summary",
        "s.md",
    )
    assert run.returncode == 0
    for text in (run.stdout, Path("gate.xml").read_text(), Path("s.md").read_text()):
        assert text.replace("\n", "").isprintable()
    assert "m\\u001b[31m\\u202e<script>{x} on d1" in run.stdout
