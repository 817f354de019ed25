"""Translation of statements from other languages into English words."""

import re
from collections.abc import Iterable
from functools import cache, partial

from holdfast.files import packaged

from .reply_text import folded

_Language = tuple[tuple[str, ...], re.Pattern[str], dict[str, str]]


@cache
def _languages(*, ascii_only: bool) -> list[_Language]:
    languages: list[_Language] = []
    for language in packaged(__package__, "languages.toml").values():
        if ascii_only and language["sign"][0] > "\u02ff":
            continue
        words = {folded(word): english for word, english in language["words"].items()}
        longest = sorted(words, key=len, reverse=True)
        has_blanks = longest[0] < "\u1100"  # the other languages have no blanks between words
        bound = r"(?<!\w)" if has_blanks else "", r"(?!\w)" if has_blanks else ""
        pattern = re.compile(f"{bound[0]}(?:{'|'.join(map(re.escape, longest))}){bound[1]}", re.I)
        signs = tuple(folded(sign) for sign in language["sign"])
        languages.append((signs, pattern, words))
    return languages


def in_english(text: str, option_texts: Iterable[str]) -> str:
    """Return a text with its relevant words in English, apart from those of the options."""
    low = f" {text.lower()} "
    for signs, pattern, words in _languages(ascii_only=text.isascii()):
        if _has_one_of(low, signs):
            kept = "|".join(re.escape(option) for option in option_texts if len(option) > 3)
            pieces = re.split(f"({kept})", text, flags=re.I) if kept else [text]
            pieces[::2] = [pattern.sub(partial(_english, words), piece) for piece in pieces[::2]]
            text = re.sub("  +", " ", "".join(pieces))
    return text


def _has_one_of(text: str, signs: tuple[str, ...]) -> bool:
    # every reply is searched for each sign, and a generator takes four times as long
    for sign in signs:
        if sign in text:
            return True
    return False


def _english(words: dict[str, str], match: re.Match[str]) -> str:
    phrase = match[0]
    # "la A": a lone capital is an option
    return phrase if len(phrase) == 1 and phrase.isupper() else f" {words[phrase.lower()]} "
