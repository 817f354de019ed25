"""What a provider has sent, held against what it was given to send."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from inspect_ai.model import ChatMessage, GenerateConfig, ModelCall, ModelOutput

SENT_OTHERWISE = "sent_otherwise"
"""In the metadata of a generation and in the turns table: what was not sent as the study has it."""

_SETTINGS = ("temperature", "seed", "top_p")
_MESSAGES = ("messages", "input", "contents")
_SYSTEM = ("system", "system_instruction", "systemInstruction", "instructions")
"""Names under which providers send a system message that stands outside the conversation."""


def note_difference(
    output: ModelOutput, call: object, messages: Sequence[ChatMessage], config: GenerateConfig
) -> None:
    """Leave in a generation's metadata what of its request went out otherwise than asked.

    Providers drop settings that a model does not take, and give messages other roles. Where the
    provider records no request nothing can be said.

    Args:
        output: what was generated; nothing is left in it where all went out as asked.
        call: the provider's record of the request.
        messages: the conversation that it was given.
        config: the settings that it was given.
    """
    if isinstance(call, ModelCall) and (told := "; ".join(_differences(call, messages, config))):
        output.metadata = {**(output.metadata or {}), SENT_OTHERWISE: told}


def _differences(
    call: ModelCall, messages: Sequence[ChatMessage], config: GenerateConfig
) -> Iterator[str]:
    request = call.request
    sent = dict(_named({k: v for k, v in request.items() if k not in _MESSAGES}))
    for name in _SETTINGS:
        asked = getattr(config, name)
        if asked is not None and sent.get(name) is None:
            yield f"{name} {asked:g} was not sent"
        elif asked is not None and sent[name] != asked:
            yield f"{name} {asked:g} was sent as {sent[name]}"
    if not any(message.role == "system" for message in messages) or sent.keys() & {*_SYSTEM}:
        return
    said = next((request[name] for name in _MESSAGES if name in request), [])
    roles = [one.get("role") for one in said if isinstance(one, dict)] if (
        isinstance(said, list)
    ) else []  # fmt: skip
    if "system" not in roles:
        other = "developer" if "developer" in roles else roles[0] if roles else None
        yield f"the system message was sent as {other}" if other else "no system message was sent"


def _named(value: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Every name in a request with its value, those inside others first."""
    for name, inner in value.items():
        if isinstance(inner, Mapping):
            yield from _named(inner)
        yield name, inner
