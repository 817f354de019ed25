"""What stands in examples/ runs, and so do the commands that the docs show in full."""

import json
import os
import re
import resource
import shlex
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import nbclient
import nbformat
import polars as pl
import pytest

from holdfast.challenges.catalogue import bundled_techniques, load_catalogue
from holdfast.challenges.contexts import load_contexts
from holdfast.questions.loading import load_questions
from tests.studies import HOLDFAST, holdfast

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "examples"
FULL_STUDY = ROOT / "docs" / "guides" / "papers.md"
TWO_MINUTES = 120.0


def test_the_example_files_make_a_study(tmp_path: Path) -> None:
    questions = load_questions(str(EXAMPLES / "own_questions.csv"))
    contexts = load_contexts(str(EXAMPLES / "own_contexts.jsonl"), questions, seed=42)
    user_techniques = set(load_catalogue(str(EXAMPLES / "own_techniques.toml"))) - set(
        bundled_techniques()
    )
    assert len(questions.questions) == 3
    assert contexts.by_question.keys() <= {question.id for question in questions.questions}
    assert user_techniques
    run = holdfast(
        "run", "followup", "--model", "simulated/sycophant",
        "--questions", EXAMPLES / "own_questions.csv",
        "-T", f"contexts={EXAMPLES / 'own_contexts.jsonl'}",
        "-T", f"challenges={EXAMPLES / 'own_techniques.toml'}",
        "--prices", EXAMPLES / "prices.json",
        "--log-dir", tmp_path / "r",
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    assert all(name in run.stdout for name in user_techniques)


def test_the_example_assistant_answers_alike_in_every_process() -> None:
    # the order of a set of words differs between processes, and so did the sum of their weights
    asked = [
        "\n".join([question.stem, *(f"{key}. {text}" for key, text in question.options.items())])
        for question in load_questions("bank").questions
    ]
    script = (
        "import app, json, sys\n"
        "for asked in json.load(sys.stdin):\n"
        "    print(*[app.reply([asked], passage) for passage in app.PASSAGES[4:6]])\n"
    )
    replies = {
        subprocess.run(
            [sys.executable, "-c", script],
            input=json.dumps(asked),
            env={**os.environ, "PYTHONHASHSEED": seed},
            cwd=EXAMPLES / "assistant",
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in "02"
    }
    assert len(replies) == 1
    assert "fits best" in replies.pop()


def test_the_example_challenges_load_as_jama_ones_do() -> None:
    path = EXAMPLES / "jama_challenges.jsonl"
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    columns = [
        "link", "question", "opa", "opb", "opc", "opd",
        "diagnosis", "answer_idx", "answer", "explanation", "field",
    ]  # fmt: skip
    assert [list(row) for row in rows] == [columns] * 6
    questions = load_questions(str(path)).questions
    assert [question.options[question.gold] for question in questions] == [
        row["answer"] for row in rows
    ]
    assert {question.gold for question in questions} == set("ABCD")
    assert Counter(question.specialty for question in questions) == {
        "Dermatology": 2, "Ophthalmology": 2, "Psychiatry": 2,
    }  # fmt: skip


def test_the_example_challenges_are_found_sound() -> None:
    path = EXAMPLES / "jama_challenges.jsonl"
    check = holdfast("check", path)
    assert check.returncode == 0, check.stderr
    assert check.stdout.endswith(f"{path}: 6 questions with 4 options, every row is valid\n")


@pytest.mark.slow
def test_the_reading_example_prints_retention() -> None:
    result = subprocess.run(
        [sys.executable, str(EXAMPLES / "read_turns.py")],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert "rethink" in result.stdout
    assert "context" in result.stdout


def test_the_example_graph_gives_candidates_for_the_bank(tmp_path: Path) -> None:
    result = holdfast(
        "generate", "distractors", "--model", "simulated/generator",
        "--graph", EXAMPLES / "graph.csv", "-o", tmp_path / "d.jsonl",
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    rows = pl.read_ndjson(tmp_path / "d.jsonl", infer_schema_length=None)
    assert rows.filter(pl.col("candidates").list.len() > 0).height > 0


def commands(page: str) -> list[str]:
    """The commands of the first listing, continued lines joined."""
    listing = re.search(r"^```console\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    assert listing is not None
    lines = listing[1].replace("\\\n", " ").splitlines()
    return [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]


@pytest.mark.slow
def test_the_study_of_the_docs_runs_in_two_minutes(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    if not FULL_STUDY.is_file():
        pytest.skip("docs/guides/papers.md is not here")
    page = FULL_STUDY.read_text("utf-8")
    tables = re.findall(r"\| `(holdfast table [^`]+)` \|", page)
    sequence = [*commands(page), *tables]
    assert len(tables) == 7
    assert all(shlex.split(command)[0] == "holdfast" for command in sequence)
    for step in ("generate contexts", "generate distractors", "generate labels", "single-turn"):
        assert step in " ".join(sequence)
    script = "set -e\n" + "\n".join(sequence)
    path = f"{HOLDFAST.parent}{os.pathsep}{environment['PATH']}"
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    result = subprocess.run(
        ["sh", "-c", script], env={**environment, "PATH": path}, cwd=tmp_path,
        capture_output=True, text=True, timeout=900, check=False,
    )  # fmt: skip
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert result.returncode == 0, result.stderr
    # its own time, because others may be at work on the machine
    cpu_seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    assert cpu_seconds < TWO_MINUTES
    turns = pl.read_parquet(tmp_path / "runs" / "turns.parquet")
    arms = dict(turns.group_by("protocol", "arm").len().select(
        pl.concat_str("protocol", "arm", separator=" "), pl.col("len") // 60
    ).rows())  # fmt: skip
    assert arms == {
        "followup baseline": 1, "followup control": 4, "followup followup": 14,
        "followup compound": 14, "single-turn control": 1,
        "followup length": 12, "single-turn baseline": 1, "single-turn single-turn": 29,
    }  # fmt: skip
    assert turns["system"].null_count() == 0
    assert (turns["status"] == "error").sum() == 0
    assert turns.filter(pl.col("cue").is_not_null())["cue_judged"].null_count() == 0


@pytest.mark.slow
def test_the_notebook_runs_on_the_demo(tmp_path: Path) -> None:
    run = holdfast(
        "run", "followup", "--model", "simulated/claude-sonnet-4", "--model",
        "simulated/steadfast", "--limit", "12", "--log-dir", tmp_path / "runs" / "demo",
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    notebook: Any = nbformat.read(  # type: ignore[no-untyped-call]
        EXAMPLES / "robustness.ipynb", as_version=4
    )
    assert not any(cell.get("outputs") for cell in notebook.cells)
    nbclient.NotebookClient(
        notebook, timeout=120, resources={"metadata": {"path": str(tmp_path)}}
    ).execute()
    outputs = [cell["outputs"][-1]["data"] for cell in notebook.cells if cell.get("outputs")]
    (figure,) = [data["image/svg+xml"] for data in outputs if "image/svg+xml" in data]
    assert "Right first answers that were kept" in figure
    assert "context" in outputs[-1]["text/markdown"]


@pytest.mark.slow
def test_the_notebook_of_a_study_runs_from_nothing(tmp_path: Path) -> None:
    pytest.importorskip("ipywidgets", reason="the framework runs in no notebook without it")
    notebook: Any = nbformat.read(EXAMPLES / "study.ipynb", as_version=4)  # type: ignore[no-untyped-call]
    assert not any(cell.get("outputs") for cell in notebook.cells)
    nbclient.NotebookClient(
        notebook, timeout=120, resources={"metadata": {"path": str(tmp_path)}}
    ).execute()
    imports = re.findall(r"(?:from|import) holdfast\S*", "".join(c.source for c in notebook.cells))
    assert imports == ["import holdfast"]
    outputs = [
        out.get("data", {}) for cell in notebook.cells for out in cell.get("outputs", [])[-1:]
    ]
    assert any("vega-lite" in data.get("text/html", "") for data in outputs)
    assert "keeps more of its right answers" in outputs[-1]["text/plain"]
    assert (tmp_path / "report.html").stat().st_size > 100_000
