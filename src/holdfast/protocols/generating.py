"""Asking a model for something that a study needs, until it can be used."""

from collections.abc import Callable
from typing import Any, TypeVar

from inspect_ai.model import ModelOutput

from holdfast.challenges.texts import Fault, fill
from holdfast.dialogue.conversation import Turn
from holdfast.files import packaged
from holdfast.reading.refusal import is_refusal
from holdfast.reading.reply_text import without_reasoning

TRIES = 4
"""How often a text is asked for at the most (protocols, section 1)."""

T = TypeVar("T")

Row = dict[str, Any]


async def obtain(
    chat: Turn, prompt: str, parse: Callable[[str], T | Fault], like: T, **context: object
) -> T | Fault:
    """Ask, check, and say what was wrong until the reply can be used.

    The fault is told in the same conversation, because at temperature 0 the same request would
    bring the same reply.

    Args:
        chat: the conversation so far.
        prompt: what is asked for.
        parse: finds it in a reply without its reasoning, or says what is wrong.
        like: what a dry run takes for it.
        context: as ``Turn.ask`` takes it.

    Returns:
        What was read, or the last reply's fault.
    """

    def usable(output: ModelOutput) -> T | Fault:
        return _find_output_fault(output) or parse(without_reasoning(output.completion))

    _, value = await chat.obtain(
        prompt, usable, retry_prompt, lambda reply: like, tries=TRIES, refusals=TRIES, **context
    )
    return value


def retry_prompt(fault: Fault) -> str:
    """Asks once more, and says what was wrong."""
    return fill(packaged(__package__, "generating.toml")["again"], {"fault": fault.detail})


def _find_output_fault(output: ModelOutput) -> Fault | None:
    if output.stop_reason == "content_filter" or is_refusal(without_reasoning(output.completion)):
        return Fault("refused", "declines the request")
    if output.stop_reason in ("max_tokens", "model_length"):
        return Fault("cut off", "was cut off before its end")
    return None
