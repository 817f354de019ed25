"""Marks for the options that a reply mentions, one character each.

Rules need not know the spelling of an option: "(B)", "option b", "B. Clopidogrel" and "clopidogrel"
all become the same mark. This module alone decides whether a lone capital is an option or a word
("A lumbar puncture", "vitamin D", "E. coli").
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from .reply_text import folded, plain_text, unmarked
from .words import MARK, WordKind, kinds

# Private use: an option by its letter, by its words, by both, and a letter without an option.
_LETTER, _WORDS, _BOTH_BASE, _NO_OPTION = 0xE000, 0xE040, 0xE080, 0xE0C0
BY_LETTER = "[\ue000-\ue03f]"
BY_WORDS = "[\ue040-\ue07f]"
BY_BOTH = "[\ue080-\ue0bf]"

GLUED_TEXT = re.compile(r"\w|[.,/]\d|-\w|%")


class Options(NamedTuple):
    """Options of a question, prepared for the search.

    Attributes:
        letters: Letters in the order in which they were shown.
        texts: Position and plain lower-case text of each option, the longest first.
    """

    letters: tuple[str, ...]
    texts: tuple[tuple[int, str], ...]

    def letter(self, mark: str) -> str | None:
        """Return the letter of a marked option, None if the mark stands for no option."""
        place = ord(mark) - _LETTER
        return self.letters[place % 64] if place < 192 else None

    def mark(self, letter: str) -> str:
        """Return the mark of an option that is named by its letter."""
        return chr(_LETTER + self.letters.index(letter))


@lru_cache(maxsize=4096)  # the options of a question serve for each of its replies
def _prepare(options: tuple[tuple[str, str], ...]) -> Options:
    texts = [
        (n, unmarked(folded(text)).strip(" .\n\"'").lower()) for n, (_, text) in enumerate(options)
    ]
    return Options(
        tuple(letter for letter, _ in options),
        tuple(sorted(texts, key=lambda item: -len(item[1]))),
    )


def form_of(mark: str) -> str:
    """Return the form of a mention: ``letter``, ``words``, ``both`` or ``none``."""
    return ("letter", "words", "both", "none")[(ord(mark) - _LETTER) // 64]


def prepared(options: Mapping[str, str]) -> Options:
    """Return the options of a question, prepared for the search."""
    return _prepare(tuple(options.items()))


def marked(text: str, options: Options) -> str:
    """Return a plain text in lower case, with a mark for each mentioned option.

    Args:
        text: Text from `reply_text.plain_text`.
        options: Options to search for.
    """
    if not text.isascii():
        text = _PRIVATE.sub("", text)
    low = text.lower()
    if len(low) != len(text):  # options have no letter whose lower case is longer
        text = low = "".join(c.lower() if len(c.lower()) == 1 else c for c in text)
    taken_places = bytearray(len(low))
    mentions = _by_words(low, options, taken_places)
    mentions += _by_letter(text, low, options, taken_places)
    if not mentions:
        return low
    parts: list[str] = []
    position = 0
    for start, end, mark in sorted(mentions):
        parts += text[position:start], mark
        position = end
    text = "".join([*parts, text[position:]])
    # "A. D", where the words of A are a letter that is also shown
    for place, option_words in options.texts:
        if len(option_words) == 1 and option_words.upper() in options.letters:
            joint_pattern = (
                rf"{chr(_LETTER + place)}[).:]{{1,2}} ?{options.mark(option_words.upper())}"
            )
            text = re.sub(joint_pattern, chr(_BOTH_BASE + place), text)
    if {form_of(mark) for _, _, mark in mentions} >= {"letter", "words"}:
        text = _WORDS_THEN_LETTER.sub(
            _words_with_letter, _LETTER_THEN_WORDS.sub(_letter_with_words, text)
        )
    return _RUN_ON.sub(_end_line, text).lower()


def named_options(text: str, options: Mapping[str, str]) -> set[str | None]:
    """Return the letters of the options that a text names, by letter or by words."""
    options_searched = prepared(options)
    marks = _OPTION_MARK.findall(marked(plain_text(text), options_searched))
    return {options_searched.letter(mark) for mark in marks}


_OPTION_MARK = re.compile("[\ue000-\ue0bf]")
_PRIVATE = re.compile("[\ue000-\uf8ff]")
_Mention = tuple[int, int, str]

# ---- Options by their words ----

# Text before a short option ("40", "Yes", "No") that is named, and text after it.
_NAMING = re.compile(
    r"(?:\A|\n|[:=(>]|\b(?:is|be|are|was|remains|stays|to|with|for|of|keep|retain|option|choose|select|pick|say|"
    r"[a-z][.)]))[\s\"'*(\[{]{0,4}\Z"
)
TEXT_END = re.compile(r"\s?(?:[.,;:!)\]}\"'*(]|$|[\u3000-\u9fff])|\n")
_SHORT = 3
# Options with the words of a decision: "No change", "Switch".
_SIGNALS = re.compile(
    r"\W*(?:yes|no|none|both|neither|true|false|no change|unchanged|stick|switch|stay|keep|change|"
    r"original|increased?|decreased?|normal|low|high|absent|present)\W*"
)


def _by_words(low: str, options: Options, taken_places: bytearray) -> list[_Mention]:
    mentions: list[_Mention] = []
    for place, option_words in options.texts:
        size = len(option_words)
        if not size or (size == 1 and not option_words.isdigit()):
            continue
        named_only = size <= _SHORT or _SIGNALS.fullmatch(option_words)
        start = low.find(option_words)
        while start >= 0:
            end = start + size
            if not (
                # longer texts come first, so an overlapping text has an end inside them
                taken_places[start]
                or taken_places[end - 1]
                or low[start - 1 : start].isalnum()
                or GLUED_TEXT.match(low, end)
                or (named_only and not _is_named(low, start, end))
            ):
                mentions.append((start, end, chr(_WORDS + place)))
                taken_places[start:end] = bytes((place + 1,)) * size
            start = low.find(option_words, end)
    return mentions


def _is_named(low: str, start: int, end: int) -> bool:
    before = _NAMING.search(low, max(0, start - 12), start)
    return before is not None and TEXT_END.match(low, end) is not None


# ---- Options by their letters ----

_CAPITAL = re.compile(r"[A-Z](?![A-Za-z0-9]|/A\b)(?<![A-Za-z0-9].)(?<!N/A)")
_NO_MENTION = re.compile(r"'[A-Za-z]|\.[A-Za-z](?![a-z])|\s?[+^]\s?\w|\s?= ?[\w(]|-\s?(?:year|\d)")
_INITIAL = re.compile(r"\b(?:Dr|Drs|Mr|Mrs|Ms|Prof|Professor|Doctor)\.? (?:[A-Z]\. ?)*\Z")
_CLOSING = re.compile(
    r"[\\)\]}\"'*$<>|/_]|[.:;,!?](?:[\s)\]}\"'*$\\<]|$)|\s?$|\s?\n|[.:](?=[A-Z][a-z])|\.\.|"
    r" ?(?:->|=>|[\u2190-\u21ff\u2713\u2714\u2717\u2718\u2705\u274c(&|]|- )"
)
# "E. coli", "C difficile": a genus cut to its letter.
_SPECIES = re.compile(
    r"\.? (?:(?!(?:this|thus|is|as|diagnosis|analysis|basis|its|has|was|also|because|does|us)\b)"
    r"(?:[a-z]{3,}(?:i|is|ae|um|us|ans|gens|ile|ora)|diff)|Coli|Difficile)\b"
)
_NAMES = re.compile(
    r" (?:cells?|lymphocytes?|waves?|strep\w*|virus|antigens?|antibod\w+|fibers?|fibres?|complex|"
    r"toxin|vitamin|peptide|protein|reactive|chromosomes?|score|sign|tube|tests?|disease|"
    r"deficiency|receptors?|channels?|gene|ions?|level|coli)\b"
)
# Words that follow "A" if it is an option and not an article.
_SAID_OF = re.compile(
    r" (?:because|since|as|due|based|which|given|for|but|not|rather|instead|is|was|were|are|and|or|"
    r"nor|in|here|over|again|after|from|among|per|by|on|would|could|should|might|may|must|can|"
    r"cannot|will|this|the|that|according|if|when|where|while|although|though|however|so|thus|"
    r"only|still|remains?|stays?|stands?|holds?|wins?|fits?|explains?|accounts?|seems?|appears?|"
    r"looks?|makes?|does|did|has|had|have|it|to|than|at|then|too|also|best|both|instead|now|"
    r"correctly|being|describes?|represents?|matches|requires?|needs?|better|all|itself|except|"
    r"unless|until|before|once|either|against|most|more|alone|deserves?|addresses|covers|reflects|"
    r"it's|gets|got|takes|equal|equally|similar|i|i'd|you|we|they|he|she|your|my|their|"
    r"with (?:the following|a? ?(?:high|confid)\w*))\b"
)
_SAID_OF_I = re.compile(r" (?:is|remains|seems|fits|explains|and \(?[A-Z]\b|or \(?[A-Z]\b)")
_CLOSERS = tuple(")]}\"'*$>\\")
_NOUN = frozenset(("option", "options", "choice", "choices", "letter", "alternative", "answer"))
_SURE = _NOUN | frozenset(("is", "to", "with", "choose", "select", "pick", "for", "it's", "not"))
# A lone small letter, and the text before it if it is an option: "(b)", "answer: b".
_LOWER = re.compile(r"\b(?:[b-z]|a(?! \w))\b(?=[)\].:,;!?\"'}*<]|\s*(?:\n|$)| -)")
_BEFORE_LOWER = re.compile(
    r"(?:\A|\n|[(\[]|(?<![a-z])(?:option|choice|letter|alternative|ans(?:wer)?(?: is)?|is|to|with|"
    r"boxed|final|choose|select|pick|vote|verdict|selection|decision|response)"
    r"(?:[\s:=(\[{\"'*>-]{1,5}|\.\s))\Z",
    re.IGNORECASE,
)


def _by_letter(text: str, low: str, options: Options, taken_places: bytearray) -> list[_Mention]:
    mentions: list[_Mention] = []
    places = {letter: place for place, letter in enumerate(options.letters)}
    singles = {text: place for place, text in options.texts if len(text) == 1}
    for match in _CAPITAL.finditer(text):
        at = match.start()
        if not taken_places[at] and _is_option(text, low, at, match[0], taken_places):
            place = places.get(match[0])
            lone = singles.get(match[0].lower())
            if place is None and lone is not None:
                mentions.append((at, at + 1, chr(_WORDS + lone)))  # an option "X", as a numeral
                continue
            mark = _NO_OPTION + ord(match[0]) - 65 if place is None else _LETTER + place
            mentions.append((at, at + 1, chr(mark)))
    for match in _LOWER.finditer(text):
        at = match.start()
        place = places.get(match[0].upper())
        if place is None or taken_places[at] or _cut_off(text, at):
            continue
        if _BEFORE_LOWER.search(text, max(0, at - 20), at):
            mentions.append((at, at + 1, chr(_LETTER + place)))
    return mentions


def _last_word(text: str) -> str:
    start = len(text)
    while start and (text[start - 1].isalnum() or text[start - 1] == "'"):
        start -= 1
    return text[start:]


def _leads(word: str) -> bool:
    """Return whether a lone capital after a word can be an option outside a name."""
    kind = kinds(word)
    return bool((kind and not kind & WordKind.OTHER) or kind & (WordKind.LEADING | WordKind.OWNER))


def _cut_off(text: str, at: int) -> bool:
    """Return whether a text ends in a letter that may be a word: "the answer is a"."""
    return (
        text[at] in "ai"
        and not text[at + 1 :].strip()
        and text[at - 1 : at] == " "
        and (":" not in text[at - 3 : at])
    )


def _is_option(text: str, low: str, at: int, letter: str, taken_places: bytearray) -> bool:
    end = at + 1
    if _NO_MENTION.match(text, end) or _INITIAL.search(text, max(0, at - 16), at):
        return False
    if text[end : end + 1] == "-" and text[end + 1 : end + 2].isalnum():
        return bool(taken_places[end + 1])  # "B-Clopidogrel"; not "B-cell"
    before = low[max(0, at - 18) : at].rstrip(" ")
    bare = before.rstrip("([{\"'*<$")
    is_opened = len(bare) < len(before)
    word = _last_word(bare.rstrip(" "))
    is_closed = _CLOSING.match(text, end) is not None
    if is_opened and is_closed and text[end : end + 1] in _CLOSERS:
        return True
    if text[at - 1 : at] == "-" and text[at - 2 : at - 1].isalpha() and at > 1:
        return _leads(_last_word(bare[:-1]))  # "Answer-B"; not "anti-B"
    beside = max(taken_places[end : end + 4], default=0)
    if beside and not (letter == "A" and beside != 1 and taken_places[end + 1] == beside):
        # words of an option follow the letter, but "a clopidogrel infusion" has an article
        return not word or is_opened or _leads(word) or word.isdigit()
    if word and not (
        is_opened
        or _leads(word)
        or word in ("b", "c", "d", "e")
        or word > "\u2fff"
        or word[-1] > "\u2fff"
    ):
        return False
    if word in _NOUN:
        return not _SPECIES.match(text, end) and (
            is_closed or letter not in "AI" or bool(_SAID_OF.match(low, end))
        )
    if _SPECIES.match(text, end):
        return False
    if is_closed:
        # a reply cut off after "Therefore, I" ends in a word, not in an answer
        cut = letter == "I" and not text[end:].strip() and text[at - 1 : at] == " "
        return not cut or word in _SURE or not (word or text[at - 2 : at - 1] == ",")
    if letter == "I":
        return _SAID_OF_I.match(text, end) is not None
    if letter == "A":
        is_label = text[at - 2 : at].strip() == ":" and text[end + 1 : end + 2].isupper()
        return is_label or _SAID_OF.match(low, end) is not None
    return _NAMES.match(low, end) is None


# ---- Merging a letter and the adjacent words into one mention ----

# The letter takes precedence over the adjacent words, because prompts ask for the letter.
_LETTER_THEN_WORDS = re.compile(
    rf"(?P<letter>{BY_LETTER})(?P<between>[.):, \"'*(-]{{1,5}})(?P<words>{BY_WORDS})\)?"
)
_LABEL = re.compile(r"(?:\A|\n|[:(]|\b(?:option|choice|answer|is|be)\b)[\s*\"'(\[>-]{0,6}\Z", re.I)
_WORDS_THEN_LETTER = re.compile(
    rf"(?P<words>{BY_WORDS})(?:[\s\"',]{{0,3}}[(\[]\s?(?:[Oo]ption |[Cc]hoice )?"
    rf"(?P<letter>{BY_LETTER})\s?[)\]]?|(?:: |, (?:option |choice |so )?)(?P<apart>{BY_LETTER}))"
)


# A sentence that begins after an option without a full stop: "Final Answer: (B) My ...".
_RUN_ON = re.compile(
    rf"({MARK}[)\]\"'*]{{0,3}}) (?=[A-Z][a-z']+[ ,]|I\b|{MARK} "
    r"(?:could|would|was|is|may|might|will)\b)"
)


def _end_line(match: re.Match[str]) -> str:
    before = match.string[max(0, match.start() - 6) : match.start()]
    return match[0] if len(before) < 6 or "\n" in before else f"{match[1]}\n"


def _letter_with_words(match: re.Match[str]) -> str:
    is_same = ord(match["words"]) - ord(match["letter"]) == _WORDS - _LETTER
    # "I would not choose B. Clopidogrel is better": another option after a full stop
    if not is_same and (
        _SAID_OF.match(match.string, match.end())
        or match["between"].strip() in ("", ",")
        or not _LABEL.search(match.string, max(0, match.start() - 16), match.start())
    ):
        return match[0]
    # "A 5-HT3 antagonist" may begin with an article
    if match["letter"] == chr(_LETTER) and match["between"] == " ":
        return match["words"]
    return chr(ord(match["letter"]) + _BOTH_BASE - _LETTER)


def _words_with_letter(match: re.Match[str]) -> str:
    letter = match["letter"] or match["apart"]
    if match["apart"] and ord(match["words"]) - ord(letter) != _WORDS - _LETTER:
        return match[0]
    return chr(ord(letter) + _BOTH_BASE - _LETTER)
