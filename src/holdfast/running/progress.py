"""Progress reports of a run.

The module imports nothing of its package, because the options of the command line need it quickly.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.dialogue.budget import Budget


class Progress:
    """Progress on standard error as lines; subclasses can draw a bar."""

    def say(self, line: str) -> None:
        """Print a line."""
        sys.stderr.write(f"{line}\n")

    @contextmanager
    def asking(self, budget: "Budget", total: int | None) -> Iterator[None]:
        """Follow the answered requests within this context."""
        yield
