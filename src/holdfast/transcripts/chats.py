"""Chats: conversations as chat APIs write them, with everything the turns table knows of them."""

import json
import math
from collections.abc import Iterator, Sequence
from typing import Any

import polars as pl

from .dialogues import Dialogues, in_batches, messages, said

VERSION = 1
"""Of the object ``holdfast`` on each line; raised when a reader has to know of a change."""

TEXTS = ("prompt", "reply")


def chat_lines(turns: pl.DataFrame, of: Dialogues, ends: Sequence[int]) -> Iterator[bytes]:
    r"""Conversations, one JSON object a line.

    ``messages`` holds the user and the assistant message of every turn; ``holdfast`` the
    ``version`` and ``rows``: for each turn all columns of the turns table but prompt and reply,
    and ``row``, its place in the table. A turn that several conversations share, such as a first
    answer, stands in each with the same ``row``. Numbers that JSON lacks stand as the strings
    ``NaN``, ``Infinity`` and ``-Infinity``; everything beyond ASCII is written ``\uXXXX``, so that
    nothing in a text can end a line.
    """
    kept = turns.drop(TEXTS, strict=False)
    for batch in in_batches(ends):
        chats = [of.up_to(end) for end in batch]
        texts = said(turns, (row for chat in chats for row in chat))
        known = dict(zip(texts, kept[list(texts)].rows(named=True), strict=True))
        # of the many conversations that share a first answer, its row is written out once
        written = {row: json_text({"row": row} | columns) for row, columns in known.items()}
        for chat in chats:
            spoken = json_text(messages(texts, chat))
            rows = ", ".join(written[row] for row in chat)
            about = f'{{"version": {VERSION}, "rows": [{rows}]}}'
            yield f'{{"messages": {spoken}, "holdfast": {about}}}\n'.encode()


def json_text(value: Any) -> str:
    """A value as JSON on one line, in ASCII."""
    try:
        return json.dumps(value, allow_nan=False)
    except ValueError:
        return json.dumps({k: _finite(v) for k, v in value.items()}, allow_nan=False)


def _finite(value: Any) -> Any:
    if not isinstance(value, float) or math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
