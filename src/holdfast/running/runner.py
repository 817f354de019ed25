"""The runner: puts questions to models, a window of them at a time, and writes what was said."""

import time
import traceback
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import anyio
from inspect_ai import Task
from inspect_ai.dataset import Sample
from inspect_ai.log import EvalError, EvalLog, EvalSample
from inspect_ai.model import ChatMessageUser, GenerateConfig, Model, ModelCost, ModelName
from inspect_ai.scorer import Score, Target
from inspect_ai.solver import TaskState

from holdfast.dialogue.sitting import Connections, Sitting, current_sitting
from holdfast.errors import IncompleteRunError, unwritable
from holdfast.results.turns import WrittenTurns

from .logs import Log, scorer_name
from .models import price_of

WINDOW = 100
"""Questions under way at once, unless more requests may be in flight."""


@dataclass(frozen=True)
class Sheet:
    """A study as it is put to one model.

    Attributes:
        task: what is asked.
        model: of whom.
        config: settings of generation of the study.
        places: of the questions in the task's set.
        epochs: times each is asked.
        header: how the log begins.
    """

    task: Task
    model: Model
    config: GenerateConfig
    places: Sequence[int]
    epochs: int
    header: EvalLog

    def samples(self) -> Iterator[tuple[Sample, int]]:
        """Every question with the number of the time that it is asked."""
        for epoch in range(1, self.epochs + 1):
            for place in self.places:
                yield self.task.dataset[place], epoch


@dataclass
class Runner:
    """Puts sheets to their models.

    A study is a pure program over kept generations: what was said before is said again at once,
    the rest is asked. So nothing is remembered of earlier runs but what they have kept.

    Attributes:
        log_dir: where the logs go.
        roles: helpers by role.
        turns: what was said, beside the logs.
        connections: shared by all questions.
        closed_logs: the logs that are closed, those of an interrupted run too.
    """

    log_dir: str
    roles: Mapping[str, Model]
    turns: WrittenTurns | None = None
    connections: Connections = field(default_factory=Connections)
    closed_logs: list[Log] = field(default_factory=list)

    async def put(self, sheets: Sequence[Sheet]) -> None:
        """Put all questions of all sheets, those of each model in turn."""
        lanes: dict[Model, list[Sheet]] = {}
        for sheet in sheets:
            lanes.setdefault(sheet.model, []).append(sheet)
        async with self._close_connections(*lanes), anyio.create_task_group() as group:
            for lane in lanes.values():
                group.start_soon(self._lane, lane)

    async def put_first(self, sheet: Sheet) -> None:
        """Put the first question of a sheet, and log nothing."""
        async with self._close_connections(sheet.model):
            await self.sit(sheet, *next(sheet.samples()))

    @asynccontextmanager
    async def _close_connections(self, *models: Model) -> AsyncIterator[None]:
        """Close the connections of our own provider, which would be told of as lost at the end."""
        try:
            yield
        finally:
            with anyio.CancelScope(shield=True):
                for model in {*models, *self.roles.values()}:
                    if getattr(model.api, "direct", False):
                        await model.api.aclose()

    async def _lane(self, sheets: Sequence[Sheet]) -> None:
        """The sheets of one model: the next begins while the last questions are under way."""
        async with anyio.create_task_group() as group:
            free = anyio.Semaphore(max(s.config.max_connections or WINDOW for s in sheets))
            for sheet in sheets:
                await group.start(self._sheet, sheet, free)

    async def _sheet(self, sheet: Sheet, free: anyio.Semaphore, *, task_status: Any) -> None:
        with self._writing():
            log, whole = Log(sheet.header, self.log_dir), False

        async def one(sample: Sample, epoch: int) -> None:
            try:
                sat = await self.sit(sheet, sample, epoch)
                with self._writing():
                    log.add(sat)
                if self.turns:
                    self.turns.note(log.header, sat)
            finally:
                free.release()

        try:
            async with anyio.create_task_group() as group:
                for sample, epoch in sheet.samples():
                    await free.acquire()
                    group.start_soon(one, sample, epoch)
                task_status.started()
            whole = True
        finally:
            with self._writing():
                self.closed_logs.append(log)
                log.end(was_interrupted=not whole)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:  # what was said is kept
            raise IncompleteRunError(str(unwritable(self.log_dir, error))) from error

    def _prices(self, tested_model: Model) -> dict[Model, ModelCost]:
        models_asked = [tested_model, *self.roles.values()]
        models_asked = [model for model in models_asked if getattr(model.api, "direct", False)]
        return {model: price for model in models_asked if (price := price_of(model)) is not None}

    async def sit(self, sheet: Sheet, sample: Sample, epoch: int) -> EvalSample:
        """One question, as the log is to have it."""
        sitting = Sitting(
            sheet.model, self.roles, sheet.config, self.connections, self._prices(sheet.model)
        )
        current_sitting.set(sitting)  # of this task alone
        began = datetime.now(UTC)
        state = TaskState(
            ModelName(sheet.model),
            sample.id or "",
            epoch,
            sample.input,
            [ChatMessageUser(content=str(sample.input))],
            Target(sample.target),
            sample.choices,
            metadata=sample.metadata,
            sample_uuid=sitting.uuid,
        )
        scores: dict[str, Score] | None = None
        failure: EvalError | None = None
        try:
            state = await sheet.task.solver(state, _no_generate)
            scores = {}
            for scorer in sheet.task.scorer or []:
                if (score := await scorer(state, state.target)) is not None:
                    scores[scorer_name(scorer)] = score
        except Exception as error:
            failure = _failure(error)
        took = time.monotonic() - sitting.began
        return _SAT.model_copy(
            update={
                "id": sample.id or "",
                "epoch": epoch,
                "input": sample.input,
                "choices": sample.choices,
                "target": sample.target,
                "messages": list(state.messages),
                "output": state.output,
                "scores": scores,
                "metadata": sample.metadata or {},
                "store": dict(state.store.items()),
                "events": sitting.events,
                "events_data": sitting.events_data,
                "model_usage": sitting.usage,
                "role_usage": sitting.role_usage,
                "started_at": began.isoformat(),
                "completed_at": datetime.now(UTC).isoformat(),
                "total_time": took,
                "working_time": took,
                "uuid": sitting.uuid,
                "error": failure,
            }
        )


_SAT = EvalSample(id="", epoch=1, input="", target="")
"""Each sample is a copy: what is put together here needs no second look."""


async def _no_generate(state: TaskState, *_: Any, **__: Any) -> TaskState:
    raise NotImplementedError("a protocol asks by a conversation")


def _failure(error: Exception) -> EvalError:
    trace = "".join(traceback.format_exception(error))
    return EvalError(message=repr(error), traceback=trace, traceback_ansi=trace)
