"""A user turn that a defended model is to answer: what its defence sees, and whom it can ask."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from inspect_ai.model import (
    ChatMessage,
    ChatMessageUser,
    GenerateConfig,
    Model,
    ModelOutput,
    ModelUsage,
)

from holdfast.dialogue.gathering import gather
from holdfast.dialogue.turn import Choice
from holdfast.reading.extraction import Extraction

SAMPLES = 50
"""Fewer samples than this are drawn of one request."""

HANDED_OVER, KEPT_BY_DEFENCE = "handed-over", "defence"
"""``rule`` of a turn that a defence has handed over to a person, or whose answer it has settled."""


@dataclass(frozen=True)
class Defended:
    """What a defended model says.

    Attributes:
        output: its reply.
        answer: displayed letter of the option answered, where the defence has settled it; else it
            is read from the reply.
        over: whether it hands the question over to a person instead of answering.
        calls: generations that the turn took, those asked earlier in the conversation not counted.
    """

    output: ModelOutput
    answer: str | None = None
    over: bool = False
    calls: int = 1

    def extraction(self, choice: Choice) -> Extraction | None:
        """The answer in the question's own letters; None where the reply is to be read."""
        if self.over:
            return Extraction(None, "refused", HANDED_OVER)
        if self.answer is None:
            return None
        return Extraction(choice.letters[self.answer], "parsed", KEPT_BY_DEFENCE)


Ask = Callable[..., Awaitable[ModelOutput]]


@dataclass
class DefendedTurn:
    """One user turn of a conversation. It tells of no right answer and of no technique.

    Attributes:
        messages: the conversation, the user's turn last.
        start: place of the first message of the question; before it stand the system message and
            examples.
        choice: the options in play, and how an answer among them is read.
        held_letter: displayed letter of the answer that the conversation holds; None where it has
            none.
        asking: makes one request.
        helper: the model in a role, None without one.
        outputs: what was asked for, in this turn and not earlier in the conversation.
    """

    messages: Sequence[ChatMessage]
    start: int
    choice: Choice
    held_letter: str | None
    asking: Ask
    helper: Callable[[str], Model | None]
    outputs: list[ModelOutput] = field(default_factory=list)

    @property
    def is_first(self) -> bool:
        """Whether the user asks the question; else something is said to an answer of it."""
        return len(self.messages) == self.start + 1

    @property
    def case(self) -> str:
        """The question as it was asked."""
        return self.messages[self.start].text

    @property
    def opening(self) -> Sequence[ChatMessage]:
        """The conversation as it was when the question was asked."""
        return self.messages[: self.start + 1]

    @property
    def before(self) -> str:
        """The last reply."""
        return self.messages[-2].text if not self.is_first else ""

    def read(self, reply: str) -> str | None:
        """Displayed letter of the option that a reply answers, by the turn's own rule."""
        return self.choice.displayed(reply).answer

    def read_all(self, replies: Sequence[ModelOutput]) -> list[str | None]:
        """The same for samples. Nothing that is asked may depend on it."""
        return [self.choice.displayed(reply.completion).answer for reply in replies]

    def decide(self, value: bool) -> bool:
        """A decision by what replies hold beside their answers, such as a helper's verdict."""
        return value

    def quote(self, words: str, reply: str) -> str:
        """Words out of a reply, for a prompt; a plan takes them to differ as replies do."""
        return words

    async def side_by_side(self, branches: Mapping[str, Awaitable[Any]]) -> None:
        """Wait for requests side by side."""

        async def within(request: Awaitable[Any]) -> None:
            await request

        async with gather() as tasks:
            for name, request in branches.items():
                tasks.start(name, within, request)

    async def ask(
        self,
        messages: Sequence[ChatMessage] | None = None,
        *,
        earlier: int = 0,
        sample: int = 0,
        config: GenerateConfig | None = None,
        helper: Model | None = None,
        **facts: Any,
    ) -> ModelOutput:
        """Ask the model itself, or a helper.

        Args:
            messages: what it is asked; None for the conversation as it stands.
            earlier: how many turns before this one it is of.
            sample: which further time, below ``SAMPLES``; 0 for the first.
            config: settings of generation over those of the conversation.
            helper: who is asked instead.
            facts: what a simulated model is told beside it.
        """
        conversation = self.messages if messages is None else messages
        return await self.asking(self, conversation, earlier, sample, config, helper, facts)

    async def ask_afresh(self, prompt: str, **more: Any) -> ModelOutput:
        """Ask under the system message, with nothing of the conversation; as ``ask``."""
        head = [message for message in self.messages[: self.start] if message.role == "system"]
        return await self.ask([*head, ChatMessageUser(content=prompt)], **more)

    def spent(self, output: ModelOutput) -> ModelOutput:
        """The output with all that the turn took."""
        usages = [reply_output.usage for reply_output in self.outputs if reply_output.usage]
        usage = sum(usages[1:], usages[0]) if usages else ModelUsage()
        time = sum(reply_output.time or 0.0 for reply_output in self.outputs)
        return output.model_copy(update={"usage": usage, "time": time})


class Defence(Protocol):
    """What stands around the model under test."""

    @property
    def id(self) -> str:
        """Its name in tables."""

    async def __call__(self, turn: DefendedTurn) -> Defended:
        """What the defended model says to a user turn."""
