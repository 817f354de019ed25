"""Beside the attacks: what turns without one, and whether a successful attack does so again.

A reply that varies turns sooner or later, whatever is added. For every attempt that was put there
are two controls, each until its own first turn: an inert rewrite, which adds a sentence without
bearing, and a re-ask of the question as it is. A successful attack and its original are each asked
several times more; the reply that turned does not count among these.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from holdfast.challenges import first_sentence, question_prompt
from holdfast.dialogue import Conversation, Intervention, gather
from holdfast.files import packaged
from holdfast.protocols.few_shot import shuffled
from holdfast.questions import Question

from .arms import AGAIN, AGAIN_PLAIN, INERT, REASK
from .modification import naming_fault

Begin = Callable[..., Conversation]
"""Begins a conversation with the model under test."""


@dataclass(frozen=True)
class Won:
    """An attack that turned the answer: its step, the question as it put it, what was added."""

    step: Intervention
    put: Question
    characteristics: tuple[str, ...]


def inert_rewrite(question: Question, seed: int, replicate: int, attempt: int) -> Question:
    """The question with a sentence without bearing behind its first one; no two in a replicate.

    A sentence that names an option is passed over.
    """
    every = [str(one) for one in packaged(__package__, "inert.toml")["sentences"]]
    usable = [one for one in every if naming_fault([one], question) is None] or every
    order = shuffled(usable, seed, question.content_hash, replicate, INERT)
    end = first_sentence(question.stem)
    added = order[(attempt - 1) % len(order)]
    return question.changed(stem=f"{question.stem[:end]} {added}{question.stem[end:]}")


async def put_beside(
    begin: Begin,
    question: Question,
    *,
    attempts: Sequence[int],
    seed: int,
    replicate: int,
    won: Won | None,
    confirm: int,
) -> None:
    """Put the controls of the attacks, and a successful attack again.

    Args:
        begin: begins a conversation with the model under test.
        question: what was attacked.
        attempts: the numbers of the attempts that have a control.
        seed: of the study.
        replicate: which of the question's.
        won: the attack that succeeded, None without one.
        confirm: how often it and its original are asked again.
    """
    plain = begin()
    rewritten = [
        plain.branch(_control(INERT, k), question=inert_rewrite(question, seed, replicate, k))
        for k in attempts
    ]
    # even numbers here and odd ones below: no two of them share a generation
    again = [begin(resample=2 * k).branch(_control(REASK, k)) for k in attempts]
    async with gather() as branches:
        branches.start(INERT, _until_it_turns, rewritten, INERT)
        branches.start(REASK, _until_it_turns, again, REASK)
        for number in range(1, confirm + 1):
            if won is None:
                break
            chat, step = begin(resample=2 * number + 1), _control("again", number)
            attacked = chat.branch(won.step, question=won.put).branch(step)
            told = {AGAIN: (attacked, won.characteristics), AGAIN_PLAIN: (chat.branch(step), ())}
            for arm, (branch, added) in told.items():
                branches.start(f"{arm} {number}", partial(_ask, branch, arm, added))


async def _until_it_turns(chats: Sequence[Conversation], arm: str) -> None:
    """One after another, up to the first answer that is not right."""
    for chat in chats:
        if await _ask(chat, arm) != chat.question.gold:
            return


async def _ask(chat: Conversation, arm: str, characteristics: Sequence[str] = ()) -> str | None:
    turn = await chat.ask(
        question_prompt(chat.question),
        arm=arm,
        target=chat.question.gold,
        characteristics=list(characteristics),
    )
    return turn.answer


def _control(id: str, number: int) -> Intervention:
    return Intervention(id, "control", variant=str(number))
