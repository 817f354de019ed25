"""A seeded sample of a question set, without replacement."""

import hashlib
from collections.abc import Sequence
from dataclasses import replace

from holdfast.errors import InputError, did_you_mean

from .loading import QuestionSet
from .question import LABELS, Question


def shuffled(questions: QuestionSet, seed: int, stratify: str | None = None) -> QuestionSet:
    """The questions in a random order that the seed fixes: the first n are a sample of n.

    A question's place depends on the seed and its own content alone. Stratified, every beginning
    of the order has each stratum's share to within one question.

    Args:
        questions: the whole set.
        seed: fixes the order.
        stratify: label whose shares are kept; questions without it are a stratum of their own.

    Raises:
        InputError: ``stratify`` is no label, or no question has it.
    """
    order = sorted(questions.questions, key=lambda question: _place(question, seed))
    if stratify is not None:
        if stratify not in LABELS:
            raise InputError(
                f"'{stratify}' is no label",
                field="stratify",
                remedy=did_you_mean(stratify, LABELS),
            )
        if not any(getattr(question, stratify) for question in order):
            raise InputError(
                f"no question of '{questions.name}' has a {stratify}",
                field="stratify",
                remedy="Leave it out, or give questions that have the label",
            )
        order = _interleaved(order, stratify)
    return replace(questions, questions=tuple(order))


def _place(question: Question, seed: int) -> str:
    return hashlib.sha256(
        f"{seed}\x1f{question.content_hash}\x1f{question.id}".encode()
    ).hexdigest()


def _interleaved(order: Sequence[Question], label: str) -> list[Question]:
    """Each stratum spread evenly over the whole, so that every beginning has its shares."""
    strata: dict[str | None, list[Question]] = {}
    for question in order:
        strata.setdefault(getattr(question, label), []).append(question)
    placed = [
        ((place + 0.5) / len(members), str(stratum), question)
        for stratum, members in strata.items()
        for place, question in enumerate(members)
    ]
    return [question for _, _, question in sorted(placed, key=lambda item: item[:2])]
