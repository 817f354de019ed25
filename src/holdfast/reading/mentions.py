"""Marks for the options that a reply mentions, one character each.

Rules need not know the spelling of an option: "(B)", "option b", "B. Clopidogrel" and "clopidogrel"
all become the same mark. This module alone decides whether a lone capital is an option or a word
("A lumbar puncture", "vitamin D", "E. coli").
"""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

from .languages import in_english
from .patterns import Patterns
from .reply_text import folded, plain_text, unmarked
from .words import WordKind, kinds

P = Patterns("mentions")

# Private use: an option by its letter, by its words, by both, a letter without an option, and an
# option by its letter with the words of another.
_LETTER, _WORDS, _BOTH_BASE, _NO_OPTION, _TORN = 0xE000, 0xE040, 0xE080, 0xE0C0, 0xE0DA


class Options(NamedTuple):
    """Letters of the options, and place and plain lower-case text of each, the longest first."""

    letters: tuple[str, ...]
    texts: tuple[tuple[int, str], ...]

    @property
    def words(self) -> Iterator[str]:
        """Texts of the options, the longest first."""
        return (text for _, text in self.texts)

    @property
    def full_texts(self) -> dict[int, str]:
        """Text of each option, by its place: the longest of its names."""
        return dict(reversed(self.texts))

    def letter(self, mark: str) -> str | None:
        """Return the letter of a marked option, None if the mark stands for no option."""
        place = ord(mark) - (_TORN if is_torn(mark) else _LETTER)
        return self.letters[place % 64] if place < 192 else None

    def mark(self, letter: str) -> str:
        """Return the mark of an option that is named by its letter."""
        return chr(_LETTER + self.letters.index(letter))


def is_torn(mark: str) -> bool:
    """Return whether a mention has the letter of an option and the words of another."""
    return chr(_TORN) <= mark < chr(_TORN + 26)


def form_of(mark: str) -> str:
    """Return the form of a mention: ``letter``, ``words``, ``both`` or ``none``."""
    if not mark or is_torn(mark):
        return "both" if mark else "none"
    return ("letter", "words", "both", "none")[(ord(mark) - _LETTER) // 64]


@lru_cache(maxsize=4096)  # the options of a question serve for each of its replies
def prepared(options: tuple[tuple[str, str], ...]) -> Options:
    """Return the options of a question, pairs of letter and text, prepared for the search."""
    texts = [unmarked(folded(text)).strip(" .\n\"'").lower() for _, text in options]
    texts = [P.article.sub("", text) if " " in text else text for text in texts]
    short_names = ((n, _short(text, texts)) for n, text in enumerate(texts) if " " in text)
    names = [*enumerate(texts), *((n, name) for n, name in short_names if name)]
    longest = sorted(names, key=lambda item: -len(item[1]))
    return Options(tuple(letter for letter, _ in options), tuple(longest))


def _short(text: str, texts: list[str]) -> str:
    """Return the short name of an option, empty if there is none or another option contains it."""
    qualifier = P.qualifier.search(text)
    name = text[: qualifier.start()].strip(" .,;:-") if qualifier else ""
    if qualifier and qualifier["word"] and " " not in name:
        return ""  # "Refer for surgery"
    is_unique = len(name) > 4 and not any(name in other for other in texts if other != text)
    return name if is_unique else ""


def marked(text: str, options: Options) -> str:
    """Return a plain text in lower case, with a mark for each mentioned option.

    Args:
        text: Text from `reply_text.plain_text`.
        options: Options to search for.
    """
    if not text.isascii():
        text = P.private.sub("", text)
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
            joint = rf"{chr(_LETTER + place)}[).:]{{1,2}} ?{options.mark(option_words.upper())}"
            text = re.sub(joint, chr(_BOTH_BASE + place), text)
    if {form_of(mark) for _, _, mark in mentions} >= {"letter", "words"}:
        text = P.letter_then_words.sub(_letter_with_words, text)
        text = P.words_then_letter.sub(_words_with_letter, text)
    return P.run_on.sub(_end_line, text).lower()


@lru_cache(8)  # a decision is also read as an answer
def marked_in_english(text: str, options: Options) -> str:
    """Return a plain text with its relevant words in English, in the form of `marked`."""
    return marked(in_english(text, options.words), options)


def named_options(text: str, options: Mapping[str, str]) -> set[str | None]:
    """Return the letters of the options that a text names, by letter or by words."""
    options_searched = prepared(tuple(options.items()))
    marks = P.option.findall(marked(plain_text(text), options_searched))
    return {options_searched.letter(mark) for mark in marks}


_Mention = tuple[int, int, str]

# ---- Options by their words ----


def _by_words(low: str, options: Options, taken_places: bytearray) -> list[_Mention]:
    mentions: list[_Mention] = []
    for place, option_words in options.texts:
        size = len(option_words)
        if not size or (size == 1 and not option_words.isdigit()):
            continue
        start = low.find(option_words)
        named_only = start >= 0 and (size < 4 or P.signals.fullmatch(option_words))
        while start >= 0:
            end = start + size
            # longer texts come first, so an overlapping text has an end inside them
            is_taken = taken_places[start] or taken_places[end - 1]
            is_glued = low[start - 1 : start].isalnum() or P.glued_text.match(low, end)
            is_named = P.naming.search(low, max(0, start - 12), start) and P.text_end.match(
                low, end
            )
            if not (is_taken or is_glued or (named_only and not is_named)):
                mentions.append((start, end, chr(_WORDS + place)))
                taken_places[start:end] = bytes((place + 1,)) * size
            start = low.find(option_words, end)
    return mentions


# ---- Options by their letters ----

_CLOSERS = tuple(")]}\"'*$>\\")
_NOUN = frozenset(("option", "options", "choice", "choices", "letter", "alternative", "answer"))
_SURE = _NOUN | frozenset(("is", "to", "with", "choose", "select", "pick", "for", "it's", "not"))


def _by_letter(text: str, low: str, options: Options, taken_places: bytearray) -> list[_Mention]:
    mentions: list[_Mention] = []
    places = {letter: _LETTER + place for place, letter in enumerate(options.letters)}
    singles = {text.upper(): _WORDS + n for n, text in options.texts if len(text) == 1}
    marks = {**singles, **places}  # an option "X", as a numeral
    for match in P.capital.finditer(text):
        at = match.start()
        pair = P.pair.match(text, max(0, at - 2)) if "/" in text[max(0, at - 1) : at + 2] else None
        if pair is not None and not places.keys() >= set(pair["letters"].split("/")):
            continue  # "V/Q scan"
        if not taken_places[at] and _is_option(text, low, at, match[0], taken_places):
            mark = marks.get(match[0], _NO_OPTION + ord(match[0]) - 65)
            mentions.append((at, at + 1, chr(mark)))
    for match in P.lower.finditer(text):
        at = match.start()
        place = places.get(match[0].upper())
        is_cut_off = P.cut_off.match(text, max(0, at - 3)) and not text.islower()
        if place is None or taken_places[at] or is_cut_off:
            continue
        if P.before_lower.search(text, max(0, at - 20), at):
            mentions.append((at, at + 1, chr(place)))
    return mentions


_TITLES = frozenset("dr drs mr mrs ms prof professor doctor".split())
_BETWEEN_WORDS = re.compile(r"[^\w']")


def _last_word(text: str) -> str:
    return _BETWEEN_WORDS.split(text)[-1]


def _leads(word: str) -> bool:
    """Return whether a lone capital after a word can be an option outside a name."""
    kind = kinds(word)
    return bool((kind and not kind & WordKind.OTHER) or kind & (WordKind.LEADING | WordKind.OWNER))


def _is_option(text: str, low: str, at: int, letter: str, taken_places: bytearray) -> bool:
    end = at + 1
    is_symbol = P.no_mention.match(text, end) or P.bond.match(text, max(0, at - 3))
    if is_symbol:
        return False
    if text[end : end + 1] == "-" and text[end + 1 : end + 2].isalnum():
        return bool(taken_places[end + 1])  # "B-Clopidogrel"; not "B-cell"
    before = low[max(0, at - 18) : at].rstrip(" ")
    bare = before.rstrip("([{\"'*<$")
    is_opened = len(bare) < len(before)
    word = _last_word(bare.rstrip(" "))
    is_titled = word in _TITLES or bare[-1:] == "."
    if is_titled and P.initial.search(text, max(0, at - 16), at):
        return False
    before_end = text[at - 1 : at]
    if at > 1 and letter != "I" and taken_places[at - 2] and P.verb.match(low, end):
        return True  # "Final Answer: (B) Clopidogrel C would fit"
    is_closed = P.closing.match(text, end) is not None
    if is_opened and is_closed and text[end : end + 1] in _CLOSERS:
        return True
    if before_end == "-" and text[at - 2 : at - 1].isalpha() and at > 1:
        return _leads(_last_word(bare[:-1]))  # "Answer-B"; not "anti-B"
    beside = max(taken_places[end : end + 4], default=0)
    if beside and not (letter == "A" and beside != 1 and taken_places[end + 1] == beside):
        # words of an option follow the letter, but "a clopidogrel infusion" has an article
        return not word or is_opened or _leads(word) or word.isdigit()
    is_asian = max(word[:1], word[-1:]) > "\u2fff"
    if word and not (is_opened or is_asian or _leads(word) or word in ("b", "c", "d", "e")):
        return False
    if P.species.match(text, end):
        return False
    if word in _NOUN:
        said_of = P.said_of_i if letter == "I" else P.said_of
        return is_closed or letter not in "AI" or bool(said_of.match(text, end))
    if is_closed:
        # a reply cut off after "Therefore, I" ends in a word, not in an answer
        cut = letter == "I" and not text[end:].strip() and before_end == " "
        return not cut or word in _SURE or not (word or text[at - 2 : at - 1] == ",")
    if letter == "I":
        return P.said_of_i.match(text, end) is not None
    if letter == "A":
        is_label = text[at - 2 : at].strip() == ":" and text[end + 1 : end + 2].isupper()
        return is_label or P.said_of.match(low, end) is not None
    return P.names.match(low, end) is None


# ---- Merging a letter and the adjacent words into one mention ----


def _end_line(match: re.Match[str]) -> str:
    before = match.string[max(0, match.start() - 6) : match.start()]
    is_kept = len(before) < 6 or "\n" in before
    is_kept = is_kept or before.lower().endswith(("for ", " if ", "with "))
    return match[0] if is_kept else f"{match[1]}\n"


def _letter_with_words(match: re.Match[str]) -> str:
    mark = _merge(match["letter"], match["words"])
    # "I would not choose B. Clopidogrel is better": another option after a full stop
    is_labelled = P.label.search(match.string, max(0, match.start() - 16), match.start())
    is_subject = P.said_of.match(match.string, match.end())
    is_list = match["between"].rstrip() in ("", ",", "),")
    if is_torn(mark) and (is_subject or is_list or not is_labelled):
        return match[0]
    # "A 5-HT3 antagonist" may begin with an article
    if match["letter"] == chr(_LETTER) and match["between"] == " ":
        return match["words"]
    return mark


def _words_with_letter(match: re.Match[str]) -> str:
    mark = _merge(match["letter"] or match["apart"], match["words"])
    return match[0] if match["apart"] and is_torn(mark) else mark


def _merge(letter: str, words: str) -> str:
    """Return the mark of an option by both, which is torn if the words are another option's."""
    is_same = ord(words) - ord(letter) == _WORDS - _LETTER
    return chr(ord(letter) + (_BOTH_BASE if is_same else _TORN) - _LETTER)
