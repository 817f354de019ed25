"""Draws of the simulated models: hashes, so that no reply depends on machine or order."""

import hashlib
from collections.abc import Sequence


def chance(*key: object) -> float:
    """A number in [0, 1) fixed by the key."""
    digest = hashlib.sha256("\x1f".join(map(str, key)).encode()).digest()
    return int.from_bytes(digest[:7]) / 2**56


def pick(letters: Sequence[str], *key: object) -> str:
    """One of the letters, fixed by the key."""
    return letters[int(chance(*key) * len(letters))]
