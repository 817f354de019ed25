"""When two texts name the same thing: options, diagnoses, nodes of a graph."""

import re
import unicodedata

_PARENTHESES = re.compile(r"\(([^()]*)\)")
_LETTERED = re.compile(r"^(?:option |choice |answer )?\(?[A-Z]\)?(?:[.:)]\s*|$)", re.IGNORECASE)


def words_of(text: str) -> str:
    """Letters and digits, without accents, possessives and punctuation."""
    plain = re.sub(r"(?<=\w)['’]s\b", "", text.casefold())
    decomposed = unicodedata.normalize("NFKD", plain)
    kept = "".join(c for c in decomposed if not unicodedata.combining(c))
    return " ".join(re.findall(r"[^\W_]+", kept))


def _bare(name: str) -> str:
    return re.sub(r"^(?:an?|the) (?=\S)", "", name)


def names_of(text: str) -> list[str]:
    """The text as it is, without its parentheses, and what each of them holds."""
    return [
        words_of(part) for part in (text, without_parentheses(text), *_PARENTHESES.findall(text))
    ]


def without_parentheses(text: str) -> str:
    """The text without what stands in parentheses."""
    return _PARENTHESES.sub(" ", text)


def same_name(one: str, other: str) -> bool:
    """Whether both name one thing, whatever their case, accents, punctuation and parentheses."""
    # a parenthesis alone, such as a unit, names nothing that the whole text does not
    ours, others = ([_bare(name) for name in names_of(text)] for text in (one, other))
    abbreviated = set(ours[:2]) & set(others) | set(others[:2]) & set(ours)
    return bool(abbreviated - {""})


def without_letter(text: str) -> str:
    """The text without an option letter before it; empty where it is nothing but one."""
    return _LETTERED.sub("", text.strip())
