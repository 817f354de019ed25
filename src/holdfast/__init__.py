"""holdfast measures whether medical language models keep right answers under challenge.

The functions mirror the commands. ``run`` runs a study on models and ``plan`` counts its calls
beforehand. ``read_turns`` loads the turns. ``table`` and ``figure`` measure them, ``compare`` and
``gate`` decide on them, and ``report`` builds the page. ``power`` computes how many questions you
need to detect a difference. Unusable input raises ``holdfast.errors.InputError`` with a remedy.

Slow imports wait until a function is called.
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
    """Module that keeps ``report`` a function when the package of that name is imported."""

    def __setattr__(self, name: str, value: object) -> None:
        if not (name == "report" and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
