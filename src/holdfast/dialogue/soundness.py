"""Replies as they come in: what no file could hold is taken out, whoever sent it."""

import json

from inspect_ai.model import (
    ContentReasoning,
    ContentText,
    ModelCall,
    ModelOutput,
    ModelUsage,
)

_MOST_TOKENS = 10**12
"""More is no count of tokens; a run of so many still fits the turns table."""


def make_sound(output: ModelOutput) -> None:
    """Replace lone surrogates in every text, and a usage that cannot be by an unknown one.

    Args:
        output: a provider's; changed in place.
    """
    output.model, output.completion = encodable(output.model), encodable(output.completion)
    for choice in output.choices:
        message = choice.message
        message.model = encodable(message.model) if message.model else None
        if isinstance(message.content, str):
            message.content = encodable(message.content)
        else:
            for part in message.content:
                if isinstance(part, ContentText):
                    part.text = encodable(part.text)
                elif isinstance(part, ContentReasoning):
                    part.reasoning = encodable(part.reasoning)
        # a token may be some bytes of a character
        for token in choice.logprobs.content if choice.logprobs else ():
            for one in (token, *(token.top_logprobs or ())):
                one.token = encodable(one.token)
    if output.usage and not _possible(output.usage):
        output.usage = ModelUsage()


def make_call_sound(call: ModelCall) -> None:
    """Replace lone surrogates in a reply as it came in.

    Args:
        call: a provider's record; changed in place.
    """
    text = json.dumps(call.response, ensure_ascii=False, default=str)
    if encodable(text) != text:
        call.response = json.loads(encodable(text))


def encodable(text: str) -> str:
    """The text, with a replacement character for each half of a pair that stands alone."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _possible(usage: ModelUsage) -> bool:
    return all(0 <= n <= _MOST_TOKENS for n in vars(usage).values() if isinstance(n, int))
