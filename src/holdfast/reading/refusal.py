"""Detection of refusals to answer a question or to write a text."""

from .patterns import Patterns
from .reply_text import folded, unmarked

P = Patterns("refusal")


def is_refusal(reply: str) -> bool:
    """Return whether a reply refuses to write a text, by its beginning."""
    return bool(P.declines.search(unmarked(folded(reply[:400])).lower()))


def refuses_to_answer(text: str) -> bool:
    """Return whether a reply, in lower case, refuses to answer a question."""
    return P.refusal.search(text) is not None


def abstains(text: str, after: int = -1) -> bool:
    """Return whether a reply, as a marked text in lower case, declines to choose after a place."""
    return P.abstention.search(text, max(after + 1, len(text) - 2000)) is not None
