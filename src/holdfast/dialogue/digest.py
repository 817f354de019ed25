"""What tells requests apart."""

import hashlib
import json

_encoded = json.JSONEncoder(default=str).encode


def digest(*parts: object) -> str:
    """SHA-256 of the parts (hex, 32 characters)."""
    return hashlib.sha256(_encoded(parts).encode()).hexdigest()[:32]
