"""What the models that need no network have in common."""

from abc import abstractmethod

from inspect_ai.model import (
    ChatCompletionChoice,
    ChatMessage,
    ChatMessageAssistant,
    GenerateConfig,
    Logprobs,
    ModelAPI,
    ModelOutput,
    ModelUsage,
)
from inspect_ai.tool import ToolChoice, ToolInfo

from holdfast.questions import Truth, under_test


class Local(ModelAPI):
    """A responder in this process that is told what is true of the turn under way."""

    provider: str
    """Its name before the slash."""

    @abstractmethod
    def looked_at(self, truth: Truth) -> str:
        """Everything beside messages and settings that a reply depends on, for the cache's key."""

    @abstractmethod
    def reply(
        self, truth: Truth, messages: list[ChatMessage], config: GenerateConfig
    ) -> tuple[str, Logprobs | None]:
        """The reply to the turn under way, with its log-probabilities where asked for."""

    async def generate(
        self,
        input: list[ChatMessage],
        tools: list[ToolInfo],
        tool_choice: ToolChoice,
        config: GenerateConfig,
    ) -> ModelOutput:
        """The reply, with its tokens estimated at four characters each."""
        truth = under_test.get()
        if truth is None:
            raise RuntimeError(f"{self.provider}/ models answer only inside a holdfast protocol")
        text, logprobs = self.reply(truth, input, config)
        model = f"{self.provider}/{self.model_name}"
        message = ChatMessageAssistant(content=text, model=model, source="generate")
        read = sum(len(message.text) for message in input) // 4
        said = max(1, len(text) // 4)
        return ModelOutput(
            model=model,
            choices=[ChatCompletionChoice(message=message, stop_reason="stop", logprobs=logprobs)],
            # without a usage of our own the framework would fetch a tokenizer
            usage=ModelUsage(input_tokens=read, output_tokens=said, total_tokens=read + said),
        )

    def max_connections(self) -> int:
        """No connection is made, so none is waited for."""
        return 1000
