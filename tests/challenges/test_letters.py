"""Suggested letters from a file."""

import json
from pathlib import Path

import polars as pl
import pytest

from holdfast.challenges.suggestion import Letters, load_letters
from holdfast.errors import InputError
from holdfast.questions.loading import QuestionSet
from holdfast.questions.question import Question


def question(id: str) -> Question:
    options = {"A": "Asthma", "B": "Bronchitis", "C": "Croup"}
    return Question(id=id, stem=f"Why ({id})?", options=options, gold="B")


QUESTIONS = QuestionSet("mine", (question("q1"), question("q2"), question("0007")))


def write(folder: Path, *rows: object) -> str:
    path = folder / "letters.jsonl"
    lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    path.write_text("\n".join(lines), "utf-8")
    return str(path)


def load(source: str) -> Letters:
    letters = load_letters(source, QUESTIONS)
    assert letters is not None
    return letters


@pytest.mark.parametrize("rule", ["per-question", "per-technique", "second-best", "nonsense", ""])
def test_a_rule_name_is_not_taken_for_a_file(rule: str) -> None:
    assert load_letters(rule, QUESTIONS) is None


def test_a_letter_applies_to_every_path_or_its_own(tmp_path: Path) -> None:
    letters = load(
        write(
            tmp_path,
            {"question": "q1", "suggested": "A"},
            {"question": "q1", "suggested": "C", "path": "recency"},
            {"question": "q2", "suggested": "C", "path": "education>recency"},
        )
    )
    assert letters.of(question("q1"), "frequency") == "A"
    assert letters.of(question("q1"), "recency") == "C"
    assert letters.of(question("q2"), "education>recency") == "C"
    assert letters.of(question("q2"), "recency") is None
    assert letters.of(question("0007"), "recency") is None


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_table_gives_letters_too(tmp_path: Path, suffix: str) -> None:
    rows = pl.DataFrame({"question": ["q1", "q2"], "suggested": ["A", None], "path": ["x", "y"]})
    path = tmp_path / f"letters.{suffix}"
    if suffix == "csv":
        rows.write_csv(path)
    else:
        rows.write_parquet(path)
    assert load(str(path)).by_path == {("q1", "x"): "A"}


@pytest.mark.parametrize("number", [7, "7", "07", "0007"])
def test_numbers_match_questions_by_number(tmp_path: Path, number: int | str) -> None:
    letters = load(write(tmp_path, {"question": number, "suggested": "A"}))
    assert letters.of(question("0007"), "recency") == "A"


def test_rows_without_letter_or_question_are_skipped(tmp_path: Path) -> None:
    letters = load(
        write(
            tmp_path,
            {"question": "q1", "suggested": None},
            {"question": "other", "suggested": "Z"},
            {"question": "q2", "suggested": "A"},
        )
    )
    assert letters.by_path == {("q2", ""): "A"}


def test_a_repeated_letter_is_fine_and_a_conflict_refused(tmp_path: Path) -> None:
    row = {"question": "q1", "suggested": "A", "path": "recency"}
    assert load(write(tmp_path, row, row)).by_path == {("q1", "recency"): "A"}
    with pytest.raises(InputError) as caught:
        load(write(tmp_path, row, row | {"suggested": "C"}))
    assert (caught.value.row, caught.value.field) == (2, "suggested")
    assert "is the second letter for question 'q1' and path 'recency'" in caught.value.fault


@pytest.mark.parametrize("letter", ["B", "D", "a", "AA", ["A"], 1, "{A}"])
def test_letters_of_no_wrong_option_are_refused(tmp_path: Path, letter: object) -> None:
    source = write(tmp_path, {"question": "q2", "suggested": "A"},
                   {"question": "q1", "suggested": letter})  # fmt: skip
    with pytest.raises(InputError) as caught:
        load(source)
    error = caught.value
    assert (error.file, error.row, error.field) == (source, 2, "suggested")
    assert "is not a wrong option of question 'q1'" in error.fault
    assert error.remedy == "Use one of A, C"
    assert len(str(error).splitlines()) == 1


@pytest.mark.parametrize(
    ("row", "field"),
    [
        ({"suggested": "A"}, "question"),
        ({"question": "q1", "letter": "A"}, "suggested"),
        ("{", None),
        ("[]", None),
    ],
)
def test_a_row_that_cannot_be_read_is_refused(
    tmp_path: Path, row: object, field: str | None
) -> None:
    with pytest.raises(InputError) as caught:
        load(write(tmp_path, row))
    assert (caught.value.row, caught.value.field) == (1, field)
    assert caught.value.remedy


def test_a_file_without_letters_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="contains no letter for any question of 'mine'"):
        load(write(tmp_path, {"question": "other", "suggested": "A"}))
    with pytest.raises(InputError, match="no such file"):
        load(str(tmp_path / "letters.csv"))


def test_the_fingerprint_is_that_of_the_letters_in_any_order(tmp_path: Path) -> None:
    rows = [{"question": "q1", "suggested": "A"}, {"question": "q2", "suggested": "C"}]
    first = load(write(tmp_path, *rows)).fingerprint
    assert load(write(tmp_path, *reversed(rows))).fingerprint == first
    assert load(write(tmp_path, rows[0])).fingerprint != first
    assert len(first) == 16
