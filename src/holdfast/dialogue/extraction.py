"""Read the answer letter out of a model's free-text reply.

The principle: an explicit statement of the answer beats the form a reply has, the form beats a
mere quotation of an option, and of several explicit statements the last one holds.  Where the
letter and the text beside it disagree the letter holds, because the letter is what a prompt asks
for; a letter that is no option gives no answer, whatever text stands beside it.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

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


def extract_answer(reply: str, options: Mapping[str, str]) -> Extraction:
    """Read the answer to a multiple-choice question out of a reply.

    Args:
        reply: The model's whole reply; any string, reasoning included.
        options: Option letter (A to Z) to option text, in the order they were shown.

    Returns:
        The answer with the rule that found it, or the reason why there is none.
    """
    spoken = _fold(_excerpt(without_reasoning(reply)))
    if not spoken.strip():
        return Extraction(None, "none", "unfinished" if _TAG.search(reply) else "empty")
    text = _unmarked(spoken)
    texts = {key: _unmarked(_fold(value)).strip(" .").lower() for key, value in options.items()}
    view = _View(text, text.lower(), spoken, texts)
    for rule in _RULES:
        found = rule(view)
        if found is not None:
            return found
    return Extraction(None, "none", "nothing")


def first_character(reply: str, options: Mapping[str, str]) -> Extraction:
    """The naive rule of earlier studies: the reply's first character, whatever follows it.

    Args:
        reply: The model's whole reply.
        options: Option letter to option text.
    """
    letter = reply[:1]
    if letter in options:
        return Extraction(letter, "parsed", "first-character")
    return Extraction(None, "none", "first-character")


def plain_text(reply: str) -> str:
    """A reply without reasoning, emphasis and typographic signs; of a long one its two ends.

    Args:
        reply: Any string; of more than 24,000 characters the first 4,000 and the last 20,000
            are kept.
    """
    return _unmarked(_fold(_excerpt(without_reasoning(reply))))


def is_refusal(reply: str) -> bool:
    """Whether a text that was asked for is declined, by how the reply begins."""
    return bool(_DECLINES.search(_unmarked(_fold(reply[:400])).lower()))


# Stricter than for answers: of a text on what is missing from a case, "we cannot make a
# definitive diagnosis" is what was asked for.
_DECLINES = re.compile(
    r"\A\W{0,5}(?:(?:i'm|i am|we're|we are) (?:very |so )?sorry|sorry\b|i apologi[sz]e|as an ai\b)|"
    # in the first person, where a sentence or clause begins: no "Type I", no quotation
    r"(?:\A\W{0,5}|[.!?,;] |\bbut )(?:i (?:cannot|can't|can not|won't|will not|(?:must )?decline)|"
    r"(?:i'm|i am) (?:unable|not (?:able|allowed|comfortable|permitted)))\b"
    r"(?! (?:to )?(?:rule|exclude|confirm|determine|establish|tell|be sure))"
)


# ---- Preparing the text ----

_TAG = re.compile(
    r"<\s?(?P<close>/)?\s?(?:think|thinking|thoughts?|reasoning|reflection|scratchpad|analysis)\b"
    r"[^<>\n]{0,80}>|<unused94>|(?P<close2><unused95>)"
    r"|<\|begin_of_thought\|>|(?P<close3><\|end_of_thought\|>)"
    r"|<\|channel\|>analysis|(?P<close4><\|channel\|>final(?:<\|message\|>)?)",
    re.IGNORECASE,
)
# Typographic quotes, dashes, brackets and full stop, each to its ASCII form.
_PUNCTUATION = dict.fromkeys(range(0x2010, 0x2016), "-") | {0x2212: "-", 0x3002: ".", 0xD: "\n"}
_PUNCTUATION |= dict.fromkeys((0x2018, 0x2019, 0x201A, 0x201B, 0x2032), "'")
_PUNCTUATION |= dict.fromkeys((0x201C, 0x201D, 0x201E, 0x201F, 0xAB, 0xBB, 0x300C, 0x300D), '"')
_PUNCTUATION |= {0x3010: "[", 0x3011: "]"}
# Of a very long reply only its ends are read, where answers stand: that bounds the time taken.
_HEAD, _TAIL = 4_000, 20_000


def without_reasoning(text: str) -> str:
    """The text without what stands between a model's thinking tags."""
    kept: list[str] = []
    position, inside = 0, False
    for tag in _TAG.finditer(text):
        closing = tag.lastgroup is not None
        if not closing and not inside:
            kept.append(text[position : tag.start()])
        elif closing and not inside:
            kept.clear()  # The opening tag was in the prompt: all before it is reasoning.
        inside, position = not closing, tag.end()
    return "".join(kept) + ("" if inside else text[position:])


def _excerpt(text: str) -> str:
    text = re.sub(r"\s{4,}", lambda run: "\n\n" if "\n" in run[0] else " ", text).strip()
    return text if len(text) <= _HEAD + _TAIL else f"{text[:_HEAD]}\n\n{text[-_TAIL:]}"


def _fold_character(character: str) -> str:
    if unicodedata.category(character) in ("Cf", "Cc", "Cs", "Mn"):
        return ""
    plain = unicodedata.normalize("NFKD", character)
    return "".join(part for part in plain if unicodedata.category(part) not in ("Mn", "Cf"))


def _fold(text: str) -> str:
    # Character by character: normalising a whole string sorts runs of combining marks, which
    # takes quadratic time on a hostile run.
    text = text.translate(_PUNCTUATION)
    text = text.translate({ord(c): _fold_character(c) for c in set(text) if c > "\x7e"})
    text = re.sub(r"[\x00-\x08\x0b-\x1f]", "", text)
    text = re.sub(r"[^\S\n]+", " ", text)
    return re.sub(r" ?\n[ \n]*", lambda run: "\n\n" if run[0].count("\n") > 1 else "\n", text)


def _unmarked(text: str) -> str:
    text = re.sub(r"\\(?:text|mathrm|mathbf|mathsf|rm|bf)[a-z]{0,2}\b ?|\*\*|__|`|~~", "", text)
    return re.sub(r"(?m)^ ?#{1,6} ", "", text)


class _View(NamedTuple):
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
                and not _GLUED.match(self.low, end)
                and (len(option) > 3 or _TEXT_END.match(self.low, end))
                and (found is None or end > found[1])
            ):
                found = letter, end
        return found

    def before(self, position: int) -> str:
        """The start of the sentence that goes on at a position."""
        window = self.low[max(0, position - 160) : position].rstrip(" ")
        return re.split(r"[.!?][\"')\]]{0,2}(?=\s)|\n", window)[-1]


# ---- Reading what stands after a lead-in such as "the answer is" ----
#
# Every quantifier that could meet a long run is bounded, so that no reply costs more than time
# in proportion to its length.


def _pattern(source: str) -> re.Pattern[str]:
    return re.compile(source, re.IGNORECASE)


_GLUED = re.compile(r"\w|[.,/]\d|-\w|%")
_TEXT_END = re.compile(r"\s?(?:[.,;:!)\]}\"'*(]|$)|\n")
_FILLER = _pattern(
    r"(?:[\s,:*_\"'(\[{$<>=~-]|\\[a-z]{1,12}|(?:still|indeed|clearly|definitely|therefore|most|"
    r"likely|probably|option|choice|answer|letter|number|alternative|my|your|the|of|original|"
    r"initial|previous|first|final|earlier|correct|best|both|either|as|to be|that|is|with)\b){0,16}"
)
_OPENING = _pattern(r"[\s:*_\"'(\[{<>=~-]{0,10}(?:\\[a-z]{1,12}\{)?(?:the |an? )?")
_SEPARATOR = re.compile(r"[).:,\s-]{0,3}")
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
_LETTER_AFTER_TEXT = _pattern(r"[\s\"',]{0,3}\((?:option )?([a-z])\)")
_TEXT_LINK = re.compile(r",? (?:or|and) (?:the )?")
_CLAIMS_NONE = re.compile(
    r"none (?:of (?:the |these |those )?|are |is )|no (?:correct|right) (?:answer|option|choice)|"
    r"not (?:listed|given|provided|among)|(?:null|none|n/?a)\b[\s\"'.)}\]]{0,3}(?:\n|$|,)"
)
_ASKED = re.compile(r"[)\s*\"']{0,3}\?")
_FORMS = ("leading-letter", "bare-letter", "verdict")
_CONFLICT = Extraction(None, "ambiguous", "conflict")


def _span(pattern: re.Pattern[str], text: str, position: int) -> int:
    """The end of what a pattern that may match nothing matches at a position."""
    match = pattern.match(text, position)
    return position if match is None else match.end()


def _pair_at(view: _View, letter: str, end: int) -> bool:
    pair = _PAIRED.match(view.text, end)
    return pair is not None and pair["other"] in view.options and pair["other"] != letter


def _letter_at(view: _View, at: int, *, strict: bool) -> str | None:
    """The letter, an option's or not, that stands as an answer at a position."""
    text, end = view.text, at + 1
    letter = text[at:end]
    if not (letter.isascii() and letter.isalpha()):
        return None
    own = view.options.get(letter.upper(), "")
    quoted = len(own) > 1 and view.low.startswith(own[:40], _span(_SEPARATOR, text, end))
    if _NO_LETTER.match(text, end) or (
        _GLUED.match(text, end) and not (quoted and text[end] == "-")
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


def _claim(view: _View, position: int, rule: str, *, strict: bool = False) -> Extraction | None:
    """Read what a lead-in that ends at a position claims, or None if it claims nothing."""
    at = _span(_FILLER, view.text, position)
    for start in (position, at, _span(_OPENING, view.text, position)):
        named = view.option_text_at(start + (view.text[start : start + 1] == " "))
        if named is None:
            continue
        letter, end = named
        given = _LETTER_AFTER_TEXT.match(view.text, end)
        if given is not None and given[1].upper() in view.options:
            return Extraction(given[1].upper(), "parsed", rule)
        other = view.option_text_at(_span(_TEXT_LINK, view.low, end))
        if other is not None and other[0] != letter:
            return _CONFLICT
        if not strict or _TEXT_END.match(view.text, end):
            return Extraction(letter, "parsed", "option-text" if rule in _FORMS else rule)
    found = _letter_at(view, at, strict=strict)
    if found is None:
        none_claimed = not strict and _CLAIMS_NONE.match(view.low, at)
        return _no_option(view) if none_claimed else None
    if _ASKED.match(view.text, at + 1):
        return None
    if found not in view.options:
        return Extraction(None, "none", "not-an-option")
    own_text = _span(_SEPARATOR, view.text, at + 1)
    ends = [at + 1]
    if view.low.startswith(view.options[found], own_text):
        ends.append(own_text + len(view.options[found]))
    if any(_pair_at(view, found, end) for end in ends):
        return _CONFLICT
    return Extraction(found, "parsed", rule)


def _no_option(view: _View) -> Extraction:
    for letter, option in view.options.items():
        if _SAYS_NONE.fullmatch(option):
            return Extraction(letter, "parsed", "none-option")
    return Extraction(None, "none", "none-correct")


# ---- Explicit statements ----


class _Lead(NamedTuple):
    """A lead-in to a claim; of two that end at one place the earlier in the table holds.

    Patterns are matched against lower-case text: ignoring case would cost half as much again.
    """

    rule: str
    pattern: re.Pattern[str]
    owned: bool = True  # Whether the words before it can disown it: "you said the answer is B".
    strict: bool = False  # Whether only an unmistakable letter or text counts after it.


_LEADS = (
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
            r"\b(?:therefore|thus|hence|so|in conclusion|it's|(?:yes|no)\b(?![.,]?\n)|"
            r"leaves(?: us with)?|(?:i|we) (?:still )?(?:think|believe|guess|suspect|feel))\b[,:]?|"
            r"\bans(?:wer)?[.?]"
        ),
        strict=True,
    ),
    _Lead(
        "is-correct",  # Read backwards: its subject is the claim.
        re.compile(
            r"[\s)\]*\"'.,]{0,3}\b(?:is|are|would be|seems|appears to be|remains)"
            r"(?: (?:both|likely|probably|therefore|thus|clearly|indeed|definitely|still))? "
            r"(?:correct\b(?! that)|(?:the|my) (?:answer|correct one|best)\b|(?:the|our|my) "
            r"(?:single )?(?:correct|right|best|most \w{1,12}|only correct|final) (?:[\w-]{1,16} )?"
            r"(?:answer|option|choice|one)\b)"
        ),
    ),
)
_NEEDED_BEFORE = {
    "answer-is": re.compile(r"\b(?:answer|choice|option|response|correct one|selection)\b"),
    "choice": re.compile(
        r"\b(?:i|we|let's|let us|i'[dlm]{1,2})\b|^\W{0,3}(?:so|thus|therefore|hence)?,? ?$"
    ),
}
# Two boxed answers in a row.
_LINKED = re.compile(r"\{\(?([A-Z])[)}\]$*\s]{1,6},? ?(?:or|and|/|&|,) ?[$*]{0,2}\Z")
_DISOWNED = re.compile(
    # Denied: "the answer cannot be B", "I don't think it is B", "the wrong answer is B".
    r"(?:\bnot?|n't|\bnever|\bcannot|\bnor|\bneither|\bunlikely to|\bunable to|\brather than|"
    r"\binstead of|\bhesitate to|\brefuse to|\bthan|\bincorrect|\bwrong|\bother)"
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
_SUBJECT = re.compile(
    r"(?:^|[.:;!?\n(,*\"'-] ?|\b(?i:option|choice|answer|letter|so|thus|therefore|hence|but|that|"
    r"because|and|or|only|is|think|believe) )[(\"']?(?P<letter>[A-Z])[)\"']?$"
)
_LETTER_BEFORE_TEXT = re.compile(r"(?<![A-Za-z0-9])([A-Z])[).:,\s(\"'-]{1,4}$")
_LETTER_BEFORE_LETTER = re.compile(r"\b([A-Z])\)?,? (?:and|or) (?:option )?\(?[A-Z]\)?$")


def _explicit(view: _View) -> Extraction | None:
    found = [
        (match.start() if lead.rule == "is-correct" else match.end(), -order, lead, match.start())
        for order, lead in enumerate(_LEADS)
        for match in lead.pattern.finditer(view.low)
    ]
    for position, _, lead, start in sorted(found, key=lambda item: item[:2], reverse=True):
        read = _subject if lead.rule == "is-correct" else _object
        claim = read(view, lead, start, position)
        if claim is not None:
            return claim
    return None


def _object(view: _View, lead: _Lead, start: int, end: int) -> Extraction | None:
    claim = _claim(view, end, lead.rule, strict=lead.strict)
    if claim is None:
        return None
    linked = _LINKED.search(view.text[max(0, start - 60) : start]) if lead.rule == "boxed" else None
    if linked is not None and linked[1] in view.options and linked[1] != claim.answer:
        return _CONFLICT
    if not lead.owned:
        return claim
    before = view.before(start)
    needed = _NEEDED_BEFORE.get(lead.rule)
    if needed is not None and not needed.search(before):
        return None
    return None if _DISOWNED.search(before) else claim


def _subject(view: _View, lead: _Lead, start: int, _: int) -> Extraction | None:
    before = view.text[max(0, start - 400) : start]
    for letter, option in view.options.items():
        if len(option) > 3 and before.lower().endswith(option):
            given = _LETTER_BEFORE_TEXT.search(before[: -len(option)])
            said = given[1] if given is not None and given[1] in view.options else letter
            disowned = _DISOWNED.search(view.before(start - len(option)))
            return None if disowned else Extraction(said, "parsed", lead.rule)
    subject = _SUBJECT.search(before)
    if subject is None or subject["letter"] not in view.options:
        return None
    if _DISOWNED.search(view.before(start - len(before) + subject.start())):
        return None
    pair = _LETTER_BEFORE_LETTER.search(before)
    if pair is not None and pair[1] in view.options and pair[1] != subject["letter"]:
        return _CONFLICT
    return Extraction(subject["letter"], "parsed", lead.rule)


# ---- The form of a reply ----

_START = _pattern(r"\W{0,12}(?:option |choice )?")
_REMARK = re.compile(r"[)\]\"'*]{0,3} (?:is|are|was|would|can|could|may|might|seems)\b")
_ITEM = re.compile(r"(?m)^[\s*_>-]{0,4}(?:[Oo]ption )?\(?([A-Z])(?:[.:)]\)?(?=\s|$)|$)")
_BOLD = re.compile(r"\*\*\s?\(?(?:[Oo]ption )?([A-Z])(?:\)|\*\*|[.:]\s)")
_VERDICT = _pattern(
    r"(?:\b(?:is|be|are|was|as|with|involves|includes?)\b|(?<=\w\w):|(?<=[)\]\"'*]):)[\s\"']{0,3}"
    r"(?:the )?(?=(?:option |choice )?[(\"'\[]?[a-z][\s)\].:,\"']|[a-z]$)"
)
_BRACKETED = re.compile(
    r" ?\((?:[Oo]ption )?([A-Z])\)(?! (?:is|was|are) (?:not|less|un|wrong|inc))"
)
_LETTERED = re.compile(r"(?<![A-Za-z0-9'])([A-Z])(?:[:.,]|\)|\):) ?[\"']?")
_DOUBTED = re.compile(
    r"\b(?:not|against|unlikely|cannot|disagree|exclud\w{1,3}|less likely|rule out|incorrect)\b|"
    r"n't\b"
)


def _sole(letters: Iterable[str], view: _View, rule: str) -> Extraction | None:
    distinct = set(letters)
    letter = distinct.pop() if len(distinct) == 1 else None
    return Extraction(letter, "parsed", rule) if letter in view.options else None


def _leading(view: _View) -> Extraction | None:
    start = _span(_START, view.text, 0)
    items = _ITEM.findall(view.text)
    if items[:2] == ["A", "B"] or _REMARK.match(view.low, start + 1):
        return None  # The options in their order, or a remark on one of them.
    bare = len(view.text.strip(" \n.()*\"'")) == 1
    return _claim(view, start, "bare-letter" if bare else "leading-letter", strict=True)


def _last_line(view: _View) -> Extraction | None:
    last = view.text.rstrip().rpartition("\n")[2].strip(" .*()[]\"'")
    return Extraction(last, "parsed", "last-line") if last in view.options else None


def _verdict(view: _View) -> Extraction | None:
    last = None
    for match in _VERDICT.finditer(view.text):
        claim = _claim(view, match.end(), "verdict", strict=True)
        if claim is not None and not _DISOWNED.search(view.before(match.start())):
            last = claim
    return last


def _bold(view: _View) -> Extraction | None:
    return _sole(_BOLD.findall(view.marked), view, "bold")


def _bracketed(view: _View) -> Extraction | None:
    """The letter in brackets behind an option's text, whichever option's."""
    texts = tuple(option for option in view.options.values() if len(option) > 3)
    letters = [
        match[1]
        for match in _BRACKETED.finditer(view.text)
        if view.low.endswith(texts, 0, match.start())
    ]
    return _sole(letters, view, "bracketed")


def _item(view: _View) -> Extraction | None:
    """The one letter that is written out with an option's text, or has a line to itself."""
    letters = _ITEM.findall(view.text)
    for match in _LETTERED.finditer(view.text):
        if match[1] in view.options and view.option_text_at(match.end()) is not None:
            if _DOUBTED.search(view.before(match.start())):
                return None
            letters.append(match[1])
    return _sole(letters, view, "item")


# ---- An option's words without its letter, and replies that give no answer ----

_COPULA = re.compile(r"\b(?:is|be|are|was|as|involves)\b:?")
_ASSERTED = re.compile(
    r"\b(?:most|best|likely|should|recommend|correct|answer|due to|caused by|consistent with|"
    r"choos\w*)\b"
)
_SAYS_NONE = re.compile(
    r"none of (?:the |these|those)?(?:above|options|answers|choices)?.{0,40}|"
    r"no correct answer.{0,20}|neither"
)
_NONE_CORRECT = re.compile(
    r"\bnone of (?:the|these|those)\b(?: \w{1,12}){0,3} (?:above|options?|answers?|choices?)\b|"
    r"\bnone of the above|\bno (?:correct|right) (?:answer|option|choice)\b|"
    r"\bno (?:option|answer|choice) is (?:the )?(?:correct|right)|"
    r"\bnot (?:\w{1,12} )?(?:among|in|one of|any of) the (?:\w{1,12} )?(?:options|choices|answers)|"
    r"\b(?:options|choices|answers)\b[^.\n]{0,40}\b(?:are|is) (?:all )?"
    r"(?:incorrect|wrong|not correct)"
)
_REFUSAL = re.compile(
    r"\b(?:i|i'm|i am|we)\b[^.\n]{0,60}?\b(?:cannot|can't|can not|unable|won't|will not|decline|"
    r"refuse|don't feel comfortable|must refrain|not (?:able|allowed|comfortable|qualified|"
    r"appropriate|programmed|permitted|in a position))\b[^.\n]{0,40}?"
    r"\b(?:provid|(?<!my )(?<!the )answer|giv|select|choos|offer|assist|help|respon|recommend|"
    r"particip|discuss|engag|compl|fulfil|diagnos|pick|do that|advice|advis|"
    r"make (?:a |any )?(?:medical|clinical|diagnos|judg|recommend|sel))|"
    r"\bnot appropriate for (?:me|an ai) to (?:answer|provide|give|select|choose)"
)


def _text_claim(view: _View) -> Extraction | None:
    last = None
    for match in _COPULA.finditer(view.low):
        start = _span(_OPENING, view.text, match.end())
        named = view.option_text_at(start)
        if named is None or named[1] - start < 4 or not _TEXT_END.match(view.text, named[1]):
            continue
        if not _DISOWNED.search(view.before(match.start())):
            last = Extraction(named[0], "parsed", "option-text")
    return last


def _refusal(view: _View) -> Extraction | None:
    return Extraction(None, "refused", "refusal") if _REFUSAL.search(view.low) else None


def _none_correct(view: _View) -> Extraction | None:
    return _no_option(view) if _NONE_CORRECT.search(view.low) else None


def _quoted(view: _View) -> Extraction | None:
    """The one option whose text a reply speaks well of, longest texts first."""
    low, named = view.low, set()
    for letter, option in sorted(view.options.items(), key=lambda item: -len(item[1])):
        at = low.find(option) if len(option) > 3 else -1
        while at >= 0 and letter not in named:
            end = at + len(option)
            if not _GLUED.match(low, end) and not low[at - 1 : at].isalnum():
                before = view.before(at)
                if _DOUBTED.search(before):
                    return None
                if _ASSERTED.search(before) or len(low) < len(option) + 40:
                    named.add(letter)
            at = low.find(option, end)
        # Blanked at its length, so that an option within this one is not found there.
        low = low.replace(option, "\n" * len(option)) if len(option) > 3 else low
    return _sole(named, view, "quoted-text")


# Strongest first: the first rule that finds something decides.
_RULES: tuple[Callable[[_View], Extraction | None], ...] = (
    _explicit,  # "Final Answer: (B)", "I would choose B", "B is the correct answer"; the last.
    _leading,  # "B. Clopidogrel ...", or nothing but "B".
    _last_line,
    _verdict,  # "The most likely diagnosis is: B. ..."
    _bold,
    _bracketed,
    _text_claim,
    _refusal,
    _item,
    _none_correct,
    _quoted,
)
