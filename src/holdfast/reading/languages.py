"""Translation of statements from other languages into English words.

`languages.toml` has, by language, statements about options with their English, and words. Where a
statement is found, its English replaces it. The words of the rest are replaced one by one.
"""

import re
from collections.abc import Iterable
from functools import cache, partial
from typing import Any, NamedTuple

from holdfast.files import packaged

from .patterns import Patterns
from .reply_text import excerpt, folded

P = Patterns("languages")

# Private use, apart from the marks of `mentions`: the option texts and the translated statements of
# a reply, which no word is looked up in.
_TEXT, _STATEMENT, _END = 0xE200, 0xEC00, 0xF600
_LONGEST = 4_000
# Words that only English has: most replies have one of them, and a search for signs takes time.
_ENGLISH = frozenset("the is of this that and with because you us for".split())
_LETTER = "(?<![A-Za-z0-9])(?-i:[A-Z])(?!-?[A-Za-z0-9])"
_WORDS = f"[{chr(_TEXT)}-{chr(_STATEMENT - 1)}]"
_OPTION = (
    rf"(?:ARTICLE ?){{0,3}}(?P<NAME>{_LETTER}(?:[).:,]+ ?\(?| ?\(?){_WORDS}\)?"
    rf"|{_WORDS}(?: ?\({_LETTER}\))?|\(?{_LETTER}\)?)"
)


class _Language(NamedTuple):
    """Signs of a language, patterns of its statements with their English, and its words."""

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
    table = packaged(__package__, "languages.toml")[name]
    words = {folded(word): english for word, english in table["words"].items()}
    longest = sorted(words, key=len, reverse=True)
    has_blanks = longest[0] < "\u1100"  # the other languages have no blanks between words
    bound = (r"(?<!\w)", r"(?!\w)") if has_blanks else ("", "")
    pattern = re.compile(f"{bound[0]}(?:{'|'.join(map(re.escape, longest))}){bound[1]}", re.I)
    signs = tuple(folded(sign) for sign in table["sign"])
    return _Language(signs, _statements(table, bound), pattern, words)


def _statements(table: dict[str, Any], bound: tuple[str, str]) -> list[tuple[re.Pattern[str], str]]:
    blank = " " if bound[0] else ""
    adverbs, articles = (folded(table.get(key, "(?!)")) for key in ("adverbs", "articles"))
    option = _OPTION.replace("ARTICLE", f"(?:{articles})")
    patterns: list[tuple[re.Pattern[str], str]] = []
    for english, forms in table.get("statements", {}).items():
        for form in forms:
            text = folded(re.sub(r"%(\w+)%", lambda part: table[part[1]], form))
            text = text.replace("~", f"(?:(?:{adverbs}){blank}){{0,4}}").replace("#", r"\w+")
            for name in "XY":
                named = option.replace("NAME", name).replace("\\", r"\\")
                text = re.sub(f"{name}(?![A-Za-z>])", named, text, count=1)
            patterns.append((re.compile(f"{bound[0]}(?:{text}){bound[1]}", re.I), english))
    return patterns


def in_english(text: str, option_texts: Iterable[str]) -> str:
    """Return a text with its relevant words in English, apart from those of the options.

    Of a text that exceeds 24,000 characters in English, the excerpt of `spoken_text` is returned.
    """
    language = _language_of(text)
    if text.islower():
        text = P.small.sub(lambda letter: letter[0].upper(), text)
        language = language or _language("chat")
    if language is None:
        return text
    text, pieces = P.private.sub("", text), dict[str, str]()
    beginning, text = text[:-_LONGEST], text[-_LONGEST:]  # the patterns take time
    for option in filter(_is_kept, option_texts):
        spelling = P.ending.sub("e[nmrs]?", re.escape(option))
        text = re.sub(spelling, partial(_put, language, pieces, option, _TEXT), text, flags=re.I)
    for form, english in language.statements:
        text = form.sub(partial(_put, language, pieces, english, _STATEMENT), text)
    text = language.pattern.sub(partial(_english, language.words), beginning + text)
    text = P.lone.sub(lambda match: match[0] if match["name"] else _named(match[0]), text)
    for character in reversed(pieces):  # statements hold option texts
        text = text.replace(character, pieces[character])
    return excerpt(P.doubled.sub("", text))


def _language_of(text: str) -> _Language | None:
    """Return the language with the most signs in a text, None for English."""
    low, is_ascii = f" {text.lower()} ", text.isascii()
    language, most = None, 0
    if is_ascii and not _ENGLISH.isdisjoint(low.split()):
        return None
    for candidate in _languages(ascii_only=is_ascii):
        hits = 0
        for sign in candidate.signs:  # every reply is searched, and a generator takes longer
            if sign in low:
                hits += 1
        if hits > most:
            language, most = candidate, hits
    return language


def _is_kept(option: str) -> bool:
    return len(option) > 3 or option > "\u2fff"


def _put(
    language: _Language, pieces: dict[str, str], english: str, first: int, match: re.Match[str]
) -> str:
    """Return a character that stands for English words, instead of a match, from now on."""
    if len(pieces) == _END - _STATEMENT:
        return match[0]
    character = chr(first + len(pieces))
    if first == _STATEMENT:
        options = {name: _named(option or "") for name, option in match.groupdict().items()}
        word = P.next_word.match(match.string, match.end())
        # "points to B because ...", in words without English: they are another clause
        ends = english.endswith(("X", "Y")) and word and word[1].lower() not in language.words
        english = re.sub("[XY]", lambda name: options.get(name[0], ""), english)
        english = f" {english} , " if ends else f" {english} "
    pieces[character] = english
    return character


def _named(option: str) -> str:
    letter = option.strip("()")
    return f"option {letter}" if len(letter) == 1 and letter.isascii() else option


def _english(words: dict[str, str], match: re.Match[str]) -> str:
    phrase = match[0]
    # "la A": a lone capital is an option
    return phrase if len(phrase) == 1 and phrase.isupper() else f" {words[phrase.lower()]} "
