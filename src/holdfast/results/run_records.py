"""Runs as their logs record them: when, with what settings, and how much was to be asked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .damaged import reading
from .runs import logs_in, run_id, run_settings

if TYPE_CHECKING:
    from inspect_ai.log import EvalLog


@dataclass(frozen=True)
class RunRecord:
    """What the logs say of a run beside its turns.

    Attributes:
        run: its id, as in the turns table.
        started: when its first log was begun, in ISO 8601.
        ended: when its last log was closed; None where none was.
        records: questions times epochs that it is to ask.
        settings: what fixes its prompts and replies, by name.
        versions: packages that it was made with.
    """

    run: str
    started: str
    ended: str | None
    records: int
    settings: Mapping[str, Any]
    versions: Mapping[str, str]


def run_records(sources: Iterable[str]) -> dict[str, RunRecord]:
    """The runs of log dirs and logs, by id; turns tables record none.

    Args:
        sources: as for ``turns_table``.
    """
    runs: dict[str, list[EvalLog]] = {}
    for source in sources:
        for header in _headers(source):
            runs.setdefault(run_id(header), []).append(header)
    return {run: _record(run, logs) for run, logs in runs.items()}


def _headers(source: str) -> list[EvalLog]:
    if source.endswith(".parquet"):
        return []
    if source.endswith(".eval"):
        from inspect_ai.log import read_eval_log

        with reading(source):
            return [read_eval_log(source, header_only=True)]
    return logs_in(source) if "://" in source or Path(source).is_dir() else []


def _record(run: str, logs: list[EvalLog]) -> RunRecord:
    logs = sorted(logs, key=lambda log: log.eval.created)
    newest = logs[-1]
    ended = [log.stats.completed_at for log in logs if log.stats.completed_at]
    return RunRecord(
        run,
        logs[0].eval.created,
        max(ended, default=None),
        # shards have their questions in logs of their own
        len({id for log in logs for id in log.eval.dataset.sample_ids or []})
        * max(log.eval.config.epochs or 1 for log in logs),
        run_settings(newest),
        dict(newest.eval.packages or {}),
    )
