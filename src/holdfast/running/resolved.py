"""Resolved run: options are resolved, models are asked, and the turns table is written."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import fspath
from typing import Any

import polars as pl
from inspect_ai.model import Model

from holdfast.challenges.prepared import GENERATE, GENERATED_PREFIX
from holdfast.dialogue.budget import Budget
from holdfast.dialogue.guarding import refusals
from holdfast.errors import IncompleteRunError, InputError, InterruptedRunError
from holdfast.protocols.installed import named_protocols
from holdfast.protocols.protocol import Study
from holdfast.questions.bank import BANK_NAME
from holdfast.results.records import keep_plan
from holdfast.results.runs import logs_in
from holdfast.results.turns import WrittenTurns, write_turns

from . import models
from .evaluation import Evaluation
from .generation import UNSENT, Generation
from .log_dir import PREPARATION, as_log_dir, check_shards_free, kept_in, lock_log_dir
from .preparation import FileGeneration, GeneratedFile, keep_labels, read_labels
from .progress import Progress
from .studies import (
    Lacking,
    check_assistants,
    check_inputs,
    check_readers,
    check_roles,
    estimates,
    generating,
    generation,
    lacking,
    planned,
    settings_of,
)


@dataclass(frozen=True)
class Outcome:
    """Result of a run.

    Attributes:
        log_dir: directory of the logs.
        turns: path of the turns table.
        budget: spending of this call.
        table: the turns without texts.
        left_out: number of questions that lack what a technique needs, by technique path and need.
        questions_left_out: number of questions with known defects that were not asked, by question
            set.
        remarks: notes on unused inputs.
        prepared: files generated before the run.
        unfinished: unfinished questions and the reasons, empty if the run is complete.
        interrupted: whether the user stopped it.
        models: the models asked, including helpers.
        lacking: techniques skipped for every question because there are no contexts.
        runs: ids of the runs of this call, in the order asked.
    """

    log_dir: str
    turns: str
    budget: Budget
    table: pl.DataFrame
    left_out: Mapping[str, Counter[str]]
    questions_left_out: Mapping[str, int]
    remarks: Sequence[str]
    prepared: Sequence[GeneratedFile]
    unfinished: str
    interrupted: bool = False
    models: Sequence[Model] = ()
    lacking: Sequence[Lacking] = ()
    runs: Sequence[str] = ()

    @property
    def run_turns(self) -> pl.DataFrame:
        """Return the turns of the runs of this call, in the order asked."""
        order = pl.DataFrame({"run": self.runs}, {"run": pl.String})
        return order.join(self.table, on="run", maintain_order="left_right").select(
            self.table.columns
        )


@dataclass(frozen=True)
class Running:
    """Run with all options resolved."""

    studies: Sequence[Study]
    models: Sequence[Model]
    log_dir: str
    roles: Mapping[str, Model] = field(default_factory=dict)
    labels: str | None = None
    limit: int | None = None
    epochs: int | None = None
    generation: Mapping[str, Any] = field(default_factory=dict)
    call_limit: int | None = None
    token_limit: int | None = None
    cost_limit: float | None = None
    after: int = 0
    text: bool = True
    progress: Progress = field(default_factory=Progress)

    def run(self, written_turns: WrittenTurns | None = None) -> Outcome:
        """Run or resume.

        Args:
            written_turns: turns that this process has logged there before.

        Raises:
            InputError: the log directory contains a run with other settings, another process uses
                it, or a price is missing.
            IncompleteRunError: contexts or wrong options could not be finished.
            InterruptedRunError: the user stopped it before anything was logged.
        """
        written_turns = written_turns or WrittenTurns()
        return self.made(lambda evaluation: ask_here(evaluation, written_turns), written_turns)

    def made(
        self,
        ask: Callable[[Evaluation], tuple[str, bool]],
        written_turns: WrittenTurns | None = None,
    ) -> Outcome:
        """Prepare, ask, and write the turns table.

        Args:
            ask: function that asks everything. It returns the unfinished questions in words, and
                whether the user stopped it.
            written_turns: store for the turns that this process logs.
        """
        budget, sets = self.budget(), [study.questions for study in self.studies]
        tested_names = [str(model) for model in self.models]
        # before the directory is created, so that invalid labels leave none
        labels = read_labels(self.labels, sets, tested_names) if self.labels else []
        with lock_log_dir(self.log_dir):
            check_shards_free(self.log_dir)
            studies, files_made = self.with_inputs(budget)
            evaluation = self.evaluation(studies, budget)
            unfinished_reason, was_interrupted = ask(evaluation)
            keep_labels(labels, self.log_dir)
            turns = write_turns(self.log_dir, text=self.text, written_logs=written_turns)
            outcome = self._outcome(studies, budget, files_made, turns, unfinished_reason)
            return replace(outcome, interrupted=was_interrupted, runs=evaluation.runs())

    def budget(self) -> Budget:
        """Return the budget of the whole run, with nothing spent."""
        models.check_prices([*self.models, *self.roles.values()], self.cost_limit)
        return Budget(self.call_limit, self.token_limit, self.cost_limit, kept_in(self.log_dir))

    def evaluation(self, studies: Sequence[Study], budget: Budget) -> Evaluation:
        """Return the evaluation of studies whose inputs exist."""
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
        studies: Sequence[Study],
        budget: Budget,
        files_made: Sequence[GeneratedFile],
        turns: tuple[str, pl.DataFrame],
        unfinished_reason: str,
    ) -> Outcome:
        """Build the result."""
        left_out: dict[str, Counter[str]] = {}
        for study in studies:
            for path, why in study.plan(self.limit, self.roles).skipped_paths.items():
                left_out.setdefault(path, Counter()).update(why)
        path, table = turns
        roles = {role: str(model) for role, model in self.roles.items()}
        names = [str(model) for model in self.models]
        models_asked = [*self.models, *self.roles.values()]
        stateful = [str(m) for m in self.models if getattr(m.api, "is_stateful", False)]
        lack = lacking(studies, self.limit, self.roles)
        keep_plan(
            self.log_dir,
            estimates(self.studies, names, roles, self.limit, stateful=stateful),
            {lacking_set.questions: str(lacking_set) for lacking_set in lack},
        )
        sets = [study.questions for study in studies]
        remarks = [remark for study in studies for remark in study.settings.notes()]
        return Outcome(
            self.log_dir,
            path,
            budget,
            table,
            left_out,
            questions_left_out={
                lacking_set.name: len(lacking_set.left_out)
                for lacking_set in sets
                if lacking_set.left_out
            },
            remarks=[*remarks, *(refusal for model in models_asked for refusal in refusals(model))],
            prepared=files_made,
            unfinished=unfinished_reason,
            models=models_asked,
            lacking=lack,
        )

    def with_inputs(self, budget: Budget) -> tuple[list[Study], list[GeneratedFile]]:
        """Generate missing inputs; return the studies with them, and the files."""
        files_made: list[GeneratedFile] = []
        studies = [self._with_inputs(study, budget, files_made) for study in self.studies]
        return studies, files_made

    def with_inputs_there(self) -> list[Study]:
        """Return the studies with the files that ``with_inputs`` generated in another process."""
        return [self._with_inputs_there(study) for study in self.studies]

    def _with_inputs_there(self, study: Study) -> Study:
        for setting, name in study.protocol.generated.items():
            if study.args.get(setting) == GENERATE:
                origin = (
                    f"{GENERATED_PREFIX}{self._input_file(name)}"
                    if study.needs(setting)
                    else "none"
                )
                study = study.with_args(**{setting: origin})
        return study

    def _input_file(self, name: str) -> str:
        return f"{self.log_dir}/{name}.jsonl"

    def _with_inputs(self, study: Study, budget: Budget, files_made: list[GeneratedFile]) -> Study:
        """Return the study with files in place of inputs to generate."""
        for setting, name in study.protocol.generated.items():
            if study.args.get(setting) != GENERATE:
                continue
            if not study.needs(setting):
                study = study.with_args(**{setting: "none"})
                continue
            if "://" in self.log_dir:
                raise InputError(
                    f"cannot hold generated {name}",
                    self.log_dir,
                    remedy=f"Make a file with 'holdfast generate {name}', and give that",
                )
            file = self._input_file(name)
            file_generation = FileGeneration(
                generation(name, study.args, study.questions),
                self.roles["generator"],
                file,
                f"{self.log_dir}/{PREPARATION}",
                limit=self.limit,
                budget=budget,
                generation={
                    name: value for name, value in self.generation.items() if name in UNSENT
                },
                progress=self.progress,
            ).run()
            if file_generation.unfinished:
                raise IncompleteRunError(f"{file}: {file_generation.unfinished}")
            files_made.append(file_generation)
            study = study.with_args(**{setting: f"{GENERATED_PREFIX}{file}"})
        return study


def ask_here(evaluation: Evaluation, written_turns: WrittenTurns) -> tuple[str, bool]:
    """Ask everything in this process; return what is unfinished, and whether it was interrupted."""
    try:
        outcome = replace(evaluation, turns=written_turns).run()
    except InterruptedRunError:
        if not logs_in(evaluation.log_dir):  # nothing to report
            raise
        return "", True
    return outcome.unfinished, outcome.interrupted


@dataclass(frozen=True)
class Plan:
    """Estimate of a run.

    Attributes:
        table: a row for each study and model, and for each helper, as in ``estimates``.
        left_out: path of a technique, missing input, and number of questions, by study.
        lacking: techniques skipped for every question because there are no contexts.
    """

    table: pl.DataFrame
    left_out: Sequence[tuple[str, str, int]]
    lacking: Sequence[Lacking]


OF_PROTOCOLS = ("seed", "shuffle")
"""Options that set a setting of protocols."""


def _log_dir(arguments: Mapping[str, Any]) -> str:
    return as_log_dir(fspath(arguments.get("log_dir", "runs")))


def _generation(arguments: Mapping[str, Any]) -> Generation:
    """Return the generation settings; separate options override those of a file."""
    options = Generation.read({"max_tokens": arguments.get("max_tokens")})
    return options.over(Generation.read(arguments.get("generate_config")))


def resolved(arguments: Mapping[str, Any], progress: Progress | None = None) -> Running:
    """Resolve the options of a run, in the main process and in the process of each shard.

    Args:
        arguments: ``protocols``, ``model``, ``questions`` and ``RunOptions``.
        progress: progress callback.

    Raises:
        InputError: an option has an unknown name, or a file cannot be used.
    """
    log_dir = _log_dir(arguments)
    models.load_prices(arguments.get("prices"))
    roles = models.roles(_roles(arguments))
    studies = _studies(arguments, roles)
    tested_models = models.models(
        arguments.get("model") or (),
        base_url=arguments.get("model_base_url"),
        model_args=arguments.get("model_args") or (),
        target=arguments.get("target"),
    )
    check_readers(roles, tested_models)
    check_assistants(studies, tested_models)
    _check_inputs(arguments, studies, roles, tested_models)
    names = ("labels", "limit", "epochs", "call_limit", "token_limit", "cost_limit")
    as_given: dict[str, Any] = {name: arguments.get(name) for name in names}
    return Running(
        studies=studies,
        roles=roles,
        models=tested_models,
        log_dir=log_dir,
        generation=_generation(arguments).settings(tested_models, arguments.get("max_connections")),
        text=not arguments.get("no_text"),
        progress=progress or Progress(),
        **as_given,
    )


def plan(arguments: Mapping[str, Any], reply_tokens: int) -> Plan:
    """Estimate the run that the options describe, without calling a model.

    Args:
        arguments: as for ``resolved``.
        reply_tokens: assumed length of a reply.

    Raises:
        InputError: an option has an unknown name, or a file cannot be used.
    """
    studies, tested_names, roles = checked(arguments)
    limit = arguments.get("limit")
    left_out = [
        (path, reason, n)
        for study in studies
        for path, why in study.plan(limit, roles, reply_tokens=reply_tokens).skipped_paths.items()
        for reason, n in why.items()
    ]
    stateful = models.stateful_names(tested_names, arguments.get("target"))
    rows = estimates(studies, tested_names, roles, limit, reply_tokens, stateful)
    table = pl.DataFrame(rows, schema_overrides={"cost": pl.Float64})
    return Plan(table, left_out, lacking(studies, limit, roles))


def checked(arguments: Mapping[str, Any]) -> tuple[list[Study], Sequence[str], Mapping[str, str]]:
    """Return the studies, the models under test and the helpers by role, without calling a model.

    Args:
        arguments: as for ``resolved``.

    Raises:
        InputError: an option has an unknown name, or a file cannot be used.
    """
    _log_dir(arguments)
    models.load_prices(arguments.get("prices"))
    roles = models.role_names(_roles(arguments))
    models.checked_names(list(roles.values()) or ["simulated/sycophant"])
    studies = _studies(arguments, roles)
    tested_names = models.checked_names(arguments.get("model") or (), arguments.get("target"))
    check_readers(roles, tested_names)
    _check_inputs(arguments, studies, roles, tested_names)
    generation = _generation(arguments)
    model_args = models.arguments(arguments.get("model_args") or ())
    for name in tested_names:
        models.check_server(name, arguments.get("model_base_url"), model_args)
        generation.check_supported(name, models.provider_class(name))
    return studies, tested_names, roles


def _check_inputs(
    arguments: Mapping[str, Any],
    studies: Sequence[Study],
    roles: Mapping[str, object],
    tested_models: Sequence[object],
) -> None:
    is_allowed = bool(arguments.get("allow_simulated_inputs"))
    check_inputs(studies, roles.get("generator"), tested_models, is_allowed=is_allowed)


def _roles(arguments: Mapping[str, Any]) -> list[str]:
    return models.listed_roles(arguments.get("model_role"))


def _studies(arguments: Mapping[str, Any], bound: Mapping[str, object]) -> list[Study]:
    """Return the protocols on the question sets, after a check of the helpers that they need."""
    protocols = named_protocols(arguments["protocols"])
    options = {name: arguments[name] for name in OF_PROTOCOLS if arguments.get(name) is not None}
    settings = {**options, **settings_of(protocols, arguments.get("task_args") or ())}
    settings = generating(protocols, settings, "generator" in bound)
    defences = arguments.get("defence") or ()
    defences = [defences] if isinstance(defences, str) else defences
    questions = arguments.get("questions") or [BANK_NAME]
    studies = planned(protocols, questions, settings, arguments.get("epochs"), defences)
    check_roles(studies, bound)
    return studies
