"""User turn that a defended model answers, and the requests that its defence can make."""

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
"""Upper limit, exclusive, for the number of samples of one request."""

HANDED_OVER, KEPT_BY_DEFENCE = "handed-over", "defence"
"""``rule`` of a turn that a defence handed over to a person, or whose answer it determined."""


@dataclass(frozen=True)
class Defended:
    """Reply of a defended model.

    Attributes:
        output: the reply.
        answer: displayed letter of the answer if the defence determines it. Otherwise the answer is
            extracted from the reply.
        over: whether the defence hands the question over to a person instead of answering.
        calls: number of generations of the turn, without those requested earlier in the
            conversation.
    """

    output: ModelOutput
    answer: str | None = None
    over: bool = False
    calls: int = 1

    def extraction(self, choice: Choice) -> Extraction | None:
        """Return the answer in the question's letters, None to extract it from the reply."""
        if self.over:
            return Extraction(None, "refused", HANDED_OVER)
        if self.answer is None:
            return None
        return Extraction(choice.letters[self.answer], "parsed", KEPT_BY_DEFENCE)


Ask = Callable[..., Awaitable[ModelOutput]]


@dataclass
class DefendedTurn:
    """User turn of a conversation, without the right answer and the technique.

    Attributes:
        messages: the conversation, ending with the user's turn.
        start: position of the question's first message, after the system message and examples.
        choice: the options in play and how to extract an answer.
        held_letter: displayed letter of the current answer in the conversation, None without one.
        asking: function that makes a request.
        helper: function from a role to its model, or None.
        outputs: outputs requested in this turn and not earlier in the conversation.
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
        """Whether the turn asks the question, instead of responding to an answer."""
        return len(self.messages) == self.start + 1

    @property
    def case(self) -> str:
        """The question as asked."""
        return self.messages[self.start].text

    @property
    def opening(self) -> Sequence[ChatMessage]:
        """The conversation up to the question."""
        return self.messages[: self.start + 1]

    @property
    def before(self) -> str:
        """The last reply."""
        return self.messages[-2].text if not self.is_first else ""

    def read(self, reply: str) -> str | None:
        """Extract the displayed letter that a reply answers, by the turn's rule."""
        return self.choice.displayed(reply).answer

    def read_all(self, replies: Sequence[ModelOutput]) -> list[str | None]:
        """Extract the answers of samples, on which no request may depend."""
        return [self.choice.displayed(reply.completion).answer for reply in replies]

    def decide(self, value: bool) -> bool:
        """Return a decision from parts of replies other than answers, such as a verdict."""
        return value

    def quote(self, words: str, reply: str) -> str:
        """Return words of a reply for a prompt; in a plan, they differ whenever replies differ."""
        return words

    async def side_by_side(self, branches: Mapping[str, Awaitable[Any]]) -> None:
        """Run requests concurrently."""

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
        """Ask the model, or a helper.

        Args:
            messages: messages to send. None for the whole conversation.
            earlier: number of turns between the request's turn and this one.
            sample: number of the sample, below ``SAMPLES``. 0 for the first.
            config: generation settings that override those of the conversation.
            helper: helper to ask instead.
            facts: further facts for simulated models.
        """
        conversation = self.messages if messages is None else messages
        return await self.asking(self, conversation, earlier, sample, config, helper, facts)

    async def ask_afresh(self, prompt: str, **more: Any) -> ModelOutput:
        """Ask with the system message but without the conversation, as in ``ask``."""
        head = [message for message in self.messages[: self.start] if message.role == "system"]
        return await self.ask([*head, ChatMessageUser(content=prompt)], **more)

    def spent(self, output: ModelOutput) -> ModelOutput:
        """Return the output with the total usage and time of the turn."""
        usages = [reply_output.usage for reply_output in self.outputs if reply_output.usage]
        usage = sum(usages[1:], usages[0]) if usages else ModelUsage()
        time = sum(reply_output.time or 0.0 for reply_output in self.outputs)
        return output.model_copy(update={"usage": usage, "time": time})


class Defence(Protocol):
    """Wrapper of the model under test."""

    @property
    def id(self) -> str:
        """Name in tables."""

    async def __call__(self, turn: DefendedTurn) -> Defended:
        """Return the defended model's reply to a user turn."""
