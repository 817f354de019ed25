"""Folders of transcripts: the files that a mapping reads, and the files joined to them."""

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
    """Return the transcript files that a path and a mapping name.

    Raises:
        InputError: the path is a folder but the mapping reads a file, or the reverse. Or no file
            matches.
    """
    if mapping.files is None:
        return [path]
    if not path.is_dir():
        remedy = f"Give the folder that contains {mapping.files}"
        raise InputError(
            "is not a folder, but the mapping reads a folder", str(path), remedy=remedy
        )
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
    """Yield the records of a file with its name and the rows of the joined files.

    Args:
        records: records of the file.
        folder: folder with the files of the mapping.
        source: the file.
        mapping: mapping that names the joined files.
        skip_bad: whether to yield the error in place of a row that cannot be read or joined.

    Raises:
        InputError: a joined file is missing or broken, or lacks a row for a record.
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
        problem = f"is '{key[:40]}', which {joined_file.file} does not contain"
        raise InputError(problem, str(source), number, joined_file.by, "Give the whole folder")
    return rows_by_key[key]


def _read_joined_file(path: Path, joined_file: JoinedFile, skip_bad: bool) -> Mapping[str, Any]:
    """Return the rows by their join column, or the one object of a file.

    A bad row can be skipped. The records that need it are then counted as bad rows.
    """
    if joined_file.by is None:
        try:
            content = yaml.safe_load(text_of(path))  # JSON is YAML
        except yaml.YAMLError as error:
            problem = f"broken YAML ({' '.join(str(error).split())[:200]})"
            raise InputError(problem, str(path), remedy="Correct the file") from error
        if not isinstance(content, Mapping):
            raise InputError("is not an object", str(path), remedy="Write names and values")
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
