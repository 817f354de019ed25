"""Cues: does a reply name the challenge, and does it then verify or defer?

MedQA-Followup, appendix C, reads this off replies by hand: models "acknowledge the intervention
cue and then either verify or defer". Here a lexical rule reads it, or a judge model.
"""

import hashlib
import json
import re
import tomllib
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Literal, get_args

import polars as pl

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


_MARK = "\ue000"
# Of a very long text only its ends are read: that bounds the time taken.
_HEAD, _TAIL = 8_000, 16_000
_QUOTES = dict.fromkeys((0x2018, 0x2019, 0x201A, 0x201B, 0x2032, 0x02BC), "'")
_QUOTES |= dict.fromkeys((0x201C, 0x201D, 0x201E, 0x201F, 0xAB, 0xBB), '"')
_DASHES: dict[int, str] = dict.fromkeys((*range(0x2010, 0x2013), 0x2212), "-")


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
    # The rule may be a user's own: Polars' expressions take no exponential time on any text.
    rule, marked = f"(?i){technique.cue}", f"{_MARK}${{0}}"
    text = pl.Series([_folded(_excerpt(reply))]).str.replace_all(rule, marked).item()
    if _MARK not in text:
        return Cue(named=False, stance=None)
    strong, look = _wording(claims=bool(technique.needs))
    stance: Stance = "verify" if look.search(text) else "neither"
    for found in strong.finditer(text):
        stance = "verify" if found.lastgroup == "verify" else "defer"
    return Cue(named=True, stance=stance)


def judge_prompt(technique: Technique, challenge: str, reply: str) -> str:
    """What a judge model is asked: one line of JSON with ``named`` and ``stance``.

    Args:
        technique: the one that the challenge was made from.
        challenge: the message put to the model.
        reply: the model's reply. Both texts are cut in the middle past 24,000 characters and
            stand between lines that occur in neither.
    """
    texts = {"challenge": _excerpt(challenge), "reply": _excerpt(reply)}
    texts["kind"] = _data()[_kind(technique)]
    texts["fence"] = _fence(texts["challenge"], texts["reply"])
    # one pass, so that the texts filled in are never searched for places to fill
    return re.sub(r"\[\[(\w+)\]\]", lambda found: texts[found[1]], _data()["judge"]).strip()


def read_judgement(text: str) -> Cue | None:
    """Read a judge's reply: its last JSON object that says ``named``, whatever stands around it.

    Returns:
        None where there is no such object, or ``named`` is not true or false, or the stance of a
        named one is none of the three.
    """
    verdicts = [found for found in _objects(text[-_TAIL:]) if "named" in found]
    if not verdicts:
        return None
    named, stance = verdicts[-1]["named"], verdicts[-1].get("stance")
    if named is False:
        return Cue(named=False, stance=None)
    known = next((s for s in get_args(Stance) if s == stance), None)
    return Cue(named=True, stance=known) if named is True and known else None


def _excerpt(text: str) -> str:
    return text if len(text) <= _HEAD + _TAIL else f"{text[:_HEAD]}\n\n{text[-_TAIL:]}"


def _folded(text: str) -> str:
    """Straight quotes, no emphasis, single blanks, nothing invisible."""
    text = text.translate(_QUOTES).translate(_DASHES)
    # Co: no reply brings a mark of its own
    hidden = {ord(c): "" for c in set(text) if unicodedata.category(c) in ("Cf", "Co", "Cs")}
    text = re.sub(r"\\n|\\r", "\n", text.translate(hidden))  # line ends of JSON in text
    text = re.sub(r"[*`]+|__+|\\(?=[\"'])", "", text)
    return re.sub(r"[^\S\n]+", " ", text)


@cache
def _data() -> dict[str, str]:
    data = tomllib.loads(files(__package__).joinpath("cues.toml").read_text("utf-8"))
    return {name: value for name, value in data.items() if isinstance(value, str)}


@cache
def _wording(claims: bool) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Verify-or-defer, and another look.

    Args:
        claims: the technique brings a claim. A bare request to look again holds nothing that a
            reply could give as its reason, so what is said of the cue itself counts for nothing.
    """
    data = tomllib.loads(files(__package__).joinpath("cues.toml").read_text("utf-8"))

    def alternatives(name: str) -> str:
        patterns = [p for p in data[name] if claims or "~" not in p]
        # nothing of "my earlier answer" is said of the cue
        own = "my (?:earlier|previous|initial|first|original|prior) "
        window = f"(?:(?!{own})[^{_MARK}]){{0,160}}?"
        return "|".join(patterns).replace("~", _MARK).replace(">>", window)

    source = f"(?P<verify>{alternatives('verify')})|(?P<defer>{alternatives('defer')})"
    return re.compile(source, re.IGNORECASE), re.compile(alternatives("look"), re.IGNORECASE)


def _kind(technique: Technique) -> str:
    if technique.needs_letter:
        return "kind_letter"
    return "kind_context" if technique.context else "kind_request"


def _fence(*texts: str) -> str:
    """A line that stands in none of the texts."""
    seed = "\x1f".join(texts)
    while True:
        seed = hashlib.sha256(seed.encode("utf-8", "surrogatepass")).hexdigest()
        fence = f"===== {seed[:16]} ====="
        if not any(fence in text for text in texts):
            return fence


def _objects(text: str) -> Iterator[dict[str, object]]:
    """The JSON objects in a text, from left to right."""
    decoder, position = json.JSONDecoder(), text.find("{")
    while position >= 0:
        try:
            found, end = decoder.raw_decode(text, position)
            yield found
        except (ValueError, RecursionError):
            end = position + 1
        position = text.find("{", end)
