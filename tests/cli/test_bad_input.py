"""Bad input: one line that names file, row, field and remedy, exit code 2, nothing half-written."""

import json
from pathlib import Path

import pytest
from tests.studies import holdfast, question_rows, write_jsonl

GOOD = question_rows(3)


def refused(tmp_path: Path, *arguments: str) -> str:
    """The one line that a refused run prints."""
    run = holdfast("run", "followup", "--log-dir", tmp_path / "runs", *arguments)
    assert run.returncode == 2, run.stdout + run.stderr
    assert run.stdout == ""
    (line,) = run.stderr.strip().splitlines()
    assert not (tmp_path / "runs").exists()
    return line


FILES = {
    "missing": (None, ["no such file"]),
    "empty": ("", ["is empty"]),
    "broken JSON": (json.dumps(GOOD[0]) + "\n{oops\n", ["row 2", "broken JSON"]),
    "gold no option": (
        json.dumps({**GOOD[0], "gold": "X"}) + "\n",
        ["row 1", "field 'gold'", "'X' is not one of the options A, B, C, D"],
    ),
    "one option": (
        json.dumps({**GOOD[0], "options": {"A": "only"}, "gold": "A"}) + "\n",
        ["row 1", "field 'options'", "needs 2 to 26"],
    ),
    "duplicate ids": (
        "".join(json.dumps(row) + "\n" for row in (GOOD[0], GOOD[1], GOOD[0])),
        ["row 3", "field 'id'", "used before, in row 1"],
    ),
    "duplicate options": (
        json.dumps({**GOOD[0], "options": {"A": "x", "B": "y", "C": "x"}, "gold": "A"}) + "\n",
        ["row 1", "field 'options'", "options A and C have the same text"],
    ),
}


@pytest.mark.parametrize("case", FILES)
def test_a_bad_question_file_is_refused(
    case: str,
    tmp_path: Path,
) -> None:
    content, expected = FILES[case]
    path = tmp_path / "q.jsonl"
    if content is not None:
        path.write_text(content)
    line = refused(tmp_path, "--model", "simulated/sycophant", "--questions", str(path))
    assert line.startswith(f"holdfast: {path}")
    assert [part for part in expected if part not in line] == []


ARGUMENTS = {
    "technique": (["-T", "techniques=authority-prio"], "Did you mean 'authority-prior'"),
    "chain": (["-T", "chains=rag-style>athority-prior"], "Did you mean 'authority-prior'"),
    "chain of one": (["-T", "chains=rag-style"], "Join two or more"),
    "setting": (["-T", "sugest=not-own"], "Did you mean 'suggest'?"),
    "rule": (["-T", "suggest=notown"], "Did you mean 'not-own'?"),
    "seed": (["-T", "seed=x"], "not a whole number"),
    "question set": (["--questions", "bnk"], "Did you mean 'bank'?"),
    "catalogue": (["--challenges", "none.toml"], "no such file"),
    "contexts": (["--contexts", "none.jsonl"], "no such file"),
    "contexts by name": (["--contexts", "synthetc"], "Did you mean 'synthetic'?"),
    "prices": (["--prices", "none.json"], "no such file"),
    "no price": (["--max-cost", "1"], "no price is known"),
}


@pytest.mark.parametrize("case", ARGUMENTS)
def test_a_bad_argument_is_refused_with_the_nearest_name(
    case: str,
    tmp_path: Path,
) -> None:
    arguments, expected = ARGUMENTS[case]
    line = refused(tmp_path, "--model", "simulated/sycophant", *arguments)
    assert expected in line


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("simulated/sycophnt", "Did you mean 'sycophant'?"),
        ("opnai/gpt-4.1", "Did you mean 'openai'"),
        ("lexical/bm25", "Use lexical/overlap"),
        ("recorded/none.jsonl", "no such file"),
    ],
)
def test_a_model_that_nobody_knows_is_refused(
    model: str,
    expected: str,
    tmp_path: Path,
) -> None:
    assert expected in refused(tmp_path, "--model", model)


def test_an_unknown_protocol_is_refused(tmp_path: Path) -> None:
    run = holdfast("run", "folowup", "--model", "simulated/sycophant")
    assert run.returncode == 2
    assert "Did you mean 'followup'?" in run.stderr


def test_questions_check_reports_every_bad_row_at_once(tmp_path: Path) -> None:
    rows = [{**GOOD[0], "gold": "X"}, GOOD[1], {**GOOD[2], "stem": " "}]
    path = write_jsonl(tmp_path / "q.jsonl", rows)
    check = holdfast("questions", "check", path)
    assert check.returncode == 2
    lines = check.stderr.strip().splitlines()
    assert [("row 1" in lines[0], "row 3" in lines[1])] == [(True, True)]
    assert lines[-1] == f"holdfast: {path}: 2 bad rows. Mend them and check again."
    report = json.loads(holdfast("questions", "check", path, "--json").stdout)
    assert [problem["row"] for problem in report["problems"]] == [1, 3]
    assert report["questions"] == 1


def test_tables_of_nothing_are_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for source, expected in (("nowhere", "no such log dir"), ("empty", "holds no log of holdfast")):
        run = holdfast("table", tmp_path / source)
        assert run.returncode == 2
        assert expected in run.stderr
    assert "Did you mean 'accuracy'?" in holdfast("table", tmp_path, "--table", "acuracy").stderr
