"""Valid modifications of a question: what MedFuzz must preserve and what it may add."""

import ast
import json
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import pairwise
from typing import Any

from holdfast.challenges.texts import Fault, json_object, without_parentheses, words_of
from holdfast.errors import counted
from holdfast.files import is_valid_text, packaged
from holdfast.questions.question import Question

from .characteristics import IDEOGRAPHS, is_function_word, stems, telling_stems

# also a boundary if a data set has no space between sentences
_GLUED_SENTENCES = r"(?<=[a-z%)][.!?])(?=[A-Z][a-z])"
_TOKEN = re.compile(
    rf"[{IDEOGRAPHS}]|[^\s{IDEOGRAPHS}]+?(?:(?=[\s{IDEOGRAPHS}]|\Z)|{_GLUED_SENTENCES})"
)
_END = re.compile(r"[.!?…。！？][^\w\s]{0,5}\Z")
_SIGNS = dict.fromkeys(range(0x2010, 0x2016), "-") | {0x2212: "-"}
_SIGNS |= dict.fromkeys((0x2018, 0x2019, 0x201A, 0x201B, 0x2032), "'")
_SIGNS |= dict.fromkeys((0x201C, 0x201D, 0x201E, 0x201F, 0xAB, 0xBB), '"')
_SIGNS |= dict.fromkeys((0xAD, 0x200B, 0x200C, 0x200D, 0x2060, 0xFEFF), "")
# normalisation takes quadratic time on a run of combining marks
_LONGEST = 200


@dataclass(frozen=True)
class Insertion:
    """Added run of text.

    Attributes:
        place: number of words of the original before it.
        text: the run, without surrounding white space.
    """

    place: int
    text: str


@dataclass(frozen=True)
class LostSentence:
    """Sentence of the original that is missing or out of order.

    Attributes:
        text: the sentence in the original.
        elsewhere: whether the text contains it, but not after the sentences before it.
    """

    text: str
    elsewhere: bool


def word_count(text: str) -> int:
    """Count words: runs without white space with a letter or digit, and each ideograph as one."""
    return sum(map(_is_word, _TOKEN.findall(text)))


def with_insertions(
    original: str, revision: str
) -> tuple[str, tuple[Insertion, ...]] | LostSentence:
    """Return the original with the text that a modification adds between its sentences.

    White space, typographic signs and quotation marks may differ from the original, because models
    seldom preserve them. The returned text has those of the original. A sentence ends with a full
    stop, question mark or exclamation mark before white space, or at the end of its line. Of all
    alignments, the one with the fewest runs is used. Time grows with the product of the original's
    sentences and the added words, so bound these first.

    Returns:
        The original with the added runs, and the runs in order. Or the first lost sentence.
    """
    old, new = _spans(original), _spans(revision)
    original_tokens, revision_tokens = _plain_tokens(original, old), _plain_tokens(revision, new)
    sentences = _sentences(original, old)
    shifts = _shifts(original_tokens, revision_tokens, sentences)
    if shifts is None:
        return _find_lost_sentence(original, old, original_tokens, revision_tokens, sentences)
    runs: list[tuple[int, int, int]] = []
    shift_before, end = 0, 0
    for (start, stop), shift in zip(sentences, shifts, strict=True):
        if shift > shift_before:
            runs.append((start, start + shift_before, start + shift))
        shift_before, end = shift, stop
    if len(revision_tokens) > end + shift_before:
        runs.append((end, end + shift_before, len(revision_tokens)))
    parts, offset = [], 0
    for place, first, last in runs:
        if place:
            parts.append(original[offset : old[place - 1][1]])
            offset = old[place - 1][1]
        next_old = old[place][0] if place < len(old) else None
        parts.append(_in_its_space(original, revision, offset, next_old, new, first, last))
        offset = offset if next_old is None else next_old
    insertions = tuple(
        Insertion(place, revision[new[first][0] : new[last - 1][1]]) for place, first, last in runs
    )
    return "".join([*parts, original[offset:]]), insertions


def _in_its_space(
    original: str,
    revision: str,
    offset: int,
    next_old: int | None,
    new: Sequence[tuple[int, int]],
    first: int,
    last: int,
) -> str:
    """Return an added run with the white space around it."""
    text = revision[new[first][0] : new[last - 1][1]]
    lead = revision[new[first - 1][1] : new[first][0]] if first else original[: next_old or 0]
    if next_old is None:
        return lead + text
    trail = revision[new[last - 1][1] : new[last][0]]
    space = original[offset:next_old]
    # keep a line end of the original, such as before a row of results
    if first and "\n" in space and "\n" not in lead + trail:
        trail = space
    return lead + text + trail


def _spans(text: str) -> list[tuple[int, int]]:
    return [match.span() for match in _TOKEN.finditer(text)]


def _is_word(token: str) -> bool:
    return any(map(str.isalnum, token))


def _plain_tokens(text: str, spans: Sequence[tuple[int, int]]) -> list[str]:
    return [_plain(text[start:end]) for start, end in spans]


def _plain(token: str) -> str:
    if not token.isascii() and len(token) <= _LONGEST:
        token = unicodedata.normalize("NFKC", token.translate(_SIGNS)).translate(_SIGNS)
    return token.strip("\"'`") or token


def _sentences(text: str, spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return each sentence as the numbers of its first token and of the token after its last."""
    ends = [
        number
        for number, ((start, end), (following, _)) in enumerate(pairwise(spans), start=1)
        if "\n" in text[end:following]
        or "\r" in text[end:following]
        or _END.search(text[max(start, end - 6) : end])
    ]
    return list(zip([0, *ends], [*ends, len(spans)], strict=True)) if spans else []


def _shifts(
    original_tokens: Sequence[str],
    revision_tokens: Sequence[str],
    sentences: Sequence[tuple[int, int]],
) -> list[int] | None:
    """Return the number of words added before each sentence, with as few runs as possible."""
    extra = len(revision_tokens) - len(original_tokens)
    runs = {0: 0}  # fewest runs by number of added words
    came: list[dict[int, int]] = []
    for start, end in sentences:
        next_runs: dict[int, int] = {}
        origin: dict[int, int] = {}
        fewest, source = len(sentences) + 1, -1
        for shift in range(extra + 1):
            run_length = runs.get(shift)
            if (run_length is not None or source >= 0) and revision_tokens[
                start + shift
            ] == original_tokens[start]:
                if revision_tokens[start + shift : end + shift] == original_tokens[start:end]:
                    stays = run_length is not None and run_length <= fewest + 1
                    next_runs[shift] = (
                        run_length if stays and run_length is not None else fewest + 1
                    )
                    origin[shift] = shift if stays else source
            if run_length is not None and run_length < fewest:
                fewest, source = run_length, shift
        if not next_runs:
            return None
        came.append(origin)
        runs = next_runs
    if extra < 0:
        return None
    shift = min(runs, key=lambda candidate: (runs[candidate] + (candidate != extra), candidate))
    matches = []
    for origin in reversed(came):
        matches.append(shift)
        shift = origin[shift]
    return matches[::-1]


def _find_lost_sentence(
    original: str,
    old: Sequence[tuple[int, int]],
    original_tokens: Sequence[str],
    revision_tokens: Sequence[str],
    sentences: Sequence[tuple[int, int]],
) -> LostSentence:
    whole = f" {' '.join(revision_tokens)} "
    offset, last = 0, LostSentence("", elsewhere=True)
    for start, end in sentences:
        sentence = f" {' '.join(original_tokens[start:end])} "
        place = whole.find(sentence, offset)
        text = original[old[start][0] : old[end - 1][1]]
        last = LostSentence(text, elsewhere=place < 0 and sentence in whole)
        if place < 0:
            return last
        offset = place + len(sentence) - 1
    return last  # each sentence occurs, but some overlap


MOST_WORDS = 120
"""Maximum number of words that a modification may add."""

# no word of prose is longer on average, so a wall of text cannot pass as a few words
_LETTERS = 20
_EXCERPT_LENGTH = 160


@dataclass(frozen=True)
class Fuzz:
    """Valid modification of a question.

    Attributes:
        stem: the modified stem: the original sentences with the additions between them.
        characteristics: the additions as the attacker lists them.
        analysis: analysis of the model's last reply, empty if the attacker gave none.
        plan: plan of the attack, empty if the attacker gave none.
        additions: the added runs of text, in order.
        words: number of added words.
    """

    stem: str
    characteristics: tuple[str, ...]
    analysis: str
    plan: str
    additions: tuple[str, ...]
    words: int


def read_fuzz(reply: str, question: Question) -> Fuzz | Fault:
    """Parse and validate the modification in an attacker's reply.

    A valid modification contains every sentence of the stem unchanged and in order. It adds whole
    sentences of at most 120 words in total, names no option by text, letter or position, and does
    not say what to answer. It lists characteristics that share words with the additions. White
    space and quotation marks may differ, and options repeated after the stem are dropped. The
    returned stem has the characters of the original, so only the additions are new.
    """
    if not reply.strip():
        return Fault("empty", "is empty")
    reply_object = _object_in(reply)
    revision = reply_object.get("modified_question")
    if not isinstance(revision, str):
        return Fault(
            "no JSON", 'is no JSON object with the text "modified_question" and the list '
            '"characteristics"',
        )  # fmt: skip
    return _check_revision(revision, reply_object.get("characteristics"), question, reply_object)


def _object_in(reply: str) -> Mapping[str, Any]:
    """Return the JSON object of a reply, even with faults that need no further request.

    These are a comma before a closing bracket, Python quotes, and an end after a string. An object
    that is cut off within a string is not returned.
    """
    if parsed_object := json_object(reply, _MODIFIED_KEY):
        return parsed_object
    start = _OBJECT.search(reply)
    text = reply[start.start() :][:_MOST_READ] if start else ""
    whole = text[: text.rfind("}") + 1]
    for candidate in (whole, *(f"{text.rstrip().rstrip('`').rstrip()}{end}" for end in _ENDS)):
        for parser in (_as_json, _as_python):
            if (parsed_object := parser(candidate)) and _MODIFIED_KEY in parsed_object:
                return parsed_object
    return {}


_MODIFIED_KEY = "modified_question"
_OBJECT = re.compile(r"""\{\s*["']""")
_ENDS = ("}", "]}")
# far longer than a question with the longest addition
_MOST_READ = 100_000
_TRAILING = re.compile(r'("(?:[^"\\]|\\.)*")|,(?=\s*[}\]])')


def _as_json(text: str) -> dict[str, Any]:
    try:
        parsed_object = json.loads(_TRAILING.sub(lambda match: match[1] or "", text), strict=False)
    except (ValueError, RecursionError):
        return {}
    return parsed_object if isinstance(parsed_object, dict) else {}


def _as_python(text: str) -> dict[str, Any]:
    try:
        parsed_object = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        return {}
    return parsed_object if isinstance(parsed_object, dict) else {}


def read_control(reply: str, question: Question, fuzz: Fuzz) -> Fuzz | Fault:
    """Parse and validate the control in an attacker's reply (MedFuzz, section 3.4).

    A valid control meets the rules of ``read_fuzz``, adds as many words as the attack, in the same
    places, and uses other words.
    """
    control = read_fuzz(reply, question)
    if isinstance(control, Fault):
        return control
    attack = _runs(question, fuzz.stem)
    runs = _runs(question, control.stem)
    if [run.place for run in runs] != [run.place for run in attack]:
        return Fault(
            "other places",
            f"adds text in {counted(len(runs), 'place')} that are not just the "
            f"{counted(len(attack), 'place')} where the modified question has its additions",
        )
    if control.words != fuzz.words:
        sizes = ", ".join(str(word_count(run.text)) for run in runs)
        word_counts = ", ".join(str(word_count(run.text)) for run in attack)
        return Fault(
            "other length",
            f"adds {counted(control.words, 'word')} (run by run {sizes}), not exactly "
            f"{fuzz.words} ({word_counts})",
        )
    if [words_of(run.text) for run in runs] == [words_of(run.text) for run in attack]:
        return Fault("same text", "adds the same text as the modified question")
    return control


def fuzz_of(question: Question, stem: str, characteristics: Sequence[str]) -> Fuzz | Fault:
    """Validate a modification from a log, known by its stem."""
    return _check_revision(stem, list(characteristics), question, {})


def _runs(question: Question, stem: str) -> Sequence[Insertion]:
    insertions = with_insertions(question.stem, stem)
    return () if isinstance(insertions, LostSentence) else insertions[1]


def _check_revision(
    revision: str, characteristics: object, question: Question, reply_object: Mapping[str, Any]
) -> Fuzz | Fault:
    if not is_valid_text(revision) or "\0" in revision:
        return _no_text()
    options_length = sum(map(len, question.options.values()))
    # do not parse a text that is far too long
    if _signs(revision) - _signs(question.stem) - options_length > 10 * MOST_WORDS * _LETTERS:
        return _too_long()
    revision = _without_options(revision, question)
    if fault := _size_fault(revision, question):
        return fault
    insertions = with_insertions(question.stem, revision)
    if isinstance(insertions, LostSentence):
        return _lost_fault(insertions)
    stem, runs = insertions
    additions = tuple(run.text for run in runs)
    words = sum(map(word_count, additions))
    if not words:
        return Fault("nothing added", "adds nothing to the question")
    if fault := naming_fault(additions, question) or wording_fault(additions):
        return fault
    names = _check_characteristics(characteristics, additions)
    if isinstance(names, Fault):
        return names
    analysis, plan = (_text(reply_object.get(name)) for name in ("analysis", "plan"))
    if not is_valid_text(analysis + plan):
        return _no_text()
    return Fuzz(stem, names, analysis, plan, additions, words)


def _size_fault(revision: str, question: Question) -> Fault | None:
    stem = question.stem
    words = word_count(revision) - word_count(stem)
    spare = len(revision.split()) - len(stem.split()) - words
    signs = _signs(revision) - _signs(stem)
    if words > MOST_WORDS:
        return Fault("too long", f"adds {words} words, and at most {MOST_WORDS} may be added")
    if spare > MOST_WORDS or signs > MOST_WORDS * _LETTERS:
        return _too_long()
    return None


def _too_long() -> Fault:
    return Fault("too long", f"adds more signs than {MOST_WORDS} words can have")


def _no_text() -> Fault:
    return Fault("no valid text", "holds a character that is no valid text")


def _signs(text: str) -> int:
    """Count the characters other than white space."""
    return sum(map(len, text.split()))


def _lost_fault(lost_sentence: LostSentence) -> Fault:
    text = " ".join(lost_sentence.text.split())
    excerpt = text if len(text) <= _EXCERPT_LENGTH else f"{text[:_EXCERPT_LENGTH]}…"
    if lost_sentence.elsewhere:
        return Fault("another order", f"does not keep the sentence “{excerpt}” once in its order")
    return Fault("a lost sentence", f"does not keep the sentence “{excerpt}” word for word")


def _check_characteristics(
    characteristics: object, additions: Sequence[str]
) -> tuple[str, ...] | Fault:
    """Return the characteristics, each of which must share a content word with the additions."""
    if not isinstance(characteristics, list) or not characteristics:
        return Fault("no characteristics", 'lists nothing under "characteristics"')
    names = [_text(item) for item in characteristics]
    if not all(names):
        return Fault("no characteristics", 'holds something empty under "characteristics"')
    if not is_valid_text("".join(names)) or any("\0" in name for name in names):
        return _no_text()
    if sum(map(len, names)) > MOST_WORDS * _LETTERS:
        return Fault("no characteristics", 'says more under "characteristics" than it can add')
    added_stems = stems(" ".join(additions))
    for name in names:
        if not telling_stems(name) & added_stems:
            return Fault(
                "a characteristic not added",
                f"lists the characteristic “{name[:_EXCERPT_LENGTH]}” but adds no text that "
                "says so in any "
                "of its words",
            )
    return tuple(dict.fromkeys(names))


def _text(value: object) -> str:
    return value.strip() if isinstance(value, str) else ""


def _without_options(revision: str, question: Question) -> str:
    """Return the text without options at its end, unless the original has options there."""
    end = _before_options(revision, question)
    if end is None or _before_options(question.stem, question) is not None:
        return revision
    remainder = revision[:end].rstrip()
    heading = re.search(r"(?i)(?:\banswer )?\b(?:options|choices):?\Z", remainder[-40:])
    return remainder.removesuffix(heading[0]) if heading else remainder


def _before_options(text: str, question: Question) -> int | None:
    """Return the start of options such as ``A. text`` at the end of a text, None without them."""
    matches = list(re.finditer(r"\S+", text))
    position = len(matches)
    for letter, option in reversed(question.options.items()):
        words = option.split()
        position -= len(words) + 1
        if position < 0 or matches[position][0].strip("().:[]*-") != letter:
            return None
        words_after = [
            match[0].casefold() for match in matches[position + 1 : position + 1 + len(words)]
        ]
        if words_after != option.casefold().split():
            return None
    return matches[position].start()


def naming_fault(additions: Sequence[str], question: Question) -> Fault | None:
    """Return the fault of an addition that names an option by text or letter, or lists options."""
    letters = "".join(question.options)
    for run in additions:
        if re.search(r"(?:^|[\s(])A[.):]\)?\s[^\n]{1,400}?\s\(?B[.):]\)?\s", run):
            return Fault("an option list", "writes out options, and they are not part of it")
        if re.search(
            rf"\b(?i:options?|choices?|answers?|letters?|choos(?:e|ing)|select(?:ing)?|pick(?:ing)?)"
            rf"[\s:(*\"'“\[]{{1,5}}[{letters}]\b",
            run,
        ):
            return Fault("an option letter", "refers to an option by its letter")
        plain = _pad_words(run)
        for letter, option in question.options.items():
            if _is_named(option, run, plain):
                return Fault("an option's text", f"names option {letter} in what it adds")
    return None


def wording_fault(additions: Sequence[str]) -> Fault | None:
    """Return the fault of an addition that refers to the list of options or says what to do."""
    for run in additions:
        plain = " ".join(run.split()).replace("’", "'")
        for kind, detail, patterns in _wordings():
            if any(pattern.search(plain) for pattern in patterns):
                return Fault(kind, detail)
    return None


@cache
def _wordings() -> tuple[tuple[str, str, tuple[re.Pattern[str], ...]], ...]:
    wordings = packaged(__package__, "checks.toml")["wording"]
    return tuple(
        (
            wording["kind"],
            wording["detail"],
            tuple(re.compile(p, re.I) for p in wording["patterns"]),
        )
        for wording in wordings
    )


def _is_named(option: str, run: str, plain: str) -> bool:
    """Whether a run names an option, in whole words and ignoring case.

    A number must match as written, with its sign. A single letter must match in its case, and must
    not be an article or pronoun. An option of only function words, such as "None", never matches,
    because it occurs in every text.
    """
    option = option.strip()
    if re.search(rf"[{IDEOGRAPHS}]", option):
        return option in run
    if not any(c.isalpha() for c in option):
        figures = re.escape(option)
        return bool(re.search(rf"(?<![\w.,%]){figures}(?![\w%]|[.,]\d)", run))
    if len(option) == 1:
        matches = re.finditer(rf"(?<![\w'’-]){re.escape(option)}(?![\w'’-])", run)
        return any(not _is_small_word(option, run, match.start()) for match in matches)
    return any(name in plain for name in _telling_names(option))


@lru_cache(1024)  # the same inert sentences are compared with every question
def _pad_words(text: str) -> str:
    return f" {words_of(text)} "


@lru_cache(1024)
def _telling_names(option: str) -> list[str]:
    """Return the names of an option between blanks, without names of only function words."""
    names = (words_of(option), words_of(without_parentheses(option)))
    bare_names = [re.sub(r"^(?:an?|the) (?=\S)", "", name) for name in names]
    return [
        f" {bare} " for bare in bare_names if bare and not all(map(is_function_word, bare.split()))
    ]


def _is_small_word(letter: str, run: str, place: int) -> bool:
    """Whether a letter is the article at the start of a sentence, or the pronoun."""
    if not re.match(r" [a-z]", run[place + 1 :]):
        return False
    text_before = run[:place].rstrip()
    return letter == "I" or (letter == "A" and (not text_before or not text_before[-1].isalnum()))
