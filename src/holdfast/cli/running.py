"""Driving a run: what it needs is made, models are asked, the turns table is derived."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from inspect_ai.model import Model

from holdfast.challenges import GENERATE, GENERATED
from holdfast.dialogue import Budget
from holdfast.errors import IncompleteRunError, InputError, InterruptedRunError
from holdfast.protocols import reasons
from holdfast.results import write_turns

from .evaluating import Evaluation, unfinished
from .labels import keep_labels, read_labels
from .outcome import Outcome
from .preparing import Prepared, Preparing
from .settings import Planned, check_prices, preparation


@dataclass(frozen=True)
class Running:
    """A run about to be made: ``holdfast run`` with everything resolved."""

    studies: Sequence[Planned]
    models: Sequence[Model]
    log_dir: str
    roles: Mapping[str, Model] = field(default_factory=dict)
    labels: str | None = None
    limit: int | None = None
    epochs: int | None = None
    generation: Mapping[str, Any] = field(default_factory=dict)
    max_calls: int | None = None
    max_tokens: int | None = None
    max_cost: float | None = None
    text: bool = True

    def run(self) -> Outcome:
        """Make the run, or go on with it.

        Raises:
            InputError: the log dir holds a run with other settings, or a price is missing.
            IncompleteRunError: contexts or wrong options could not be finished.
            InterruptedRunError: the user stopped it.
        """
        check_prices([*self.models, *self.roles.values()], self.max_cost)
        sets = [study.study.questions for study in self.studies]
        labels = read_labels(self.labels, sets) if self.labels else []
        budget = Budget(self.max_calls, self.max_tokens, self.max_cost)
        prepared: list[Prepared] = []
        studies = [self._with_inputs(study, budget, prepared) for study in self.studies]
        logs = Evaluation(
            studies,
            self.models,
            self.log_dir,
            roles={role: model for role, model in self.roles.items() if role != "generator"},
            limit=self.limit,
            epochs=self.epochs,
            generation=self.generation,
            budget=budget,
        ).run()
        keep_labels(labels, self.log_dir)
        turns, table = write_turns(self.log_dir, text=self.text)
        if any(log.status == "cancelled" for log in logs):
            raise InterruptedRunError
        left_out: dict[str, Counter[str]] = {}
        for study in studies:
            for path, why in reasons(study.study, self.limit).items():
                left_out.setdefault(path, Counter()).update(why)
        return Outcome(
            self.log_dir,
            turns,
            budget,
            table,
            left_out,
            {
                study.study.questions.name: len(study.study.questions.left_out)
                for study in studies
                if study.study.questions.left_out
            },
            [remark for study in studies for remark in study.study.remarks()],
            prepared,
            unfinished(logs),
        )

    def _with_inputs(self, study: Planned, budget: Budget, prepared: list[Prepared]) -> Planned:
        """The study with the files in place that a generator is to make for it."""
        for setting, name in study.protocol.generated.items():
            if study.args.get(setting) != GENERATE:
                continue
            if not study.study.needs(setting):
                study = study.with_args(**{setting: "none"})
                continue
            if "://" in self.log_dir:
                raise InputError(
                    f"cannot hold generated {name}",
                    self.log_dir,
                    remedy=f"Make a file with 'holdfast {name} build', and give that",
                )
            file = f"{self.log_dir}/{name}.jsonl"
            made = Preparing(
                preparation(name, study.args),
                self.roles["generator"],
                file,
                f"{self.log_dir}/preparation",
                limit=self.limit,
                budget=budget,
                generation={
                    key: value
                    for key, value in self.generation.items()
                    if key in ("max_connections", "max_retries", "timeout")
                },
            ).run()
            if made.unfinished:
                raise IncompleteRunError(f"{file}: {made.unfinished}")
            prepared.append(made)
            study = study.with_args(**{setting: f"{GENERATED}{file}"})
        return study
