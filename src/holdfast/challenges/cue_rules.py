"""Many regular expressions at once, fast enough to read the cues of every reply."""

import re
from collections.abc import Iterator
from itertools import groupby
from typing import AnyStr

MARK = "\ue000"
"""Stands before each cue in a text; ``~`` in a rule."""

# What is said of a cue stands within so many characters of it.
_REACH = 160


class Rules:
    """Regular expressions, tried only where the letters stand that a match begins with.

    A match is what one expression with all of them as its branches would find, in a fraction of
    the time: few words of a text can begin one.
    """

    def __init__(self, rules: list[str]) -> None:
        """Compile rules in which ``~`` is a mark and ``>>`` what may stand between it and a word.

        Args:
            rules: numbered from 0 in `matches`.
        """
        # nothing of "my earlier answer" is said of the cue
        own = "my (?:earlier|previous|initial|first|original|prior) "
        window = f"(?:(?!{own})[^{MARK}]){{0,{_REACH}}}?"
        # rules that begin at a mark, with the letters of which some must follow within reach
        self._at_mark: list[tuple[int, list[bytes]]] = []
        self._anywhere: list[tuple[int, re.Pattern[str]]] = []
        self._match = []
        begun: dict[bytes, set[int]] = {}
        for number, rule in enumerate(rules):
            source = rule.replace("~", MARK).replace(">>", window)
            self._match.append(re.compile(source, re.IGNORECASE).match)
            if rule.startswith("~"):
                then = sorted(_beginnings(rule.partition(">>")[2]))
                self._at_mark.append((number, [_letters(one) for one in then]))
            elif beginnings := _beginnings(rule):
                for one in beginnings:
                    begun.setdefault(_letters(one), set()).add(number)
            else:
                self._anywhere.append((number, re.compile(f"(?={source})", re.IGNORECASE)))
        longest = max((len(one) for _, then in self._at_mark for one in then), default=0)
        self._passage = 2 + _REACH + longest
        # the longest first, and what begins it begins here too
        words = sorted((one for one in begun if one.startswith(b" ")), reverse=True)
        self._words = {
            word: sorted(set().union(*(begun[one] for one in words if word.startswith(one))))
            for word in words
        }
        # by the first letter, since that alone makes `re` pass over a branch at once
        same = groupby((word[1:] for word in words), key=lambda word: word[:1])
        choice = (b"%b(?:%b)" % (first, b"|".join(w[1:] for w in rest)) for first, rest in same)
        self._word = re.compile(b" (?=(%b))" % b"|".join(choice))
        self._within = [(one, sorted(begun[one])) for one in begun if one not in self._words]

    def matches(self, text: str) -> Iterator[tuple[int, int]]:
        """The rule's number and the start of each match, from left to right, none in another."""
        end = 0
        for at, number in sorted(self._candidates(text, _letters("\n" + text))):
            if at >= end and (found := self._match[number](text, at)):
                yield number, at
                end = found.end()

    def _candidates(self, text: str, letters: bytes) -> Iterator[tuple[int, int]]:
        """Where a rule can match: ``letters`` has one more at its start."""
        for word in self._word.finditer(letters):
            at = word.start()
            for number in self._words[b" " + word[1]]:
                yield at, number
        for some, numbers in self._within:
            for at in _places(some, letters):
                yield from ((at - 1, number) for number in numbers)
        for at in _places(MARK, text) if self._at_mark else ():
            # up to the next mark
            end = text.find(MARK, at + 1, at + self._passage)
            passage = letters[at + 1 : 1 + end if end > 0 else at + self._passage]
            for number, then in self._at_mark:
                if not then or any(some in passage for some in then):
                    yield at, number
        for number, rule in self._anywhere:
            yield from ((found.start(), number) for found in rule.finditer(text))


def _places(some: AnyStr, text: AnyStr) -> Iterator[int]:
    at = text.find(some)
    while at >= 0:
        yield at
        at = text.find(some, at + 1)


_LATIN = bytes(ord(c.lower()) if c.isalnum() or c == "_" else 32 for c in map(chr, range(256)))
# what, case ignored, is an i, an s or a k
_LIKE_ASCII = {"\u0130": "i", "\u0131": "i", "\u017f": "s", "\u212a": "k"}


def _letters(text: str) -> bytes:
    """A byte for each character: its lower case if it is a letter of Latin 1, else a blank."""
    if not text.isascii():
        for character, letter in _LIKE_ASCII.items():
            text = text.replace(character, letter)
    return text.encode("latin-1", "replace").translate(_LATIN)


# Fewer letters than these begin too many words.
_FEW = 4
# Not the last letter, where it may be left out.
_LETTERS = re.compile(r"[\w ,'-]*(?![?*{])")
_PART = re.compile(r"\\.|\[\^?(?:\\.|[^\]\\])+\]|.", re.DOTALL)


def branches(rule: str) -> list[str]:
    """What stands between the outermost bars of a regular expression."""
    branches, depth = [""], 0
    for part in _PART.findall(rule):
        depth += (part == "(") - (part == ")")
        if part == "|" and not depth:
            branches.append("")
        else:
            branches[-1] += part
    return branches


def _beginnings(rule: str) -> set[str]:
    """Letters with one of which every match begins; none where that cannot be told.

    A line end before them stands for the start of a word.
    """
    found: set[str] = set()
    for branch in branches(rule):
        bare = branch.removeprefix(r"\b")
        start = "" if bare == branch else "\n"
        letters = next(_LETTERS.finditer(bare))[0]
        more: set[str] = set()
        if len(letters) < _FEW:
            more = _group_beginnings(bare[len(letters) :])
        if not letters and not more:
            return set()
        if letters:
            more = {letters + one.lstrip("\n") for one in more or {""}}
        found |= {start + one.lstrip("\n") if start else one for one in more}
    return found


def _group_beginnings(rule: str) -> set[str]:
    if not rule.startswith("(?:"):
        return set()
    inner, depth = "", 0
    for part in _PART.findall(rule):
        inner += part
        depth += (part == "(") - (part == ")")
        if not depth:
            break
    first, rest = _beginnings(inner[3:-1]), rule[len(inner) :]
    left_out = re.match(r"(?:[?*]|\{0[^}]*\})\??", rest)
    if left_out is None:
        return first
    second = _beginnings(rest[left_out.end() :])
    return first | second if first and second else set()
