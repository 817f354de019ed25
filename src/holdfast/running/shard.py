"""Shards: the distribution of a run's questions among processes."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from holdfast.dialogue.budget import Budget
from holdfast.errors import InputError
from holdfast.questions.loading import QuestionSet
from holdfast.questions.question import Question


@dataclass(frozen=True, order=True)
class Shard:
    """Share of the questions that one process asks.

    Attributes:
        of: number of shards.
        number: 1-based number of this shard.
    """

    of: int
    number: int

    def __str__(self) -> str:
        """Return the shard as on the command line."""
        return f"{self.number}/{self.of}"

    @classmethod
    def parse(cls, text: str) -> "Shard":
        """Parse a shard from ``K/N``."""
        number, _, of = text.partition("/")
        if not (number.isdecimal() and of.isdecimal() and 1 <= int(number) <= int(of)):
            raise InputError(
                f"'{text}' is not a shard", field="--shard", remedy="Write K/N with K from 1 to N"
            )
        return cls(int(of), int(number))

    @classmethod
    def all(cls, of: int) -> list["Shard"]:
        """Return all shards of a run."""
        return [cls(of, number) for number in range(1, of + 1)]

    def holds(self, slot: int) -> bool:
        """Whether a slot belongs to this shard; slots are assigned in turn."""
        return slot % self.of == self.number - 1

    def share(self, total: int) -> int:
        """Return this shard's share of a number; the shares of all shards add up to it."""
        return total // self.of + (self.number <= total % self.of)

    def budget(self, whole: Budget) -> Budget:
        """Return this shard's share of the remaining budget; all shards together stay within it."""
        calls, tokens, cost = whole.call_limit, whole.token_limit, whole.cost_limit
        return Budget(
            None if calls is None else self.share(max(0, calls - whole.calls)),
            None if tokens is None else self.share(max(0, tokens - whole.tokens)),
            None if cost is None else max(0.0, cost - whole.cost) / self.of,
            whole.folder,
        )


def slots(sets: Iterable[QuestionSet]) -> Mapping[str, int]:
    """Return the slot of each question as asked, over all sets.

    Questions with equal texts share a slot, because two shards would repeat their requests.
    """
    slot_by_text: dict[str, int] = {}
    for question_set in sets:
        for question in question_set.questions:
            slot_by_text.setdefault(as_asked(question), len(slot_by_text))
    return slot_by_text


def as_asked(question: Question) -> str:
    """Return the parts of a question that a model can see."""
    return repr((question.stem, tuple(question.options.items())))
