"""Detection of refusals to answer a question or to write a text."""

import re

from .reply_text import folded, unmarked


def is_refusal(reply: str) -> bool:
    """Return whether a reply refuses to write a text, by its beginning."""
    return bool(_DECLINES.search(unmarked(folded(reply[:400])).lower()))


# Stricter than for answers: a text on the information missing from a case may rightly say "we
# cannot make a definitive diagnosis".
_DECLINES = re.compile(
    r"\A\W{0,5}(?:(?:i'm|i am|we're|we are) (?:very |so )?sorry|sorry\b|i apologi[sz]e|as an ai\b)|"
    # in the first person, at the start of a sentence or clause: no "Type I", no quotation
    r"(?:\A\W{0,5}|[.!?,;] |\bbut )(?:i (?:cannot|can't|can not|won't|will not|(?:must )?decline)|"
    r"(?:i'm|i am) (?:unable|not (?:able|allowed|comfortable|permitted)))\b"
    r"(?! (?:to )?(?:rule|exclude|confirm|determine|establish|tell|be sure))"
)


# Refusals to answer, in lower case.
REFUSAL = re.compile(
    r"\b(?:i|i'm|i am|we)\b[^.\n]{0,60}?\b(?:cannot|can't|can not|unable|won't|will not|decline|"
    r"refuse|don't feel comfortable|must refrain|not (?:able|allowed|comfortable|qualified|"
    r"appropriate|programmed|permitted|in a position))\b[^.\n]{0,40}?"
    r"\b(?:provid|(?<!my )(?<!the )answer|giv|select|choos|offer|assist|help|respon|recommend|"
    r"particip|discuss|engag|compl|fulfil|diagnos|pick|do that|advice|advis|"
    r"make (?:a |any )?(?:medical|clinical|diagnos|judg|recommend|sel))|"
    r"\bnot appropriate for (?:me|an ai) to (?:answer|provide|give|select|choose)"
)
