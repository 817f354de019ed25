"""Finished generations of a log dir: kept with its logs, of a remote one too."""

import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import fsspec

from holdfast.dialogue import keeping, kept_elsewhere

FOLDER = ".cache"
"""In a log dir: where its generations are."""

_OFTEN = 1.0
"""Seconds between two parts that are brought; what is younger is lost with its process."""


@contextmanager
def generations_beside(log_dir: str) -> Iterator[None]:
    """Keep the generations that are made inside beside the logs, or where the user wants them.

    Of a remote log dir a copy is worked on, and what is new in it brought there.

    Args:
        log_dir: a local folder or any fsspec URL.
    """
    local = kept_elsewhere() or (None if "://" in log_dir else Path(log_dir, FOLDER))
    if local is not None:
        with keeping(local):
            yield
        return
    with tempfile.TemporaryDirectory(prefix="holdfast-") as folder:
        parts = _Parts(f"{log_dir.rstrip('/')}/{FOLDER}", Path(folder))
        parts.fetch()
        done = threading.Event()

        def bring() -> None:
            while not done.wait(_OFTEN):
                parts.bring()

        bringing = threading.Thread(target=bring, daemon=True)
        bringing.start()
        try:
            with keeping(Path(folder)):
                yield
        finally:
            done.set()
            bringing.join()
            parts.bring()


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
        there = self._folder / "fetched.jsonl"
        with there.open("wb") as file:
            for name in parts:
                file.write(_whole_lines(system.cat_file(name)))
        self._brought[there] = there.stat().st_size

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
