"""Files: those that a user names, read, written whole or refused in one line, and the package's."""

import io
import os
import re
import shutil
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, BinaryIO

from .errors import InputError, unwritable


def named_path(name: str) -> Path:
    """The path that a user has named, with ``~`` for a home folder.

    Raises:
        InputError: there is no such user.
    """
    try:
        path = Path(name).expanduser()
        path.exists()  # raises where it is a name that no file can have
    except (OSError, ValueError, RuntimeError) as error:  # ValueError: a NUL; RuntimeError: ~nobody
        reason = getattr(error, "strerror", None) or str(error).rstrip(".")
        raise InputError(f"is not a path ({reason})", name, remedy="Check the path") from error
    return path


def text_of(path: Path, remedy: str = "Check the path") -> str:
    """The text of a file, without a byte-order mark.

    Args:
        path: the file.
        remedy: what to do where there is none.

    Raises:
        InputError: it cannot be read, or is not UTF-8.
    """
    file_name = str(path)
    try:
        return path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError as error:
        raise InputError("no such file", file_name, remedy=remedy) from error
    except UnicodeDecodeError as error:
        raise InputError(
            f"is not UTF-8 (byte {error.start})", file_name, remedy="Save it as UTF-8"
        ) from error
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(f"cannot be read ({reason})", file_name, remedy=remedy) from error


def toml_in(text: str, file_name: str) -> dict[str, Any]:
    """What a TOML file holds.

    Args:
        text: the file's text.
        file_name: the file as errors name it.

    Raises:
        InputError: it is not valid, or nested too deeply.
    """
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"is not valid TOML ({error})", file_name, remedy="Correct the file"
        ) from error


@cache
def packaged(package: str, *name: str) -> Mapping[str, Any]:
    """A TOML file that comes with a package of ours, read once.

    Args:
        package: the package, such as ``__package__``.
        name: the file's path below it.
    """
    return tomllib.loads(files(package).joinpath(*name).read_text("utf-8"))


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A file beside a path that takes its place in the end, or leaves nothing behind."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        partial.unlink(missing_ok=True)  # a link must not lead the way, nor what a kill has left
        with partial.open("xb+") as file:
            yield file
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


@contextmanager
def putting(log_dir: str, name: str) -> Iterator[BinaryIO]:
    """A file to write to that stands in a log dir in the end, whole and never through a link.

    Args:
        log_dir: a local folder or any fsspec URL.
        name: name of the file.
    """
    if "://" in log_dir:
        import fsspec  # slow to import

        with fsspec.open(f"{log_dir.rstrip('/')}/{name}", "wb") as file:
            yield file
        return
    Path(log_dir).mkdir(parents=True, exist_ok=True)
    with replacing(Path(log_dir, name)) as file:
        yield file


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
        if hasattr(sys.stdout, "buffer"):
            yield sys.stdout.buffer
        else:  # replaced by what takes text alone, as in a notebook
            buffer = io.BytesIO()
            yield buffer
            sys.stdout.write(buffer.getvalue().decode())
        return
    try:
        path = unlinked(output, option)
        if path.exists() and not path.is_file():  # a pipe or a device must not be replaced
            with path.open("wb") as file:
                yield file
            return
        with replacing(path) as file:
            yield file
    except OSError as error:
        raise unwritable(output, error, option) from error


@contextmanager
def whole_folder(
    output: str, option: str, replaceable: Callable[[Path], bool] = lambda _: False
) -> Iterator[Path]:
    """A folder to write into that is there whole in the end, or as it was before.

    Args:
        output: the folder: new or empty, or one that may be replaced.
        option: what named the folder.
        replaceable: whether a folder that holds something may be.

    Raises:
        InputError: it holds something else, or cannot be written.
    """
    folder = Path(os.path.abspath(unlinked(str(named_path(output)), option)))
    try:
        _put_back(folder, replaceable)
        partial, old = (
            folder.parent / f".{folder.name}.{os.getpid()}.{end}" for end in ("partial", "old")
        )
        if folder.exists() and (
            not folder.is_dir() or (any(folder.iterdir()) and not replaceable(folder))
        ):
            raise InputError("exists already", output, field=option, remedy="Name a new folder")
        try:
            partial.mkdir(parents=True)
            yield partial
            if folder.exists():
                folder.rename(old)
            partial.rename(folder)
        finally:
            # whatever went wrong in between, what was there is put back
            if old.exists() and not folder.exists():
                old.rename(folder)
            shutil.rmtree(partial, ignore_errors=True)
            shutil.rmtree(old, ignore_errors=True)
    except OSError as error:
        raise unwritable(output, error, option) from error


def _put_back(folder: Path, replaceable: Callable[[Path], bool]) -> None:
    """Restore what a process had set aside when it was killed before the new folder stood."""
    if folder.exists() or not folder.parent.is_dir():
        return
    name = re.compile(rf"\.{re.escape(folder.name)}\.\d+\.old")
    aside = [path for path in folder.parent.iterdir() if name.fullmatch(path.name)]
    for path in sorted(aside, key=lambda path: path.stat().st_mtime_ns, reverse=True):
        # a deletion that was killed leaves a part of one
        if path.is_dir() and not path.is_symlink() and replaceable(path):
            path.rename(folder)
            return


def write_whole(content: str | bytes, output: str | None, option: str = "-o FILE") -> None:
    """Write to a file at once, or to standard output.

    Args:
        content: what is written.
        output: the file; None for standard output.
        option: what named the file.

    Raises:
        InputError: the file cannot be written.
    """
    if output is None and isinstance(content, str):
        sys.stdout.write(content)
        return
    with whole_file(output, option) as file:
        file.write(content.encode() if isinstance(content, str) else content)


def unlinked(output: str, option: str) -> Path:
    """The path of something to be written, which may not be a link.

    In a folder that somebody else has made, a link leads to any file of the user's.

    Args:
        output: the file or folder.
        option: what named it.

    Raises:
        InputError: it is a link, or no path.
    """
    path = Path(output)
    if "\0" in output:
        raise unwritable(output, OSError("embedded null byte"), option)
    if path.is_symlink() and not path.is_relative_to("/dev"):  # /dev/stdout is one
        raise InputError(
            "is a link, and holdfast writes through no link", output,
            remedy=f"Remove it, or give another {option}",
        )  # fmt: skip
    return path


def is_valid_text(text: str) -> bool:
    """Whether a file can hold the text: no lone surrogate in it."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
