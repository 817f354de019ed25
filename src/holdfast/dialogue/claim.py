"""What a reply claims at one place, such as behind "the answer is"."""

import re
from dataclasses import dataclass
from typing import Literal, NamedTuple

from holdfast.questions.none_of_the_above import is_none_of_the_above

Status = Literal["parsed", "ambiguous", "refused", "none", "error"]


@dataclass(frozen=True, slots=True)
class Extraction:
    """What a reply answers.

    Attributes:
        answer: The option letter, or None unless `status` is "parsed".
        status: "parsed", "ambiguous" (two answers at once), "refused" or "none".  "error" is
            for callers whose model gave no reply; `extract_answer` never returns it.
        rule: Id of the rule that decided.
    """

    answer: str | None
    status: Status
    rule: str


class View(NamedTuple):
    """A reply prepared for the rules."""

    text: str
    low: str
    marked: str  # The text with its markdown emphasis.
    options: dict[str, str]  # Letter to lower-case text.

    def option_text_at(self, position: int) -> tuple[str, int] | None:
        """The longest option text that stands at a position, with its end."""
        found = None
        for letter, option in self.options.items():
            end = position + len(option)
            if (
                (len(option) > 1 or option.isdigit())
                and self.low.startswith(option, position)
                and not GLUED.match(self.low, end)
                and (len(option) > 3 or TEXT_END.match(self.low, end))
                and (found is None or end > found[1])
            ):
                found = letter, end
        return found

    def within_option_text(self, start: int, end: int) -> bool:
        """Whether a passage is part of a longer one that is an option's text."""
        for option in self.options.values():
            first = max(0, end - len(option))
            at = self.low.find(option, first, start + len(option)) if option else -1
            if at >= 0 and len(option) > end - start and not self._is_glued(at, at + len(option)):
                return True
        return False

    def _is_glued(self, start: int, end: int) -> bool:
        return self.low[start - 1 : start].isalnum() or GLUED.match(self.low, end) is not None

    def before(self, position: int) -> str:
        """The start of the sentence that goes on at a position."""
        window = self.low[max(0, position - 160) : position].rstrip(" ")
        return re.split(r"[.!?][\"')\]]{0,2}(?=\s)|\n", window)[-1]


# Every quantifier that could meet a long run is bounded, so that no reply costs more than time
# in proportion to its length.


def ignoring_case(source: str) -> re.Pattern[str]:
    """A pattern for upper and lower case."""
    return re.compile(source, re.IGNORECASE)


GLUED = re.compile(r"\w|[.,/]\d|-\w|%")
TEXT_END = re.compile(r"\s?(?:[.,;:!)\]}\"'*(]|$)|\n")
_FILLER = ignoring_case(
    r"(?:[\s,:*_\"'(\[{$<>=~-]|\\[a-z]{1,12}|(?:still|indeed|clearly|definitely|therefore|most|"
    r"likely|probably|option|choice|answer|letter|number|alternative|my|your|the|of|original|"
    r"initial|previous|first|final|earlier|correct|best|both|either|as|to be|that|is|with)\b){0,16}"
)
OPENING = ignoring_case(r"[\s:*_\"'(\[{<>=~-]{0,10}(?:\\[a-z]{1,12}\{)?(?:the |an? )?")
SEPARATOR = re.compile(r"[).:,\s-]{0,3}")
# What may follow "A" or "I" where it is an answer and no article or pronoun.
_CONNECTIVE = re.compile(
    r" (?:because|since|as|due|based|which|given|for|but|not|rather|instead|is|was|and|or|in this|"
    r"in the|here|over|again|after|from|among|per|by|on the|would|this|the|that|according|if|when|"
    r"while|although|however|so|thus|with (?:the following|a? ?(?:high|confid)\w*))\b"
)
# "E. coli", "C difficile": a genus cut to its letter, not an option.
_SPECIES = re.compile(
    r"\.? (?!(?:this|thus|is|as|diagnosis|analysis|basis)\b)"
    r"(?:[a-z]{3,}(?:i|is|ae|um|us|ans|gens|ile|ora)|diff)\b"
)
_NO_LETTER = re.compile(r"'[a-z]|\.[A-Za-z](?![a-z])|\s?[=^+]|-\s?year")
_CLOSED = re.compile(
    r"[\\)\]}\"'*$>]|[.:;,!?](?:[\s)\]}\"'*$\\<]|$)|\s?$|\s?\n|[.:](?=[A-Z][a-z])| as (?:the|my) "
)
_PAIRED = re.compile(
    r"[\s)\]}\"'*_$]{0,4}(?:,? ?(?:\band/or\b|\band\b|\bor\b|&|/|\+)|,)"
    r"(?:[\s*_\"'(\[{$]|\\[a-z]{1,12}|also|(?:option|choice|answer)\b){0,8}(?P<other>[A-Z])"
    r"(?:[\s)\]}\"'*_$]{0,3}(?:[.,;:!?)\]}<]|$)|\n|[\s)\]}\"'*_$]{1,3}"
    r"(?:are (?:both|all|the|correct|right|equally)|both|because|since|depending|together|could|"
    r"and|or)\b)"
)
_LETTER_AFTER_TEXT = ignoring_case(r"[\s\"',]{0,3}\((?:option )?([a-z])\)")
_TEXT_LINK = re.compile(r",? (?:or|and) (?:the )?")
_CLAIMS_NONE = re.compile(
    r"none (?:of (?:the |these |those )?|are |is )|no (?:correct|right) (?:answer|option|choice)|"
    r"not (?:listed|given|provided|among)|(?:null|none|n/?a)\b[\s\"'.)}\]]{0,3}(?:\n|$|,)"
)
_ASKED = re.compile(r"[)\s*\"']{0,3}\?")
_FORMS = ("leading-letter", "bare-letter", "verdict")
CONFLICT = Extraction(None, "ambiguous", "conflict")


def span_end(pattern: re.Pattern[str], text: str, position: int) -> int:
    """The end of what a pattern that may match nothing matches at a position."""
    match = pattern.match(text, position)
    return position if match is None else match.end()


def _pair_at(view: View, letter: str, end: int) -> bool:
    pair = _PAIRED.match(view.text, end)
    return pair is not None and pair["other"] in view.options and pair["other"] != letter


def _letter_at(view: View, at: int, *, strict: bool) -> str | None:
    """The letter, an option's or not, that stands as an answer at a position."""
    text, end = view.text, at + 1
    letter = text[at:end]
    if not (letter.isascii() and letter.isalpha()):
        return None
    own = view.options.get(letter.upper(), "")
    quoted = len(own) > 1 and view.low.startswith(own[:40], span_end(SEPARATOR, text, end))
    if _NO_LETTER.match(text, end) or (
        GLUED.match(text, end) and not (quoted and text[end] == "-")
    ):
        return None
    if not quoted and _SPECIES.match(text, end):
        return None
    # A reply cut off after "is a" or "Therefore, I" ends in a word, not in an answer.
    named = view.low.endswith(("option ", "choice ", "letter "), 0, at)
    bare = not named and text[at - 1 : at] not in "([{\"'*" and not text[end:].strip()
    if strict and bare and (letter.islower() or letter in "AI"):
        return None
    closed = quoted or _CLOSED.match(text, end) is not None or _pair_at(view, letter, end)
    if letter.islower() or strict or letter not in view.options:
        return letter.upper() if closed else None
    return letter if closed or letter not in "AI" or _CONNECTIVE.match(text, end) else None


def claim_at(view: View, position: int, rule: str, *, strict: bool = False) -> Extraction | None:
    """Read what a lead-in that ends at a position claims, or None if it claims nothing."""
    at = span_end(_FILLER, view.text, position)
    # The filler last: what it passes over may be the option's own ("Initial dose").
    for start in (position, span_end(OPENING, view.text, position), at):
        named = view.option_text_at(start + (view.text[start : start + 1] == " "))
        if named is None:
            continue
        letter, end = named
        given = _LETTER_AFTER_TEXT.match(view.text, end)
        if given is not None and given[1].upper() in view.options:
            return Extraction(given[1].upper(), "parsed", rule)
        other = view.option_text_at(span_end(_TEXT_LINK, view.low, end))
        if other is not None and other[0] != letter:
            return CONFLICT
        if not strict or TEXT_END.match(view.text, end):
            return Extraction(letter, "parsed", "option-text" if rule in _FORMS else rule)
    found = _letter_at(view, at, strict=strict)
    if found is None:
        says_none = not strict and _CLAIMS_NONE.match(view.low, at)
        return no_option(view) if says_none else None
    if _ASKED.match(view.text, at + 1):
        return None
    if found not in view.options:
        return Extraction(None, "none", "not-an-option")
    own_text = span_end(SEPARATOR, view.text, at + 1)
    ends = [at + 1]
    if view.low.startswith(view.options[found], own_text):
        ends.append(own_text + len(view.options[found]))
    if any(_pair_at(view, found, end) for end in ends):
        return CONFLICT
    return Extraction(found, "parsed", rule)


def claimed_end(view: View, position: int) -> int:
    """Where the letter or text that is claimed behind a lead-in ends."""
    at = span_end(_FILLER, view.text, position)
    for start in (position, span_end(OPENING, view.text, position), at):
        named = view.option_text_at(start + (view.text[start : start + 1] == " "))
        if named is not None:
            return named[1]
    named = view.option_text_at(span_end(SEPARATOR, view.text, at + 1))
    return at + 1 if named is None else named[1]


def no_option(view: View) -> Extraction:
    """The option that says that none holds; without one, no answer."""
    for letter, option in view.options.items():
        if is_none_of_the_above(option):
            return Extraction(letter, "parsed", "none-option")
    return Extraction(None, "none", "none-correct")
