"""Driving a run: what it needs is made, models are asked, the turns table is derived."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import polars as pl
from inspect_ai.model import Model

from holdfast.challenges import GENERATE, GENERATED
from holdfast.dialogue import Budget, refusals
from holdfast.errors import IncompleteRunError, InputError, InterruptedRunError
from holdfast.protocols import reasons
from holdfast.results import keep_plan, logs_in, write_turns

from .estimating import estimates, lacking
from .evaluating import Evaluation, unfinished
from .labels import keep_labels, read_labels
from .log_dir_lock import holding, kept_in
from .outcome import Outcome
from .preparing import Prepared, Preparing
from .settings import Planned, check_prices, preparation
from .shard_lock import check_shards_free


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
            InputError: the log dir holds a run with other settings or another process is at it,
                or a price is missing.
            IncompleteRunError: contexts or wrong options could not be finished.
            InterruptedRunError: the user stopped it before anything was logged.
        """
        budget, labels = self.budget(), self.labels_read()  # what is wrong leaves no log dir
        with holding(self.log_dir):
            check_shards_free(self.log_dir)
            studies, prepared = self.with_inputs(budget)
            try:
                logs = self.evaluation(studies, budget).run()
                interrupted = any(log.status == "cancelled" for log in logs)
            except InterruptedRunError:
                if not logs_in(self.log_dir):  # nothing to tell of
                    raise
                logs, interrupted = [], True
            keep_labels(labels, self.log_dir)
            turns = write_turns(self.log_dir, text=self.text)
            outcome = self.outcome(studies, budget, prepared, turns, unfinished(logs))
            return replace(outcome, interrupted=interrupted)

    def labels_read(self) -> list[Mapping[str, str]]:
        """The labels that are given, checked to be of these questions."""
        sets = [study.study.questions for study in self.studies]
        return read_labels(self.labels, sets) if self.labels else []

    def budget(self) -> Budget:
        """The budget of the whole run, nothing of it spent.

        Raises:
            InputError: it is one of dollars, and a price is missing.
        """
        check_prices([*self.models, *self.roles.values()], self.max_cost)
        return Budget(self.max_calls, self.max_tokens, self.max_cost, kept_in(self.log_dir))

    def evaluation(self, studies: Sequence[Planned], budget: Budget) -> Evaluation:
        """Studies, with their inputs in place, put to the models."""
        return Evaluation(
            studies,
            self.models,
            self.log_dir,
            roles={role: model for role, model in self.roles.items() if role != "generator"},
            limit=self.limit,
            epochs=self.epochs,
            generation=self.generation,
            budget=budget,
        )

    def outcome(
        self,
        studies: Sequence[Planned],
        budget: Budget,
        prepared: Sequence[Prepared],
        turns: tuple[str, pl.DataFrame],
        unfinished: str,
    ) -> Outcome:
        """What is left behind."""
        left_out: dict[str, Counter[str]] = {}
        for study in studies:
            for path, why in reasons(study.study, self.limit).items():
                left_out.setdefault(path, Counter()).update(why)
        path, table = turns
        roles = {role: str(model) for role, model in self.roles.items()}
        names = [str(model) for model in self.models]
        models = [*self.models, *self.roles.values()]
        lack = lacking(studies, self.limit)
        keep_plan(
            self.log_dir,
            estimates(self.studies, names, roles, self.limit, self.epochs),
            {one.questions: str(one) for one in lack},
        )
        return Outcome(
            self.log_dir,
            path,
            budget,
            table,
            left_out,
            {
                study.study.questions.name: len(study.study.questions.left_out)
                for study in studies
                if study.study.questions.left_out
            },
            [
                *(remark for study in studies for remark in study.study.remarks()),
                *(told for model in models for told in refusals(model)),
            ],
            prepared,
            unfinished,
            models=models,
            lacking=lack,
        )

    def with_inputs(self, budget: Budget) -> tuple[list[Planned], list[Prepared]]:
        """The studies, with what a generator is to make for them made, and what that was.

        Raises:
            IncompleteRunError: it could not be finished.
        """
        prepared: list[Prepared] = []
        studies = [self._with_inputs(study, budget, prepared) for study in self.studies]
        return studies, prepared

    def with_inputs_there(self) -> list[Planned]:
        """The studies with the files that ``with_inputs`` has made in another process."""
        return [self._with_inputs_there(study) for study in self.studies]

    def _with_inputs_there(self, study: Planned) -> Planned:
        for setting, name in study.protocol.generated.items():
            if study.args.get(setting) == GENERATE:
                made = f"{GENERATED}{self._made(name)}" if study.study.needs(setting) else "none"
                study = study.with_args(**{setting: made})
        return study

    def _made(self, name: str) -> str:
        return f"{self.log_dir}/{name}.jsonl"

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
            file = self._made(name)
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
                    if key
                    in (
                        "max_connections",
                        "max_retries",
                        "timeout",
                        "attempt_timeout",
                    )
                },
            ).run()
            if made.unfinished:
                raise IncompleteRunError(f"{file}: {made.unfinished}")
            prepared.append(made)
            study = study.with_args(**{setting: f"{GENERATED}{file}"})
        return study
