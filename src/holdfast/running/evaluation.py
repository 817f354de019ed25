"""Evaluation: studies are run on models in a log directory, and resumed from it."""

import asyncio
import gc
import json
import logging
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Container, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from contextvars import copy_context
from dataclasses import dataclass, field
from functools import cached_property
from importlib.util import find_spec
from itertools import product
from time import monotonic, sleep
from typing import Any
from uuid import uuid4

import anyio
from inspect_ai.event import ModelEvent
from inspect_ai.log import EvalLog, read_eval_log_samples
from inspect_ai.model import GenerateConfig, Model

from holdfast.defences.defence import VERIFIER
from holdfast.dialogue.budget import Budget, run_budget
from holdfast.dialogue.conversation import TESTED_ARM
from holdfast.dialogue.first_replies import FirstReplies, first_replies
from holdfast.dialogue.generations import generations, kept_elsewhere
from holdfast.dialogue.probing import LASTING, Probe, fault_of_all, is_unreached, probing
from holdfast.dialogue.sitting import CONNECTIONS, KEPT_AS
from holdfast.errors import InputError, InterruptedRunError, counted, printable
from holdfast.protocols.installed import task_named
from holdfast.protocols.protocol import READER, READER_ALL, Study, StudyPlan
from holdfast.protocols.second_reading import readings_of
from holdfast.protocols.task import DEFENCE, loaded
from holdfast.results.runs import (
    NO_CONTEXTS,
    OWN_TECHNIQUES,
    PLACE,
    RUNTIME,
    SHARD,
    growing,
    logs_in,
    run_ids,
    run_settings,
)
from holdfast.results.turns import WrittenTurns

from .log_dir import (
    check_shards_free,
    check_writable,
    generation_store,
    kept_in,
    lock_log_dir,
    name_damaged,
    without_damaged,
)
from .logs import new_header
from .models import OFFLINE
from .progress import Progress
from .runner import Runner, Sheet
from .shard import Shard, as_asked, slots

ATTEMPT_SECONDS = 600
"""Time limit in seconds for one attempt at a generation, which is then repeated."""

_LONGEST_REASON = 600


PATIENCE = 10
"""Time in seconds to wait for a server that is starting, before a study starts."""


@dataclass(frozen=True)
class Ended:
    """Result of an evaluation.

    Attributes:
        logs: headers of the newest log of each study and model.
        missing: number of unfinished questions.
        reasons: reasons with their counts.
    """

    logs: Sequence[EvalLog] = ()
    missing: int = 0
    reasons: Counter[str] = field(default_factory=Counter)

    @property
    def interrupted(self) -> bool:
        """Whether the user stopped it."""
        return any(log.status == "cancelled" for log in self.logs)

    @property
    def unfinished(self) -> str:
        """The unfinished questions and the reasons, in words; empty if all are finished."""
        return describe_missing(self.missing, self.reasons)


@dataclass(frozen=True)
class Evaluation:
    """Run of studies on models in one log directory.

    Attributes:
        studies: protocols or preparations with their settings.
        models: the models under test, or the generator of a preparation.
        log_dir: directory of the logs. Existing logs with the same settings are resumed.
        kind: ``protocol`` or ``preparation``.
        roles: helpers by role.
        limit: number of first questions to ask.
        after: number of these that existing logs already contain, and that are skipped.
        epochs: number of epochs. None means the default of the protocol.
        generation: generation settings that override those of the task.
        budget: counts and limits of the spending.
        shard: shard of the questions to ask, None for all. The process that runs the shard has its
            lock.
        progress: progress callback.
        turns: store of the logged turns for the turns table, or None.
    """

    studies: Sequence[Study]
    models: Sequence[Model]
    log_dir: str
    kind: str = "protocol"
    roles: Mapping[str, Model] = field(default_factory=dict)
    limit: int | None = None
    after: int = 0
    epochs: int | None = None
    generation: Mapping[str, Any] = field(default_factory=dict)
    budget: Budget = field(default_factory=Budget)
    shard: Shard | None = None
    progress: Progress = field(default_factory=Progress)
    turns: WrittenTurns | None = None

    def run(self) -> "Ended":
        """Run or resume the evaluation."""
        with self._hold_log_dir(), generation_store(self.log_dir):
            return self._run()

    @contextmanager
    def _hold_log_dir(self) -> Iterator[None]:
        if self.shard:  # a shard is locked by its process
            yield
        else:
            with lock_log_dir(self.log_dir):
                check_shards_free(self.log_dir)
                without_damaged(self.log_dir, self.progress)
                yield

    def _run(self) -> "Ended":
        total = self.generations()
        earlier_logs, sheets = self._check_logs()
        self._restore(earlier_logs)
        whole: list[EvalLog] = []
        left: list[Sheet] = []
        for sheet in sheets:
            if whole_logs := _whole(earlier_logs, sheet):
                whole += whole_logs
            elif sheet.places:
                left.append(sheet)
        below = (
            logs_in(self.log_dir, kind=self.kind, below=True) if not earlier_logs and left else []
        )
        folders: dict[str, list[EvalLog]] = {}
        for log in below:
            folders.setdefault(log.location.rpartition("/")[0], []).append(log)
        if any(_whole(logs, sheet) for sheet, logs in product(left, folders.values())):
            raise InputError(
                "a subfolder already contains this run; nothing was written",
                self.log_dir,
                remedy="Give another --log-dir",
            )
        runner = Runner(self.log_dir, self.roles, self.turns)
        self._describe_assistants(left)
        with self.progress.asking(self.budget, total), self._spend_budget():
            if not self.shard:  # the main process has sent the probe for all shards
                self._probe(runner, left)
            try:
                with _speed_up():
                    in_own_loop(runner.put, left)
            except KeyboardInterrupt:
                if all(log.header.status != "cancelled" for log in runner.closed_logs):
                    raise  # no log records the interrupt
        reasons = Counter(
            _reason(error) for log in runner.closed_logs for error in log.errors.values()
        )
        missing = sum(log.missing for log in runner.closed_logs)
        return Ended([*(log.header for log in runner.closed_logs), *whole], missing, reasons)

    def _check_logs(self) -> tuple[list[EvalLog], list[Sheet]]:
        """Return the existing logs and the sheets to ask, if they can share the directory."""
        earlier_logs, sheets = self._load_logs(), self._sheets()
        for sheet, log in product(sheets, earlier_logs):
            self._check_settings(sheet.header, log)
        check_writable(self.log_dir)
        return earlier_logs, sheets

    @contextmanager
    def _spend_budget(self) -> Iterator[None]:
        token = run_budget.set(self.budget)
        watch = first_replies.set(FirstReplies(self.progress.say))
        try:
            yield
        except KeyboardInterrupt:
            # the framework of the command line would exit without a message
            raise InterruptedRunError from None
        finally:
            run_budget.reset(token)
            first_replies.reset(watch)

    def probe(self) -> tuple[float, int]:
        """Send the first request to each server separately, before a study is run in shards.

        Returns:
            Replies per second that the connections allow if all take as long as the first, and the
            number of stored generations.
        """
        with generation_store(self.log_dir), self._spend_budget():
            earlier_logs, sheets = self._check_logs()
            self._restore(earlier_logs)
            self._describe_assistants(sheets)
            rate = self._probe(Runner(self.log_dir, self.roles), sheets)
            return rate, len(generations())

    def _describe_assistants(self, sheets: Sequence[Sheet]) -> None:
        """Say where an assistant's requests go, before the first of them."""
        for model in dict.fromkeys(sheet.model for sheet in sheets):
            if (describe := getattr(model.api, "describe", None)) is not None:
                self.progress.say(printable(f"{model} {describe()}"))

    def _restore(self, earlier_logs: Sequence[EvalLog]) -> None:
        """Restore missing generations from the logs, and report and remove damaged ones."""
        restore(earlier_logs)
        if self.shard:  # the main process does this for all shards
            return
        name_damaged(self.log_dir, self.progress)
        if kept_elsewhere() is None and kept_in(self.log_dir):  # no other process writes there
            generations().mend()

    def _probe(self, runner: Runner, sheets: Sequence[Sheet]) -> float:
        """Send the first request to each server separately, and store its reply.

        Returns:
            Replies per second, as in ``probe``. 0 if no server has answered.
        """
        rate = 0.0
        first = {sheet.model: sheet for sheet in reversed(sheets)}
        for model in self.models:
            if str(model).startswith(OFFLINE) or model not in first:
                continue
            until = 0.0
            while (error := (probe := self._make_probe(runner, first[model])).error) is not None:
                # wait from the end of the first attempt, which also loads modules
                until = until or monotonic() + PATIENCE
                if is_unreached(error) and monotonic() < until:
                    sleep(1)
                    continue
                fault = fault_of_all(error, str(model), model.api.base_url)
                if fault is None:  # a temporary error, reported with its question if it persists
                    break
                raise InputError(fault[0], f"'{model}'", remedy=fault[1])
            if probe.seconds:
                rate += self.connections / probe.seconds
        return rate

    def _make_probe(self, runner: Runner, sheet: Sheet) -> Probe:
        """Return the result of a single attempt at the first request."""
        probe = Probe()
        token = probing.set(probe)
        previous_level = logging.root.manager.disable
        logging.disable(logging.CRITICAL)
        try:
            in_own_loop(runner.put_first, sheet)
        finally:
            probing.reset(token)
            logging.disable(previous_level)
        # the study will read this reply from the store, which does not save a call
        self.budget.cached -= probe.seconds is not None
        return probe

    @property
    def connections(self) -> int:
        """Maximum number of pending requests to a server with ``direct`` requests."""
        return self.generation.get("max_connections") or CONNECTIONS

    @cached_property
    def _slots(self) -> Mapping[str, int]:
        return slots(study.questions for study in self.studies)

    def _places(self, study: Study) -> list[int]:
        """Return the positions of a study's questions that are asked here."""
        question_list = study.questions.first(self.limit).questions
        shard = self.shard
        if shard is None:
            return list(range(self.after, len(question_list)))
        return [
            n
            for n, question in enumerate(question_list)
            if shard.holds(self._slots[as_asked(question)])
        ]

    @property
    def records(self) -> int:
        """Number of questions to ask, times epochs and models."""
        question_count = sum(len(self._places(study)) * study.epochs for study in self.studies)
        return len(self.models) * question_count

    def _sheets(self) -> list[Sheet]:
        """Return a sheet for each study and model."""
        run = uuid4().hex
        return [
            sheet
            for place, study in enumerate(self.studies)
            for sheet in self._sheets_of(study, run, place)
        ]

    def runs(self) -> list[str]:
        """Return the ids of the runs in the order asked, model by model."""
        headers = sorted((sheet.header for sheet in self._sheets()), key=_place)
        return run_ids([*self._load_logs(), *headers])[-len(headers) :]

    def _sheets_of(self, study: Study, run: str, number: int) -> Iterator[Sheet]:
        question_list, places = study.questions.questions, self._places(study)
        with loaded(study, study.plan(roles=self.roles, places=places)):
            task = task_named(study.name)(**study.args)
        part = str(self.shard) if self.shard else f"after {self.after}" if self.after else None
        shard = {SHARD: {"shard": part, "places": places}} if part else {}
        generation_settings = {"attempt_timeout": ATTEMPT_SECONDS, **self.generation}
        config = task.config.merge(GenerateConfig.model_validate(generation_settings))
        defence = study.defence
        defence_role = defence.role if defence else None
        # a verifier is part of the runs with that defence only
        roles = {
            role: role_model
            for role, role_model in self.roles.items()
            if role == defence_role or role != VERIFIER
        }
        for nth, model in enumerate(self.models):
            place = nth * len(self.studies) + number
            header = new_header(
                task,
                model,
                roles,
                config,
                [question_list[place].id for place in places],
                settings=study.arguments(),
                task_args=study.args,
                limit=self.limit,
                epochs=study.epochs,
                run=run,
                metadata={**(task.metadata or {}), **shard, PLACE: place},
            )
            yield Sheet(task, model, config, places, study.epochs, header)

    def _load_logs(self) -> list[EvalLog]:
        return logs_in(self.log_dir, kind=self.kind)

    def generations(self) -> int:
        """Return the maximum number of generations, including stored ones."""
        total, replays, earlier = 0, 0, list[StudyPlan]()
        for study in self.studies:
            plan = study.plan(roles=self.roles, places=self._places(study))
            call_count = plan.tested(earlier, study.epochs)
            # the number of unparsed replies for a reader is unknown in advance
            reading_count = readings_of(call_count, 0)[READER_ALL]
            counts = {
                **plan.counts,
                TESTED_ARM: call_count,
                READER: reading_count,
                READER_ALL: reading_count,
            }
            total += sum(
                counts[role].most_calls for role in (TESTED_ARM, *self.roles) if role in counts
            )
            replays += call_count.replays
            earlier.append(plan)
        stateful = sum(bool(getattr(model.api, "is_stateful", False)) for model in self.models)
        return len(self.models) * total + stateful * replays

    def _check_settings(self, begun_log: EvalLog, log: EvalLog) -> None:
        """Raise an error if the log directory has the same study with other settings."""
        if _identify_study(log) != _identify_study(begun_log):
            return
        earlier_settings, new_settings = _settings(log), _settings(begun_log)
        arguments = (name for name in earlier_settings if name.startswith("-M "))
        grows = growing(begun_log)
        changes: dict[str, str] = {}
        for name in (*_NEVER_LEFT_OUT, *new_settings, *arguments):
            if earlier_settings.get(name) == new_settings.get(name) or _grows(
                name, earlier_settings, new_settings, grows
            ):
                continue
            was, now = _difference(earlier_settings.get(name), new_settings.get(name))
            change_text = f"{name} was {_short(was)}, now it is {_short(now)}"
            changes.setdefault(
                name.removeprefix("-T "), change_text
            )  # a seed is also a generation setting
        if changes:
            another_id, same_id = (
                ("another setting", "setting")
                if len(changes) == 1
                else ("other settings", "settings")
            )
            raise InputError(
                f"contains a run of '{log.eval.model}' with {another_id}: "
                f"{'; '.join(changes.values())}",
                self.log_dir,
                remedy=f"Use the same {same_id}, or another --log-dir",
            )


def _place(header: EvalLog) -> int:
    return int((header.eval.metadata or {})[PLACE])


def _identify_study(log: EvalLog) -> tuple[object, ...]:
    spec = log.eval
    return spec.task, spec.dataset.name, spec.model, str((spec.metadata or {}).get(DEFENCE))


def _settings(log: EvalLog) -> dict[str, Any]:
    """Return the settings that fix prompts and replies, from a log; an address stays as written."""
    known_settings = {**run_settings(log), "--model-base-url": log.eval.model_base_url}
    settings: dict[str, Any] = json.loads(json.dumps(known_settings, default=str))
    return settings


def _whole(logs: Sequence[EvalLog], sheet: Sheet) -> list[EvalLog]:
    """Return the newest log with all that a sheet would ask, or the logs of shards that have it.

    Empty if questions are missing or have fewer epochs.
    """
    ids_asked = {*(sheet.header.eval.dataset.sample_ids or ())}
    fit = [
        log
        for log in logs
        if log.status == "success"
        and _settings(log) == _settings(sheet.header)
        and (log.eval.config.epochs or 1) >= sheet.epochs
    ]
    ids = [{*(log.eval.dataset.sample_ids or ())} for log in fit]
    for log, ids_of_log in zip(fit, ids, strict=True):
        if ids_of_log >= ids_asked:
            return [log]
    return fit if ids_asked and ids_asked <= set().union(*ids) else []


def restore(logs: Sequence[EvalLog]) -> None:
    """Store the generations in logs if stored generations are missing or damaged."""
    store = generations()
    if len(store) and not store.damaged:
        return
    for log in logs:
        unread = {"messages", "store", "attachments", "timelines"}
        for sample in read_eval_log_samples(
            log.location, all_samples_required=False, exclude_fields=unread
        ):
            for event in sample.events:
                if isinstance(event, ModelEvent) and event.error is None:
                    key = (event.metadata or {}).get(KEPT_AS)
                    if key is not None and key not in store:
                        store.put(key, event.output)


def in_own_loop(function: Callable[..., Awaitable[Any]], *args: Any) -> None:
    """Run a coroutine to its end, in a new thread if this thread has a running event loop."""
    try:
        if _in_loop():
            with ThreadPoolExecutor(1) as thread:
                context = copy_context()
                thread.submit(lambda: context.run(lambda: _run(function, *args))).result()
        else:
            _run(function, *args)
    except ExceptionGroup as group:
        raise _first_in(group) from group


def _run(function: Callable[..., Awaitable[Any]], *args: Any) -> None:
    # uvloop has no version for Windows
    faster = find_spec("uvloop") is not None
    anyio.run(function, *args, backend_options={"use_uvloop": faster})


def _first_in(error: Exception) -> Exception:
    return _first_in(error.exceptions[0]) if isinstance(error, ExceptionGroup) else error


def _in_loop() -> bool:
    with suppress(RuntimeError):
        asyncio.get_running_loop()
        return True
    return False


_CONTEXTS = "content of contexts"

_READERS = (f"--model-role {READER}", f"--model-role {READER_ALL}")

_NEVER_LEFT_OUT = (*(GenerateConfig.model_fields.keys() - {*RUNTIME}), *_READERS)
"""Settings that an earlier log must not have if the new run does not set them."""


def _grows(
    name: str,
    earlier_settings: Mapping[str, object],
    new_settings: Mapping[str, object],
    growing: Container[str],
) -> bool:
    """Whether a setting may differ, because existing prompts and replies stay the same."""
    if name in _READERS:  # the same reader, or a reader of all replies in place of a reader of some
        was, now = (
            tuple(settings.get(role) for role in _READERS)
            for settings in (earlier_settings, new_settings)
        )
        return was == (None, None) or now == (None, was[0])
    if name in growing and name.startswith("--model-role "):
        return name not in earlier_settings  # a helper can be added, but not replaced
    if name == OWN_TECHNIQUES:  # also in the setting of all techniques, which is compared
        return True
    return (name in growing or name == _CONTEXTS) and _agree(
        earlier_settings.get(name), new_settings.get(name)
    )


def _difference(earlier_value: object, new_value: object) -> tuple[object, object]:
    """Return both values, or for mappings the common keys with different values."""
    if not isinstance(earlier_value, Mapping) or not isinstance(new_value, Mapping):
        return earlier_value, new_value
    names = [
        name
        for name in earlier_value.keys() & new_value.keys()
        if earlier_value[name] != new_value[name]
    ]
    return {name: earlier_value[name] for name in names}, {name: new_value[name] for name in names}


def _agree(earlier_value: object, new_value: object) -> bool:
    """Whether common keys have equal values: wordings of techniques, contexts of a length."""
    if not isinstance(earlier_value, Mapping) or not isinstance(new_value, Mapping):
        return not isinstance(earlier_value, Mapping) and not isinstance(new_value, Mapping)
    value_pairs = [
        (new_value[id], earlier_value[id]) for id in new_value.keys() & earlier_value.keys()
    ]
    return all(now == was or was == NO_CONTEXTS for now, was in value_pairs)


def describe_missing(missing: int, reasons: Counter[str]) -> str:
    """Describe the missing questions and the reasons; empty if none are missing."""
    if not missing:
        return ""
    reasons_text = "; ".join(f"{n} x {reason.rstrip('.')}" for reason, n in reasons.most_common(3))
    lasting = any(LASTING in reason for reason in reasons)
    return (
        f"{counted(missing, 'question')} unfinished{': ' if reasons_text else ''}{reasons_text}. "
        + (
            "Finished work is kept, but the rest fails again until you change this."
            if lasting
            else "Repeat the command to resume."
        )
    )


@contextmanager
def _speed_up() -> Iterator[None]:
    """Avoid the overhead of full garbage collections and of log records that nobody reads."""
    gc.freeze()  # full collections skip the modules loaded so far
    often = gc.get_threshold()
    gc.set_threshold(often[0], 5, 1)  # a question's objects die soon, and few objects are old
    logging.disable(logging.INFO)
    try:
        yield
    finally:
        logging.disable(logging.NOTSET)
        gc.collect()
        gc.set_threshold(*often)
        gc.unfreeze()


def _short(value: object) -> str:
    return repr(value) if len(repr(value)) <= 80 else repr(value)[:77] + "..."


def _reason(error: str) -> str:
    """Return the reason from the representation of an exception in a log."""
    inner = re.fullmatch(r"""\w+\((['"])(.*)\1\)""", error, re.DOTALL)
    return " ".join((inner[2] if inner else error).split())[:_LONGEST_REASON]
