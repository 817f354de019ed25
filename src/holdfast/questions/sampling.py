"""A seeded sample of a question set, without replacement."""

import heapq
from collections.abc import Sequence
from dataclasses import replace

from holdfast.errors import InputError, did_you_mean

from .loading import QuestionSet
from .question import LABELS, Question, digest_of


def shuffled(questions: QuestionSet, seed: int, stratify: str | None = None) -> QuestionSet:
    """The questions in a random order that the seed fixes: the first n are a sample of n.

    Unstratified, whether one question goes before another depends on the seed and these two
    alone: on their contents and ids. Stratified, every beginning of the order has less than one
    question more or fewer of each stratum than its share.

    Raises:
        InputError: ``stratify`` is no label, or no question has it.
    """
    order = sorted(questions.questions, key=lambda question: _place(question, seed))
    if stratify is not None:
        if stratify not in LABELS:
            remedy = did_you_mean(stratify, LABELS)
            raise InputError(f"'{stratify}' is not a label", field="stratify", remedy=remedy)
        if not any(getattr(question, stratify) for question in order):
            raise InputError(
                f"no question of '{questions.name}' has a {stratify}",
                field="stratify",
                remedy="Remove it, or give questions with this label",
            )
        order = _interleave(order, stratify)
    return replace(questions, questions=tuple(order))


def _place(question: Question, seed: int) -> str:
    return digest_of(f"{seed}\x1f{question.content_hash}\x1f{question.id}", 64)


def _interleave(order: Sequence[Question], label: str) -> list[Question]:
    """The questions with every beginning holding each stratum's share, rounded down or up.

    The j-th of a stratum's m questions among n (from 0) may not come before the share calls for
    more than j, which is at place floor(j n / m), and must have come once it calls for j + 1, by
    place ceil((j + 1) n / m). Taking the one with the nearest such deadline meets them all:
    questions take one place each, so this is the scheduling of unit jobs on one machine.
    """
    strata: dict[str | None, list[int]] = {}
    for place, question in enumerate(order):
        strata.setdefault(getattr(question, label), []).append(place)
    n = len(order)
    windows = [
        (j * n // len(places), -(-(j + 1) * n // len(places)), place)
        for places in strata.values()
        for j, place in enumerate(places)
    ]
    windows.sort(reverse=True)
    questions_placed: list[Question] = []
    waiting: list[tuple[int, int]] = []
    for now in range(n):
        while windows and windows[-1][0] <= now:
            _, deadline, place = windows.pop()
            # of two with one deadline the seed decides, not the stratum's name
            heapq.heappush(waiting, (deadline, place))
        questions_placed.append(order[heapq.heappop(waiting)[1]])
    return questions_placed
