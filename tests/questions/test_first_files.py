"""A first file of questions, as spreadsheets and people write it."""

import json
from pathlib import Path

import pytest
from tests.studies import Done, holdfast, question_rows, write_jsonl

HEADER = "Question,Option A,Option B,Option C,Answer\n"


def check(path: Path, text: str) -> Done:
    path.write_text(text, "utf-8")
    return holdfast("check", path)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("headers.csv", HEADER + "Which?,x,y,z,B\n"),
        ("semicolons.csv", (HEADER + "Which?,x,y,z,B\n").replace(",", ";")),
        ("tabs.csv", (HEADER + "Which?,x,y,z,B\n").replace(",", "\t")),
        ("lower.csv", "id,question,option a,option b,correct answer\n1,Which?,x,y,B\n"),
    ],
)
def test_spreadsheet_headers_and_separators_are_read(tmp_path: Path, name: str, text: str) -> None:
    result = check(tmp_path / name, text)
    assert result.returncode == 0, result.stderr
    assert "1 question with" in result.stdout


def test_a_letter_is_read_in_every_notation(tmp_path: Path) -> None:
    for gold in ("(B)", "B.", "b)", "[B]", "Option B", " B "):
        result = check(tmp_path / "q.csv", f"{HEADER}Which?,x,y,z,{gold}\n")
        assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("column", [0, 2, 4])
def test_a_marker_of_a_missing_value_is_named(tmp_path: Path, column: int) -> None:
    for cell in ("NaN", "N/A", "null", "#N/A", "#NAME?", " nan "):
        cells = ["Which?", "x", "y", "z", "A"]
        cells[column] = cell
        result = check(tmp_path / "q.csv", HEADER + ",".join(cells) + "\n")
        first = result.stderr.splitlines()[0]
        assert (result.returncode, "row 1" in first) == (2, True)
        assert "marker of a missing value" in first


def test_none_is_an_option_but_not_a_question(tmp_path: Path) -> None:
    assert check(tmp_path / "a.csv", HEADER + "How many?,None,One,Two,A\n").returncode == 0
    assert check(tmp_path / "b.csv", HEADER + "None,x,y,z,A\n").returncode == 2


def test_every_fault_of_a_row_is_reported_at_once(tmp_path: Path) -> None:
    row = {"id": "", "stem": "", "options": {"A": "x", "B": " ", "C": "x"}, "gold": "E"}
    path = write_jsonl(tmp_path / "q.jsonl", [row])
    problems = json.loads(holdfast("check", path, "--json").stdout)["problems"]
    assert [(problem["row"], problem["field"]) for problem in problems] == [
        (1, "gold"), (1, "stem"), (1, "options"), (1, "options"),
    ]  # fmt: skip


def test_a_question_with_two_ids_is_reported(tmp_path: Path) -> None:
    rows = question_rows(3)
    path = write_jsonl(tmp_path / "q.jsonl", [*rows, {**rows[0], "id": "copy"}])
    result = holdfast("check", path)
    assert result.returncode == 2
    assert "row 4, field 'id': 'copy' asks the same question as 'q0' in row 1" in result.stderr


def test_a_row_with_fewer_options_is_reported(tmp_path: Path) -> None:
    rows = [f"Which {n}?,x,y,z,A" for n in range(19)]
    result = check(tmp_path / "q.csv", HEADER + "\n".join([*rows, "Which?,x,y,,A"]) + "\n")
    assert result.returncode == 0
    assert "1 question with fewer than 3 options (0019)" in result.stderr


def test_a_spreadsheet_has_a_remedy(tmp_path: Path) -> None:
    result = check(tmp_path / "q.xlsx", "PK")
    assert (result.returncode, result.stdout) == (2, "")
    assert "Save the sheet as CSV in UTF-8" in result.stderr


def test_a_repeated_message_is_printed_once_with_its_count(tmp_path: Path) -> None:
    rows = [f"Which {n}?,x,y,z,{1 + n % 3}" for n in range(25)]
    result = check(tmp_path / "q.csv", HEADER + "\n".join(rows) + "\n")
    assert result.returncode == 2
    first, last = result.stderr.splitlines()
    assert "row 1, field 'Answer': is a number" in first
    assert "(25 rows: 1, 2, 3, 4, 5, …)" in first
    assert "25 bad rows" in last


def test_read_and_ignored_columns_are_listed(tmp_path: Path) -> None:
    row = {
        "question": "Why?", "options": ["x", "y"], "answer_idx": "B", "answer": "y",
        "meta_info": "step1", "step": "step2&3", "author": "me",
    }  # fmt: skip
    path = write_jsonl(tmp_path / "q.jsonl", [row])
    read_line, columns_line, ignored_line, _ = holdfast("check", path).stdout.splitlines()
    assert read_line.endswith("read as questions")
    for column in ("stem from question", "options from options", "gold from answer_idx",
                   "step from step"):  # fmt: skip
        assert column in columns_line
    assert "answer (gold is answer_idx), meta_info (step is step), author" in ignored_line
    outcome = json.loads(holdfast("check", path, "--json").stdout)
    assert outcome["columns"]["gold"] == ["answer_idx"]
    assert outcome["gold_base"] is None
    assert outcome["ignored_columns"] == ["answer", "meta_info", "author"]


def test_the_number_of_the_first_option_is_listed(tmp_path: Path) -> None:
    result = check(tmp_path / "q.csv", f"{HEADER}Which?,x,y,z,0\nWhat?,x,y,z,2\n")
    assert "gold from Answer (counted from 0)" in result.stdout
