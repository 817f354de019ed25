"""Records: the samples in the logs of a run, its plan, and its failures."""

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
"""Number of a row among all rows that this process has written."""

_ROWS_AT_ONCE = 2_000
"""Maximum number of turns in memory before they are written."""

SAMPLES_AT_ONCE = 50
"""Maximum number of records in memory."""

UNREAD = frozenset({
    "messages", "output", "events", "attachments", "timelines", "model_usage", "role_usage",
    "events_data", "scores",
})  # fmt: skip
"""Fields of a logged sample that are never read."""

Key = tuple[str | int, int]
"""Id and epoch of a logged sample."""


def runs_in(headers: list[EvalLog]) -> list[tuple[str, list[EvalLog]]]:
    """Return the runs of a log directory with their logs, newest log first.

    Runs are in the order of their commands. Runs of a command are in the order in which it asks
    them.
    """
    runs: dict[str, list[EvalLog]] = {}
    start_times: dict[str, str] = {}  # start of each process, whose logs can be in any order
    for header, id in zip(headers, run_ids(headers), strict=True):
        runs.setdefault(id, []).append(header)
        at = header.eval.created
        start_times[header.eval.run_id] = min(at, start_times.get(header.eval.run_id, at))

    def first_asked(run: tuple[str, list[EvalLog]]) -> tuple[str, int, str]:
        id, logs = run
        begins = (
            (start_times[log.eval.run_id], (log.eval.metadata or {}).get(PLACE, 0)) for log in logs
        )
        return *min(begins), id

    return sorted(runs.items(), key=first_asked)


class Written:
    """Turns that this process has logged itself, so that their logs need not be read again.

    They are in temporary files, each with the turns of several questions. Texts are read when
    needed.
    """

    def __init__(self, schema: pl.Schema, texts: Sequence[str]) -> None:
        """Create an empty store.

        Args:
            schema: columns of the rows, including ``ROW`` for a number.
            texts: columns with texts.
        """
        self._schema, self._texts, self._rows = schema, texts, 0
        self._folder = TemporaryDirectory(prefix="holdfast-")
        self._waiting: dict[str, list[dict[str, Any]]] = {}
        self._parts: dict[str, list[tuple[int, int, Path]]] = {}
        """Number of the first and last row, and the file, by log."""
        self.finished: dict[str, dict[Key, bool]] = {}
        """Whether each record belongs to a finished question, by log."""

    def add(self, log: str, key: Key, rows: list[dict[str, Any]], *, is_finished: bool) -> None:
        """Store the turns of a question.

        Args:
            log: name of the log with the question.
            key: id and epoch.
            rows: the turns, by column.
            is_finished: whether the question is finished.
        """
        self.finished.setdefault(log, {})[key] = is_finished
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
            # in a separate file, because reading some columns of a file reads the whole file
            rows.drop(self._texts).write_ipc(path)
            rows.select(ROW, *self._texts).write_ipc(_texts_of(path))
            parts.append((waiting[0][ROW], waiting[-1][ROW], path))

    def of(self, log: str, keys: Sequence[Key], order: Mapping[str, int]) -> pl.DataFrame:
        """Return the turns of some questions of a log without texts, in that order."""
        self._flush(log)
        rows_asked = pl.DataFrame(
            [(str(id), epoch, order[str(id)]) for id, epoch in keys],
            {"question": pl.String(), "epoch": pl.Int64(), "_place": pl.Int64()},
            orient="row",
        )
        empty_turns = pl.DataFrame(schema=self._schema).drop(self._texts)
        log_turns = pl.concat(
            [empty_turns, *(pl.read_ipc(path) for _, _, path in self._parts[log])]
        )
        positions = log_turns.select("question", "epoch").with_row_index("_at")
        positions = positions.join(rows_asked, on=["question", "epoch"], maintain_order="left")
        at = positions.sort("_place", "epoch", maintain_order=True)["_at"]
        empty = (pl.lit(None, pl.String).alias(name) for name in self._texts)
        return log_turns[at].with_columns(*empty).select(*self._schema)

    def with_texts(self, turns: pl.DataFrame) -> pl.LazyFrame:
        """Return turns from ``of`` with their texts, never all in memory."""
        slices = list(turns.iter_slices(_ROWS_AT_ONCE)) or [turns]
        paths = [Path(self._folder.name, f"texts-{number}") for number in range(len(slices))]
        for rows, path in zip(slices, paths, strict=True):
            self._fill_texts(rows).write_ipc(path)
        return pl.scan_ipc(paths)

    def _fill_texts(self, turns: pl.DataFrame) -> pl.DataFrame:
        rows_wanted = turns.select(ROW).drop_nulls()
        text_frames = [
            pl.read_ipc(_texts_of(path)).join(rows_wanted, on=ROW, how="semi")
            for first, last, path in chain.from_iterable(self._parts.values())
            if rows_wanted[ROW].is_between(first, last).any()
        ]
        if not text_frames:
            return turns
        turns_with_texts = turns.join(
            pl.concat(text_frames), on=ROW, how="left", suffix=" kept", maintain_order="left"
        )
        texts = (pl.coalesce(name, f"{name} kept").alias(name) for name in self._texts)
        return turns_with_texts.with_columns(*texts).select(turns.columns)


def _texts_of(path: Path) -> Path:
    return path.with_name(f"{path.name}-texts")


def chosen_records(
    logs: list[EvalLog], order: Mapping[str, int], written_logs: Written | None = None
) -> Iterator[tuple[EvalLog, list[Key]]]:
    """Return the records of a run that count, by log.

    If logs of the same extent contain a question twice, the newest finished record counts. Logs of
    different extents each have a record of the question, the newest log's first.

    Args:
        logs: headers of the run's logs, newest first.
        order: position of each question.
        written_logs: logs whose records are known.
    """
    for extent in _extents(logs):
        yield from _group_by_log(_choose_records(extent, written_logs), order)


def records(
    logs: list[EvalLog], order: Mapping[str, int]
) -> Iterator[tuple[EvalLog, list[EvalSample]]]:
    """Read the records of ``chosen_records``, some at a time."""
    for log, keys in chosen_records(logs, order):
        yield from read_records(log, keys)


def read_records(log: EvalLog, keys: Sequence[Key]) -> Iterator[tuple[EvalLog, list[EvalSample]]]:
    """Read records of a log, some at a time."""
    from inspect_ai.log import read_eval_log_samples_by_id

    for start in range(0, len(keys), SAMPLES_AT_ONCE):
        # one open file and one event loop for many samples takes half the time
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
    """Run that lacks questions.

    Attributes:
        run: id of the run.
        protocol: its protocol.
        model: its model.
        dataset: its data set.
        finished: number of finished questions, times epochs.
        asked: number of questions to ask, times epochs.
    """

    run: str
    protocol: str
    model: str
    dataset: str
    finished: int
    asked: int

    def __str__(self) -> str:
        """Return a description on one line."""
        return (
            f"{self.protocol} of {self.model} on {self.dataset} is unfinished: "
            f"{self.finished} of {counted(self.asked, 'question')}"
        )


def unfinished(headers: list[EvalLog], written_logs: Written | None = None) -> list[Unfinished]:
    """Return the runs of a log directory that lack questions, at their newest extent."""
    lacking_studies = []
    for run, logs in runs_in(headers):
        newest = _extents(logs)[0]  # logs of shards have one extent
        ids = {id for log in newest for id in log.eval.dataset.sample_ids or []}
        question_total = len(ids) * max(log.eval.config.epochs or 1 for log in newest)
        finished_total = sum(
            is_finished for is_finished, _ in _choose_records(newest, written_logs).values()
        )
        if finished_total < question_total:
            spec = logs[0].eval
            name, dataset = spec.task.rpartition("/")[2], str(spec.dataset.name)
            lacking_studies.append(
                Unfinished(run, name, tested_name(logs), dataset, finished_total, question_total)
            )
    return lacking_studies


def question_order(logs: list[EvalLog]) -> dict[str, int]:
    """Return the position of each question in the table, by id, as in its question set."""
    order: dict[str, int] = {}
    is_sharded = any(SHARD in (log.eval.metadata or {}) for log in logs)
    for log in logs:
        ids = log.eval.dataset.sample_ids or []
        shard = (log.eval.metadata or {}).get(SHARD)
        # a log of the unsharded run has the first questions of the set
        places = shard["places"] if shard else range(len(ids)) if is_sharded else None
        for number, id in enumerate(ids):
            order.setdefault(str(id), places[number] if places else len(order))
    return {id: place for place, id in enumerate(sorted(order, key=lambda id: order[id]))}


def _extents(logs: list[EvalLog]) -> list[list[EvalLog]]:
    """Group logs by the extent of what they ask, newest first."""
    extents: dict[str, list[EvalLog]] = {}
    for log in logs:
        extent_settings = {name: run_settings(log).get(name) for name in (*growing(log), CONTEXTS)}
        extents.setdefault(json.dumps(extent_settings, default=str), []).append(log)
    return list(extents.values())


def _choose_records(
    logs: list[EvalLog], written_logs: Written | None = None
) -> dict[Key, tuple[bool, EvalLog]]:
    """Return the newest finished record of each question, or else its newest record."""
    newest_records: dict[Key, tuple[bool, EvalLog]] = {}
    for log in logs:
        for key, is_finished in _load_finished(log, written_logs).items():
            if key not in newest_records or (is_finished and not newest_records[key][0]):
                newest_records[key] = (is_finished, log)
    return newest_records


def _load_finished(log: EvalLog, written_logs: Written | None) -> Mapping[Key, bool]:
    """Return whether each record of a log belongs to a finished question."""
    from inspect_ai.log import read_eval_log_sample_summaries

    if (
        written_logs
        and (finished_by_key := written_logs.finished.get(log_name(log.location))) is not None
    ):
        return finished_by_key
    summaries = read_eval_log_sample_summaries(log.location)
    return {(summary.id, summary.epoch): summary.error is None for summary in summaries}


def _group_by_log(
    newest_records: dict[Key, tuple[bool, EvalLog]], order: Mapping[str, int]
) -> list[tuple[EvalLog, list[Key]]]:
    """Return the records to read from each log, in the order of the questions."""
    logs: dict[str, tuple[EvalLog, list[Key]]] = {}
    for key in sorted(newest_records, key=lambda key: (order[str(key[0])], key[1])):
        log = newest_records[key][1]
        logs.setdefault(log.location, (log, []))[1].append(key)
    return list(logs.values())


@dataclass(frozen=True)
class RunRecord:
    """Facts about a run that its logs contain in addition to its turns.

    Attributes:
        run: id of the run, as in the turns table.
        start: creation time of its first log, in ISO 8601.
        end: completion time of its last log, None if no log is complete.
        records: number of questions to ask, times epochs.
        settings: settings that fix its prompts and replies, by name.
        versions: versions of the packages that the run used.
    """

    run: str
    start: str
    end: str | None
    records: int
    settings: Mapping[str, Any]
    versions: Mapping[str, str]


def run_records(sources: Iterable[str]) -> dict[str, RunRecord]:
    """Return the records of runs in log directories and logs, by id; turns tables contain none."""
    return {run: _record(run, logs) for run, logs in _group_by_run(sources).items()}


def finished_orders(sources: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Return the questions (ids) of each run in the order asked, up to the first unfinished one."""
    orders = {}
    for run, logs in _group_by_run(sources).items():
        epochs = max(log.eval.config.epochs or 1 for log in logs)
        newest = sorted(logs, key=lambda log: log.eval.created, reverse=True)
        finished_epochs = Counter(
            str(id) for (id, _), (is_finished, _) in _choose_records(newest).items() if is_finished
        )
        whole = {id for id, replicates in finished_epochs.items() if replicates == epochs}
        orders[run] = tuple(takewhile(whole.__contains__, question_order(logs)))
    return orders


def wordings(headers: list[EvalLog]) -> dict[str, dict[str, str]]:
    """Return the wordings of the techniques of each run, by id."""
    return {
        run: {
            id: wording
            for log in logs
            for id, wording in run_settings(log).get(TECHNIQUES, {}).items()
        }
        for run, logs in runs_in(headers)
    }


def wordings_in(source: str) -> dict[str, dict[str, str]]:
    """Return the wordings in a log directory or log; a turns table contains none."""
    return wordings(_headers(source))


def _group_by_run(sources: Iterable[str]) -> dict[str, list[EvalLog]]:
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
    end_times = [log.stats.completed_at for log in logs if log.stats.completed_at]
    return RunRecord(
        run,
        logs[0].eval.created,
        max(end_times, default=None),
        # each shard has its questions in separate logs
        len({id for log in logs for id in log.eval.dataset.sample_ids or []})
        * max(log.eval.config.epochs or 1 for log in logs),
        run_settings(newest),
        dict(newest.eval.packages or {}),
    )


PLAN_FILE = "plan.json"
"""Name of the plan in a log directory."""

_KEY = ("protocol", "model", "dataset")
_COLUMNS = {*_KEY, "generations", "at_least", "cost"}


def keep_plan(
    log_dir: str, rows: Sequence[Mapping[str, Any]], left_out: Mapping[str, str] | None = None
) -> None:
    """Write the rows of a plan into a log directory, replacing earlier rows of the same studies.

    ``left_out`` contains the skipped techniques of each question set, and how to include them.
    """
    notes_by_dataset = left_out or {}
    more = (
        {"left_out": notes_by_dataset[row["dataset"]]} if row["dataset"] in notes_by_dataset else {}
        for row in rows
    )
    planned_rows = [{**row, **more_fields} for row, more_fields in zip(rows, more, strict=True)]
    plan_rows = {
        tuple(row.get(name) for name in _KEY): row for row in [*_load_plan(log_dir), *planned_rows]
    }
    write_to_log_dir(
        log_dir, PLAN_FILE, json.dumps(list(plan_rows.values()), indent=1, ensure_ascii=False)
    )


def write_to_log_dir(log_dir: str, name: str, text: str) -> None:
    """Write a file into a log directory, local or remote.

    Raises:
        InputError: the file cannot be written.
    """
    try:
        with putting(log_dir, name) as file:
            file.write(text.encode())
    except OSError as error:
        raise unwritable(f"{log_dir}/{name}", error) from error


def read_from_log_dir(log_dir: str, name: str) -> str | None:
    """Read the text of a file in a log directory, local or remote; None if it cannot be read."""
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
    """Return the plans of log directories, in their order; logs and turns tables have none."""
    dirs = (source for source in sources if not source.endswith((".parquet", ".eval")))
    return [row for log_dir in dirs for row in _load_plan(log_dir)]


def left_out(sources: Iterable[str]) -> list[str]:
    """Return a line for each kind of content that the runs of log directories skipped."""
    notes = (row.get("left_out") for row in plans(sources))
    return list(dict.fromkeys(str(note) for note in notes if note))


def _load_plan(log_dir: str) -> list[dict[str, Any]]:
    try:
        plan_rows = json.loads(read_from_log_dir(log_dir, PLAN_FILE) or "[]")
    except ValueError:  # truncated, so nothing is known
        return []
    rows = plan_rows if isinstance(plan_rows, list) else []
    return [row for row in rows if isinstance(row, dict) and row.keys() >= _COLUMNS]


def errors(turns: pl.DataFrame) -> pl.DataFrame:
    """Count failed turns by model, path and kind of error; these are malfunctions, not verdicts."""
    failed_turns = turns.filter(pl.col("status") == "error")
    return failed_turns.group_by("model", "path", "rule", maintain_order=True).agg(
        pl.len().alias("n")
    )


def sent_otherwise(turns: pl.DataFrame) -> pl.DataFrame:
    """Count turns whose request differed from the study's settings, without turns of helpers.

    Returns:
        ``model``, ``sent_otherwise`` (settings not sent, or sent with another value) and ``n``
        turns.
    """
    helping = in_arms(lambda protocol: protocol.helpers)
    differing = turns.filter(pl.col("sent_otherwise").is_not_null(), ~helping)
    return differing.group_by("model", "sent_otherwise", maintain_order=True).agg(n=pl.len())
