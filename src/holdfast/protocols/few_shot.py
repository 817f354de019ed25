"""Options shown in an order of their own: the words, exemplars, what is chosen among, beliefs."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from inspect_ai.model import GenerateConfig, ModelOutput

from holdfast.challenges.suggestion import draw
from holdfast.challenges.texts import fill, option_lines
from holdfast.dialogue.beliefs import beliefs_in
from holdfast.dialogue.turn import Choice
from holdfast.errors import InputError, counted
from holdfast.files import packaged
from holdfast.questions.bank import exemplars
from holdfast.questions.loading import QuestionSet
from holdfast.questions.question import LETTERS, Question, is_none_of_the_above

from .settings import question_set

BANK = "bank"
"""The bundled bank's own exemplars."""

SHOTS = "a number of exemplars"

LOGPROBS = GenerateConfig(logprobs=True, top_logprobs=20)
"""Log-probabilities, with the most alternatives at each token that hosted APIs give."""

Decision = tuple[str, str] | None
"""Displayed letters of the option held and of the one offered; None for a choice among all."""


def shuffled(letters: Sequence[str], *key: object) -> tuple[str, ...]:
    """The letters in an order that the key fixes."""
    return _shuffled(tuple(letters), tuple(map(str, key)))


@lru_cache(4096)  # a plan asks for the same order hundreds of times
def _shuffled(letters: tuple[str, ...], key: tuple[str, ...]) -> tuple[str, ...]:
    left, order = list(letters), list[str]()
    while left:
        order.append(left.pop(left.index(draw(left, *key, len(left)))))
    return tuple(order)


def choose_exemplars(
    source: str, shots: int, seed: int, questions: QuestionSet
) -> tuple[tuple[Question, ...], int]:
    """Few-shot exemplars, drawn once for a run so that servers share the prefix."""
    candidates = exemplars() if source == BANK else question_set(source).questions
    # of one set with the questions a file may differ in ids, so content decides
    stems = {" ".join(question.stem.split()) for question in questions.questions}
    free = [q for q in candidates if " ".join(q.stem.split()) not in stems]
    left = {q.content_hash: q for q in free if not says_none(q)}
    if shots > len(left):
        problem = f"has {counted(len(left), 'exemplar')} that can be shown, but needs {shots}"
        remedy = "Give a file of other questions without a none of the above, or -T shots=0"
        raise InputError(problem, source, field="exemplars", remedy=remedy)
    exemplars_chosen = tuple(
        left.pop(draw(sorted(left), seed, "exemplar", n)) for n in range(shots)
    )
    return exemplars_chosen, len(candidates) - len(free)


def says_none(question: Question) -> bool:
    """Whether an option of the question already says none of the above."""
    return any(is_none_of_the_above(text) for text in question.options.values())


def as_example(question: Question, letters: Sequence[str], right: str) -> tuple[str, str]:
    """An exemplar as a user and an assistant turn."""
    answer = fill(_wording()["answer"], {"letter": LETTERS[letters.index(right)]})
    return choice_prompt(question, letters), answer


def displayed(question: Question, letters: Sequence[str], decision: Decision = None) -> Choice:
    """The choice among displayed options, the question's own letters or ``NA``."""
    options = in_play(question, letters)
    return Choice(options, dict(zip(options, letters, strict=True)), decision)


def displayed_beliefs(
    output: ModelOutput, question: Question, letters: Sequence[str], decision: Decision = None
) -> dict[str, float]:
    """Probability of each displayed option, by the question's own letters; empty where unknown."""
    choice = displayed(question, letters, decision)
    beliefs = beliefs_in(output, choice.options, decision)
    return {choice.letters[label]: p for label, p in beliefs.items()}


ABSTAIN = "NA"
"""How ``None of the Above`` is called beside a question's own letters."""


def in_play(question: Question, letters: Sequence[str]) -> dict[str, str]:
    """Displayed letter to text, of the question's own letters, or ``NA``."""
    texts = {**question.options, ABSTAIN: str(_wording()["none_of_the_above"])}
    return {LETTERS[place]: texts[letter] for place, letter in enumerate(letters)}


def choice_prompt(question: Question, letters: Sequence[str]) -> str:
    """Turn 1: the question and some options."""
    options = option_lines(in_play(question, letters))
    return fill(_wording()["choice"], {"question": question.stem, "options": options})


def _wording() -> Mapping[str, Any]:
    return packaged(__package__, "few_shot.toml")
