"""Names of options that consist of a part of their words: "the left sixth nerve", "PCL"."""

import re
from collections import Counter
from functools import lru_cache

from .mentions import Options
from .patterns import Patterns, WordSets
from .words import kinds

P = Patterns("parts")
W = WordSets()
_LEAST_SHARE = 0.25  # of the words of an option
_LONGEST_WHOLE = 12  # words of a reply that ends without a full stop and is not cut off


def with_parts(text: str, options: Options) -> Options:
    """Return the options with a name for each part of their words that a text uses as a name.

    A run of words is a name of the option that alone has all of them, and so are the initials of
    an option in capitals. "Pulmonary" in "pulmonary embolism" does not name "CT pulmonary
    angiogram", because another noun follows.

    Args:
        text: Plain text in English, with its capitals.
        options: Options to search for.
    """
    names = {(place, initials.lower()) for initials, place in _initials(options).items()
             if initials in text and re.search(rf"\b{initials}\b", text)}  # fmt: skip
    vocabulary = _vocabulary(options)
    tokens = list(P.token.finditer(text))
    words = [token[0].lower() for token in tokens]
    at = 0
    while at < len(words):
        places, end = set(vocabulary), at
        for n in range(at, len(words)):
            shared = {place for place in places if words[n] in vocabulary[place]}
            if shared:
                places, end = shared, n
            elif n == at or words[n] not in W.joining:
                break
        if len(places) == 1 and _is_name(tokens, words, at, end):
            (place,) = places
            run = set(words[at : end + 1]) - W.joining
            if len(run) >= _LEAST_SHARE * len(vocabulary[place]):
                names.add((place, text[tokens[at].start() : tokens[end].end()].lower()))
        at = end + 1
    names -= set(options.texts)
    longest = sorted([*options.texts, *sorted(names)], key=lambda item: -len(item[1]))
    return options._replace(texts=tuple(longest)) if names else options


@lru_cache(maxsize=4096)  # the options of a question serve for each of its replies
def _vocabulary(options: Options) -> dict[int, frozenset[str]]:
    """Return the words of each option, by its place."""
    return {place: frozenset(filter(P.word.match, P.token.findall(text))) - W.joining
            for place, text in options.full_texts.items()}  # fmt: skip


@lru_cache(maxsize=4096)
def _initials(options: Options) -> dict[str, int]:
    """Return the place of the option with these initials, if there is only one: "PCL"."""
    initials = {
        place: "".join(word[0] for word in P.part.findall(text) if word not in W.joining).upper()
        for place, text in options.full_texts.items()
    }
    counts = Counter(initials.values())
    return {name: place for place, name in initials.items() if len(name) > 2 and counts[name] == 1}


def _is_name(tokens: list[re.Match[str]], words: list[str], at: int, end: int) -> bool:
    """Return whether a run of words names something by itself."""
    is_single = at == end
    near = words[end + 1 : end + 2] + (words[max(0, at - 1) : at] if is_single else [])
    if any(P.word.match(w) and w not in W.joining and not kinds(w) for w in near):
        return False
    if words[max(0, at - 1) : at] == ["."] and len("".join(words[max(0, at - 2) : at - 1])) == 1:
        return False  # "C. difficile"
    if not is_single:
        return True
    if end + 1 == len(words) > _LONGEST_WHOLE:
        return False  # "... it would be best to order an abdominal"
    word, written = words[at], tokens[at][0]
    is_long = len(word) > 4 or (len(word) > 1 and written.isupper())
    return is_long and not word.isdigit() and not kinds(word)
