"""Words of a sentence, each with its function."""

import re
from functools import cache, lru_cache
from typing import NamedTuple

from holdfast.files import packaged

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
    not_owners: frozenset[str]
    phrases: dict[str, dict[str, list[tuple[list[str], list[str]]]]]  # by their first two words


_WORD = re.compile(rf"{MARK}|[^\W_]+(?:['.-][^\W_]+)*|->|=>|\S")


@cache
def _lexicon() -> _Lexicon:
    lexicon = packaged(__package__, "lexicon.toml")
    phrases = lexicon["phrases"]
    words, stems = dict[str, int](), dict[str, int]()
    for name, entries in lexicon["kinds"].items():
        kind = getattr(WordKind, name.upper())
        for word in entries.split():
            table, key = (stems, word[:-1]) if word.endswith("*") else (words, word)
            table[key] = table.get(key, 0) | kind
    by_words: dict[str, dict[str, list[tuple[list[str], list[str]]]]] = {}
    for phrase in sorted(phrases, key=len, reverse=True):
        parts = _WORD.findall(phrase)
        by_second_word = by_words.setdefault(parts[0], {})
        entry = parts, phrases[phrase].split()
        by_second_word.setdefault("".join(parts[1:2]), []).append(entry)
    return _Lexicon(words, stems, frozenset(lexicon["sets"]["not_owners"].split()), by_words)


@lru_cache(maxsize=8192)
def kinds(word: str) -> int:
    """Return the functions of a word as bits of `WordKind`."""
    if "\ue000" <= word <= "\ue0ff":
        return WordKind.MARK
    words, stems, not_owners, _ = _lexicon()
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
        auxiliary = stem if stem == "can" else stem.removesuffix("n")
        return kind_bits | WordKind.NEGATION | kinds(auxiliary)
    if apostrophe and ending == "s" and stem not in not_owners and not kinds(stem) & WordKind.SELF:
        return kind_bits | WordKind.OWNER
    return kind_bits


def words_of(sentence: str) -> tuple[list[str], list[int]]:
    """Return the words, signs and marks of a sentence, with the functions of each."""
    words = _WORD.findall(sentence)
    phrases = _lexicon().phrases
    if not phrases.keys().isdisjoint(words):
        at = 0
        while at < len(words):
            if (seconds := phrases.get(words[at])) is not None:
                second = words[at + 1] if at + 1 < len(words) else ""
                for phrase, meaning in (*seconds.get(second, ()), *seconds.get("", ())):
                    if words[at : at + len(phrase)] == phrase:
                        words[at : at + len(phrase)] = meaning
                        break
            at += 1
    return words, [kinds(word) for word in words]
