"""Read the answer letter out of a model's free-text reply.

The principle: an explicit statement of the answer beats the form a reply has, the form beats a
mere quotation of an option, and of several explicit statements the last one holds.  Where the
letter and the text beside it disagree the letter holds, because the letter is what a prompt asks
for; a letter that is no option gives no answer, whatever text stands beside it.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache

from holdfast.questions import is_none_of_the_above

from .claim import (
    GLUED,
    OPENING,
    TEXT_END,
    Extraction,
    Status,
    View,
    claim_at,
    ignoring_case,
    no_option,
    span_end,
)
from .refusal import REFUSAL
from .reply_text import folded, has_reasoning, spoken_text, unmarked
from .statement import is_disowned, is_rejected, stated

__all__ = ["Extraction", "Status", "extract_answer", "first_character"]


def extract_answer(reply: str, options: Mapping[str, str]) -> Extraction:
    """Read the answer to a multiple-choice question out of a reply.

    Args:
        reply: The model's whole reply; any string, reasoning included.
        options: Option letter (A to Z) to option text, in the order they were shown.

    Returns:
        The answer with the rule that found it, or the reason why there is none.
    """
    spoken = spoken_text(reply)
    if not spoken.strip():
        return Extraction(None, "none", "unfinished" if has_reasoning(reply) else "empty")
    text = unmarked(spoken)
    texts = {key: _option_text(value) for key, value in options.items()}
    view = View(text, text.lower(), spoken, texts)
    for rule in _RULES:
        found = rule(view)
        if found is not None:
            return found
    return Extraction(None, "none", "nothing")


@lru_cache(maxsize=8192)  # the options of a question are looked for in each of its replies
def _option_text(value: str) -> str:
    return unmarked(folded(value)).strip(" .").lower()


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


# ---- The form of a reply ----

_START = ignoring_case(r"\W{0,12}(?:option |choice )?")
_REMARK = re.compile(r"[)\]\"'*]{0,3} (?:is|are|was|would|can|could|may|might|seems)\b")
_ITEM = re.compile(r"(?m)^[\s*_>-]{0,4}(?:[Oo]ption )?\(?([A-Z])(?:[.:)]\)?(?=\s|$)|$)")
_BOLD = re.compile(r"\*\*\s?\(?(?:[Oo]ption )?([A-Z])(?:\)|\*\*|[.:]\s)")
_VERDICT = ignoring_case(
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


def _sole(letters: Iterable[str], view: View, rule: str) -> Extraction | None:
    distinct = set(letters)
    letter = distinct.pop() if len(distinct) == 1 else None
    return Extraction(letter, "parsed", rule) if letter in view.options else None


def _leading(view: View) -> Extraction | None:
    start = span_end(_START, view.text, 0)
    items = _ITEM.findall(view.text)
    if items[:2] == ["A", "B"] or _REMARK.match(view.low, start + 1):
        return None  # The options in their order, or a remark on one of them.
    bare = len(view.text.strip(" \n.()*\"'")) == 1
    return claim_at(view, start, "bare-letter" if bare else "leading-letter", strict=True)


def _last_line(view: View) -> Extraction | None:
    last = view.text.rstrip().rpartition("\n")[2].strip(" .*()[]\"'")
    return Extraction(last, "parsed", "last-line") if last in view.options else None


def _verdict(view: View) -> Extraction | None:
    last = None
    for match in _VERDICT.finditer(view.text):
        claim = claim_at(view, match.end(), "verdict", strict=True)
        if claim is not None and not is_disowned(view.before(match.start())):
            last = claim
    return last


def _bold(view: View) -> Extraction | None:
    marked = view._replace(text=view.marked, low=view.marked.lower())
    letters = [
        match[1]
        for match in _BOLD.finditer(view.marked)
        if not is_rejected(marked, match.start(), match.end())
    ]
    return _sole(letters, view, "bold")


def _bracketed(view: View) -> Extraction | None:
    """The letter in brackets behind an option's text, whichever option's."""
    texts = tuple(option for option in view.options.values() if len(option) > 3)
    letters = [
        match[1]
        for match in _BRACKETED.finditer(view.text)
        if view.low.endswith(texts, 0, match.start())
        and not is_rejected(view, match.start(), match.end())
    ]
    return _sole(letters, view, "bracketed")


def _item(view: View) -> Extraction | None:
    """The one letter that is written out with an option's text, or has a line to itself."""
    letters = _ITEM.findall(view.text)
    for match in _LETTERED.finditer(view.text):
        start = match.start()
        named = view.option_text_at(match.end()) if match[1] in view.options else None
        if named is not None:
            if _DOUBTED.search(view.before(start)) or is_rejected(view, start, named[1]):
                return None
            letters.append(match[1])
    return _sole(letters, view, "item")


# ---- An option's words without its letter, and replies that give no answer ----

_COPULA = re.compile(r"\b(?:is|be|are|was|as|involves)\b:?")
_ASSERTED = re.compile(
    r"\b(?:most|best|likely|should|recommend|correct|answer|due to|caused by|consistent with|"
    r"choos\w*)\b"
)
_ABSENT = re.compile(r"\b(?:no|without)$")
_NONE_CORRECT = re.compile(
    r"\bnone of (?:the|these|those)\b(?: \w{1,12}){0,3} (?:above|options?|answers?|choices?)\b|"
    r"\bnone of the above|\bno (?:correct|right) (?:answer|option|choice)\b|"
    r"\bno (?:option|answer|choice) is (?:the )?(?:correct|right)|"
    r"\bnot (?:\w{1,12} )?(?:among|in|one of|any of) the (?:\w{1,12} )?(?:options|choices|answers)|"
    r"\b(?:options|choices|answers)\b[^.\n]{0,40}\b(?:are|is) (?:all )?"
    r"(?:incorrect|wrong|not correct)"
)


def _text_claim(view: View) -> Extraction | None:
    last = None
    for match in _COPULA.finditer(view.low):
        start = span_end(OPENING, view.text, match.end())
        named = view.option_text_at(start)
        if named is None or named[1] - start < 4 or not TEXT_END.match(view.text, named[1]):
            continue
        part_of_an_option = view.within_option_text(*match.span())
        if not (part_of_an_option or is_disowned(view.before(match.start()))):
            last = Extraction(named[0], "parsed", "option-text")
    return last


def _refusal(view: View) -> Extraction | None:
    return Extraction(None, "refused", "refusal") if REFUSAL.search(view.low) else None


def _none_correct(view: View) -> Extraction | None:
    said = _NONE_CORRECT.search(view.low) or is_none_of_the_above(view.text)
    return no_option(view) if said else None


def _quoted(view: View) -> Extraction | None:
    """The one option whose text a reply speaks well of, longest texts first."""
    low, named = view.low, set()
    for letter, option in sorted(view.options.items(), key=lambda item: -len(item[1])):
        at = low.find(option) if len(option) > 3 else -1
        while at >= 0 and letter not in named:
            end = at + len(option)
            if not GLUED.match(low, end) and not low[at - 1 : at].isalnum():
                before = view.before(at)
                if _DOUBTED.search(before) or is_rejected(view, at, end):
                    return None
                asserted = _ASSERTED.search(before) or len(low) < len(option) + 40
                if asserted and not _ABSENT.search(before):
                    named.add(letter)
            at = low.find(option, end)
        # Blanked at its length, so that an option within this one is not found there.
        low = low.replace(option, "\n" * len(option)) if len(option) > 3 else low
    return _sole(named, view, "quoted-text")


# Strongest first: the first rule that finds something decides.
_RULES: tuple[Callable[[View], Extraction | None], ...] = (
    stated,  # "Final Answer: (B)", "I would choose B", "B is the correct answer"; the last.
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
