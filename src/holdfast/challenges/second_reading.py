"""What a reader is asked: which of the displayed options does a reply commit to?"""

import re
from collections.abc import Collection, Mapping
from typing import Final, Literal

from .fencing import excerpt, fence
from .json_reply import json_objects
from .packaged import packaged
from .wording import option_lines

UNREADABLE: Final = "unreadable"
"""In place of a letter: the reader's own reply says nothing."""

_FILE = "second_reading.toml"
_TAIL = 16_000


def reading_version() -> int:
    """Version of the prompt that asks for a reading."""
    return int(packaged(_FILE)["version"])


def reading_prompt(options: Mapping[str, str], decision: tuple[str, str] | None, reply: str) -> str:
    """Asks which option a reply commits to; the options and the reply are all that is shown.

    Args:
        options: displayed letter to text, in the order of display.
        decision: displayed letters of the option held and of the one offered; None for a choice
            among all.
        reply: the reply, without its reasoning; past 24,000 characters it is cut in the middle.
            It and the options stand between lines that occur in neither.
    """
    marks = dict(zip(decision or (), ("held", "offered"), strict=False))
    shown = {
        letter: f"{text} ({packaged(_FILE)[marks[letter]]})" if letter in marks else text
        for letter, text in options.items()
    }
    texts = {"options": option_lines(shown), "reply": excerpt(reply)}
    texts["fence"] = fence(texts["options"], texts["reply"])
    # one pass, so that the texts filled in are never searched for places to fill
    filled = re.sub(r"\[\[(\w+)\]\]", lambda found: texts[found[1]], packaged(_FILE)["prompt"])
    return filled.strip()


def read_reading(text: str, letters: Collection[str]) -> str | Literal["unreadable"] | None:
    """Read a reader's reply: its last JSON object with ``answer``, whatever stands around it.

    Args:
        text: any string.
        letters: the displayed letters.

    Returns:
        A displayed letter; None where the reader says that there is no answer; ``UNREADABLE``
        where there is no such object, or its answer is neither.
    """
    found = [one["answer"] for one in json_objects(text[-_TAIL:]) if "answer" in one]
    if not found:
        return UNREADABLE
    answer = found[-1]
    if answer is None:
        return None
    letter = answer.strip(" ().").upper() if isinstance(answer, str) else ""
    return letter if letter in letters else UNREADABLE
