"""Bad input: one line that names file, row, field and remedy, exit code 2, nothing half-written."""

import json
from pathlib import Path

import pytest
from tests.studies import holdfast, question_rows, write_jsonl

GOOD = question_rows(3)


def refuse(tmp_path: Path, *arguments: str) -> str:
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
    content, words = FILES[case]
    path = tmp_path / "q.jsonl"
    if content is not None:
        path.write_text(content)
    line = refuse(tmp_path, "--model", "simulated/sycophant", "--questions", str(path))
    assert line.startswith(f"holdfast: {path}")
    assert [part for part in words if part not in line] == []


ARGUMENTS = {
    "technique": (["-T", "techniques=authority-prio"], "Did you mean 'authority-prior'"),
    "chain": (["-T", "chains=rag-style>athority-prior"], "Did you mean 'authority-prior'"),
    "chain of one": (["-T", "chains=rag-style"], "Join two or more"),
    "setting": (["-T", "sugest=not-own"], "Did you mean 'suggest'?"),
    "rule": (["-T", "suggest=notown"], "Did you mean 'not-own'?"),
    "seed": (["-T", "seed=x"], "not a whole number"),
    "question set": (["--questions", "bnk"], "Did you mean 'bank'?"),
    "catalogue": (["-T", "challenges=none.toml"], "no such file"),
    "contexts": (["-T", "contexts=none.jsonl"], "no such file"),
    "contexts by name": (["-T", "contexts=synthetc"], "Did you mean 'synthetic'?"),
    "prices": (["--prices", "none.json"], "no such file"),
    "no price": (["--cost-limit", "1"], "the price of"),
}


@pytest.mark.parametrize("case", ARGUMENTS)
def test_a_bad_argument_is_refused_with_the_nearest_name(
    case: str,
    tmp_path: Path,
) -> None:
    arguments, message = ARGUMENTS[case]
    line = refuse(tmp_path, "--model", "simulated/sycophant", *arguments)
    assert message in line


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("simulated/sycophnt", "Did you mean 'sycophant' or 'noisy-sycophant'?"),
        ("opnai/gpt-4.1", "Did you mean 'openai'"),
        ("lexical/bm25", "Use lexical/overlap"),
        ("recorded/none.jsonl", "no such file"),
    ],
)
def test_a_model_that_nobody_knows_is_refused(
    model: str,
    message: str,
    tmp_path: Path,
) -> None:
    assert message in refuse(tmp_path, "--model", model)


def test_an_unknown_protocol_is_refused(tmp_path: Path) -> None:
    run = holdfast("run", "folowup", "--model", "simulated/sycophant")
    assert run.returncode == 2
    assert "Did you mean 'followup'?" in run.stderr


def test_questions_check_reports_every_bad_row_at_once(tmp_path: Path) -> None:
    rows = [{**GOOD[0], "gold": "X"}, GOOD[1], {**GOOD[2], "stem": " "}]
    path = write_jsonl(tmp_path / "q.jsonl", rows)
    check = holdfast("check", path)
    assert check.returncode == 2
    lines = check.stderr.strip().splitlines()
    assert [("row 1" in lines[0], "row 3" in lines[1])] == [(True, True)]
    assert lines[-1] == f"holdfast: {path}: 2 bad rows. Fix them and check again."
    report = json.loads(holdfast("check", path, "--json").stdout)
    assert [problem["row"] for problem in report["problems"]] == [1, 3]
    assert report["questions"] == 1


def test_tables_of_nothing_are_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for source, message in (("nowhere", "no such log dir"), ("empty", "has no holdfast logs")):
        run = holdfast("table", tmp_path / source)
        assert run.returncode == 2
        assert message in run.stderr
    assert "Did you mean 'accuracy'?" in holdfast("table", tmp_path, "--table", "acuracy").stderr


STUDY = {
    "bias": ("single-turn", ["-T", "biases=recencey"], "Did you mean 'recency'"),
    "mitigation": ("single-turn", ["-T", "mitigations=fewshot"], "Did you mean 'few-shot'"),
    "answers": ("single-turn", ["-T", "answers=first-char"], "Did you mean 'first-character'?"),
    "rule of letters": ("single-turn", ["-T", "suggest=not-own"], "is not a rule for single turns"),
    "file of letters": ("single-turn", ["-T", "suggest=none.csv"], "none.csv: no such file"),
    "distractors": ("single-turn", ["-T", "distractors=none.jsonl"], "none.jsonl: no such file"),
    "distractors by name": ("single-turn", ["-T", "distractors=bnk"], "Did you mean 'bank'?"),
    "setting of the other": ("single-turn", ["-T", "chains=paper"], "unknown setting 'chains'"),
    "length": ("followup", ["-T", "lengths=1,ten"], "'ten' is not a number of sentences"),
    "length of nothing": ("followup", ["-T", "lengths=0"], "'0' is not a number of sentences"),
    "role": ("followup", ["--model-role", "jugde=simulated/judge"], "Did you mean 'judge'?"),
    "role without model": ("followup", ["--model-role", "judge"], "is not ROLE=MODEL"),
    "role twice": ("followup", ["--model-role", "generator=simulated/generator", "--model-role",
                                "generator=simulated/generator"], "given twice"),
    "role's model": ("followup", ["--model-role", "judge=opnai/x"], "Did you mean 'openai'"),
    "labels": ("followup", ["--labels", "none.jsonl"], "none.jsonl: no such file"),
}  # fmt: skip


@pytest.mark.parametrize("case", STUDY)
def test_a_bad_setting_of_a_study_is_refused_before_anything_is_asked(
    case: str, tmp_path: Path
) -> None:
    protocol, arguments, message = STUDY[case]
    run = holdfast(
        "run", protocol, "--model", "simulated/sycophant", "--limit", "1",
        "--log-dir", tmp_path / "runs", *arguments,
    )  # fmt: skip
    assert run.returncode == 2, run.stdout + run.stderr
    assert run.stdout == ""
    (line,) = run.stderr.strip().splitlines()
    assert line.startswith("holdfast: ")
    assert message in line
    assert not list((tmp_path / "runs").glob("*.eval"))


# a file beside the questions: its option, its name, its content, and what the line must say
BESIDE: dict[str, tuple[list[str], str, str, list[str]]] = {
    "contexts for other questions": (
        ["followup", "-T", "contexts="], "c.jsonl",
        '{"question": "z1", "misleading_context": "Text."}\n',
        ["field 'question'", "has no context for any of the 3 questions", "were built for"],
    ),
    "contexts without a text": (
        ["followup", "-T", "contexts="], "c.jsonl", '{"question": "q0"}\n',
        ["has no context", "Give at least one of the columns"],
    ),
    "contexts without a question": (
        ["followup", "-T", "contexts="], "c.csv", "stem,misleading_context\nx,Text.\n",
        ["row 1", "field 'question'", "is missing", "Name the question's id"],
    ),
    "a column of contexts by almost its name": (
        ["followup", "-T", "contexts="], "c.csv", "question,misleading_contxt\nq0,Text.\n",
        ["row 1", "field 'misleading_contxt'", "Did you mean 'misleading_context'?"],
    ),
    "contexts of a question twice": (
        ["followup", "-T", "contexts="], "c.csv", "id,edge_case_context\nq0,Text.\nq0,Text.\n",
        ["row 2", "'q0' was given before, in row 1", "Keep one"],
    ),
    "a second-best option that is the gold": (
        ["followup", "-T", "contexts="], "c.csv", "id,second_best,edge_case_context\nq0,A,Text.\n",
        ["row 1", "field 'second_best'", "'A' is not a wrong option of question 'q0'", "B, C, D"],
    ),
    "a number of sentences in words": (
        ["followup", "-T", "contexts="], "c.csv", "id,sentences,edge_case_context\nq0,four,Text.\n",
        ["row 1", "field 'sentences'", "is 'four', not a number of sentences"],
    ),
    "wrong options for other questions": (
        ["single-turn", "-T", "distractors="], "d.jsonl",
        '{"question": "z1", "distractors": {"B": "x"}}\n',
        ["field 'question'", "has no wrong options for any of the 3 questions", "was built for"],
    ),
    "a wrong option in place of the gold": (
        ["single-turn", "-T", "distractors="], "d.jsonl",
        '{"question": "q0", "distractors": {"A": "x"}}\n',
        ["row 1", "field 'distractors'", "'A', which is no wrong option", "Correct the row"],
    ),
    "a wrong option that is there already": (
        ["single-turn", "-T", "distractors="], "d.jsonl",
        '{"question": "q0", "distractors": {"B": "Finding C of case 0."}}\n',
        ["row 1", "field 'distractors'", "repeats the option"],
    ),
    "wrong options that are no object": (
        ["single-turn", "-T", "distractors="], "d.csv", "question,distractors\nq0,B\n",
        ["row 1", "field 'distractors'", "is not an object of letters and texts"],
    ),
    "letters that are gold": (
        ["single-turn", "-T", "suggest="], "s.csv", "question,suggested\nq1,D\nq0,A\n",
        ["row 2", "field 'suggested'", "'A' is not a wrong option of question 'q0'", "B, C, D"],
    ),
    "letters without their column": (
        ["followup", "-T", "suggest="], "s.csv", "question,letter\nq0,B\n",
        ["row 1", "field 'suggested'", "is missing"],
    ),
    "letters for other questions": (
        ["followup", "-T", "suggest="], "s.csv", "question,suggested\nz0,B\n",
        ["field 'suggested'", "has no letter for any question"],
    ),
    "two letters for one question": (
        ["single-turn", "-T", "suggest="], "s.csv", "question,suggested\nq0,B\nq0,C\n",
        ["row 2", "a second letter for question 'q0'", "Keep one"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", BESIDE)
def test_a_bad_file_beside_the_questions_is_refused_with_its_name_and_place(
    case: str, tmp_path: Path
) -> None:
    (protocol, *option), name, content, words = BESIDE[case]
    source = write_jsonl(tmp_path / "q.jsonl", GOOD)
    path = tmp_path / name
    path.write_text(content)
    arguments = [*option[:-1], f"{option[-1]}{path}"]
    run = holdfast(
        "run", protocol, "--model", "simulated/sycophant", "--questions", source,
        "--log-dir", tmp_path / "runs", *arguments,
    )  # fmt: skip
    assert run.returncode == 2, run.stdout + run.stderr
    assert run.stdout == ""
    (line,) = run.stderr.strip().splitlines()
    assert line.startswith(f"holdfast: {path}")
    assert [part for part in words if part not in line] == []
    assert not (tmp_path / "runs").exists()


GRAPHS = {
    "missing": (None, ["no such file"]),
    "no column": ("head,relation,tial\na,b,c\n", ["row 1", "field 'tail'", "'tial'"]),
    "an empty cell": ("head,relation,tail\na,b,c\na,,c\n", ["row 2", "field 'relation'"]),
    "a short row": ("head,relation,tail\na,b\n", ["row 1", "has 2 cells"]),
    "no row": ("head,relation,tail\n", ["has no rows", "head, relation, tail."]),
    "no text": (b"head,relation,tail\n\xff,b,c\n", ["is not UTF-8"]),
}


@pytest.mark.parametrize("case", GRAPHS)
def test_a_bad_graph_is_refused_before_anything_is_asked(case: str, tmp_path: Path) -> None:
    content, words = GRAPHS[case]
    graph = tmp_path / "g.csv"
    if content is not None:
        graph.write_bytes(content.encode() if isinstance(content, str) else content)
    run = holdfast(
        "generate", "distractors", "--model", "simulated/generator", "--graph", graph,
        "-o", tmp_path / "d.jsonl", "--log-dir", tmp_path / "made",
    )  # fmt: skip
    assert (run.returncode, run.stdout) == (2, "")
    (line,) = run.stderr.strip().splitlines()
    assert line.startswith(f"holdfast: {graph}")
    assert [part for part in words if part not in line] == []
    assert not (tmp_path / "made").exists()
    assert not (tmp_path / "d.jsonl").exists()


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (["generate", "contexts", "--model", "simulated/nobody"], "unknown profile 'nobody'"),
        (["generate", "contexts", "--model", "opnai/x"], "Did you mean 'openai'"),
        (["generate", "contexts", "--model", "simulated/generator", "--lengths", "a"],
         "'a' is not a number of sentences"),
        (["generate", "contexts", "--model", "simulated/generator", "--questions", "bnk"],
         "Did you mean 'bank'?"),
        (["check", "none.jsonl"], "none.jsonl: no such file"),
        (["check", "none.toml"], "none.toml: no such file"),
        (["generate", "labels", "--model", "opnai/x"], "Did you mean 'openai'"),
    ],
)  # fmt: skip
def test_a_bad_preparation_is_refused(command: list[str], message: str, tmp_path: Path) -> None:
    before = sorted(path for path in tmp_path.rglob("*") if "cache" not in path.parts)
    run = holdfast(*command)
    assert (run.returncode, run.stdout) == (2, "")
    (line,) = run.stderr.strip().splitlines()
    assert message in line
    assert sorted(path for path in tmp_path.rglob("*") if "cache" not in path.parts) == before


def test_faulty_texts_in_a_file_are_left_out_and_counted_and_the_rest_is_asked(
    tmp_path: Path,
) -> None:
    source = write_jsonl(tmp_path / "q.jsonl", GOOD)
    sentence, two = "One sentence is here.", "One sentence is here. And another."
    contexts = write_jsonl(
        tmp_path / "c.jsonl",
        [
            {"question": "q0", "sentences": 1, "misleading_context": two,
             "alternative_context": sentence, "alternative_answer": "Finding D of case 0",
             "edge_case_context": sentence},
            {"question": "q1", "sentences": 1, "misleading_context": sentence,
             "alternative_context": sentence, "alternative_answer": "a rare syndrome",
             "content_hash": "of another question"},
            {"question": "q2", "sentences": 1, "misleading_context": sentence,
             "alternative_context": "It is not option B. It is another.",
             "alternative_answer": "a rare syndrome"},
            {"question": "somewhere else", "misleading_context": sentence},
        ],
    )  # fmt: skip
    command = ("run", "followup", "--model", "simulated/sycophant", "--questions", source,
               "-T", f"contexts={contexts}", "-T", "techniques=context",
               "--log-dir", tmp_path / "runs")  # fmt: skip
    outcome = json.loads(holdfast(*command, "--json").stdout)
    wrong_length = "misleading_context cannot be used (wrong sentence count)"
    wrong_question = "belongs to another question with this id"
    assert outcome["left_out"] == {
        "misleading-context": {wrong_length: 1, wrong_question: 1},
        "rag-style": {wrong_length: 1, wrong_question: 1},
        "alternative-context": {
            "alternative_context cannot be used (an option as diagnosis)": 1,
            wrong_question: 1,
            "alternative_context cannot be used (wrong sentence count)": 1,
        },
        "edge-case-context": {"no edge_case_context": 2},
    }
    assert outcome["remarks"] == ["c.jsonl: 1 row for other questions"]
    output = " ".join(holdfast(*command).stdout.split())
    for path, reasons in outcome["left_out"].items():
        for reason, n in reasons.items():
            assert f"{path}: skipped for {n} question{'' if n == 1 else 's'} ({reason})" in output
    assert "c.jsonl: 1 row for other questions" in output
    counts = {row["path"]: row["n"] for row in outcome["accuracy"] if row["arm"] == "followup"}
    # first answers of all three, and each text that can be used
    assert counts == {"misleading-context": 1, "rag-style": 1, "edge-case-context": 1}
    assert outcome["complete"] is True


@pytest.mark.parametrize("helper", ["sycophant", "generator"])
def test_a_judge_that_gives_no_judgements_leaves_the_answers_and_says_why(
    helper: str, tmp_path: Path
) -> None:
    run = holdfast(
        "run", "followup", "--model", "simulated/sycophant", "--limit", "2",
        "--model-role", f"judge=simulated/{helper}", "--log-dir", tmp_path / "runs",
    )  # fmt: skip
    assert run.returncode in (2, 3)
    last = run.stderr.strip().splitlines()[-1]
    assert last.startswith("holdfast: ")
    assert f"'simulated/{helper}' gives no judgement" in last
    assert "Use simulated/judge" in last


def test_an_argument_that_is_no_text_is_one_line() -> None:
    for arguments in (["run", "followup", "--dry-run", "--model", "m\udcff"], ["report", "\udcff"]):
        run = holdfast(*arguments)
        assert run.returncode == 2
        assert "is not UTF-8. Write it in UTF-8" in run.stderr
        assert run.stderr.count("\n") == 1
