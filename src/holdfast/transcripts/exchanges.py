"""Exchanges: prompts and replies from a list of messages."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from holdfast.errors import InputError, did_you_mean

_ROLES = {
    "system": "system", "developer": "system", "user": "user", "human": "user",
    "assistant": "assistant", "gpt": "assistant", "ai": "assistant", "tool": "tool",
    "function": "tool",
}  # fmt: skip
"""Roles of messages by their names in common formats."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """User turn with its reply.

    Attributes:
        prompt: text of the user, None if the file lacks it.
        reply: text of the model, None if there is none.
        status: status of the reply if its text does not determine it, else empty.
        rule: rule that determined the status.
    """

    prompt: str | None
    reply: str | None
    status: str = ""
    rule: str = ""


UNANSWERED_READING = ("error", "unanswered")
"""Status and rule of a user turn without a reply."""


Refuse = Callable[[str, str], InputError]
"""Function from a fault and a remedy to the error of a list of messages."""


def exchanges_in(messages: list[Any], refuse: Refuse) -> tuple[list[Exchange], Counter[str]]:
    """Return the exchanges of a conversation, and counts of skipped parts by kind.

    Consecutive messages of the user are one prompt. Consecutive messages of the assistant are one
    reply, even with tool calls between them. A user turn without a reply is also an exchange
    (``UNANSWERED_READING``), as is a reply with only a tool call.
    """
    turns: list[tuple[list[str], list[tuple[str, Mapping[str, Any]]]]] = []
    passed_over: Counter[str] = Counter()
    for place, message in enumerate(messages, start=1):
        name = message.get("role") if isinstance(message, Mapping) else None
        role = _ROLES.get(name) if isinstance(name, str) else None
        if role is None:
            problem = "no role" if name is None else f"an unknown role '{name}'"
            raise refuse(f"message {place} has {problem}", did_you_mean(str(name), _ROLES))
        if role == "system" or role == "tool":
            passed_over[f"{role} message"] += 1
        elif role == "user":
            if not turns or turns[-1][1]:
                turns.append(([], []))
            turns[-1][0].append(_text(message, passed_over, refuse, place))
        elif not turns:
            passed_over["reply before the first user turn"] += 1
        else:
            turns[-1][1].append((_text(message, passed_over, refuse, place), message))
    if not turns:
        raise refuse("contains no user turn", "Give the question as a user message")
    return [_exchange("\n\n".join(prompts), replies) for prompts, replies in turns], passed_over


def _exchange(prompt: str, replies: list[tuple[str, Mapping[str, Any]]]) -> Exchange:
    if not replies:
        return Exchange(prompt, None, *UNANSWERED_READING)
    text = "\n\n".join(text for text, _ in replies if text)
    if text:
        return Exchange(prompt, text)
    for _, message in replies:
        if isinstance(refusal := message.get("refusal"), str) and refusal:
            return Exchange(prompt, refusal, "refused", "refusal")
    calls_tool = any(message.get(key) for _, message in replies for key in _CALLS)
    return Exchange(prompt, "", *(("none", "tool-call") if calls_tool else ()))


_CALLS = ("tool_calls", "function_call")
_TEXTS = ("text", "input_text", "output_text")


def _text(message: Mapping[str, Any], passed_over: Counter[str], refuse: Refuse, place: int) -> str:
    content = message.get("content")
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        problem = f"the content of message {place} is neither text nor a list of parts"
        raise refuse(problem, "Give it as text")
    texts = []
    for part in content:
        is_text = isinstance(part, Mapping) and part.get("type", "text") in _TEXTS
        text = part.get("text") if is_text else part
        if isinstance(text, str):
            texts.append(text)
        else:
            passed_over["part of a message that is not text"] += 1
    return "\n".join(texts)
