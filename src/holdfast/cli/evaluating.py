"""Putting studies to models: settings held against what is there, progress, budget."""

import gc
import logging
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from inspect_ai import Task, eval_set
from inspect_ai.log import EvalLog, read_eval_log_sample_summaries
from inspect_ai.model import Model
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from holdfast.dialogue import Budget, run_budget
from holdfast.errors import InputError, InterruptedRunError, counted
from holdfast.protocols import Study
from holdfast.questions import Question
from holdfast.results import EXTENSIBLE, logs_in, run_settings

from .settings import Planned


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

    def run(self) -> list[EvalLog]:
        """Evaluate, or go on with it; headers of the newest log of each study and model.

        Raises:
            InputError: the log dir holds a run with other settings, or cannot be written.
            InterruptedRunError: the user stopped it.
        """
        tasks = [study.protocol.task(**study.args) for study in self.studies]
        for study, task in zip(self.studies, tasks, strict=True):
            self._check_settings(study, task)
        _make_writable(self.log_dir)
        with _progress(self.budget, self._generations()):
            token = run_budget.set(self.budget)
            try:
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

    def _generations(self) -> int:
        def of(study: Study, question: Question) -> int:
            helped = study.helped(question, 0)
            counts = [helped[role].generations for role in helped.keys() & self.roles.keys()]
            return study.estimate(question, 0).generations + sum(counts)

        return len(self.models) * sum(
            (self.epochs or study.study.epochs) * of(study.study, question)
            for study in self.studies
            for question in study.study.questions.first(self.limit).questions
        )

    def _eval(self, tasks: list[Task]) -> None:
        # standard output is for results alone
        with redirect_stdout(sys.stderr), _at_speed():
            eval_set(
                tasks,
                log_dir=self.log_dir,
                model=list(self.models),
                model_roles=dict(self.roles) or None,
                limit=self.limit,
                epochs=self.epochs,
                # a lasting fault is reported, and the same command goes on later
                retry_attempts=0,
                retry_immediate=False,
                # what an earlier, larger run finished is not thrown away
                retry_cleanup=False,
                log_dir_allow_dirty=True,
                fail_on_error=True,
                continue_on_fail=True,
                # the quietest: "none" draws the table of all metrics at the end, for nobody
                display="log",
                # what such a run never looks at, and would pay for in every generation
                log_realtime=False,
                log_model_api=False,
                score_display=False,
                ctl_server=False,
                acp_server=False,
                **self.generation,
            )

    def _logs(self) -> list[EvalLog]:
        # what the framework returns leaves out a run that was interrupted
        newest: dict[tuple[int, str], EvalLog] = {}
        asked = {str(model) for model in self.models}
        for header in logs_in(self.log_dir, kind=self.kind):
            there = run_settings(header)
            for number, study in enumerate(self.studies):
                same = study.settings().items() <= there.items()
                same = same and header.eval.dataset.name == study.study.questions.name
                if same and header.eval.model in asked:
                    newest.setdefault((number, header.eval.model), header)
        return list(newest.values())

    def _check_settings(self, study: Planned, task: Task) -> None:
        """Refuse to put another setting of the same study into the same log dir."""
        asked = {str(model): model.api.base_url for model in self.models}
        here = study.settings() | task.config.model_dump(exclude_none=True)
        here |= {k: v for k, v in self.generation.items() if k in ("temperature", "max_tokens")}
        here |= {
            f"content of {k}": v
            for k, v in (task.metadata or {}).items()
            if not k.endswith("_from")
        }
        here |= {f"--model-role {role}": str(model) for role, model in self.roles.items()}
        here["version"] = task.version
        for header in logs_in(self.log_dir, kind=self.kind):
            spec = header.eval
            if (spec.task, spec.dataset.name) != (task.name, task.dataset.name):
                continue
            there = run_settings(header)
            there["--model-base-url"] = spec.model_base_url
            here["--model-base-url"] = asked.get(spec.model)
            for name, value in here.items() if spec.model in asked else ():
                if there.get(name) == value or _grows(name, there, value):
                    continue
                raise InputError(
                    f"holds a run of '{spec.model}' with another setting: {name} was "
                    f"{_short(there.get(name))}, now it is {_short(value)}",
                    self.log_dir,
                    remedy="Use the same setting, or another --log-dir",
                )


_JUDGE, _CATALOGUE, _CONTEXTS = (
    "--model-role judge", "content of catalogue", "content of contexts",
)  # fmt: skip


def _grows(name: str, there: Mapping[str, object], here: object) -> bool:
    """Whether a setting may differ, because what is there keeps its prompts and replies."""
    if name == _JUDGE:  # one can be added, not replaced
        return name not in there
    return name in (*EXTENSIBLE, _CATALOGUE, _CONTEXTS) and _agree(there.get(name), here)


def _agree(there: object, here: object) -> bool:
    """Whether what both have is alike: techniques worded alike, contexts of one length."""
    if not isinstance(there, Mapping) or not isinstance(here, Mapping):
        return not isinstance(there, Mapping) and not isinstance(here, Mapping)
    return all(here[id] == there[id] for id in here.keys() & there.keys())


def unfinished(logs: Sequence[EvalLog]) -> str:
    """How many questions are missing and the commonest reasons; empty where none is."""
    reasons: Counter[str] = Counter()
    missing = 0
    for log in logs:
        summaries = read_eval_log_sample_summaries(log.location)
        asked = len(log.eval.dataset.sample_ids or []) * (log.eval.config.epochs or 1)
        missing += asked - sum(summary.error is None for summary in summaries)
        reasons.update(_reason(summary.error) for summary in summaries if summary.error)
    if not missing:
        return ""
    shown = "; ".join(f"{n} x {reason.rstrip('.')}" for reason, n in reasons.most_common(3))
    return f"{counted(missing, 'question')} unfinished{': ' if shown else ''}{shown}. " + (
        "The same command goes on from here."
    )


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


def _make_writable(log_dir: str) -> None:
    """Make the log dir, and fail here if it can't be written, not when all is asked."""
    if "://" in log_dir:
        return
    try:
        Path(log_dir).mkdir(parents=True, exist_ok=True)
        probe = Path(log_dir) / ".writable"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise InputError(
            f"cannot be written ({error.strerror})", log_dir, remedy="Give another --log-dir"
        ) from error


def _short(value: object) -> str:
    return repr(value) if len(repr(value)) <= 80 else repr(value)[:77] + "..."


def _reason(error: str) -> str:
    """What went wrong, out of the representation of an exception that the log keeps."""
    inner = re.fullmatch(r"""\w+\((['"])(.*)\1\)""", error, re.DOTALL)
    return " ".join((inner[2] if inner else error).split())[:300]


def _progress(budget: Budget, total: int) -> Progress:
    """Progress on standard error, fed by the budget's count of answered requests."""
    progress = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    turns = progress.add_task("asking", total=total)
    before = budget.calls + budget.cached

    def advance(spent: Budget) -> None:
        progress.update(turns, completed=spent.calls + spent.cached - before)

    budget.on_turn = advance
    return progress
