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
        raise InputError("is not a folder, but the mapping reads one", str(path), remedy=remedy)
    matches = sorted(path.glob(mapping.files))
    if not matches:
        names_there = ", ".join(sorted(entry.name for entry in path.iterdir())[:8]) or "nothing"
        problem = f"contains no {mapping.files}, only {names_there}"
        raise InputError(problem, str(path), remedy="Check the folder, and 'files' in the mapping")
    return matches


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
    file_fields = {"file": source.relative_to(folder).with_suffix("").as_posix()}
    joined_rows = {
        name: _read_joined_file(folder / joined_file.file, joined_file, skip_bad)
        for name, joined_file in mapping.joined_files.items()
    }
    for record in records:
        try:
            fields = fields_of(record, str(source))
            joined_fields = {
                name: _find_joined(fields, joined_file, joined_rows[name], source, record[0])
                for name, joined_file in mapping.joined_files.items()
            }
        except InputError as error:
            if not skip_bad:
                raise
            yield record[0], error
        else:
            yield record[0], {**fields, **file_fields, **joined_fields}


def _find_joined(
    fields: Mapping[str, Any],
    joined_file: JoinedFile,
    rows_by_key: Mapping[str, Any],
    source: Path,
    number: int,
) -> Any:
    if joined_file.by is None:
        return rows_by_key
    key = str(fields.get(joined_file.by))
    if key not in rows_by_key:
        problem = f"is '{key[:40]}', which {joined_file.file} does not have"
        raise InputError(problem, str(source), number, joined_file.by, "Give the whole folder")
    return rows_by_key[key]


def _read_joined_file(path: Path, joined_file: JoinedFile, skip_bad: bool) -> Mapping[str, Any]:
    """Rows by the column that joins them, or the one object of a file.

    A bad row that is skipped leaves the rows that it belongs to without it, which are counted.
    """
    if joined_file.by is None:
        try:
            content = yaml.safe_load(text_of(path))  # JSON is YAML
        except yaml.YAMLError as error:
            problem = f"broken YAML ({' '.join(str(error).split())[:200]})"
            raise InputError(problem, str(path), remedy="Correct the file") from error
        if not isinstance(content, Mapping):
            raise InputError("contains no object", str(path), remedy="Give names and values")
        return content
    rows: dict[str, Any] = {}
    for record in read_records(path):
        try:
            fields = fields_of(record, str(path))
            if joined_file.by not in fields:
                remedy = did_you_mean(joined_file.by, fields)
                raise InputError("is missing", str(path), record[0], joined_file.by, remedy)
        except InputError:
            if not skip_bad:
                raise
        else:
            rows[str(fields[joined_file.by])] = fields
    return rows
