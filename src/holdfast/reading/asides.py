"""Removal of what a reply says beside its answer: offers to the user, former answers, ranges."""

from .patterns import Patterns

P = Patterns("asides")


def without_asides(text: str) -> str:
    """Return a marked text without offers, former answers in brackets, and ranges of options."""
    if P.offering.search(text):
        text = P.offers.sub("", text)
    text = P.former.sub("", text)
    return P.range.sub("the others", text) if P.range_end.search(text) else text
