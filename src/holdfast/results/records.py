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
    """The runs of a log directory with their logs (newest first): those of the first command first.

    Those of one command stand in the order in which it asks for them.
    """
    runs: dict[str, list[EvalLog]] = {}
    start_times: dict[str, str] = {}  # when each process began: of its logs any may be the first
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

    def add(self, log: str, key: Key, rows: list[dict[str, Any]], *, is_finished: bool) -> None:
        """Keep the turns of a question.

        Args:
            log: name of the log that holds it.
            key: id and epoch.
            rows: its turns, by the columns.
            is_finished: whether it is.
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
            # apart, since reading some columns of a file reads it all
            rows.drop(self._texts).write_ipc(path)
            rows.select(ROW, *self._texts).write_ipc(_texts_of(path))
            parts.append((waiting[0][ROW], waiting[-1][ROW], path))

    def of(self, log: str, keys: Sequence[Key], order: Mapping[str, int]) -> pl.DataFrame:
        """The turns of some questions of a log without texts, in the order of the questions."""
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
        """A table with the texts of the turns that ``of`` has given, never all in memory."""
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
    """The records that count of a run, by the logs that they are in.

    Of a question that logs which ask as much hold twice, the newest finished record counts; logs
    that ask for more or less each have one of it, those of the newest log first.

    Args:
        logs: headers of the run's logs, newest first.
        order: place of each question.
        written_logs: what is known of some logs.
    """
    for extent in _extents(logs):
        yield from _group_by_log(_choose_records(extent, written_logs), order)


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


def unfinished(headers: list[EvalLog], written_logs: Written | None = None) -> list[Unfinished]:
    """The runs of a log directory that lack questions, at their newest extent."""
    lacking_studies = []
    for run, logs in runs_in(headers):
        newest = _extents(logs)[0]  # those of its shards are one extent
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
    """Place of each question in the table, by id: as its set has them, whoever asked which."""
    order: dict[str, int] = {}
    is_sharded = any(SHARD in (log.eval.metadata or {}) for log in logs)
    for log in logs:
        ids = log.eval.dataset.sample_ids or []
        shard = (log.eval.metadata or {}).get(SHARD)
        # a log of all questions holds the first ones of the set
        places = shard["places"] if shard else range(len(ids)) if is_sharded else None
        for number, id in enumerate(ids):
            order.setdefault(str(id), places[number] if places else len(order))
    return {id: place for place, id in enumerate(sorted(order, key=lambda id: order[id]))}


def _extents(logs: list[EvalLog]) -> list[list[EvalLog]]:
    """Logs by how much they ask, the newest first."""
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
    """Whether each record of a log is of a finished question."""
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
    """For each log, the records to read from it, in the order of the questions."""
    logs: dict[str, tuple[EvalLog, list[Key]]] = {}
    for key in sorted(newest_records, key=lambda key: (order[str(key[0])], key[1])):
        log = newest_records[key][1]
        logs.setdefault(log.location, (log, []))[1].append(key)
    return list(logs.values())


@dataclass(frozen=True)
class RunRecord:
    """Facts that the logs hold of a run in addition to its turns.

    Attributes:
        run: its id, as in the turns table.
        start: when its first log was begun, in ISO 8601.
        end: when its last log was closed; None where none was.
        records: questions times epochs that it is to ask.
        settings: what fixes its prompts and replies, by name.
        versions: packages that it was made with.
    """

    run: str
    start: str
    end: str | None
    records: int
    settings: Mapping[str, Any]
    versions: Mapping[str, str]


def run_records(sources: Iterable[str]) -> dict[str, RunRecord]:
    """The runs of log directories and logs, by id; turns tables record none."""
    return {run: _record(run, logs) for run, logs in _group_by_run(sources).items()}


def finished_orders(sources: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Questions (ids) of each run as they are asked, up to the first that is not finished."""
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
    """The same of a log directory or a log; nothing of a turns table."""
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
        # shards have their questions in logs of their own
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
    """Write the rows of a plan into a log dir, over what it planned for the same studies before.

    ``left_out`` tells by question set which techniques were left out and what would bring them in.
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
        InputError: it cannot be written.
    """
    try:
        with putting(log_dir, name) as file:
            file.write(text.encode())
    except OSError as error:
        raise unwritable(f"{log_dir}/{name}", error) from error


def read_from_log_dir(log_dir: str, name: str) -> str | None:
    """The text of a file in a log directory, local or remote; None where it cannot be read."""
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
    """The plans of log directories, in their order; logs and turns tables have none."""
    dirs = (source for source in sources if not source.endswith((".parquet", ".eval")))
    return [row for log_dir in dirs for row in _load_plan(log_dir)]


def left_out(sources: Iterable[str]) -> list[str]:
    """Return a line for each kind of content that the runs of log directories skipped."""
    notes = (row.get("left_out") for row in plans(sources))
    return list(dict.fromkeys(str(note) for note in notes if note))


def _load_plan(log_dir: str) -> list[dict[str, Any]]:
    try:
        plan_rows = json.loads(read_from_log_dir(log_dir, PLAN_FILE) or "[]")
    except ValueError:  # one that was cut off: nothing is known
        return []
    rows = plan_rows if isinstance(plan_rows, list) else []
    return [row for row in rows if isinstance(row, dict) and row.keys() >= _COLUMNS]


def errors(turns: pl.DataFrame) -> pl.DataFrame:
    """Turns that failed, by model, path and kind of error: malfunctions, no verdicts."""
    failed_turns = turns.filter(pl.col("status") == "error")
    return failed_turns.group_by("model", "path", "rule", maintain_order=True).agg(
        pl.len().alias("n")
    )


def sent_otherwise(turns: pl.DataFrame) -> pl.DataFrame:
    """Turns whose request went out otherwise than the study has it, those of helpers skipped.

    Returns:
        ``model``, ``sent_otherwise`` (what was not sent, or as what) and ``n`` turns.
    """
    helping = in_arms(lambda protocol: protocol.helpers)
    differing = turns.filter(pl.col("sent_otherwise").is_not_null(), ~helping)
    return differing.group_by("model", "sent_otherwise", maintain_order=True).agg(n=pl.len())
