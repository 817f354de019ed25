"""Records: which logged record of a question counts, of a run that several logs hold."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from holdfast.errors import counted

from .runs import CONTEXTS, EXTENSIBLE, SHARD, run_ids, run_settings

if TYPE_CHECKING:
    from inspect_ai.log import EvalLog, EvalSample

SAMPLES_AT_ONCE = 50
"""Records that are in memory together."""

UNREAD = frozenset({
    "messages", "output", "events", "attachments", "timelines", "model_usage", "role_usage",
    "events_data", "scores",
})  # fmt: skip
"""Fields of a logged sample that nobody has a use for."""

_Key = tuple[str | int, int]
"""Id and epoch of a logged sample."""


def runs_in(headers: list[EvalLog]) -> list[tuple[str, list[EvalLog]]]:
    """The runs of a log dir with their logs, the one first written first.

    Args:
        headers: of its logs, newest first; those of a run stay so.
    """
    runs: dict[str, list[EvalLog]] = {}
    begun: dict[str, str] = {}  # when each process began: of its logs any may be the first
    for header, id in zip(headers, run_ids(headers), strict=True):
        runs.setdefault(id, []).append(header)
        at = header.eval.created
        begun[header.eval.run_id] = min(at, begun.get(header.eval.run_id, at))
    return sorted(runs.items(), key=partial(_first_written, begun=begun))


def _first_written(run: tuple[str, list[EvalLog]], begun: Mapping[str, str]) -> tuple[str, str]:
    id, logs = run
    return min(begun[log.eval.run_id] for log in logs), id


def records(
    logs: list[EvalLog], order: Mapping[str, int]
) -> Iterator[tuple[EvalLog, list[EvalSample]]]:
    """The records that count of a run, some at a time.

    Of a question that logs which ask as much hold twice, the newest finished record counts; logs
    that ask for more or less each have one of it, those of the newest log first.

    Args:
        logs: headers of the run's logs, newest first.
        order: place of each question.
    """
    from inspect_ai.log import read_eval_log_samples_by_id

    for extent in _extents(logs):
        for log, keys in _by_log(_chosen(extent), order):
            for start in range(0, len(keys), SAMPLES_AT_ONCE):
                # one open file and one event loop for many samples: half the time of one by one
                yield (
                    log,
                    read_eval_log_samples_by_id(
                        log.location,
                        keys[start : start + SAMPLES_AT_ONCE],
                        exclude_fields=set(UNREAD),
                    ),
                )


@dataclass(frozen=True)
class Unfinished:
    """A run that lacks questions.

    Attributes:
        run: its id.
        protocol: what was asked.
        model: of whom.
        dataset: its questions.
        finished: how many are done, those of several epochs counted each.
        asked: how many there are to be.
    """

    run: str
    protocol: str
    model: str
    dataset: str
    finished: int
    asked: int

    def __str__(self) -> str:
        """One line."""
        return (
            f"{self.protocol} of {self.model} on {self.dataset} is unfinished: "
            f"{self.finished} of {counted(self.asked, 'question')}"
        )


def unfinished(headers: list[EvalLog]) -> list[Unfinished]:
    """The runs of a log dir that lack questions, at their newest extent.

    Args:
        headers: of its logs, newest first.
    """
    found = []
    for run, logs in runs_in(headers):
        newest = _extents(logs)[0]  # those of its shards are one extent
        ids = {id for log in newest for id in log.eval.dataset.sample_ids or []}
        asked = len(ids) * max(log.eval.config.epochs or 1 for log in newest)
        done = sum(finished for finished, _ in _chosen(newest).values())
        if done < asked:
            spec = logs[0].eval
            name, dataset = spec.task.rpartition("/")[2], str(spec.dataset.name)
            found.append(Unfinished(run, name, spec.model, dataset, done, asked))
    return found


def question_order(logs: list[EvalLog]) -> dict[str, int]:
    """Place of each question in the table, by id: as its set has them, whoever asked which."""
    order: dict[str, int] = {}
    sharded = any(SHARD in (log.eval.metadata or {}) for log in logs)
    for log in logs:
        ids = log.eval.dataset.sample_ids or []
        shard = (log.eval.metadata or {}).get(SHARD)
        # a log of all questions holds the first ones of the set
        places = shard["places"] if shard else range(len(ids)) if sharded else None
        for number, id in enumerate(ids):
            order.setdefault(str(id), places[number] if places else len(order))
    return {id: place for place, id in enumerate(sorted(order, key=lambda id: order[id]))}


def _extents(logs: list[EvalLog]) -> list[list[EvalLog]]:
    """Logs by how much they ask, the newest first."""
    extents: dict[str, list[EvalLog]] = {}
    for log in logs:
        asked = {name: run_settings(log).get(name) for name in (*EXTENSIBLE, CONTEXTS)}
        extents.setdefault(json.dumps(asked, default=str), []).append(log)
    return list(extents.values())


def _chosen(logs: list[EvalLog]) -> dict[_Key, tuple[bool, EvalLog]]:
    """Of a question logged twice, the newest finished record, else the newest."""
    from inspect_ai.log import read_eval_log_sample_summaries

    chosen: dict[_Key, tuple[bool, EvalLog]] = {}
    for log in logs:
        for summary in read_eval_log_sample_summaries(log.location):
            key, finished = (summary.id, summary.epoch), summary.error is None
            if key not in chosen or (finished and not chosen[key][0]):
                chosen[key] = (finished, log)
    return chosen


def _by_log(
    chosen: dict[_Key, tuple[bool, EvalLog]], order: Mapping[str, int]
) -> list[tuple[EvalLog, list[_Key]]]:
    """For each log, the records to read from it, in the order of the questions."""
    logs: dict[str, tuple[EvalLog, list[_Key]]] = {}
    for key in sorted(chosen, key=lambda key: (order[str(key[0])], key[1])):
        log = chosen[key][1]
        logs.setdefault(log.location, (log, []))[1].append(key)
    return list(logs.values())
