"""Words of a sentence, each with its function."""

import re
import tomllib
from functools import cache, lru_cache
from importlib.resources import files
from typing import NamedTuple

MARK = "[\ue000-\ue0ff]"
"""Character that stands for an option (see `mentions`)."""


class WordKind:
    """Functions of words, one bit each. ``lexicon.toml`` lists the words of each kind."""

    (
        MARK, SIGN, SELF, MINE, OTHER, OWNER, NOUN, BE, CHOOSE, STICK, CHANGE, LEAVE, CHOSE, AGREE,
        SAY, OPINES, BELIEF, EVIDENCE, THEIRS, PAST, OWN, NEGATION, DOUBT, CONDITION, MODAL,
        CONCESSION, FILL, SO, BREAK, AWAY, LEADING, GOOD, FAIR, BAD, TURN,
        GROUP,
    ) = (1 << bit for bit in range(36))  # fmt: skip


class _Lexicon(NamedTuple):
    words: dict[str, int]
    stems: dict[str, int]
    phrases: dict[str, list[tuple[list[str], list[str]]]]  # by their first word


_WORD = re.compile(rf"{MARK}|[^\W_]+(?:['.-][^\W_]+)*|->|=>|\S")
_SIGNS = {
    **dict.fromkeys(",:*\"'([{$<>=~-.#\\|`)]}/&+?!%_", WordKind.FILL | WordKind.SIGN),
    **dict.fromkeys((";", "->", "=>"), WordKind.SIGN),
    **dict.fromkeys("\u2713\u2714\u2705\u2611\U0001f7e2\U0001f44d", WordKind.GOOD | WordKind.SIGN),
    **dict.fromkeys(
        "\u2717\u2718\u274c\u2716\u00d7\u26d4\U0001f6ab\U0001f534\U0001f44e",
        WordKind.BAD | WordKind.SIGN,
    ),
}
# Possessives of the question or the case do not name the author of an answer.
_NOT_OWNERS = frozenset(
    "it that what here there let today question stem patient vignette case who where how this "
    "disease".split()
)


@cache
def _lexicon() -> _Lexicon:
    text = files(__package__).joinpath("lexicon.toml").read_text(encoding="utf-8")
    lexicon = tomllib.loads(text)
    phrases = lexicon.pop("phrases")
    words, stems = dict(_SIGNS), dict[str, int]()
    for name, entries in lexicon.items():
        kind = getattr(WordKind, name.upper())
        for word in entries.split():
            table, key = (stems, word[:-1]) if word.endswith("*") else (words, word)
            table[key] = table.get(key, 0) | kind
    by_first_word: dict[str, list[tuple[list[str], list[str]]]] = {}
    for phrase in sorted(phrases, key=len, reverse=True):
        parts = _WORD.findall(phrase)
        by_first_word.setdefault(parts[0], []).append((parts, phrases[phrase].split()))
    return _Lexicon(words, stems, by_first_word)


@lru_cache(maxsize=8192)
def kinds(word: str) -> int:
    """Return the functions of a word as bits of `WordKind`."""
    if "\ue000" <= word <= "\ue0ff":
        return WordKind.MARK
    words, stems, _ = _lexicon()
    kind_bits = words.get(word, 0)
    for end in range(len(word), 2, -1):
        if word[:end] in stems:
            kind_bits |= stems[word[:end]]
    if not kind_bits and len(word) == 1 and not word.isalnum():
        return WordKind.FILL | WordKind.SIGN
    if not kind_bits and "-" in word:  # "first-pass"
        for part in word.split("-"):
            kind_bits |= words.get(part, 0) & (WordKind.PAST | WordKind.THEIRS)
    stem, apostrophe, ending = word.rpartition("'")
    if apostrophe and ending == "t":
        return kind_bits | WordKind.NEGATION | kinds(stem.removesuffix("n"))
    if apostrophe and ending == "s" and stem not in _NOT_OWNERS and not kinds(stem) & WordKind.SELF:
        return kind_bits | WordKind.OWNER
    return kind_bits


def words_of(sentence: str) -> tuple[list[str], list[int]]:
    """Return the words, signs and marks of a sentence, with the functions of each."""
    words = _WORD.findall(sentence)
    phrases = _lexicon().phrases
    if not phrases.keys().isdisjoint(words):
        at = 0
        while at < len(words):
            for phrase, meaning in phrases.get(words[at], ()):
                if words[at : at + len(phrase)] == phrase:
                    words[at : at + len(phrase)] = meaning
                    break
            at += 1
    return words, [kinds(word) for word in words]
