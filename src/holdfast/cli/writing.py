"""Files that a command writes: whole, or not at all."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from holdfast.errors import InputError


@contextmanager
def whole_file(output: str | None, option: str = "-o FILE") -> Iterator[BinaryIO]:
    """A file to write to piece by piece that is there whole in the end, or not at all.

    Args:
        output: the file; None for standard output.
        option: what named the file.

    Raises:
        InputError: the file cannot be written.
    """
    if output is None:
        yield sys.stdout.buffer
        return
    try:
        path = _resolved(output)
        if path.exists() and not path.is_file():  # a pipe or a device must not be replaced
            with path.open("wb") as file:
                yield file
            return
        partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
        try:
            with partial.open("wb") as file:
                yield file
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(
            f"cannot be written ({error.strerror or error})",
            output,
            remedy=f"Give another {option}",
        ) from error


def write_whole(shown: str | bytes, output: str | None, option: str = "-o FILE") -> None:
    """Write to a file at once, or to standard output.

    Args:
        shown: what is written.
        output: the file; None for standard output.
        option: what named the file.

    Raises:
        InputError: the file cannot be written.
    """
    if output is None and isinstance(shown, str):
        sys.stdout.write(shown)
        return
    with whole_file(output, option) as file:
        file.write(shown.encode() if isinstance(shown, str) else shown)


def _resolved(output: str) -> Path:
    try:
        return Path(output).resolve()
    except (ValueError, RuntimeError) as error:  # a NUL in the path, links in a circle
        raise OSError(str(error)) from error
