"""A run: what its options name is resolved, models are asked, the turns table is derived."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import fspath
from typing import Any

import polars as pl
from inspect_ai.model import GenerateConfig, Model
from pydantic import ValidationError

from holdfast.challenges import GENERATE, GENERATED
from holdfast.dialogue import Budget, refusals
from holdfast.errors import IncompleteRunError, InputError, InterruptedRunError
from holdfast.protocols import reasons
from holdfast.results import WrittenTurns, keep_plan, logs_in, write_turns

from . import Progress, models
from .evaluation import Evaluation
from .log_dir import PREPARATION, as_log_dir, check_shards_free, holding, kept_in
from .options import RETRIES
from .preparation import Prepared, Preparing, keep_labels, read_labels
from .studies import (
    Lacking,
    Planned,
    check_readers,
    check_roles,
    estimates,
    generating,
    lacking,
    planned,
    preparation,
)


@dataclass(frozen=True)
class Outcome:
    """What a run left behind.

    Attributes:
        log_dir: where the logs are.
        turns: path of the turns table.
        budget: what this call has spent.
        table: the turns, without texts.
        left_out: by technique path, how many questions lacked what it needs, and what that is.
        questions_left_out: by question set, how many known defects of it were not asked.
        remarks: what of the inputs was not used.
        prepared: what was generated before the run.
        unfinished: what is missing and why, empty when the run is complete.
        interrupted: whether the user has stopped it.
        models: who was asked, helpers too.
        lacking: techniques left out of every question because there are no contexts.
    """

    log_dir: str
    turns: str
    budget: Budget
    table: pl.DataFrame
    left_out: Mapping[str, Counter[str]]
    questions_left_out: Mapping[str, int]
    remarks: Sequence[str]
    prepared: Sequence[Prepared]
    unfinished: str
    interrupted: bool = False
    models: Sequence[Model] = ()
    lacking: Sequence[Lacking] = ()


@dataclass(frozen=True)
class Running:
    """A run about to be made, with everything that its options name resolved."""

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
    after: int = 0
    text: bool = True
    progress: Progress = field(default_factory=Progress)

    def run(self, written: WrittenTurns | None = None) -> Outcome:
        """Make the run, or go on with it.

        Args:
            written: the turns that this process has written there before.

        Raises:
            InputError: the log dir holds a run with other settings or another process is at it,
                or a price is missing.
            IncompleteRunError: contexts or wrong options could not be finished.
            InterruptedRunError: the user stopped it before anything was logged.
        """
        written = written or WrittenTurns()

        def ask(evaluation: Evaluation) -> tuple[str, bool]:
            try:
                ended = replace(evaluation, turns=written).run()
            except InterruptedRunError:
                if not logs_in(self.log_dir):  # nothing to tell of
                    raise
                return "", True
            return ended.unfinished, ended.interrupted

        return self.made(ask, written)

    def made(
        self, ask: Callable[[Evaluation], tuple[str, bool]], written: WrittenTurns | None = None
    ) -> Outcome:
        """Make the run.

        Args:
            ask: asks everything: what is unfinished, and whether the user has stopped it.
            written: the turns that it leaves in this process.
        """
        budget, sets = self.budget(), [study.study.questions for study in self.studies]
        labels = read_labels(self.labels, sets) if self.labels else []  # a wrong one leaves no dir
        with holding(self.log_dir):
            check_shards_free(self.log_dir)
            studies, prepared = self.with_inputs(budget)
            unfinished, interrupted = ask(self.evaluation(studies, budget))
            keep_labels(labels, self.log_dir)
            turns = write_turns(self.log_dir, text=self.text, written=written)
            outcome = self._outcome(studies, budget, prepared, turns, unfinished)
            return replace(outcome, interrupted=interrupted)

    def budget(self) -> Budget:
        """The budget of the whole run, nothing of it spent."""
        models.check_prices([*self.models, *self.roles.values()], self.max_cost)
        return Budget(self.max_calls, self.max_tokens, self.max_cost, kept_in(self.log_dir))

    def evaluation(self, studies: Sequence[Planned], budget: Budget) -> Evaluation:
        """Studies, with their inputs in place, put to the models."""
        return Evaluation(
            studies,
            self.models,
            self.log_dir,
            roles={role: model for role, model in self.roles.items() if role != "generator"},
            limit=self.limit,
            after=self.after,
            epochs=self.epochs,
            generation=self.generation,
            budget=budget,
            progress=self.progress,
        )

    def _outcome(
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
        asked = [*self.models, *self.roles.values()]
        lack = lacking(studies, self.limit)
        keep_plan(
            self.log_dir,
            estimates(self.studies, names, roles, self.limit, self.epochs),
            {one.questions: str(one) for one in lack},
        )
        sets = [study.study.questions for study in studies]
        remarks = [remark for study in studies for remark in study.study.remarks()]
        return Outcome(
            self.log_dir,
            path,
            budget,
            table,
            left_out,
            questions_left_out={one.name: len(one.left_out) for one in sets if one.left_out},
            remarks=[*remarks, *(told for model in asked for told in refusals(model))],
            prepared=prepared,
            unfinished=unfinished,
            models=asked,
            lacking=lack,
        )

    def with_inputs(self, budget: Budget) -> tuple[list[Planned], list[Prepared]]:
        """The studies, with what a generator is to make for them made, and what that was."""
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
                    remedy=f"Make a file with 'holdfast prepare {name}', and give that",
                )
            file = self._made(name)
            made = Preparing(
                preparation(name, study.args),
                self.roles["generator"],
                file,
                f"{self.log_dir}/{PREPARATION}",
                limit=self.limit,
                budget=budget,
                generation={
                    name: value for name, value in self.generation.items() if name in _HOW_ASKED
                },
                progress=self.progress,
            ).run()
            if made.unfinished:
                raise IncompleteRunError(f"{file}: {made.unfinished}")
            prepared.append(made)
            study = study.with_args(**{setting: f"{GENERATED}{file}"})
        return study


_HOW_ASKED = ("max_connections", "max_retries", "timeout", "attempt_timeout")
"""Settings of generation that hold for what is prepared too."""


@dataclass(frozen=True)
class Plan:
    """What a run will take.

    Attributes:
        table: a row for each study and model, and for each helper, as ``estimates`` has them.
        left_out: path of a technique, what is lacking, and for how many questions, by study.
        lacking: techniques left out of every question because there are no contexts.
    """

    table: pl.DataFrame
    left_out: Sequence[tuple[str, str, int]]
    lacking: Sequence[Lacking]


_OF_STUDIES = (
    "contexts", "distractors", "exemplars", "seed", "shuffle", "stratify", "challenges", "fields",
)  # fmt: skip
"""Options that are settings of protocols."""


def resolved(given: Mapping[str, Any], progress: Progress | None = None) -> Running:
    """The run that options name, where they are given and in every shard's process.

    Args:
        given: ``protocols``, ``model``, ``questions`` and ``RunOptions``.
        progress: is told how it goes on.

    Raises:
        InputError: an option names something unknown, or a file cannot be used.
    """
    log_dir = as_log_dir(fspath(given.get("log_dir", "runs")))
    models.load_prices(given.get("prices"))
    roles = models.roles(_roles(given))
    studies = _studies(given, roles)
    tested = models.models(
        given["model"],
        base_url=given.get("model_base_url"),
        model_args=given.get("model_args") or (),
    )
    check_readers(roles, tested)
    names = ("labels", "limit", "epochs", "max_calls", "max_tokens", "max_cost")
    as_given: dict[str, Any] = {name: given.get(name) for name in names}
    return Running(
        studies=studies,
        roles=roles,
        models=tested,
        log_dir=log_dir,
        generation=_generation(given, tested),
        text=not given.get("no_text"),
        progress=progress or Progress(),
        **as_given,
    )


def plan(given: Mapping[str, Any], reply_tokens: int) -> Plan:
    """What the run that options name will take; no model is called.

    Args:
        given: as for ``resolved``.
        reply_tokens: assumed length of a reply.

    Raises:
        InputError: an option names something unknown, or a file cannot be used.
    """
    models.load_prices(given.get("prices"))
    roles = models.role_names(_roles(given))
    models.checked_names(list(roles.values()) or ["simulated/sycophant"])
    studies, limit = _studies(given, roles), given.get("limit")
    tested = models.checked_names(given["model"])
    check_readers(roles, tested)
    left_out = [
        (path, reason, n)
        for study in studies
        for path, why in reasons(study.study, limit).items()
        for reason, n in why.items()
    ]
    rows = estimates(studies, tested, roles, limit, given.get("epochs"), reply_tokens)
    table = pl.DataFrame(rows, schema_overrides={"cost": pl.Float64})
    return Plan(table, left_out, lacking(studies, limit))


def _roles(given: Mapping[str, Any]) -> list[str]:
    return models.role_arguments(
        given.get("model_role"),
        given.get("generator"),
        given.get("reader"),
        reader_all=given.get("reader_all", False),
    )


def _studies(given: Mapping[str, Any], bound: Mapping[str, object]) -> list[Planned]:
    """The protocols on the question sets, checked to have the helpers that they need."""
    common = {name: given.get(name) for name in _OF_STUDIES}
    common = generating(given["protocols"], common, "generator" in bound)
    task_args = given.get("task_args") or ()
    named = (given["protocols"], given["questions"])
    defences = given.get("defence") or ()
    defences = [defences] if isinstance(defences, str) else defences
    studies = planned(*named, common, task_args, given.get("epochs"), defences)
    check_roles(studies, bound)
    return studies


_ALIKE = (
    "top_p", "frequency_penalty", "presence_penalty", "reasoning_effort", "reasoning_tokens",
    "reasoning_summary", "verbosity", "effort", "cache_prompt", "batch",
)  # fmt: skip


_GENERATION = {
    "temperature": "temperature",
    "max_output_tokens": "max_tokens",
    "max_connections": "max_connections",
    "max_retries": "max_retries",
    "timeout": "timeout",
    "attempt_timeout": "attempt_timeout",
    **{name: name for name in _ALIKE},
}
"""Inspect's setting of generation, by option."""

_NOT_LEAN = (
    "reasoning_tokens", "reasoning_summary", "verbosity", "effort", "cache_prompt", "batch",
)  # fmt: skip
"""What ``lean/MODEL`` has no name for."""

_BATCH_SECONDS = 2 * 24 * 3600
"""An attempt that waits for a batch: providers take up to a day."""


def _generation(given: Mapping[str, Any], tested: Sequence[Model]) -> dict[str, Any]:
    """Settings of generation that are given, by Inspect's names."""
    of = {"max_retries": RETRIES, **given}
    found = {
        setting: of[option] for option, setting in _GENERATION.items() if of.get(option) is not None
    }
    if "cache_prompt" in found:
        found["cache_prompt"] = models.typed(found["cache_prompt"])
    try:
        GenerateConfig.model_validate(found)
    except ValidationError as error:
        fault = error.errors()[0]
        raise InputError(
            f"'{fault['input']}' does not do",
            field=_option(str(fault["loc"][0])),
            remedy=fault["msg"],
        ) from error
    unsent = [name for name in _NOT_LEAN if name in found]
    for model in tested:
        if unsent and str(model).startswith("lean/"):
            raise InputError(
                f"'{model}' cannot be sent it",
                field=_option(unsent[0]),
                remedy="Give -M NAME=VALUE as the server calls it, or another provider",
            )
    if "batch" in found:
        found.setdefault("attempt_timeout", _BATCH_SECONDS)
    return found


def _option(setting: str) -> str:
    return f"--{setting.replace('_', '-')}"
