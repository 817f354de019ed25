"""Seeded sample of a question set, without replacement."""

import heapq
from collections.abc import Sequence
from dataclasses import replace

from holdfast.errors import InputError, did_you_mean

from .loading import QuestionSet
from .question import LABELS, Question, digest_of


def shuffled(questions: QuestionSet, seed: int, stratify: str | None = None) -> QuestionSet:
    """Return the questions in a random order fixed by the seed.

    The first n questions are a sample of n. Without ``stratify``, the order of two questions
    depends only on the seed and on their contents and ids. With it, the first n questions contain
    each stratum's share of n, to within less than one question.

    Raises:
        InputError: ``stratify`` is not a label, or no question has the label.
    """
    order = sorted(questions.questions, key=lambda question: _place(question, seed))
    if stratify is not None:
        if stratify not in LABELS:
            remedy = did_you_mean(stratify, LABELS)
            raise InputError(f"'{stratify}' is not a label", field="stratify", remedy=remedy)
        if not any(getattr(question, stratify) for question in order):
            raise InputError(
                f"no question of '{questions.name}' has the label {stratify}",
                field="stratify",
                remedy="Remove it, or give questions with this label",
            )
        order = _interleave(order, stratify)
    return replace(questions, questions=tuple(order))


def _place(question: Question, seed: int) -> str:
    return digest_of(f"{seed}\x1f{question.content_hash}\x1f{question.id}", 64)


def _interleave(order: Sequence[Question], label: str) -> list[Question]:
    """Return the questions in an order whose every beginning has each stratum's share.

    Shares are rounded down or up. Let a stratum have m of the n questions, and number its questions
    from j = 0. Question j has a window of positions: from floor(j n / m), where the share first
    exceeds j, to ceil((j + 1) n / m), where it reaches j + 1. Taking the available question with
    the nearest deadline meets all deadlines. This is the scheduling of unit jobs on one machine.
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
            # the seed breaks ties, not the name of the stratum
            heapq.heappush(waiting, (deadline, place))
        questions_placed.append(order[heapq.heappop(waiting)[1]])
    return questions_placed
