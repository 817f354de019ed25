"""Reading and atomic writing of user files, and reading of packaged files."""

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
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from traceback import extract_tb
from types import ModuleType
from typing import Any, BinaryIO

from .errors import InputError, in_one_line, unwritable


def named_path(name: str) -> Path:
    """Return the path that a user has named, with ``~`` expanded to a home folder.

    Raises:
        InputError: the name is not a path, or the user after ``~`` does not exist.
    """
    try:
        path = Path(name).expanduser()
        path.exists()  # raises if no file can have the name
    except (OSError, ValueError, RuntimeError) as error:  # ValueError: a NUL; RuntimeError: ~nobody
        reason = getattr(error, "strerror", None) or str(error).rstrip(".")
        raise InputError(
            f"is not a valid path ({reason})", name, remedy="Correct the path"
        ) from error
    return path


def text_of(path: Path, remedy: str = "Check the path") -> str:
    """Return the text of a file, without a byte-order mark.

    Args:
        path: the file.
        remedy: remedy if the file is missing or unreadable.

    Raises:
        InputError: the file cannot be read, or is not UTF-8.
    """
    file_name = str(path)
    try:
        return path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError as error:
        raise InputError("no such file exists", file_name, remedy=remedy) from error
    except UnicodeDecodeError as error:
        raise InputError(
            f"is not UTF-8 (byte {error.start})", file_name, remedy="Save the file as UTF-8"
        ) from error
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(f"cannot be read ({reason})", file_name, remedy=remedy) from error


def toml_in(text: str, file_name: str) -> dict[str, Any]:
    """Parse the text of a TOML file.

    Args:
        text: text of the file.
        file_name: name of the file in errors.

    Raises:
        InputError: the text is not valid TOML, or nested too deeply.
    """
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"is not valid TOML ({error})", file_name, remedy="Correct the file at this place"
        ) from error


@cache
def packaged(package: str, *name: str) -> Mapping[str, Any]:
    """Load a TOML file bundled with a package of holdfast, once.

    Args:
        package: the package, such as ``__package__``.
        name: path of the file below the package.
    """
    return tomllib.loads(files(package).joinpath(*name).read_text("utf-8"))


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Open a temporary file that replaces ``path`` on success and is removed on failure."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        # a link or the leftover of a killed process must not be written to
        partial.unlink(missing_ok=True)
        with partial.open("xb+") as file:
            yield file
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


@contextmanager
def putting(log_dir: str, name: str) -> Iterator[BinaryIO]:
    """Open a file in a log directory that appears only when complete, never through a link.

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
    """Open an output file that appears only when complete.

    Args:
        output: the file, or None for standard output.
        option: option that named the file.

    Raises:
        InputError: the file cannot be written.
    """
    if output is None:
        if hasattr(sys.stdout, "buffer"):
            yield sys.stdout.buffer
        else:  # a notebook replaces standard output by a stream that accepts only text
            buffer = io.BytesIO()
            yield buffer
            sys.stdout.write(buffer.getvalue().decode())
        return
    try:
        path = unlinked(output, option)
        if path.exists() and not path.is_file():  # never replace a pipe or a device
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
    """Open an output folder that appears only when complete. On failure the old folder stays.

    Args:
        output: a new, empty or replaceable folder.
        option: option that named the folder.
        replaceable: tells whether a folder with content may be replaced.

    Raises:
        InputError: the folder has other content, or cannot be written.
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
            raise InputError("already exists", output, field=option, remedy="Name a new folder")
        try:
            partial.mkdir(parents=True)
            yield partial
            if folder.exists():
                folder.rename(old)
            partial.rename(folder)
        finally:
            # after any failure, the old folder must be back in place
            if old.exists() and not folder.exists():
                old.rename(folder)
            shutil.rmtree(partial, ignore_errors=True)
            shutil.rmtree(old, ignore_errors=True)
    except OSError as error:
        raise unwritable(output, error, option) from error


def _put_back(folder: Path, replaceable: Callable[[Path], bool]) -> None:
    """Restore a folder that a killed process had set aside."""
    if folder.exists() or not folder.parent.is_dir():
        return
    name = re.compile(rf"\.{re.escape(folder.name)}\.\d+\.old")
    aside = [path for path in folder.parent.iterdir() if name.fullmatch(path.name)]
    for path in sorted(aside, key=lambda path: path.stat().st_mtime_ns, reverse=True):
        # a killed deletion can leave a partial folder
        if path.is_dir() and not path.is_symlink() and replaceable(path):
            path.rename(folder)
            return


def write_whole(content: str | bytes, output: str | None, option: str = "-o FILE") -> None:
    """Write content to a file atomically, or to standard output.

    Args:
        content: text or bytes to write.
        output: the file, or None for standard output.
        option: option that named the file.

    Raises:
        InputError: the file cannot be written.
    """
    if output is None and isinstance(content, str):
        sys.stdout.write(content)
        return
    with whole_file(output, option) as file:
        file.write(content.encode() if isinstance(content, str) else content)


def unlinked(output: str, option: str) -> Path:
    """Return the path of an output, and refuse links.

    In a folder that someone else created, a link could lead to any file of the user.

    Args:
        output: the file or folder.
        option: option that named the output.

    Raises:
        InputError: the output is a link, or not a path.
    """
    path = Path(output)
    if "\0" in output:
        raise unwritable(output, OSError("embedded null byte"), option)
    # os.path.islink is False for a path that is too long, where Path.is_symlink raises
    if os.path.islink(path) and not path.is_relative_to("/dev"):  # /dev/stdout is a link
        raise InputError(
            "is a link, and holdfast does not write through links", output,
            remedy=f"Remove the link, or give another {option}",
        )  # fmt: skip
    return path


def import_file(path: Path, module_name: str, file: str) -> ModuleType:
    """Import a Python file that the user has named, without a ``__pycache__`` next to it.

    Args:
        path: absolute path of the file.
        module_name: name of the module.
        file: the file in messages.

    Raises:
        InputError: the file cannot be imported.
    """
    spec = spec_from_file_location(module_name, path)
    if spec is None or spec.loader is None:
        raise InputError("is not a module", file, remedy="Give a Python file")
    module = module_from_spec(spec)
    sys.modules[module_name] = module  # dataclasses look up their annotations there
    writes_no_bytecode = sys.dont_write_bytecode
    sys.dont_write_bytecode = True
    try:
        spec.loader.exec_module(module)
    except BaseException as error:
        del sys.modules[module_name]
        if isinstance(error, KeyboardInterrupt | InputError):
            raise
        # the user's code can fail in any way, and may exit
        problem = f"cannot be imported ({type(error).__name__}: {in_one_line(error)})"
        raise InputError(
            problem, file, row=line_in(error, path), remedy="Correct the file"
        ) from error
    finally:
        sys.dont_write_bytecode = writes_no_bytecode
    return module


def line_in(error: BaseException, path: Path) -> int | None:
    """Return the line of a file in which an error was raised, None if it was elsewhere."""
    frames = reversed(extract_tb(error.__traceback__))
    return next((frame.lineno for frame in frames if frame.filename == str(path)), None)


def is_valid_text(text: str) -> bool:
    """Whether UTF-8 can encode the text, which excludes lone surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
