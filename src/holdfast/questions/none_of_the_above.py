"""Whether an option already says that none of the others holds."""

import re
import unicodedata

# Longer than any wording of it: a text past this length is content, whatever it begins with.
_LONGEST = 120
_THINGS = (
    r"(?:(?:answer )?(?:options?|choices?)|answers?|alternatives?|statements?|responses?|ones?)"
)
_WHICH = r"(?:above|below|following|given|listed|provided|mentioned|stated|offered|shown|other)"
_REST = rf"(?:{_WHICH}|aforementioned|abovementioned|preceding|previous|remaining|others|rest)"
_SET = (
    rf"(?:them|these|those|this|above|all|others|(?:the|these|those|"
    rf"all)(?: of)?(?: the)?(?: {_REST}){{1,3}}"
    rf"|(?:(?:the|these|those|any|my|"
    rf"your)(?: of)? )?(?:{_REST} ){{0,2}}{_THINGS}(?: {_WHICH}){{0,2}}"
    rf"|(?:the )?(?:two|three|four|five)(?: {_THINGS})?)"
)
_OF = r"(?:of|among|amongst)"
_TRUE = r"(?:correct|right|true|applicable|appropriate|valid|suitable)"
_HOLDS = rf"(?: (?:is|are|apply|applies)(?: {_TRUE})?)?"
_NONE_OF_THE_ABOVE = re.compile(
    rf"(?:none?|neither)(?: ?{_OF} (?:the )?{_SET})?{_HOLDS}"
    rf"|(?:no one|not (?:any|one)) of (?:the )?{_SET}{_HOLDS}"
    rf"|(?:none|neither)(?: one)?|neither {_THINGS}{_HOLDS}"
    r"|nota|n o t a"
    rf"|none (?:{_WHICH}|{_TRUE})"
    rf"|(?:there is )?no(?:ne)? (?:{_TRUE} {_THINGS}|{_THINGS} (?:is|are) {_TRUE})"
    rf"(?:(?: is| are)? {_WHICH})?"
    rf"|all(?: (?:of )?(?:the )?{_SET})? (?:is|are) (?:incorrect|wrong|false|not {_TRUE})"
)
# "d) None of the above": the letter or number came along with the text.
_LABEL = re.compile(r"^\(?[a-z0-9][.)\]:]\s*(?!o\.)")


def is_none_of_the_above(text: str) -> bool:
    """Whether an option's whole text says that none of the options holds.

    Case, punctuation, hyphens and a label such as "d)" do not matter. A text that goes on to
    say something of the case is content: "None of the above findings are specific", "None but
    A", "No treatment".  So is "Neither A nor B", which leaves the options after B open.
    """
    if len(text) > _LONGEST:
        return False
    plain = unicodedata.normalize("NFKC", text).casefold().strip()
    plain = "".join(c for c in plain if unicodedata.category(c) != "Cf")
    words = re.sub(r"[\W_]+", " ", _LABEL.sub("", plain)).strip()
    # "None of the above (NOTA)" names it twice.
    words = words.removesuffix(" nota")
    return words != "non" and _NONE_OF_THE_ABOVE.fullmatch(words) is not None
