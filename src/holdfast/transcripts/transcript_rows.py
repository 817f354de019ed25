"""Records of a file of transcripts, in order, with their row numbers."""

import json
import pickle
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from holdfast.errors import InputError, did_you_mean, in_one_line
from holdfast.questions.rows import check_file, csv_rows, json_rows, read_rows
from holdfast.results.runs import is_ours

from .mapped import at_path, steps_of

Record = tuple[int, Any]
"""1-based row (line of a JSONL file, data row of a table), with its text, fields or error."""

SUFFIXES = (".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".parquet", ".eval", ".pkl")

_BAD_CHARACTERS = re.compile("[\udc80-\udcff]")


def read_records(
    path: Path, encoding: str = "utf-8", delimiter: str | None = None
) -> Iterator[Record]:
    """Yield the records of a file. Lines of JSONL are text, which the caller parses."""
    check_file(path)
    match path.suffix.lower():
        case ".jsonl" | ".ndjson":
            for number, line in enumerate(_lines(path, encoding), start=1):
                if line.strip():
                    yield number, line
        case ".json":
            text = "".join(_lines(path, encoding))
            if text.lstrip()[:1] == "{":  # one object that contains the rows
                text = f"[{text}]"
            for number, value in json_rows(text, path):
                yield number, None if isinstance(value, str) else value
        case ".pkl":
            yield from enumerate(read_pickle(path), start=1)
        case ".csv" | ".tsv" as suffix:
            yield from _table(path, encoding, delimiter or ("\t" if suffix == ".tsv" else ","))
        case ".parquet":
            yield from read_rows(path)
        case ".eval":
            yield from read_log(path)
        case other:
            remedy = f"Use one of {', '.join(SUFFIXES)}"
            raise InputError(f"unknown file type '{other or path.name}'", str(path), remedy=remedy)


class _Plain(pickle.Unpickler):
    """Unpickler of plain data, which runs nothing that a pickle asks for."""

    def find_class(self, module: str, name: str) -> Any:
        """Refuse all classes except numbers of NumPy."""
        if (module, name) in _NUMBERS:
            return super().find_class(module, name)
        raise pickle.UnpicklingError(f"asks for {module}.{name}, which is not plain data")


_NUMBERS = {
    ("numpy", "dtype"),
    ("numpy.core.multiarray", "scalar"),
    ("numpy._core.multiarray", "scalar"),
}


def read_pickle(path: Path) -> list[Any]:
    """Return the rows of a pickled list of plain values. Nothing in the file is run.

    Raises:
        InputError: the file is not a pickle, or contains other than plain values.
    """
    remedy = "Save the rows as JSONL with the program that wrote the file"
    try:
        with path.open("rb") as file:
            rows = _Plain(file).load()
    except Exception as error:  # a broken pickle raises many kinds of errors
        problem = f"cannot be read as a pickle of plain values ({in_one_line(error)})"
        raise InputError(problem, str(path), remedy=remedy) from error
    if not isinstance(rows, list):
        raise InputError("is not a list of rows", str(path), remedy=remedy)
    return rows


def each_of(record: Any, paths: Sequence[str], file: str, number: int) -> Iterator[Any]:
    """Yield the record once for each element at the paths, with the element in its place."""
    if not paths:
        yield record
        return
    value, near = at_path(record, paths[0])
    if near is not None or not isinstance(value, (list, dict)):
        problem = "is neither a list nor an object of rows" if near is None else "is missing"
        remedy = (
            did_you_mean(paths[0], near) if near else "See 'each' in docs/guides/transcripts.md"
        )
        raise InputError(problem, file, number, paths[0], remedy)
    for element in value.values() if isinstance(value, dict) else value:
        row_record = _replace_at(record, steps_of(paths[0]), element)
        yield from each_of(row_record, paths[1:], file, number)


def _replace_at(value: Any, steps: Sequence[str | int], element: Any) -> Any:
    """Return a copy of a value with an element at the end of a path."""
    if not steps:
        return element
    copied_value = list(value) if isinstance(value, list) else dict(value)
    copied_value[steps[0]] = _replace_at(value[steps[0]], steps[1:], element)  # type: ignore[index]
    return copied_value


def fields_of(record: Record, file: str) -> dict[str, Any]:
    """Return the fields of a record.

    Raises:
        InputError: the record is an error, broken JSON or not an object.
    """
    number, value = record
    if isinstance(value, InputError):
        raise value
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (
            ValueError,
            RecursionError,
        ) as error:  # ValueError also covers a number of 4,301 digits
            problem = f"broken JSON ({error})"
            raise InputError(problem, file, number, remedy="Correct the line") from error
    if not isinstance(value, dict):
        raise InputError("is not a JSON object", file, number, remedy="Give one object per line")
    return value


def _lines(
    path: Path, encoding: str, row: Callable[[int], int] = lambda line: line
) -> Iterator[str]:
    """Yield lines, split at line feeds alone: JSON texts and CSV cells may contain U+2028."""
    codec = "utf-8-sig" if encoding.lower().replace("_", "-") in ("utf-8", "utf8") else encoding
    number = 0
    try:
        # keep undecodable bytes until their line is known
        with path.open(encoding=codec, errors="surrogateescape", newline="\n") as file:
            for line in file:
                number += 1
                if not line.isascii() and _BAD_CHARACTERS.search(line):
                    raise _make_decoding_error(path, number, row(number), encoding)
                yield line
    except UnicodeError as error:
        raise _make_decoding_error(path, number + 1, row(number + 1), encoding) from error


def _make_decoding_error(path: Path, line: int, row: int, encoding: str) -> InputError:
    remedy = "Save the file as UTF-8, or name its encoding in the mapping"
    problem = f"line {line} of the file is not {encoding.upper()}"
    return InputError(problem, str(path), row, remedy=remedy)


def _table(path: Path, encoding: str, delimiter: str) -> Iterator[Record]:
    number = 0
    lines = _lines(path, encoding, lambda _: number + 1)
    for number, (_, row) in enumerate(csv_rows(lines, delimiter, path), start=1):
        if isinstance(row, str):
            remedy = "Correct the row, or name the delimiter in the mapping"
            raise InputError(row, str(path), number, remedy=remedy)
        yield number, row


_UNREAD = {"events", "attachments", "timelines", "events_data", "store"}


def read_log(path: Path) -> Iterator[Record]:
    """Yield the samples of an Inspect log in order.

    docs/guides/transcripts.md lists the columns.
    """
    from inspect_ai.log import read_eval_log, read_eval_log_samples  # slow to import

    try:
        header = read_eval_log(str(path), header_only=True)
    except Exception as error:  # the library raises many kinds of errors for a bad log
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        problem = f"cannot be read as an Inspect log ({reason})"
        raise InputError(problem, str(path), remedy="Check the file") from error
    if is_ours(header):
        remedy = "Give it to 'holdfast table' without an import"
        raise InputError("is a log of holdfast", str(path), remedy=remedy)
    spec = header.eval
    sample_fields = {
        "model": spec.model,
        "task": spec.task,
        "dataset": spec.dataset.name or spec.task,
    }
    samples = read_eval_log_samples(str(path), all_samples_required=False, exclude_fields=_UNREAD)
    for number, sample in enumerate(samples, start=1):
        target, scores = sample.target, sample.scores or {}
        yield (
            number,
            {
                **sample_fields,
                "id": str(sample.id),
                "epoch": sample.epoch,
                "input": sample.input if isinstance(sample.input, str) else None,
                "choices": sample.choices,
                "target": target if isinstance(target, str) else ">".join(target),
                "messages": [message.model_dump(exclude_none=True) for message in sample.messages],
                "scores": {
                    name: {
                        "value": score.value,
                        "answer": score.answer,
                        "metadata": score.metadata,
                    }
                    for name, score in scores.items()
                },
                "metadata": sample.metadata,
            },
        )
