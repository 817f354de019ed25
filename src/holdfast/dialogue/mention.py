"""The mentions of options in a reply to a stick-or-switch turn, each as one letter.

A letter in upper case stands for the option's role: held, offered or another one in play.  All
else is in lower case, so the words of an option ("needle stick injury") are never read as a
decision.
"""

import re
from collections.abc import Mapping

from holdfast.questions.none_of_the_above import is_none_of_the_above

from .claim import GLUED
from .reply_text import plain_text

# "My original answer" and "the new option" are H and N; the two named are K and F.  X is one that
# is called what it is not, W a choice that is only set out: "stick or switch".
HELD, NEW, HELD_OPTION, OFFERED_OPTION, MISNAMED, BOTH = "HNKFXW"
_OTHERS = tuple(chr(0x0410 + n) for n in range(26))  # Cyrillic: no lower-case text holds one
REF = r"[HNKFX\u0410-\u0429]"
_PLACE = 0xE000  # private use: what stands for an option until the text is in lower case
_BARE_WORDS = re.compile(r"\W*(?:no change|unchanged|stick|switch|stay|keep|change|original)\W*")
_SIGNAL = re.compile(r"\d.|.\d|.[A-Z]|%")
_NAMES = re.compile(
    r"(?:\b(?:to|with|from|of|for|keep|retain|option|answer is)|[:(]|\b[A-Z][.)]) ?[\"']?$"
)
_GLUED_BEFORE = re.compile(r"(?:\w|\d[.,/-])$")
_NONE_SAID = re.compile(
    r"(?:\bnone\b(?=\s*(?:[.,;:!?)\"'*]|$|\n))|\bnone of (?:the above|these|those|them|above|"
    r"(?:the |these |those )?(?:given |listed |other |two |available |presented )?"
    r"(?:options?|answers?|choices?|alternatives?|diagnoses))|\bneither\b(?! the )(?: of (?:them|"
    r"these|the two|the (?:options|choices|answers))| (?:one|option|answer|choice|diagnosis)\b)?|"
    r"\bnota\b|\bno (?:correct|right) (?:answer|option|choice)\b)"
)
_LETTER = re.compile(
    r"(?<![A-Za-z0-9'\-])(?:(?P<noun>[Oo]ption|[Cc]hoice|[Aa]lternative|[Ll]etter) )?"
    r"[(\[\"']{0,2}(?P<letter>[A-Z])(?![A-Za-z0-9\-'])(?P<close>[)\]\"']{0,2})")  # fmt: skip
_BEFORE_LETTER = re.compile(
    r"(?:^|[\n.,:;!?=(\[\"'>*-]\s?|\b(?:to|with|by|on|keep|keeping|choose|choosing|pick|select|is|"
    r"be|remains?|of|from|for|than|over|at|and|or|not|stays?|answer|answered|decision|adopt|prefer|"
    r"so|but|maintain|retain|in|abandon|reject|said|say|towards?|not|no|stick|switch|stay))\s?$"
)
_SPECIES = re.compile(r"\. ?[a-z]| (?:coli|difficile|diff|aureus|pylori)\b")
_ARTICLE = re.compile(
    r" (?!because|it is\b|since|as |due|based|for |but|is |was |and |or |over |given|rather|"
    r"instead|which|"
    r"here|still|in |so |would|remains|stands|again|to |now)[a-z]"
)
_LOWER_LETTER = re.compile(
    r"(?:(?<=\bto )|(?<=with )|(?<=tion )|(?<=wer: ))\(?([a-z])\)?(?=\s*(?:[.,;:!)]|$|\n))"
)
_OLD_WORD = (
    r"(?:(?:my|the|your|its|this|that|our) )?(?:own )?(?:original(?:ly chosen)?|initial|first|"
    r"previous|current|"
    r"earlier|prior|existing|old)"
)
_NOUN = r"(?:answer|choice|option|selection|diagnosis|response|decision|pick|one|position|stance)"
_OLD = re.compile(
    rf"\b{_OLD_WORD} (?:{_NOUN}(?: choice)?|conclusion|assessment|impression)\b"
    r"|\b(?:the|my) (?:original|first|old)(?: one)?(?=\W{0,4}(?:[.,;:!?)\n]|$))"
)
_NEW_WORD = (
    r"(?:(?:the|this|that|your|a) )?(?:new(?:ly)?|alternat(?:iv)?e|other|suggested|second|proposed|"
    r"latest|additional|offered|presented|introduced|different)"
)
_OFFER = re.compile(
    rf"\b(?:{_NEW_WORD} ){{1,3}}(?:{_NOUN}|suggestion|alternative|hypothesis|answer choice)\b"
    r"|\b(?:the|this|that|your) (?:alternative|suggestion|new)\b"
)
_LINK = (
    r"(?:\s?[,:(\[-]+\s?| of | which is | that is | being | as )(?:which is |namely |option |"
    r"i\.e\. )?"
)
_NAMED = re.compile(rf"(?P<said>[HN]){_LINK}\"?(?P<named>[KFX\u0410-\u0429])(?!\w)")
_NAMED_AFTER = re.compile(r"(?P<named>[KFX\u0410-\u0429])(?:, |\s?\()(?P<said>[HN])(?:,|\)|$)")
# The two choices set out before the decision.
_ECHO = re.compile(rf"\bH ?: ?{REF}[\s.;,|]+N ?: ?{REF}(?!\w)[\s.;|]*")
_STICKING = r"(?:stick|stay|keep|remain)\w*"
_ALTERNATIVES = re.compile(
    rf"\b(?:would you (?:like|prefer) )?(?:whether )?(?:to )?{_STICKING}(?: (?:to|with|"
    rf"by))?(?: {REF})?"
    rf"(?: ?/ ?|,? or )(?:i (?:sh|w)ould )?(?:to )?(?:switch|chang)\w*(?: to)?(?: {REF})?"
    rf"|\bswitch\w*(?: to)?(?: {REF})?(?: ?/ ?|,? or ){_STICKING}(?: (?:to|with))?(?: {REF})?"
    r"|[\"']?stick_or_switch[\"']?(?= ?:)"
)


def roles_of(options: Mapping[str, str], held: str, offered: str) -> dict[str, str]:
    """The role of each displayed letter, which is one character."""
    others = iter(_OTHERS)
    known = {held: HELD_OPTION, offered: OFFERED_OPTION}
    return {letter: known.get(letter) or next(others) for letter in options}


def none_among(options: Mapping[str, str]) -> str | None:
    """The letter of the option that says that none of the others holds."""
    return next((key for key, text in options.items() if is_none_of_the_above(text)), None)


def with_roles(reply: str, options: Mapping[str, str], roles: Mapping[str, str]) -> str:
    """A reply in lower case, with the role of an option wherever one is mentioned.

    Args:
        reply: The model's whole reply; any string.
        options: Displayed letter to text of every option in play.
        roles: Displayed letter to role, of `roles_of`.
    """
    text = re.sub(r"[\ue000-\uf8ff]", "", plain_text(reply))
    places = {letter: chr(_PLACE + n) for n, letter in enumerate(options)}
    for letter, option in sorted(options.items(), key=lambda item: -len(item[1])):
        if len(option) <= len(text) + 8 and not is_none_of_the_above(option):
            text = _replaced(text, plain_text(option).strip(" ."), places[letter])
    low = text.lower()
    none_of_them = none_among(options)
    if none_of_them is not None:
        spans = [found.span() for found in _NONE_SAID.finditer(low)]
        for start, end in reversed(spans):
            text = text[:start] + places[none_of_them] + text[end:]
    text = _with_letters(text, places)
    lowered = text.lower().translate({ord(places[key]): roles[key] for key in options})
    lowered = re.sub(r"\\boxed\{|\\\w+\{|[{}$*<>]", " ", lowered)
    lowered = re.sub(r" +", " ", lowered)
    lowered = _ECHO.sub("", _OFFER.sub(NEW, _OLD.sub(HELD, lowered)))
    for pattern in (_NAMED, _NAMED_AFTER):
        lowered = pattern.sub(_one_referent, lowered)
    lowered = re.sub(r"\bswitch(ing)? back to\b", "return to", lowered)
    return _ALTERNATIVES.sub(BOTH, lowered).strip()


def _replaced(text: str, wanted: str, place: str) -> str:
    # "No" and "No change" are an option only where one is named; "MCA" only in its own case.
    short = len(wanted) < 4
    in_place = _BARE_WORDS.fullmatch(wanted.lower()) or (short and not _SIGNAL.search(wanted))
    if len(wanted) < 2 and not wanted.isdigit():
        return text
    low, target = (text, wanted) if short else (text.lower(), wanted.lower())
    kept, at = [], 0
    start = low.find(target)
    while start >= 0:
        end = start + len(target)
        before = text[max(0, start - 12) : start]
        glued = _GLUED_BEFORE.search(before) or GLUED.match(text, end)
        if not glued and (not in_place or _NAMES.search(before)):
            kept += [text[at:start], place]
            at = end
        start = low.find(target, end)
    return "".join(kept) + text[at:]


def _with_letters(text: str, places: Mapping[str, str]) -> str:
    known = "".join(places.values())

    def named(found: re.Match[str]) -> str:
        letter, end = found["letter"], found.end()
        follows = text[end : end + 12]
        if letter not in places:
            return found[0]
        beside = re.match(rf"[.):,\s\"'-]{{0,4}}[{known}]", follows)
        if not (beside or found["noun"] or found["close"]):
            if not _BEFORE_LETTER.search(text[max(0, found.start() - 12) : found.start()].lower()):
                return found[0]
            if _SPECIES.match(follows) or (letter in "AI" and _ARTICLE.match(follows)):
                return found[0]
        return places[letter]

    text = _LETTER.sub(named, text)
    text = _LOWER_LETTER.sub(lambda found: places.get(found[1].upper(), found[0]), text)
    # "C. Aortic dissection", "aortic dissection (C)": the letter holds, whatever text is beside it.
    text = re.sub(rf"([{known}])[.):\s\"'-]{{1,4}}[{known}]", r"\1", text)
    return re.sub(rf"[{known}]\s?\(\s?([{known}])\s?\)?", r"\1", text)


def _one_referent(found: re.Match[str]) -> str:
    own = HELD_OPTION if found["said"] == HELD else OFFERED_OPTION
    return found["named"] if found["named"] == own else MISNAMED
