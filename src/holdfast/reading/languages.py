"""Translation of statements from other languages into English words."""

import re
from collections.abc import Iterable
from functools import cache, partial
from typing import Any, NamedTuple

from holdfast.files import packaged

from .patterns import Patterns
from .reply_text import folded

P = Patterns("languages")

# Private use, apart from the marks of `mentions`: the option texts and the translated statements of
# a reply, which no word is looked up in.
_TEXT, _STATEMENT, _END = 0xE200, 0xEC00, 0xF600
_LETTER = "(?<![A-Za-z0-9])(?-i:[A-Z])(?!-?[A-Za-z0-9])"
_WORDS = f"[{chr(_TEXT)}-{chr(_STATEMENT - 1)}]"
_OPTION = (
    rf"(?:ARTICLE ?)*(?P<X>{_LETTER}(?:[).:,]+ ?\(?| ?\(?){_WORDS}\)?"
    rf"|{_WORDS}(?: ?\({_LETTER}\))?|\(?{_LETTER}\)?)"
)


class _Language(NamedTuple):
    """Signs of a language, its statements with an English pattern each, and its words."""

    signs: tuple[str, ...]
    statements: list[tuple[re.Pattern[str], str]]
    pattern: re.Pattern[str]
    words: dict[str, str]


@cache
def _languages(*, ascii_only: bool) -> list[_Language]:
    languages = [_language(name) for name in packaged(__package__, "languages.toml")]
    known = [language for language in languages if language.signs]
    return [each for each in known if not ascii_only or each.signs[0] <= "\u02ff"]


@cache
def _language(name: str) -> _Language:
    language = packaged(__package__, "languages.toml")[name]
    words = {folded(word): english for word, english in language["words"].items()}
    longest = sorted(words, key=len, reverse=True)
    has_blanks = longest[0] < "\u1100"  # the other languages have no blanks between words
    bound = (r"(?<!\w)", r"(?!\w)") if has_blanks else ("", "")
    pattern = re.compile(f"{bound[0]}(?:{'|'.join(map(re.escape, longest))}){bound[1]}", re.I)
    signs = tuple(folded(sign) for sign in language["sign"])
    return _Language(signs, _statements(language, bound), pattern, words)


def _statements(
    language: dict[str, Any], bound: tuple[str, str]
) -> list[tuple[re.Pattern[str], str]]:
    """Return the patterns of the statements of a language, with the English of each."""
    patterns: list[tuple[re.Pattern[str], str]] = []
    blank = " " if bound[0] else ""
    adverbs, articles = (folded(language.get(key, "(?!)")) for key in ("adverbs", "articles"))
    for english, forms in language.get("statements", {}).items():
        for form in forms:
            pattern = folded(form).replace("~", f"(?:(?:{adverbs}){blank})*").replace("#", r"\w+")
            for name in "XY":
                option = _OPTION.replace("X", name).replace("ARTICLE", f"(?:{articles})")
                pattern = re.sub(f"{name}(?![A-Za-z>])", lambda _, option=option: option, pattern, count=1)
            patterns.append((re.compile(f"{bound[0]}(?:{pattern}){bound[1]}", re.I), english))
    return patterns


def in_english(text: str, option_texts: Iterable[str]) -> str:
    """Return a text with its relevant words in English, apart from those of the options."""
    language = _language_of(text)
    if text.islower():
        text = P.small.sub(_capital, text)
        language = language or _language("chat")
    if language is None:
        return text
    text, pieces = P.private.sub("", text), dict[str, str]()
    for option in filter(_is_kept, option_texts):
        form = P.ending.sub("e[nmrs]?", re.escape(option))
        text = re.sub(form, partial(_put, language.words, pieces, _TEXT, option), text, flags=re.I)
    for form, english in language.statements:
        text = form.sub(partial(_put, language.words, pieces, _STATEMENT, english), text)
    text = language.pattern.sub(partial(_english, language.words), text)
    text = P.lone.sub(_lone, text)
    for character in reversed(pieces):  # statements hold option texts
        text = text.replace(character, pieces[character])
    return P.doubled.sub("", text)


def _language_of(text: str) -> _Language | None:
    """Return the language with the most signs in a text, None for English."""
    low = f" {text.lower()} "
    language, most = None, 0
    for candidate in _languages(ascii_only=text.isascii()):
        hits = 0
        for sign in candidate.signs:  # every reply is searched, and a generator takes longer
            if sign in low:
                hits += 1
        if hits > most:
            language, most = candidate, hits
    return language


def _is_kept(option: str) -> bool:
    return len(option) > 3 or option > "\u2fff"


def _put(words: dict[str, str], pieces: dict[str, str], first: int, english: str, match: re.Match[str]) -> str:
    """Return a character that stands for English words, instead of a match, from now on."""
    if len(pieces) == _END - _STATEMENT:
        return match[0]
    character, options = chr(first + len(pieces)), match.groupdict()
    if options:
        word = P.next_word.match(match.string, match.end())
        is_last = english.endswith(("X", "Y")) and word and word[1].lower() not in words
        english = re.sub("[XY]", lambda name: _named(options.get(name[0]) or ""), english)
        english += " ," if is_last else ""
    pieces[character] = english if first == _TEXT else f" {english} "
    return character


def _named(option: str) -> str:
    letter = option.strip("()")
    return f"option {letter}" if len(letter) == 1 and letter.isascii() else option


def _capital(match: re.Match[str]) -> str:
    return match[0].upper()


def _lone(match: re.Match[str]) -> str:
    return match[0] if match["name"] else _named(match[0])


def _english(words: dict[str, str], match: re.Match[str]) -> str:
    phrase = match[0]
    # "la A": a lone capital is an option
    return phrase if len(phrase) == 1 and phrase.isupper() else f" {words[phrase.lower()]} "
