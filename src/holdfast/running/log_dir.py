"""The log dir of a run: how it is spelled, who is at work in it, and the generations kept in it."""

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
"""Locked by the process that is at work in a log dir; of a dead one the system lets go."""

FOLDER = ".cache"
"""In a log dir: where its generations are."""

PREPARATION = "preparation"
"""In a log dir: the logs of what was made for its run."""

_HOLDER, _SHARDS = ".holdfast.pid", ".shard-*-of-*.lock"
_holding: set[Path] = set()

_PATIENCE = 5.0
"""Seconds: a lock that another process only tries is free again by then."""

_OFTEN = 1.0
"""Seconds between two parts that are brought; what is younger is lost with its process."""


def as_log_dir(text: str) -> str:
    """The log dir in the one spelling that everything downstream understands."""
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
    """The folder of a local log dir, None for a remote one."""
    return None if "://" in log_dir else log_dir


def check_writable(log_dir: str) -> None:
    """Make the log dir, and fail here if it can't be written, not when all is asked."""
    if "://" in log_dir:
        return
    try:
        Path(log_dir).mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=log_dir).close()
    except OSError as error:
        raise unwritable(log_dir, error) from error


def without_damaged(log_dir: str, progress: Progress) -> None:
    """Set aside what cannot be read in a log dir, and tell of it."""
    for note in set_aside(log_dir):
        progress.say(f"Warning: {printable(note)}")


@contextmanager
def holding(log_dir: str) -> Iterator[None]:
    """Keep other processes out of a local log dir; inside itself it does nothing.

    Two at once would ask everything twice and overwrite each other's turns table.
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
    """Refuse a log dir in which a link stands for a folder or a lock: files are replaced."""
    for path in (folder / FOLDER, folder / PREPARATION, folder / LOCK, *folder.glob(_SHARDS)):
        if path.is_symlink():
            raise InputError(
                "is a link, and holdfast writes through no link", str(path),
                remedy="Remove it; to keep generations elsewhere, set HOLDFAST_CACHE_DIR",
            )  # fmt: skip


def _holder(folder: Path) -> str:
    try:
        return f"pid {int((folder / _HOLDER).read_text('ascii'))}"
    except (OSError, ValueError):  # it has only just begun, or is about to end
        return "pid not known"


def at_work(log_dir: str) -> bool:
    """Whether a process is at work in a local log dir, or at a shard of it."""
    folder = Path(log_dir)
    # the lock of the whole is not tried: a run that begins at that moment would be refused
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
def holding_shard(log_dir: str, shard: Shard, *, alone: bool = True) -> Iterator[None]:
    """Keep other processes from a shard of a local log dir."""
    if kept_in(log_dir) is None:
        yield
        return
    folder = Path(log_dir).absolute()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _check_no_links(folder)
    except OSError as error:
        raise unwritable(log_dir, error) from error
    # its own first: of two that exclude each other, at least one finds the other
    with _hold_lock(folder / _name(shard), log_dir, f"shard {shard}"):
        if alone:
            _check_free(folder / LOCK, log_dir, "the whole of it")
        check_shards_free(log_dir, shard.of)
        yield


def check_shards_free(log_dir: str, of: int | None = None) -> None:
    """Refuse to go on where other processes are at shards."""
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
    """Keep the generations that are made inside beside the logs, or where the user wants them.

    Of a remote log dir a copy is worked on, and what is new in it brought there.
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
    """Tell how many of the generations that are kept are damaged."""
    if damaged_files := generations().damaged:
        folder = kept_elsewhere() or f"{log_dir.rstrip('/')}/{FOLDER}"
        progress.say(
            f"Warning: {folder}: {counted(damaged_files, 'kept generation')} cannot be used "
            "(wrong checksum). Replies that no log contains are asked for again."
        )


class _Parts:
    """What has been appended since the last time, as a file: one each second, not one a reply."""

    def __init__(self, url: str, folder: Path) -> None:
        self._url = url
        self._folder = folder
        self._brought: dict[Path, int] = {}

    def fetch(self) -> None:
        """Copy the whole lines of every part that is there, into one file."""
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
        """Bring the lines that are new since the last time."""
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
            except Exception:  # each store raises its own; they go with the next ones
                return
            self._brought[file] = start + len(new)


def _whole_lines(content: bytes) -> bytes:
    """Without the last line, where it is being written yet."""
    return content[: content.rfind(b"\n") + 1]
