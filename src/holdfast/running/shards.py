"""Sharded runs: questions are distributed among processes that write into one log directory."""

import os
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.util import find_spec
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from typing import Any

from holdfast.challenges.prepared import GENERATE
from holdfast.dialogue.budget import Budget
from holdfast.errors import (
    HoldfastError,
    InputError,
    InterruptedRunError,
    counted,
    in_one_line,
    printable,
)
from holdfast.results.turns import WrittenTurns

from .evaluation import Evaluation, describe_missing
from .log_dir import lock_shard, without_damaged
from .progress import Progress
from .resolved import Outcome, Running, ask_here, resolved
from .shard import Shard

TRIES = 3
"""Maximum number of attempts at a shard whose process is lost."""

_OFTEN = 0.3
"""Seconds between two reports of a shard's spending."""

_GRACE = 60
"""Seconds for shards to close their logs after an interrupt by the user."""

LOCAL_CLUSTER = "local"
"""Address that starts a cluster on this machine for this run only."""

FULL = 500
"""Replies per second that fully use one process."""

WORTH = 15_000
"""Number of generations that justifies another process."""

_SPENDING_FIELDS = ("calls", "cached", "tokens", "cost", "estimated")


@dataclass(frozen=True)
class ShardReport:
    """Final report of a shard's process.

    Attributes:
        shard: the shard.
        spending: spending by the names of a budget's counts.
        missing: number of unfinished questions.
        reasons: reasons with their counts.
    """

    shard: Shard
    spending: Counter[str] = field(default_factory=Counter)
    missing: int = 0
    reasons: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, shard: Shard, budget: Budget) -> "ShardReport":
        """Return a report of a shard's spending so far."""
        return cls(shard, Counter({name: getattr(budget, name) for name in _SPENDING_FIELDS}))

    @property
    def unfinished(self) -> str:
        """The unfinished questions in words; empty if all are finished."""
        return describe_missing(self.missing, Counter(self.reasons))

    def plus(self, more: "ShardReport") -> "ShardReport":
        """Return the report of a later process on the shard, with this one's spending added."""
        return replace(more, spending=self.spending + more.spending)

    def __str__(self) -> str:
        """Return the report on one line."""
        calls, cached_calls = counted(self.spending["calls"], "call"), self.spending["cached"]
        left = f", {counted(self.missing, 'question')} unfinished" if self.missing else ""
        return f"Shard {self.shard} done: {calls}, {cached_calls} from the cache{left}"


@dataclass(frozen=True)
class ShardFailure:
    """Shard whose process ended without a report.

    Attributes:
        shard: the shard.
        how: how the process ended, as far as known.
        again: whether the shard is run again.
    """

    shard: Shard
    how: str
    again: bool = False

    def __str__(self) -> str:
        """Return the failure on one line."""
        message = f"Shard {self.shard} was lost ({self.how})"
        return f"{message}. It continues in another process" if self.again else message


End = ShardReport | ShardFailure | HoldfastError
"""End of a shard's process: report, failure or error."""

RunShards = Callable[
    [Mapping[str, Any], Sequence[Shard], int, Callable[[ShardReport], None]], Iterator[End]
]
"""Function that runs shards in processes: options, shards, tries and callback to their ends."""


def run_shard(running: Running, shard: Shard, *, alone: bool = True) -> ShardReport:
    """Run or resume a shard in this process."""
    if alone:
        _check_inputs_there(running)
    budget = shard.budget(running.budget())
    with lock_shard(running.log_dir, shard, alone=alone):
        evaluation = running.evaluation(running.with_inputs_there(), budget)
        outcome = replace(evaluation, shard=shard).run()
    if outcome.interrupted:
        raise InterruptedRunError
    report = ShardReport.of(shard, budget)
    return replace(report, missing=outcome.missing, reasons=dict(outcome.reasons))


def run_shard_apart(
    arguments: Mapping[str, Any], shard: Shard, progress: Progress | None = None
) -> ShardReport | HoldfastError:
    """Run a shard in a process started for it; return its report or error."""
    try:
        return run_shard(resolved(arguments, progress), shard, alone=False)
    except HoldfastError as error:
        return error


def _check_inputs_there(running: Running) -> None:
    for study in running.studies:
        for setting, name in study.protocol.generated.items():
            if study.args.get(setting) == GENERATE and study.needs(setting):
                raise InputError(
                    f"cannot generate {name}, which all shards need",
                    field="--shard",
                    remedy=f"Make a file with 'holdfast generate {name}', and give that",
                )


@dataclass(frozen=True)
class Sharding:
    """Run that is split into shards.

    Each process resolves the options itself.

    Attributes:
        running: the run.
        options: its options.
        shards: number of shards. None means as many as the server can keep busy.
        ray: address of a cluster, None for processes on this machine.
    """

    running: Running
    options: Mapping[str, Any]
    shards: int | None
    ray: str | None = None

    def run(self) -> Outcome:
        """Run or resume; the shard of a lost process is run again.

        With a budget it is not run again, because the spending of the lost process is unknown.
        """
        run_shards, written_turns = self._runner(), WrittenTurns()

        def ask(evaluation: Evaluation) -> tuple[str, bool]:
            if not (self.shards or self._may_split(evaluation.budget)):
                return ask_here(evaluation, written_turns)
            without_damaged(evaluation.log_dir, evaluation.progress)
            total = evaluation.generations()
            rate, kept_probe = evaluation.probe()
            shard_arguments = self._remaining_options(evaluation.budget)
            shards = self.shards
            if shards is None:
                shards = min(_processors(), int(rate // FULL), (total - kept_probe) // WORTH)
                if shards < 2:
                    return ask_here(evaluation, written_turns)
                shard_arguments["max_connections"] = -(-evaluation.connections // shards)
            run = partial(run_shards, shard_arguments, Shard.all(shards))
            try:
                ends = self._ends(run, evaluation.budget, total)
            except InterruptedRunError:
                return "", True
            left, reasons = 0, Counter[str]()
            for end in ends:
                if isinstance(end, ShardFailure):  # its generations are stored, but not logged
                    left += replace(evaluation, shard=end.shard).records
                    reasons[str(end)] += 1
                else:
                    left += end.missing
                    reasons.update(end.reasons)
            return describe_missing(left, reasons), False

        return self.running.made(ask, written_turns)

    def _may_split(self, budget: Budget) -> bool:
        """Whether a server may keep several processes busy and no budget must be divided."""
        apis = [model.api for model in self.running.models]
        direct = all(getattr(api, "direct", False) for api in apis)
        offline = any(getattr(api, "offline", False) for api in apis)
        # an assistant has limits of its own, which processes would not share
        limited = any(hasattr(api, "describe") for api in apis)
        return direct and not offline and not limited and not budget.is_limited

    def _ends(
        self,
        run_shards: Callable[[int, Callable[[ShardReport], None]], Iterator[End]],
        budget: Budget,
        total: int,
    ) -> list[ShardReport | ShardFailure]:
        """Run all shards and add their spending to the budget."""
        ends: list[ShardReport | ShardFailure] = []
        wrong: list[HoldfastError] = []
        reports: dict[Shard, ShardReport] = {}
        before = replace(budget)

        def advance(report: ShardReport) -> None:
            reports[report.shard] = report
            of_shards = sum(
                (shard_report.spending for shard_report in reports.values()), Counter[str]()
            )
            for name in _SPENDING_FIELDS:
                setattr(budget, name, getattr(before, name) + of_shards[name])
            if budget.on_turn:
                budget.on_turn(budget)

        tries = 1 if budget.is_limited else TRIES
        # standard output is for results only, but Ray prints to it
        with redirect_stdout(sys.stderr), self.running.progress.asking(budget, total):
            for end in run_shards(tries, advance):
                if isinstance(end, HoldfastError):
                    wrong.append(end)
                    continue
                if isinstance(end, ShardReport):
                    advance(end)
                if isinstance(end, ShardReport) or not end.again:
                    ends.append(end)
                if self.shards or isinstance(end, ShardFailure):
                    self.running.progress.say(printable(str(end)))
        if wrong:
            raise wrong[0]
        return ends

    def _remaining_options(self, budget: Budget) -> dict[str, Any]:
        """Return the options with the budget that the preparation has left."""
        left = dict(self.options)
        spent_by_limit = {
            "call_limit": budget.calls,
            "token_limit": budget.tokens,
            "cost_limit": budget.cost,
        }
        for name, amount in spent_by_limit.items():
            if left.get(name) is not None:
                left[name] = max(0, left[name] - amount)
        return left

    def _runner(self) -> RunShards:
        if self.ray is None:
            return run_on_this_machine
        check_installed()
        return partial(run_on_ray, self.ray)


def _processors() -> int:
    """Return the number of processors that this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)  # not on every platform
    return len(affinity(0)) if affinity else os.cpu_count() or 1


@dataclass
class _Worker:
    shard: Shard
    tries: int
    process: SpawnProcess
    words: "Connection[Any, Any]"
    before: ShardReport
    """Spending of lost processes on the same shard."""
    spending: ShardReport


def run_on_this_machine(
    arguments: Mapping[str, Any],
    shards: Sequence[Shard],
    tries: int,
    on_progress: Callable[[ShardReport], None],
) -> Iterator[ShardReport | ShardFailure | HoldfastError]:
    """Run every shard in a separate process, all concurrently."""
    workers = [_start(arguments, shard, tries, ShardReport(shard)) for shard in shards]
    try:
        while workers:
            ready = wait([worker.words for worker in workers])
            for worker in [worker for worker in workers if worker.words in ready]:
                try:
                    word = worker.words.recv()
                except (EOFError, OSError):
                    workers.remove(worker)
                    again = worker.tries > 1
                    if again:
                        workers.append(
                            _start(arguments, worker.shard, worker.tries - 1, worker.spending)
                        )
                    yield ShardFailure(worker.shard, _end_of(worker.process), again)
                    continue
                if isinstance(word, _Spending):
                    worker.spending = worker.before.plus(word.report)
                    on_progress(worker.spending)
                    continue
                workers.remove(worker)
                worker.process.join()
                yield worker.before.plus(word) if isinstance(word, ShardReport) else word
    except KeyboardInterrupt:
        _stop(workers)
        raise InterruptedRunError from None
    finally:
        for worker in workers:
            worker.process.kill()


@dataclass(frozen=True)
class _Spending:
    report: ShardReport


class _Telling(Progress):
    """Progress that reports the spending to the parent process."""

    def __init__(self, shard: Shard, connection: "Connection[Any, Any]") -> None:
        self._shard, self._connection, self._last = shard, connection, 0.0

    @contextmanager
    def asking(self, budget: Budget, total: int | None) -> Iterator[None]:
        """Report the spending at intervals."""
        budget.on_turn = self._tell
        yield

    def _tell(self, budget: Budget) -> None:
        if time.monotonic() - self._last > _OFTEN:
            self._last = time.monotonic()
            self._connection.send(_Spending(ShardReport.of(self._shard, budget)))


def _start(arguments: Mapping[str, Any], shard: Shard, tries: int, before: ShardReport) -> _Worker:
    # spawn, because the threads and event loops of the framework do not survive a fork
    context = get_context("spawn")
    words, connection = context.Pipe(duplex=False)
    process = context.Process(
        target=_work, args=(dict(arguments), shard, connection), name=f"shard {shard}"
    )
    process.start()
    connection.close()  # otherwise the end of the process would not close the pipe
    return _Worker(shard, tries, process, words, before, before)


def _work(arguments: Mapping[str, Any], shard: Shard, connection: "Connection[Any, Any]") -> None:
    # the parent receives the terminal's interrupt and passes it on once
    os.setpgrp()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # standard output is for the parent's summary; log handlers keep the original stream
    os.dup2(2, 1)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        word: ShardReport | HoldfastError = run_shard_apart(
            arguments, shard, _Telling(shard, connection)
        )
    except KeyboardInterrupt:
        word = InterruptedRunError()
    with suppress(BrokenPipeError):
        connection.send(word)


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)


def _end_of(process: SpawnProcess) -> str:
    process.join()
    code = process.exitcode or 0
    return f"killed by signal {-code}" if code < 0 else f"exit code {code}"


def _stop(workers: Sequence[_Worker]) -> None:
    for worker in workers:
        if worker.process.pid and worker.process.is_alive():
            os.kill(worker.process.pid, signal.SIGINT)
    end = time.monotonic() + _GRACE
    for worker in workers:
        # read pending messages, because a worker that cannot write would never end
        with suppress(EOFError, OSError):
            while worker.words.poll(max(0.0, end - time.monotonic())):
                worker.words.recv()
        worker.process.join(max(0.0, end - time.monotonic()))


def check_installed() -> None:
    """Raise an error if Ray is not installed."""
    if find_spec("ray") is None:
        raise InputError(
            "Ray is not installed", field="--ray", remedy="pip install 'holdfast[ray]'"
        )


def run_on_ray(
    address: str,
    arguments: Mapping[str, Any],
    shards: Sequence[Shard],
    tries: int,
    on_progress: Callable[[ShardReport], None],
) -> Iterator[ShardReport | ShardFailure | HoldfastError]:
    """Run every shard as a Ray task; Ray repeats a task whose worker is lost."""
    ray = _connect(address)
    # a new process for each task, because a run changes process state such as the cache folder
    task = ray.remote(max_calls=1, max_retries=tries - 1, num_cpus=1)(run_in_task)
    where = os.getcwd()
    try:
        running = {task.remote(dict(arguments), shard, where): shard for shard in shards}
        while running:
            finished_tasks, _ = ray.wait(list(running), num_returns=1)
            shard = running.pop(finished_tasks[0])
            try:
                yield ray.get(finished_tasks[0])
            except ray.exceptions.RayError as error:
                yield ShardFailure(shard, in_one_line(error))
    except KeyboardInterrupt:
        for left in running:
            ray.cancel(left)
        raise InterruptedRunError from None
    finally:
        ray.shutdown()


def run_in_task(
    arguments: Mapping[str, Any], shard: Shard, where: str
) -> ShardReport | HoldfastError:
    """Run one shard in a worker of the cluster."""
    if os.path.isdir(where):
        os.chdir(where)
    return run_shard_apart(arguments, shard)


def _connect(address: str) -> Any:
    # no usage reports
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    if address == LOCAL_CLUSTER:
        # keeps Ray on the loopback interface, also on Linux; read during the import
        os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
    import ray

    options = {"include_dashboard": False} if address == LOCAL_CLUSTER else {}
    try:
        ray.init(address=address, log_to_driver=False, logging_level="error", **options)
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise InputError(
            f"cannot be reached ({in_one_line(error)})",
            address,
            remedy="Check --ray; 'local' starts a cluster on this machine",
        ) from error
    return ray
