"""Logs that cannot be read: named to who reads them, set aside by who writes the run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING
from zipfile import BadZipFile, ZipFile

from holdfast.errors import HoldfastError, InputError

if TYPE_CHECKING:
    from inspect_ai.log import EvalLog

ASIDE = ".damaged"
"""Ends the name of a log that was set aside."""


@contextmanager
def reading(log: str) -> Iterator[None]:
    """Around everything that reads a log.

    Args:
        log: where it is.

    Raises:
        InputError: it cannot be read.
    """
    try:
        yield
    except HoldfastError:
        raise
    except Exception as error:  # of the archive, of its packing, of what is packed in it
        raise InputError(
            f"is damaged and cannot be read ({type(error).__name__}: {str(error)[:200]})",
            log.removeprefix("file://"),
            remedy="Put a whole copy in its place, or give the command of its run again: that "
            "sets it aside and goes on from the kept generations",
        ) from error


def whole_header(log: str) -> EvalLog:
    """The header of a log all of which can be read.

    Args:
        log: where it is.

    Raises:
        InputError: it is damaged. A checksum tells so too, for spoilt text can be read.
    """
    import fsspec
    from inspect_ai.log import read_eval_log

    with reading(log):
        with fsspec.open(log, "rb") as file, ZipFile(file) as archive:
            if spoilt := archive.testzip():
                raise BadZipFile(f"the checksum of {spoilt} is another")
        return read_eval_log(log, header_only=True)


def set_aside(log_dir: str) -> list[str]:
    """Rename the logs of a log dir that cannot be read, so that its run can go on.

    Args:
        log_dir: a local folder or any fsspec URL; nobody else writes there.

    Returns:
        What happened to each, a sentence.
    """
    import fsspec
    from inspect_ai.log import list_eval_logs

    told = []
    for info in list_eval_logs(log_dir, formats=["eval"], recursive=False):
        if info.size == 0:  # killed before its first write
            continue
        try:
            whole_header(info.name)
        except InputError as error:
            files, path = fsspec.core.url_to_fs(info.name)
            files.mv(path, path + ASIDE)
            told.append(f"{error.file} {error.what}: set aside as {path}{ASIDE}")
    return told
