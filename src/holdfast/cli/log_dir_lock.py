"""One process at a log dir at a time."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from holdfast.errors import InputError

LOCK = ".holdfast.lock"
"""Locked by the process that is at work in a log dir; of a dead one the system lets go."""

_HOLDER = ".holdfast.pid"
_held: set[Path] = set()


def kept_in(log_dir: str) -> str | None:
    """The folder of a local log dir, None for a remote one."""
    return None if "://" in log_dir else log_dir


@contextmanager
def holding(log_dir: str) -> Iterator[None]:
    """Keep other processes out of a local log dir; inside itself it does nothing.

    Two at once would ask everything twice and overwrite each other's turns table.

    Raises:
        InputError: another process is at it, or it cannot be written.
    """
    folder = Path(log_dir).absolute()
    if kept_in(log_dir) is None or folder in _held:
        yield
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder / LOCK)
        lock.acquire(timeout=0)
        (folder / _HOLDER).write_text(f"{os.getpid()}", "ascii")
    except Timeout:
        raise InputError(
            f"another process is at work here ({_holder(folder)})",
            log_dir,
            remedy="Wait until it is done, or give another --log-dir",
        ) from None
    except OSError as error:
        raise InputError(
            f"cannot be written ({error.strerror})", log_dir, remedy="Give another --log-dir"
        ) from error
    _held.add(folder)
    try:
        yield
    finally:
        _held.discard(folder)
        with suppress(OSError):
            (folder / _HOLDER).unlink()
        lock.release()


def _holder(folder: Path) -> str:
    try:
        return f"pid {int((folder / _HOLDER).read_text('ascii'))}"
    except (OSError, ValueError):  # it has only just begun, or is about to end
        return "pid not known"
