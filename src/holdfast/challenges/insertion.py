"""What was added to a text whose sentences all stand unchanged, and where."""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

IDEOGRAPHS = "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
"""Characters of scripts that put no space between words, as ranges of a regular expression."""

# between sentences that no space parts, as some data sets have them, there is a boundary too
_GLUED = r"(?<=[a-z%)][.!?])(?=[A-Z][a-z])"
_TOKEN = re.compile(rf"[{IDEOGRAPHS}]|[^\s{IDEOGRAPHS}]+?(?:(?=[\s{IDEOGRAPHS}]|\Z)|{_GLUED})")
_END = re.compile(r"[.!?…。！？][^\w\s]{0,5}\Z")
_SIGNS = dict.fromkeys(range(0x2010, 0x2016), "-") | {0x2212: "-"}
_SIGNS |= dict.fromkeys((0x2018, 0x2019, 0x201A, 0x201B, 0x2032), "'")
_SIGNS |= dict.fromkeys((0x201C, 0x201D, 0x201E, 0x201F, 0xAB, 0xBB), '"')
_SIGNS |= dict.fromkeys((0xAD, 0x200B, 0x200C, 0x200D, 0x2060, 0xFEFF), "")
# normalising takes quadratic time on a run of combining marks
_LONGEST = 200


@dataclass(frozen=True)
class Insertion:
    """A run of text that was added.

    Attributes:
        place: how many words of the original stand before it.
        text: the run, without the white space around it.
    """

    place: int
    text: str


@dataclass(frozen=True)
class LostSentence:
    """A sentence of the original that does not stand, or not in its order.

    Attributes:
        text: the sentence as the original has it.
        elsewhere: it stands in the text, but not behind the sentences before it.
    """

    text: str
    elsewhere: bool


def word_count(text: str) -> int:
    """Words: runs without white space that hold a letter or digit; ideographs count one each."""
    return sum(map(_is_word, _TOKEN.findall(text)))


def with_insertions(
    original: str, modified: str
) -> tuple[str, tuple[Insertion, ...]] | LostSentence:
    """The original with what a modification of it adds between its sentences.

    White space, typographic signs and quotation marks of the original may differ in the
    modification, as models seldom keep them: the text that is given back has the original's own.
    A sentence ends with a full stop, question or exclamation mark before white space, or with
    its line. Of all readings the one with the fewest runs holds.

    Args:
        original: the text that was to be modified.
        modified: the text with additions. Time grows with the product of the original's sentences
            and the words added, so bound them first.

    Returns:
        The original with the runs added, and the runs in their order; or the first sentence that
        was lost.
    """
    old, new = _spans(original), _spans(modified)
    wanted, given = _plain_tokens(original, old), _plain_tokens(modified, new)
    sentences = _sentences(original, old)
    shifts = _shifts(wanted, given, sentences)
    if shifts is None:
        return _lost(original, old, wanted, given, sentences)
    runs: list[tuple[int, int, int]] = []
    before, end = 0, 0
    for (start, stop), shift in zip(sentences, shifts, strict=True):
        if shift > before:
            runs.append((start, start + before, start + shift))
        before, end = shift, stop
    if len(given) > end + before:
        runs.append((end, end + before, len(given)))
    parts, done = [], 0
    for place, first, last in runs:
        if place:
            parts.append(original[done : old[place - 1][1]])
            done = old[place - 1][1]
        next_old = old[place][0] if place < len(old) else None
        parts.append(_in_its_space(original, modified, done, next_old, new, first, last))
        done = done if next_old is None else next_old
    added = tuple(
        Insertion(place, modified[new[first][0] : new[last - 1][1]]) for place, first, last in runs
    )
    return "".join([*parts, original[done:]]), added


def _in_its_space(
    original: str,
    modified: str,
    done: int,
    next_old: int | None,
    new: Sequence[tuple[int, int]],
    first: int,
    last: int,
) -> str:
    """An added run with the white space around it."""
    text = modified[new[first][0] : new[last - 1][1]]
    lead = modified[new[first - 1][1] : new[first][0]] if first else original[: next_old or 0]
    if next_old is None:
        return lead + text
    trail = modified[new[last - 1][1] : new[last][0]]
    space = original[done:next_old]
    # a line end of the original, such as before a row of results, stays one
    if first and "\n" in space and "\n" not in lead + trail:
        trail = space
    return lead + text + trail


def _spans(text: str) -> list[tuple[int, int]]:
    return [found.span() for found in _TOKEN.finditer(text)]


def _is_word(token: str) -> bool:
    return any(map(str.isalnum, token))


def _plain_tokens(text: str, spans: Sequence[tuple[int, int]]) -> list[str]:
    return [_plain(text[start:end]) for start, end in spans]


def _plain(token: str) -> str:
    if not token.isascii() and len(token) <= _LONGEST:
        token = unicodedata.normalize("NFKC", token.translate(_SIGNS)).translate(_SIGNS)
    return token.strip("\"'`") or token


def _sentences(text: str, spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Each as the numbers of its first token and of the one behind its last."""
    ends = [
        number
        for number, ((start, end), (following, _)) in enumerate(pairwise(spans), start=1)
        if "\n" in text[end:following]
        or "\r" in text[end:following]
        or _END.search(text[max(start, end - 6) : end])
    ]
    return list(zip([0, *ends], [*ends, len(spans)], strict=True)) if spans else []


def _shifts(
    wanted: Sequence[str], given: Sequence[str], sentences: Sequence[tuple[int, int]]
) -> list[int] | None:
    """How many words were added before each sentence, in as few runs as possible."""
    extra = len(given) - len(wanted)
    runs = {0: 0}  # the runs needed so far, by the words they add
    came: list[dict[int, int]] = []
    for start, end in sentences:
        now: dict[int, int] = {}
        origin: dict[int, int] = {}
        fewest, source = len(sentences) + 1, -1
        for shift in range(extra + 1):
            here = runs.get(shift)
            if (here is not None or source >= 0) and given[start + shift] == wanted[start]:
                if given[start + shift : end + shift] == wanted[start:end]:
                    stays = here is not None and here <= fewest + 1
                    now[shift] = here if stays and here is not None else fewest + 1
                    origin[shift] = shift if stays else source
            if here is not None and here < fewest:
                fewest, source = here, shift
        if not now:
            return None
        came.append(origin)
        runs = now
    if extra < 0:
        return None
    shift = min(runs, key=lambda one: (runs[one] + (one != extra), one))
    found = []
    for origin in reversed(came):
        found.append(shift)
        shift = origin[shift]
    return found[::-1]


def _lost(
    original: str,
    old: Sequence[tuple[int, int]],
    wanted: Sequence[str],
    given: Sequence[str],
    sentences: Sequence[tuple[int, int]],
) -> LostSentence:
    whole = f" {' '.join(given)} "
    done, last = 0, LostSentence("", elsewhere=True)
    for start, end in sentences:
        sentence = f" {' '.join(wanted[start:end])} "
        place = whole.find(sentence, done)
        text = original[old[start][0] : old[end - 1][1]]
        last = LostSentence(text, elsewhere=place < 0 and sentence in whole)
        if place < 0:
            return last
        done = place + len(sentence) - 1
    return last  # each is found on its own, yet not all of them without an overlap
