"""Files that a command writes: whole, or not at all."""

import os
import sys
from pathlib import Path

from holdfast.errors import InputError


def write_whole(shown: str | bytes, output: str | None, option: str = "-o FILE") -> None:
    """Write to a file at once, or to standard output.

    Args:
        shown: what is written.
        output: the file; None for standard output.
        option: what named the file.

    Raises:
        InputError: the file cannot be written.
    """
    if output is None:
        if isinstance(shown, str):
            sys.stdout.write(shown)
        else:
            sys.stdout.buffer.write(shown)
        return
    whole = shown.encode() if isinstance(shown, str) else shown
    try:
        path = Path(output).resolve()
        if path.exists() and not path.is_file():  # a pipe or a device must not be replaced
            path.write_bytes(whole)
            return
        partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
        try:
            partial.write_bytes(whole)
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise InputError(
            f"cannot be written ({reason})", output, remedy=f"Give another {option}"
        ) from error
