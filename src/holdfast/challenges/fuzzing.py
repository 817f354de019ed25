"""What the attacker of MedFuzz is asked for, and the form of its replies (sections 3 and 4)."""

from collections.abc import Mapping
from typing import Any

from holdfast.questions import Question

from .fencing import excerpt, fence
from .fuzz_checks import MOST_WORDS, Fuzz
from .generation import Fault
from .insertion import word_count
from .packaged import packaged
from .wording import fill, option_lines

FUZZ_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "analysis": {"type": "string", "description": "of the model's last reply"},
        "plan": {"type": "string", "description": "what to add, where, and why"},
        "modified_question": {
            "type": "string",
            "description": "the whole question with what is added, without the options",
        },
        "characteristics": {
            "type": "array",
            "items": {"type": "string"},
            "description": "what was added, item by item",
        },
    },
    "required": ["analysis", "plan", "modified_question", "characteristics"],
    "additionalProperties": False,
}
"""JSON schema of an attack."""

CONTROL_SCHEMA: dict[str, Any] = {
    **FUZZ_SCHEMA,
    "properties": {
        name: FUZZ_SCHEMA["properties"][name] for name in ("modified_question", "characteristics")
    },
    "required": ["modified_question", "characteristics"],
}
"""JSON schema of a control."""


def fuzz_version() -> int:
    """Version of the prompts."""
    return int(packaged("medfuzz.toml")["version"])


def assumptions() -> tuple[str, ...]:
    """Names of the assumptions that come with a text."""
    return tuple(packaged("medfuzz.toml")["assumptions"])


def attacker_system(assumption: str) -> str:
    """The attacker's system message.

    Args:
        assumption: what is to be violated: ``patient-characteristics``, or a text.
    """
    values = {"assumption": _assumption(assumption), "limit": str(MOST_WORDS)}
    return fill(str(packaged("medfuzz.toml")["attacker_system"]).strip(), values)


def attack_prompt(
    question: Question, reasoning: str, answer: str, confidence: float | None, assumption: str
) -> str:
    """Asks for the first attack on an answer.

    Args:
        question: the original, which the model answered right.
        reasoning: the model's reply; of a very long one the ends.
        answer: the letter it chose.
        confidence: the probability that it gave the letter, from 0 to 1; None where unknown.
        assumption: what is to be violated: ``patient-characteristics``, or a text.
    """
    return fuzz_prompt(
        "attack",
        {
            "assumption": _assumption(assumption),
            "question": question.stem,
            "options": option_lines(question.options),
            "gold_text": question.options[question.gold],
            "reasoning": excerpt(reasoning),
        },
        gold=question.gold,
        answer=answer,
        confidence=_confidence(confidence),
    )


def next_attack_prompt(reasoning: str, answer: str, confidence: float | None) -> str:
    """Asks for another attack, with the model's reply to the last one.

    Args:
        reasoning: the model's reply; of a very long one the ends.
        answer: the letter it chose.
        confidence: the probability that it gave the letter, from 0 to 1; None where unknown.
    """
    return fuzz_prompt(
        "next",
        {"reasoning": excerpt(reasoning)},
        answer=answer,
        confidence=_confidence(confidence),
    )


def again_fuzz_prompt(fault: Fault) -> str:
    """Asks for the same attack once more, and says what was wrong."""
    return fuzz_prompt("again", {}, fault=fault.detail, limit=str(MOST_WORDS))


def control_prompt(question: Question, fuzz: Fuzz, number: int) -> str:
    """Asks for a control of an attack (MedFuzz, section 3.4).

    Args:
        question: the original.
        fuzz: the attack.
        number: which of the controls this is, from 1; it makes each request another.
    """
    runs = [
        f"{place}. ({word_count(run)} words) {run}" for place, run in enumerate(fuzz.added, start=1)
    ]
    return fuzz_prompt(
        "control",
        {"question": question.stem, "modified": fuzz.stem, "runs": "\n".join(runs)},
        words=str(fuzz.words),
        number=str(number),
    )


def again_control_prompt(fault: Fault) -> str:
    """Asks for the same control once more, and says what was wrong."""
    return fuzz_prompt("again_control", {}, fault=fault.detail)


def fuzz_prompt(name: str, texts: Mapping[str, str], **values: str) -> str:
    """A prompt of MedFuzz by its name.

    Args:
        name: as in ``medfuzz.toml``.
        texts: what others wrote, by placeholder; it stands between lines that occur in none.
        values: what else is filled in.
    """
    template = str(packaged("medfuzz.toml")["prompts"][name]).strip()
    return fill(template, {**values, **texts, "fence": fence(*texts.values())})


def _assumption(setting: str) -> str:
    return str(packaged("medfuzz.toml")["assumptions"].get(setting, setting)).strip()


def _confidence(probability: float | None) -> str:
    if probability is None:
        return ""
    return fill(
        packaged("medfuzz.toml")["prompts"]["confidence"], {"percent": f"{100 * probability:.0f}"}
    )
