"""The shards that a run is split into: who asks which questions."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from holdfast.dialogue.budget import Budget
from holdfast.errors import InputError
from holdfast.questions.loading import QuestionSet
from holdfast.questions.question import Question


@dataclass(frozen=True, order=True)
class Shard:
    """The share of the questions that one process asks.

    Attributes:
        of: number of shards.
        number: which of them, from 1.
    """

    of: int
    number: int

    def __str__(self) -> str:
        """As the command line writes it."""
        return f"{self.number}/{self.of}"

    @classmethod
    def parse(cls, text: str) -> "Shard":
        """The shard that ``K/N`` names."""
        number, _, of = text.partition("/")
        if not (number.isdecimal() and of.isdecimal() and 1 <= int(number) <= int(of)):
            raise InputError(
                f"'{text}' is not a shard", field="--shard", remedy="Write K/N with K from 1 to N"
            )
        return cls(int(of), int(number))

    @classmethod
    def all(cls, of: int) -> list["Shard"]:
        """Every shard of a run."""
        return [cls(of, number) for number in range(1, of + 1)]

    def holds(self, slot: int) -> bool:
        """Whether the question in that slot is one of this shard's; they are dealt in turn."""
        return slot % self.of == self.number - 1

    def share(self, total: int) -> int:
        """This shard's share of a number; those of all shards add up to it."""
        return total // self.of + (self.number <= total % self.of)

    def budget(self, whole: Budget) -> Budget:
        """This shard's share of what is left of a budget, so that all together keep to it."""
        calls, tokens, cost = whole.call_limit, whole.token_limit, whole.cost_limit
        return Budget(
            None if calls is None else self.share(max(0, calls - whole.calls)),
            None if tokens is None else self.share(max(0, tokens - whole.tokens)),
            None if cost is None else max(0.0, cost - whole.cost) / self.of,
            whole.folder,
        )


def slots(sets: Iterable[QuestionSet]) -> Mapping[str, int]:
    """Slot by question as it is asked, over all sets.

    Questions that read alike have one slot: in two shards, their requests would be made twice.
    """
    slot_by_text: dict[str, int] = {}
    for question_set in sets:
        for question in question_set.questions:
            slot_by_text.setdefault(as_asked(question), len(slot_by_text))
    return slot_by_text


def as_asked(question: Question) -> str:
    """What a model can see of a question."""
    return repr((question.stem, tuple(question.options.items())))
