"""Folders of transcripts: the files that a mapping reads in one, and those joined with them."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from holdfast.errors import InputError, did_you_mean
from holdfast.files import text_of

from .mapping import JoinedFile
from .mapping import Mapping as Mapped
from .transcript_rows import Record, fields_of, read_records


def files_of(path: Path, mapping: Mapped) -> list[Path]:
    """The files of transcripts that a path and a mapping name.

    Raises:
        InputError: a folder where the mapping reads one file, the other way round, or no file.
    """
    if mapping.files is None:
        return [path]
    if not path.is_dir():
        remedy = f"Give the folder that holds {mapping.files}"
        raise InputError("is no folder, the mapping reads one", str(path), remedy=remedy)
    found = sorted(path.glob(mapping.files))
    if not found:
        there = ", ".join(sorted(one.name for one in path.iterdir())[:8]) or "nothing"
        what = f"holds no {mapping.files}, only {there}"
        raise InputError(what, str(path), remedy="Check the folder, and 'files' in the mapping")
    return found


def with_joined(
    records: Iterable[Record],
    folder: Path,
    source: Path,
    mapping: Mapped,
    *,
    skip_bad: bool = False,
) -> Iterator[Record]:
    """The records of a file with its own name and what stands in the files beside it.

    Args:
        records: those of the file.
        folder: what the mapping's files are in.
        source: the file.
        mapping: names the files beside it.
        skip_bad: whether a row that cannot be read or joined is passed on as its fault.

    Raises:
        InputError: a file beside it is missing or broken, or has no row for one of these.
    """
    own = {"file": source.relative_to(folder).with_suffix("").as_posix()}
    known = {name: _read(folder / one.file, one, skip_bad) for name, one in mapping.beside.items()}
    for record in records:
        try:
            fields = fields_of(record, str(source))
            joined = {
                name: _joined(fields, one, known[name], source, record[0])
                for name, one in mapping.beside.items()
            }
        except InputError as error:
            if not skip_bad:
                raise
            yield record[0], error
        else:
            yield record[0], {**fields, **own, **joined}


def _joined(
    fields: Mapping[str, Any], told: JoinedFile, known: Mapping[str, Any], source: Path, number: int
) -> Any:
    if told.by is None:
        return known
    key = str(fields.get(told.by))
    if key not in known:
        what = f"is '{key[:40]}', which {told.file} does not have"
        raise InputError(what, str(source), number, told.by, "Give the whole folder")
    return known[key]


def _read(path: Path, told: JoinedFile, skip_bad: bool) -> Mapping[str, Any]:
    """Rows by the column that joins them, or the one object of a file.

    A bad row that is skipped leaves the rows that it belongs to without it, which are counted.
    """
    if told.by is None:
        try:
            found = yaml.safe_load(text_of(path))  # JSON is YAML
        except yaml.YAMLError as error:
            what = f"broken YAML ({' '.join(str(error).split())[:200]})"
            raise InputError(what, str(path), remedy="Fix the file") from error
        if not isinstance(found, Mapping):
            raise InputError("holds no object", str(path), remedy="Give names and values")
        return found
    rows: dict[str, Any] = {}
    for record in read_records(path):
        try:
            fields = fields_of(record, str(path))
            if told.by not in fields:
                remedy = did_you_mean(told.by, fields)
                raise InputError("is missing", str(path), record[0], told.by, remedy)
        except InputError:
            if not skip_bad:
                raise
        else:
            rows[str(fields[told.by])] = fields
    return rows
