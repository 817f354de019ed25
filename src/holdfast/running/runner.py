"""Runner: asks models the questions of studies in a sliding window, and logs the replies."""

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
"""Default number of concurrent questions, raised if more pending requests are allowed."""


@dataclass(frozen=True)
class Sheet:
    """Study on one model.

    Attributes:
        task: the task.
        model: the model under test.
        config: generation settings of the study.
        places: positions of the questions in the task's set.
        epochs: number of epochs.
        header: header of the log.
    """

    task: Task
    model: Model
    config: GenerateConfig
    places: Sequence[int]
    epochs: int
    header: EvalLog

    def samples(self) -> Iterator[tuple[Sample, int]]:
        """Yield every question with its epoch."""
        for epoch in range(1, self.epochs + 1):
            for place in self.places:
                yield self.task.dataset[place], epoch


@dataclass
class Runner:
    """Runner of sheets.

    A study is a pure function of stored generations: stored replies are reused, and missing replies
    are requested. No other state of earlier runs exists.

    Attributes:
        log_dir: directory of the logs.
        roles: helpers by role.
        turns: store of the logged turns, or None.
        connections: limits shared by all questions.
        closed_logs: logs that are closed, also those of an interrupted run.
    """

    log_dir: str
    roles: Mapping[str, Model]
    turns: WrittenTurns | None = None
    connections: Connections = field(default_factory=Connections)
    closed_logs: list[Log] = field(default_factory=list)

    async def put(self, sheets: Sequence[Sheet]) -> None:
        """Ask all questions of all sheets, concurrently for different models."""
        lanes: dict[Model, list[Sheet]] = {}
        for sheet in sheets:
            lanes.setdefault(sheet.model, []).append(sheet)
        async with self._close_connections(*lanes), anyio.create_task_group() as group:
            for lane in lanes.values():
                group.start_soon(self._lane, lane)

    async def put_first(self, sheet: Sheet) -> None:
        """Ask the first question of a sheet without logging it."""
        async with self._close_connections(sheet.model):
            await self.sit(sheet, *next(sheet.samples()))

    @asynccontextmanager
    async def _close_connections(self, *models: Model) -> AsyncIterator[None]:
        """Close the connections of ``direct`` providers at the end, to avoid warnings."""
        try:
            yield
        finally:
            with anyio.CancelScope(shield=True):
                for model in {*models, *self.roles.values()}:
                    if getattr(model.api, "direct", False):
                        await model.api.aclose()

    async def _lane(self, sheets: Sequence[Sheet]) -> None:
        """Ask the sheets of one model; each starts while the last questions of the previous run."""
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
        except OSError as error:  # the generations are stored
            raise IncompleteRunError(str(unwritable(self.log_dir, error))) from error

    def _prices(self, tested_model: Model) -> dict[Model, ModelCost]:
        models_asked = [tested_model, *self.roles.values()]
        models_asked = [model for model in models_asked if getattr(model.api, "direct", False)]
        return {model: price for model in models_asked if (price := price_of(model)) is not None}

    async def sit(self, sheet: Sheet, sample: Sample, epoch: int) -> EvalSample:
        """Ask a question and return its sample for the log."""
        sitting = Sitting(
            sheet.model, self.roles, sheet.config, self.connections, self._prices(sheet.model)
        )
        current_sitting.set(sitting)  # applies to this task only
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
"""Template of samples, which are copies because validating each new sample is slow."""


async def _no_generate(state: TaskState, *_: Any, **__: Any) -> TaskState:
    raise NotImplementedError("a protocol asks by a conversation")


def _failure(error: Exception) -> EvalError:
    trace = "".join(traceback.format_exception(error))
    return EvalError(message=repr(error), traceback=trace, traceback_ansi=trace)
