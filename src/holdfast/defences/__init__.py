"""Defences: what wraps the model under test."""

from .defence import (
    ABSTAIN,
    NO_DEFENCE,
    VERIFIER,
    DataBlock,
    bundled,
    load_defence,
    wording_of,
)
from .defended import DefendedLive
from .exchange import HANDED_OVER, KEPT_BY_DEFENCE, Defence, Defended, DefendedTurn

__all__ = [
    "ABSTAIN",
    "HANDED_OVER",
    "KEPT_BY_DEFENCE",
    "NO_DEFENCE",
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
