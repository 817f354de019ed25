"""Shards as processes on this machine."""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from typing import Any

from holdfast.dialogue import Budget
from holdfast.errors import HoldfastError, InterruptedRunError

from .shard import Shard
from .sharding import Lost, Report, put_apart

_OFTEN = 0.3
"""Seconds between two words of a shard on what it has spent."""

_GRACE = 60
"""Seconds that shards have to close their logs when the user stops the run."""


@dataclass
class _Worker:
    shard: Shard
    tries: int
    process: SpawnProcess
    words: "Connection[Any, Any]"
    before: Report
    """What processes have spent that were lost over the same shard."""
    spent: Report


def put_on_this_machine(
    given: Mapping[str, Any],
    shards: Sequence[Shard],
    tries: int,
    on_progress: Callable[[Report], None],
) -> Iterator[Report | Lost | HoldfastError]:
    """Put every shard in a process of its own, all at once.

    Args:
        given: options of ``holdfast run``.
        shards: what is put.
        tries: times that a shard is put whose process is lost.
        on_progress: told what a shard has spent so far.

    Yields:
        How each process ended.

    Raises:
        InterruptedRunError: the user stopped it; the shards have closed their logs.
    """
    workers = [_start(given, shard, tries, Report(shard)) for shard in shards]
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
                        workers.append(_start(given, worker.shard, worker.tries - 1, worker.spent))
                    yield Lost(worker.shard, _end_of(worker.process), again)
                    continue
                if isinstance(word, _Spent):
                    worker.spent = worker.before.plus(word.report)
                    on_progress(worker.spent)
                    continue
                workers.remove(worker)
                worker.process.join()
                yield worker.before.plus(word) if isinstance(word, Report) else word
    except KeyboardInterrupt:
        _stop(workers)
        raise InterruptedRunError from None
    finally:
        for worker in workers:
            worker.process.kill()


@dataclass(frozen=True)
class _Spent:
    report: Report


def _start(given: Mapping[str, Any], shard: Shard, tries: int, before: Report) -> _Worker:
    # spawned, not forked: the framework's threads and event loops do not survive a fork
    context = get_context("spawn")
    words, said = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(dict(given), shard, said), name=f"shard {shard}")
    process.start()
    said.close()  # with the process gone, nobody holds it, and reading ends
    return _Worker(shard, tries, process, words, before, before)


def _work(given: Mapping[str, Any], shard: Shard, said: "Connection[Any, Any]") -> None:
    # the terminal's interrupt goes to the one who has started this, who passes it on once
    os.setpgrp()
    # standard output is for the summary of the whole; handlers of logs keep to what they found
    os.dup2(2, 1)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    last = 0.0

    def tell(budget: Budget) -> None:
        nonlocal last
        if time.monotonic() - last > _OFTEN:
            last = time.monotonic()
            said.send(_Spent(Report.of(shard, budget)))

    try:
        word: Report | HoldfastError = put_apart(given, shard, tell)
    except KeyboardInterrupt:
        word = InterruptedRunError()
    with suppress(BrokenPipeError):
        said.send(word)


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
        # what it still says is read, or it would wait for a reader and never end
        with suppress(EOFError, OSError):
            while worker.words.poll(max(0.0, end - time.monotonic())):
                worker.words.recv()
        worker.process.join(max(0.0, end - time.monotonic()))
