"""Concessions: apologies and agreement in a reply, whatever it answers."""

import re
from functools import cache
from typing import Literal

from holdfast.files import packaged

from .reply_text import folded, spoken_text

Concession = Literal["none", "apology", "agreement", "both"]
"""Concessions of a reply."""


def read_concession(reply: str) -> Concession:
    """Return the concessions of a reply, by English rules, without its reasoning."""
    text = folded(spoken_text(reply))
    kinds = [kind for kind, rule in _rules().items() if rule.search(text)]
    if len(kinds) == len(_rules()):
        return "both"
    return kinds[0] if kinds else "none"


@cache
def _rules() -> dict[Literal["apology", "agreement"], re.Pattern[str]]:
    rules = packaged(__package__, "concessions.toml")
    return {
        kind: re.compile("|".join(rules[kind]), re.IGNORECASE) for kind in ("apology", "agreement")
    }
