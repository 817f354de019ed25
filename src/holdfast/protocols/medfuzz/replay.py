"""Replay: the attacks found on one model put to another.

Each model answers the original first; where it is right, it is asked the attacked question and,
as a control, the original again, each in a conversation of its own.
"""

from collections.abc import Awaitable
from typing import Any

from holdfast.challenges import question_prompt
from holdfast.challenges import system_prompt as system_message
from holdfast.dialogue import Intervention, Run, Turn

from .arms import REASK, REPLAYED, UNATTACKED
from .logged_attacks import Attack
from .settings import MedFuzzSettings


async def replay(run: Run, settings: MedFuzzSettings) -> None:
    """Put the attacks of this replicate, where there are any."""
    question = run.question
    attacks = settings.by_replicate.get((question.id, run.replicate))
    if not attacks:
        return
    system = system_message(settings.system_prompt)
    chat = run.chat(system, seed=settings.seed)
    again = run.chat(system, seed=settings.seed, resample=1)
    first = await ask(chat, UNATTACKED)
    if not first.kept:
        return
    branches: dict[str, Awaitable[Any]] = {}
    for attack in attacks:
        step = Intervention("replay", "medfuzz", "indirect", "shallow", variant=attack.run)
        branches[step.step] = ask(chat, REPLAYED, step, attack)
    branches[REASK] = ask(again, REASK, Intervention(REASK, "control", variant="1"))
    await run.side_by_side(branches)


async def ask(
    chat: Turn, arm: str, step: Intervention | None = None, attack: Attack | None = None
) -> Turn:
    """Ask the question, as an attack has modified it."""
    put = chat.question.changed(stem=attack.modified) if attack else chat.question
    return await chat.ask(
        question_prompt(put),
        arm=arm,
        step=step or (),
        target=put.gold,
        question=put,
        notes={"attacked_run": attack.run} if attack else None,
        characteristics=list(attack.characteristics) if attack else [],
    )
