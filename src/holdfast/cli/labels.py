"""Labels beside the logs: checked, and written in the one form that tables read."""

import json
from collections.abc import Sequence
from pathlib import Path

import fsspec

from holdfast.errors import InputError, did_you_mean
from holdfast.questions import LABELS, QuestionSet, read_rows
from holdfast.results import LABELS_FILE

_IDS = ("question", "id", "index")


def keep_labels(source: str, log_dir: str, questions: Sequence[QuestionSet]) -> None:
    """Copy the labels of these questions into a log dir, where every table finds them.

    Args:
        source: a file with a column that names the question (question, id or index) and one or
            more of step, system, specialty, subject.
        log_dir: a local folder or any fsspec URL.
        questions: the sets that were asked.

    Raises:
        InputError: the file cannot be read, has no such columns, or is for other questions.
    """
    ids = {question.id for asked in questions for question in asked.questions}
    rows: dict[str, dict[str, str]] = {}
    for number, row in read_rows(Path(source).expanduser()):
        if isinstance(row, str):
            raise InputError(row, source, number, remedy="Mend the row")
        column = next((name for name in _IDS if name in row), None)
        if column is None:
            raise InputError("is missing", source, number, "question", "Name the question's id")
        labels = {name: str(row[name]) for name in LABELS if row.get(name) not in (None, "")}
        if not any(name in row for name in (*LABELS, "missing")):
            near = did_you_mean(str(list(row)[-1]), LABELS)
            raise InputError("has no label", source, number, LABELS[1], near)
        id = str(row[column])
        if id not in ids and id.isdigit():
            id = f"{int(id):04d}"  # as the loader numbers questions without an id
        if id in ids and labels:
            rows[id] = {"question": id, **labels}
    if not rows:
        raise InputError(
            "has no label for any question that was asked", source, field="question",
            remedy="Give the labels of this question set",
        )  # fmt: skip
    with fsspec.open(f"{log_dir.rstrip('/')}/{LABELS_FILE}", "w", encoding="utf-8") as out:
        out.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows.values())
