"""Parquet files, written with a digest of their bytes and checked against the digest."""

import hashlib
import io
import mmap
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, BinaryIO

import polars as pl

from .errors import InputError, in_one_line

_COMPRESSION: dict[str, Any] = {"compression": "zstd", "row_group_size": 4096}

_DIGEST = "holdfast_digest"
"""Metadata key of the SHA-256 of all bytes of the file, except the digits of the digest."""

_MARK = "holdfast-sha256:"
_DIGITS = 64

_UNREADABLE = (
    OSError, ValueError, RecursionError, pl.exceptions.PolarsError,
    pl.exceptions.PanicException,  # derives from BaseException
)  # fmt: skip

DAMAGE_NOTE = "is damaged (its digest is of other bytes)"


def write_parquet(
    frame: pl.LazyFrame | pl.DataFrame, file: BinaryIO, metadata: Mapping[str, str] | None = None
) -> None:
    """Write a table to Parquet with a digest of the file.

    Args:
        frame: the table.
        file: file opened for writing, at its start.
        metadata: metadata of the file, by key.
    """
    about = {**(metadata or {}), _DIGEST: _MARK + "0" * _DIGITS}
    # a pipe cannot be read back to compute the digest
    on_disk = isinstance(file, io.BufferedRandom)
    with nullcontext(file) if on_disk else tempfile.TemporaryFile() as whole:
        frame.lazy().sink_parquet(whole, **_COMPRESSION, metadata=about)
        whole.flush()
        with mmap.mmap(whole.fileno(), 0) as content:
            place = _place(content)
            content[place : place + _DIGITS] = _digest(content, place)
        if not on_disk:
            whole.seek(0)
            shutil.copyfileobj(whole, file)


def is_whole(source: Path | bytes) -> bool | None:
    """Whether a file matches its digest. None if the file has no digest.

    Args:
        source: path of the file, or all its bytes.

    Raises:
        OSError: the file cannot be read.
    """
    if isinstance(source, bytes):
        return _matches_digest(source)
    with source.open("rb") as file:
        if not source.stat().st_size:  # an empty file cannot be memory-mapped
            return None
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            return _matches_digest(content)


@contextmanager
def reading_table(file_name: str, noun: str, remedy: str) -> Iterator[None]:
    """Turn errors while reading a table into an ``InputError``.

    Args:
        file_name: name of the file in errors.
        noun: the fault.
        remedy: the remedy.
    """
    try:
        yield
    except _UNREADABLE as error:
        raise InputError(f"{noun} ({in_one_line(error)})", file_name, remedy=remedy) from error


def _matches_digest(content: bytes | mmap.mmap) -> bool | None:
    place = _place(content)
    if place < 0:
        return None
    return content[place : place + _DIGITS] == _digest(content, place)


def _place(content: bytes | mmap.mmap) -> int:
    """Return the offset of the digest's digits, or -1 if the file has no digest."""
    # metadata is the last part of a file, so a look-alike in a reply comes earlier
    start = content.rfind(_MARK.encode())
    return start + len(_MARK) if start >= 0 else -1


def _digest(content: bytes | mmap.mmap, place: int) -> bytes:
    with memoryview(content) as view:
        digest = hashlib.sha256(view[:place])
        digest.update(view[place + _DIGITS :])
    return digest.hexdigest().encode()
