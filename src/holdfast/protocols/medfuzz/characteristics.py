"""Mentions: the added characteristics that a reply mentions, by its words and without a model."""

import math
import re
from collections.abc import Sequence
from functools import cache, lru_cache

from holdfast.challenges.texts import excerpt, words_of
from holdfast.files import packaged

IDEOGRAPHS = "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
"""Characters of scripts without spaces between words, as ranges of a regular expression."""

_WINDOW = 10
# the end of a sentence adds to the distance between words
_SENTENCE = 4
_END = re.compile(r"[.!?:;]\s|\n")
_IDEOGRAPH = re.compile(f"[{IDEOGRAPHS}]")
_SHARE = 0.5
_SHORTEST = 4


def mentions(reply: str, characteristics: Sequence[str]) -> list[bool]:
    """Return whether a reply mentions each characteristic, even to deny or dismiss it.

    A characteristic counts as mentioned if enough of its content words are within 10 words of each
    other: at least half of them, and at least two if it has two or more. Endings are ignored. The
    end of a sentence counts as four words. Content words are not function words and, if the
    characteristic has others, not words that every vignette contains. If a reply exceeds 24,000
    characters, only the first 8,000 and the last 16,000 are used, including the reasoning.
    """
    word_places: list[tuple[int, str]] = []
    place = 0
    for sentence in _END.split(excerpt(reply)):
        words = _split(sentence)
        word_places += [(place + number, stem(word)) for number, word in enumerate(words)]
        place += len(words) + _SENTENCE
    return [
        _stands_in(telling_stems(characteristic), word_places) for characteristic in characteristics
    ]


def stems(text: str) -> frozenset[str]:
    """Return the stems of the words of a text, without function words."""
    return frozenset(stem(word) for word in _split(text) if not is_function_word(word))


def telling_stems(text: str) -> frozenset[str]:
    """Return the stems of the words of a text that describe a patient."""
    words = [word for word in _split(text) if not is_function_word(word)]
    telling = [word for word in words if word not in _words("vignette_words")]
    return frozenset(map(stem, telling or words))


def is_function_word(word: str) -> bool:
    """Whether a lower-case word is a function word."""
    return word in _words("stop_words")


@lru_cache(4096)
def stem(word: str) -> str:
    """Return a word without its endings, equal for all forms of the word; not always a word."""
    for _ in range(3):
        ending = next(
            (e for e in _endings() if word.endswith(e) and len(word) - len(e) >= _SHORTEST), None
        )
        if ending is None:
            break
        word = word.removesuffix(ending)
    if len(word) > _SHORTEST and word[-1] == word[-2]:
        return word[:-1]
    return word


def _split(text: str) -> list[str]:
    """Split into lower-case words, or pairs of characters in scripts without spaces."""
    words = []
    for word in words_of(text).split():
        if len(word) > 2 and not word.isascii() and _IDEOGRAPH.search(word):
            words += [word[place : place + 2] for place in range(len(word) - 1)]
        else:
            words.append(word)
    return words


def _stands_in(stems_sought: frozenset[str], word_places: Sequence[tuple[int, str]]) -> bool:
    least_count = max(min(2, len(stems_sought)), math.ceil(_SHARE * len(stems_sought)))
    places = [(place, word) for place, word in word_places if word in stems_sought]
    first, inside = 0, dict.fromkeys(stems_sought, 0)
    distinct = 0
    for place, word in places:
        distinct += not inside[word]
        inside[word] += 1
        while places[first][0] <= place - _WINDOW:
            first_stem = places[first][1]
            inside[first_stem] -= 1
            distinct -= not inside[first_stem]
            first += 1
        if distinct >= least_count:
            return True
    return False


@cache
def _words(name: str) -> frozenset[str]:
    return frozenset(str(packaged(__package__, "mentions.toml")[name]).split())


@cache
def _endings() -> tuple[str, ...]:
    return tuple(sorted(_words("endings"), key=lambda ending: (-len(ending), ending)))
