"""Rescoring: the logs stay unchanged, and newer readings are written next to them."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

import anyio
import polars as pl
from inspect_ai.log import EvalLog, EvalSample
from inspect_ai.model import GenerateConfig, Model

from holdfast.dialogue.budget import Budget, run_budget
from holdfast.errors import HoldfastError, IncompleteRunError, InputError
from holdfast.protocols.second_reading import (
    Reader,
    Rereading,
    check_reader,
    diverged,
    logged_question,
    read_again,
)
from holdfast.results.readings import READ_AGAIN, TURN_KEY, as_recorded, mark, write_readings
from holdfast.results.records import question_order, records, runs_in
from holdfast.results.runs import logs_in, tested_name
from holdfast.results.turns import turns_in, turns_table, write_turns

from .evaluation import ATTEMPT_SECONDS
from .log_dir import check_shards_free, generation_store, lock_log_dir, name_damaged
from .progress import Progress

_LONGEST_REPLY = 300


@dataclass(frozen=True)
class Scored:
    """Result for one run.

    Attributes:
        run: id of the run.
        model: the model under test.
        dataset: its question set.
        protocol: its protocol.
        read: number of turns read again.
        changed: number of these with another answer or status than before.
        lacking: number of turns that cannot be read again, because the log lacks their options.
        elsewhere: number of conversations that would have continued differently with the new
            readings.
        readings: number of readings of the reader by status.
        calls: number of requests to the reader.
        cached: number of requests answered from the store.
        tokens: input and output tokens of the reader.
        cost: cost in dollars.
    """

    run: str
    model: str
    dataset: str
    protocol: str
    read: int
    changed: int
    lacking: int
    elsewhere: int
    readings: Mapping[str, int]
    calls: int
    cached: int
    tokens: int
    cost: float


@dataclass
class _RereadRun:
    """New readings of a run so far."""

    header: EvalLog
    rows: list[dict[str, Any]] = field(default_factory=list)
    elsewhere: int = 0
    spending: Budget = field(default_factory=Budget)


@dataclass(frozen=True)
class Scoring:
    """Rescoring of the runs of a log directory, by the rules and optionally by a reader.

    ``reads_all`` is whether the reader reads every reply, instead of only unparsed replies.
    """

    log_dir: str
    reader: Model | None = None
    reads_all: bool = False
    budget: Budget = field(default_factory=Budget)
    generation: GenerateConfig = field(default_factory=GenerateConfig)
    text: bool = True
    progress: Progress = field(default_factory=Progress)

    def run(self) -> tuple[str, list[Scored]]:
        """Rescore every run; return the path of the turns table and the result for each run.

        Raises:
            InputError: there is no log, the reader is a model under test, or another process uses
                the log directory.
            IncompleteRunError: the reader failed, or the budget is spent. Nothing is written.
        """
        before = turns_table([self.log_dir], text=False)
        headers = logs_in(self.log_dir, whole=True)
        if not headers:
            raise InputError(
                "contains no holdfast log", self.log_dir, remedy="Give the log directory of a run"
            )
        if self.reader:
            check_reader(str(self.reader), [header.eval.model for header in headers])
        with lock_log_dir(self.log_dir), generation_store(self.log_dir):
            check_shards_free(self.log_dir)
            if self.reader:
                name_damaged(self.log_dir, self.progress)
            token = run_budget.set(self.budget)
            try:
                asking = self.progress.asking(self.budget, None) if self.reader else nullcontext()
                with asking:
                    results = anyio.run(self._runs, headers)
            finally:
                run_budget.reset(token)
            rows = [row for result in results.values() for row in result.rows]
            again = pl.DataFrame(rows, {**READ_AGAIN, "_read": pl.Boolean()}, orient="row")
            write_readings(again, self.log_dir)
            path, after = write_turns(self.log_dir, text=self.text)
        return path, [
            _summarise_run(run, result, again, before, after) for run, result in results.items()
        ]

    async def _runs(self, headers: Sequence[EvalLog]) -> dict[str, _RereadRun]:
        try:
            return {run: await self._run(run, logs) for run, logs in runs_in(list(headers))}
        finally:
            if self.reader and getattr(self.reader.api, "direct", False):
                await self.reader.api.aclose()

    async def _run(self, run: str, logs: list[EvalLog]) -> _RereadRun:
        result, budget = _RereadRun(logs[0]), self.budget
        before = (budget.calls, budget.cached, budget.tokens, budget.cost)
        batches = records(logs, question_order(logs))
        # Inspect reads logs in its own event loop, which cannot run inside this one
        while (batch := await anyio.to_thread.run_sync(next, batches, None)) is not None:
            log, samples = batch
            for sample, turns, again in await self._read(log, samples):
                result.rows += _rows(run, sample, turns, again)
                result.elsewhere += diverged(turns, again)
        after = (budget.calls, budget.cached, budget.tokens, budget.cost)
        calls, cached_calls, tokens, cost = (b - a for a, b in zip(before, after, strict=True))
        result.spending = Budget(
            calls=int(calls), cached=int(cached_calls), tokens=int(tokens), cost=cost
        )
        return result

    async def _read(
        self, log: EvalLog, samples: Sequence[EvalSample]
    ) -> list[tuple[EvalSample, list[dict[str, Any]], list[Rereading]]]:
        """Return the turns of some samples with their new readings, read concurrently."""
        recorded_turns = [[as_recorded(turn) for turn in turns_in(sample)] for sample in samples]
        rereadings: list[list[Rereading]] = [[] for _ in samples]
        failures: Counter[str] = Counter()
        protocol, settings = _study(log)

        async def read(place: int) -> None:
            question = logged_question(samples[place])
            reader = None
            if self.reader:
                reader = Reader(self.reader, self.reads_all, question, self._config())
            try:
                rereadings[place] = await read_again(
                    protocol, settings, question, recorded_turns[place], reader
                )
            except HoldfastError as error:
                failures[str(error)] += 1

        async with anyio.create_task_group() as group:
            for place in range(len(samples)):
                group.start_soon(read, place)
        if failures:
            reason, _ = failures.most_common(1)[0]
            raise IncompleteRunError(
                "The reader could not read every reply: "
                f"{' '.join(reason.split())[:_LONGEST_REPLY]}. Nothing was written. Repeat the "
                "command to resume."
            )
        return list(zip(samples, recorded_turns, rereadings, strict=True))

    def _config(self) -> GenerateConfig:
        return GenerateConfig(attempt_timeout=ATTEMPT_SECONDS).merge(self.generation)


def _study(log: EvalLog) -> tuple[str, Mapping[str, Any]]:
    """Return protocol and settings of a log."""
    return str((log.eval.metadata or {})["protocol"]), log.eval.task_args


def _rows(
    run: str, sample: EvalSample, turns: Sequence[Mapping[str, Any]], again: Sequence[Rereading]
) -> Iterator[dict[str, Any]]:
    """Yield the new readings as rows of their file."""
    for turn, new in zip(turns, again, strict=True):
        extraction = new.extraction
        yield {
            **dict.fromkeys(READ_AGAIN),
            "run": run,
            "question": str(sample.id),
            "epoch": sample.epoch,
            **{name: turn[name] for name in ("arm", "path", "turn")},
            "_mark": mark(turn),
            "answer": extraction.answer,
            "status": extraction.status,
            "rule": extraction.rule,
            **new.readings,
            "_read": new.is_reread,
        }


def _summarise_run(
    run: str, result: _RereadRun, again: pl.DataFrame, before: pl.DataFrame, after: pl.DataFrame
) -> Scored:
    """Compare the turns of a run before and after rescoring."""
    now = after.filter(pl.col("run") == run)
    anew = now.join(again.filter("_read"), on=TURN_KEY, how="semi")
    counts = ("answer", "status")
    was = before.select(*TURN_KEY, *(pl.col(name).alias(f"_{name}") for name in counts))
    is_other = pl.any_horizontal(pl.col(name).ne_missing(pl.col(f"_{name}")) for name in counts)
    readings = anew["reader_status"].drop_nulls().value_counts(sort=True).rows()
    spec, budget = result.header.eval, result.spending
    return Scored(
        run=run,
        model=tested_name([result.header]),
        dataset=spec.dataset.name or "",
        protocol=_study(result.header)[0],
        read=anew.height,
        changed=anew.join(was, on=TURN_KEY, how="left").filter(is_other).height,
        lacking=now.join(again, on=TURN_KEY, how="anti").height,
        elsewhere=result.elsewhere,
        readings=dict(readings),
        calls=budget.calls,
        cached=budget.cached,
        tokens=budget.tokens,
        cost=budget.cost,
    )
