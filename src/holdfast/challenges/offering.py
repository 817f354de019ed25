"""The words of Stick-or-Switch: a choice among some options, then one more at a time (A.1)."""

import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from holdfast.questions import LETTERS, Question

from .wording import fill, option_lines

ABSTAIN = "NA"
"""How ``None of the Above`` is called beside a question's own letters."""


@cache
def _words() -> Mapping[str, Any]:
    text = files(__package__).joinpath("stick_or_switch.toml").read_text("utf-8")
    return {
        name: value.removeprefix("\n") if isinstance(value, str) else value
        for name, value in tomllib.loads(text).items()
    }


def offering_version() -> int:
    """Version of the prompts."""
    return int(_words()["version"])


def in_play(question: Question, shown: Sequence[str]) -> dict[str, str]:
    """Displayed letter to text.

    Args:
        question: whose options are shown.
        shown: the question's own letters, or ``NA``, in the order of display.
    """
    texts = {**question.options, ABSTAIN: str(_words()["none_of_the_above"])}
    return {LETTERS[place]: texts[letter] for place, letter in enumerate(shown)}


def choice_prompt(question: Question, shown: Sequence[str]) -> str:
    """Turn 1: the question and some options."""
    return fill(
        _words()["choice"],
        {"question": question.stem, "options": option_lines(in_play(question, shown))},
    )


def alternative_prompt(question: Question, shown: Sequence[str]) -> str:
    """A later turn: the option shown last is offered."""
    label, text = list(in_play(question, shown).items())[-1]
    return fill(_words()["alternative"], {"option": f"{label}. {text}"})


def exemplar_answer(label: str) -> str:
    """What the assistant of an exemplar says."""
    return fill(_words()["answer"], {"letter": label})
