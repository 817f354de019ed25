"""What a reply answers, and why."""

from dataclasses import dataclass
from typing import Literal

READING_VERSION = 2
"""Raised when the rules read a reply otherwise than before."""

Status = Literal["parsed", "ambiguous", "refused", "none", "error"]


@dataclass(frozen=True, slots=True)
class Extraction:
    """What a reply answers.

    Attributes:
        answer: The option letter, or None unless `status` is "parsed".
        status: "parsed", "ambiguous" (answers that contradict each other), "refused" or "none".
            "error" is for callers whose model gave no reply; no reading returns it.
        rule: Id of the rule that decided.
    """

    answer: str | None
    status: Status
    rule: str


@dataclass(frozen=True)
class Fault:
    """Why a reply that was to be a text cannot be used.

    Attributes:
        kind: A short name to count it under.
        detail: What to tell its author, as the end of a sentence that begins with "That".
    """

    kind: str
    detail: str
