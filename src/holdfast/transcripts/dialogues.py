"""Conversations of a turns table: the order of the turns, and their texts."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from holdfast.results.arms import turns_of

Message = dict[str, str | None]
"""Message of a chat model: ``role`` and ``content``."""

Texts = Mapping[int, tuple[str | None, str | None]]
"""Prompt and reply by row."""

QUESTION_KEYS = ("run", "model", "dataset", "protocol", "epoch", "question")
"""Columns that identify a question that a model was asked in an epoch."""

_AT_ONCE = 1_000


@dataclass(frozen=True)
class Dialogues:
    """Turns of a table as conversations.

    Attributes:
        before: row of the preceding turn for each row. None for a first turn, or if the table lacks
            the preceding turn.
        turn: 0-based number in the conversation for each row.
    """

    before: Sequence[int | None]
    turn: Sequence[int]

    def up_to(self, row: int) -> list[int]:
        """Return the rows of a conversation from its first turn to this row."""
        rows: list[int] = []
        at: int | None = row
        while at is not None:
            rows.append(at)
            at = self.before[at]
        return rows[::-1]

    def whole(self, row: int) -> bool:
        """Return whether no turn before this row is missing."""
        return len(self.up_to(row)) == self.turn[row] + 1

    def ends(self) -> list[int]:
        """Return the last row of each conversation, in order."""
        followed_rows = {row for row in self.before if row is not None}
        return [row for row in range(len(self.before)) if row not in followed_rows]


def dialogues(turns: pl.DataFrame) -> Dialogues:
    """Return the conversations of a turns table.

    The preceding turn has the same path without the last step. It is in the same arm, or else in
    another arm, as the first answer is for a challenge. A protocol can keep its arms apart, or let
    an arm continue a certain other arm (``TurnsOf``). The replies of a helper follow each other. A
    single-turn conversation has no preceding turn.
    """
    keys = turns.select("protocol", "arm", "path", "turn")
    rows = [
        (question_number, *row)
        for question_number, row in zip(alike(turns, QUESTION_KEYS), keys.rows(), strict=True)
    ]
    in_arm: dict[tuple[Any, ...], int] = {}
    in_any: dict[tuple[Any, ...], int] = {}
    anywhere: dict[tuple[Any, ...], int] = {}
    for row, (question_number, _, arm, path, turn) in enumerate(rows):
        in_arm.setdefault((question_number, arm, path, turn), row)
        in_any.setdefault((question_number, path, turn), row)
        anywhere.setdefault((question_number, arm, turn), row)

    def preceding(
        asked_question: int | None, protocol: str, arm: str, path: str, turn: int
    ) -> int | None:
        protocol_turns, earlier = turns_of(protocol), turn - 1
        alone = protocol_turns.by_arm or arm in protocol_turns.helpers
        for step in (path.rpartition(">")[0], path):  # the path of an imported turn need not grow
            if (row := in_arm.get((asked_question, arm, step, earlier))) is not None:
                return row
            if not alone and (row := in_any.get((asked_question, step, earlier))) is not None:
                return row
        return anywhere.get((asked_question, protocol_turns.continues.get(arm), earlier))

    before = [preceding(*row) if row[-1] > 0 else None for row in rows]
    return Dialogues(before, keys["turn"].to_list())


def alike(turns: pl.DataFrame, columns: Sequence[str]) -> list[int | None]:
    """Return the first row with the same values for each row, None if all are null."""
    numbered_turns = turns.select(columns).with_row_index("_row")
    first = pl.col("_row").first().over(columns)
    is_known = pl.any_horizontal(pl.col(columns).is_not_null())
    return numbered_turns.select(pl.when(is_known).then(first)).to_series().to_list()


def said(turns: pl.DataFrame, rows: Iterable[int]) -> Texts:
    """Return prompt and reply by row."""
    rows_wanted = sorted(set(rows))
    return dict(zip(rows_wanted, turns[rows_wanted].select("prompt", "reply").rows(), strict=True))


def chats_of(
    turns: pl.DataFrame, of: Dialogues, ends: Sequence[int]
) -> Iterator[tuple[list[list[int]], Texts]]:
    """Yield conversations with their texts, in batches to save memory."""
    for start in range(0, len(ends), _AT_ONCE):
        chats = [of.up_to(end) for end in ends[start : start + _AT_ONCE]]
        yield chats, said(turns, (row for chat in chats for row in chat))


def messages(texts: Texts, rows: Iterable[int]) -> list[Message]:
    """Return the texts of these turns as messages."""
    roles = ("user", "assistant")
    return [
        {"role": role, "content": text}
        for row in rows
        for role, text in zip(roles, texts[row], strict=True)
    ]


def json_text(value: Any) -> str:
    """Return a value as JSON on one line, in ASCII."""
    return json.dumps(value, allow_nan=False)
