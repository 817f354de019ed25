"""Studies put to models in a log dir: held against what is there, counted, gone on with."""

import asyncio
import gc
import io
import logging
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, field
from tempfile import TemporaryDirectory
from time import monotonic, sleep
from typing import Any

from inspect_ai import Task, eval, eval_set
from inspect_ai.log import EvalLog, read_eval_log, read_eval_log_sample_summaries
from inspect_ai.model import GenerateConfig, Model

from holdfast.dialogue import (
    LASTING,
    Budget,
    Probe,
    fault_of_all,
    is_unreached,
    probing,
    run_budget,
)
from holdfast.errors import InputError, InterruptedRunError, counted
from holdfast.models import Lean
from holdfast.protocols import READER, READER_ALL, Study, readings_of
from holdfast.questions import Question
from holdfast.results import BEFORE, EXTENSIBLE, NO_CONTEXTS, RUNTIME, SHARD, logs_in, run_settings

from . import Progress
from .log_dir import check_shards_free, check_writable, generations_beside, holding, without_damaged
from .models import OFFLINE
from .remaining import WHOLE, Remaining, Shard, asks_alike, finished, remaining, slots
from .studies import Planned

ATTEMPT_SECONDS = 600
"""A single attempt at a generation that takes longer is given up and made anew."""

_LONGEST_REASON = 600


PATIENCE = 10
"""Seconds for which a server that is starting is waited for before a study begins."""

_TASKS = 10
"""Studies put at once, as the framework has it for a set."""


@dataclass(frozen=True)
class Evaluation:
    """Studies put to models in one log dir.

    Attributes:
        studies: protocols or preparations with their settings.
        models: the models under test, or the generator of a preparation.
        log_dir: where the logs go; what is there for the same settings is gone on with.
        kind: ``protocol`` or ``preparation``.
        roles: helpers by role.
        limit: first questions only.
        epochs: times each question is asked; None leaves it to the protocol.
        generation: settings of generation over those of the task.
        budget: counts and bounds what is spent.
        shard: which questions are asked, None for all; whoever runs a shard holds its lock.
        progress: is told how it goes on.
    """

    studies: Sequence[Planned]
    models: Sequence[Model]
    log_dir: str
    kind: str = "protocol"
    roles: Mapping[str, Model] = field(default_factory=dict)
    limit: int | None = None
    epochs: int | None = None
    generation: Mapping[str, Any] = field(default_factory=dict)
    budget: Budget = field(default_factory=Budget)
    shard: Shard | None = None
    progress: Progress = field(default_factory=Progress)

    def run(self) -> list[EvalLog]:
        """Evaluate, or go on with it; headers of the newest log of each study and model."""
        with self._held(), generations_beside(self.log_dir):
            return self._run()

    @contextmanager
    def _held(self) -> Iterator[None]:
        if self.shard:  # whoever runs it holds it
            yield
        else:
            with holding(self.log_dir):
                check_shards_free(self.log_dir)
                without_damaged(self.log_dir, self.progress)
                yield

    def _run(self) -> list[EvalLog]:
        tasks = [study.task() for study in self.studies]
        for study, task in zip(self.studies, tasks, strict=True):
            self._check_settings(study, task)
        check_writable(self.log_dir)
        shard = self.shard
        if shard is None and any(SHARD in (log.eval.metadata or {}) for log in self._there()):
            shard = WHOLE  # the framework takes a log of some questions for one of all
        left = list(self.remaining(shard, tasks)) if shard else []
        total = self.generations(left) if shard else self._generations()
        with self.progress.asking(self.budget, total):
            token = run_budget.set(self.budget)
            try:
                if not self.shard:  # whoever runs it has probed
                    self._probe(tasks[0])
                if shard:
                    return self._eval_remaining(left)
                self._eval(tasks)
            except KeyboardInterrupt:
                # not left to the command line's framework, which would end it without a word
                raise InterruptedRunError from None
            finally:
                run_budget.reset(token)
        logs = self._logs()
        if len(logs) < len(self.studies) * len(self.models):
            raise InputError(
                "a folder in it holds this very run, so none was made here",
                self.log_dir,
                remedy="Give another --log-dir",
            )
        return logs

    def probe(self) -> None:
        """Send the first request to each server by itself, before a study is run in shards."""
        with generations_beside(self.log_dir):
            token = run_budget.set(self.budget)
            try:
                self._probe(self.studies[0].task())
            finally:
                run_budget.reset(token)

    def _probe(self, task: Task) -> None:
        """The same where generations are kept and counted; its reply is not asked for again."""
        if self._there():
            return
        for model in self.models:
            if str(model).startswith(OFFLINE):
                continue
            until = 0.0
            while (error := self._probed(task, model)) is not None:
                # from the first answer on: the first attempt loads what it needs
                until = until or monotonic() + PATIENCE
                if is_unreached(error) and monotonic() < until:
                    sleep(1)
                    continue
                fault = fault_of_all(error, str(model), model.api.base_url)
                if fault is None:  # it may pass, and is told with the question if it does not
                    break
                raise InputError(fault[0], f"'{model}'", remedy=fault[1])

    def _probed(self, task: Task, model: Model) -> Exception | None:
        """What the only attempt at the first request has raised; None where it was answered."""
        probe = Probe()
        token = probing.set(probe)
        disabled = logging.root.manager.disable
        logging.disable(logging.CRITICAL)
        try:
            with redirect_stdout(io.StringIO()), TemporaryDirectory() as folder:
                options = self._options() | {"log_dir": folder, "epochs": 1, "display": "none"}
                eval(task, model=model, limit=1, **options)
        finally:
            probing.reset(token)
            logging.disable(disabled)
            _close([model])
        # the study finds it kept, and has not saved a call by it
        self.budget.cached -= probe.answered
        return probe.error

    def remaining(self, shard: Shard, tasks: Sequence[Task] = ()) -> Iterator[Remaining]:
        """What each study has yet to ask of each model, in a shard."""
        headers = self._there()
        dealt = slots(study.study.questions for study in self.studies)
        for study, task in zip(
            self.studies, tasks or [study.task() for study in self.studies], strict=True
        ):
            settings = self._settings_of(study, task)
            for model in self.models:
                alike = [log for log in headers if asks_alike(log, task, model, settings)]
                epochs = self.epochs or study.study.epochs
                done = finished(alike, epochs)
                yield remaining(study, model, shard, dealt, done, self.limit, epochs)

    def _there(self) -> list[EvalLog]:
        return logs_in(self.log_dir, kind=self.kind)

    def _generations(self) -> int:
        return len(self.models) * sum(
            (self.epochs or study.study.epochs) * self._generations_for(study.study, question)
            for study in self.studies
            for question in study.study.questions.first(self.limit).questions
        )

    def generations(self, left: Sequence[Remaining]) -> int:
        """How many generations are yet to come, those from the cache too."""
        return sum(
            one.epochs * self._generations_for(one.study.study, question)
            for one in left
            for question in one.questions
        )

    def _generations_for(self, study: Study, question: Question) -> int:
        own = study.estimate(question, 0)
        # how many replies the rules leave to a reader nobody knows before
        every = readings_of(own, 0)[READER_ALL]
        helped = {**study.helped(question, 0), READER_ALL: every}
        counts = [helped[role].generations for role in helped.keys() & self.roles.keys()]
        return own.generations + sum(counts)

    def _eval_remaining(self, left: Sequence[Remaining]) -> list[EvalLog]:
        tasks = [one.task() for one in left if one.places]
        if not tasks:
            return []
        with redirect_stdout(sys.stderr), _at_speed():
            logs = eval(tasks, max_tasks=max(len(self.models), _TASKS), **self._options())
        _close([*self.models, *self.roles.values()])
        return [read_eval_log(log.location, header_only=True) for log in logs]

    def _eval(self, tasks: list[Task]) -> None:
        # standard output is for results alone
        with redirect_stdout(_WithoutVerdict()), _at_speed():
            eval_set(
                tasks,
                model=list(self.models),
                limit=self.limit,
                # a lasting fault is reported, and the same command goes on later
                retry_attempts=0,
                retry_immediate=False,
                # what an earlier, larger run finished is not thrown away
                retry_cleanup=False,
                log_dir_allow_dirty=True,
                **self._options(),
            )

    def _options(self) -> dict[str, Any]:
        return {
            "log_dir": self.log_dir,
            "model_roles": dict(self.roles) or None,
            "epochs": self.epochs,
            "fail_on_error": True,
            "continue_on_fail": True,
            # the quietest: "none" draws the table of all metrics at the end, for nobody
            "display": "log",
            # what such a run never looks at, and would pay for in every generation
            "log_realtime": False,
            "log_model_api": False,
            "score_display": False,
            "ctl_server": False,
            "acp_server": False,
            # without one, a connection that hangs would hold its question for ever
            "attempt_timeout": ATTEMPT_SECONDS,
            **self.generation,
        }

    def _logs(self) -> list[EvalLog]:
        # what the framework returns leaves out a run that was interrupted
        newest: dict[tuple[int, str], EvalLog] = {}
        asked = {str(model) for model in self.models}
        for header in self._there():
            there = run_settings(header)
            for number, study in enumerate(self.studies):
                same = study.settings().items() <= there.items()
                same = same and header.eval.dataset.name == study.study.questions.name
                if same and header.eval.model in asked:
                    newest.setdefault((number, header.eval.model), header)
        return list(newest.values())

    def _check_settings(self, study: Planned, task: Task) -> None:
        """Refuse to put another setting of the same study into the same log dir."""
        # the one that logs hold: an address out of the environment is in none
        asked = {str(model): model.explicit_base_url for model in self.models}
        arguments = {str(model): _arguments(model) for model in self.models}
        here = self._settings_of(study, task)
        for header in self._there():
            spec = header.eval
            if (spec.task, spec.dataset.name) != (task.name, task.dataset.name):
                continue
            there = run_settings(header)
            there["--model-base-url"] = spec.model_base_url
            here["--model-base-url"] = asked.get(spec.model)
            named = [name for name in there if name.startswith("-M ")]
            here |= dict.fromkeys(named) | arguments.get(spec.model, {})
            for name, value in here.items() if spec.model in asked else ():
                if there.get(name, BEFORE.get(name)) == value or _grows(name, there, here):
                    continue
                raise InputError(
                    f"holds a run of '{spec.model}' with another setting: {name} was "
                    f"{_short(there.get(name))}, now it is {_short(value)}",
                    self.log_dir,
                    remedy="Use the same setting, or another --log-dir",
                )

    def _settings_of(self, study: Planned, task: Task) -> dict[str, Any]:
        """What fixes prompts and replies here, by the names of ``run_settings``."""
        here = study.settings() | task.config.model_dump(exclude_none=True)
        # without one, what is there must be without it too
        here = dict.fromkeys(GenerateConfig.model_fields.keys() - {*RUNTIME}) | here
        here |= {k: v for k, v in self.generation.items() if k not in RUNTIME}
        here |= {
            f"content of {k}": v
            for k, v in (task.metadata or {}).items()
            if not k.endswith("_from")
        }
        # without a reader replies are read otherwise
        here |= {f"--model-role {role}": None for role in (READER, READER_ALL)}
        here |= {f"--model-role {role}": str(model) for role, model in self.roles.items()}
        return here | {"version": task.version}


def _arguments(model: Model) -> dict[str, object]:
    """A provider's arguments by the names of ``run_settings``, as far as a user can give them."""
    given = model.model_args.items()
    plain = (str, int, float, list, dict)
    return {f"-M {name}": value for name, value in given if isinstance(value, plain)}


def _close(models: Sequence[Model]) -> None:
    """Close the connections of our own provider, which would be told of as lost at the end."""
    for model in models:
        if isinstance(model.api, Lean):
            asyncio.run(model.api.aclose())


_JUDGE, _CATALOGUE, _CONTEXTS = (
    "--model-role judge", "content of catalogue", "content of contexts",
)  # fmt: skip


_READERS = (f"--model-role {READER}", f"--model-role {READER_ALL}")


def _grows(name: str, there: Mapping[str, object], here: Mapping[str, object]) -> bool:
    """Whether a setting may differ, because what is there keeps its prompts and replies."""
    # one can be added, not replaced
    if name == _JUDGE or name.startswith("--model-role validity"):
        return name not in there
    if name in _READERS:  # the same; and who has read some can read all
        was, now = (tuple(settings.get(role) for role in _READERS) for settings in (there, here))
        return was == (None, None) or now == (None, was[0])
    return name in (*EXTENSIBLE, _CATALOGUE, _CONTEXTS) and _agree(there.get(name), here[name])


def _agree(there: object, here: object) -> bool:
    """Whether what both have is alike: techniques worded alike, contexts of one length."""
    if not isinstance(there, Mapping) or not isinstance(here, Mapping):
        return not isinstance(there, Mapping) and not isinstance(here, Mapping)
    both = [(here[id], there[id]) for id in here.keys() & there.keys()]
    return all(now == was or was == NO_CONTEXTS for now, was in both)


def unfinished(logs: Sequence[EvalLog]) -> str:
    """How many questions are missing and the commonest reasons; empty where none is."""
    return missing_told(*shortfall(logs))


def shortfall(logs: Sequence[EvalLog]) -> tuple[int, Counter[str]]:
    """How many questions are missing, and the reasons with their numbers."""
    reasons: Counter[str] = Counter()
    missing = 0
    for log in logs:
        summaries = read_eval_log_sample_summaries(log.location)
        asked = len(log.eval.dataset.sample_ids or []) * (log.eval.config.epochs or 1)
        missing += asked - sum(summary.error is None for summary in summaries)
        reasons.update(_reason(summary.error) for summary in summaries if summary.error)
    return missing, reasons


def missing_told(missing: int, reasons: Counter[str]) -> str:
    """The same in words, empty where nothing is missing."""
    if not missing:
        return ""
    shown = "; ".join(f"{n} x {reason.rstrip('.')}" for reason, n in reasons.most_common(3))
    lasting = any(LASTING in reason for reason in reasons)
    return f"{counted(missing, 'question')} unfinished{': ' if shown else ''}{shown}. " + (
        "What is finished is kept, but the rest fails again until that is changed."
        if lasting
        else "The same command goes on from here."
    )


class _WithoutVerdict(io.StringIO):
    """Standard error, without the framework's word on how a set of tasks has ended.

    It calls a run that was interrupted completed; and holdfast says itself how it ended.
    """

    def write(self, text: str) -> int:
        """Pass on."""
        return len(text) if _VERDICT.search(text) else sys.stderr.write(text)

    def flush(self) -> None:
        """Pass on."""
        sys.stderr.flush()

    def isatty(self) -> bool:
        """As standard error is."""
        return sys.stderr.isatty()


_VERDICT = re.compile(
    r"^(?:\x1b\[[\d;]*m)*(?:Completed all tasks|Did not successfully complete all tasks) in "
)
"""In colors, where standard error is a terminal."""


@contextmanager
def _at_speed() -> Iterator[None]:
    """Spare every generation what nobody looks at."""
    gc.collect()
    gc.freeze()  # the modules loaded so far stay; each full collection would walk them
    logging.disable(logging.INFO)
    try:
        yield
    finally:
        logging.disable(logging.NOTSET)
        gc.unfreeze()


def _short(value: object) -> str:
    return repr(value) if len(repr(value)) <= 80 else repr(value)[:77] + "..."


def _reason(error: str) -> str:
    """What went wrong, out of the representation of an exception that the log keeps."""
    inner = re.fullmatch(r"""\w+\((['"])(.*)\1\)""", error, re.DOTALL)
    return " ".join((inner[2] if inner else error).split())[:_LONGEST_REASON]
