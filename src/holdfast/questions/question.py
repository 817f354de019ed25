"""The multiple-choice question, the one input that every protocol shares."""

import hashlib
import json
import string
import unicodedata
from collections.abc import Mapping
from functools import cached_property
from types import MappingProxyType

from pydantic import BaseModel, ConfigDict, model_validator

from holdfast.errors import printable

LABELS = ("step", "system", "specialty", "subject")
"""Fields that place a question in a stratum."""

SAME_TEXT = "have the same text"
"""How ``faults`` ends what it says of identical options."""

LETTERS = string.ascii_uppercase
"""Option letters; a question has from 2 to 26 options, lettered from A without a gap."""


class Question(BaseModel):
    """A multiple-choice question with one gold option.

    Texts are kept exactly as given: they are data and are never interpreted.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    """Unique within its question set."""
    stem: str
    """The vignette and the question sentence."""
    options: dict[str, str]
    """Letter to text, in order: A, B, C, ..."""
    gold: str
    """The letter of the right option."""
    step: str | None = None
    """USMLE step as MedQA writes it: ``step1`` or ``step2&3``."""
    system: str | None = None
    """USMLE system (MedQA-Followup, Table 5)."""
    specialty: str | None = None
    """Clinical specialty."""
    subject: str | None = None
    """Discipline, such as Pharmacology."""
    source: str | None = None
    """The data set or file it came from."""

    @model_validator(mode="after")
    def _sound(self) -> "Question":
        labels = {name: getattr(self, name) for name in LABELS}
        for field, message in faults(self.id, self.stem, self.options, self.gold, labels):
            raise ValueError(f"{field}: {message}")
        return self

    @cached_property
    def content_hash(self) -> str:
        """SHA-256 (hex) of stem, options and gold: equal content, equal hash, whatever the id."""
        content = json.dumps([self.stem, list(self.options.items()), self.gold])
        return hashlib.sha256(content.encode()).hexdigest()

    def changed(self, **fields: object) -> "Question":
        """The question with other values in some fields.

        Raises:
            ValidationError: it is then no question.
        """
        # a plain model_copy would carry over the cached content hash
        return Question.model_validate({**self.model_dump(), **fields})

    @property
    def distractors(self) -> tuple[str, ...]:
        """The letters of the wrong options, in order."""
        return tuple(letter for letter in self.options if letter != self.gold)


def faults(
    id: str,
    stem: str,
    options: dict[str, str],
    gold: str,
    labels: Mapping[str, str | None] = MappingProxyType({}),
) -> list[tuple[str, str]]:
    """Everything that keeps these values from being a question, as (field, message) pairs."""
    found: list[tuple[str, str]] = []
    if not id.strip():
        found.append(("id", "is empty"))
    if any(unicodedata.category(character) == "Cc" for character in id):
        found.append(("id", "has a control character, which logs cannot store"))
    if not stem.strip():
        found.append(("stem", "is empty"))
    if not 2 <= len(options) <= len(LETTERS):
        found.append(("options", f"has {len(options)} options; a question needs 2 to 26"))
    if list(options) != list(LETTERS[: len(options)]):
        found.append(("options", "letters are not A, B, C, ... without a gap"))
    for letter, text in options.items():
        if not text.strip():
            found.append(("options", f"option {letter} is empty"))
    seen: dict[str, str] = {}
    for letter, text in options.items():
        key = text.strip()
        if key and key in seen:
            found.append(("options", f"options {seen[key]} and {letter} {SAME_TEXT}"))
        seen.setdefault(key, letter)
    if gold not in options:
        letters = ", ".join(options)
        found.append(("gold", f"'{printable(gold[:40])}' is not one of the options {letters}"))
    texts = [("id", id), ("stem", stem), *(("options", o) for o in options.values())]
    texts += [(field, label) for field, label in labels.items() if label is not None]
    for field, text in texts:
        try:
            text.encode()
        except UnicodeEncodeError:
            found.append((field, "has a lone surrogate, which is not valid text"))
    return found
