"""Inspect log that is updated while questions finish."""

import json
import pickle
import shutil
import tempfile
import time
import zipfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import IO, Any, cast
from uuid import uuid4
from zipfile import ZipFile, ZipInfo

import fsspec
from inspect_ai import Task
from inspect_ai.event import ModelEvent
from inspect_ai.log import (
    EvalConfig,
    EvalDataset,
    EvalLog,
    EvalPlan,
    EvalPlanStep,
    EvalResults,
    EvalSample,
    EvalSpec,
    EvalStats,
    recompute_metrics,
)
from inspect_ai.model import GenerateConfig, Model, ModelConfig, ModelUsage
from inspect_ai.scorer import Metric, Score, Scorer
from inspect_ai.util import registry_info
from pydantic import BaseModel
from pydantic_core import PydanticSerializationError
from zstandard import ZstdCompressor

from holdfast.dialogue.guarding import make_call_sound
from holdfast.files import replacing

from .log_dir import kept_in

_FORMAT = 2
"""Version of the log's format (``EvalLog.version``)."""

_OFTEN = 10.0
"""Minimum time in seconds between two updates of the published log."""

_SHARE = 20
"""The time between updates is at least this multiple of an update's duration."""

_COMPRESSION_METHOD: int = getattr(zipfile, "ZIP_ZSTANDARD", zipfile.ZIP_DEFLATED)
"""Compression of Inspect's logs; Inspect adds the constant to a standard library without it."""

_PACKER = ZstdCompressor(level=1)
"""Compressor for the files of a log; Inspect's compressor starts twelve threads for each file."""

_IN_ONE_FRAME = 200 * 2**20
"""Size in bytes above which Inspect's viewer needs several compressed frames."""

_AT_ONCE = 500
"""Maximum number of summaries in memory."""


class Log:
    """Log that is complete for readers from the start, and updated every few seconds.

    It is written to an unnamed file, of which a killed process leaves nothing, and copied from
    there as a whole. An Inspect log is an archive with the start of the run, a file for each
    sample, their summaries, and finally the header with the results.
    """

    def __init__(self, header: EvalLog, log_dir: str) -> None:
        """Start the log.

        Args:
            header: header without samples and results.
            log_dir: a local folder or any fsspec URL.
        """
        spec = header.eval
        name = (
            f"{spec.created.replace(':', '-').replace('+', '-')}_{_plain(spec.task)}_{spec.task_id}"
        )
        self.header = header
        header.location = f"{log_dir.rstrip('/')}/{name}.eval"
        header.stats.started_at = _now()
        self._local = kept_in(log_dir)
        self._file: IO[bytes] = tempfile.TemporaryFile(dir=self._local)
        self._archive = self._open_archive("w")
        self._summaries: list[str] = []
        self._parts = 0
        self._scores: list[tuple[str | int, int, bytes]] = []
        self.errors: dict[tuple[str | int, int], str] = {}
        start = {"version": _FORMAT, "eval": spec, "plan": header.plan}
        self._write("_journal/start.json", start)
        self._took, self._last = 0.0, 0.0
        self.publish()

    def add(self, sample: EvalSample) -> None:
        """Write a sample, also for a question that could not be finished."""
        self._put(f"samples/{sample.id}_epoch_{sample.epoch}.json", _text(sample))
        self._summaries.append(sample.summary().model_dump_json(exclude_none=True))
        if sample.error is None:
            self._scores.append((sample.id, sample.epoch, pickle.dumps(_plainly(sample.scores))))
        else:
            self.errors[sample.id, sample.epoch] = sample.error.message
        stats = self.header.stats
        for total, more in ((stats.model_usage, sample.model_usage),
                            (stats.role_usage, sample.role_usage)):  # fmt: skip
            for name, usage in more.items():
                total[name] = total.get(name, ModelUsage()) + usage
        if len(self._summaries) >= _AT_ONCE:
            self._write_summaries()
        if time.monotonic() - self._last > max(_OFTEN, _SHARE * self._took):
            with suppress(Exception):  # file systems raise various errors; the published log stays
                self.publish()

    def publish(self) -> None:
        """Publish the finished samples."""
        began = time.monotonic()
        self._write_summaries()
        self._archive.close()
        self._file.seek(0)
        location = self.header.location
        try:
            remote = self._local is None
            with fsspec.open(location, "wb") if remote else replacing(Path(location)) as whole:
                shutil.copyfileobj(self._file, whole, 2**20)
        finally:
            self._archive = self._open_archive("a")
            self._last = time.monotonic()
            self._took = self._last - began

    @property
    def missing(self) -> int:
        """Number of questions, times epochs, that are not finished."""
        spec = self.header.eval
        return len(spec.dataset.sample_ids or ()) * (spec.config.epochs or 1) - len(self._scores)

    def end(self, *, was_interrupted: bool) -> None:
        """Write the results and close the log."""
        self._write_summaries()
        with tempfile.TemporaryFile() as joined_file:
            for n in range(self._parts):
                part = self._archive.read(_summaries_name(n + 1))
                joined_file.write((b"," if n else b"[") + part[1:-1])
            joined_file.write(b"]" if self._parts else b"[]")
            joined_file.seek(0)
            with self._open_entry("summaries.json", -1) as whole:
                shutil.copyfileobj(joined_file, whole)
        header = self.header
        header.status = "cancelled" if was_interrupted else "error" if self.errors else "success"
        header.stats.completed_at = _now()
        reductions = None
        if not was_interrupted:
            header.samples = cast(
                "list[EvalSample]", [_Scored(*score_fields) for score_fields in self._scores]
            )
            header.results = EvalResults()
            recompute_metrics(header)
            total = len(self._scores) + len(self.errors)
            header.results.total_samples = total
            reductions, header.samples, header.reductions = header.reductions, None, None
        if reductions:
            texts = (score_fields.model_dump_json(exclude_none=True) for score_fields in reductions)
            self._put("reductions.json", f"[{','.join(texts)}]")
        self._put("header.json", header.model_dump_json(exclude_none=True))
        self.publish()
        self._archive.close()
        self._file.close()

    def _open_archive(self, mode: Any) -> ZipFile:
        return ZipFile(self._file, mode, _COMPRESSION_METHOD)

    def _write_summaries(self) -> None:
        if self._summaries:
            self._parts += 1
            text = f"[{','.join(self._summaries)}]"
            self._put(_summaries_name(self._parts), text)
            self._summaries.clear()

    def _write(self, name: str, value: Any) -> None:
        self._put(name, json.dumps(value, default=_jsonable))

    def _put(self, name: str, text: str) -> None:
        data = text.encode()
        with self._open_entry(name, len(data)) as file:
            file.write(data)

    def _open_entry(self, name: str, size: int) -> IO[bytes]:
        """Open a file of the archive for writing; ``size`` is -1 if unknown."""
        entry = ZipInfo(name, time.localtime()[:6])
        entry.compress_type, entry.file_size = _COMPRESSION_METHOD, max(0, size)
        file = self._archive.open(entry, "w")
        if _COMPRESSION_METHOD != zipfile.ZIP_DEFLATED and size <= _IN_ONE_FRAME:
            vars(file)["_compressor"] = _PACKER.compressobj(size=size)
        return file


def _summaries_name(part: int) -> str:
    return f"_journal/summaries/{part}.json"


def _jsonable(value: BaseModel) -> Any:
    return json.loads(value.model_dump_json(exclude_none=True))


def _text(sample: EvalSample) -> str:
    try:
        return sample.model_dump_json(exclude_none=True)
    except PydanticSerializationError:  # lone surrogate in a server's reply
        for event in sample.events:
            if isinstance(event, ModelEvent) and event.call is not None:
                make_call_sound(event.call)
        return sample.model_dump_json(exclude_none=True)


def _plainly(scores: Mapping[str, Score] | None) -> dict[str, dict[str, Any]]:
    """Return the parts of scores that metrics use, because all scores stay in memory."""
    return {
        name: {"value": score.value, "answer": score.answer, "metadata": score.metadata}
        for name, score in (scores or {}).items()
    }


class _Scored:
    """Parts of a sample that metrics use."""

    __slots__ = ("epoch", "error", "id", "metadata", "scores")

    def __init__(self, id: str | int, epoch: int, scores: bytes) -> None:
        self.id, self.epoch, self.error, self.metadata = id, epoch, None, None
        fields_by_name = pickle.loads(
            scores
        )  # inspect-evals-lint: ignore[IESC002] -- packed by the writer
        self.scores = {
            name: _SCORE.model_copy(update=score_fields)
            for name, score_fields in fields_by_name.items()
        }


_SCORE = Score(value=0)


def _plain(task: str) -> str:
    return task.rpartition("/")[2].replace("_", "-")


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def new_header(
    task: Task,
    model: Model,
    roles: Mapping[str, Model],
    config: GenerateConfig,
    ids: Sequence[str],
    *,
    settings: Mapping[str, Any],
    task_args: Mapping[str, Any],
    limit: int | None,
    epochs: int,
    run: str,
    metadata: Mapping[str, Any],
) -> EvalLog:
    """Return the header of a new log, as Inspect writes it.

    Args:
        task: the task.
        model: the model under test.
        roles: helpers by role.
        config: generation settings of the study.
        ids: ids of the questions.
        settings: all arguments of the task's function.
        task_args: arguments that the user gave.
        limit: number of first questions to ask.
        epochs: number of epochs.
        run: id that all logs of this command share.
        metadata: metadata of the task and the shard.
    """
    task_name = registry_info(task).name
    spec = EvalSpec(
        run_id=run,
        created=_now(),
        task=task_name,
        task_id=uuid4().hex,
        task_version=task.version,
        task_display_name=task_name.rpartition("/")[2],
        task_registry_name=task_name,
        task_args=dict(settings),
        task_args_passed=dict(task_args),
        dataset=EvalDataset(
            name=task.dataset.name,
            samples=len(task.dataset),
            sample_ids=list(ids),
            shuffled=False,
        ),
        model=str(model),
        model_generate_config=model.config,
        model_base_url=model.explicit_base_url,
        model_args=_arguments(model),
        model_roles={
            role: ModelConfig(
                model=str(role_model),
                config=role_model.config,
                base_url=role_model.api.base_url,
                args=_arguments(role_model),
            )
            for role, role_model in roles.items()
        }
        or None,
        config=EvalConfig(
            limit=limit,
            epochs=epochs,
            fail_on_error=True,
            continue_on_fail=True,
            score_on_error=False,
            log_samples=True,
            log_realtime=False,
        ),
        packages={name: version(name) for name in ("inspect_ai", "holdfast")},
        metadata=dict(metadata),
        viewer=task.viewer,
        scorers=[scorer_spec(role_model) for role_model in task.scorer or []],
        headline_metric=task.headline_metric,
    )
    steps = [EvalPlanStep(solver=registry_info(task.solver).name)]
    return EvalLog(
        version=_FORMAT,
        eval=spec,
        plan=EvalPlan(steps=steps, config=config),
        stats=EvalStats(),
    )


def _arguments(model: Model) -> dict[str, Any]:
    """Return a model's arguments for a log, without keys."""
    plain = (str, int, float, bool, list, dict, type(None))
    return {
        name: value if isinstance(value, plain) else repr(value)
        for name, value in model.model_args.items()
        if name != "api_key" and not name.startswith("aws_")
    }


def scorer_name(scorer: Scorer) -> str:
    """Return the name of a scorer's scores in a log."""
    return registry_info(scorer).name.rpartition("/")[2]


def scorer_spec(scorer: Scorer) -> Any:
    """Return a scorer with its metrics by name."""
    scorer_info = registry_info(scorer)
    return {
        "name": scorer_name(scorer),
        "metrics": _describe_metrics(scorer_info.metadata["metrics"]),
    }


def _describe_metrics(metrics: Any) -> Any:
    if isinstance(metrics, list):
        return [_describe_metrics(inner_metric) for inner_metric in metrics]
    if isinstance(metrics, dict):
        return {key: _describe_metrics(inner_metric) for key, inner_metric in metrics.items()}
    metric: Metric = metrics
    return {"name": registry_info(metric).name, "options": {}}
