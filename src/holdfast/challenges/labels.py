"""Asking which of the 15 USMLE systems a question belongs to (MedQA-Followup, appendix D.2)."""

import re

from holdfast.questions import SYSTEMS, Question

from .generation import Fault
from .packaged import packaged
from .wording import fill, option_lines


def label_version() -> int:
    """Version of the prompt that asks for a label."""
    return int(packaged("labels.toml")["version"])


def system_label_prompt(question: Question) -> str:
    """Asks for the number of the question's system."""
    return fill(
        packaged("labels.toml")["system"].removeprefix("\n"),
        {
            "categories": "\n".join(f"{n}. {name}" for n, name in enumerate(SYSTEMS)),
            "question": question.stem,
            "options_text": option_lines(question.options),
        },
    )


def read_system(reply: str) -> str | Fault:
    """The system that a classifier names, by number or by name."""
    named = [system for system in SYSTEMS if system.casefold() in reply.casefold()]
    numbers = {int(n) for n in re.findall(r"(?<![\d.-])\d{1,2}(?![\d.]*\d)", reply)}
    known = {SYSTEMS[n] for n in numbers if n < len(SYSTEMS)}
    if len(numbers) == len(known) == 1 and set(named) <= known:
        return known.pop()
    # a lone number that is another category's contradicts the name
    if len(named) == 1 and not (len(numbers) == 1 and known):
        return named[0]
    return Fault("no category", "does not name one category by its number")
