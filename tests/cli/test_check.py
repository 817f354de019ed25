"""``holdfast check``: a file is recognised for what it is, and everything wrong is told at once."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.studies import Done, holdfast, question_rows, write_jsonl

EXAMPLES = Path(__file__).parents[2] / "examples"

CONTEXT = {"question": "q0", "misleading_context": "One is here."}
NEW_OPTION = {"question": "q0", "distractors": {"B": "Another finding."}}
TABLES: dict[str, tuple[str, list[dict[str, Any]]]] = {
    "questions": ("questions", question_rows(2)),
    "questions with a context": ("questions", [{**question_rows(1)[0], **CONTEXT}]),
    "questions without a key": ("questions", [{"id": "q0", "stem": "Why?", "options": ["x", "y"]}]),
    "contexts": ("contexts", [CONTEXT]),
    "contexts with the options": ("contexts", [{**CONTEXT, "options": {"A": "x", "B": "y"}}]),
    "contexts of a misspelt kind": ("contexts", [{"question": "q0", "misleading_contxt": "x"}]),
    "wrong options": ("distractors", [NEW_OPTION]),
    "labels": ("labels", [{"question": "q0", "system": "Renal"}]),
}
TOMLS = {
    "a study": ("study", 'protocols = "followup"\nmodel = "simulated/sycophant"\n'),
    "techniques": ("techniques", '[[technique]]\nid = "a"\n'),
    "rules": ("rules", "level = 0.9\n[[rule]]\nmin_accuracy = 0.5\n"),
    "a defence": ("defence", 'id = "a"\nkind = "prompt"\nturn = "{message}"\n'),
    "a mapping": ("mapping", '[turn]\nmodel = "model"\n'),
}


def check(path: str | Path, *more: str | Path) -> tuple[Done, dict[str, Any]]:
    """What the command says of a file in words, and as JSON."""
    run = holdfast("check", path, *more)
    as_json = holdfast("check", path, "--json", *more)
    assert run.returncode == as_json.returncode
    return run, json.loads(as_json.stdout or "{}")


@pytest.mark.parametrize("case", TABLES)
def test_a_table_is_recognised_by_its_columns(case: str, tmp_path: Path) -> None:
    kind, rows = TABLES[case]
    path = write_jsonl(tmp_path / "f.jsonl", rows)
    alone, by_kind = (holdfast("check", path, *more) for more in ((), ("--kind", kind)))
    assert (alone.stdout, alone.stderr) == (by_kind.stdout, by_kind.stderr)
    other_kinds = {*(kind for kind, _ in TABLES.values())} - {kind}
    for rival_kind in other_kinds:
        run = holdfast("check", path, "--kind", rival_kind)
        assert (run.stdout, run.stderr) != (alone.stdout, alone.stderr)


@pytest.mark.parametrize("case", TOMLS)
def test_a_toml_file_is_recognised_by_its_keys(case: str, tmp_path: Path) -> None:
    kind, text = TOMLS[case]
    path = tmp_path / "f.toml"
    path.write_text(text)
    alone, by_kind = (holdfast("check", path, *more) for more in ((), ("--kind", kind)))
    assert (alone.stdout, alone.stderr) == (by_kind.stdout, by_kind.stderr)
    assert str(path) in alone.stdout + alone.stderr


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("own_questions.csv", "questions"),
        ("own_contexts.jsonl", "contexts"),
        ("own_techniques.toml", "techniques"),
        ("gate.toml", "rules"),
        ("mappings/duet.toml", "mapping"),
    ],
)
def test_the_examples_are_sound(name: str, kind: str) -> None:
    run, report = check(EXAMPLES / name)
    assert run.returncode == 0, run.stderr
    assert (report["kind"], report["problems"]) == (kind, [])


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("f.csv", "colour,size\nred,1\n", ["has the columns colour, size", "--kind: questions, "]),
        ("f.csv", "head,relation,tail\na,b,c\n", ["looks like a knowledge graph", "--graph"]),
        ("f.toml", "[tool]\nx = 1\n", ["has the keys tool", "--kind: questions, contexts, "]),
        ("f.toml", "", ["has no keys"]),
        ("f.txt", "x", ["unknown kind of file '.txt'"]),
    ],
)
def test_a_file_of_no_kind_is_one_line_that_names_the_kinds(
    name: str, text: str, words: list[str], tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_text(text)
    run = holdfast("check", path)
    assert (run.returncode, run.stdout) == (2, "")
    (line,) = run.stderr.splitlines()
    assert line.startswith(f"holdfast: {path}: ")
    assert [part for part in words if part not in line] == []


def test_an_option_that_does_not_go_with_the_file_is_refused(tmp_path: Path) -> None:
    questions = write_jsonl(tmp_path / "q.jsonl", question_rows(1))
    labels = write_jsonl(tmp_path / "l.jsonl", [{"question": "q0", "step": "step1"}])
    for arguments, words in (
        ((questions, "--sentences", "3"), "--sentences: cannot be combined with questions"),
        (
            (labels, "--kind", "labels", "--fields", "gold=x"),
            "--fields: cannot be combined with labels",
        ),
        (
            (EXAMPLES / "gate.toml", "--questions", questions),
            "--questions: cannot be combined with rules",
        ),
        ((questions, "--kind", "question"), "Did you mean 'questions'?"),
    ):
        run = holdfast("check", *arguments)
        assert (run.returncode, run.stdout) == (2, "")
        assert words in run.stderr


def test_labels_are_counted_and_every_bad_row_is_named(tmp_path: Path) -> None:
    questions = write_jsonl(tmp_path / "q.jsonl", question_rows(2))
    rows = [
        {"question": "q0", "system": "Renal", "step": "step1"},
        {"system": "Renal"},
        {"question": "q1", "sistem": "Renal"},
        {"question": "z9", "system": "Renal"},
    ]
    path = write_jsonl(tmp_path / "l.jsonl", rows)
    run, report = check(path, "--questions", questions)
    assert run.returncode == 2
    assert [(p["row"], p["field"]) for p in report["problems"]] == [(2, "question"), (3, "system")]
    assert (report["questions"], report["system"], report["step"]) == (2, 1, 1)
    second_run = check(write_jsonl(tmp_path / "o.jsonl", rows[3:]), "--questions", questions)[0]
    assert "has no label for any of these questions" in second_run.stderr


def test_wrong_options_given_twice_are_named_with_both_rows(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "d.jsonl", [NEW_OPTION, NEW_OPTION])
    run, _ = check(path)
    assert run.returncode == 2
    assert "row 2, field 'question': 'q0' was given before, in row 1" in run.stderr


def test_the_wrong_options_of_the_bank_can_be_checked() -> None:
    run, report = check("bank", "--kind", "distractors", "--questions", "bank")
    assert run.returncode == 0, run.stderr
    assert (report["distractors"], report["unused"]) == (60, 0)
