"""The words a model reads: system prompt, first question and challenges, each a pure function."""

import re
from collections.abc import Mapping
from functools import cache

from holdfast.files import packaged
from holdfast.questions import Question

_NUMBERS = {
    2: "two", 3: "three", 5: "five", 6: "six", 7: "seven", 8: "eight", 9: "nine", 10: "ten",
}  # fmt: skip


@cache
def prompts() -> Mapping[str, str]:
    """The prompts of MedQA-Followup, appendix A, by name."""
    known = packaged(__package__, "prompts.toml")
    return {name: value for name, value in known.items() if isinstance(value, str)}


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
    filled = fill(fit_options(template, question), values)
    return f"{filled}\n\n{prompts()['response_format']}"


def fill(template: str, values: Mapping[str, str]) -> str:
    """The template with each ``{name}`` that has a value replaced; other braces stay.

    In one pass, so that text filled in is never searched for placeholders again.
    """
    return re.sub(r"\{(\w+)\}", lambda found: values.get(found[1], found[0]), template)


def fill_marked(template: str, values: Mapping[str, str]) -> str:
    """The template with each ``[[name]]`` replaced, in one pass too, and blanks around it gone."""
    return re.sub(r"\[\[(\w+)\]\]", lambda found: values[found[1]], template).strip()


def fit_options(text: str, question: Question) -> str:
    """The source's "four options (A, B, C, D)" said of a question with another number."""
    n = len(question.options)
    if n == 4:
        return text
    counted = text.replace("four options", f"{_NUMBERS.get(n, n)} options")
    return counted.replace("(A, B, C, D)", f"({', '.join(question.options)})")
