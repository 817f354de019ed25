"""Dialogues: which turn of a table follows on which, and what was said up to it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

Message = dict[str, str | None]
"""One message as chat models take it: ``role`` and ``content``."""

ASKED = ("run", "model", "dataset", "protocol", "epoch", "question")
"""Columns that tell one question put to a model once from another."""

ATTACKER = "attacker"
"""``arm`` of the attacker's own replies: its conversation, not that of the model under test."""

APART = (ATTACKER, "attack", "original", "attacked", "control")
"""Arms of MedFuzz: the attacker's replies, and answers to texts that an attacker wrote."""


def no_challenge(protocol: str | None, arm: str) -> bool:
    """Whether a turn is a control, or corrects a wrong answer: put beside the challenges."""
    return arm in ("control", "correction") and not (protocol or "").startswith("medfuzz")


OFFERING = "stick-or-switch"
_SWITCHED = {"flexible-correct": "negative"}
"""Arms that go on from a turn of another one."""

_AT_ONCE = 1_000


@dataclass(frozen=True)
class Dialogues:
    """The turns of a table as conversations.

    Attributes:
        before: for each row, the row of the turn that it follows on; None for a first turn, and
            where the table lacks the turn before.
        turn: for each row, its 0-based number in its conversation.
    """

    before: Sequence[int | None]
    turn: Sequence[int]

    def up_to(self, row: int) -> list[int]:
        """Rows of a conversation from its first turn to this one."""
        rows: list[int] = []
        at: int | None = row
        while at is not None:
            rows.append(at)
            at = self.before[at]
        return rows[::-1]

    def whole(self, row: int) -> bool:
        """Whether no turn before this one is missing."""
        return len(self.up_to(row)) == self.turn[row] + 1

    def ends(self) -> list[int]:
        """Rows that no other follows on, in their order: each ends a conversation."""
        followed = {row for row in self.before if row is not None}
        return [row for row in range(len(self.before)) if row not in followed]


def dialogues(turns: pl.DataFrame) -> Dialogues:
    """The conversations of a turns table.

    A turn follows on the one whose path is its own without the last step: in the same arm, or
    else in another one, as a challenge does on the first answer. In ``stick-or-switch`` arms are
    conversations apart, and ``flexible-correct`` goes on from ``negative``. The attacker's tries
    follow on each other. Everything that was put in one turn stands alone.

    Args:
        turns: a turns table.
    """
    told = turns.select("protocol", "arm", "path", "turn")
    rows = [(asked, *row) for asked, row in zip(alike(turns, ASKED), told.rows(), strict=True)]
    in_arm: dict[tuple[Any, ...], int] = {}
    in_any: dict[tuple[Any, ...], int] = {}
    tries: dict[tuple[Any, ...], int] = {}
    for row, (asked, protocol, arm, path, turn) in enumerate(rows):
        in_arm.setdefault((asked, arm, path, turn), row)
        in_any.setdefault((asked, path, turn), row)
        if arm == ATTACKER:
            tries.setdefault((asked, protocol, turn), row)

    def preceding(asked: int | None, protocol: str, arm: str, path: str, turn: int) -> int | None:
        earlier = turn - 1
        if arm == ATTACKER:
            again = in_arm.get((asked, arm, path, earlier))
            return tries.get((asked, "medfuzz", earlier)) if again is None else again
        for step in (path.rpartition(">")[0], path):  # a path need not grow in imported turns
            for other in (arm, _SWITCHED.get(arm, arm)):
                if (row := in_arm.get((asked, other, step, earlier))) is not None:
                    return row
            if protocol != OFFERING and (row := in_any.get((asked, step, earlier))) is not None:
                return row
        return None

    before = [preceding(*row) if row[-1] > 0 else None for row in rows]
    return Dialogues(before, told["turn"].to_list())


def alike(turns: pl.DataFrame, columns: Sequence[str]) -> list[int | None]:
    """For each row the first one with the same values; None where it has none in any column."""
    numbered = turns.select(columns).with_row_index("_row")
    first = pl.col("_row").first().over(columns)
    known = pl.any_horizontal(pl.col(columns).is_not_null())
    return numbered.select(pl.when(known).then(first)).to_series().to_list()


def said(turns: pl.DataFrame, rows: Iterable[int]) -> dict[int, tuple[str | None, str | None]]:
    """Prompt and reply of these rows, by row."""
    wanted = sorted(set(rows))
    return dict(zip(wanted, turns[wanted].select("prompt", "reply").rows(), strict=True))


def messages(
    texts: Mapping[int, tuple[str | None, str | None]], rows: Iterable[int]
) -> list[Message]:
    """What was said in these turns, as messages."""
    spoken: list[Message] = []
    for row in rows:
        prompt, reply = texts[row]
        spoken.append({"role": "user", "content": prompt})
        spoken.append({"role": "assistant", "content": reply})
    return spoken


def in_batches(items: Sequence[Any]) -> Iterator[Sequence[Any]]:
    """The items a thousand at a time, so that the texts of only so many are in memory twice."""
    for start in range(0, len(items), _AT_ONCE):
        yield items[start : start + _AT_ONCE]
