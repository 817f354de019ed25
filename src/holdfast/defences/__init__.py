"""Defences: what wraps the model under test."""

from .defence import (
    ABSTAIN,
    NONE,
    VERIFIER,
    DataBlock,
    bundled,
    load_defence,
    wording_of,
)
from .defended import DefendedLive
from .exchange import HANDED_OVER, SETTLED, Defence, Defended, DefendedTurn

__all__ = [
    "ABSTAIN",
    "HANDED_OVER",
    "NONE",
    "SETTLED",
    "VERIFIER",
    "DataBlock",
    "Defence",
    "Defended",
    "DefendedLive",
    "DefendedTurn",
    "bundled",
    "load_defence",
    "wording_of",
]
