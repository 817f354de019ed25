"""Parquet files: written with a digest of their bytes, and checked by it where they have one."""

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
"""In the metadata of a file: SHA-256 of all its bytes, these digits left out."""

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
    """Write a table with its digest.

    Args:
        frame: the table.
        file: opened to be written, at its start.
        metadata: of the file, by key.
    """
    about = {**(metadata or {}), _DIGEST: _MARK + "0" * _DIGITS}
    # what is no file on a disk, such as a pipe, cannot be read again
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
    """Whether a file is as it was written; None where it has no digest.

    Args:
        source: its path, or all its bytes.

    Raises:
        OSError: it cannot be read.
    """
    if isinstance(source, bytes):
        return _matches_digest(source)
    with source.open("rb") as file:
        if not source.stat().st_size:  # no memory can be mapped to
            return None
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            return _matches_digest(content)


@contextmanager
def reading_table(file_name: str, noun: str, remedy: str) -> Iterator[None]:
    """Around everything that reads a table from a file; an ``InputError`` where that fails.

    Args:
        file_name: the file as errors name it.
        noun: the fault.
        remedy: what to do about it.
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
    """Where the digits of the digest begin, -1 where there are none."""
    # the metadata is the last part of a file: what looks like it in a reply comes before
    start = content.rfind(_MARK.encode())
    return start + len(_MARK) if start >= 0 else -1


def _digest(content: bytes | mmap.mmap, place: int) -> bytes:
    with memoryview(content) as view:
        digest = hashlib.sha256(view[:place])
        digest.update(view[place + _DIGITS :])
    return digest.hexdigest().encode()
