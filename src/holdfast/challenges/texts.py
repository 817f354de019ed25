"""The words a model reads, and texts of others: fenced, read as JSON, compared, found faulty."""

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
    """The last JSON object in a reply with these keys, whatever stands around it; else empty.

    The last, because a reply may repeat the format that it was asked for.
    """
    last_object: dict[str, Any] = {}
    for value in json_objects(reply):
        if value and all(key in value for key in keys):
            last_object = value
    return last_object


def sentence_count(text: str) -> int:
    """Sentences in a text; abbreviations and decimal points end none."""
    # the splitter breaks down on white space that is not ASCII (1.0.32), and its time grows with
    # the square of some texts
    plain = re.sub(r"[^\S\n]", " ", text[:_EXCERPT])
    # it takes the full stop after some units for an abbreviation's: "2 mm. Inadequate", "5 g. He"
    plain = re.sub(r"(\d ?(?!vs\b)[^\W\d]{1,5}(?:/[^\W\d]{1,4})?)\.(?=\s+[A-Z])", r"\1!", plain)
    # past the excerpt every end counts: no context is that long
    later_ends = len(re.findall(r"[.!?]\s", text[_EXCERPT:]))
    return later_ends + sum(any(c.isalnum() for c in sentence) for sentence in segment("en", plain))


_EXCERPT = 20_000

# openings: a text of nothing else would take quadratic time
_LONGEST_TRY = 50
# a brace of prose or of a formula opens no object, and is none of the openings tried
_OPENING = re.compile(r'\{[ \t\r\n]*["}]')


def json_objects(text: str) -> Iterator[dict[str, Any]]:
    """The JSON objects in a text, from left to right, each outermost one, the empty one too.

    Yields:
        Each outermost object, the empty one too.
    """
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
    """The text; of more than 24,000 characters the first 8,000 and the last 16,000."""
    return text if len(text) <= _HEAD + _TAIL else f"{text[:_HEAD]}\n\n{text[-_TAIL:]}"


def fence(*texts: str) -> str:
    """A line that stands in none of the texts, the same for the same texts."""
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
    """Letters and digits, without accents, possessives and punctuation."""
    plain = re.sub(r"(?<=\w)['’]s\b", "", text.casefold())
    if not plain.isascii():
        plain_form = unicodedata.normalize("NFKD", plain)
        plain = "".join(c for c in plain_form if not unicodedata.combining(c))
    return " ".join(re.findall(r"[^\W_]+", plain))


def _strip_article(name: str) -> str:
    return re.sub(r"^(?:an?|the) (?=\S)", "", name)


def names_of(text: str) -> list[str]:
    """The text as it is, without its parentheses, and what each of them holds."""
    return [
        words_of(part) for part in (text, without_parentheses(text), *_PARENTHESES.findall(text))
    ]


def without_parentheses(text: str) -> str:
    """The text without what stands in parentheses."""
    return _PARENTHESES.sub(" ", text)


def same_name(first: str, second: str) -> bool:
    """Whether both name one thing, whatever their case, accents, punctuation and parentheses."""
    # a parenthesis alone, such as a unit, names nothing that the whole text does not
    ours, second_names = (
        [_strip_article(name) for name in names_of(text)] for text in (first, second)
    )
    abbreviations = set(ours[:2]) & set(second_names) | set(second_names[:2]) & set(ours)
    return bool(abbreviations - {""})


def without_letter(text: str) -> str:
    """The text without an option letter before it; empty where it is nothing but one."""
    return _LETTER_PREFIX.sub("", text.strip())


def first_sentence(stem: str) -> int:
    """Where the first sentence ends; the end of the stem where it has one alone."""
    start = len(stem) - len(stem.lstrip())
    # the splitter's time grows with the square of some texts, and white space that is not ASCII
    # breaks it (1.0.32)
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
    """The prompts of MedQA-Followup, appendix A, by name."""
    texts = packaged(__package__, "prompts.toml")
    return {name: value for name, value in texts.items() if isinstance(value, str)}


def system_prompt(setting: str) -> str | None:
    """The system message of ``expert`` (appendix A.1), ``none``, or the text itself."""
    match setting:
        case "expert":
            return prompts()["expert_system"]
        case "none" | "":
            return None
        case _:
            return setting


def question_prompt(question: Question) -> str:
    """The first user message: instructions (A.2), stem, options, response format (A.3)."""
    options = option_lines(question.options)
    instructions = fit_options(prompts()["instructions"], question)
    return f"{instructions}\n\n{question.stem}\n\n{options}\n\n{prompts()['response_format']}"


def option_lines(options: Mapping[str, str]) -> str:
    """The options, one on each line: ``A. text``."""
    return "\n".join(f"{letter}. {text}" for letter, text in options.items())


def challenge_prompt(template: str, question: Question, values: Mapping[str, str]) -> str:
    """A follow-up user message: the template filled in, then the response format (A.3).

    Braces in a value, and all that name none, are left alone.
    """
    filled_text = fill(fit_options(template, question), values)
    return f"{filled_text}\n\n{prompts()['response_format']}"


def fill(template: str, values: Mapping[str, str]) -> str:
    """The template with each ``{name}`` that has a value replaced; other braces stay.

    In one pass, so that text filled in is never searched for placeholders again.
    """
    return re.sub(r"\{(\w+)\}", lambda match: values.get(match[1], match[0]), template)


def fill_marked(template: str, values: Mapping[str, str]) -> str:
    """The template with each ``[[name]]`` replaced, in one pass too, and blanks around it gone."""
    return re.sub(r"\[\[(\w+)\]\]", lambda match: values[match[1]], template).strip()


def fit_options(text: str, question: Question) -> str:
    """The source's "four options (A, B, C, D)" said of a question with another number."""
    n = len(question.options)
    if n == 4:
        return text
    numbered_text = text.replace("four options", f"{_NUMBERS.get(n, n)} options")
    return numbered_text.replace("(A, B, C, D)", f"({', '.join(question.options)})")
