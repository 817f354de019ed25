"""Log directory of a run: its name, its locks, and its stored generations."""

import os
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

import fsspec
from filelock import FileLock, Timeout

from holdfast.dialogue.generations import generations, keeping, kept_elsewhere
from holdfast.errors import InputError, counted, printable, unwritable
from holdfast.files import named_path, replacing
from holdfast.results.runs import set_aside

from .progress import Progress
from .shard import Shard

LOCK = ".holdfast.lock"
"""Lock file of the process that uses a log directory; the system releases it at its end."""

FOLDER = ".cache"
"""Folder of a log directory for its generations."""

PREPARATION = "preparation"
"""Folder of a log directory for the logs of its preparations."""

_HOLDER, _SHARDS = ".holdfast.pid", ".shard-*-of-*.lock"
_holding: set[Path] = set()

_PATIENCE = 5.0
"""Time in seconds to wait for a lock, which other processes may test briefly."""

_OFTEN = 1.0
"""Seconds between two uploads; later generations are lost if the process is killed."""


def as_log_dir(text: str) -> str:
    """Normalise the path or URL of a log directory."""
    log_dir = text.removeprefix("file://") if text.startswith("file:///") else text
    if "://" in log_dir:
        return _remote(log_dir)
    if bad_characters := [c for c in log_dir if c in "#?%" or not c.isprintable()]:
        raise InputError(
            f"'{text}' holds '{bad_characters[0]}'",
            field="--log-dir",
            remedy="Choose a folder name without it",
        )
    if not log_dir.strip():
        raise InputError("is empty", field="--log-dir", remedy="Name a folder")
    return str(named_path(log_dir))


def _remote(log_dir: str) -> str:
    protocol = log_dir.partition("://")[0]
    try:
        fsspec.get_filesystem_class(protocol)
    except (ValueError, ImportError) as error:
        raise InputError(
            f"'{protocol}://' cannot be a log directory ({error})",
            field="--log-dir",
            remedy="Name a folder, or a URL that fsspec knows",
        ) from error
    if protocol in ("http", "https"):
        raise InputError(
            f"'{protocol}://' can be read, but not written",
            field="--log-dir",
            remedy="Name a folder, or a store such as s3://BUCKET/FOLDER",
        )
    return log_dir


def kept_in(log_dir: str) -> str | None:
    """Return the folder of a local log directory, None for a remote one."""
    return None if "://" in log_dir else log_dir


def check_writable(log_dir: str) -> None:
    """Create the log directory, and raise an error before any request if it cannot be written."""
    if "://" in log_dir:
        return
    try:
        Path(log_dir).mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=log_dir).close()
    except OSError as error:
        raise unwritable(log_dir, error) from error


def without_damaged(log_dir: str, progress: Progress) -> None:
    """Rename damaged logs of a log directory, and report them."""
    for note in set_aside(log_dir):
        progress.say(f"Warning: {printable(note)}")


@contextmanager
def lock_log_dir(log_dir: str) -> Iterator[None]:
    """Lock a local log directory against other processes; a nested lock has no effect.

    Two processes would ask everything twice and overwrite each other's turns table.
    """
    folder = Path(log_dir).absolute()
    if kept_in(log_dir) is None or folder in _holding:
        yield
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _check_no_links(folder)
        lock = FileLock(folder / LOCK)
        lock.acquire(timeout=0)
        with replacing(folder / _HOLDER) as file:
            file.write(b"%d" % os.getpid())
    except Timeout:
        raise InputError(
            f"another process is using this log directory ({_holder(folder)})",
            log_dir,
            remedy="Wait until it has finished, or give another --log-dir",
        ) from None
    except OSError as error:
        raise unwritable(log_dir, error) from error
    _holding.add(folder)
    try:
        yield
    finally:
        _holding.discard(folder)
        with suppress(OSError):
            (folder / _HOLDER).unlink()
        lock.release()


def _check_no_links(folder: Path) -> None:
    """Raise an error if a log directory contains a link instead of a folder or lock file.

    Files there are replaced.
    """
    for path in (folder / FOLDER, folder / PREPARATION, folder / LOCK, *folder.glob(_SHARDS)):
        if path.is_symlink():
            raise InputError(
                "is a link, and holdfast writes through no link", str(path),
                remedy="Remove it; to keep generations elsewhere, set HOLDFAST_CACHE_DIR",
            )  # fmt: skip


def _holder(folder: Path) -> str:
    try:
        return f"pid {int((folder / _HOLDER).read_text('ascii'))}"
    except (OSError, ValueError):  # the other process has just started or is about to end
        return "pid not known"


def at_work(log_dir: str) -> bool:
    """Whether a process uses a local log directory or a shard of it."""
    folder = Path(log_dir)
    # do not try the lock of the directory, because a run that starts at that moment would fail
    with suppress(OSError, ValueError):
        os.kill(int((folder / _HOLDER).read_text("ascii")), 0)
        return True
    for path in folder.glob(_SHARDS):
        if path.is_symlink():
            continue
        try:
            with FileLock(path, timeout=0):
                pass
        except Timeout:
            return True
    return False


@contextmanager
def lock_shard(log_dir: str, shard: Shard, *, alone: bool = True) -> Iterator[None]:
    """Lock a shard of a local log directory against other processes."""
    if kept_in(log_dir) is None:
        yield
        return
    folder = Path(log_dir).absolute()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _check_no_links(folder)
    except OSError as error:
        raise unwritable(log_dir, error) from error
    # lock first, then check: at least one of two conflicting processes sees the other's lock
    with _hold_lock(folder / _name(shard), log_dir, f"shard {shard}"):
        if alone:
            _check_free(folder / LOCK, log_dir, "the whole of it")
        check_shards_free(log_dir, shard.of)
        yield


def check_shards_free(log_dir: str, of: int | None = None) -> None:
    """Raise an error if other processes run shards."""
    if kept_in(log_dir) is None:
        return
    for path in sorted(Path(log_dir).absolute().glob(_SHARDS)):
        _, number, _, split = path.stem.split("-")
        if split != str(of):
            _check_free(path, log_dir, f"shard {number}/{split}")


def _name(shard: Shard) -> str:
    return f".shard-{shard.number}-of-{shard.of}.lock"


@contextmanager
def _hold_lock(path: Path, log_dir: str, noun: str) -> Iterator[None]:
    try:
        with FileLock(path, timeout=_PATIENCE):
            yield
    except Timeout:
        raise InputError(
            f"another process is using {noun}",
            log_dir,
            remedy="Wait until it has finished, or give another --log-dir",
        ) from None


def _check_free(path: Path, log_dir: str, noun: str) -> None:
    if path.exists():
        with _hold_lock(path, log_dir, noun):
            pass


@contextmanager
def generation_store(log_dir: str) -> Iterator[None]:
    """Store generations in the log directory, or in the user's folder, within this context.

    For a remote log directory, a local copy is used, and new generations are uploaded.
    """
    local = kept_elsewhere() or (None if "://" in log_dir else Path(log_dir, FOLDER))
    if local is not None:
        with keeping(local):
            yield
        return
    with tempfile.TemporaryDirectory(prefix="holdfast-") as folder:
        parts = _Parts(f"{log_dir.rstrip('/')}/{FOLDER}", Path(folder))
        parts.fetch()
        finish = threading.Event()

        def bring() -> None:
            while not finish.wait(_OFTEN):
                parts.bring()

        bringing = threading.Thread(target=bring, daemon=True)
        bringing.start()
        try:
            with keeping(Path(folder)):
                yield
        finally:
            finish.set()
            bringing.join()
            parts.bring()


def name_damaged(log_dir: str, progress: Progress) -> None:
    """Report the number of damaged stored generations."""
    if damaged_files := generations().damaged:
        folder = kept_elsewhere() or f"{log_dir.rstrip('/')}/{FOLDER}"
        progress.say(
            f"Warning: {folder}: {counted(damaged_files, 'kept generation')} cannot be used "
            "(wrong checksum). Replies that no log contains are asked for again."
        )


class _Parts:
    """Uploader of new generations, with one file per second instead of one per reply."""

    def __init__(self, url: str, folder: Path) -> None:
        self._url = url
        self._folder = folder
        self._brought: dict[Path, int] = {}

    def fetch(self) -> None:
        """Download the complete lines of all parts into one file."""
        system, path = fsspec.url_to_fs(self._url)
        parts = system.glob(f"{path}/*.jsonl")
        if not parts:
            return
        fetched_file = self._folder / "fetched.jsonl"
        with fetched_file.open("wb") as file:
            for name in parts:
                file.write(_whole_lines(system.cat_file(name)))
        self._brought[fetched_file] = fetched_file.stat().st_size

    def bring(self) -> None:
        """Upload the lines that are new since the last upload."""
        for file in self._folder.glob("*.jsonl"):
            start = self._brought.get(file, 0)
            with file.open("rb") as lines:
                lines.seek(start)
                new = _whole_lines(lines.read())
            if not new:
                continue
            try:
                system, path = fsspec.url_to_fs(self._url)
                system.makedirs(path, exist_ok=True)
                with system.open(f"{path}/{uuid4().hex}.jsonl", "wb") as part:
                    part.write(new)
            except Exception:  # file systems raise various errors; retry with the next upload
                return
            self._brought[file] = start + len(new)


def _whole_lines(content: bytes) -> bytes:
    """Remove the last line if it is incomplete."""
    return content[: content.rfind(b"\n") + 1]
