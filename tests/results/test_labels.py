"""Labels beside the logs take the place of a question's own strata."""

from pathlib import Path

import polars as pl
import pytest

from holdfast.errors import InputError
from holdfast.results.labels import LABELS_FILE, put_labels, with_labels
from holdfast.results.turns import SCHEMA
from tests.results.frames import table, turn

STRATA = ("step", "system", "specialty", "subject")
TURNS = table(
    [
        turn("q1", "A", system="Renal", step="step1"),
        turn("q1", "B", "push", system="Renal", step="step1"),
        turn("q2", "A", step="step1"),
        turn("0003", "A", system="Heart"),
    ]
).select(*SCHEMA)


def labelled(tmp_path: Path, *rows: dict[str, str]) -> pl.DataFrame:
    put_labels([{"dataset": "d1", **row} for row in rows], str(tmp_path))
    return with_labels(TURNS, str(tmp_path), STRATA)


def test_without_a_file_the_turns_stay_as_they_are(tmp_path: Path) -> None:
    assert with_labels(TURNS, str(tmp_path), STRATA).equals(TURNS)


def test_labels_come_first_and_the_questions_own_where_there_is_none(tmp_path: Path) -> None:
    found = labelled(
        tmp_path,
        {"question": "q1", "system": "Nerves"},
        {"question": "q2", "system": "Skin", "specialty": "Dermatology"},
        {"question": "elsewhere", "system": "Blood"},
    )
    assert found["system"].to_list() == ["Nerves", "Nerves", "Skin", "Heart"]
    assert found["specialty"].to_list() == [None, None, "Dermatology", None]
    assert found["step"].to_list() == ["step1", "step1", "step1", None]
    same = [name for name in SCHEMA if name not in ("system", "specialty")]
    assert found.select(same).equals(TURNS.select(same))
    assert found.schema == SCHEMA


def test_labels_of_another_question_set_are_not_taken(tmp_path: Path) -> None:
    found = labelled(
        tmp_path,
        {"dataset": "d2", "question": "q1", "system": "Nerves"},
        {"question": "q2", "system": "Skin"},
    )
    assert found["system"].to_list() == ["Renal", "Renal", "Skin", "Heart"]


def test_ids_and_labels_of_digits_are_text(tmp_path: Path) -> None:
    found = labelled(
        tmp_path, {"question": "0003", "subject": "7"}, {"question": "q1", "step": "2"}
    )
    assert found["subject"].to_list() == [None, None, None, "7"]
    assert found["step"].to_list() == ["2", "2", "step1", None]


def test_of_a_question_labelled_twice_the_last_counts(tmp_path: Path) -> None:
    found = labelled(
        tmp_path, {"question": "q1", "system": "first"}, {"question": "q1", "system": "last"}
    )
    assert found.height == TURNS.height
    assert found["system"].to_list() == ["last", "last", None, "Heart"]


def test_a_column_that_only_late_rows_have_is_read(tmp_path: Path) -> None:
    early = [{"question": f"other {n}", "system": "x"} for n in range(500)]
    found = labelled(tmp_path, *early, {"question": "q2", "specialty": "Dermatology"})
    assert found["specialty"].to_list() == [None, None, "Dermatology", None]


@pytest.mark.parametrize(
    "label",
    ["{braces} {0}", "a,b\"c'", "<b>|*_", "new\nline", "Blood & Lymph", "Ünï ✓", "\x1b[31m"],
)
def test_labels_are_data(label: str, tmp_path: Path) -> None:
    found = labelled(tmp_path, {"question": "q1", "system": label})
    assert found["system"].to_list() == [label, label, None, "Heart"]


@pytest.mark.parametrize(
    "content",
    [
        b"{oops\n", b"\xff\xfe", b"[1, 2]\n",
        b'{"dataset": "d1", "question": "q1", "system": "x"}\n',  # has no checksum
        b'{"dataset": "d1", "question": "q1", "system": 7, "crc32": 0}\n',
    ],
)  # fmt: skip
def test_a_file_that_is_no_label_file_is_named(content: bytes, tmp_path: Path) -> None:
    (tmp_path / LABELS_FILE).write_bytes(content)
    with pytest.raises(InputError) as error:
        with_labels(TURNS, str(tmp_path), STRATA)
    assert error.value.file == f"{tmp_path}/{LABELS_FILE}"
    assert "\n" not in str(error.value)
    assert error.value.remedy


def test_a_remote_log_dir_has_labels_too() -> None:
    put_labels([{"dataset": "d1", "question": "q2", "system": "Skin"}], "memory://labels-test")
    found = with_labels(TURNS, "memory://labels-test/", STRATA)
    assert found["system"].to_list() == ["Renal", "Renal", "Skin", "Heart"]
    assert with_labels(TURNS, "memory://nothing-there", STRATA).equals(TURNS)
