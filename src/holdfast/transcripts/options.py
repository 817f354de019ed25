"""Options and letters as other people's files write them."""

import json
import re
from collections.abc import Mapping
from typing import Any

from holdfast.questions import LETTERS

_ITEM = re.compile(r"(?m)^\s*\(?([A-Z])[.):]\s*")
ABSTENTION = "NA"
"""None of the above, in the turns table."""


def options_in(value: Any) -> dict[str, str] | None:
    """Letter to text of a cell with options; None where it holds none."""
    if isinstance(value, str):
        value = _parsed(value)
    if isinstance(value, list):
        if len(value) > len(LETTERS):
            return None
        value = dict(zip(LETTERS, value, strict=False))
    if not isinstance(value, Mapping):
        return None
    # a table with columns for five options writes null where a question has four
    found = {str(letter): text for letter, text in value.items() if text is not None}
    if len(found) < 2 or list(found) != list(LETTERS[: len(found)]):
        return None
    if not all(isinstance(text, (str, int, float)) for text in found.values()):
        return None
    return {letter: str(text) for letter, text in found.items()}


def _parsed(text: str) -> Any:
    if text.lstrip()[:1] in ("[", "{"):
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            pass
    found: dict[str, str] = {}
    starts: list[re.Match[str]] = []
    for item in _ITEM.finditer(text):
        # another letter begins a line within an option
        if item[1] == LETTERS[len(starts) : len(starts) + 1]:
            starts.append(item)
    ends = [*(item.start() for item in starts[1:]), len(text)]
    for item, end in zip(starts, ends, strict=False):
        found[item[1]] = text[item.end() : end].strip()
    return found


def letter_in(text: str, options: Mapping[str, str] | None, base: int | None) -> str | None:
    """The option that a cell names: by its letter, its number or its text; None if it is none."""
    text = text.strip()
    known = options or dict.fromkeys(LETTERS, "")
    if base is not None:
        number = text.removesuffix(".0")
        if number.isascii() and number.isdecimal() and len(number) < 3:
            place = int(number) - base
            return list(known)[place] if 0 <= place < len(known) else None
    if text in known:
        return text
    bare = text.strip("().:").upper()
    if bare in known:
        return bare
    same = [letter for letter, option in known.items() if option.strip() == text and text]
    return same[0] if len(same) == 1 else None
