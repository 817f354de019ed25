"""Finished generations, kept so that none is asked for twice."""

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
"""In the environment: where generations are kept, instead of beside the logs."""

_KEY, _SUM, _OUTPUT, _END = b'{"key":"', b'","crc32":"', b'","output":', b"}\n"
_DIGITS = 32
_AT = len(_KEY) + _DIGITS + len(_SUM)
"""Where in a line its checksum stands, of all before it and all behind it."""

_BEHIND = _AT + 8

_Place = tuple[Path, int]
"""A file, and where in it a line begins."""


class Generations:
    """Finished generations of a folder by their key.

    Each process appends to a JSONL file of its own, so nobody waits for anybody and a kill can
    tear no line but the last, which then does not count. Each line has a checksum; one that is
    damaged does not count either. All files of the folder are read as the first generation is
    looked for. In memory are places alone, some 200 bytes a generation.
    """

    def __init__(self, folder: Path) -> None:
        """Keep them in that folder; it is made with the first of them."""
        self._folder = folder
        self._own: tuple[Path, FileIO] | None = None
        self._damaged: Counter[Path] = Counter()

    def __len__(self) -> int:
        """How many there are."""
        return len(self._places)

    def __contains__(self, key: str) -> bool:
        """Whether there is one under that key."""
        return bytes.fromhex(key) in self._places

    @property
    def damaged(self) -> int:
        """How many lines have another checksum than their content."""
        len(self)  # reads them
        return self._damaged.total()

    def mend(self) -> None:
        """Leave damaged lines out of their files; no other process may write meanwhile."""
        for path in self._damaged:
            with path.open("rb") as file, replacing(path) as copy:
                copy.writelines(line for line in file if _content(line))
        self._damaged.clear()
        vars(self).pop("_places", None)

    def get(self, key: str) -> ModelOutput | None:
        """What was generated under that key, None if nothing was.

        Args:
            key: digest of everything that the reply hangs on (hex, 32 characters).
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
        except (OSError, ValidationError):  # no longer there: it is asked for again
            return None

    def put(self, key: str, output: ModelOutput) -> None:
        """Keep what was generated under a key.

        Where it cannot be written it is not kept: the reply is good, and the log may have room.

        Args:
            key: as for ``get``.
            output: what the provider returned, with its usage and time.
        """
        if any(choice.logprobs for choice in output.choices):
            # the standard library writes infinite ones so that they read back as they were
            reply = output.model_dump(mode="json", exclude={"completion"}, exclude_none=True)
            text = json.dumps(reply, separators=(",", ":"))
        else:
            text = output.model_dump_json(exclude={"completion"}, exclude_none=True)
        head = b"".join((_KEY, key.encode(), _SUM))
        tail = b"".join((_OUTPUT, text.encode(), _END))
        line = b"".join((head, _checksum(head, tail), tail))
        places = self._places  # read before there is a file of this process among them
        try:
            path, file = self._own = self._own or self._open_file()
            offset = file.tell()
            left = memoryview(line)
            while left:
                left = left[file.write(left) :]
        except OSError:
            self.close()  # what follows a torn line would be lost with it
            return
        places[bytes.fromhex(key)] = (path, offset)

    def close(self) -> None:
        """Close the file of this process; the next generation begins another."""
        if self._own is not None:
            self._own[1].close()
            self._own = None

    def _open_file(self) -> tuple[Path, FileIO]:
        self._folder.mkdir(parents=True, exist_ok=True)
        path = self._folder / f"{uuid4().hex}.jsonl"
        # not buffered: what is written is there after a kill
        return path, path.open("xb", buffering=0)

    @cached_property
    def _places(self) -> dict[bytes, _Place]:
        """Where each generation stands."""
        places: dict[bytes, _Place] = {}
        for path in self._folder.glob("*.jsonl"):
            offset = 0
            with path.open("rb") as file:
                for line in file:
                    if (content := _content(line)) is not None:
                        places[bytes.fromhex(content[0].decode())] = (path, offset)
                    elif line.endswith(b"\n"):  # no kill has torn it
                        self._damaged[path] += 1
                    offset += len(line)
        return places


def _content(line: bytes) -> tuple[bytes, bytes] | None:
    """Key and output of a line; None where it is torn or damaged."""
    head, tail = line[:_AT], line[_BEHIND:]
    if not tail.endswith(_END) or line[_AT:_BEHIND] != _checksum(head, tail):
        return None
    return head[len(_KEY) : -len(_SUM)], tail[len(_OUTPUT) : -len(_END)]


def _checksum(head: bytes, tail: bytes) -> bytes:
    return b"%08x" % zlib.crc32(tail, zlib.crc32(head))


def kept_elsewhere() -> Path | None:
    """Where the user has generations kept, None for the place that goes with the logs."""
    folder = os.environ.get(CACHE_DIR)
    return Path(folder) if folder else None


_current: ContextVar[Generations | None] = ContextVar("generations", default=None)
_of_user: dict[Path, Generations] = {}


@contextmanager
def keeping(folder: Path) -> Iterator[None]:
    """Keep the generations that are made inside in a folder."""
    generations = Generations(folder)
    token = _current.set(generations)
    try:
        yield
    finally:
        _current.reset(token)
        generations.close()


def generations() -> Generations:
    """Those of the run under way; of a task that another command line runs, those of the user."""
    if (current := _current.get()) is not None:
        return current
    folder = kept_elsewhere() or platformdirs.user_cache_path("holdfast") / "generations"
    return _of_user.setdefault(folder, Generations(folder))


def digest(*parts: object) -> str:
    """SHA-256 of the parts (hex, 32 characters)."""
    try:
        content = to_json(parts, serialize_unknown=True)
    except PydanticSerializationError:  # half a character, in a text of the user's
        content = json.dumps(parts, default=str).encode()
    return hashlib.sha256(content).hexdigest()[:32]
