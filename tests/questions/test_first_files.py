"""The first file of one's own: what spreadsheets and people write, read or named for what it is."""

import json
from pathlib import Path

import pytest
from tests.studies import Done, holdfast, question_rows, write_jsonl

HEADER = "Question,Option A,Option B,Option C,Answer\n"


def checked(path: Path, text: str) -> Done:
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
def test_headers_and_separators_of_spreadsheets_are_read(
    tmp_path: Path, name: str, text: str
) -> None:
    done = checked(tmp_path / name, text)
    assert done.returncode == 0, done.stderr
    assert "1 question with" in done.stdout


@pytest.mark.parametrize("gold", ["(B)", "B.", "b)", "[B]", "Option B", " B "])
def test_a_letter_is_read_as_people_write_it(tmp_path: Path, gold: str) -> None:
    done = checked(tmp_path / "q.csv", f"{HEADER}Which?,x,y,z,{gold}\n")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("cell", ["NaN", "N/A", "null", "#N/A", "#NAME?", " nan "])
@pytest.mark.parametrize("column", [0, 2, 4])
def test_a_cell_that_stands_for_nothing_is_named(tmp_path: Path, cell: str, column: int) -> None:
    cells = ["Which?", "x", "y", "z", "A"]
    cells[column] = cell
    done = checked(tmp_path / "q.csv", HEADER + ",".join(cells) + "\n")
    assert done.returncode == 2
    first = done.stderr.splitlines()[0]
    assert "row 1" in first
    assert "marker of a missing value" in first


def test_none_is_an_option_but_no_question(tmp_path: Path) -> None:
    assert checked(tmp_path / "a.csv", HEADER + "How many?,None,One,Two,A\n").returncode == 0
    assert checked(tmp_path / "b.csv", HEADER + "None,x,y,z,A\n").returncode == 2


def test_every_fault_of_a_row_is_told_at_once(tmp_path: Path) -> None:
    row = {"id": "", "stem": "", "options": {"A": "x", "B": " ", "C": "x"}, "gold": "E"}
    path = write_jsonl(tmp_path / "q.jsonl", [row])
    told = json.loads(holdfast("check", path, "--json").stdout)["problems"]
    assert [(one["row"], one["field"]) for one in told] == [
        (1, "gold"), (1, "stem"), (1, "options"), (1, "options"),
    ]  # fmt: skip


def test_a_question_under_two_ids_is_told(tmp_path: Path) -> None:
    rows = question_rows(3)
    path = write_jsonl(tmp_path / "q.jsonl", [*rows, {**rows[0], "id": "again"}])
    done = holdfast("check", path)
    assert done.returncode == 2
    assert "row 4, field 'id': 'again' asks the same question as 'q0' in row 1" in done.stderr


def test_a_row_with_fewer_options_than_the_others_is_told(tmp_path: Path) -> None:
    rows = [f"Which {n}?,x,y,z,A" for n in range(19)]
    done = checked(tmp_path / "q.csv", HEADER + "\n".join([*rows, "Which?,x,y,,A"]) + "\n")
    assert done.returncode == 0
    assert "1 question with fewer than 3 options (0019)" in done.stderr


def test_a_spreadsheet_is_told_how_to_be_saved(tmp_path: Path) -> None:
    done = checked(tmp_path / "q.xlsx", "PK")
    assert (done.returncode, done.stdout) == (2, "")
    assert "Save the sheet as CSV in UTF-8" in done.stderr


def test_a_message_stands_once_with_the_number_of_its_rows(tmp_path: Path) -> None:
    rows = [f"Which {n}?,x,y,z,{1 + n % 3}" for n in range(25)]
    done = checked(tmp_path / "q.csv", HEADER + "\n".join(rows) + "\n")
    assert done.returncode == 2
    first, last = done.stderr.splitlines()
    assert (
        "row 1, field 'Answer': is a number. Say whether numbers start at 0 or 1: -T "
        "fields=gold_base=0" in first
    )
    assert "(25 rows: 1, 2, 3, 4, 5, …)" in first
    assert "25 bad rows" in last


def test_columns_that_are_read_and_ignored_are_listed(tmp_path: Path) -> None:
    row = {
        "question": "Why?", "options": ["x", "y"], "answer_idx": "B", "answer": "y",
        "meta_info": "step1", "step": "step2&3", "author": "me",
    }  # fmt: skip
    path = write_jsonl(tmp_path / "q.jsonl", [row])
    done = holdfast("check", path)
    assert done.stdout.splitlines() == [
        f"{path}: read as questions",
        f"{path}: columns read: stem from question; options from options; "
        "gold from answer_idx; step from step",
        f"{path}: columns ignored: answer (gold is answer_idx), meta_info (step is step), author",
        f"{path}: 1 question with 2 options, every row is valid",
    ]
    told = json.loads(holdfast("check", path, "--json").stdout)
    assert told["columns"]["gold"] == ["answer_idx"]
    assert (told["gold_base"], told["ignored_columns"]) == (None, ["answer", "meta_info", "author"])


def test_the_number_that_columns_count_from_is_listed(tmp_path: Path) -> None:
    done = checked(tmp_path / "q.csv", f"{HEADER}Which?,x,y,z,0\nWhat?,x,y,z,2\n")
    assert "gold from Answer (counted from 0)" in done.stdout
