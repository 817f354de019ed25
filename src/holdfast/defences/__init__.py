"""Defences: what wraps the model under test."""

from .defence import (
    ABSTAIN,
    NONE,
    VERIFIER,
    Block,
    bundled,
    load_defence,
    wording_of,
)
from .exchange import HANDED_OVER, SETTLED, Defence, Defended, Exchange
from .live import DefendedLive

__all__ = [
    "ABSTAIN",
    "HANDED_OVER",
    "NONE",
    "SETTLED",
    "VERIFIER",
    "Block",
    "Defence",
    "Defended",
    "DefendedLive",
    "Exchange",
    "bundled",
    "load_defence",
    "wording_of",
]
