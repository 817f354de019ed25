"""Records: what the logs of a run hold, what was planned, and what failed."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, takewhile
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import polars as pl

from holdfast.errors import counted, unwritable
from holdfast.files import putting

from .arms import in_arms
from .runs import (
    CONTEXTS,
    PLACE,
    SHARD,
    TECHNIQUES,
    growing,
    header_of,
    log_name,
    logs_in,
    run_ids,
    run_settings,
    tested_name,
)

if TYPE_CHECKING:
    from inspect_ai.log import EvalLog, EvalSample

ROW = "_row_written"
"""Number of a row among all that this process has written."""

_ROWS_AT_ONCE = 2_000
"""Turns that are in memory together before they are written."""

SAMPLES_AT_ONCE = 50
"""Records that are in memory together."""

UNREAD = frozenset({
    "messages", "output", "events", "attachments", "timelines", "model_usage", "role_usage",
    "events_data", "scores",
})  # fmt: skip
"""Fields of a logged sample that nobody has a use for."""

Key = tuple[str | int, int]
"""Id and epoch of a logged sample."""


def runs_in(headers: list[EvalLog]) -> list[tuple[str, list[EvalLog]]]:
    """The runs of a log dir with their logs (newest first): those of the first command first.

    Those of one command stand in the order in which it asks for them.
    """
    runs: dict[str, list[EvalLog]] = {}
    begun: dict[str, str] = {}  # when each process began: of its logs any may be the first
    for header, id in zip(headers, run_ids(headers), strict=True):
        runs.setdefault(id, []).append(header)
        at = header.eval.created
        begun[header.eval.run_id] = min(at, begun.get(header.eval.run_id, at))

    def first_asked(run: tuple[str, list[EvalLog]]) -> tuple[str, int, str]:
        id, logs = run
        begins = ((begun[log.eval.run_id], (log.eval.metadata or {}).get(PLACE, 0)) for log in logs)
        return *min(begins), id

    return sorted(runs.items(), key=first_asked)


class Written:
    """The turns of logs that this process has written itself, so that none need be read again.

    They are in files of this object's own, some questions in each; texts are read as they are
    needed.
    """

    def __init__(self, schema: pl.Schema, texts: Sequence[str]) -> None:
        """Nothing is written yet.

        Args:
            schema: columns of the rows, ``ROW`` for a number among them.
            texts: columns of texts.
        """
        self._schema, self._texts, self._rows = schema, texts, 0
        self._folder = TemporaryDirectory(prefix="holdfast-")
        self._waiting: dict[str, list[dict[str, Any]]] = {}
        self._parts: dict[str, list[tuple[int, int, Path]]] = {}
        """By log, the numbers of the first row and the last, and the file."""
        self.finished: dict[str, dict[Key, bool]] = {}
        """By log, whether each record in it is of a finished question."""

    def add(self, log: str, key: Key, rows: list[dict[str, Any]], *, finished: bool) -> None:
        """Keep the turns of a question.

        Args:
            log: name of the log that holds it.
            key: id and epoch.
            rows: its turns, by the columns.
            finished: whether it is.
        """
        self.finished.setdefault(log, {})[key] = finished
        waiting = self._waiting.setdefault(log, [])
        for row in rows:
            waiting.append({**row, ROW: self._rows})
            self._rows += 1
        if len(waiting) >= _ROWS_AT_ONCE:
            self._flush(log)

    def _flush(self, log: str) -> None:
        waiting, parts = self._waiting.pop(log, None), self._parts.setdefault(log, [])
        if waiting:
            path = Path(self._folder.name, f"{log}-{len(parts)}")
            rows = pl.DataFrame(waiting, schema=self._schema, orient="row")
            # apart, since reading some columns of a file reads it all
            rows.drop(self._texts).write_ipc(path)
            rows.select(ROW, *self._texts).write_ipc(_texts_of(path))
            parts.append((waiting[0][ROW], waiting[-1][ROW], path))

    def of(self, log: str, keys: Sequence[Key], order: Mapping[str, int]) -> pl.DataFrame:
        """The turns of some questions of a log without texts, in the order of the questions."""
        self._flush(log)
        asked = pl.DataFrame(
            [(str(id), epoch, order[str(id)]) for id, epoch in keys],
            {"question": pl.String(), "epoch": pl.Int64(), "_place": pl.Int64()},
            orient="row",
        )
        none = pl.DataFrame(schema=self._schema).drop(self._texts)
        found = pl.concat([none, *(pl.read_ipc(path) for _, _, path in self._parts[log])])
        placed = found.select("question", "epoch").with_row_index("_at")
        placed = placed.join(asked, on=["question", "epoch"], maintain_order="left")
        at = placed.sort("_place", "epoch", maintain_order=True)["_at"]
        empty = (pl.lit(None, pl.String).alias(name) for name in self._texts)
        return found[at].with_columns(*empty).select(*self._schema)

    def with_texts(self, turns: pl.DataFrame) -> pl.LazyFrame:
        """A table with the texts of the turns that ``of`` has given, never all in memory."""
        some = list(turns.iter_slices(_ROWS_AT_ONCE)) or [turns]
        paths = [Path(self._folder.name, f"texts-{number}") for number in range(len(some))]
        for rows, path in zip(some, paths, strict=True):
            self._filled(rows).write_ipc(path)
        return pl.scan_ipc(paths)

    def _filled(self, turns: pl.DataFrame) -> pl.DataFrame:
        wanted = turns.select(ROW).drop_nulls()
        found = [
            pl.read_ipc(_texts_of(path)).join(wanted, on=ROW, how="semi")
            for first, last, path in chain.from_iterable(self._parts.values())
            if wanted[ROW].is_between(first, last).any()
        ]
        if not found:
            return turns
        joined = turns.join(
            pl.concat(found), on=ROW, how="left", suffix=" kept", maintain_order="left"
        )
        texts = (pl.coalesce(name, f"{name} kept").alias(name) for name in self._texts)
        return joined.with_columns(*texts).select(turns.columns)


def _texts_of(path: Path) -> Path:
    return path.with_name(f"{path.name}-texts")


def chosen_records(
    logs: list[EvalLog], order: Mapping[str, int], written: Written | None = None
) -> Iterator[tuple[EvalLog, list[Key]]]:
    """The records that count of a run, by the logs that they are in.

    Of a question that logs which ask as much hold twice, the newest finished record counts; logs
    that ask for more or less each have one of it, those of the newest log first.

    Args:
        logs: headers of the run's logs, newest first.
        order: place of each question.
        written: what is known of some logs.
    """
    for extent in _extents(logs):
        yield from _by_log(_chosen(extent, written), order)


def records(
    logs: list[EvalLog], order: Mapping[str, int]
) -> Iterator[tuple[EvalLog, list[EvalSample]]]:
    """The same, read some at a time."""
    for log, keys in chosen_records(logs, order):
        yield from read_records(log, keys)


def read_records(log: EvalLog, keys: Sequence[Key]) -> Iterator[tuple[EvalLog, list[EvalSample]]]:
    """Records of a log, some at a time."""
    from inspect_ai.log import read_eval_log_samples_by_id

    for start in range(0, len(keys), SAMPLES_AT_ONCE):
        # one open file and one event loop for many samples: half the time of one by one
        yield (
            log,
            read_eval_log_samples_by_id(
                log.location,
                list(keys[start : start + SAMPLES_AT_ONCE]),
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


def unfinished(headers: list[EvalLog], written: Written | None = None) -> list[Unfinished]:
    """The runs of a log dir that lack questions, at their newest extent."""
    found = []
    for run, logs in runs_in(headers):
        newest = _extents(logs)[0]  # those of its shards are one extent
        ids = {id for log in newest for id in log.eval.dataset.sample_ids or []}
        asked = len(ids) * max(log.eval.config.epochs or 1 for log in newest)
        done = sum(finished for finished, _ in _chosen(newest, written).values())
        if done < asked:
            spec = logs[0].eval
            name, dataset = spec.task.rpartition("/")[2], str(spec.dataset.name)
            found.append(Unfinished(run, name, tested_name(logs), dataset, done, asked))
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
        asked = {name: run_settings(log).get(name) for name in (*growing(log), CONTEXTS)}
        extents.setdefault(json.dumps(asked, default=str), []).append(log)
    return list(extents.values())


def _chosen(logs: list[EvalLog], written: Written | None = None) -> dict[Key, tuple[bool, EvalLog]]:
    """Of a question logged twice, the newest finished record, else the newest."""
    chosen: dict[Key, tuple[bool, EvalLog]] = {}
    for log in logs:
        for key, finished in _finished(log, written).items():
            if key not in chosen or (finished and not chosen[key][0]):
                chosen[key] = (finished, log)
    return chosen


def _finished(log: EvalLog, written: Written | None) -> Mapping[Key, bool]:
    """Whether each record of a log is of a finished question."""
    from inspect_ai.log import read_eval_log_sample_summaries

    if written and (known := written.finished.get(log_name(log.location))) is not None:
        return known
    summaries = read_eval_log_sample_summaries(log.location)
    return {(summary.id, summary.epoch): summary.error is None for summary in summaries}


def _by_log(
    chosen: dict[Key, tuple[bool, EvalLog]], order: Mapping[str, int]
) -> list[tuple[EvalLog, list[Key]]]:
    """For each log, the records to read from it, in the order of the questions."""
    logs: dict[str, tuple[EvalLog, list[Key]]] = {}
    for key in sorted(chosen, key=lambda key: (order[str(key[0])], key[1])):
        log = chosen[key][1]
        logs.setdefault(log.location, (log, []))[1].append(key)
    return list(logs.values())


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
    """The runs of log dirs and logs, by id; turns tables record none."""
    return {run: _record(run, logs) for run, logs in _by_run(sources).items()}


def finished_orders(sources: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Questions (ids) of each run as they are asked, up to the first that is not finished."""
    found = {}
    for run, logs in _by_run(sources).items():
        epochs = max(log.eval.config.epochs or 1 for log in logs)
        newest = sorted(logs, key=lambda log: log.eval.created, reverse=True)
        done = Counter(str(id) for (id, _), (finished, _) in _chosen(newest).items() if finished)
        whole = {id for id, replicates in done.items() if replicates == epochs}
        found[run] = tuple(takewhile(whole.__contains__, question_order(logs)))
    return found


def wordings(headers: list[EvalLog]) -> dict[str, dict[str, str]]:
    """The wordings of the techniques of each run, by id."""
    return {
        run: {
            id: wording
            for log in logs
            for id, wording in run_settings(log).get(TECHNIQUES, {}).items()
        }
        for run, logs in runs_in(headers)
    }


def wordings_in(source: str) -> dict[str, dict[str, str]]:
    """The same of a log dir or a log; nothing of a turns table."""
    return wordings(_headers(source))


def _by_run(sources: Iterable[str]) -> dict[str, list[EvalLog]]:
    runs: dict[str, list[EvalLog]] = {}
    for source in sources:
        headers = _headers(source)
        for header, id in zip(headers, run_ids(headers), strict=True):
            runs.setdefault(id, []).append(header)
    return runs


def _headers(source: str) -> list[EvalLog]:
    if source.endswith(".parquet"):
        return []
    if source.endswith(".eval"):
        return [header_of(source)]
    return logs_in(source) if "://" in source or os.path.isdir(source) else []


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


PLAN_FILE = "plan.json"
"""Name of the plan in a log dir."""

_KEY = ("protocol", "model", "dataset")
_COLUMNS = {*_KEY, "generations", "at_least", "cost"}


def keep_plan(
    log_dir: str, rows: Sequence[Mapping[str, Any]], left_out: Mapping[str, str] | None = None
) -> None:
    """Write the rows of a plan into a log dir, over what it planned for the same studies before.

    ``left_out`` tells by question set which techniques were left out and what would bring them in.
    """
    told = left_out or {}
    more = ({"left_out": told[row["dataset"]]} if row["dataset"] in told else {} for row in rows)
    planned = [{**row, **own} for row, own in zip(rows, more, strict=True)]
    kept = {tuple(row.get(name) for name in _KEY): row for row in [*_read(log_dir), *planned]}
    write_to_log_dir(
        log_dir, PLAN_FILE, json.dumps(list(kept.values()), indent=1, ensure_ascii=False)
    )


def write_to_log_dir(log_dir: str, name: str, text: str) -> None:
    """Write a file into a log dir, local or remote.

    Raises:
        InputError: it cannot be written.
    """
    try:
        with putting(log_dir, name) as file:
            file.write(text.encode())
    except OSError as error:
        raise unwritable(f"{log_dir}/{name}", error) from error


def read_from_log_dir(log_dir: str, name: str) -> str | None:
    """The text of a file in a log dir, local or remote; None where it cannot be read."""
    path = f"{log_dir.rstrip('/')}/{name}"
    try:
        if "://" not in path:
            return Path(path).read_text("utf-8")
        import fsspec

        with fsspec.open(path, "rb") as file:
            return str(file.read().decode())
    except (OSError, ValueError):
        return None


def plans(sources: Iterable[str]) -> list[dict[str, Any]]:
    """The plans of log dirs, in their order; logs and turns tables have none."""
    dirs = (source for source in sources if not source.endswith((".parquet", ".eval")))
    return [row for log_dir in dirs for row in _read(log_dir)]


def left_out(sources: Iterable[str]) -> list[str]:
    """What the runs of log dirs left out, a line each."""
    told = (row.get("left_out") for row in plans(sources))
    return list(dict.fromkeys(str(one) for one in told if one))


def _read(log_dir: str) -> list[dict[str, Any]]:
    try:
        found = json.loads(read_from_log_dir(log_dir, PLAN_FILE) or "[]")
    except ValueError:  # one that was cut off: nothing is known
        return []
    rows = found if isinstance(found, list) else []
    return [row for row in rows if isinstance(row, dict) and row.keys() >= _COLUMNS]


def errors(turns: pl.DataFrame) -> pl.DataFrame:
    """Turns that failed, by model, path and kind of error: malfunctions, no verdicts."""
    failed = turns.filter(pl.col("status") == "error")
    return failed.group_by("model", "path", "rule", maintain_order=True).agg(pl.len().alias("n"))


def sent_otherwise(turns: pl.DataFrame) -> pl.DataFrame:
    """Turns whose request went out otherwise than the study has it, those of helpers left out.

    Returns:
        ``model``, ``sent_otherwise`` (what was not sent, or as what) and ``n`` turns.
    """
    helping = in_arms(lambda own: own.helpers)
    other = turns.filter(pl.col("sent_otherwise").is_not_null(), ~helping)
    return other.group_by("model", "sent_otherwise", maintain_order=True).agg(n=pl.len())
