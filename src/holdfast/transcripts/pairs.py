"""Pairs: a right and a wrong reply to the same messages, for preference training."""

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import polars as pl

from .chats import json_text
from .dialogues import Dialogues, in_batches, messages, said
from .training import Kind, Usable, sources_of

ALONE = "no other reply to the same messages that was {}"


@dataclass(frozen=True)
class Pair:
    """Two replies to one prompt.

    Attributes:
        chosen: row of the turn that was right.
        rejected: row of the turn that was not.
        kind: what both turns show.
        prefix: ``same`` where both replies were given to the very same messages; ``chosen`` where
            the user said the same and the answers before were the same, but the model's words
            for them were not: then the prompt has those of the chosen side.
    """

    chosen: int
    rejected: int
    kind: Kind
    prefix: Literal["same", "chosen"]


def pairs(turns: pl.DataFrame, told: Usable) -> tuple[list[Pair], Counter[str]]:
    """Pairs of replies, and how many turns are in none, by reason.

    Both replies answer the same question of the same data set and protocol, to user messages that
    are equal word for word, after the same answers, with the same option right. A reply is in one
    pair at most. First come replies to the very same messages, of the same run before those of
    others; then those after other words for the same answers, again first of the same run.
    """
    known = turns.select(
        "run", "model", "dataset", "protocol", "question", "gold", "correct"
    ).rows()
    cases: dict[Hashable, tuple[list[int], list[int]]] = {}
    for row in told.rows:
        *_, dataset, protocol, question, gold, right = known[row]
        case = dataset, protocol, question, gold, told.case[row]
        cases.setdefault(case, ([], []))[0 if right else 1].append(row)
    found = [
        Pair(
            chosen,
            rejected,
            told.kind[chosen],
            "same" if told.prompt[chosen] == told.prompt[rejected] else "chosen",
        )
        for right, wrong in cases.values()
        for chosen, rejected in _matched(right, wrong, _nearness(told, known))
    ]
    left_out = told.left_out.copy()
    for right, wrong in cases.values():
        both = min(len(right), len(wrong))
        left_out[ALONE.format("wrong")] += len(right) - both
        left_out[ALONE.format("right")] += len(wrong) - both
    return sorted(found, key=lambda pair: pair.chosen), +left_out


_Nearness = tuple[Callable[[int], Hashable], ...]


def _nearness(told: Usable, known: Sequence[tuple[Any, ...]]) -> _Nearness:
    """What two replies have in common, from most to least."""
    return (
        lambda row: (told.prompt[row], known[row][:2]),
        lambda row: told.prompt[row],
        lambda row: known[row][:2],
        lambda row: None,
    )


def _matched(right: list[int], wrong: list[int], nearness: _Nearness) -> list[tuple[int, int]]:
    """Rows of both lists in twos, each row once, the nearest first."""
    matched: list[tuple[int, int]] = []
    for near in nearness:
        waiting: dict[Hashable, deque[int]] = defaultdict(deque)
        for row in wrong:
            waiting[near(row)].append(row)
        twos = [(row, waiting[near(row)].popleft()) for row in right if waiting[near(row)]]
        matched += twos
        used = {row for two in twos for row in two}
        right = [row for row in right if row not in used]
        wrong = [row for row in wrong if row not in used]
        if not right or not wrong:
            break
    return matched


def pair_lines(turns: pl.DataFrame, of: Dialogues, found: Sequence[Pair]) -> Iterator[bytes]:
    """Pairs in trl's conversational preference format, one JSON object a line.

    ``prompt``, ``chosen`` and ``rejected`` are lists of messages; ``holdfast`` says what is shown
    and where both replies come from.
    """
    for batch in in_batches(found):
        chats = {pair.chosen: of.up_to(pair.chosen) for pair in batch}
        rejected = [pair.rejected for pair in batch]
        texts = said(turns, [*(row for chat in chats.values() for row in chat), *rejected])
        sources = sources_of(turns, [*chats, *rejected])
        for pair in batch:
            *prompt, kept = messages(texts, chats[pair.chosen])
            abandoned = {"role": "assistant", "content": texts[pair.rejected][1]}
            line = {
                "prompt": prompt,
                "chosen": [kept],
                "rejected": [abandoned],
                "holdfast": {
                    "version": 1,
                    "kind": pair.kind,
                    "prefix": pair.prefix,
                    "chosen": sources[pair.chosen],
                    "rejected": sources[pair.rejected],
                },
            }
            yield f"{json_text(line)}\n".encode()
