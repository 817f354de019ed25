"""Read the answer letter out of a model's free-text reply.

The principle: an explicit statement of the answer beats the form a reply has, the form beats a
mere quotation of an option, and of several explicit statements the last one holds.  Where the
letter and the text beside it disagree the letter holds, because the letter is what a prompt asks
for; a letter that is no option gives no answer, whatever text stands beside it.
"""

import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping
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
    spoken = _fold(_excerpt(_without_reasoning(reply)))
    if not spoken.strip():
        return Extraction(None, "none", "unfinished" if _TAG.search(reply) else "empty")
    text = _unmarked(spoken)
    texts = {letter: _unmarked(_fold(option)).strip(" .") for letter, option in options.items()}
    view = _View(text, text.lower(), spoken, {k: v.lower() for k, v in texts.items()})
    for rule in _RULES:
        found = rule(view)
        if found is not None:
            return found
    return Extraction(None, "none", "nothing")


# --- Text preparation.  Every quantifier in this file that could meet a long run is bounded,
# --- so that a hostile reply costs time in proportion to its length.

_QUOTES = str.maketrans("\u2018\u2019\u201a\u201b\u201c\u201d\u201e\u201f\u00ab\u00bb\u2032\u2033"
                        "\u2010\u2011\u2012\u2013\u2014\u2015\u2212\u3002\u3010\u3011\u300c\u300d\r",
                        "''''\"\"\"\"\"\"'\"" "-------" ".[]\"\"\n")
_TAG_NAMES = r"think|thinking|thoughts?|reasoning|reflection|scratchpad|analysis"
_TAG = re.compile(
    rf"<\s?(?P<close>/)?\s?(?:{_TAG_NAMES})\b[^<>\n]{{0,80}}>|<unused94>|(?P<close2><unused95>)"
    r"|<\|begin_of_thought\|>|(?P<close3><\|end_of_thought\|>)"
    r"|<\|channel\|>analysis|(?P<close4><\|channel\|>final(?:<\|message\|>)?)",
    re.IGNORECASE,
)


# Of a very long reply only its ends are read, where answers stand: that bounds the time taken.
_HEAD, _TAIL = 4_000, 20_000


def _excerpt(text: str) -> str:
    text = re.sub(r"\s{4,}", lambda run: "\n\n" if "\n" in run[0] else " ", text).strip()
    if len(text) <= _HEAD + _TAIL:
        return text
    return f"{text[:_HEAD]}\n\n{text[-_TAIL:]}"


def _fold_character(character: str) -> str:
    if unicodedata.category(character) in ("Cf", "Cc", "Cs", "Mn"):
        return ""
    plain = unicodedata.normalize("NFKD", character)
    return "".join(c for c in plain if unicodedata.category(c) not in ("Mn", "Cf"))


def _fold(text: str) -> str:
    # Character by character: normalising a whole string sorts runs of combining marks, which
    # takes quadratic time on a hostile run.
    text = text.translate(_QUOTES)
    if not text.isascii():
        text = text.translate({ord(c): _fold_character(c) for c in set(text) if c > "\x7e"})
    text = re.sub(r"[\x00-\x08\x0b-\x1f\x7f]", "", text)
    text = re.sub(r"[^\S\n]+", " ", text)
    return re.sub(r" ?\n[ \n]*", lambda run: "\n\n" if run[0].count("\n") > 1 else "\n", text)


def _without_reasoning(text: str) -> str:
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
                and (found is None or end > found[1])
            ):
                found = letter, end
        return found

    def sentence_before(self, position: int) -> str:
        """The start of the sentence that goes on at a position, at most 160 characters."""
        return re.split(
            r"[.!?][\"')\]]{0,2}(?=\s)|\n", self.low[max(0, position - 160) : position].rstrip(" ")
        )[-1]


# --- Reading a claim: what stands after a lead-in such as "the answer is".

_GLUED = re.compile(r"\w|[.,/]\d|-\w|%")
_FILLER = re.compile(
    r"(?:[\s,:*_\"'(\[{$<>=~-]|\\[a-z]{1,12}|(?:still|indeed|clearly|definitely|therefore|most|"
    r"likely|probably|option|choice|answer|letter|number|alternative|my|your|the|of|original|"
    r"initial|previous|first|final|earlier|correct|best|both|either|indeed|as|to be|that|is|with)"
    r"\b){0,16}",
    re.IGNORECASE,
)
_OPENING = re.compile(r"[\s:*_\"'(\[{<>=~-]{0,10}(?:\\[a-z]{1,12}\{)?(?:the |an? )?", re.IGNORECASE)
# What may follow "A" or "I" when it is an answer and no article or pronoun.
_CONNECTIVE = re.compile(
    r" (?:because|since|as|due|based|which|given|for|but|not|rather|instead|is|was|and|or|with the"
    r" following|in this|here|over|again|after|from|among|per|by|on the|in the|would|"
    r"this|the|that|according|if|when|while|although|however|so|thus|with (?:a )?(?:high|confid))\b"
)
# "E. coli", "C difficile": a genus cut to its letter, not an option.
_SPECIES = re.compile(
    r"\.? (?!this\b|thus\b|is\b|as\b|diagnosis\b|analysis\b|basis\b)"
    r"(?:[a-z]{3,}(?:i|is|ae|um|us|ans|gens|ile|ora)|diff|coli)\b"
)
_CLOSED = re.compile(r"[)\]}\"'*$>]|[.:;,!?](?:[\s)\]}\"'*$\\<]|$)|\s?$|\s?\n|[.:](?=[A-Z][a-z])| as (?:the|my) ")
_PAIRED = re.compile(
    r"[\s)\]}\"'*_$]{0,4}(?P<link>,? ?(?:\band/or\b|\band\b|\bor\b|&|/|\+)|,)"
    r"(?:[\s*_\"'(\[{$]|\\[a-z]{1,12}|also|(?:option|choice|answer)\b){0,8}(?P<other>[A-Z])"
    r"(?P<tail>[\s)\]}\"'*_$]{0,3}(?:[.,;:!?)\]}<]|$)|\n|[\s)\]}\"'*_$]{1,3}"
    r"(?:are (?:both|all|the|correct|right|equally)|both|because|since|depending|together|could|and|or)\b)"
)
_NO_OPTION = re.compile(
    r"(?:none (?:of (?:the |these |those )?|are |is )|no (?:correct|right|single correct) (?:answer|op"
    r"tion|choice)|not (?:listed|given|provided|among)|(?:null|none|n/?a)\b[\s\"'.)}\]]{0,3}(?:\n|$|,))"
)


def _letter_at(view: _View, at: int, *, strict: bool) -> str | None:
    """The upper-case letter that stands alone at a position, an option's or not."""
    text = view.text
    letter, end = text[at : at + 1], at + 1
    if not (letter.isascii() and letter.isalpha()) or _GLUED.match(text, end):
        own = view.options.get(letter.upper(), "")
        if not (own and text[end : end + 1] == "-" and view.low.startswith(own, end + 1)):
            return None
    if re.compile(r"'[a-z]|\.[A-Za-z](?![a-z])|\s?[=^+]|-\s?year").match(text, end):
        return None
    own = view.options.get(letter.upper(), "")
    after = re.compile(r"[).:,\s-]{0,3}").match(text, end)
    assert after is not None
    quoted = bool(own) and len(own) > 1 and view.low.startswith(own[:40], after.end())
    if not quoted and _SPECIES.match(text, end):
        return None
    pair = _PAIRED.match(text, end)
    paired = pair is not None and pair["other"] in view.options
    closed = quoted or paired or _CLOSED.match(text, end) is not None
    # A reply cut off after "is a" or "Therefore, I" ends in a word, not in an answer.
    word = letter.islower() or letter in "AI"
    if strict and word and text[at - 1 : at] not in "([{\"'*" and not text[end:].strip():
        return None
    if letter.islower() or strict or letter not in view.options:
        return letter.upper() if closed else None
    if not closed and letter in "AI" and not _CONNECTIVE.match(text, end):
        return None
    return letter


def _claim(view: _View, position: int, rule: str, *, strict: bool = False) -> Extraction | None:
    """Read what a lead-in that ends at a position claims, or None if it claims nothing."""
    filler = _FILLER.match(view.text, position)
    opening = _OPENING.match(view.text, position)
    assert filler is not None and opening is not None
    for start in (position, filler.end(), opening.end()):
        start += view.text[start : start + 1] == " "
        named = view.option_text_at(start)
        if named is not None:
            letter, end = named
            given = re.compile(r"[\s\"',]{0,3}\((?:option )?([A-Z])\)", re.I).match(view.text, end)
            if given is not None and given[1].upper() in view.options:
                return Extraction(given[1].upper(), "parsed", rule)
            link = re.compile(r",? (?:or|and) (?:the )?").match(view.low, end)
            other = view.option_text_at(link.end()) if link is not None else None
            if other is not None and other[0] != letter:
                return Extraction(None, "ambiguous", "conflict")
            if not strict or re.compile(r"\s?(?:[.,;:!)\]}\"'*]|$)|\n").match(view.text, end):
                return Extraction(letter, "parsed", rule if rule != "states" else "option-text")
    at = filler.end()
    letter_read = _letter_at(view, at, strict=strict)
    if letter_read is None:
        if not strict and _NO_OPTION.match(view.low, at):
            return _no_option(view)
        return None
    if letter_read not in view.options:
        return Extraction(None, "none", "not-an-option")
    own_end = re.compile(r"[).:,\s-]{0,3}").match(view.text, at + 1)
    assert own_end is not None
    ends = [at + 1]
    if view.low.startswith(view.options[letter_read], own_end.end()):
        ends.append(own_end.end() + len(view.options[letter_read]))
    for end in ends:
        pair = _PAIRED.match(view.text, end)
        if pair is not None and pair["other"] in view.options and pair["other"] != letter_read:
            return Extraction(None, "ambiguous", "conflict")
    return Extraction(letter_read, "parsed", rule)


def _no_option(view: _View) -> Extraction:
    for letter, option in view.options.items():
        if _SAYS_NONE.fullmatch(option):
            return Extraction(letter, "parsed", "option-text")
    return Extraction(None, "none", "none-correct")


# --- Explicit statements: lead-ins to a claim, strongest name first.


class _Lead(NamedTuple):
    rule: str
    pattern: re.Pattern[str]
    owned: bool = True  # Whether the words before it can disown it ("you said the answer is B").
    strict: bool = False


def _pattern(source: str) -> re.Pattern[str]:
    return re.compile(source, re.IGNORECASE)


_LEADS = (
    _Lead("boxed", _pattern(r"\\f?box(?:ed)?\{"), owned=False),
    _Lead(
        "final-answer",
        _pattern(r"final[ _](?:answer|choice|decision|selection|verdict)\b[\s*_\"')\]]{0,4}[:=-]?"),
        owned=False,
    ),
    _Lead("json", _pattern(r"[\"']\w{0,12}(?:answer|choice|option|letter)(?:_\w{1,10})?[\"'] ?: ?"), owned=False),
    _Lead("answer-tag", _pattern(r"<(?:final_?)?answer>"), owned=False),
    _Lead(
        "answer-label",
        _pattern(
            r"(?:\b(?:answers?|ans|choice|option|letter|selection|conclusion|decision|verdict)"
            r"(?: (?:is|choice|option|letter|hasn't changed|has not changed))?[\s*_\"')\]]{0,4}(?:[:=\n]|->?)|\u7b54\u6848[\u662f\u4e3a]?:?)"
        ),
    ),
    _Lead("answer-is", _pattern(r"\b(?:is|be|are|was|remains?|stays|stands at|being)\b:?")),
    _Lead(
        "choice",
        _pattern(
            r"\b(?:choos(?:e|ing)|select(?:ing)?|pick(?:ing)?|go(?:ing)? with|opt(?:ing)? for|"
            r"recommend|answer|say|vote for|stick(?:ing)? (?:with|to)|stand(?:ing)? by|maintain|"
            r"keep|settle on|lean towards?|give you|(?:chang|switch|revis|updat)\w{0,3} [^.\n]{0,40}?\bto)\b"
        ),
    ),
    _Lead("therefore", _pattern(r"\b(?:therefore|thus|hence|so|in conclusion|it's|(?:yes|no)\b(?![.,]?\n)|leaves(?: us with)?|(?:i|we) "
        r"(?:still )?(?:think|believe|guess|suspect|feel))\b[,:]?|\bans(?:wer)?[.?]"), strict=True),
)
_LINKED = re.compile(r"\{\(?([A-Z])[)}\]$*\s]{1,6},? ?(?:or|and|/|&|,) ?[$*]{0,2}$")
_ANSWER_WORD = re.compile(r"\b(?:answer|choice|option|response|correct one|selection)\b")
_SELF = re.compile(r"\b(?:i|we|let's|let us|i'[dlm]{1,2})\b|^\W{0,3}(?:so|thus|therefore|hence)?,? ?$")
_DISOWNED = re.compile(
    r"(?:\bnot?|n't|\bnever|\bcannot|\bnor|\bneither|\bunlikely to|\bunable to|\brather than|"
    r"\binstead of|\bhesitate to|\brefuse to|\bthan|\b(?:in)correct|\bwrong|\bother)(?: \w{1,12})?[ \"']{0,2}$"
    r"|(?:\bnot|n't|\bhardly|\bcannot) (?:\w{1,8} )?(?:think|believe|agree|say|mean|the case|sure|"
    r"certain|convinced|necessarily)\b[^,;]*$"
    r"|\b(?:incorrect|wrong) (?:answer|option|choice)"
    r"|(?<!my )\b(?:conviction|belief|claim|suggestion|assertion|opinion|assumption|idea|view|notion)"
    r" (?:that|is)\b[^.\n]{0,60}$"
    r"|\b(?:you|your|user|patient|colleague|physician|doctor|expert|professor|some|many|others?|someone|"
    r"people|one|they|he|she)\b(?:(?!\bi\b)[^,;:\n]){0,40}\b(?:sa[yi]|said|th[io][nu]|suggest|claim|"
    r"belie|argu|insist|mention|stat|propos|indicat|assert|feel|consider|convinc|choos|select|pick)"
    r"[^,;:\n]{0,40}$"
    r"|\b(?:previous|initial|earlier|original|first|prior)(?:ly)? (?:answer )?was$"
    r"|\bif\b(?! i (?:had|have|were)\b).{0,120}\b(?:would|might|could)(?: \w{1,10})?$|\bwhether\b"
)
_IS_CORRECT = re.compile(
    r"[\s)\]*\"'.,]{0,3}\b(?:is|are|would be|seems|appears to be|remains)(?: (?:both|likely|probably|"
    r"therefore|thus|clearly|indeed|definitely|still))? (?:correct\b(?! that)|(?:the|our|my) (?:single )?"
    r"(?:correct|right|best|most \w{1,12}|only correct|final) (?:\w{1,12} )?(?:answer|option|choice|one)\b|"
    r"(?:the|my) (?:answer|correct one|best)\b)"
)
_REFERENCE = re.compile(
    r"(?:^|[.:;!?\n(,*\"'-] ?|\b(?i:option|choice|answer|letter|so|thus|therefore|hence|but|that|"
    r"because|and|or|only|is|think|believe) )[(\"']?(?P<letter>[A-Z])[)\"']?$"
)


def _explicit(view: _View) -> Extraction | None:
    found: list[tuple[int, int, Callable[[], Extraction | None]]] = []
    for order, lead in enumerate(_LEADS):
        for match in lead.pattern.finditer(view.low):
            def read(lead: _Lead = lead, match: re.Match[str] = match) -> Extraction | None:
                return _lead_claim(view, lead, match)
            found.append((match.end(), -order, read))
    for match in _IS_CORRECT.finditer(view.low):
        def read_back(match: re.Match[str] = match) -> Extraction | None:
            return _subject(view, match.start())
        found.append((match.start(), -len(_LEADS), read_back))
    found.sort(key=lambda item: item[:2], reverse=True)
    for _, _, read_claim in found:
        claim = read_claim()
        if claim is not None:
            return claim
    return None


def _lead_claim(view: _View, lead: _Lead, match: re.Match[str]) -> Extraction | None:
    claim = _claim(view, match.end(), lead.rule, strict=lead.strict)
    linked = _LINKED.search(view.text[max(0, match.start() - 60) : match.start()])
    if claim is not None and linked is not None and linked[1] in view.options and (
        linked[1] != claim.answer
    ):
        return Extraction(None, "ambiguous", "conflict")
    if claim is None or not lead.owned:
        return claim
    before = view.sentence_before(match.start())
    if lead.rule == "answer-is" and not _ANSWER_WORD.search(before):
        return None
    if lead.rule == "choice" and not _SELF.search(before):
        return None
    return None if _DISOWNED.search(before) else claim


def _subject(view: _View, end: int) -> Extraction | None:
    """Read what stands before "is the correct answer"."""
    start = max(0, end - 400)
    before = view.text[start:end]
    for letter, option in view.options.items():
        if len(option) > 3 and before.lower().endswith(option):
            head = before[: -len(option)]
            given = re.search(r"(?<![A-Za-z0-9])([A-Z])[).:,\s(\"'-]{1,4}$", head)
            if given is not None and given[1] in view.options:
                letter = given[1]
            if _DISOWNED.search(view.sentence_before(end - len(option))):
                return None
            return Extraction(letter, "parsed", "is-correct")
    reference = _REFERENCE.search(before)
    if reference is None or _DISOWNED.search(view.sentence_before(start + reference.start())):
        return None
    letter = reference["letter"]
    if letter not in view.options:
        return None
    pair = re.search(r"\b([A-Z])\)?,? (?:and|or) (?:option )?\(?[A-Z]\)?$", before)
    if pair is not None and pair[1] in view.options and pair[1] != letter:
        return Extraction(None, "ambiguous", "conflict")
    return Extraction(letter, "parsed", "is-correct")


# --- Forms of a reply.

_START = _pattern(r"\W{0,12}(?:option |choice )?")
_ITEM = re.compile(r"(?m)^[\s*_>-]{0,4}(?:[Oo]ption )?\(?([A-Z])(?:[.:)]\)?(?=\s|$)|$)")
_BOLD = re.compile(r"\*\*\s?\(?(?:[Oo]ption )?([A-Z])(?:\)|\*\*|[.:]\s)")
_VERDICT = _pattern(
    r"(?:\b(?:is|be|are|was|as|with|involves|include|includes)\b|(?<=\w\w):|(?<=[)\]\"'*]):)[\s\"']{0,3}"
    r"(?:the )?(?=(?:option |choice )?[(\"'\[]?[a-z][\s)\].:,\"']|[a-z]$)"
)
_BRACKETED = re.compile(r" ?\((?:[Oo]ption )?([A-Z])\)(?! (?:is|was|are) (?:not|less|un|wrong|incorr))")
_LETTERED = re.compile(r"(?<![A-Za-z0-9'])([A-Z])(?:[:.,]|\)|\):) ?[\"']?")
_DOUBTED = re.compile(r"\b(?:not|against|unlikely|cannot|disagree|exclud\w{1,3}|less likely|rule out|incorrect)\b|n't\b")
_WRONG = re.compile(r"[)\]\"'*]{0,3} (?:is|are|was|would|can|could|may|might|seems)\b")


def _leading(view: _View) -> Extraction | None:
    start = _START.match(view.text)
    assert start is not None
    items = [item[1] for item in _ITEM.finditer(view.text)]
    if items[:2] == ["A", "B"]:
        return None
    claim = _claim(view, start.end(), "leading-letter", strict=True)
    if claim is None or claim.rule == "option-text":
        return None
    if _WRONG.match(view.low, start.end() + 1):
        return None
    if len(view.text.strip(" \n.()*\"'")) == 1 and claim.answer:
        return Extraction(claim.answer, "parsed", "bare-letter")
    return claim


def _sole(letters: Iterator[str], view: _View, rule: str) -> Extraction | None:
    distinct = {letter.upper() for letter in letters}
    letter = distinct.pop() if len(distinct) == 1 else None
    return Extraction(letter, "parsed", rule) if letter in view.options else None


def _verdict(view: _View) -> Extraction | None:
    last = None
    for match in _VERDICT.finditer(view.text):
        claim = _claim(view, match.end(), "verdict", strict=True)
        if claim is not None and not _DISOWNED.search(view.sentence_before(match.start())):
            last = claim
    return last


def _bold(view: _View) -> Extraction | None:
    return _sole((m[1] for m in _BOLD.finditer(view.marked)), view, "bold")


def _last_line(view: _View) -> Extraction | None:
    last = view.text.rstrip().rpartition("\n")[2].strip(" .*()[]\"'")
    return Extraction(last, "parsed", "last-line") if last in view.options else None


def _bracketed(view: _View) -> Extraction | None:
    letters = (
        match[1]
        for match in _BRACKETED.finditer(view.text)
        if any(len(o) > 3 and view.low.endswith(o, 0, match.start()) for o in view.options.values())
    )
    return _sole(letters, view, "bracketed")


def _item(view: _View) -> Extraction | None:
    """The one option that is written out, letter and text or alone on its line."""
    letters = [item[1] for item in _ITEM.finditer(view.text)]
    for match in _LETTERED.finditer(view.text):
        own = view.options.get(match[1], "")
        if len(own) > 1 and view.low.startswith(own, match.end()):
            if _DOUBTED.search(view.sentence_before(match.start())):
                return None
            letters.append(match[1])
    return _sole(iter(letters), view, "item")


# --- No answer, and an option's words without its letter.

_SAYS_NONE = re.compile(
    r"none of (?:the |these|those)?(?:above|options|answers|choices)?.{0,40}|no correct answer.{0,20}|neither"
)
_NONE_CORRECT = re.compile(
    r"\bnone of (?:the|these|those)\b(?: \w{1,12}){0,3} (?:above|options?|answers?|choices?)\b|"
    r"\bnone of the above|\bno (?:correct|right) (?:answer|option|choice)\b|"
    r"\bno (?:option|answer|choice) is (?:the )?(?:correct|right)|"
    r"\bnot (?:\w{1,12} )?(?:among|in|one of|any of) the (?:\w{1,12} )?(?:options|choices|answers)|"
    r"\b(?:options|choices|answers)\b[^.\n]{0,40}\b(?:are|is) (?:all )?(?:incorrect|wrong|not correct)"
)
_REFUSAL = re.compile(
    r"\b(?:i|i'm|i am|we)\b[^.\n]{0,60}?\b(?:cannot|can't|can not|unable|not able|not allowed|won't|"
    r"will not|must decline|decline|refuse|not comfortable|don't feel comfortable|not in a position|"
    r"not appropriate|not programmed|not permitted|must refrain)\b[^.\n]{0,40}?\b(?:provid|answer|giv|select|choos|"
    r"offer|assist|help|respon|recommend|make (?:a |any )?(?:medical|clinical|diagnos|judg|recommend|sel)|particip|discuss|engag|compl|fulfil|diagnos|pick|do "
    r"that|advice|advis)"
)
_DONT_KNOW = re.compile(r"\bi (?:do not|don't|really don't) know\b|\bi am not sure|\bi'm not sure")


_ASSERTED = re.compile(
    r"\b(?:most|best|likely|should|recommend|correct|answer|due to|caused by|consistent with|choos\w*)\b"
)


def _text_claim(view: _View) -> Extraction | None:
    last = None
    for match in re.finditer(r"\b(?:is|be|are|was|as|involves)\b:?", view.low):
        opening = _OPENING.match(view.text, match.end())
        assert opening is not None
        named = view.option_text_at(opening.end())
        if named is None or named[1] - opening.end() < 4:
            continue
        if re.compile(r"\s?(?:[.,;:!)\]}\"'*(]|$)|\n").match(view.text, named[1]) and not (
            _DISOWNED.search(view.sentence_before(match.start()))
        ):
            last = Extraction(named[0], "parsed", "option-text")
    return last


def _whole_text(view: _View) -> Extraction | None:
    start = _OPENING.match(view.text)
    assert start is not None
    for at in (0, start.end()):
        named = view.option_text_at(at)
        if named is not None and re.compile(r"[.,;:!)\"'*]|\s?\(|$|\n").match(view.text, named[1]):
            return Extraction(named[0], "parsed", "option-text")
    return None


def _refusal(view: _View) -> Extraction | None:
    return Extraction(None, "refused", "refusal") if _REFUSAL.search(view.low) else None


def _none_correct(view: _View) -> Extraction | None:
    return _no_option(view) if _NONE_CORRECT.search(view.low) else None


def _quoted(view: _View) -> Extraction | None:
    low, named = view.low, set()
    for letter, option in sorted(view.options.items(), key=lambda item: -len(item[1])):
        if len(option) < 4:
            continue
        at, tries = low.find(option), 0
        while at >= 0 and tries < 1000:
            end, tries = at + len(option), tries + 1
            if not _GLUED.match(low, end) and not (at and low[at - 1].isalnum()):
                before = view.sentence_before(at)
                if _DOUBTED.search(before):
                    return None
                if _ASSERTED.search(before) or len(low) < len(option) + 40:
                    named.add(letter)
                    break
            at = low.find(option, end)
        low = low.replace(option, "\n" * len(option))
    letter = named.pop() if len(named) == 1 else None
    return Extraction(letter, "parsed", "quoted-text") if letter else None


_RULES: tuple[Callable[[_View], Extraction | None], ...] = (
    _explicit,
    _leading,
    _last_line,
    _verdict,
    _bold,
    _bracketed,
    _whole_text,
    _text_claim,
    _refusal,
    _item,
    _none_correct,
    _quoted,
)
