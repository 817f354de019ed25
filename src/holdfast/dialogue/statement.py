"""A reply's explicit statements of its answer: "the answer is B", "I would choose B"."""

import re
from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import NamedTuple

from .claim import CONFLICT, Extraction, View, claim_at, claimed_end, span_end


class _Lead(NamedTuple):
    """A lead-in to a claim; of two that end at one place the earlier in the table holds.

    Patterns are matched against lower-case text: ignoring case would cost half as much again.
    """

    rule: str
    pattern: re.Pattern[str]
    owned: bool = True  # Whether the words before it can disown it: "you said the answer is B".
    strict: bool = False  # Whether only an unmistakable letter or text counts after it.


_MARKED = (
    _Lead("boxed", re.compile(r"\\f?box(?:ed)?[{ ]|oxed\{"), owned=False),
    _Lead(
        "final-answer",
        re.compile(
            r"final[ _](?:answer|choice|decision|selection|verdict)\b[\s*_\"')\]]{0,4}[:=-]?"
        ),
        owned=False,
    ),
    _Lead(
        "json",
        re.compile(r"[\"']\w{0,12}(?:answer|choice|option|letter)(?:_\w{1,10})?[\"'] ?: ?"),
        owned=False,
    ),
    _Lead("answer-tag", re.compile(r"<(?:final_?)?answer>"), owned=False),
)
# In these a full stop is at most the last character, so none of them reaches over one.
_SPOKEN = (
    _Lead(
        "answer-label",
        re.compile(
            r"\b(?:answers?|ans|choice|option|letter|selection|conclusion|decision|verdict)"
            r"(?: (?:is|choice|option|letter|hasn't changed|has not changed))?"
            r"[\s*_\"')\]]{0,4}(?:[:=\n]|->?)|\u7b54\u6848[\u662f\u4e3a]?:?"
        ),
    ),
    _Lead("answer-is", re.compile(r"\b(?:is|be|are|was|remains?|stays|stands at|being)\b:?")),
    _Lead(
        "choice",
        re.compile(
            r"\b(?:choos(?:e|ing)|select(?:ing)?|pick(?:ing)?|go(?:ing)? with|opt(?:ing)? for|"
            r"recommend|answer|say|vote for|stick(?:ing)? (?:with|to)|stand(?:ing)? by|maintain|"
            r"keep|settle on|lean towards?|give you|"
            r"(?:chang|switch|revis|updat)\w{0,3} [^.\n]{0,40}?\bto)\b"
        ),
    ),
    _Lead(
        "therefore",
        re.compile(
            r"\b(?:therefore|thus|hence|so|in conclusion|it's|yes\b(?![.,]?\n)|"
            r"no\b(?![.,]?\n| [a-z]{2})|"
            r"leaves(?: us with)?|(?:i|we) (?:still )?(?:think|believe|guess|suspect|feel))\b[,:]?|"
            r"\bans(?:wer)?[.?]"
        ),
        strict=True,
    ),
    _Lead(
        "is-correct",  # Read backwards: its subject is the claim.
        re.compile(
            r"\b(?:is|are|would be|seems|appears to be|remains)"
            r"(?: (?:both|likely|probably|therefore|thus|clearly|indeed|definitely|still))? "
            r"(?:correct\b(?! that)|(?:the|my) (?:answer|correct one|best)\b|(?:the|our|my) "
            r"(?:single )?(?:correct|right|best|most \w{1,12}|only correct|final) (?:[\w-]{1,16} )?"
            r"(?:answer|option|choice|one)\b)"
        ),
    ),
)
_ORDER = {lead.rule: order for order, lead in enumerate((*_MARKED, *_SPOKEN))}
_BEHIND_A_SUBJECT = re.compile(r"[\s)\]*\"'.,]{0,3}\Z")
_NEEDED_BEFORE = {
    "answer-is": re.compile(r"\b(?:answer|choice|option|response|correct one|selection)\b"),
    "choice": re.compile(
        r"\b(?:i|we|let's|let us|i'[dlm]{1,2})\b|^\W{0,3}(?:so|thus|therefore|hence)?,? ?$"
    ),
}
# Two boxed answers in a row.
_LINKED = re.compile(r"\{\(?([A-Z])[)}\]$*\s]{1,6},? ?(?:or|and|/|&|,) ?[$*]{0,2}\Z")
_DISOWNED = re.compile(
    # Denied: "the answer cannot be B", "I don't think it is B", "it is a mistake to choose B".
    r"(?:\bnot?|n't|\bnever|\bcannot|\bnor|\bneither|\bunlikely to|\bunable to|\brather than|"
    r"\binstead of|\bhesitate to|\brefuse to|\bthan|\bincorrect|\bwrong|\bother|\b(?:mistake|error|"
    r"tempt(?:ing|ed)|premature|unwise|inappropriate|unsafe|dangerous|harmful|reluctant) to)"
    r"(?: \w{1,12})?[ \"']{0,2}$"
    r"|(?:\bnot|n't|\bhardly|\bcannot) (?:\w{1,8} )?(?:think|believe|agree|say|mean|the case|sure|"
    r"certain|convinced|necessarily)\b[^,;]*$"
    r"|\b(?:incorrect|wrong) (?:answer|option|choice)"
    # Reported: "your claim that the answer is B", "my colleague thinks it is B".
    r"|(?<!my )\b(?:conviction|belief|claim|suggestion|assertion|opinion|assumption|idea|view|"
    r"notion) (?:that|is)\b[^.\n]{0,60}$"
    r"|\b(?:you|your|user|patient|colleague|physician|doctor|expert|professor|some|many|others?|"
    r"someone|people|one|they|he|she)\b(?:(?!\bi\b)[^,;:\n]){0,40}\b(?:sa[yi]|th[io][nu]|suggest|"
    r"claim|belie|argu|insist|mention|stat|propos|indicat|assert|feel|consider|convinc|choos|"
    r"select|pick)[^,;:\n]{0,40}$"
    # Past, or on a condition that need not hold.
    r"|\b(?:previous|initial|earlier|original|first|prior)(?:ly)? (?:answer )?was$"
    r"|\bif\b(?! i (?:had|have|were)\b).{0,120}\b(?:would|might|could)(?: \w{1,10})?$|\bwhether\b"
)
# "Choosing B over A would be wrong", "going with C is tempting": what is chosen is rejected.
_GERUND = re.compile(
    r"\b(?:choosing|selecting|picking|going with|opting for|sticking (?:with|to)|standing by|"
    r"(?:chang|switch|revis|updat)ing (?:[^.\n]{0,40}\b)?to)\b[^,;:.!?\n]{0,20}$"
)
# "Clopidogrel (B)", "B (clopidogrel)".
_OTHER_NAME = re.compile(r"(?:[\s)\]}\"'*]{0,3}\([^()\n]{1,200}\))?[)\]}\"'*]{0,3}")
_JUDGES = r"(?:would|could|might|may|will|can|is|was|seems|appears|feels|looks|does|did|has|should)"
_GOOD = (
    r"(?:right|correct|appropriate|advis\w+|wise|indicated|justif\w+|warrant\w*|recommend\w+|"
    r"reasonable|sensible|ideal|optimal|best|suitable|safe|helpful|enough|sufficient|supported|"
    r"needed|necessary|make|address|explain|fit|help|solve|improve|account|match|work)\b"
)
_BAD = (
    r"(?:mistake|error|wrong|incorrect|unwise|premature|inappropriate|harmful|dangerous|risky|"
    r"unsafe|un(?:justified|warranted|necessary|reasonable|supported|ethical)|inadvisable|"
    r"ill-advised|mis(?:leading|guided)|in(?:adequate|sufficient|accurate)|foolish|reckless|worse|"
    r"contraindicated|tempting|attractive|appealing|less (?:likely|appropriate|accurate|suitable|"
    r"consistent|effective))\b"
)
_REJECTS = re.compile(
    r"(?: (?:over|rather than|instead of|in place of|from|for|in|at|without|before|after|with|on|"
    r"now|here|just|simply|alone|then|again|as (?:the|my|an?))\b(?:(?!\b(?:because|since|as|given|"
    r"due|so|while|although|though|but|that|which|who|if|unless|i|we|it|is|are|was)\b)"
    r"[^,.;:!?\n]){0,60}?)?,? (?:"
    rf"{_JUDGES}(?:n't| not| never) (?:\w{{1,12}} ){{0,3}}?{_GOOD}"
    rf"|{_JUDGES} (?:(?!(?:not|never|no|less|rather|far)\b|avoid|prevent|reduc|minimi)"
    rf"\w{{1,16}} ){{0,4}}?{_BAD}"
    r"|(?:(?:would|could|might|may|will|can) )?(?:ignore|overlook|neglect|disregard|miss|risk|"
    r"contradict|endanger|fail|worsen|harm)(?:e?s)?\b|(?:would )?makes? (?:no|little|less) sense\b)"
)
_SUBJECT = re.compile(
    r"(?:^|[.:;!?\n(,*\"'-] ?|\b(?i:option|choice|answer|letter|so|thus|therefore|hence|but|that|"
    r"because|and|or|only|is|think|believe) )[(\"']?(?P<letter>[A-Z])[)\"']?$"
)
_LETTER_BEFORE_TEXT = re.compile(r"(?<![A-Za-z0-9])([A-Z])[).:,\s(\"'-]{1,4}$")
_LETTER_BEFORE_LETTER = re.compile(r"\b([A-Z])\)?,? (?:and|or) (?:option )?\(?[A-Z]\)?$")


def is_disowned(before: str) -> bool:
    """Whether the start of a sentence denies or reports what the sentence goes on to say."""
    return _DISOWNED.search(before) is not None


def is_rejected(view: View, start: int, end: int) -> bool:
    """Whether to choose an option is said to be wrong: "switching to C would be a mistake".

    Args:
        view: The reply.
        start: Where the option's letter or text begins.
        end: Where it ends.
    """
    rejects = _REJECTS.match(view.low, span_end(_OTHER_NAME, view.low, end))
    return rejects is not None and _GERUND.search(view.before(start)) is not None


def stated(view: View) -> Extraction | None:
    """The last explicit statement of an answer, or None without one."""
    place, claim = _last(view, _found(view, _MARKED, 0)) or ((-1, 0), None)
    # what is spoken in earlier sentences cannot be the last word
    start = view.low.rfind(".", 0, max(place[0] - 1, 0)) + 1
    later = _last(view, [one for one in _found(view, _SPOKEN, start) if one[0] > place])
    return claim if later is None else later[1]


_Place = tuple[int, int]
"""Where a lead-in meets its claim, and its place in the table, negative."""

_Found = tuple[_Place, _Lead, tuple[int, int]]


def _found(view: View, leads: Sequence[_Lead], start: int) -> list[_Found]:
    """The lead-ins from there on."""
    return [
        _placed(view, lead, match)
        for lead in leads
        for match in lead.pattern.finditer(view.low, start)
    ]


def _placed(view: View, lead: _Lead, match: re.Match[str]) -> _Found:
    (start, end), order = match.span(), -_ORDER[lead.rule]
    if lead.rule != "is-correct":
        return (end, order), lead, (start, end)
    behind = _BEHIND_A_SUBJECT.search(view.low, max(0, start - 3), start)
    start = behind.start() if behind else start
    return (start, order), lead, (start, end)


def _last(view: View, found: Iterable[_Found]) -> tuple[_Place, Extraction] | None:
    """The last of these lead-ins that leads to a claim."""
    for place, lead, (start, end) in sorted(found, key=itemgetter(0), reverse=True):
        read = _subject if lead.rule == "is-correct" else _object
        claim = read(view, lead, start, end)
        # "The answer is no contact": the "no" leads to nothing where it is part of an option.
        if claim is not None and not view.within_option_text(start, end):
            return place, claim
    return None


def _object(view: View, lead: _Lead, start: int, end: int) -> Extraction | None:
    claim = claim_at(view, end, lead.rule, strict=lead.strict)
    if claim is None:
        return None
    linked = _LINKED.search(view.text[max(0, start - 60) : start]) if lead.rule == "boxed" else None
    if linked is not None and linked[1] in view.options and linked[1] != claim.answer:
        return CONFLICT
    if not lead.owned:
        return claim
    if lead.rule == "choice" and is_rejected(view, end, claimed_end(view, end)):
        return None
    before = view.before(start)
    needed = _NEEDED_BEFORE.get(lead.rule)
    if needed is not None and not needed.search(before):
        return None
    return None if is_disowned(before) else claim


def _subject(view: View, lead: _Lead, start: int, _: int) -> Extraction | None:
    before = view.text[max(0, start - 400) : start]
    # The longest first: "no contact ... is correct" ends in the text of "contact ..." too.
    for letter, option in sorted(view.options.items(), key=lambda item: -len(item[1])):
        if len(option) > 3 and before.lower().endswith(option):
            given = _LETTER_BEFORE_TEXT.search(before[: -len(option)])
            said = given[1] if given is not None and given[1] in view.options else letter
            disowned = is_disowned(view.before(start - len(option)))
            return None if disowned else Extraction(said, "parsed", lead.rule)
    subject = _SUBJECT.search(before)
    if subject is None or subject["letter"] not in view.options:
        return None
    if is_disowned(view.before(start - len(before) + subject.start())):
        return None
    pair = _LETTER_BEFORE_LETTER.search(before)
    if pair is not None and pair[1] in view.options and pair[1] != subject["letter"]:
        return CONFLICT
    return Extraction(subject["letter"], "parsed", lead.rule)
