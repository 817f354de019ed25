"""Texts of others inside a prompt: cut to a length, and kept apart by a line of their own."""

import hashlib

_HEAD, _TAIL = 8_000, 16_000


def excerpt(text: str) -> str:
    """The text; of more than 24,000 characters the first 8,000 and the last 16,000."""
    return text if len(text) <= _HEAD + _TAIL else f"{text[:_HEAD]}\n\n{text[-_TAIL:]}"


def fence(*texts: str) -> str:
    """A line that stands in none of the texts, the same for the same texts."""
    seed = "\x1f".join(texts)
    while True:
        seed = hashlib.sha256(seed.encode("utf-8", "surrogatepass")).hexdigest()
        line = f"===== {seed[:16]} ====="
        if not any(line in text for text in texts):
            return line
