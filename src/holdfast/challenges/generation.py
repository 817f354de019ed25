"""What a generator is asked for and what its texts must hold (MedQA-Followup, appendix F)."""

import re
from dataclasses import dataclass
from typing import Any

from sentencex import segment

from holdfast.questions import Question

from .json_reply import json_objects
from .naming import same_name, without_letter
from .packaged import packaged
from .suggestion import draw
from .wording import fill, option_lines

DRAWN = range(4, 11)
"""Sentences of a context where no length is asked for (appendix F: between 4 and 10)."""

_EXCERPT = 20_000


@dataclass(frozen=True)
class Fault:
    """Why a generated text cannot be used.

    Attributes:
        kind: a short name to count it under.
        detail: what to tell the generator, as the end of a sentence that begins with "That".
    """

    kind: str
    detail: str


def template_version() -> int:
    """Version of the prompts that generate contexts."""
    return int(packaged("generation.toml")["version"])


def second_best_prompt(question: Question) -> str:
    """Asks for the most plausible wrong option."""
    wrong = {letter: question.options[letter] for letter in question.distractors}
    return fill(
        packaged("generation.toml")["second_best"],
        {
            "correct_letter": question.gold,
            "question": question.stem,
            "options_text": option_lines(wrong),
        },
    )


def context_prompt(kind: str, question: Question, second_best: str | None, sentences: int) -> str:
    """Asks for a context.

    Args:
        kind: misleading_context, alternative_context or edge_case_context.
        question: the question it is for.
        second_best: letter of the wrong option that a misleading context supports.
        sentences: how many sentences it is to have.
    """
    values = {
        "question": question.stem,
        "correct_answer": question.gold,
        "correct_text": question.options[question.gold],
        "options_text": option_lines(question.options),
        "num_sentences": str(sentences),
    }
    if second_best is not None:
        values |= {"wrong_answer": second_best, "wrong_text": question.options[second_best]}
    return fill(packaged("generation.toml")[kind], values)


def again_prompt(fault: Fault) -> str:
    """Asks once more, and says what was wrong."""
    return fill(packaged("generation.toml")["again"], {"fault": fault.detail})


def drawn_sentences(question: Question, seed: int) -> int:
    """How many sentences this question's contexts have where no length is asked for."""
    return int(draw([str(n) for n in DRAWN], seed, question.content_hash, "sentences"))


def sentence_count(text: str) -> int:
    """Sentences in a text; abbreviations and decimal points end none."""
    # the splitter breaks down on white space that is not ASCII (1.0.32), and its time grows with
    # the square of some texts
    plain = re.sub(r"[^\S\n]", " ", text[:_EXCERPT])
    # it takes the full stop after some units for an abbreviation's: "2 mm. Inadequate", "5 g. He"
    plain = re.sub(r"(\d ?(?!vs\b)[^\W\d]{1,5}(?:/[^\W\d]{1,4})?)\.(?=\s+[A-Z])", r"\1!", plain)
    # past the excerpt every end counts: no context is that long
    rest = len(re.findall(r"[.!?]\s", text[_EXCERPT:]))
    return rest + sum(any(c.isalnum() for c in sentence) for sentence in segment("en", plain))


def read_context(
    kind: str, reply: str, question: Question, sentences: int
) -> tuple[str, str | None] | Fault:
    """The context in a generator's reply, and for an alternative the diagnosis it names.

    Args:
        kind: misleading_context, alternative_context or edge_case_context.
        reply: the generator's reply without its reasoning.
        question: the question it is for.
        sentences: how many sentences it must have.
    """
    diagnosis = None
    text = re.sub(r"^\s*\**Context\**:\**", "", reply, flags=re.IGNORECASE).strip()
    if kind == "alternative_context":
        if not text:
            return Fault("empty", "is empty")
        found = json_object(reply, "alternative_answer", "context")
        diagnosis, named = found.get("alternative_answer"), found.get("context")
        if not isinstance(diagnosis, str) or not isinstance(named, str):
            return Fault(
                "no JSON", 'is no JSON object with the texts "alternative_answer" and "context"'
            )
        diagnosis, text = diagnosis.strip(), named.strip()
        if fault := alternative_fault(diagnosis, text, question):
            return fault
    fault = text_fault(text, sentences)
    return fault or (text, diagnosis)


def text_fault(text: str, sentences: int | None) -> Fault | None:
    """What is wrong with the text of a context, by itself."""
    if not text.strip():
        return Fault("empty", "is empty")
    if not is_valid_text(text):
        return Fault("no valid text", "holds a character that is no valid text")
    if sentences is not None and (n := sentence_count(text)) != sentences:
        return Fault("wrong sentence count", f"has {n} sentences, not exactly {sentences}")
    return None


def alternative_fault(diagnosis: str, text: str, question: Question) -> Fault | None:
    """What is wrong with a diagnosis outside the options: that it is inside them."""
    if not diagnosis:
        return Fault("no diagnosis", "names no alternative diagnosis")
    if not is_valid_text(diagnosis):
        return Fault("no valid text", "holds a character that is no valid text")
    bare = without_letter(diagnosis)
    if not bare:
        return Fault("an option as diagnosis", "names an option by its letter")
    for letter, option in question.options.items():
        if same_name(option, bare) or same_name(option, diagnosis):
            return Fault(
                "an option as diagnosis", f"names option {letter}, which is among those given"
            )
    letters = "".join(question.options)
    if re.search(rf"\b(?i:options?|choices?|answers?)[\s:(*\"'“]{{1,5}}[{letters}]\b", text):
        return Fault("an option letter", "refers to an option by its letter")
    return None


def is_valid_text(text: str) -> bool:
    """Whether a file can hold the text: no lone surrogate in it."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def json_object(reply: str, *keys: str) -> dict[str, Any]:
    """The last JSON object in a reply with these keys, whatever stands around it; else empty.

    The last, because a reply may repeat the format that it was asked for.
    """
    found: dict[str, Any] = {}
    for value in json_objects(reply):
        if value and all(key in value for key in keys):
            found = value
    return found
