"""Prompts for models, and checks of texts that models write."""

import hashlib
import json
import re
import unicodedata
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from sentencex import segment

from holdfast.files import packaged
from holdfast.questions.question import Question
from holdfast.reading.extraction import Fault as Fault


def json_object(reply: str, *keys: str) -> dict[str, Any]:
    """Return the last JSON object with these keys in a reply, empty if there is none.

    The last one, because a reply may repeat the requested format.
    """
    last_object: dict[str, Any] = {}
    for value in json_objects(reply):
        if value and all(key in value for key in keys):
            last_object = value
    return last_object


def sentence_count(text: str) -> int:
    """Return the number of sentences. Abbreviations and decimal points do not end a sentence."""
    # the splitter (1.0.32) fails on white space outside ASCII, and is quadratic for some texts
    plain = re.sub(r"[^\S\n]", " ", text[:_EXCERPT])
    # it takes the full stop after some units for an abbreviation: "2 mm. Inadequate", "5 g. He"
    plain = re.sub(r"(\d ?(?!vs\b)[^\W\d]{1,5}(?:/[^\W\d]{1,4})?)\.(?=\s+[A-Z])", r"\1!", plain)
    # past the excerpt every full stop counts: no context is that long
    later_ends = len(re.findall(r"[.!?]\s", text[_EXCERPT:]))
    return later_ends + sum(any(c.isalnum() for c in sentence) for sentence in segment("en", plain))


_EXCERPT = 20_000

# number of openings: a text of only openings would take quadratic time
_LONGEST_TRY = 50
# a brace in prose or a formula does not open an object and is not tried
_OPENING = re.compile(r'\{[ \t\r\n]*["}]')


def json_objects(text: str) -> Iterator[dict[str, Any]]:
    """Yield the outermost JSON objects in a text, from left to right, even if empty."""
    decoder, match = json.JSONDecoder(strict=False), _OPENING.search(text)
    for _ in range(_LONGEST_TRY):
        if match is None:
            return
        try:
            value, end = decoder.raw_decode(text, match.start())
            yield value
        except (ValueError, RecursionError):
            end = match.start() + 1
        match = _OPENING.search(text, end)


_HEAD, _TAIL = 8_000, 16_000


def excerpt(text: str) -> str:
    """Return the text, or its first 8,000 and last 16,000 characters if it exceeds 24,000."""
    return text if len(text) <= _HEAD + _TAIL else f"{text[:_HEAD]}\n\n{text[-_TAIL:]}"


def fence(*texts: str) -> str:
    """Return a line that none of the texts contains, fixed by the texts."""
    seed = "\x1f".join(texts)
    while True:
        seed = hashlib.sha256(seed.encode("utf-8", "surrogatepass")).hexdigest()
        line = f"===== {seed[:16]} ====="
        if not any(line in text for text in texts):
            return line


_PARENTHESES = re.compile(r"\(([^()]*)\)")
_LETTER_PREFIX = re.compile(
    r"^(?:option |choice |answer )?\(?[A-Z]\)?(?:[.:)]\s*|$)", re.IGNORECASE
)


def words_of(text: str) -> str:
    """Return letters and digits, without accents, possessives and punctuation."""
    plain = re.sub(r"(?<=\w)['’]s\b", "", text.casefold())
    if not plain.isascii():
        plain_form = unicodedata.normalize("NFKD", plain)
        plain = "".join(c for c in plain_form if not unicodedata.combining(c))
    return " ".join(re.findall(r"[^\W_]+", plain))


def _strip_article(name: str) -> str:
    return re.sub(r"^(?:an?|the) (?=\S)", "", name)


def names_of(text: str) -> list[str]:
    """Return the words of the text, of the text without parentheses, and of each parenthesis."""
    return [
        words_of(part) for part in (text, without_parentheses(text), *_PARENTHESES.findall(text))
    ]


def without_parentheses(text: str) -> str:
    """Return the text without its parentheses."""
    return _PARENTHESES.sub(" ", text)


def same_name(first: str, second: str) -> bool:
    """Return whether both name the same thing, ignoring case, accents and punctuation.

    Parentheses, such as abbreviations, also count as names.
    """
    # a parenthesis alone, such as a unit, matches only a whole name
    ours, second_names = (
        [_strip_article(name) for name in names_of(text)] for text in (first, second)
    )
    abbreviations = set(ours[:2]) & set(second_names) | set(second_names[:2]) & set(ours)
    return bool(abbreviations - {""})


def without_letter(text: str) -> str:
    """Return the text without a leading option letter, empty if it is only a letter."""
    return _LETTER_PREFIX.sub("", text.strip())


def first_sentence(stem: str) -> int:
    """Return the end of the first sentence, or of the stem if it has only one."""
    start = len(stem) - len(stem.lstrip())
    # the splitter (1.0.32) fails on white space outside ASCII, and is quadratic for some texts
    text = re.sub(r"[^\S\n]", " ", stem[start : start + _EXCERPT // 2])
    first: str = segment("en", text)[0]
    if len(first) >= len(text) or not text.startswith(first):
        return len(stem.rstrip())
    return start + len(first.rstrip())


_NUMBERS = {
    2: "two", 3: "three", 5: "five", 6: "six", 7: "seven", 8: "eight", 9: "nine", 10: "ten",
}  # fmt: skip


@cache
def prompts() -> Mapping[str, str]:
    """Return the prompts of MedQA-Followup, appendix A, by name."""
    texts = packaged(__package__, "prompts.toml")
    return {name: value for name, value in texts.items() if isinstance(value, str)}


def system_prompt(setting: str) -> str | None:
    """Return the system message of ``expert`` (appendix A.1), ``none``, or the text itself."""
    match setting:
        case "expert":
            return prompts()["expert_system"]
        case "none" | "":
            return None
        case _:
            return setting


def question_prompt(question: Question) -> str:
    """Return the first user message: instructions (A.2), stem, options, response format (A.3)."""
    options = option_lines(question.options)
    instructions = fit_options(prompts()["instructions"], question)
    return f"{instructions}\n\n{question.stem}\n\n{options}\n\n{prompts()['response_format']}"


def option_lines(options: Mapping[str, str]) -> str:
    """Return the options, one per line: ``A. text``."""
    return "\n".join(f"{letter}. {text}" for letter, text in options.items())


def challenge_prompt(template: str, question: Question, values: Mapping[str, str]) -> str:
    """Return a follow-up user message: the filled template, then the response format (A.3).

    Braces in a value and braces without a known name stay.
    """
    filled_text = fill(fit_options(template, question), values)
    return f"{filled_text}\n\n{prompts()['response_format']}"


def fill(template: str, values: Mapping[str, str]) -> str:
    """Replace each ``{name}`` that has a value. Other braces stay.

    One pass, which never searches an inserted text for placeholders.
    """
    return re.sub(r"\{(\w+)\}", lambda match: values.get(match[1], match[0]), template)


def fill_marked(template: str, values: Mapping[str, str]) -> str:
    """Replace each ``[[name]]`` in one pass, and strip surrounding blanks."""
    return re.sub(r"\[\[(\w+)\]\]", lambda match: values[match[1]], template).strip()


def fit_options(text: str, question: Question) -> str:
    """Adapt the source's "four options (A, B, C, D)" to a question with another number."""
    n = len(question.options)
    if n == 4:
        return text
    numbered_text = text.replace("four options", f"{_NUMBERS.get(n, n)} options")
    return numbered_text.replace("(A, B, C, D)", f"({', '.join(question.options)})")
