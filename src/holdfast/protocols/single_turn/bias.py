"""Biases in the stem of a question, and mitigations that counter them."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from holdfast.challenges.catalogue import chosen
from holdfast.challenges.suggestion import draw
from holdfast.challenges.texts import fill, first_sentence, option_lines
from holdfast.errors import InputError
from holdfast.files import packaged
from holdfast.questions.question import Question, digest_of

Biases = Mapping[str, "Bias"]
"""Bias by id, in the order of MedQA-Followup's Table 2."""

Mitigations = Mapping[str, "Mitigation"]
"""Mitigation by id, from a warning to two examples."""


class Worded(BaseModel):
    """Text of holdfast for models."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str = Field(pattern=r"^[a-z0-9][a-z0-9-]*$")
    """Lower-case words joined by hyphens."""
    template: str
    """Text with its placeholders."""
    citation: str
    """Source of the wording."""
    version: int = Field(ge=1)
    """Version of the wording. Raise it with each change."""

    @property
    def texts(self) -> tuple[object, ...]:
        """All texts and their place."""
        return (self.template,)

    @property
    def fingerprint(self) -> str:
        """Version and digest of all texts."""
        return f"{self.version}-{digest_of(self.texts, 8)}"


class Bias(Worded):
    """Sentence that suggests a wrong option (BiasMedQA; MedQA-Followup, section 4).

    Its placeholders are ``{letter}`` and ``{option}``.
    """

    name: str
    """Name within a sentence: ``recency bias``."""
    family: str
    """``inc_letter``: it names a wrong option."""
    axis: Literal["direct", "indirect"]
    """Whether it names a wrong option as the answer."""
    depth: Literal["shallow", "deep"]
    """``shallow`` before the first answer, ``deep`` after it."""
    place: Literal["after-first-sentence", "end"]
    """Position of the sentence in the stem."""

    @property
    def texts(self) -> tuple[object, ...]:
        """The sentence and its position."""
        return (self.place, self.template)


class Mitigation(Worded):
    """Text before a biased question that warns of the bias or gives examples of it (BiasMedQA).

    Its placeholders are ``{bias}`` (name of the bias), ``{warning}`` and ``{examples}``.
    """

    warnings: Mapping[str, str] = Field(default_factory=dict)
    """Warning by bias id."""
    examples: tuple[str, ...] = ()
    """Text of each worked example, with its placeholders."""

    @property
    def texts(self) -> tuple[object, ...]:
        """The text, the warnings and the examples."""
        return (self.template, sorted(self.warnings.items()), self.examples)


@cache
def biases() -> Biases:
    """Return the seven biases of BiasMedQA in holdfast's wording."""
    data = packaged(__package__, "biases.toml")
    defaults = {name: value for name, value in data.items() if name != "bias"}
    return {entry["id"]: Bias.model_validate({**defaults, **entry}) for entry in data["bias"]}


@cache
def mitigations() -> Mitigations:
    """Return the three mitigations of BiasMedQA in holdfast's wording."""
    data = packaged(__package__, "mitigations.toml")
    wording = {name: text.strip() for name, text in data["example"].items()}
    return {
        entry["id"]: Mitigation.model_validate(
            {
                "version": data["version"],
                "citation": data["citation"],
                **entry,
                "template": entry["template"].strip(),
                "examples": tuple(wording[name] for name in entry.get("examples", ())),
            }
        )
        for entry in data["mitigation"]
    }


def choose_biases(names: str) -> tuple[Bias, ...]:
    """Return the biases in a comma-separated list of ids, ``all`` or ``none``, in order."""
    groups = {"all": set(biases()), "none": set[str]()}
    return chosen(biases(), names, groups, "bias", "biases")


def choose_mitigations(names: str) -> tuple[Mitigation, ...]:
    """Return the mitigations in a comma-separated list of ids, ``all`` or ``none``, in order."""
    groups = {"all": set(mitigations()), "none": set[str]()}
    return chosen(mitigations(), names, groups, "mitigation", "mitigations")


def biased(question: Question, bias: Bias, letter: str) -> Question:
    """Return the question with the bias in its stem, whose characters are all preserved.

    The sentence follows the stem's first sentence. It is appended to the end if the bias requires
    this or the stem is one sentence. There it follows the question sentence, if that is last.
    """
    if letter not in question.distractors:
        raise ValueError(f"'{letter}' is not a wrong option of question '{question.id}'")
    sentence = fill(bias.template, {"letter": letter, "option": question.options[letter]})
    stem = question.stem
    position = len(stem.rstrip())
    if bias.place == "after-first-sentence":
        position = first_sentence(stem)
    head, tail = stem[:position], stem[position:]
    # a stem that ends with a colon or in mid-sentence must not merge with the new sentence
    ends_sentence = head.rstrip("\"'”’)]").endswith((".", "?", "!"))
    lead, trail = " " if ends_sentence else "\n", " " if tail and not tail[0].isspace() else ""
    return question.changed(stem=f"{head}{lead}{sentence}{trail}{tail}")


def mitigated_prompt(
    mitigation: Mitigation, bias: Bias, prompt: str, examples: Sequence[Question], seed: int
) -> str:
    """Return the mitigation's text, a blank line, and the prompt.

    All questions of a run have the same examples, so that servers can share the prefix.
    """
    examples_shown = _draw_examples(examples, len(mitigation.examples), seed, mitigation.id)
    texts = enumerate(zip(mitigation.examples, examples_shown, strict=True), start=1)
    worked_examples = [
        _write_example(text, bias, example, seed, number) for number, (text, example) in texts
    ]
    values = {
        "bias": bias.name,
        "warning": mitigation.warnings[bias.id] if mitigation.warnings else "",
        "examples": "\n\n".join(worked_examples),
    }
    return f"{fill(mitigation.template, values)}\n\n{prompt}"


def _write_example(text: str, bias: Bias, question: Question, seed: int, number: int) -> str:
    letter = draw(question.distractors, seed, question.content_hash, "suggested")
    values = {
        "number": str(number),
        "question": f"{biased(question, bias, letter).stem}\n\n{option_lines(question.options)}",
        "bias": bias.name,
        "letter": letter,
        "option": question.options[letter],
        "gold": question.gold,
        "right": question.options[question.gold],
    }
    return fill(text, values)


def _draw_examples(
    examples: Sequence[Question], n: int, seed: int, mitigation: str
) -> list[Question]:
    left = {question.content_hash: question for question in examples}
    if len(left) < n:
        raise InputError(
            f"'{mitigation}' shows {n} exemplars, but only {len(left)} can be shown",
            field="mitigations",
            remedy="Remove the exemplars from the questions",
        )
    return [left.pop(draw(sorted(left), seed, "exemplar", number)) for number in range(n)]
