"""Stored generations, so that no generation is requested twice."""

import hashlib
import json
import os
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cached_property
from io import FileIO
from pathlib import Path
from uuid import uuid4

import platformdirs
from inspect_ai.model import ModelOutput
from pydantic import ValidationError
from pydantic_core import PydanticSerializationError, to_json

from holdfast.files import replacing

CACHE_DIR = "HOLDFAST_CACHE_DIR"
"""Environment variable with the folder of generations, instead of a folder with the logs."""

_KEY, _SUM, _OUTPUT, _END = b'{"key":"', b'","crc32":"', b'","output":', b"}\n"
_DIGITS = 32
_AT = len(_KEY) + _DIGITS + len(_SUM)
"""Position of the checksum in a line; it covers the text before and after it."""

_BEHIND = _AT + 8

_Place = tuple[Path, int]
"""File, and offset of a line in it."""


class Generations:
    """Stored generations of a folder, by key.

    Each process appends to a separate JSONL file, so processes never wait for each other. A killed
    process can truncate only its last line, which is then ignored. Each line has a checksum, and
    damaged lines are ignored too. All files of the folder are indexed at the first look-up. Memory
    contains only offsets, about 200 bytes per generation.
    """

    def __init__(self, folder: Path) -> None:
        """Use a folder, which is created with the first generation."""
        self._folder = folder
        self._own: tuple[Path, FileIO] | None = None
        self._damaged: Counter[Path] = Counter()

    def __len__(self) -> int:
        """Return the number of generations."""
        return len(self._places)

    def __contains__(self, key: str) -> bool:
        """Whether a generation has this key."""
        return bytes.fromhex(key) in self._places

    @property
    def damaged(self) -> int:
        """Number of lines whose checksum does not match their content."""
        len(self)  # builds the index
        return self._damaged.total()

    def mend(self) -> None:
        """Remove damaged lines from their files; no other process may write meanwhile."""
        for path in self._damaged:
            with path.open("rb") as file, replacing(path) as copy:
                copy.writelines(line for line in file if _content(line))
        self._damaged.clear()
        vars(self).pop("_places", None)

    def get(self, key: str) -> ModelOutput | None:
        """Return the generation with a key, None without one.

        Args:
            key: digest of everything that determines the reply (hex, 32 characters).
        """
        if (place := self._places.get(bytes.fromhex(key))) is None:
            return None
        path, offset = place
        try:
            with path.open("rb") as file:
                file.seek(offset)
                line = file.readline()
            entry, output = _content(line) or (None, b"")
            return ModelOutput.model_validate_json(output) if entry == key.encode() else None
        except (OSError, ValidationError):  # the file is gone, so the request is sent again
            return None

    def put(self, key: str, output: ModelOutput) -> None:
        """Store a generation under a key.

        If it cannot be written, it is not stored. The reply is still valid, and the log may have
        space.

        Args:
            key: as for ``get``.
            output: output of the provider, with its usage and time.
        """
        if any(choice.logprobs for choice in output.choices):
            # the standard library preserves infinite log-probabilities
            reply = output.model_dump(mode="json", exclude={"completion"}, exclude_none=True)
            text = json.dumps(reply, separators=(",", ":"))
        else:
            text = output.model_dump_json(exclude={"completion"}, exclude_none=True)
        head = b"".join((_KEY, key.encode(), _SUM))
        tail = b"".join((_OUTPUT, text.encode(), _END))
        line = b"".join((head, _checksum(head, tail), tail))
        places = self._places  # index first, before this process adds a file
        try:
            path, file = self._own = self._own or self._open_file()
            offset = file.tell()
            left = memoryview(line)
            while left:
                left = left[file.write(left) :]
        except OSError:
            self.close()  # lines after a truncated line would be lost
            return
        places[bytes.fromhex(key)] = (path, offset)

    def close(self) -> None:
        """Close the file of this process; the next generation opens a new file."""
        if self._own is not None:
            self._own[1].close()
            self._own = None

    def _open_file(self) -> tuple[Path, FileIO]:
        self._folder.mkdir(parents=True, exist_ok=True)
        path = self._folder / f"{uuid4().hex}.jsonl"
        # unbuffered, so that a kill loses nothing that was written
        return path, path.open("xb", buffering=0)

    @cached_property
    def _places(self) -> dict[bytes, _Place]:
        """File and offset of each generation."""
        places: dict[bytes, _Place] = {}
        for path in self._folder.glob("*.jsonl"):
            offset = 0
            with path.open("rb") as file:
                for line in file:
                    if (content := _content(line)) is not None:
                        places[bytes.fromhex(content[0].decode())] = (path, offset)
                    elif line.endswith(b"\n"):  # not truncated by a kill
                        self._damaged[path] += 1
                    offset += len(line)
        return places


def _content(line: bytes) -> tuple[bytes, bytes] | None:
    """Return key and output of a line, None if it is truncated or damaged."""
    head, tail = line[:_AT], line[_BEHIND:]
    if not tail.endswith(_END) or line[_AT:_BEHIND] != _checksum(head, tail):
        return None
    return head[len(_KEY) : -len(_SUM)], tail[len(_OUTPUT) : -len(_END)]


def _checksum(head: bytes, tail: bytes) -> bytes:
    return b"%08x" % zlib.crc32(tail, zlib.crc32(head))


def kept_elsewhere() -> Path | None:
    """Return the user's folder for generations, None for the folder with the logs."""
    folder = os.environ.get(CACHE_DIR)
    return Path(folder) if folder else None


_current: ContextVar[Generations | None] = ContextVar("generations", default=None)
_of_user: dict[Path, Generations] = {}


@contextmanager
def keeping(folder: Path) -> Iterator[None]:
    """Store generations in a folder within this context."""
    generations = Generations(folder)
    token = _current.set(generations)
    try:
        yield
    finally:
        _current.reset(token)
        generations.close()


def generations() -> Generations:
    """Return the generations of the current run, or those of the user in another command line."""
    if (current := _current.get()) is not None:
        return current
    folder = kept_elsewhere() or platformdirs.user_cache_path("holdfast") / "generations"
    return _of_user.setdefault(folder, Generations(folder))


def digest(*parts: object) -> str:
    """Return the SHA-256 of the parts (hex, 32 characters)."""
    try:
        content = to_json(parts, serialize_unknown=True)
    except PydanticSerializationError:  # lone surrogate in a text of the user
        content = json.dumps(parts, default=str).encode()
    return hashlib.sha256(content).hexdigest()[:32]
