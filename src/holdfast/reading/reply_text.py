"""Plain text of a reply, without reasoning, typography and emphasis."""

import re
import unicodedata
from functools import lru_cache

from .patterns import Patterns

P = Patterns("reply_text")
_NAMES = ("think", "thought", "reason", "reflection", "scratchpad", "analysis", "<unused9", "<|")
# Typographic quotes, dashes, brackets and full stops by their ASCII form.
_PUNCTUATION = {
    **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-"),
    **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032", "'"),
    **dict.fromkeys("\u201c\u201d\u201e\u201f\xab\xbb\u300c\u300d", '"'),
    **dict.fromkeys("\u2192\u21a6\u21d2\u25b6\u2794\u279c\u279e\u27a1\u27f6\u27f9", "->"),
    **{"\u3002": ". ", "\uff0c": ", ", "\uff1a": ": ", "\uff1b": "; "},
    **{"\uff01": "! ", "\uff1f": "? "},
    **{"\u3010": "[", "\u3011": "]", "\u2028": "\n", "\u2029": "\n"},
}
# Only the ends of a very long reply are parsed, because answers are there. This bounds the time.
_LONG, _HEAD, _TAIL = 24_000, 2_000, 10_000


def without_reasoning(text: str) -> str:
    """Return the text without the parts between a model's thinking tags."""
    if "<" not in text:
        return text
    low = text.lower()
    if not any(name in low for name in _NAMES):
        return text
    pieces: list[str] = []
    position, inside = 0, False
    for tag in P.tag.finditer(text):
        closing = tag.lastgroup is not None
        if not closing and not inside:
            pieces.append(text[position : tag.start()])
        elif closing and not inside:
            pieces.clear()  # the prompt had the opening tag: all before is reasoning
        inside, position = not closing, tag.end()
    return "".join(pieces) + ("" if inside else text[position:])


def has_reasoning(text: str) -> bool:
    """Return whether a text contains a model's thinking tag."""
    return P.tag.search(text) is not None


@lru_cache(maxsize=1)  # a decision parses a reply twice
def spoken_text(reply: str) -> str:
    """Return a reply without reasoning and typographic signs, but with its emphasis.

    Args:
        reply: Any string. If the text without reasoning exceeds 24,000 characters, only its first
            2,000 and last 10,000 characters are kept.
    """
    text = folded(excerpt(_spaced(without_reasoning(reply)).strip()))
    quoted = P.quoted_message.match(text)
    return text[quoted.end() :] if quoted and P.user.search(quoted[0]) else text


def plain_text(reply: str) -> str:
    """Return the text of `spoken_text` without emphasis."""
    return unmarked(spoken_text(reply))


def _spaced(text: str) -> str:
    if "   " in text or "\n\n\n" in text or not text.isascii():
        text = re.sub(r"\s{4,}", lambda run: "\n\n" if "\n" in run[0] else " ", text)
    return text


def excerpt(text: str) -> str:
    """Return the first 2,000 and last 10,000 characters of a text that exceeds 24,000."""
    return text if len(text) <= _LONG else f"{text[:_HEAD]}\n\n{text[-_TAIL:]}"


@lru_cache(maxsize=4096)
def _fold_character(character: str) -> str:
    replacement = _PUNCTUATION.get(character)
    if replacement is not None:
        return replacement
    if unicodedata.category(character) in ("Cf", "Cc", "Cs", "Mn"):
        return ""
    plain = unicodedata.normalize("NFKD", character)
    if len(plain) > 4:  # a whole phrase in one sign is long and not in options
        return character
    return "".join(part for part in plain if unicodedata.category(part) not in ("Mn", "Cf"))


def folded(text: str) -> str:
    """Return the text in plain characters, with single blanks and nothing invisible."""
    # Character by character: normalising a whole string sorts runs of combining marks, which takes
    # quadratic time on a hostile run.
    if not text.isascii():
        for character in set(text):
            if character > "\x7e":
                text = text.replace(character, _fold_character(character))
    if not text.replace("\n", "").isprintable():
        text = text.replace("\r", "\n")
        text = re.sub(r"[\x00-\x08\x0b-\x1f\x7f]", "", text)
        text = re.sub(r"[^\S\n ]", " ", text)
    if "  " in text:
        text = re.sub(r"  +", " ", text)
    if " \n" in text or "\n " in text or "\n\n\n" in text:
        text = re.sub(r" ?\n[ \n]*", lambda run: "\n\n" if run[0].count("\n") > 1 else "\n", text)
    return text


def unmarked(text: str) -> str:
    """Return a text without marks of emphasis, headings, LaTeX fonts and struck-out words."""
    if "\\" in text:
        text = re.sub(r"\\therefore\b", "therefore ", text.replace("\\%", "%"))
        text = re.sub(r"\\(?:(?:long)?[rR]ightarrow|implies|to)\b", "->", text)
    if "~~" in text:
        text = re.sub(r"~~[^~\n]{1,200}~~", "", text)
    if "\\" in text or "**" in text or "__" in text or "`" in text or "~~" in text:
        text = re.sub(r"\\(?:text|mathrm|mathbf|mathsf|rm|bf)[a-z]{0,2}\b ?|\*\*|__|`|~~", "", text)
    if "...." in text:
        text = re.sub(r" \.{4,} ", ": ", text)  # "ANSWER ..... B"
    return re.sub(r"(?m)^ ?#{1,6} ", "", text) if "#" in text else text
