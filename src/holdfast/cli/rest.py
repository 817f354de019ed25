"""What a study has yet to ask of a model, by the logs that are there."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from inspect_ai import Task, task_with
from inspect_ai.dataset import MemoryDataset
from inspect_ai.log import EvalLog, read_eval_log_sample_summaries
from inspect_ai.model import Model

from holdfast.questions import Question
from holdfast.results import SHARD, run_settings

from .settings import Planned
from .shard import Shard, as_asked


@dataclass(frozen=True)
class Rest:
    """Questions of a study that a model has yet to finish, in a shard.

    Attributes:
        study: the study with its settings.
        model: who is asked.
        shard: whose questions they are.
        places: where they stand in the study's set, from 0.
        epochs: times each is asked.
    """

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


def rest(
    study: Planned,
    model: Model,
    shard: Shard,
    slots: Mapping[str, int],
    finished: frozenset[str],
    limit: int | None,
    epochs: int,
) -> Rest:
    """The questions of a shard that are not finished.

    Args:
        study: the study with its settings.
        model: who is asked.
        shard: which questions count.
        slots: slot by question as it is asked.
        finished: ids of questions.
        limit: first questions only, before they are dealt to shards.
        epochs: times each is asked.
    """
    asked = study.study.questions.first(limit).questions
    places = tuple(
        place
        for place, question in enumerate(asked)
        if shard.holds(slots[as_asked(question)]) and question.id not in finished
    )
    return Rest(study, model, shard, places, epochs)


def asks_alike(log: EvalLog, task: Task, model: Model, settings: Mapping[str, Any]) -> bool:
    """Whether a log holds what the task would ask of the model: as much of it, in the same words.

    Args:
        log: header of a log.
        task: the study's task.
        model: who would be asked.
        settings: what fixes prompts and replies, by the names of ``run_settings``.
    """
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
