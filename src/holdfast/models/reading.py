"""A simulated reader: it knows the wordings of the simulated models, and errs by a known chance."""

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from holdfast.questions import Truth
from holdfast.reading import without_reasoning

from .chance import chance, pick
from .wording import CHOICES, PROBES, STICKS, SWITCHES, WORDINGS

NAME = re.compile(r"reader(?:-(?P<errors>100|[1-9]?\d))?")
"""``reader`` makes no error, ``reader-20`` one in 20 of 100 readings."""


def reader(truth: Truth, errors: int) -> str:
    """What the reader says of a reply; errors are fixed by the options and the reply.

    Of a reply that gives an answer an error is, each half of the time, another option or none; of
    one that gives none it is an option.

    Args:
        truth: the reading under way, with the reply, the displayed options and the decision as
            given.
        errors: wrong readings in 100.
    """
    given = dict(truth.given)
    letters = [letter for letter, _ in given["options"]]
    answer = _answer(given)
    here = ("reader", errors, given["options"], given["reply"])
    if chance(*here) < errors / 100:
        others = [letter for letter in letters if letter != answer]
        missed = answer is not None and chance("missed", *here) < 0.5
        answer = None if missed else pick(others, "other", *here)
    return json.dumps({"answer": answer})


def _answer(given: Mapping[str, Any]) -> str | None:
    """The displayed letter that a reply of a simulated model was made with; None of any other."""
    reply = given["reply"]
    decided = []
    if given["decision"]:
        for wordings, letter in zip((STICKS, SWITCHES), given["decision"], strict=True):
            decided += [letter for wording in wordings if wording == reply]
    found = [match for pattern in _patterns() if (match := pattern.search(reply))]
    last = max(found, key=lambda match: match.start(1), default=None)
    return decided[0] if decided else last[1] if last else None


@cache
def _patterns() -> tuple["re.Pattern[str]", ...]:
    return tuple(_made())


def _made() -> Iterator["re.Pattern[str]"]:
    """Each wording as it ends a reply, its letter captured."""
    for wording in (*WORDINGS, *CHOICES, *STICKS, *SWITCHES, *PROBES):
        text, letter = "\x00", "\x01"
        filled = without_reasoning(wording.format(text=text, letter=letter, label=letter))
        if letter in filled:
            plain = re.escape(filled).replace(text, ".*?").replace(letter, "([A-Z])")
            yield re.compile(rf"{plain}\Z", re.DOTALL)
