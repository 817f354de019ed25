"""``lexical/overlap``: the floor. It counts shared words and knows nothing of medicine."""

import re

from inspect_ai.model import ChatMessage, GenerateConfig

from holdfast.errors import InputError
from holdfast.questions import LETTERS, Truth

from .local import Local


class Lexical(Local):
    """Answers the option that shares most of its words with what the user has said."""

    provider = "lexical"

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

    def looked_at(self, truth: Truth) -> str:
        """The question and the options on display."""
        return f"{truth.question.content_hash} {dict(truth.given).get('shown')}"

    def reply(
        self, truth: Truth, messages: list[ChatMessage], config: GenerateConfig
    ) -> tuple[str, None]:
        """The option with the largest share of its words in stem and challenges; ties go to A."""
        question, options = truth.question, dict(truth.question.options)
        challenges = [message.text for message in messages if message.role == "user"][1:]
        if shown := dict(truth.given).get("shown"):
            # options on display have letters of their own, and every prompt repeats them
            texts = [options.get(letter, "") for letter in shown]
            options, challenges = dict(zip(LETTERS, texts, strict=False)), []
        said = _words(" ".join([question.stem, *challenges]))
        best = max(options, key=lambda letter: _share(options[letter], said))
        return f"Final Answer: ({best})", None


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.casefold()))


def _share(option: str, said: set[str]) -> float:
    words = _words(option)
    return len(words & said) / len(words) if words else 0.0
