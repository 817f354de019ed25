"""JSON objects in replies, which seldom keep to the form that they were asked for."""

import json
import re
from collections.abc import Iterator
from typing import Any

_TRIED = 50
# a brace of prose or of a formula opens no object, and is none of the openings tried
_OPENING = re.compile(r'\{[ \t\r\n]*["}]')


def json_objects(text: str) -> Iterator[dict[str, Any]]:
    """The JSON objects in a text, from left to right, whatever stands around them.

    Args:
        text: any string. A string in an object may hold bare line ends, as models write them. At
            most 50 openings are tried, since a text of nothing else would take quadratic time.

    Yields:
        Each outermost object, the empty one too.
    """
    decoder, found = json.JSONDecoder(strict=False), _OPENING.search(text)
    for _ in range(_TRIED):
        if found is None:
            return
        try:
            value, end = decoder.raw_decode(text, found.start())
            yield value
        except (ValueError, RecursionError):
            end = found.start() + 1
        found = _OPENING.search(text, end)
