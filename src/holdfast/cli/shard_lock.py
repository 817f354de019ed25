"""One process at a shard at a time, and none at the whole log dir meanwhile."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from holdfast.errors import InputError

from .log_dir_lock import LOCK, kept_in
from .shard import Shard

_PATIENCE = 5.0
"""Seconds: a lock that another process only tries is free again by then."""


@contextmanager
def holding_shard(log_dir: str, shard: Shard, *, alone: bool = True) -> Iterator[None]:
    """Keep other processes from a shard of a local log dir.

    Args:
        log_dir: a local folder; any fsspec URL is left unlocked.
        shard: what is asked here.
        alone: whether nobody holds the whole log dir on behalf of its shards.

    Raises:
        InputError: another process is at this shard, at the whole log dir, or at a shard of
            another split, which holds some of the same questions.
    """
    if kept_in(log_dir) is None:
        yield
        return
    folder = Path(log_dir).absolute()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"cannot be written ({error.strerror})", log_dir, remedy="Give another --log-dir"
        ) from error
    # its own first: of two that exclude each other, at least one finds the other
    with _held(folder / _name(shard), log_dir, f"shard {shard}"):
        if alone:
            _check_free(folder / LOCK, log_dir, "the whole of it")
        check_shards_free(log_dir, shard.of)
        yield


def check_shards_free(log_dir: str, of: int | None = None) -> None:
    """Refuse to go on where other processes are at shards.

    Args:
        log_dir: a local folder or any fsspec URL.
        of: the split whose shards may be worked at, None for none.

    Raises:
        InputError: one is held.
    """
    if kept_in(log_dir) is None:
        return
    for path in sorted(Path(log_dir).absolute().glob(".shard-*-of-*.lock")):
        _, number, _, split = path.stem.split("-")
        if split != str(of):
            _check_free(path, log_dir, f"shard {number}/{split}")


def _name(shard: Shard) -> str:
    return f".shard-{shard.number}-of-{shard.of}.lock"


@contextmanager
def _held(path: Path, log_dir: str, what: str) -> Iterator[None]:
    try:
        with FileLock(path, timeout=_PATIENCE):
            yield
    except Timeout:
        raise InputError(
            f"another process is at work here, at {what}",
            log_dir,
            remedy="Wait until it is done, or give another --log-dir",
        ) from None


def _check_free(path: Path, log_dir: str, what: str) -> None:
    if path.exists():
        with _held(path, log_dir, what):
            pass
