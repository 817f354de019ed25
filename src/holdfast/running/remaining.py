"""What is left to ask: of a study, of a model, in one of the shards that a run is split into."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from inspect_ai import Task, task_with
from inspect_ai.dataset import MemoryDataset
from inspect_ai.log import EvalLog, read_eval_log_sample_summaries
from inspect_ai.model import Model

from holdfast.dialogue import Budget
from holdfast.errors import InputError
from holdfast.questions import Question, QuestionSet
from holdfast.results import SHARD, run_settings

from .studies import Planned


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
                f"'{text}' is no shard", field="--shard", remedy="Write K/N with K from 1 to N"
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
        calls, tokens, cost = whole.max_calls, whole.max_tokens, whole.max_cost
        return Budget(
            None if calls is None else self.share(max(0, calls - whole.calls)),
            None if tokens is None else self.share(max(0, tokens - whole.tokens)),
            None if cost is None else max(0.0, cost - whole.cost) / self.of,
            whole.folder,
        )


WHOLE = Shard(1, 1)
"""All questions, by what of them is not finished."""


def slots(sets: Iterable[QuestionSet]) -> Mapping[str, int]:
    """Slot by question as it is asked, over all sets.

    Questions that read alike have one slot: in two shards, their requests would be made twice.
    """
    found: dict[str, int] = {}
    for one in sets:
        for question in one.questions:
            found.setdefault(as_asked(question), len(found))
    return found


def as_asked(question: Question) -> str:
    """What a model can see of a question."""
    return repr((question.stem, tuple(question.options.items())))


@dataclass(frozen=True)
class Remaining:
    """Questions that a model has yet to finish in a shard, by their places in the study's set."""

    study: Planned
    model: Model
    shard: Shard
    places: tuple[int, ...]
    epochs: int

    @property
    def questions(self) -> list[Question]:
        """The questions."""
        asked = self.study.study.questions.questions
        return [asked[place] for place in self.places]

    def task(self) -> Task:
        """The study's task over these questions; its log is one of the same run."""
        task = self.study.task()
        samples = [task.dataset[place] for place in self.places]
        return task_with(
            task,
            dataset=MemoryDataset(samples, name=task.dataset.name),
            model=self.model,
            metadata={
                **(task.metadata or {}),
                SHARD: {"shard": str(self.shard), "places": list(self.places)},
            },
        )


def remaining(
    study: Planned,
    model: Model,
    shard: Shard,
    slots: Mapping[str, int],
    finished: frozenset[str],
    limit: int | None,
    epochs: int,
) -> Remaining:
    """The questions of a shard that are not finished."""
    asked = study.study.questions.first(limit).questions
    places = tuple(
        place
        for place, question in enumerate(asked)
        if shard.holds(slots[as_asked(question)]) and question.id not in finished
    )
    return Remaining(study, model, shard, places, epochs)


def asks_alike(log: EvalLog, task: Task, model: Model, settings: Mapping[str, Any]) -> bool:
    """Whether a log holds what the task would ask of the model, as much of it in the same words."""
    spec = log.eval
    here = (task.name, task.dataset.name, str(model), model.explicit_base_url)
    if (spec.task, spec.dataset.name, spec.model, spec.model_base_url) != here:
        return False
    there = run_settings(log)
    arguments = {name: value for name, value in there.items() if name.startswith("-M ")}
    given = {f"-M {name}": value for name, value in model.model_args.items()}
    return arguments == given and all(there.get(k) == v for k, v in settings.items())


def finished(logs: Iterable[EvalLog], epochs: int) -> frozenset[str]:
    """Ids of the questions that some log holds finished, in every epoch."""
    records: set[tuple[str, int]] = set()
    for log in logs:
        try:
            summaries = read_eval_log_sample_summaries(log.location)
        except Exception:  # being written by another shard: none of these questions is in it
            continue
        records |= {(str(one.id), one.epoch) for one in summaries if one.error is None}
    counts = Counter(id for id, epoch in records if epoch <= epochs)
    return frozenset(id for id, n in counts.items() if n == epochs)
