"""Labels beside the logs: checked, and written in the one form that tables read."""

import json
from collections.abc import Mapping, Sequence

import fsspec

from holdfast.errors import InputError, did_you_mean
from holdfast.files import named_path
from holdfast.questions import LABELS, QuestionSet, read_rows
from holdfast.results import LABELS_FILE

_IDS = ("question", "id", "index")

Row = Mapping[str, str]


def read_labels(source: str, questions: Sequence[QuestionSet]) -> list[Row]:
    """The labels of these questions.

    Args:
        source: a file with a column that names the question (question, id or index) and one or
            more of step, system, specialty, subject.
        questions: the sets that are asked.

    Returns:
        Rows with dataset, question and the labels that are given.

    Raises:
        InputError: the file cannot be read, has no such columns, or is for other questions.
    """
    rows: list[Row] = []
    for number, row in read_rows(named_path(source)):
        if isinstance(row, str):
            raise InputError(row, source, number, remedy="Mend the row")
        column = next((name for name in _IDS if name in row), None)
        if column is None:
            raise InputError("is missing", source, number, "question", "Name the question's id")
        if not any(name in row for name in (*LABELS, "missing")):
            near = did_you_mean(str(list(row)[-1]), LABELS)
            raise InputError("has no label", source, number, LABELS[1], near)
        labels = {name: str(row[name]) for name in LABELS if row.get(name) not in (None, "")}
        for asked in questions:
            question = asked.named(row[column])
            digest = row.get("content_hash")
            if question and labels and digest in (None, "", question.content_hash):
                rows.append({"dataset": asked.name, "question": question.id, **labels})
    if not rows:
        raise InputError(
            "has no label for any question that is asked",
            source,
            field="question",
            remedy="Give the labels of this question set",
        )
    return rows


def keep_labels(rows: Sequence[Row], log_dir: str) -> None:
    """Write labels into a log dir, where every table finds them, beside those that are there.

    Args:
        rows: from ``read_labels``.
        log_dir: a local folder or any fsspec URL.

    Raises:
        InputError: what is there cannot be read.
    """
    if not rows:
        return
    path = f"{log_dir.rstrip('/')}/{LABELS_FILE}"
    file = fsspec.open(path, "r", encoding="utf-8")
    known: dict[tuple[str, str], Row] = {}
    if file.fs.exists(file.path):
        try:
            with file as lines:
                known = {_key(row): row for row in map(json.loads, lines)}
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise InputError(
                f"cannot be read as labels ({' '.join(str(error).split())[:200]})",
                path,
                remedy="Mend or remove the file",
            ) from error
    for row in rows:
        known[_key(row)] = {**known.get(_key(row), {}), **row}
    with fsspec.open(path, "w", encoding="utf-8") as out:
        out.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in known.values())


def _key(row: Row) -> tuple[str, str]:
    return row["dataset"], row["question"]
