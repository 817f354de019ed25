"""Files that a user names: found and read, or refused in one line."""

from pathlib import Path

from .errors import InputError


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
        raise InputError(f"is no path ({reason})", name, remedy="Check the path") from error
    return path


def text_of(path: Path, remedy: str = "Check the path") -> str:
    """The text of a file, without a byte-order mark.

    Args:
        path: the file.
        remedy: what to do where there is none.

    Raises:
        InputError: it cannot be read, or is not UTF-8.
    """
    shown = str(path)
    try:
        return path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError as error:
        raise InputError("no such file", shown, remedy=remedy) from error
    except UnicodeDecodeError as error:
        raise InputError(
            f"is not UTF-8 (byte {error.start})", shown, remedy="Save it as UTF-8"
        ) from error
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(f"cannot be read ({reason})", shown, remedy=remedy) from error
