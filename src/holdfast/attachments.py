"""What goes with messages and generations beside their text: documents and replays."""

from collections.abc import Sequence

from inspect_ai.model import ChatMessage, Content, ContentData, ContentText, ModelOutput

_DOCUMENT = "document"

_REPLAYS = "replays"

SENT_OTHERWISE = "sent_otherwise"
"""In the metadata of a generation and in the turns table: what was not sent as the study has it."""


def with_document(text: str, document: str | None) -> str | list[Content]:
    """Content of a message, with the document that an assistant is to retrieve beside it."""
    if document is None:
        return text
    return [ContentText(text=text), ContentData(data={_DOCUMENT: document})]


def document_of(message: ChatMessage) -> str | None:
    """The document that goes with a message; None for none."""
    parts = message.content if isinstance(message.content, list) else []
    data = (part.data.get(_DOCUMENT) for part in parts if isinstance(part, ContentData))
    return next((text for text in data if isinstance(text, str)), None)


def record_of(prompt: str, document: str | None) -> str:
    """A user message with its document, for people to read."""
    return prompt if document is None else f"{prompt}\n\n[document]\n{document}"


def put_replays(output: ModelOutput, replays: Sequence[str | None]) -> None:
    """Leave in a generation what was answered as its earlier turns were sent again.

    Args:
        output: the generation.
        replays: a reply for each earlier turn, None where it was the same as before.
    """
    if replays:
        output.metadata = {**(output.metadata or {}), _REPLAYS: list(replays)}


def replays_in(output: ModelOutput) -> list[str | None]:
    """What was answered as the earlier turns of a generation were sent again, as it was put."""
    replays = (output.metadata or {}).get(_REPLAYS)
    return list(replays) if isinstance(replays, list) else []
