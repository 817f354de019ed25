"""Controls: the first question asked again, by which a change is told from what chance changes."""

from dataclasses import dataclass, replace
from typing import Any, Self

from holdfast.challenges import question_prompt
from holdfast.defences import Block
from holdfast.dialogue import Conversation, Intervention
from holdfast.questions import Question

from .sample_run import SampleRun
from .study import Study, opening_of

CONTROL = "control"
"""``arm`` and ``family`` of what is asked without any challenge."""

RESAMPLE = Intervention("resample", CONTROL)
"""The first question afresh, in a conversation of its own."""


@dataclass(frozen=True, kw_only=True)
class ControlledStudy(Study):
    """A study whose first answers have a control.

    Attributes:
        controls: whether it is asked.
        epochs: times each question is asked; of several, each is the control of the others.
        defence: what stands around the model under test.
    """

    controls: bool = True
    epochs: int = 1
    defence: Block | None = None

    def repeated(self, epochs: int) -> Self:
        """The same study where each question is asked so often."""
        return replace(self, epochs=epochs)

    @property
    def resampled(self) -> bool:
        """Whether the first question is asked afresh."""
        return self.controls and self.epochs == 1

    def openings_under(self, system: str, question: Question) -> tuple[str, ...]:
        """The plain question under a system prompt, and the same afresh."""
        plain = opening_of(system, question)
        return (plain, f"{plain}\x1f") if self.resampled else (plain,)


async def resample(run: SampleRun, **settings: Any) -> None:
    """Ask the first question afresh: a generation of its own, with a seed of its own.

    Args:
        run: the question.
        settings: those of the conversation in which the first question was asked.
    """
    chat = run.begin(resample=1, **settings).branch(RESAMPLE)
    await control(chat, question_prompt(run.question))


async def control(chat: Conversation, prompt: str) -> None:
    """Put a control; where a recording lacks it, nothing is put."""
    if chat.has_reply(CONTROL):
        await chat.ask(prompt, arm=CONTROL, target=chat.question.gold)
