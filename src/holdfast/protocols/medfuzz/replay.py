"""Replay: attacks that succeeded on one model, asked of another.

Each model answers the original first. If it is right, it is asked the attacked question and two
controls: an inert rewrite of the same length, and the original again. Each has a separate
conversation.
"""

from collections.abc import Awaitable
from typing import Any

from holdfast.challenges.texts import question_prompt
from holdfast.challenges.texts import system_prompt as system_message
from holdfast.dialogue.conversation import Run, Turn
from holdfast.dialogue.turn import Intervention
from holdfast.questions.question import digest_of

from .attack_arms import INERT, REASK, REPLAYED_ARM, UNATTACKED_ARM
from .inert import inert_rewrite
from .logged_attacks import Attack
from .settings import MedFuzzSettings


async def replay(run: Run, settings: MedFuzzSettings) -> None:
    """Ask the attacks of this replicate, if there are any."""
    question = run.question
    attacks = settings.by_replicate.get((question.id, run.replicate))
    if not attacks:
        return
    system = system_message(settings.system_prompt)
    chat = run.chat(system, seed=settings.seed)
    again = run.chat(system, seed=settings.seed, resample=1)
    first = await ask(chat, UNATTACKED_ARM)
    if not first.kept:
        return
    branches: dict[str, Awaitable[Any]] = {}
    for attack in attacks:
        step = Intervention("replay", "medfuzz", "indirect", "shallow", variant=attack.run)
        branches[step.step] = ask(chat, REPLAYED_ARM, step, attack)
        inert = Intervention(INERT, "control", variant=attack.run)
        branches[inert.step] = ask_inert(chat, settings, inert, attack)
    branches[REASK] = ask(again, REASK, Intervention(REASK, "control", variant="1"))
    await run.side_by_side(branches)


async def ask_inert(
    chat: Turn, settings: MedFuzzSettings, step: Intervention, attack: Attack
) -> Turn:
    """Ask an inert rewrite with the length of an attack."""
    # drawn by the attack alone, so that later attacks do not change it
    number = int(digest_of(attack.stem), 16)
    inert_question, words_added = inert_rewrite(
        chat.question, settings.seed, attack.replicate, number, attack.words
    )
    return await chat.ask(
        question_prompt(inert_question),
        arm=INERT,
        step=step,
        target=inert_question.gold,
        question=inert_question,
        notes={"attacked_run": attack.run, "words": words_added},
        characteristics=[],
    )


async def ask(
    chat: Turn, arm: str, step: Intervention | None = None, attack: Attack | None = None
) -> Turn:
    """Ask the question, optionally as modified by an attack."""
    question_asked = chat.question.changed(stem=attack.stem) if attack else chat.question
    return await chat.ask(
        question_prompt(question_asked),
        arm=arm,
        step=step or (),
        target=question_asked.gold,
        question=question_asked,
        notes={"attacked_run": attack.run} if attack else None,
        characteristics=list(attack.characteristics) if attack else [],
    )
