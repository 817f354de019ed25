"""Studies put to models in a log dir: held against what is there, counted, gone on with."""

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
    holding,
    kept_in,
    name_damaged,
    without_damaged,
)
from .logs import new_header
from .models import OFFLINE
from .progress import Progress
from .runner import Runner, Sheet
from .shard import Shard, as_asked, slots

ATTEMPT_SECONDS = 600
"""A single attempt at a generation that takes longer is given up and made anew."""

_LONGEST_REASON = 600


PATIENCE = 10
"""Seconds for which a server that is starting is waited for before a study begins."""


@dataclass(frozen=True)
class Ended:
    """How an evaluation has ended.

    Attributes:
        logs: headers of the newest log of each study and model.
        missing: how many questions are not finished.
        reasons: why, with their numbers.
    """

    logs: Sequence[EvalLog] = ()
    missing: int = 0
    reasons: Counter[str] = field(default_factory=Counter)

    @property
    def interrupted(self) -> bool:
        """Whether the user has stopped it."""
        return any(log.status == "cancelled" for log in self.logs)

    @property
    def unfinished(self) -> str:
        """What is missing and why, in words; empty where nothing is."""
        return missing_told(self.missing, self.reasons)


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
        after: of these, how many first ones are left to logs that are there.
        epochs: times each question is asked; None leaves it to the protocol.
        generation: settings of generation over those of the task.
        budget: counts and bounds what is spent.
        shard: which questions are asked, None for all; whoever runs a shard holds its lock.
        progress: is told how it goes on.
        turns: keeps what is said, for the turns table; None where nobody asks for it.
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
        """Evaluate, or go on with it."""
        with self._hold_log_dir(), generation_store(self.log_dir):
            return self._run()

    @contextmanager
    def _hold_log_dir(self) -> Iterator[None]:
        if self.shard:  # whoever runs it holds it
            yield
        else:
            with holding(self.log_dir):
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
            if not self.shard:  # whoever runs it has probed
                self._probe(runner, left)
            try:
                with _speed_up():
                    in_own_loop(runner.put, left)
            except KeyboardInterrupt:
                if all(log.header.status != "cancelled" for log in runner.closed_logs):
                    raise  # none of the logs says so
        reasons = Counter(
            _reason(error) for log in runner.closed_logs for error in log.errors.values()
        )
        missing = sum(log.missing for log in runner.closed_logs)
        return Ended([*(log.header for log in runner.closed_logs), *whole], missing, reasons)

    def _check_logs(self) -> tuple[list[EvalLog], list[Sheet]]:
        """The logs that are there, and what is to be asked, which may be put beside them."""
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
            # not left to the command line's framework, which would end it without a word
            raise InterruptedRunError from None
        finally:
            run_budget.reset(token)
            first_replies.reset(watch)

    def probe(self) -> tuple[float, int]:
        """Send the first request to each server by itself, before a study is run in shards.

        Returns:
            Replies a second that the connections allow if all come as fast as the first, and the
            number of generations that are kept.
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
        """Complete what is kept from the logs; name what is damaged of it, and remove that."""
        restore(earlier_logs)
        if self.shard:  # whoever runs it names and removes
            return
        name_damaged(self.log_dir, self.progress)
        if kept_elsewhere() is None and kept_in(self.log_dir):  # no other process writes there
            generations().mend()

    def _probe(self, runner: Runner, sheets: Sequence[Sheet]) -> float:
        """Send the first request to each server by itself, and keep its reply.

        Returns:
            Replies a second, as ``probe`` has them; 0 where no server has answered.
        """
        rate = 0.0
        first = {sheet.model: sheet for sheet in reversed(sheets)}
        for model in self.models:
            if str(model).startswith(OFFLINE) or model not in first:
                continue
            until = 0.0
            while (error := (probe := self._make_probe(runner, first[model])).error) is not None:
                # from the first answer on: the first attempt loads what it needs
                until = until or monotonic() + PATIENCE
                if is_unreached(error) and monotonic() < until:
                    sleep(1)
                    continue
                fault = fault_of_all(error, str(model), model.api.base_url)
                if fault is None:  # it may pass, and is told with the question if it does not
                    break
                raise InputError(fault[0], f"'{model}'", remedy=fault[1])
            if probe.seconds:
                rate += self.connections / probe.seconds
        return rate

    def _make_probe(self, runner: Runner, sheet: Sheet) -> Probe:
        """What has become of the only attempt at the first request."""
        probe = Probe()
        token = probing.set(probe)
        previous_level = logging.root.manager.disable
        logging.disable(logging.CRITICAL)
        try:
            in_own_loop(runner.put_first, sheet)
        finally:
            probing.reset(token)
            logging.disable(previous_level)
        # the study finds it kept, and has not saved a call by it
        self.budget.cached -= probe.seconds is not None
        return probe

    @property
    def connections(self) -> int:
        """Requests that may be in flight to a server that is asked directly."""
        return self.generation.get("max_connections") or CONNECTIONS

    @cached_property
    def _slots(self) -> Mapping[str, int]:
        return slots(study.questions for study in self.studies)

    def _places(self, study: Study) -> list[int]:
        """The questions of a study that are asked here, by their places in its set."""
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
        """How many questions are asked, each as often as it is."""
        question_count = sum(len(self._places(study)) * study.epochs for study in self.studies)
        return len(self.models) * question_count

    def _sheets(self) -> list[Sheet]:
        """Each study as it is put to each model."""
        run = uuid4().hex
        return [
            sheet
            for place, study in enumerate(self.studies)
            for sheet in self._sheets_of(study, run, place)
        ]

    def runs(self) -> list[str]:
        """Ids of the runs in the order asked: all that a model is asked, then the next model."""
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
        # who verifies is of the runs with that defence alone
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
        """How many generations there will be at the most, those that are kept too."""
        total, replays, earlier = 0, 0, list[StudyPlan]()
        for study in self.studies:
            plan = study.plan(roles=self.roles, places=self._places(study))
            call_count = plan.tested(earlier, study.epochs)
            # how many replies the rules leave to a reader nobody knows before
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
        """Refuse to put another setting of the same study into the same log dir."""
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
            )  # a seed is the generation's too
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
    """What fixes prompts and replies, as it is read from a log; an address as it was given."""
    known_settings = {**run_settings(log), "--model-base-url": log.eval.model_base_url}
    settings: dict[str, Any] = json.loads(json.dumps(known_settings, default=str))
    return settings


def _whole(logs: Sequence[EvalLog], sheet: Sheet) -> list[EvalLog]:
    """The newest log that holds all that a sheet would ask, or those of shards that do together.

    Empty where questions are missing, or were asked less often.
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
    """Keep what logs say was generated, where nothing is kept, or some of it is damaged."""
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
    """Run a coroutine to its end, in a thread of its own where a loop is running in this one."""
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
    # it has no version for Windows
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
"""Settings that a log must be without where they are not given now."""


def _grows(
    name: str,
    earlier_settings: Mapping[str, object],
    new_settings: Mapping[str, object],
    growing: Container[str],
) -> bool:
    """Whether a setting may differ, because what is there keeps its prompts and replies."""
    if name in _READERS:  # the same; and who has read some can read all
        was, now = (
            tuple(settings.get(role) for role in _READERS)
            for settings in (earlier_settings, new_settings)
        )
        return was == (None, None) or now == (None, was[0])
    if name in growing and name.startswith("--model-role "):
        return name not in earlier_settings  # a helper can be added, not replaced
    if name == OWN_TECHNIQUES:  # they are among those that are all compared
        return True
    return (name in growing or name == _CONTEXTS) and _agree(
        earlier_settings.get(name), new_settings.get(name)
    )


def _difference(earlier_value: object, new_value: object) -> tuple[object, object]:
    """Both values; of two mappings what both have and is not alike."""
    if not isinstance(earlier_value, Mapping) or not isinstance(new_value, Mapping):
        return earlier_value, new_value
    names = [
        name
        for name in earlier_value.keys() & new_value.keys()
        if earlier_value[name] != new_value[name]
    ]
    return {name: earlier_value[name] for name in names}, {name: new_value[name] for name in names}


def _agree(earlier_value: object, new_value: object) -> bool:
    """Whether what both have is alike: techniques worded alike, contexts of one length."""
    if not isinstance(earlier_value, Mapping) or not isinstance(new_value, Mapping):
        return not isinstance(earlier_value, Mapping) and not isinstance(new_value, Mapping)
    value_pairs = [
        (new_value[id], earlier_value[id]) for id in new_value.keys() & earlier_value.keys()
    ]
    return all(now == was or was == NO_CONTEXTS for now, was in value_pairs)


def missing_told(missing: int, reasons: Counter[str]) -> str:
    """The same in words, empty where nothing is missing."""
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
    """Spare every generation what nobody looks at."""
    gc.freeze()  # the modules loaded so far stay; each full collection would walk them
    often = gc.get_threshold()
    gc.set_threshold(often[0], 5, 1)  # what a question leaves is soon garbage, and little is old
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
    """What went wrong, out of the representation of an exception that the log keeps."""
    inner = re.fullmatch(r"""\w+\((['"])(.*)\1\)""", error, re.DOTALL)
    return " ".join((inner[2] if inner else error).split())[:_LONGEST_REASON]
