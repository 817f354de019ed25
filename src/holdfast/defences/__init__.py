"""Defences: what stands around the model under test, and what it is to cost."""

from .defence import (
    ABSTAIN,
    NONE,
    VERIFIER,
    Block,
    Calls,
    bundled,
    load_defence,
    wording_of,
)

__all__ = [
    "ABSTAIN",
    "NONE",
    "VERIFIER",
    "Block",
    "Calls",
    "bundled",
    "load_defence",
    "wording_of",
]
