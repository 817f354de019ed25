"""Controls that protocols share: what is asked without any challenge."""

from holdfast.challenges.texts import question_prompt
from holdfast.dialogue.conversation import Run, Turn
from holdfast.dialogue.turn import Intervention

CONTROL = "control"
"""Arm and family of what is asked without any challenge."""

RESAMPLE = Intervention("resample", CONTROL)
"""The first question afresh, in a conversation of its own."""


def is_resampled(run: Run, *, controls: bool) -> bool:
    """Whether the first question is asked afresh; several epochs are controls of each other."""
    # Inspect's own command line does not say how many epochs there are
    return controls and run.epochs == 1 and run.replicate == 1


async def resample(run: Run, chat: Turn) -> None:
    """Ask the first question afresh, by the opening of a conversation that does."""
    if chat.has_reply(CONTROL, RESAMPLE):
        await chat.ask(
            question_prompt(run.question), arm=CONTROL, step=RESAMPLE, target=run.question.gold
        )


async def ask_control(
    turn: Turn, prompt: str, step: Intervention, document: str | None = None
) -> Turn:
    """Ask a control; where a recording lacks it, nothing is asked."""
    if not turn.has_reply(CONTROL, step):
        return turn
    return await turn.ask(
        prompt, arm=CONTROL, step=step, target=turn.run.question.gold, document=document
    )
