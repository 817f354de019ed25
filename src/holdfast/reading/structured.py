"""Answers in JSON: selection of the key with the answer."""

import json
import re
from collections.abc import Iterator
from typing import Any

from .statements import Stance
from .words import MARK, kinds
from .words import WordKind as K

_NAMES = re.compile(
    r"answer|choice|option|letter|selection|decision|prediction|diagnosis|verdict|response|final|"
    r"selected|revised|updated|submitted|pick"
)
_WITHIN = ("letter", "id", "option", "choice", "key", "answer", "label", "value", "text")
_MARKS = re.compile(MARK)


def owner(key: str) -> Stance:
    """Return whose answer a key names: "final_answer", "rejected_answer", "previous_answer"."""
    naming = 0
    for word in re.split(r"[_\W]+", key):
        naming |= kinds(word)
    if naming & (K.THEIRS | K.OTHER | K.OWNER | K.NEGATION | K.BAD):
        return "reported"
    return "past" if naming & K.PAST else "own"


def object_in(text: str) -> dict[str, Any] | None:
    """Return the JSON object in a text, from its first brace to its last, else None."""
    start, end = text.find("{"), text.rfind("}")
    try:
        parsed_object = json.loads(text[start : end + 1], strict=False) if start >= 0 else None
    except (ValueError, RecursionError):
        return None
    return parsed_object if isinstance(parsed_object, dict) else None


def marks_of(answers: dict[str, Any]) -> str | None:
    """Return the marks of the options in the answer of an object, None without an answer.

    Args:
        answers: Keys and texts in lower case, with options marked (`mentions.marked`).
    """
    right = [key for key, value in answers.items() if len(key) == 1 and value in _RIGHT]
    if len(right) == 1 and _MARKS.fullmatch(right[0]):
        return right[0]
    own_keys = [key for key in answers if _NAMES.search(key) and owner(key) == "own"]
    own_keys.sort(key=lambda key: "final" in key)
    return next((marks for key in reversed(own_keys) for marks in _marks(answers[key])), None)


_RIGHT = (True, "true", "correct", "right", "yes")


def _marks(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        value = next((value[key] for key in _WITHIN if key in value), None)
    if isinstance(value, list):
        value = " ".join(item for item in value if isinstance(item, str))
    if isinstance(value, str):
        marks_found = "".join(dict.fromkeys(_MARKS.findall(value)))
        # the first option of a sentence is the answer: "B. Because A is wrong"
        yield marks_found if len(value) < 40 else marks_found[:1]
    elif value is None:
        yield ""
