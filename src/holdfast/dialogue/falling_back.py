"""Asking without what a server does not offer, and a study can do without."""

from collections.abc import Awaitable, Callable
from typing import Any

from inspect_ai.model import ChatMessage, GenerateConfig, Model, ModelAPI

from .lasting import refused_request

_EXTRAS = {
    "log-probabilities": (("logprobs", "top_logprobs"), ("logprob",)),
    "JSON schemas": (("response_schema",), ("response_format", "json_schema", "json schema")),
}
"""By what a server may refuse: the settings that ask for it, and words that its refusals hold."""


async def asked_plainly(
    api: ModelAPI,
    ask: Callable[..., Awaitable[Any]],
    input: list[ChatMessage],
    tools: Any,
    tool_choice: Any,
    config: GenerateConfig,
) -> Any:
    """A provider's reply, asked for without log-probabilities or a schema once it refuses them.

    Without the one, measures go by answers alone; without the other, JSON is looked for in text.

    Args:
        api: the provider; what it has refused is noted there.
        ask: its own ``generate``, which may raise or return an error.
        input: the conversation.
        tools: passed on.
        tool_choice: passed on.
        config: settings of generation.
    """
    refused: set[str] = vars(api).setdefault("refused_extras", set())
    while True:
        left_out = {name: None for extra in refused for name in _EXTRAS[extra][0]}
        plain = config.model_copy(update=left_out) if refused else config
        try:
            result = await ask(input, tools, tool_choice, plain)
        except Exception as error:
            if not _note(api, error, plain, refused):
                raise
            continue
        output = result[0] if isinstance(result, tuple) else result
        if not (isinstance(output, Exception) and _note(api, output, plain, refused)):
            return result


def refusals(model: Model) -> list[str]:
    """What a model's server has refused so far and is asked without, one line each."""
    refused: set[str] = getattr(model.api, "refused_extras", set())
    return [f"{model} refuses {extra}: asked without" for extra in sorted(refused)]


def _note(api: ModelAPI, error: Exception, asked: GenerateConfig, refused: set[str]) -> bool:
    """Whether the error refuses something that was asked for and can be left out from now on."""
    if not refused_request(error):
        return False
    told = str(error).lower()
    for extra, (names, words) in _EXTRAS.items():
        if getattr(asked, names[0]) and any(word in told for word in words):
            refused.add(extra)
            return True
    return False
