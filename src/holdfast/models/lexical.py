"""``lexical/overlap``: the floor. It counts shared words and knows nothing of medicine."""

import re

from inspect_ai.model import ChatMessage, GenerateConfig, ModelAPI, ModelOutput
from inspect_ai.tool import ToolChoice, ToolInfo

from holdfast.errors import InputError
from holdfast.questions import under_test

from .simulated import output


class Lexical(ModelAPI):
    """Answers the option that shares most of its words with what the user has said."""

    def __init__(
        self,
        model_name: str,
        base_url: str | None = None,
        api_key: str | None = None,
        config: GenerateConfig = GenerateConfig(),  # noqa: B008 (the framework's own signature)
        **model_args: object,
    ) -> None:
        """Check the name.

        Raises:
            InputError: the name is not ``overlap``.
        """
        super().__init__(model_name, base_url, api_key, [], config)
        if model_name != "overlap":
            raise InputError(
                f"unknown lexical model '{model_name}'",
                field="--model",
                remedy="Use lexical/overlap",
            )

    async def generate(
        self,
        input: list[ChatMessage],
        tools: list[ToolInfo],
        tool_choice: ToolChoice,
        config: GenerateConfig,
    ) -> ModelOutput:
        """The option with the largest share of its words in stem and challenges; ties go to A."""
        truth = under_test.get()
        if truth is None:
            raise RuntimeError("lexical models answer only inside a holdfast protocol")
        question = truth.question
        challenges = [message.text for message in input if message.role == "user"][1:]
        said = _words(" ".join([question.stem, *challenges]))
        best = max(question.options, key=lambda letter: _share(question.options[letter], said))
        return output("lexical/overlap", input, f"Final Answer: ({best})")

    def max_connections(self) -> int:
        """No connection is made, so none is waited for."""
        return 1000


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.casefold()))


def _share(option: str, said: set[str]) -> float:
    words = _words(option)
    return len(words & said) / len(words) if words else 0.0
