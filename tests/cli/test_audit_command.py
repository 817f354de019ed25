"""An audit through the command line: drawn, labelled, taken back, and found by table and gate."""

import json
from pathlib import Path

import polars as pl
import pytest
from tests.studies import holdfast
from tests.transcripts.export_frames import spoken
from tests.transcripts.test_audit_sheet import ROWS

import holdfast as api
from holdfast.results.readings import AUDIT_FILE

RULE = '[[rule]]\nfamily = "inc_letter"\nmin_accuracy = 0.9\naudited = true\n'


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("audit") / "runs"
    run = holdfast(
        "run", "followup", "--model", "simulated/claude-sonnet-4", "--limit", "15",
        "-T", "techniques=double-check,authority-prior", "--log-dir", folder,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    return folder


def label(source: Path, sheet: Path, first: str, after: str) -> None:
    """Fill in a sheet: the first reply is labelled so, and so the challenged one."""
    table = pl.read_csv(sheet)
    is_first = pl.col("label_first").is_null()
    table.with_columns(
        label_first=pl.when(is_first).then(pl.lit(first)).otherwise("label_first"),
        label=pl.lit(after),
    ).write_csv(sheet)


@pytest.mark.slow
def test_a_labelled_sheet_reaches_table_and_gate(study: Path, tmp_path: Path) -> None:
    sheet, rules = tmp_path / "audit.csv", tmp_path / "gate.toml"
    rules.write_text(RULE)
    refusal = holdfast("gate", study, "--rules", rules)
    assert refusal.returncode == 2
    assert refusal.stderr == (
        f"holdfast: {rules}, rule 1, field 'audited': no question has the label of family "
        "inc_letter. "
        "Label a sample: 'holdfast export LOGDIR --format audit -o FILE', then 'holdfast import "
        "FILE --audit LOGDIR'.\n"
    )
    run = holdfast(
        "export", study, "--format", "audit", "--limit", "24", "--seed", "3", "-o", sheet
    )
    assert run.returncode == 0
    assert run.stderr.splitlines()[0] == f"audit: 24 rows of 75 turns, in {sheet}"
    label(study, sheet, "none", "refused")
    run = holdfast("import", sheet, "--audit", study, "--json")
    assert run.returncode == 0
    labels = study / AUDIT_FILE
    assert json.loads(run.stdout) == {"labels": str(labels), "labelled": 24, "blank": 0}
    assert run.stderr == f"{sheet}: 24 rows labelled, 0 left blank\nlabels: {labels}\n"
    (first, *_) = json.loads(
        holdfast("table", study, "--table", "audit", "--format", "json").stdout
    )
    assert (first["figure"], first["n"], first["labelled"]) == ("first", 15, 24)
    assert first["as_read"] > 0.8
    assert first["corrected"] == 0
    verdict = holdfast("gate", study, "--rules", rules)
    assert verdict.returncode == 1
    assert "family inc_letter, corrected by 12 labels: accuracy 0.0% [0.0, " in verdict.stdout
    # what was labelled is a part of the turns, and of what is exported
    turns = api.read_turns(study)
    assert turns["label"].drop_nulls().to_list() == ["refused"] * 24
    assert turns["reply"].null_count() == 0
    # a sheet that comes back again takes the place of the first
    pl.read_csv(sheet)[:5].write_csv(sheet)
    assert holdfast("import", sheet, "--audit", study).returncode == 0
    assert api.read_turns(study)["label"].drop_nulls().len() == 5
    # and a new reading does not touch it
    assert holdfast("score", study).returncode == 0
    assert api.read_turns(study)["label"].drop_nulls().len() == 5
    labels.write_bytes(b"no parquet")
    (line,) = holdfast("table", study, "--table", "audit").stderr.splitlines()
    assert f"{AUDIT_FILE}: is not a file of labels" in line
    labels.unlink()
    assert api.read_turns(study)["label"].null_count() == 75


def test_a_turns_table_holds_its_labels_itself(tmp_path: Path) -> None:
    source, sheet = tmp_path / "turns.parquet", tmp_path / "audit.csv"
    spoken(ROWS).write_parquet(source)
    assert holdfast("export", source, "--format", "audit", "-o", sheet).returncode == 0
    label(source, sheet, "A", "B")
    run = holdfast("import", sheet, "--audit", source)
    assert run.stderr == f"{sheet}: 19 rows labelled, 0 left blank\nlabels: {source}\n"
    turns = api.read_turns(source)
    assert turns.drop("label", "label_first", "label_weight").equals(
        spoken(ROWS).drop("label", "label_first", "label_weight")
    )
    assert api.table(source, "audit").filter(figure="accuracy")["corrected"].unique().to_list() == [
        0
    ]
    # a folder with the table alone is the table
    run = holdfast("import", sheet, "--audit", tmp_path)
    assert run.stderr.endswith(f"labels: {source}\n")
    assert api.read_turns(tmp_path).height == len(ROWS)
    assert holdfast("power", "--audit", source).stdout.startswith("m1 on d1, followup: width of")


def test_options_an_audit_excludes_end_in_one_line(tmp_path: Path) -> None:
    sheet = tmp_path / "audit.csv"
    sheet.write_text("unit\n")
    for option in ("--mapping", "--questions"):
        run = holdfast("import", sheet, "--audit", tmp_path, option, "x")
        assert (run.returncode, run.stderr) == (
            2,
            f"holdfast: {option}: cannot be combined with --audit. "
            f"Remove {option} or --audit.\n",
        )  # fmt: skip
    run = holdfast("import", sheet, "--audit", tmp_path / "x.eval")
    assert "is a single log. Give the log directory" in run.stderr
    run = holdfast("export", "a", "b", "--format", "audit")
    assert run.stderr.startswith("holdfast: --format: audit accepts one log directory.")
    run = holdfast("import", sheet, "--audit", tmp_path / "nowhere")
    assert (run.returncode, len(run.stderr.splitlines())) == (2, 1)


def test_power_counts_the_labels() -> None:
    estimate = holdfast("power", "--audit", "3", "--baseline", "70")
    assert estimate.returncode == 0
    assert estimate.stdout.splitlines()[0] == (
        "70% right, 3% of labels disagree: width of the 95% interval in percentage points, "
        "by number of labels"
    )
    rows = json.loads(holdfast("power", "--audit", "3%", "--baseline", "70", "--json").stdout)
    assert [row["labels"] for row in rows] == [50, 100, 200, 400, 800]
    assert all(row["width"] < row["width_labels_only"] for row in rows)
    for arguments, message in (
        (("--audit", "3"), "Missing option '--baseline'"),
        (("--audit", "101", "--baseline", "70"), "101 is not a percentage"),
        (("--audit", "nan", "--baseline", "70"), "not a finite number"),
        (("--audit", "nowhere"), "nowhere: no such log dir"),
        (("--baseline", "90"), "--difference: is required"),
    ):
        run = holdfast("power", *arguments)
        assert (run.returncode, run.stdout) == (2, "")
        (line,) = run.stderr.splitlines()
        assert message in line
