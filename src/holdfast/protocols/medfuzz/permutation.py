"""Permutation test of MedFuzz: whether an attack's effect exceeds that of other added text.

In Algorithm 2 (section 3.4), the attacker writes control fuzzes, which add other content of the
same kind, length and place. The change of p(correct) under the attack is compared with the changes
under the controls. The probabilities are estimated from direct answers, with options in random
order.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from inspect_ai.model import ModelOutput

from holdfast.challenges.texts import Fault
from holdfast.dialogue.conversation import Run, Turn
from holdfast.dialogue.turn import Intervention
from holdfast.protocols.few_shot import LOGPROBS, choice_prompt, displayed, displayed_beliefs
from holdfast.questions.question import Question

from .attack_arms import ATTACKED_ARM, CONTROL, CONTROL_WRITER, ORIGINAL
from .attacker import attackers_chat, control_prompt, control_retry_prompt, modify
from .modification import Fuzz, read_control
from .settings import MedFuzzSettings

_APART = 1_000
"""Distance between the seeds of samples, so that seeds of replicates do not overlap."""


@dataclass(frozen=True)
class Success:
    """Attack that flipped the answer.

    Attributes:
        step: the attempt.
        question: the modified question.
        fuzz: the modification.
    """

    step: Intervention
    question: Question
    fuzz: Fuzz


async def test(run: Run, settings: MedFuzzSettings, success: Success) -> None:
    """Probe the original, the attack and its controls concurrently."""
    chats = [
        # two samples can have the same order, but remain separate answers
        run.chat(
            config=LOGPROBS, seed=settings.seed + _APART * sample, examples=examples, tokens=10
        )
        for sample, examples in enumerate(settings.probe_examples, 1)
    ]
    attacker = attackers_chat(run, settings.assumption, settings.seed, "control")
    branches = {
        ORIGINAL: probe(run, settings, chats, ORIGINAL, _step(ORIGINAL), None),
        ATTACKED_ARM: probe(run, settings, chats, ATTACKED_ARM, _step(ATTACKED_ARM), success.fuzz),
    }
    for number in range(1, settings.tested + 1):
        step = _step(CONTROL, number)
        branches[step.step] = control(run, settings, chats, attacker, success.fuzz, step, number)
    await run.side_by_side(branches)


async def control(
    run: Run,
    settings: MedFuzzSettings,
    chats: Sequence[Turn],
    attacker: Turn,
    attack: Fuzz,
    step: Intervention,
    number: int,
) -> None:
    """Ask for a control, and probe it; if none is valid, it is missing."""
    _, fuzz = await modify(
        attacker,
        control_prompt(run.question, attack, number),
        partial(read_control, question=run.question, fuzz=attack),
        control_retry_prompt,
        arm=CONTROL_WRITER,
        path=[step],
        number=number,
        attack={
            "stem": attack.stem,
            "characteristics": list(attack.characteristics),
            "added": list(attack.additions),
        },
    )
    if not isinstance(fuzz, Fault):
        await probe(run, settings, chats, CONTROL, step, fuzz)


async def probe(
    run: Run,
    settings: MedFuzzSettings,
    chats: Sequence[Turn],
    arm: str,
    step: Intervention,
    fuzz: Fuzz | None,
) -> None:
    """Estimate p(correct) of a text from direct answers, each with another order of the options."""
    question = run.question
    question_asked = question.changed(stem=fuzz.stem) if fuzz else question

    async def answer(sample: int, chat: Turn) -> None:
        letters = settings.order(question, sample)
        turn = await chat.ask(
            choice_prompt(question_asked, letters),
            arm=arm,
            step=[step, _step("order", sample)],
            target=question.gold,
            question=question_asked,
            choice=displayed(question_asked, letters),
            notes={"shown": ",".join(letters)},
            shown=letters,
            held=None,
            right=question.gold,
            probe=True,
            characteristics=list(fuzz.characteristics) if fuzz else [],
        )

        def belief(output: ModelOutput) -> float | None:
            return displayed_beliefs(output, question_asked, letters).get(question.gold)

        turn.notes["p_gold"] = turn.observe(belief, None)

    await run.side_by_side({str(n): answer(n, chat) for n, chat in enumerate(chats, 1)})


def _step(id: str, variant: int | str = "") -> Intervention:
    return Intervention(id, "medfuzz", "indirect", "shallow", variant=str(variant))
