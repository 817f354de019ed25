"""holdfast: does a medical language model hold fast?

What the commands do, from Python: ``run`` puts a study to models, ``plan`` counts it before,
``read_turns`` reads what was said, ``table`` and ``figure`` measure it, ``compare`` and ``gate``
decide on it, ``report`` makes its page, and ``power`` says how many questions a difference needs.
What cannot be used raises ``holdfast.errors.InputError`` with the remedy.

Nothing slow is imported before a function is called.
"""

import sys
from types import ModuleType

from .api import (
    BATCH,
    CONVERSATIONS,
    Decision,
    Leaderboard,
    Page,
    compare,
    designs,
    figure,
    gate,
    leaderboard,
    looks,
    plan,
    power,
    read_turns,
    report,
    run,
    table,
    verdict,
)

__all__ = [
    "BATCH",
    "CONVERSATIONS",
    "Decision",
    "Leaderboard",
    "Page",
    "compare",
    "designs",
    "figure",
    "gate",
    "leaderboard",
    "looks",
    "plan",
    "power",
    "read_turns",
    "report",
    "run",
    "table",
    "verdict",
]


class _Package(ModuleType):
    """Keeps ``report`` a function when the package of that name is imported."""

    def __setattr__(self, name: str, value: object) -> None:
        if not (name == "report" and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
