"""The multiple-choice question, the input of every protocol."""

import hashlib
import json
import re
import string
import unicodedata
from collections.abc import Iterable, Mapping
from functools import cached_property
from types import MappingProxyType

from pydantic import BaseModel, ConfigDict, model_validator

from holdfast.errors import printable
from holdfast.files import is_valid_text

LABELS = ("step", "system", "specialty", "subject")
"""Fields that assign a question to strata."""

SAME_TEXT = "have the same text"
"""End of the message of ``faults`` on identical options."""

LETTERS = string.ascii_uppercase
"""Option letters. A question has 2 to 26 options, lettered from A without a gap."""


def digest_of(content: object, length: int = 16) -> str:
    """Return the SHA-256 (hex, first ``length`` characters) of a text, or of a value as JSON."""
    text = content if isinstance(content, str) else json.dumps(content)
    return hashlib.sha256(text.encode()).hexdigest()[:length]


def digest_of_each(rows: Iterable[object], length: int = 16) -> str:
    """Return the digest of a list of rows, which need not be in memory together."""
    hasher = hashlib.sha256(b"[")
    for number, row in enumerate(rows):
        hasher.update(f"{', ' if number else ''}{json.dumps(row)}".encode())
    hasher.update(b"]")
    return hasher.hexdigest()[:length]


class Question(BaseModel):
    """Multiple-choice question with one gold option.

    Texts are data. They are kept exactly as given and never interpreted.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    """Id, unique within the question set."""
    stem: str
    """Vignette and question sentence."""
    options: dict[str, str]
    """Option texts by letter, in order: A, B, C, ..."""
    gold: str
    """Letter of the right option."""
    step: str | None = None
    """USMLE step in MedQA's notation: ``step1`` or ``step2&3``."""
    system: str | None = None
    """USMLE system (MedQA-Followup, Table 5)."""
    specialty: str | None = None
    """Clinical specialty."""
    subject: str | None = None
    """Discipline, such as Pharmacology."""
    source: str | None = None
    """Data set or file of the question."""

    @model_validator(mode="after")
    def _sound(self) -> "Question":
        labels = {name: getattr(self, name) for name in LABELS}
        for field, message in faults(self.id, self.stem, self.options, self.gold, labels):
            raise ValueError(f"{field}: {message}")
        return self

    @cached_property
    def content_hash(self) -> str:
        """SHA-256 (hex) of stem, options and gold. It does not depend on the id."""
        return digest_of([self.stem, list(self.options.items()), self.gold], 64)

    def changed(self, **fields: object) -> "Question":
        """Return a copy of the question with other values in some fields.

        Raises:
            ValidationError: the values do not make a valid question.
        """
        # a plain model_copy would keep the cached content hash
        return Question.model_validate({**self.model_dump(), **fields})

    @property
    def distractors(self) -> tuple[str, ...]:
        """Letters of the wrong options, in order."""
        return tuple(letter for letter in self.options if letter != self.gold)


def faults(
    id: str,
    stem: str,
    options: dict[str, str],
    gold: str,
    labels: Mapping[str, str | None] = MappingProxyType({}),
) -> list[tuple[str, str]]:
    """Return all faults of these values as a question, as (field, message) pairs."""
    problems: list[tuple[str, str]] = []
    if not id.strip():
        problems.append(("id", "is empty"))
    if any(unicodedata.category(character) == "Cc" for character in id):
        problems.append(("id", "contains a control character, which logs cannot store"))
    if not stem.strip():
        problems.append(("stem", "is empty"))
    if not 2 <= len(options) <= len(LETTERS):
        problems.append(("options", f"has {len(options)} options, but a question needs 2 to 26"))
    if list(options) != list(LETTERS[: len(options)]):
        problems.append(("options", "letters are not A, B, C, ... without a gap"))
    for letter, text in options.items():
        if not text.strip():
            problems.append(("options", f"option {letter} is empty"))
    letters_by_text: dict[str, str] = {}
    for letter, text in options.items():
        first = letters_by_text.setdefault(text.strip(), letter)
        if first != letter and text.strip():
            problems.append(("options", f"options {first} and {letter} {SAME_TEXT}"))
    if gold not in options:
        letters = ", ".join(options)
        problems.append(("gold", f"'{printable(gold[:40])}' is not one of the options {letters}"))
    texts = [("id", id), ("stem", stem), *(("options", text) for text in options.values())]
    for field, label in (*texts, *labels.items()):
        if not is_valid_text(label or ""):
            problems.append((field, "contains a lone surrogate, which is not valid text"))
    return problems


_MARK = re.compile(
    r"(?m)(?:^[ \t]*\(?(?P<line>[A-Z])[.):]|(?<=\s)\((?P<inside>[A-Z]|[1-9]\d?)\))\s*"
)
"""Mark before an option: ``A.``, ``A)`` or ``(A)`` at the start of a line, ``(A)`` or ``(1)``
within a line."""


def options_inside(text: str) -> tuple[str, dict[str, str]]:
    """Return the text before the options of a text, and the options, lettered from A.

    The options are the longest run of marks from A or 1 without a gap. Among equally long runs it
    is the last. With fewer than two marks there are no options.
    """
    marks = [(mark["line"] or mark["inside"], mark) for mark in _MARK.finditer(text)]
    best: list[re.Match[str]] = []
    for start, (first, _) in enumerate(marks):
        if first not in ("A", "1"):
            continue
        labels = LETTERS if first == "A" else [str(n) for n in range(1, len(LETTERS) + 1)]
        run: list[re.Match[str]] = []
        for label, mark in marks[start:]:
            if len(run) < len(labels) and label == labels[len(run)]:
                run.append(mark)
        best = max(
            best,
            run,
            key=lambda candidate: (len(candidate), candidate[0].start() if candidate else 0),
        )
    if len(best) < 2:
        return text, {}
    ends = [*(mark.start() for mark in best[1:]), len(text)]
    matches = zip(LETTERS, best, ends, strict=False)
    options = {letter: text[mark.end() : end].strip() for letter, mark, end in matches}
    return text[: best[0].start()].rstrip(), options


# Maximum length of its wordings. A longer text is content, whatever its beginning.
_LONGEST = 120
_THINGS = (
    r"(?:(?:answer )?(?:options?|choices?)|answers?|alternatives?|statements?|responses?|ones?)"
)
_OPTION_REFERENCE = (
    r"(?:above|below|following|given|listed|provided|mentioned|stated|offered|shown|other)"
)
_OPTION_WORDS = (
    rf"(?:{_OPTION_REFERENCE}|aforementioned|abovementioned|preceding|previous|remaining|others|"
    r"rest)"
)
_SET = (
    rf"(?:them|these|those|this|above|all|others|(?:the|these|those|"
    rf"all)(?: of)?(?: the)?(?: {_OPTION_WORDS}){{1,3}}"
    rf"|(?:(?:the|these|those|any|my|"
    rf"your)(?: of)? )?(?:{_OPTION_WORDS} ){{0,2}}{_THINGS}(?: {_OPTION_REFERENCE}){{0,2}}"
    rf"|(?:the )?(?:two|three|four|five)(?: {_THINGS})?)"
)
_OF = r"(?:of|among|amongst)"
_TRUE = r"(?:correct|right|true|applicable|appropriate|valid|suitable)"
_HOLDS = rf"(?: (?:is|are|apply|applies)(?: {_TRUE})?)?"
_NONE_OF_THE_ABOVE = re.compile(
    rf"(?:none?|neither)(?: ?{_OF} (?:the )?{_SET})?{_HOLDS}"
    rf"|(?:no one|not (?:any|one)) of (?:the )?{_SET}{_HOLDS}"
    rf"|(?:none|neither)(?: one)?|neither {_THINGS}{_HOLDS}"
    r"|nota|n o t a"
    rf"|none (?:{_OPTION_REFERENCE}|{_TRUE})"
    rf"|(?:there is )?no(?:ne)? (?:{_TRUE} {_THINGS}|{_THINGS} (?:is|are) {_TRUE})"
    rf"(?:(?: is| are)? {_OPTION_REFERENCE})?"
    rf"|all(?: (?:of )?(?:the )?{_SET})? (?:is|are) (?:incorrect|wrong|false|not {_TRUE})"
)
# "d) None of the above": the letter or number was copied with the text.
_LABEL = re.compile(r"^\(?[a-z0-9][.)\]:]\s*(?!o\.)")


def is_none_of_the_above(text: str) -> bool:
    """Return whether the whole text of an option says that no option is right.

    Case, punctuation, hyphens and a label such as "d)" do not matter. A text that continues about
    the case is content: "None of the above findings are specific", "None but A", "No treatment".
    "Neither A nor B" is also content, because it leaves the options after B open.
    """
    if len(text) > _LONGEST:
        return False
    plain = unicodedata.normalize("NFKC", text).casefold().strip()
    plain = "".join(c for c in plain if unicodedata.category(c) != "Cf")
    words = re.sub(r"[\W_]+", " ", _LABEL.sub("", plain)).strip()
    # "None of the above (NOTA)" says it twice.
    words = words.removesuffix(" nota")
    return words != "non" and _NONE_OF_THE_ABOVE.fullmatch(words) is not None
