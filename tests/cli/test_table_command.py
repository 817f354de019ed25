"""``holdfast table``: every table of one study in every format, beside the papers' figures."""

import io
import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.cli.commands import Facts, refusal, rows_of
from tests.results import frames
from tests.results.offering import drawn
from tests.studies import HOLDFAST, holdfast, holdfast_apart, of_table

from holdfast.cli.table import WAYS
from holdfast.protocols.followup.published import medqa_followup
from holdfast.registry import TABLES as REGISTERED
from holdfast.render.drawing import FIGURE_FORMATS
from holdfast.render.tables import FORMATS, render
from holdfast.results.declaration import TABLES

MODELS = ("simulated/claude-sonnet-4", "simulated/sycophant")
SINGLE = ("recency", "cultural", "education>recency", "education>cultural", "wrong-option")
LENGTHS = ("--table", "accuracy", "--by", "length", "--format")


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The turns of one study of two models, with something for most tables."""
    folder = tmp_path_factory.mktemp("tables")
    run = holdfast_apart(
        "run", "followup", "single-turn", "--model", MODELS[0], "--model", MODELS[1],
        "-T", "contexts=synthetic", "-T", "lengths=1,20", "-T",
        "techniques=double-check,authority-prior,rag-style,authority-prior", "-T",
        "chains=authority-prior>rag-style,double-check>rag-style", "-T",
        "biases=recency,cultural", "-T", "mitigations=education", "-T", "corrections=true",
        "--model-role", "judge=simulated/judge", "--log-dir", folder / "r", "--limit", "20",
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    yield str(folder / "r" / "turns.parquet")
    shutil.rmtree(folder)


def output(study: str, name: str, *more: str) -> str:
    run = holdfast("table", study, *of_table(name), *more)
    assert run.returncode == 0, run.stderr
    return run.stdout


def test_the_help_names_every_table() -> None:
    assert tuple(TABLES) == tuple(REGISTERED)
    text = "".join(holdfast_apart("table", "--help").stdout.split())  # names are wrapped too
    assert all(name in text and all(way in text for way in by) for name, by in WAYS.items())


@pytest.mark.slow
@pytest.mark.parametrize("name", REGISTERED)
def test_every_format_of_a_table_has_its_rows(name: str, study: str) -> None:
    turns = pl.read_parquet(study, columns=[
        column for column in pl.read_parquet_schema(study) if column not in ("prompt", "reply")
    ])  # fmt: skip
    rows = TABLES[name](turns)
    for format in FORMATS:
        run = holdfast("table", study, *of_table(name), "--format", format)
        assert (run.returncode, run.stderr) == (0, "")
        assert run.stdout == render(rows, format, name)


@pytest.mark.parametrize("source", ["paper", "paper-no-system", "stick-or-switch"])
@pytest.mark.parametrize("name", REGISTERED)
@pytest.mark.slow
def test_published_rows_stand_below_the_measured_ones(name: str, source: str, study: str) -> None:
    measures = rows_of(study, name)
    run = holdfast("table", study, *of_table(name), "--compare-with", source, "--format", "json")
    assert run.returncode == 0, run.stderr
    rows = json.loads(run.stdout)
    assert rows[: len(measures)] == measures
    assert all("[published]" in row["model"] for row in rows[len(measures) :])
    if len(rows) == len(measures):
        (line,) = run.stderr.strip().splitlines()
        assert f"'{name}'" in line
    for format in ("md", "latex", "csv"):
        assert output(study, name, "--format", format, "--compare-with", source)


def test_published_rows_match_the_requested_table(study: str) -> None:
    papers = [rows_of(study, "accuracy", "--compare-with", source)[len(rows_of(study)) :]
              for source in ("paper", "paper-no-system")]  # fmt: skip
    for rows, number in zip(papers, ("Table 2", "Table 4"), strict=True):
        assert all(number in row["run"] for row in rows)
        models = {f"{model} [published]" for model in medqa_followup().models}
        assert {row["model"] for row in rows} == models
    assert [row["accuracy"] for row in papers[0]] != [row["accuracy"] for row in papers[1]]
    header = output(study, "accuracy", "--format", "md", "--compare-with", "paper").splitlines()[0]
    assert all(name in header for name in models)
    step = ("table", study, "--by", "step", "--compare-with", "paper")
    # the paper reads strata against all first answers
    assert "--relative-to overall" in holdfast(*step).stderr
    assert holdfast(*step, "--relative-to", "overall").stderr == ""


STRATA = [table.name for table in TABLES.values() if "relative_to" in table.takes]


@pytest.mark.parametrize("name", STRATA)
def test_strata_have_baselines_of_their_own_or_of_all(name: str, study: str) -> None:
    stratum, overall = (
        rows_of(study, name, "--relative-to", reading) for reading in ("stratum", "overall")
    )
    assert rows_of(study, name) == stratum
    for rows, reading in ((stratum, "stratum"), (overall, "overall")):
        assert {row["relative_to"] for row in rows} == {reading}
    # the rows stand in the order of the changes, which differ; the replies are the same
    facts = ("model", "path", "family", name.partition(" by ")[2], "n", "correct", "accuracy")
    counts = [sorted(str([row[k] for k in facts]) for row in rows) for rows in (stratum, overall)]
    assert counts[0] == counts[1]
    baselines: dict[tuple[str, str], set[float]] = {}
    for row in overall:
        baselines.setdefault((row["model"], row["protocol"]), set()).add(row["baseline"])
    assert {len(values) for values in baselines.values()} <= {1}


def test_tables_agree_on_the_replies_they_count(study: str) -> None:
    accuracy = {
        (row["model"], row["protocol"], row["path"]): row
        for row in rows_of(study)
        if row["arm"] != "family-average"
    }
    for row in rows_of(study, "accuracy by length"):
        path = row["technique"] + (f"@{row['sentences']}" if row["sentences"] else "")
        twin = accuracy[row["model"], "followup", path]
        assert (row["n"], row["accuracy"]) == (twin["n"], twin["accuracy"])
    for row in rows_of(study, "flips"):
        protocol = "single-turn" if row["path"] in SINGLE else "followup"
        assert row["n"] == accuracy[row["model"], protocol, row["path"]]["n"] == 20
        first = accuracy[row["model"], protocol, ""]["correct"]
        gain = row["wrong_to_right"] - row["right_to_wrong"] - row["right_to_unparsed"]
        assert first + gain == accuracy[row["model"], protocol, row["path"]]["correct"]
    for table in ("accuracy by step", "accuracy by system"):
        correct: dict[tuple[str, str, str], int] = {}
        for row in rows_of(study, table):
            if row["arm"] != "family-average":
                key = (row["model"], row["protocol"], row["path"])
                correct[key] = correct.get(key, 0) + row["correct"]
        assert {key for key in correct if "@" not in key[2]}
        assert correct == {key: accuracy[key]["correct"] for key in correct}
    for row in rows_of(study, "single-turn"):
        if row["arm"] == "single-turn":
            path = ">".join(part for part in (row["mitigation"], row["technique"]) if part)
            twin = accuracy[row["model"], "single-turn", path]
            assert (row["n"], row["correct"]) == (twin["n"], twin["correct"])
    pairs: dict[tuple[str, ...], dict[str, Facts]] = {}
    for row in rows_of(study, "cues"):
        pairs.setdefault((row["model"], row["path"], row["outcome"]), {})[row["by"]] = row
        assert row["named"] + row["silent"] == row["n"]
    assert all(pair["lexical"]["n"] == pair["judge"]["n"] for pair in pairs.values())


def test_turns_tables_logs_and_log_dirs_give_the_same_table(study: str) -> None:
    log_dir = Path(study).parent
    rows = rows_of(study)
    assert rows_of(log_dir) == rows
    key = ("model", "protocol", "arm", "path", "family", "depth")

    def keyed(rows: list[Facts]) -> dict[tuple[Any, ...], Facts]:
        return {tuple(row[name] for name in key): row for row in rows}

    first, *more_logs = sorted(log_dir.glob("*.eval"))
    assert len(more_logs) == 3
    assert keyed(rows_of(first, "accuracy", *more_logs)) == keyed(rows)


# files and pictures


def test_a_reader_that_stops_early_gets_no_traceback(study: str) -> None:
    run = subprocess.run(
        f"{HOLDFAST} table {study} --table accuracy --by system --format csv | head -1",
        shell=True, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert run.stdout.startswith("model,")
    assert run.stderr == ""


@pytest.mark.slow
def test_a_png_goes_to_standard_output_but_to_no_terminal(
    study: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ("table", study, *LENGTHS, "png")
    run = subprocess.run([str(HOLDFAST), *command], capture_output=True, timeout=120, check=True)
    assert (run.stdout[:4], run.stderr) == (b"\x89PNG", b"")

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr("tests.studies.io.StringIO", Terminal)
    assert "-o FILE" in refusal(*command)


@pytest.mark.parametrize("format", [*FORMATS, *FIGURE_FORMATS])
def test_file_and_standard_output_hold_the_same(format: str, study: str, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("of before")
    command = ("table", study, *LENGTHS, format)
    run = holdfast(*command, "-o", file)
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")
    assert [path.name for path in tmp_path.iterdir() if "file" in path.name] == ["file"]
    if format in ("png", "pdf"):
        assert file.read_bytes()[:4] == (b"\x89PNG" if format == "png" else b"%PDF")
    else:
        assert file.read_text("utf-8") == holdfast(*command).stdout


def test_an_error_leaves_the_previous_file(study: str) -> None:
    file, link = Path("t.svg"), Path("link.csv")
    file.write_text("of before")
    assert refusal("table", study, "--table", "survival", "--format", "svg", "-o", file)
    assert file.read_text() == "of before"
    link.symlink_to("there.csv")
    assert "link.csv: is a link" in refusal("table", study, "--format", "csv", "-o", link)


@pytest.fixture(scope="module")
def offers(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The turns of a Stick-or-Switch study of a model of known size and one of unknown size."""
    file = tmp_path_factory.mktemp("offers") / "turns.parquet"
    frames.table(drawn(3, ("vllm/Qwen2.5-7B-Instruct", "own/clinic"))).write_parquet(file)
    return str(file)


@pytest.mark.slow
def test_user_sizes_join_the_bundled_ones(offers: str) -> None:
    Path("sizes.csv").write_text("model,family,parameters\nclinic,Clinic,3.5\n")
    sizes = ("--models", "sizes.csv")
    for more, clinic in (((), None), (sizes, 3.5)):
        parameters = {row["model"]: row["parameters"] for row in rows_of(offers, "scale", *more)}
        assert parameters == {"vllm/Qwen2.5-7B-Instruct": 7, "own/clinic": clinic}
    svg, full = (output(offers, "scale", "--format", "svg", *more) for more in ((), sizes))
    assert "own/clinic" in svg  # below the picture, as not drawn
    assert "Clinic" in full
    assert "own/clinic" not in full


@pytest.mark.slow
@pytest.mark.parametrize("name", ["tax", "flexibility", "scale"])
def test_published_figures_are_drawn_too(name: str, offers: str) -> None:
    svg = output(offers, name, "--format", "svg")
    beside = output(offers, name, "--format", "svg", "--compare-with", "stick-or-switch")
    assert "[published]" not in svg
    assert "[published]" in beside
    assert "Guo et al. 2026" in beside
