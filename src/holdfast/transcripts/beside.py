"""Folders of transcripts: the files that a mapping reads in one, and those joined with them."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from holdfast.errors import InputError, did_you_mean
from holdfast.files import text_of

from .mapping import Beside
from .mapping import Mapping as Mapped
from .records import Record, fields_of, read_records


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


def with_beside(
    records: Iterable[Record], folder: Path, source: Path, mapping: Mapped
) -> Iterator[Record]:
    """The records of a file with its own name and what stands in the files beside it.

    Raises:
        InputError: a file beside it is missing or broken, or has no row for one of these.
    """
    own = {"file": source.relative_to(folder).with_suffix("").as_posix()}
    known = {name: _read(folder / one.file, one) for name, one in mapping.beside.items()}
    for record in records:
        fields = fields_of(record, str(source))
        joined: dict[str, Any] = {}
        for name, one in mapping.beside.items():
            if one.by is None:
                joined[name] = known[name]
                continue
            key = str(fields.get(one.by))
            if key not in known[name]:
                what = f"is '{key[:40]}', which {one.file} does not have"
                raise InputError(what, str(source), record[0], one.by, "Give the whole folder")
            joined[name] = known[name][key]
        yield record[0], {**fields, **own, **joined}


def _read(path: Path, told: Beside) -> Mapping[str, Any]:
    """Rows by the column that joins them, or the one object of a file."""
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
        fields = fields_of(record, str(path))
        if told.by not in fields:
            remedy = did_you_mean(told.by, fields)
            raise InputError("is missing", str(path), record[0], told.by, remedy)
        rows[str(fields[told.by])] = fields
    return rows
