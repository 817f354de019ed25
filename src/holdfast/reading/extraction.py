"""The answer that the rules extract from a reply."""

from dataclasses import dataclass
from typing import Literal

READING_VERSION = 13
"""Version of the rules. Raise it if they extract another answer from any reply."""

Status = Literal["parsed", "ambiguous", "refused", "none", "error"]


@dataclass(frozen=True, slots=True)
class Extraction:
    """Answer of a reply, with its status and rule.

    Attributes:
        answer: The option letter, or None unless `status` is "parsed".
        status: "parsed", "ambiguous" (contradictory answers), "refused" or "none". "error" is for
            callers whose model gave no reply. The rules never return it.
        rule: Id of the rule that decided.
    """

    answer: str | None
    status: Status
    rule: str


@dataclass(frozen=True)
class Fault:
    """Reason why a generated text is not usable.

    Attributes:
        kind: Short name for counts.
        detail: Message to the author, as the end of a sentence that begins with "That".
    """

    kind: str
    detail: str
