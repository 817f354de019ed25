"""The single-turn baseline: biases put into the stem, and what is said to counter them."""

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
"""Mitigation by id, from a word of warning to two examples."""


class Worded(BaseModel):
    """A text of ours that is put to a model."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str = Field(pattern=r"^[a-z0-9][a-z0-9-]*$")
    """Lower-case words joined by hyphens."""
    template: str
    """The text with its placeholders."""
    citation: str
    """Where the wording comes from."""
    version: int = Field(ge=1)
    """Raised when the wording changes."""

    @property
    def texts(self) -> tuple[object, ...]:
        """Everything that it says, and where."""
        return (self.template,)

    @property
    def fingerprint(self) -> str:
        """Version and a digest of every text of it."""
        return f"{self.version}-{digest_of(self.texts, 8)}"


class Bias(Worded):
    """One sentence that pushes a wrong option (BiasMedQA; MedQA-Followup, section 4).

    Its placeholders are ``{letter}`` and ``{option}``.
    """

    name: str
    """As it stands in a sentence: ``recency bias``."""
    family: str
    """``inc_letter``: a wrong option is named."""
    axis: Literal["direct", "indirect"]
    """Whether it names a wrong option as the answer."""
    depth: Literal["shallow", "deep"]
    """Before the first answer, or after it."""
    place: Literal["after-first-sentence", "end"]
    """Where in the stem the sentence goes."""

    @property
    def texts(self) -> tuple[object, ...]:
        """The sentence and its place."""
        return (self.place, self.template)


class Mitigation(Worded):
    """Text before a biased question that warns of the bias or shows it at work (BiasMedQA).

    Its placeholders are ``{bias}`` (the bias's name), ``{warning}`` and ``{examples}``.
    """

    warnings: Mapping[str, str] = Field(default_factory=dict)
    """The warning by bias id."""
    examples: tuple[str, ...] = ()
    """One text for each worked example, with its placeholders."""

    @property
    def texts(self) -> tuple[object, ...]:
        """The text, the warnings and the examples."""
        return (self.template, sorted(self.warnings.items()), self.examples)


@cache
def biases() -> Biases:
    """The seven biases of BiasMedQA in our own wording."""
    data = packaged(__package__, "biases.toml")
    defaults = {name: value for name, value in data.items() if name != "bias"}
    return {entry["id"]: Bias.model_validate({**defaults, **entry}) for entry in data["bias"]}


@cache
def mitigations() -> Mitigations:
    """The three mitigations of BiasMedQA in our own wording."""
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
    """The biases of a comma-separated list of ids, in their own order; ``all``, ``none``."""
    groups = {"all": set(biases()), "none": set[str]()}
    return chosen(biases(), names, groups, "bias", "biases")


def choose_mitigations(names: str) -> tuple[Mitigation, ...]:
    """The mitigations of a comma-separated list of ids, in their own order; ``all``, ``none``."""
    groups = {"all": set(mitigations()), "none": set[str]()}
    return chosen(mitigations(), names, groups, "mitigation", "mitigations")


def biased(question: Question, bias: Bias, letter: str) -> Question:
    """The question with the bias in its stem, every character of which is kept.

    The sentence goes after the stem's first sentence or, where the bias says so or the stem is
    one sentence, to its end; there it comes after the question sentence, if that stands last.
    """
    if letter not in question.distractors:
        raise ValueError(f"'{letter}' is not a wrong option of question '{question.id}'")
    sentence = fill(bias.template, {"letter": letter, "option": question.options[letter]})
    stem = question.stem
    position = len(stem.rstrip())
    if bias.place == "after-first-sentence":
        position = first_sentence(stem)
    head, tail = stem[:position], stem[position:]
    # a stem that stops at a colon or in mid-sentence must not run on into the new sentence
    ends_sentence = head.rstrip("\"'”’)]").endswith((".", "?", "!"))
    lead, trail = " " if ends_sentence else "\n", " " if tail and not tail[0].isspace() else ""
    return question.changed(stem=f"{head}{lead}{sentence}{trail}{tail}")


def mitigated_prompt(
    mitigation: Mitigation, bias: Bias, prompt: str, examples: Sequence[Question], seed: int
) -> str:
    """The mitigation's text, a blank line, then the prompt.

    All questions of a run see the same examples, so that servers can share the prefix.
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
