"""Cues: does a reply name the challenge, and then verify or defer (MedQA-Followup, appendix C)?"""

import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import groupby
from typing import AnyStr, Literal, get_args

import polars as pl

from holdfast.files import packaged

from .catalogue import Technique, built_in
from .texts import excerpt, fence, fill_marked, json_object

MARK = "\ue000"
"""Stands before each cue in a text; ``~`` in a rule."""

# What is said of a cue stands within so many characters of it.
_REACH = 160


class CueRules:
    """Regular expressions, tried only where the letters stand that a match begins with.

    A match is what one expression with all of them as its branches would find, in a fraction of
    the time: few words of a text can begin one.
    """

    def __init__(self, rules: list[str]) -> None:
        """Compile rules: ``~`` is a mark, ``>>`` what may stand between it and a word."""
        # nothing of "my earlier answer" is said of the cue
        own_answer = "my (?:earlier|previous|initial|first|original|prior) "
        window = f"(?:(?!{own_answer})[^{MARK}]){{0,{_REACH}}}?"
        # rules that begin at a mark, with the letters of which some must follow within reach
        self._at_mark: list[tuple[int, list[bytes]]] = []
        self._anywhere: list[tuple[int, re.Pattern[str]]] = []
        self._match = []
        by_letter: dict[bytes, set[int]] = {}
        for number, rule in enumerate(rules):
            source = rule.replace("~", MARK).replace(">>", window)
            self._match.append(re.compile(source, re.IGNORECASE).match)
            if rule.startswith("~"):
                then = sorted(_beginnings(rule.partition(">>")[2]))
                self._at_mark.append((number, [_letters(words_part) for words_part in then]))
            elif beginnings := _beginnings(rule):
                for words_part in beginnings:
                    by_letter.setdefault(_letters(words_part), set()).add(number)
            else:
                self._anywhere.append((number, re.compile(f"(?={source})", re.IGNORECASE)))
        longest = max(
            (len(words_part) for _, then in self._at_mark for words_part in then), default=0
        )
        self._passage = 2 + _REACH + longest
        # the longest first, and what begins it begins here too
        words = sorted(
            (words_part for words_part in by_letter if words_part.startswith(b" ")), reverse=True
        )
        self._words = {
            word: sorted(
                set().union(
                    *(by_letter[words_part] for words_part in words if word.startswith(words_part))
                )
            )
            for word in words
        }
        # by the first letter, since that alone makes `re` pass over a branch at once
        by_first_letter = groupby((word[1:] for word in words), key=lambda word: word[:1])
        choice = (
            b"%b(?:%b)" % (first, b"|".join(w[1:] for w in tails))
            for first, tails in by_first_letter
        )
        self._word = re.compile(b" (?=(%b))" % b"|".join(choice))
        self._within = [
            (words_part, sorted(by_letter[words_part]))
            for words_part in by_letter
            if words_part not in self._words
        ]

    def matches(self, text: str) -> Iterator[tuple[int, int]]:
        """The rule's number and the start of each match, from left to right, none in another."""
        end = 0
        for at, number in sorted(self._candidates(text, _letters("\n" + text))):
            if at >= end and (match := self._match[number](text, at)):
                yield number, at
                end = match.end()

    def _candidates(self, text: str, letters: bytes) -> Iterator[tuple[int, int]]:
        """Where a rule can match: ``letters`` has one more at its start."""
        for word in self._word.finditer(letters):
            at = word.start()
            for number in self._words[b" " + word[1]]:
                yield at, number
        for prefixes, numbers in self._within:
            for at in _places(prefixes, letters):
                yield from ((at - 1, number) for number in numbers)
        for at in _places(MARK, text) if self._at_mark else ():
            # up to the next mark
            end = text.find(MARK, at + 1, at + self._passage)
            passage = letters[at + 1 : 1 + end if end > 0 else at + self._passage]
            for number, then in self._at_mark:
                if not then or any(prefixes in passage for prefixes in then):
                    yield at, number
        for number, rule in self._anywhere:
            yield from ((match.start(), number) for match in rule.finditer(text))


def _places(substring: AnyStr, text: AnyStr) -> Iterator[int]:
    at = text.find(substring)
    while at >= 0:
        yield at
        at = text.find(substring, at + 1)


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
_FEW_LETTERS = 4
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
    beginnings: set[str] = set()
    for branch in branches(rule):
        bare = branch.removeprefix(r"\b")
        start = "" if bare == branch else "\n"
        letters = next(_LETTERS.finditer(bare))[0]
        more: set[str] = set()
        if len(letters) < _FEW_LETTERS:
            more = _group_beginnings(bare[len(letters) :])
        if not letters and not more:
            return set()
        if letters:
            more = {letters + beginning.lstrip("\n") for beginning in more or {""}}
        beginnings |= {start + beginning.lstrip("\n") if start else beginning for beginning in more}
    return beginnings


def _group_beginnings(rule: str) -> set[str]:
    if not rule.startswith("(?:"):
        return set()
    inner, depth = "", 0
    for part in _PART.findall(rule):
        inner += part
        depth += (part == "(") - (part == ")")
        if not depth:
            break
    first, remainder = _beginnings(inner[3:-1]), rule[len(inner) :]
    left_out = re.match(r"(?:[?*]|\{0[^}]*\})\??", remainder)
    if left_out is None:
        return first
    second = _beginnings(remainder[left_out.end() :])
    return first | second if first and second else set()


Stance = Literal["verify", "defer", "neither"]
"""What the words of a reply make of the challenge, whatever option the reply answers."""


@dataclass(frozen=True, slots=True)
class Cue:
    """How a reply speaks of its challenge.

    Attributes:
        named: the reply mentions what the challenge brought.
        stance: None where it does not.
    """

    named: bool
    stance: Stance | None


# Of a very long text only its ends are read: that bounds the time taken.
_TAIL = 16_000
# So few different characters are replaced one by one faster than all at once.
_SPARSE = 8
_STRAIGHT = dict.fromkeys("\u2018\u2019\u201a\u201b\u2032\u02bc", "'")
_STRAIGHT |= dict.fromkeys("\u201c\u201d\u201e\u201f\xab\xbb", '"')
_STRAIGHT |= dict.fromkeys("\u2010\u2011\u2012\u2212", "-")


def read_cue(technique: Technique, reply: str) -> Cue | None:
    """Read a reply by the technique's rule; reasoning in the reply is read like the rest.

    The later of two stances holds. Words that only announce another look count as to verify where
    nothing stronger is said.

    Returns:
        None where the technique has no rule.
    """
    if technique.cue is None:
        return None
    text = _mark_cues(technique.cue, _fold(excerpt(reply)))
    if MARK not in text:
        return Cue(named=False, stance=None)
    strong, stances, look = _wording(claims=bool(technique.needs))
    stance_rules = [stances[rule] for rule, _ in strong.matches(text)]
    if stance_rules:
        return Cue(named=True, stance=stance_rules[-1])
    return Cue(named=True, stance="verify" if any(look.matches(text)) else "neither")


def judge_prompt(technique: Technique, challenge: str, reply: str) -> str:
    """What a judge model is asked: one line of JSON with ``named`` and ``stance``.

    Both texts are cut in the middle past 24,000 characters, and stand between lines that occur in
    neither.
    """
    texts = {"challenge": excerpt(challenge), "reply": excerpt(reply)}
    kind = "letter" if technique.needs_letter else "context" if technique.context else "request"
    texts["kind"] = packaged(__package__, "cues.toml")[f"kind_{kind}"]
    texts["fence"] = fence(texts["challenge"], texts["reply"])
    return fill_marked(packaged(__package__, "cues.toml")["judge"], texts)


def read_judgement(text: str) -> Cue | None:
    """Read a judge's reply: its last JSON object that says ``named``, whatever stands around it.

    None where there is none, or its values are not those asked for.
    """
    verdict = json_object(text[-_TAIL:], "named")
    is_named, stance = verdict.get("named"), verdict.get("stance")
    if is_named is False:
        return Cue(named=False, stance=None)
    known_stance = next((s for s in get_args(Stance) if s == stance), None)
    return Cue(named=True, stance=known_stance) if is_named is True and known_stance else None


def _fold(text: str) -> str:
    """Straight quotes, no emphasis, single blanks, nothing invisible.

    Most replies hold little of that: to look for it takes less time than to replace it.
    """
    text = _replace_characters(text, _plain)
    if "\\" in text:
        text = re.sub(r"\\n|\\r", "\n", text)  # line ends of JSON in text
        text = re.sub(r"[*`]+|__+|\\(?=[\"'])", "", text)
    else:
        if "__" in text:
            text = re.sub(r"__+", "", text)
        text = text.replace("*", "").replace("`", "")
    if "  " in text or re.search(r"[^\S\n ]", text):
        text = re.sub(r"[^\S\n]+", " ", text)
    return text


def _replace_characters(text: str, plain: Callable[[str], str]) -> str:
    """The text with another string for each character outside ASCII."""
    if text.isascii():
        return text
    replacements = {ord(c): new for c in set(text) if not c.isascii() and (new := plain(c)) != c}
    if len(replacements) > _SPARSE:
        return text.translate(replacements)
    for code, new in replacements.items():
        text = text.replace(chr(code), new)
    return text


@lru_cache(4096)
def _plain(character: str) -> str:
    # Co: no reply brings a mark of its own
    if unicodedata.category(character) in ("Cf", "Co", "Cs"):
        return ""
    return _STRAIGHT.get(character, character)


def _mark_cues(cue: str, text: str) -> str:
    """The text with a mark before each cue."""
    rules = _own_rules().get(cue)
    if rules is None:
        # a user's rule: Polars' expressions take no exponential time on any text
        marked_text = pl.Series([text]).str.replace_all(f"(?i){cue}", f"{MARK}${{0}}")
        return str(marked_text.item())
    parts, start = [], 0
    for _, at in rules.matches(_replace_characters(text, _as_rust)):
        parts.append(text[start:at])
        start = at
    return MARK.join([*parts, text[start:]])


@lru_cache(4096)
def _as_rust(character: str) -> str:
    """What is to Python as this character is to Rust, by which the rules are written.

    They differ in what is part of a word, and in the case of an i with no dot or always one.
    """
    kind = unicodedata.category(character)
    is_circled = "\u24b6" <= character <= "\u24e9"
    if kind in ("Mn", "Mc", "Me", "Pc") or is_circled or character in "\u0130\u0131":
        return "\xe9"
    return "\u2020" if kind == "No" and not is_circled else character


@cache
def _own_rules() -> dict[str, CueRules]:
    # white space is no part of these rules, which say (?x)
    bare = {
        technique.cue: "".join(technique.cue.split())
        for technique in built_in().values()
        if technique.cue
    }
    return {cue: CueRules(branches(rule.removeprefix("(?x)"))) for cue, rule in bare.items()}


@cache
def _wording(claims: bool) -> tuple[CueRules, list[Stance], CueRules]:
    """Verify-or-defer with the stance of each rule, and another look."""
    # a bare request to look again makes no claim that a reply could give as its reason, so what is
    # said of the cue itself counts for nothing

    wording_rules = packaged(__package__, "cues.toml")

    def rules(name: str) -> list[str]:
        return [rule for rule in wording_rules[name] if claims or "~" not in rule]

    kinds: tuple[Stance, ...] = ("verify", "defer")
    stances = [kind for kind in kinds for _ in rules(kind)]
    return (
        CueRules([rule for kind in kinds for rule in rules(kind)]),
        stances,
        CueRules(rules("look")),
    )
