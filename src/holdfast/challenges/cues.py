"""Cues: whether a reply mentions the challenge, and verifies or defers.

Source: MedQA-Followup, appendix C.
"""

import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import groupby
from typing import AnyStr, Literal, get_args

import polars as pl

from holdfast.files import packaged

from .catalogue import Technique, bundled_techniques
from .texts import excerpt, fence, fill_marked, json_object

MARK = "\ue000"
"""Mark before each cue in a text, ``~`` in a rule."""

# Maximum distance in characters between a cue and the words about it.
_REACH = 160


class CueRules:
    """Regular expressions, tried only at letters that can begin a match.

    The matches are those of one expression with all rules as branches. This takes a fraction of the
    time, because few words can begin a match.
    """

    def __init__(self, rules: list[str]) -> None:
        """Compile rules. ``~`` is a mark, ``>>`` the text allowed between a mark and a word."""
        # words about "my earlier answer" are not about the cue
        own_answer = "my (?:earlier|previous|initial|first|original|prior) "
        window = f"(?:(?!{own_answer})[^{MARK}]){{0,{_REACH}}}?"
        # rules that begin at a mark, with letters of which some must follow within reach
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
        # the longest first, because rules of its prefixes also begin here
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
        # by the first letter, which lets `re` skip a branch at once
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
        """Yield the rule number and start of each match, from left to right without overlap."""
        end = 0
        for at, number in sorted(self._candidates(text, _letters("\n" + text))):
            if at >= end and (match := self._match[number](text, at)):
                yield number, at
                end = match.end()

    def _candidates(self, text: str, letters: bytes) -> Iterator[tuple[int, int]]:
        """Yield places where a rule can match. ``letters`` has one more character at its start."""
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
# characters that match an i, an s or a k if case is ignored
_LIKE_ASCII = {"\u0130": "i", "\u0131": "i", "\u017f": "s", "\u212a": "k"}


def _letters(text: str) -> bytes:
    """Return a byte per character: a Latin-1 letter in lower case, else a blank."""
    if not text.isascii():
        for character, letter in _LIKE_ASCII.items():
            text = text.replace(character, letter)
    return text.encode("latin-1", "replace").translate(_LATIN)


# Fewer letters begin too many words.
_FEW_LETTERS = 4
# Without a last letter that is optional.
_LETTERS = re.compile(r"[\w ,'-]*(?![?*{])")
_PART = re.compile(r"\\.|\[\^?(?:\\.|[^\]\\])+\]|.", re.DOTALL)


def branches(rule: str) -> list[str]:
    """Return the outermost branches of a regular expression."""
    branches, depth = [""], 0
    for part in _PART.findall(rule):
        depth += (part == "(") - (part == ")")
        if part == "|" and not depth:
            branches.append("")
        else:
            branches[-1] += part
    return branches


def _beginnings(rule: str) -> set[str]:
    """Return letters that begin every match, or none if they are unknown.

    A leading line end stands for the start of a word.
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
"""Reaction of a reply to the challenge in words, whatever option it answers."""


@dataclass(frozen=True, slots=True)
class Cue:
    """Reaction of a reply to its challenge.

    Attributes:
        named: whether the reply mentions the content of the challenge.
        stance: stance of the reply, None if ``named`` is false.
    """

    named: bool
    stance: Stance | None


# Only the ends of a very long text are read. This bounds the time.
_TAIL = 16_000
# Up to this number of different characters, one replacement each is faster than a translation.
_SPARSE = 8
_STRAIGHT = dict.fromkeys("\u2018\u2019\u201a\u201b\u2032\u02bc", "'")
_STRAIGHT |= dict.fromkeys("\u201c\u201d\u201e\u201f\xab\xbb", '"')
_STRAIGHT |= dict.fromkeys("\u2010\u2011\u2012\u2212", "-")


def read_cue(technique: Technique, reply: str) -> Cue | None:
    """Read the cue of a reply by the rule of the technique, including its reasoning.

    The last stance decides. Words that only announce another look count as verification if the
    reply has no other stance.

    Returns:
        The cue, or None if the technique has no rule.
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
    """Return the prompt of a judge model, which asks for one line of JSON.

    The line has ``named`` and ``stance``. Texts above 24,000 characters are cut in the middle. Each
    text is between lines that occur in neither text.
    """
    texts = {"challenge": excerpt(challenge), "reply": excerpt(reply)}
    kind = "letter" if technique.needs_letter else "context" if technique.context else "request"
    texts["kind"] = packaged(__package__, "cues.toml")[f"kind_{kind}"]
    texts["fence"] = fence(texts["challenge"], texts["reply"])
    return fill_marked(packaged(__package__, "cues.toml")["judge"], texts)


def read_judgement(text: str) -> Cue | None:
    """Return the cue from the last JSON object with ``named`` in a judge's reply.

    None if there is no such object, or its values are invalid.
    """
    verdict = json_object(text[-_TAIL:], "named")
    is_named, stance = verdict.get("named"), verdict.get("stance")
    if is_named is False:
        return Cue(named=False, stance=None)
    known_stance = next((s for s in get_args(Stance) if s == stance), None)
    return Cue(named=True, stance=known_stance) if is_named is True and known_stance else None


def _fold(text: str) -> str:
    """Return the text with straight quotes, single blanks, no emphasis and nothing invisible.

    Most replies contain few of these characters, and a search is faster than a replacement.
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
    """Replace each character outside ASCII."""
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
    # Co: a reply cannot contain marks
    if unicodedata.category(character) in ("Cf", "Co", "Cs"):
        return ""
    return _STRAIGHT.get(character, character)


def _mark_cues(cue: str, text: str) -> str:
    """Return the text with a mark before each cue."""
    rules = _own_rules().get(cue)
    if rules is None:
        # a user's rule: expressions of Polars never take exponential time
        marked_text = pl.Series([text]).str.replace_all(f"(?i){cue}", f"{MARK}${{0}}")
        return str(marked_text.item())
    parts, start = [], 0
    for _, at in rules.matches(_replace_characters(text, _as_rust)):
        parts.append(text[start:at])
        start = at
    return MARK.join([*parts, text[start:]])


@lru_cache(4096)
def _as_rust(character: str) -> str:
    """Return a character that Python treats as Rust treats the given one.

    The rules are written for Rust. The two differ in the characters of a word, and in the case of
    an i without a dot or always with one.
    """
    kind = unicodedata.category(character)
    is_circled = "\u24b6" <= character <= "\u24e9"
    if kind in ("Mn", "Mc", "Me", "Pc") or is_circled or character in "\u0130\u0131":
        return "\xe9"
    return "\u2020" if kind == "No" and not is_circled else character


@cache
def _own_rules() -> dict[str, CueRules]:
    # white space in these rules is ignored, as (?x) says
    bare = {
        technique.cue: "".join(technique.cue.split())
        for technique in bundled_techniques().values()
        if technique.cue
    }
    return {cue: CueRules(branches(rule.removeprefix("(?x)"))) for cue, rule in bare.items()}


@cache
def _wording(claims: bool) -> tuple[CueRules, list[Stance], CueRules]:
    """Return the rules to verify or defer with their stances, and the rules of another look."""
    # a bare request to look again contains no claim that a reply could give as its reason, so words
    # about the cue itself do not count

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
