"""One question put once: its conversations, and how what was said reaches the log."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from inspect_ai.model import ChatMessage, Model
from inspect_ai.solver import Generate, Solver, TaskState, solver

from holdfast.defences import Block
from holdfast.dialogue import Conversation
from holdfast.questions import Question

from .scoring import turns_to_log
from .second_reading import read_by, reader_of
from .study import Study, bound, tested


@dataclass
class SampleRun:
    """One question in one replicate.

    Attributes:
        question: what is put.
        replicate: 1-based epoch.
        conversations: those begun, in the order in which the log is to have them.
        defence: stands around the model under test.
        notes: what is known of every turn, by the names of the turns table.
    """

    question: Question
    replicate: int
    conversations: list[Conversation] = field(default_factory=list)
    defence: Block | None = None
    notes: dict[str, Any] = field(default_factory=dict)

    def begin(self, model: Model | None = None, **settings: Any) -> Conversation:
        """Begin a conversation on the question, whose turns go into the log."""
        if model is None:  # a helper's replies answer no question
            model = tested()
            settings["second"] = reader_of(self.question, model)
            settings |= {"defence": self.defence, "helper": bound}
        chat = Conversation(model, self.question, replicate=self.replicate, **settings)
        self.conversations.append(chat)
        return chat


def protocol_solver(
    name: str,
    study: Study,
    put: Callable[[SampleRun], Awaitable[list[ChatMessage] | None]],
) -> Solver:
    """The solver of a protocol.

    Every turn is left in the log, those of a question that could not be finished too.

    Args:
        name: the solver's name in the log.
        study: what is asked.
        put: puts one question; the messages that the log viewer is to show of it, or None.
    """
    asked = {question.id: question for question in study.questions.questions}

    @solver(name=name)
    def sit() -> Solver:
        async def solve(state: TaskState, generate: Generate) -> TaskState:
            question = asked[str(state.sample_id)]
            reader = read_by(reader_of(question, tested()))
            run = SampleRun(question, state.epoch, defence=study.defence, notes=reader)
            try:
                shown = await put(run)
            finally:
                turns = [turn for chat in run.conversations for turn in chat.turns]
                for turn in turns:
                    turn.notes.update(run.notes)
                turns_to_log(state, turns)
            if shown:
                state.messages = shown
                state.output.completion = shown[-1].text
            return state

        return solve

    return sit()
