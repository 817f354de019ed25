"""A study put to models: planned, prepared, run, gone on with, split into shards, read again.

Nothing is imported here, because help and bad usage on the command line need its options and none
of its other modules.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.dialogue.budget import Budget


class Progress:
    """What is told while a study runs: lines on standard error, and no bar unless one is drawn."""

    def say(self, line: str) -> None:
        """Tell one line."""
        sys.stderr.write(f"{line}\n")

    @contextmanager
    def asking(self, budget: "Budget", total: int | None) -> Iterator[None]:
        """Follow the requests that are answered inside."""
        yield
