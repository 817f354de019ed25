"""``holdfast table``: every table of one study in every format, beside the paper's figures."""

import csv
import io
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.results import frames
from tests.results.offering import drawn
from tests.studies import HOLDFAST, holdfast, holdfast_apart, of_table

from holdfast.cli.table import WAYS
from holdfast.protocols.followup.published import medqa_followup
from holdfast.registry import TABLES as REGISTERED
from holdfast.render.drawing import FIGURE_FORMATS, FIGURES
from holdfast.render.tables import FORMATS
from holdfast.results.declaration import TABLES

Row = dict[str, Any]
MODELS = ("simulated/claude-sonnet-4", "simulated/sycophant")
NAMES = tuple(REGISTERED)
MEDQA_FOLLOWUP = NAMES[: NAMES.index("cues") + 1]
ALONE = ("variance by epoch", "defences", "defences by model")
"""Tables of what the study lacks."""

"""Tables of the two protocols of MedQA-Followup."""


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The turns of one study of two models, with something for every table."""
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


def shown(study: str, table: str, format: str, *more: str) -> str:
    run = holdfast("table", study, *of_table(table), "--format", format, *more)
    assert run.returncode == 0, run.stderr
    return run.stdout


def rows_of(study: str, table: str, *more: str | Path) -> list[Row]:
    rows: list[Row] = json.loads(shown(study, table, "json", *map(str, more)))
    return rows


def test_the_names_in_the_help_are_the_tables() -> None:
    assert tuple(TABLES) == NAMES
    told = "".join(holdfast_apart("table", "--help").stdout.split())  # names are wrapped too
    assert all(name in told and all(way in told for way in by) for name, by in WAYS.items())


# each question is asked once, of models by themselves
@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in MEDQA_FOLLOWUP if name not in ALONE])
def test_every_table_comes_in_every_format(name: str, study: str) -> None:
    rows = rows_of(study, name)
    assert rows
    assert {row["model"] for row in rows} >= set(MODELS)
    lines = list(csv.DictReader(io.StringIO(shown(study, name, "csv"))))
    assert [list(line) for line in lines] == [list(row) for row in rows]
    for line, row in zip(lines, rows, strict=True):
        for column, value in row.items():
            if isinstance(value, float):
                assert float(line[column]) == pytest.approx(value)
            elif value is not None:
                assert line[column] in (str(value), str(value).lower())
    markdown = shown(study, name, "md")
    latex = shown(study, name, "latex")
    for text in (markdown, latex):
        assert "SIMULATED" in text
        assert "simulated/claude-sonnet-4" in text
        assert "None" not in text
        assert "nan" not in text.split()
    assert latex.count(r"\begin{tabular}") == latex.count(r"\end{tabular}") >= 1
    assert latex.count(r"\toprule") == latex.count(r"\bottomrule") >= 1
    for table in re.findall(r"^(\|.*\|\n)(\|[ :|-]+\|\n)((?:\|.*\|\n)+)", markdown, re.M):
        widths = {line.replace(r"\|", "").count("|") for part in table for line in part.split("\n")}
        assert len(widths - {0}) == 1
    assert re.search(r"^\|[ :|-]+\|$", markdown, re.M)


@pytest.mark.parametrize("format", FORMATS)
def test_a_table_is_all_there_is_on_standard_output(format: str, study: str) -> None:
    run = holdfast("table", study, "--format", format, "--compare-with", "paper")
    assert run.returncode == 0
    assert run.stderr == ""
    assert run.stdout.endswith("\n")


def test_best_and_worst_of_a_family_are_marked_as_in_the_paper(tmp_path: Path) -> None:
    """Where a test tells them apart from all others."""
    each = (("", 30), ("push", 30), ("shove", 2))
    turns = [
        frames.turn(f"q{n}", "AB"[n >= right], path) for path, right in each for n in range(30)
    ]
    frames.table(turns).write_parquet(tmp_path / "turns.parquet")
    latex = shown(str(tmp_path / "turns.parquet"), "accuracy", "latex")
    best, worst = r"\textcolor{green!50!black}{\textbf{", r"\textcolor{red}{\textit{"
    assert best in latex
    assert worst in latex
    assert r"\usepackage{xcolor}" in latex
    assert r"\usepackage{booktabs}" in latex


@pytest.mark.parametrize("format", FORMATS)
def test_epochs_come_in_every_format(format: str, tmp_path: Path) -> None:
    turns = [
        frames.turn(f"q{n}", "AB"[(n + epoch * (n % 3 == 0)) % 2], epoch=epoch)
        for n in range(12)
        for epoch in (1, 2)
    ]
    frames.table(turns).write_parquet(tmp_path / "turns.parquet")
    text = shown(str(tmp_path / "turns.parquet"), "variance by epoch", format)
    assert "baseline" in text
    # the standard error of one epoch is as wide as chances and replies together make it
    (row,) = rows_of(str(tmp_path / "turns.parquet"), "variance by epoch")
    assert row["one_epoch"] ** 2 == pytest.approx((row["between"] + row["within"]) / 12)
    assert row["endless_epochs"] < row["one_epoch"]


# beside the paper


def test_the_papers_models_stand_beside_ours(study: str) -> None:
    alone, beside = (
        rows_of(study, "accuracy"),
        rows_of(study, "accuracy", "--compare-with", "paper"),
    )
    assert beside[: len(alone)] == alone
    printed = beside[len(alone) :]
    assert {row["model"] for row in printed} == {
        f"{model} [published]" for model in medqa_followup().models
    }
    assert all("Table 2" in row["run"] for row in printed)
    markdown = shown(study, "accuracy", "md", "--compare-with", "paper")
    header = markdown.splitlines()[0]
    assert all(f"{model} [published]" in header for model in medqa_followup().models)
    assert "As printed in" in markdown


def test_the_paper_without_system_prompt_is_another_table(study: str) -> None:
    expert = rows_of(study, "accuracy", "--compare-with", "paper")
    plain = rows_of(study, "accuracy", "--compare-with", "paper-no-system")
    assert len(expert) == len(plain)
    assert {row["run"] for row in plain if "[published]" in row["model"]} == {
        "Manczak et al. 2025, Table 4",
        "Manczak et al. 2025, Table 4, biases in BiasMedQA's wording",
    }
    figures = [[row["accuracy"] for row in rows] for rows in (expert, plain)]
    assert figures[0] != figures[1]


@pytest.mark.parametrize("source", ["paper", "paper-no-system"])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.rest_slow
def test_every_table_stands_beside_the_paper_or_says_that_nothing_is_printed(
    name: str, source: str, study: str
) -> None:
    alone = rows_of(study, name)
    run = holdfast("table", study, *of_table(name), "--compare-with", source, "--format", "json")
    assert run.returncode == 0, run.stderr
    rows = json.loads(run.stdout)
    assert rows[: len(alone)] == alone
    if len(rows) == len(alone):
        (line,) = run.stderr.strip().splitlines()
        assert f"no figures for the table '{name}'" in line
    else:
        assert all("[published]" in row["model"] for row in rows[len(alone) :])
    for format in ("md", "latex", "csv"):
        assert shown(study, name, format, "--compare-with", source)


def test_the_papers_readings_of_steps_are_told_apart_from_ours(study: str) -> None:
    run = holdfast("table", study, "--table", "accuracy", "--by", "step", "--compare-with", "paper")
    assert "--relative-to overall" in run.stderr
    same = holdfast(
        "table", study, "--table", "accuracy", "--by", "step", "--compare-with", "paper",
        "--relative-to", "overall",
    )  # fmt: skip
    assert same.stderr == ""
    assert "GPT-4.1 [published]" in same.stdout


@pytest.mark.parametrize("name", [t.name for t in TABLES.values() if "relative_to" in t.takes])
def test_strata_are_read_against_their_own_or_all_first_answers(name: str, study: str) -> None:
    own, overall = (
        rows_of(study, name, "--relative-to", reading) for reading in ("stratum", "overall")
    )
    assert rows_of(study, name) == own
    assert {row["relative_to"] for row in own} == {"stratum"}
    assert {row["relative_to"] for row in overall} == {"overall"}
    # the rows stand in the order of the changes, which differ; the replies are the same
    kept = ("model", "path", "family", name_of(name), "n", "correct", "accuracy")
    counts = [sorted(str([row[k] for k in kept]) for row in rows) for rows in (own, overall)]
    assert counts[0] == counts[1]
    baselines = {(r["model"], r["protocol"]): set() for r in overall}  # type: ignore[var-annotated]
    for row in overall:
        baselines[row["model"], row["protocol"]].add(row["baseline"])
    assert all(len(found) == 1 for found in baselines.values())


def name_of(strata: str) -> str:
    """The column that a table of strata is split by."""
    return strata.partition(" by ")[2]


# what holds of the figures


def test_tables_tell_of_the_same_replies(study: str) -> None:
    accuracy = {
        (row["model"], row["protocol"], row["path"]): row
        for row in rows_of(study, "accuracy")
        if row["arm"] != "family-average"
    }
    for row in rows_of(study, "accuracy by length"):
        path = row["technique"] + (f"@{row['sentences']}" if row["sentences"] else "")
        same = accuracy[row["model"], "followup", path]
        assert (row["n"], row["accuracy"]) == (same["n"], same["accuracy"])
    for row in rows_of(study, "flips"):
        protocol = "single-turn" if row["path"] in SINGLE else "followup"
        assert row["n"] == accuracy[row["model"], protocol, row["path"]]["n"] == 20
        first = accuracy[row["model"], protocol, ""]["correct"]
        gained = row["wrong_to_right"] - row["right_to_wrong"] - row["right_to_unparsed"]
        assert first + gained == accuracy[row["model"], protocol, row["path"]]["correct"]
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
            same = accuracy[row["model"], "single-turn", path]
            assert (row["n"], row["correct"]) == (same["n"], same["correct"])


SINGLE = ("recency", "cultural", "education>recency", "education>cultural", "wrong-option")


def test_a_judge_and_the_rule_stand_side_by_side(study: str) -> None:
    rows = rows_of(study, "cues")
    assert {row["by"] for row in rows} == {"lexical", "judge"}
    pairs: dict[tuple[str, ...], dict[str, Row]] = {}
    for row in rows:
        pairs.setdefault((row["model"], row["path"], row["outcome"]), {})[row["by"]] = row
    for pair in pairs.values():
        assert pair["lexical"]["n"] == pair["judge"]["n"]
        for row in pair.values():
            assert row["named"] + row["silent"] == row["n"]


def test_turns_tables_logs_and_log_dirs_give_the_same_table(study: str) -> None:
    log_dir = Path(study).parent
    logs = sorted(log_dir.glob("*.eval"))
    assert len(logs) == 4
    wanted = rows_of(study, "accuracy")
    assert rows_of(str(log_dir), "accuracy") == wanted
    several = holdfast("table", *logs, "--format", "json")
    key = ("model", "protocol", "arm", "path", "family", "depth")

    def keyed(rows: list[Row]) -> dict[tuple[Any, ...], Row]:
        return {tuple(row[name] for name in key): row for row in rows}

    assert keyed(json.loads(several.stdout)) == keyed(wanted)


# what cannot be


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--table", "acuracy"), "Did you mean 'accuracy'"),
        (("--table", "single"), "Did you mean 'single-turn'"),
        (("--format", "markdown"), "--format: unknown format 'markdown'"),
        (("--compare-with", "papr"), "Did you mean 'paper'"),
        (("--compare-with", "kggd"), "unknown published source 'kggd'"),
        (("--table", "accuracy", "--by", "step", "--relative-to", "all"), "unknown baseline 'all'"),
        (("--table", "accuracy", "--relative-to", "overall"), "has no strata"),
    ],
)
def test_a_bad_argument_is_one_line_with_a_remedy(
    arguments: tuple[str, ...], expected: str, study: str
) -> None:
    run = holdfast("table", study, *arguments)
    assert (run.returncode, run.stdout) == (2, "")
    (line,) = run.stderr.strip().splitlines()
    assert line.startswith("holdfast: ")
    assert expected in line
    assert line.endswith((".", "?"))


def test_a_reader_that_stops_early_gets_no_traceback(study: str) -> None:
    done = subprocess.run(
        f"{HOLDFAST} table {study} --table accuracy --by system --format csv | head -1",
        shell=True, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.stdout.startswith("model,")
    assert done.stderr == ""


def test_a_study_without_what_a_table_needs_is_an_empty_table(tmp_path: Path) -> None:
    run = holdfast(
        "run", "followup", "--model", "simulated/steadfast", "--limit", "2",
        "-T", "techniques=none", "--log-dir", tmp_path / "r",
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    for name in ("flips", "accuracy by length", "chains", "single-turn", "cues"):
        assert rows_of(str(tmp_path / "r"), name) == []
        for format in ("md", "latex", "csv"):
            assert shown(str(tmp_path / "r"), name, format).count("simulated/") == 0


# pictures, files, sizes


@pytest.fixture(scope="module")
def offers(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The turns of a Stick-or-Switch study of a model of known size and one of unknown size."""
    file = tmp_path_factory.mktemp("offers") / "turns.parquet"
    frames.table(drawn(3, ("vllm/Qwen2.5-7B-Instruct", "own/clinic"))).write_parquet(file)
    return str(file)


# the bank has no labels of specialty and subject, few questions of a system, and no defence
@pytest.mark.parametrize(
    "name",
    sorted(
        set(FIGURES)
        & set(MEDQA_FOLLOWUP)
        - {"accuracy by specialty", "accuracy by subject", "accuracy by system", "defences"}
    ),
)
@pytest.mark.rest_slow
def test_every_table_with_a_figure_is_drawn(name: str, study: str) -> None:
    svg = shown(study, name, "svg")
    assert svg.startswith("<svg")
    assert "[SIMULATED]" in svg
    assert json.loads(shown(study, name, "vega"))["$schema"]


def test_strata_of_few_questions_are_in_the_table_and_not_drawn(study: str) -> None:
    done = holdfast("table", study, "--table", "accuracy", "--by", "system", "--format", "svg")
    assert done.returncode == 2
    assert "no family has an average by system over 10 questions or more" in done.stderr
    assert max(row["questions"] for row in rows_of(study, "accuracy by system")) < 10


def test_a_png_comes_on_standard_output_where_that_is_no_terminal(study: str) -> None:
    done = subprocess.run(
        [str(HOLDFAST), "table", study, "--table", "accuracy", "--by", "length", "--format", "png"],
        capture_output=True, timeout=120, check=True,
    )  # fmt: skip
    assert done.stdout.startswith(b"\x89PNG")
    assert done.stderr == b""


def test_a_png_is_not_put_on_a_terminal(study: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr("tests.studies.io.StringIO", Terminal)
    run = holdfast("table", study, "--table", "accuracy", "--by", "length", "--format", "png")
    assert run.returncode == 2
    assert run.stderr == (
        "holdfast: --format: a PNG cannot be shown on a terminal. Give -o FILE.\n"
    )


@pytest.mark.parametrize("format", [*FORMATS, *FIGURE_FORMATS])
def test_a_file_holds_what_standard_output_would(format: str, study: str, tmp_path: Path) -> None:
    file = tmp_path / "shown"
    file.write_text("of before")
    arguments = ("table", study, "--table", "accuracy", "--by", "length", "--format", format)
    run = holdfast(*arguments, "-o", file)
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")
    assert list(tmp_path.glob("*shown*")) == [file]
    assert list(tmp_path.glob(".*")) == []
    if format in ("png", "pdf"):
        assert file.read_bytes()[:4] == (b"\x89PNG" if format == "png" else b"%PDF")
    else:
        assert file.read_text("utf-8") == holdfast(*arguments).stdout


def test_a_file_is_not_written_through_a_link(study: str, tmp_path: Path) -> None:
    link, file = tmp_path / "link.csv", tmp_path / "there.csv"
    link.symlink_to(file)
    run = holdfast("table", study, "--format", "csv", "--output", link)
    assert (run.returncode, run.stdout) == (2, "")
    assert f"{link}: is a link" in run.stderr
    assert link.is_symlink()
    assert not file.exists()


@pytest.mark.parametrize("file", ["nowhere/shown.md", ".", "n\0ul"])
def test_a_file_that_cannot_be_written_is_one_line(file: str, study: str) -> None:
    run = holdfast("table", study, "-o", file)
    assert (run.returncode, run.stdout) == (2, "")
    (line,) = run.stderr.strip().splitlines()
    assert "cannot be written" in line
    assert line.endswith("Give another -o FILE.")


def test_an_error_leaves_the_file_of_before(study: str, tmp_path: Path) -> None:
    file = tmp_path / "shown.svg"
    file.write_text("of before")
    run = holdfast("table", study, "--table", "survival", "--format", "svg", "-o", file)
    assert run.returncode == 2
    assert "nothing to draw" in run.stderr
    assert file.read_text() == "of before"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (
            ("--table", "flips", "--format", "svg"),
            "table 'flips' has no figure. Figures: worst, retention",
        ),
        (("--format", "pgn"), "Did you mean 'png'"),
        (
            ("--table", "accuracy", "--by", "length", "--format", "svg", "--compare-with", "paper"),
            "--compare-with: MedQA-Followup (Manczak et al., 2025)",
        ),
        (("--table", "tax", "--models", "sizes.csv"), "--models: table 'tax' has no sizes"),
        (("--table", "scale", "--models", "sizes.csv"), "sizes.csv: cannot be read"),
    ],
)
def test_a_picture_or_size_that_cannot_be_is_one_line(
    arguments: tuple[str, ...], expected: str, study: str
) -> None:
    run = holdfast("table", study, *arguments)
    assert (run.returncode, run.stdout) == (2, "")
    (line,) = run.stderr.strip().splitlines()
    assert expected in line


def test_sizes_of_the_users_own_join_the_bundled_ones(offers: str, tmp_path: Path) -> None:
    sizes = tmp_path / "sizes.csv"
    sizes.write_text("model,family,parameters\nclinic,Clinic,3.5\n")
    known = {row["model"]: row["parameters"] for row in rows_of(offers, "scale")}
    assert known == {"vllm/Qwen2.5-7B-Instruct": 7, "own/clinic": None}
    own = {row["model"]: row["parameters"] for row in rows_of(offers, "scale", "--models", sizes)}
    assert own == {"vllm/Qwen2.5-7B-Instruct": 7, "own/clinic": 3.5}
    drawn = shown(offers, "scale", "svg", "--models", str(sizes))
    assert "Clinic" in drawn
    assert "Size unknown" not in drawn
    assert "Size unknown, not drawn: own/clinic." in shown(offers, "scale", "svg")


@pytest.mark.rest_slow
@pytest.mark.parametrize("name", ["tax", "flexibility", "scale"])
def test_published_figures_of_stick_or_switch_stand_beside(name: str, offers: str) -> None:
    alone, beside = (
        shown(offers, name, "svg", *more) for more in ((), ("--compare-with", "stick-or-switch"))
    )
    assert "[published]" not in alone
    assert "[published]" in beside
    assert "Guo et al. 2026" in beside
    rows = rows_of(offers, name, "--compare-with", "stick-or-switch")
    assert rows[: len(rows_of(offers, name))] == rows_of(offers, name)


def test_helping_loads_nothing_that_draws() -> None:
    code = (
        "import sys; import holdfast.cli.app; assert not {'altair', 'vl_convert'} & {*sys.modules}"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
