"""The words of Stick-or-Switch: a choice among some options, then one more at a time (A.1)."""

from collections.abc import Sequence

from holdfast.questions import LETTERS, Question

from .packaged import packaged
from .wording import fill, option_lines

ABSTAIN = "NA"
"""How ``None of the Above`` is called beside a question's own letters."""


def offering_version() -> int:
    """Version of the prompts."""
    return int(packaged("stick_or_switch.toml")["version"])


def in_play(question: Question, shown: Sequence[str]) -> dict[str, str]:
    """Displayed letter to text.

    Args:
        question: whose options are shown.
        shown: the question's own letters, or ``NA``, in the order of display.
    """
    texts = {
        **question.options,
        ABSTAIN: str(packaged("stick_or_switch.toml")["none_of_the_above"]),
    }
    return {LETTERS[place]: texts[letter] for place, letter in enumerate(shown)}


def choice_prompt(question: Question, shown: Sequence[str]) -> str:
    """Turn 1: the question and some options."""
    return fill(
        packaged("stick_or_switch.toml")["choice"],
        {"question": question.stem, "options": option_lines(in_play(question, shown))},
    )


def alternative_prompt(question: Question, shown: Sequence[str]) -> str:
    """A later turn: the option shown last is offered."""
    label, text = list(in_play(question, shown).items())[-1]
    return fill(packaged("stick_or_switch.toml")["alternative"], {"option": f"{label}. {text}"})


def exemplar_answer(label: str) -> str:
    """What the assistant of an exemplar says."""
    return fill(packaged("stick_or_switch.toml")["answer"], {"letter": label})
