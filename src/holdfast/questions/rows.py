"""Rows of JSONL, CSV, Parquet and Hugging Face data sets, with their numbers."""

import csv
import io
import json
import os
import socket
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import polars as pl

from holdfast.errors import InputError
from holdfast.files import named_path, text_of
from holdfast.parquet import reading_table

Row = tuple[int, dict[str, Any] | str]
"""1-based row number, with the fields of the row or the reason why it cannot be read."""

SUFFIXES = (".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".parquet")


_SHEETS = (".xlsx", ".xls", ".xlsm", ".ods", ".numbers")


def check_file(path: Path) -> None:
    """Refuse a path that is not a file of rows.

    Raises:
        InputError: the file is missing, a folder, or empty.
    """
    file_name = str(path)
    if not os.path.exists(path):  # False for a long name, which makes Path.exists raise
        raise InputError("no such file exists", file_name, remedy="Check the path")
    if path.is_dir():
        raise InputError("is a folder, not a file", file_name, remedy="Name one file in it")
    if path.stat().st_size == 0:
        raise InputError("is empty", file_name, remedy="Give a file with at least one row")


def read_rows(path: Path) -> Iterator[Row]:
    """Yield the rows of a table file, with a message in place of a broken row.

    Raises:
        InputError: the file is missing, empty, a folder, or of an unknown type.
    """
    check_file(path)
    match path.suffix.lower():
        case ".jsonl" | ".ndjson":
            yield from _jsonl(path)
        case ".json":
            for number, value in json_rows(text_of(path), path):
                yield number, value if isinstance(value, dict) else "is not a JSON object"
        case ".csv" | ".tsv":
            text = text_of(path)
            if "\0" in text:
                raise InputError(
                    "contains NUL bytes", str(path), remedy="Save it as plain text CSV"
                )
            yield from csv_rows(io.StringIO(text, newline=""), _delimiter(path, text), path)
        case ".parquet":
            yield from _parquet(path)
        case other:
            sheet = "Save the sheet as CSV in UTF-8 and use that file"
            remedy = sheet if other in _SHEETS else f"Use one of {', '.join(SUFFIXES)}"
            raise InputError(
                f"unknown file type '{other or path.name}'", str(path), None, None, remedy
            )


def _jsonl(path: Path) -> Iterator[Row]:
    # split at \n alone: JSON strings may contain U+2028 and control characters
    for number, line in enumerate(text_of(path).split("\n"), start=1):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except (
            ValueError,
            RecursionError,
        ) as error:  # ValueError also covers a number of 4,301 digits
            yield number, f"broken JSON ({error})"
            continue
        yield number, value if isinstance(value, dict) else "is not a JSON object"


def json_rows(text: str, path: Path) -> Iterator[tuple[int, Any]]:
    """Yield the elements of a JSON array with their numbers."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"broken JSON ({error})", str(path), remedy="Correct the file") from error
    if not isinstance(value, list):
        raise InputError(
            "is not a JSON array of objects",
            str(path),
            remedy="Give an array of objects, or use JSONL",
        )
    yield from enumerate(value, start=1)


def csv_rows(lines: Iterable[str], delimiter: str, path: Path) -> Iterator[Row]:
    """Yield the rows below the header with their numbers, without empty rows."""
    csv.field_size_limit(2**31 - 1)
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    number = 0
    try:
        header = next(reader, [])
        twice = sorted({name for name in header if header.count(name) > 1})
        if twice:
            raise InputError(
                "is the name of two columns", str(path), None, twice[0], "Rename one of them"
            )
        for number, cells in enumerate(reader, start=1):
            if cells and len(cells) != len(header):
                yield number, f"has {len(cells)} cells, but the header has {len(header)}"
            elif cells:
                yield number, dict(zip(header, cells, strict=True))
    except csv.Error as error:
        raise InputError(
            f"broken CSV ({error})", str(path), number + 1, remedy="Check the quotes"
        ) from error


def _delimiter(path: Path, text: str) -> str:
    """Return the delimiter: a tab in TSV, else the comma, semicolon or tab of the header."""
    if path.suffix.lower() == ".tsv":
        return "\t"
    header = text.partition("\n")[0]
    return next((mark for mark in ",;\t" if mark in header), ",")


def _parquet(path: Path) -> Iterator[Row]:
    with reading_table(str(path), "cannot be read as Parquet", "Check the file"):
        frame = pl.read_parquet(path, glob=False)
    yield from enumerate(frame.iter_rows(named=True), start=1)


def split_spec(spec: str) -> tuple[str, str, str]:
    """Return name, revision and split of ``NAME[@REVISION][:SPLIT]``, empty if not given."""
    name, _, split = spec.partition(":")
    name, _, revision = name.partition("@")
    return name, revision, split


def read_hugging_face(
    spec: str, config: str | None = None, local_way: str = "a file, or hf:FOLDER"
) -> Iterator[Row]:
    """Yield the rows of ``NAME[@REVISION][:SPLIT]``, a Hub data set or a local folder.

    Args:
        spec: data set with revision and split.
        config: configuration of the data set.
        local_way: notation for a local copy, for errors.

    Raises:
        InputError: the data set cannot be loaded, or a Hub data set has no revision.
    """
    source_name = f"hf:{spec}"
    name, revision, split = split_spec(spec)
    local = named_path(name).is_dir()
    if not local and not revision:
        problem = "has no revision, so its questions could change during a study"
        raise InputError(problem, source_name, remedy=f"Pin one: hf:{name}@COMMIT[:SPLIT]")
    try:
        import datasets
        import huggingface_hub.constants
    except ImportError as error:
        raise InputError(
            "needs the package 'datasets'", source_name, remedy="pip install 'holdfast[hf]'"
        ) from error
    is_offline = not local and _is_hub_unreached()
    if is_offline:  # use the cache instead of waiting for the network
        datasets.config.HF_HUB_OFFLINE = huggingface_hub.constants.HF_HUB_OFFLINE = True
    try:
        source = str(named_path(name)) if local else name
        of = (source, config) if config else (source,)
        dataset = datasets.load_dataset(*of, revision=revision or None, split=split or "test")
    except Exception as error:  # the library raises many kinds of errors for this
        if is_offline:
            raise InputError(
                "the Hugging Face Hub cannot be reached, and its cache lacks this data set",
                source_name,
                remedy=f"Connect to the network, or give a copy: {local_way}",
            ) from error
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:300]
        raise InputError(
            f"cannot be loaded ({reason})",
            source_name,
            remedy="Check name, revision, split and network",
        ) from error
    yield from ((number, dict(row)) for number, row in enumerate(dataset, start=1))


_PATIENCE = 5.0
"""Seconds to wait for a connection to the Hub or to its proxy."""


def _is_hub_unreached() -> bool:
    """Return whether the Hub is unreachable. The Hub's client would try for half a minute."""
    from huggingface_hub import constants

    endpoint = urlsplit(constants.ENDPOINT)
    proxy = getproxies().get(endpoint.scheme)
    if proxy and not proxy_bypass(endpoint.hostname or ""):
        endpoint = urlsplit(proxy if "://" in proxy else f"//{proxy}", scheme=endpoint.scheme)
    try:
        port = endpoint.port or (443 if endpoint.scheme == "https" else 80)
        socket.create_connection((endpoint.hostname or "", port), _PATIENCE).close()
    except (OSError, ValueError):
        return True
    return False
