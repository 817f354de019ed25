"""Packing: data of the page as compressed text that a browser opens by itself."""

import base64
import json
import zlib
from collections.abc import Sequence
from typing import Any

_RAW = -15
"""Window of raw deflate, without a header: ``deflate-raw`` of the browser."""


def deflated(value: Any) -> str:
    """A value as JSON, raw deflate and base64; its letters are none that markup knows.

    Args:
        value: what JSON can say.
    """
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    packer = zlib.compressobj(9, zlib.DEFLATED, _RAW)
    # half a character, which no text in UTF-8 can hold, becomes an escape that JSON knows
    data = packer.compress(text.encode("utf-8", "backslashreplace")) + packer.flush()
    return base64.b64encode(data).decode("ascii")


def coded(values: Sequence[str]) -> dict[str, list[Any]]:
    """Texts as ``values`` (each once, in order of appearance) and ``codes`` (places in them)."""
    numbers: dict[str, int] = {}
    codes = [numbers.setdefault(value, len(numbers)) for value in values]
    return {"values": list(numbers), "codes": codes}
