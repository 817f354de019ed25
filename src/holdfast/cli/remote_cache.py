"""Finished generations of a remote log dir: kept with its logs, as those of a local one are."""

import os
import tempfile
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

import fsspec

_WHERE = "INSPECT_CACHE_DIR"
_OFTEN = 1.0
"""Seconds between two bundles; what is younger than two of them is lost with its process."""


@contextmanager
def cache_beside(log_dir: str) -> Iterator[None]:
    """Work on a copy of the generations of a remote log dir, and bring new ones there.

    A local log dir has its cache in itself, and a cache dir that the user has set stays.

    Args:
        log_dir: a local folder or any fsspec URL.
    """
    if "://" not in log_dir or _WHERE in os.environ:
        yield
        return
    with tempfile.TemporaryDirectory(prefix="holdfast-") as folder:
        bundles = _Bundles(f"{log_dir.rstrip('/')}/.cache", Path(folder))
        bundles.fetch()
        os.environ[_WHERE] = folder
        done = threading.Event()

        def bring() -> None:
            while not done.wait(_OFTEN):
                bundles.bring()

        bringing = threading.Thread(target=bring, daemon=True)
        bringing.start()
        try:
            yield
        finally:
            done.set()
            bringing.join()
            del os.environ[_WHERE]
            for _ in range(2):  # nothing is being written any more
                bundles.bring()


class _Bundles:
    """Zip files of generations: one each second, not one for each of thousands."""

    def __init__(self, url: str, folder: Path) -> None:
        self._url = url
        self._folder = folder
        self._there: set[Path] = set()
        self._seen: set[Path] = set()

    def fetch(self) -> None:
        """Unpack every bundle that is there."""
        system, path = fsspec.url_to_fs(self._url)
        for name in sorted(system.glob(f"{path}/*.zip")):
            with (
                suppress(zipfile.BadZipFile),  # another shard is writing it
                system.open(name, "rb") as file,
                zipfile.ZipFile(file) as bundle,
            ):
                bundle.extractall(self._folder)
        self._there = self._files()

    def bring(self) -> None:
        """Bundle what is new since the last time, but for what may still be being written."""
        files = self._files()
        ready = (files & self._seen) - self._there
        self._seen = files
        if not ready:
            return
        try:
            system, path = fsspec.url_to_fs(self._url)
            system.makedirs(path, exist_ok=True)
            with (
                system.open(f"{path}/{uuid4().hex}.zip", "wb") as file,
                zipfile.ZipFile(file, "w") as bundle,
            ):
                for one in sorted(ready):
                    bundle.write(one, one.relative_to(self._folder))
        except Exception:  # each store raises its own; out of reach, they go with the next ones
            return
        self._there |= ready

    def _files(self) -> set[Path]:
        return {Path(folder) / name for folder, _, names in os.walk(self._folder) for name in names}
