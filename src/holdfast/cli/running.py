"""Driving a run: settings held against what is there, progress, budget, outcome."""

import gc
import json
import logging
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl
from inspect_ai import Task, eval_set
from inspect_ai.log import EvalLog, read_eval_log_sample_summaries
from inspect_ai.model import Model
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from holdfast.dialogue import Budget, run_budget
from holdfast.errors import InputError, InterruptedRunError, counted
from holdfast.report import render, summary_table
from holdfast.results import (
    accuracy,
    errors,
    flips,
    logs_in,
    run_settings,
    write_turns,
)

from .settings import Planned, price_of

EXTENSIBLE = ("-T techniques", "-T chains")
"""Settings that may differ between runs in one log dir."""


@dataclass(frozen=True)
class Outcome:
    """What a run left behind.

    Attributes:
        log_dir: where the logs are.
        turns: path of the turns table.
        budget: what this call of the command has spent.
        table: the turns, without texts.
        left_out: by technique path, how many questions lacked what it needs, and what that is.
        questions_left_out: by question set, how many known defects of it were not asked.
        unfinished: what is missing and why, empty when the run is complete.
    """

    log_dir: str
    turns: str
    budget: Budget
    table: pl.DataFrame
    left_out: Mapping[str, Counter[str]]
    questions_left_out: Mapping[str, int]
    unfinished: str

    def as_json(self) -> dict[str, Any]:
        """For machines."""
        return {
            "log_dir": self.log_dir,
            "turns": self.turns,
            "complete": not self.unfinished,
            "unfinished": self.unfinished,
            "calls": self.budget.calls,
            "cached": self.budget.cached,
            "tokens": self.budget.tokens,
            "cost": self.budget.cost,
            "left_out": {path: dict(reasons) for path, reasons in self.left_out.items()},
            "questions_left_out": dict(self.questions_left_out),
            "accuracy": json.loads(render(accuracy(self.table), "json")),
            "flips": json.loads(render(flips(self.table), "json")),
        }

    def print(self) -> None:
        """For people: a summary table for each study, then where everything is."""
        console = Console()
        if not console.is_terminal:
            console = Console(width=110)
        rates, changes = accuracy(self.table), flips(self.table)
        for (run, model, dataset), rows in rates.group_by(
            "run", "model", "dataset", maintain_order=True
        ):
            title = f"{model} on {dataset}"
            if str(model).startswith("simulated/") or str(model).endswith("[simulated]"):
                title += "  [SIMULATED: a parametric responder, not a measurement of a model]"
            console.print()
            console.print(summary_table(rows, changes.filter(pl.col("run") == run), title))
        for path, reasons in self.left_out.items():
            for reason, n in reasons.items():
                console.print(Text(f"{path}: left out for {counted(n, 'question')} ({reason})"))
        for name, n in self.questions_left_out.items():
            console.print(Text(f"{name}: {counted(n, 'question')} left out (identical options)"))
        for row in errors(self.table).iter_rows(named=True):
            where = row["path"] or "first answer"
            console.print(
                Text(f"{row['model']}, {where}: {counted(row['n'], 'turn')} failed ({row['rule']})")
            )
        spent = f"{self.budget.calls} calls, {self.budget.cached} from the cache"
        spent += f", {self.budget.tokens} tokens"
        if self.budget.cost:
            spent += f", ${self.budget.cost:.2f}"
        console.print(Text(f"Spent: {spent}"))
        console.print(Text(f"Logs:  {self.log_dir} (inspect view --log-dir {self.log_dir})"))
        console.print(Text(f"Turns: {self.turns}"), soft_wrap=True)


@dataclass(frozen=True)
class Running:
    """A run about to be made: ``holdfast run`` with everything resolved."""

    studies: Sequence[Planned]
    models: Sequence[Model]
    log_dir: str
    limit: int | None = None
    epochs: int = 1
    generation: Mapping[str, Any] = field(default_factory=dict)
    max_calls: int | None = None
    max_tokens: int | None = None
    max_cost: float | None = None
    text: bool = True

    def run(self) -> Outcome:
        """Make the run, or go on with it.

        Raises:
            InputError: the log dir holds a run with other settings, or a price is missing.
            InterruptedRunError: the user stopped it.
        """
        self._check_prices()
        tasks = [study.protocol.task(**study.args) for study in self.studies]
        for study, task in zip(self.studies, tasks, strict=True):
            self._check_settings(study, task)
        _make_writable(self.log_dir)
        budget = Budget(self.max_calls, self.max_tokens, self.max_cost)
        total = (
            len(self.models)
            * self.epochs
            * sum(
                study.study.estimate(question, 0).generations
                for study in self.studies
                for question in study.study.questions.first(self.limit).questions
            )
        )
        with _progress(budget, total):
            token = run_budget.set(budget)
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
        turns, table = write_turns(self.log_dir, text=self.text)
        if any(log.status == "cancelled" for log in logs):
            raise InterruptedRunError
        return Outcome(
            self.log_dir,
            turns,
            budget,
            table,
            {path: n for study in self.studies for path, n in study.left_out(self.limit).items()},
            {
                study.study.questions.name: len(study.study.questions.left_out)
                for study in self.studies
                if study.study.questions.left_out
            },
            _unfinished(logs),
        )

    def _eval(self, tasks: list[Task]) -> None:
        # standard output is for results alone
        with redirect_stdout(sys.stderr), _at_speed():
            eval_set(
                tasks,
                log_dir=self.log_dir,
                model=list(self.models),
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
        """Headers of this run's logs, the newest of each study and model."""
        # what the framework returns leaves out a run that was interrupted
        newest: dict[tuple[int, str], EvalLog] = {}
        asked = {str(model) for model in self.models}
        for header in logs_in(self.log_dir):
            there = run_settings(header)
            for number, study in enumerate(self.studies):
                same = study.settings().items() <= there.items()
                same = same and header.eval.dataset.name == study.study.questions.name
                if same and header.eval.model in asked:
                    newest.setdefault((number, header.eval.model), header)
        return list(newest.values())

    def _check_prices(self) -> None:
        for model in self.models:
            if self.max_cost is not None and price_of(model) is None:
                raise InputError(
                    f"no price is known for '{model}', so a budget in dollars cannot be held",
                    field="--max-cost",
                    remedy='Give --prices FILE with {"MODEL": {"input": 2.0, "output": 8.0}}',
                )

    def _check_settings(self, study: Planned, task: Task) -> None:
        """Refuse to put another setting of the same study into the same log dir."""
        asked = {str(model): model.api.base_url for model in self.models}
        here = study.settings() | task.config.model_dump(exclude_none=True)
        here |= {k: v for k, v in self.generation.items() if k in ("temperature", "max_tokens")}
        here |= {f"content of {k}": v for k, v in (task.metadata or {}).items()}
        here["version"] = task.version
        for header in logs_in(self.log_dir):
            spec = header.eval
            if (spec.task, spec.dataset.name) != (task.name, task.dataset.name):
                continue
            there = run_settings(header)
            there["--model-base-url"] = spec.model_base_url
            here["--model-base-url"] = asked.get(spec.model)
            for name, value in here.items() if spec.model in asked else ():
                # other techniques beside those that are there change no prompt of theirs
                if name in EXTENSIBLE or there.get(name) == value:
                    continue
                if name == _WORDING and _agree(there.get(name) or {}, value):
                    continue
                raise InputError(
                    f"holds a run of '{spec.model}' with another setting: {name} was "
                    f"{_short(there.get(name))}, now it is {_short(value)}",
                    self.log_dir,
                    remedy="Use the same setting, or another --log-dir",
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


_WORDING = "content of techniques"


def _agree(there: Mapping[str, str], here: Mapping[str, str]) -> bool:
    """Whether the techniques that both have are worded alike."""
    return all(here[id] == there[id] for id in here.keys() & there.keys())


def _short(value: object) -> str:
    return repr(value) if len(repr(value)) <= 80 else repr(value)[:77] + "..."


def _unfinished(logs: Sequence[EvalLog]) -> str:
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

    def advance(spent: Budget) -> None:
        progress.update(turns, completed=spent.calls + spent.cached)

    budget.on_turn = advance
    return progress
