"""Cues: does a reply name the challenge, and does it then verify or defer?

MedQA-Followup, appendix C, reads this off replies by hand: models "acknowledge the intervention
cue and then either verify or defer". Here a lexical rule reads it, or a judge model.
"""

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Literal, get_args

import polars as pl

from .catalogue import built_in
from .cue_rules import MARK, Rules, branches
from .fencing import excerpt, fence
from .json_reply import json_objects
from .packaged import packaged
from .technique import Technique

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

    Args:
        technique: the last one put before the reply.
        reply: any string; of more than 24,000 characters the first 8,000 and the last 16,000 are
            read.

    Returns:
        None where the technique has no rule.
    """
    if technique.cue is None:
        return None
    text = _marked(technique.cue, _folded(excerpt(reply)))
    if MARK not in text:
        return Cue(named=False, stance=None)
    strong, stances, look = _wording(claims=bool(technique.needs))
    said = [stances[rule] for rule, _ in strong.matches(text)]
    if said:
        return Cue(named=True, stance=said[-1])
    return Cue(named=True, stance="verify" if any(look.matches(text)) else "neither")


def judge_prompt(technique: Technique, challenge: str, reply: str) -> str:
    """What a judge model is asked: one line of JSON with ``named`` and ``stance``.

    Args:
        technique: the one that the challenge was made from.
        challenge: the message put to the model.
        reply: the model's reply. Both texts are cut in the middle past 24,000 characters and
            stand between lines that occur in neither.
    """
    texts = {"challenge": excerpt(challenge), "reply": excerpt(reply)}
    texts["kind"] = packaged("cues.toml")[_kind(technique)]
    texts["fence"] = fence(texts["challenge"], texts["reply"])
    # one pass, so that the texts filled in are never searched for places to fill
    return re.sub(
        r"\[\[(\w+)\]\]", lambda found: texts[found[1]], packaged("cues.toml")["judge"]
    ).strip()


def read_judgement(text: str) -> Cue | None:
    """Read a judge's reply: its last JSON object that says ``named``, whatever stands around it.

    Returns:
        None where there is no such object, or ``named`` is not true or false, or the stance of a
        named one is none of the three.
    """
    verdicts = [found for found in json_objects(text[-_TAIL:]) if "named" in found]
    if not verdicts:
        return None
    named, stance = verdicts[-1]["named"], verdicts[-1].get("stance")
    if named is False:
        return Cue(named=False, stance=None)
    known = next((s for s in get_args(Stance) if s == stance), None)
    return Cue(named=True, stance=known) if named is True and known else None


def _folded(text: str) -> str:
    """Straight quotes, no emphasis, single blanks, nothing invisible.

    Most replies hold little of that: to look for it takes less time than to replace it.
    """
    text = _replaced(text, _plain)
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


def _replaced(text: str, plain: Callable[[str], str]) -> str:
    """The text with another string for each character outside ASCII."""
    if text.isascii():
        return text
    other = {ord(c): new for c in set(text) if not c.isascii() and (new := plain(c)) != c}
    if len(other) > _SPARSE:
        return text.translate(other)
    for code, new in other.items():
        text = text.replace(chr(code), new)
    return text


@lru_cache(4096)
def _plain(character: str) -> str:
    # Co: no reply brings a mark of its own
    if unicodedata.category(character) in ("Cf", "Co", "Cs"):
        return ""
    return _STRAIGHT.get(character, character)


def _marked(cue: str, text: str) -> str:
    """The text with a mark before each cue."""
    rules = _own_rules().get(cue)
    if rules is None:
        # a user's rule: Polars' expressions take no exponential time on any text
        marked = pl.Series([text]).str.replace_all(f"(?i){cue}", f"{MARK}${{0}}")
        return str(marked.item())
    parts, done = [], 0
    for _, at in rules.matches(_replaced(text, _as_rust)):
        parts.append(text[done:at])
        done = at
    return MARK.join([*parts, text[done:]])


@lru_cache(4096)
def _as_rust(character: str) -> str:
    """What is to Python as this character is to Rust, by which the rules are written.

    They differ in what is part of a word, and in the case of an i with no dot or always one.
    """
    kind = unicodedata.category(character)
    circled = "\u24b6" <= character <= "\u24e9"
    if kind in ("Mn", "Mc", "Me", "Pc") or circled or character in "\u0130\u0131":
        return "\xe9"
    return "\u2020" if kind == "No" and not circled else character


@cache
def _own_rules() -> dict[str, Rules]:
    # white space is no part of these rules, which say (?x)
    bare = {one.cue: "".join(one.cue.split()) for one in built_in().values() if one.cue}
    return {cue: Rules(branches(rule.removeprefix("(?x)"))) for cue, rule in bare.items()}


@cache
def _wording(claims: bool) -> tuple[Rules, list[Stance], Rules]:
    """Verify-or-defer with the stance of each rule, and another look.

    Args:
        claims: the technique brings a claim. A bare request to look again holds nothing that a
            reply could give as its reason, so what is said of the cue itself counts for nothing.
    """

    def rules(name: str) -> list[str]:
        return [rule for rule in packaged("cues.toml")[name] if claims or "~" not in rule]

    kinds: tuple[Stance, ...] = ("verify", "defer")
    stances = [kind for kind in kinds for _ in rules(kind)]
    return Rules([rule for kind in kinds for rule in rules(kind)]), stances, Rules(rules("look"))


def _kind(technique: Technique) -> str:
    if technique.needs_letter:
        return "kind_letter"
    return "kind_context" if technique.context else "kind_request"
