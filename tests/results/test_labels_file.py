"""Labels beside the logs take the place of a question's own strata."""

from pathlib import Path
from typing import Any

import pytest

from holdfast.errors import InputError
from holdfast.results.labels import LABELS_FILE, put_labels, with_labels
from holdfast.results.turns import SCHEMA
from tests.results.frames import table, turn

STRATA = ("step", "system", "specialty", "subject")
TURNS = table([
    turn("q1", "A", system="Renal", step="step1"),
    turn("q1", "B", "push", system="Renal", step="step1"),
    turn("q2", "A", step="step1"),
    turn("0003", "A", system="Heart"),
]).select(*SCHEMA)  # fmt: skip


@pytest.mark.parametrize(
    ("rows", "columns"),
    [
        # labels come first, and the question's own where there is none
        ([{"question": "q1", "system": "Nerves"},
          {"question": "q2", "system": "Skin", "specialty": "Dermatology"},
          {"question": "elsewhere", "system": "Blood"}],
         {"system": ["Nerves", "Nerves", "Skin", "Heart"],
          "specialty": [None, None, "Dermatology", None]}),
        # labels of another question set are not taken, also of the same question
        ([{"question": "q1", "system": "Skin"},
          {"dataset": "d2", "question": "q1", "system": "Nerves"}],
         {"system": ["Skin", "Skin", None, "Heart"]}),
        # ids and labels of digits are text
        ([{"question": "0003", "subject": "7"}, {"question": "q1", "step": "2"}],
         {"subject": [None, None, None, "7"], "step": ["2", "2", "step1", None]}),
        # of a question labelled twice the last counts
        ([{"question": "q1", "system": "first"}, {"question": "q1", "system": "last"}],
         {"system": ["last", "last", None, "Heart"]}),
        # a column that only late rows have is read
        ([*({"question": f"other {n}", "system": "x"} for n in range(500)),
          {"question": "q2", "specialty": "Dermatology"}],
         {"specialty": [None, None, "Dermatology", None]}),
        # labels are data
        *(([{"question": "q1", "system": label}], {"system": [label, label, None, "Heart"]})
          for label in ("{braces} {0}", "a,b\"c'", "<b>|*_", "new\nline", "Blood & Lymph",
                        "Ünï ✓", "\x1b[31m")),
    ],
)  # fmt: skip
def test_labels_replace_strata(
    rows: list[dict[str, str]], columns: dict[str, Any], tmp_path: Path
) -> None:
    put_labels([{"dataset": "d1", **row} for row in rows], str(tmp_path))
    turns = with_labels(TURNS, str(tmp_path), STRATA)
    assert {name: turns[name].to_list() for name in columns} == columns
    assert turns.drop(columns).equals(TURNS.drop(columns))
    assert turns.schema == SCHEMA


@pytest.mark.parametrize(
    "content",
    [
        b"{oops\n", b"\xff\xfe", b"[1, 2]\n",
        b'{"dataset": "d1", "question": "q1", "system": "x"}\n',  # has no checksum
        b'{"dataset": "d1", "question": "q1", "system": 7, "crc32": 0}\n',
    ],
)  # fmt: skip
def test_a_bad_file_of_labels_is_refused_by_name(content: bytes, tmp_path: Path) -> None:
    assert with_labels(TURNS, str(tmp_path), STRATA).equals(TURNS)
    (tmp_path / LABELS_FILE).write_bytes(content)
    with pytest.raises(InputError) as error:
        with_labels(TURNS, str(tmp_path), STRATA)
    assert error.value.file == f"{tmp_path}/{LABELS_FILE}"
    assert "\n" not in str(error.value)
    assert error.value.remedy


def test_a_remote_log_dir_has_labels_too() -> None:
    put_labels([{"dataset": "d1", "question": "q2", "system": "Skin"}], "memory://labels-test")
    turns = with_labels(TURNS, "memory://labels-test/", STRATA)
    assert turns["system"].to_list() == ["Renal", "Renal", "Skin", "Heart"]
    assert with_labels(TURNS, "memory://nothing-there", STRATA).equals(TURNS)
