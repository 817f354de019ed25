"""The turns table: one row for each assistant turn, computed from the logs alone."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from holdfast.encoding import json_value
from holdfast.errors import InputError, in_one_line
from holdfast.parquet import DAMAGE_NOTE, is_whole, reading_table

from .arms import protocols
from .first_answers import STRATA
from .labels import LABELS_FILE, with_labels
from .readings import (
    AUDIT,
    AUDIT_FILE,
    LABEL_SCHEMA,
    READ_BY,
    READINGS,
    READINGS_FILE,
    TURN_KEY,
    as_recorded,
    first_readings,
    labelled,
    mark,
    put_table,
    with_people_labels,
    with_readings,
)
from .records import (
    ROW,
    Unfinished,
    Written,
    chosen_records,
    question_order,
    read_records,
    runs_in,
    unfinished,
    wordings,
    wordings_in,
)
from .runs import log_name, logs_in, tested_name, whole_header

if TYPE_CHECKING:
    from inspect_ai.log import EvalLog, EvalSample

_log = logging.getLogger(__name__)

REPLAYS = ("replays", "replays_differ", "replays_moved")
"""Columns of a turn before which an assistant was sent the earlier turns again."""

_INT, _FLOAT, _BOOL = pl.Int64(), pl.Float64(), pl.Boolean()
_COLUMNS = (
    "run",
    "protocol",
    "protocol_version",
    "model",
    "defence",
    "dataset",
    "seed",
    "epoch",
    "question",
    "arm",
    "path",
    "turn",
    "technique",
    "family",
    "axis",
    "depth",
    "suggested",
    "shown",
    "target",
    "gold",
    "answer",
    "status",
    "rule",
    *READINGS,
    "answer_second",
    "answers",
    *LABEL_SCHEMA,
    "correct",
    "cue",
    "stance",
    "cue_judged",
    "stance_judged",
    "concession",
    "attempts",
    "characteristics",
    "mentioned",
    "mentioned_visible",
    "mentioned_judged",
    "valid_judged",
    "review",
    "words",
    "rewrite",
    "attacked_run",
    "p_gold",
    "p_suggested",
    "p_answer",
    "step",
    "system",
    "specialty",
    "subject",
    "input_tokens",
    "output_tokens",
    "cached_tokens",
    "reasoning_tokens",
    "cost",
    "latency",
    "calls",
    "stop",
    "answered_by",
    "sent_otherwise",
    *REPLAYS,
    "shared",
    "prompt",
    "reply",
)
_TYPES: dict[str, pl.DataType] = {
    **dict.fromkeys(("protocol_version", "seed", "epoch", "turn"), _INT),
    **dict.fromkeys(("attempts", "review", "words", "calls", *REPLAYS), _INT),
    **dict.fromkeys(("input_tokens", "output_tokens", "cached_tokens", "reasoning_tokens"), _INT),
    **dict.fromkeys(("p_gold", "p_suggested", "p_answer", "cost", "latency"), _FLOAT),
    **dict.fromkeys(("correct", "cue", "cue_judged", "valid_judged", "shared"), _BOOL),
    **READINGS,
    **LABEL_SCHEMA,
}
SCHEMA = pl.Schema({name: _TYPES.get(name, pl.String()) for name in _COLUMNS})
"""Columns of the turns table with their types, in order; the default type is text."""

TEXTS = ("prompt", "reply")
CUES = ("cue", "stance", "cue_judged", "stance_judged", "concession")
ATTACKS = (
    "attempts", "characteristics", "mentioned", "mentioned_visible", "mentioned_judged",
    "valid_judged", "review", "words", "rewrite", "attacked_run",
)  # fmt: skip
JUDGE_COLUMNS = ("cue_judged", "stance_judged", "mentioned_judged", "review", "valid_judged",
                 "answer_second")  # fmt: skip
"""Columns that a judge fills, possibly in a later run."""
ENDING = ("calls", "stop", "answered_by", "sent_otherwise")
OPTIONAL = (
    *TEXTS, *CUES, *ATTACKS, *ENDING, *REPLAYS, *READINGS, *LABEL_SCHEMA, "shown", "defence",
    "answers", "answer_second",
)  # fmt: skip
"""Optional columns of a turns table."""

_LOG_SCHEMA = pl.Schema(
    {
        **SCHEMA, "_mark": pl.String(), "_read": pl.String(), "_finished": pl.Boolean(),
        ROW: pl.Int64(),
    }
)  # fmt: skip
"""``SCHEMA``, with digest, conversation, completion and storage row of a turn's record."""


FILE_NAME = "turns.parquet"
"""Name of the turns table in a log directory."""

_UNFINISHED_KEY = "holdfast_unfinished"
"""Metadata key of a turns table: runs that were unfinished when the table was computed."""

_ORIGIN = "holdfast_origin"
"""Metadata key of a turns table: logs behind the table."""


_TEXT = "holdfast_text"
"""Metadata key of a turns table: whether it contains prompts and replies."""


_WORDINGS = "holdfast_wordings"
"""Metadata key of a turns table: wordings of the techniques of each run."""


def turns_table(sources: Iterable[str], *, text: bool = True) -> pl.DataFrame:
    """Concatenate the turns of log directories, logs and turns tables.

    Args:
        sources: log directories (local or any fsspec URL), ``.eval`` logs, ``.parquet`` turns
            tables.
        text: whether to read prompts and replies.

    Returns:
        One row for each turn, columns as in ``SCHEMA``, in the order of source, run, question,
        epoch and path. If a run logged a question twice, the newest finished record counts. If
        several sources contain a turn, the first counts.

    Raises:
        InputError: a source does not exist or has no turns, a table lacks a column, or two sources
            have a technique of the same run with different wordings.
    """
    sources = [*sources]
    table = together(_source(source, text=text) for source in sources)
    if len(sources) > 1:
        _check_wordings(sources)
    return table


def _check_wordings(sources: Iterable[str]) -> None:
    """Raise an error if runs with the same id have a technique with different wordings.

    Studies that start alike and grow by different wordings have the same id.
    """
    wordings_by_technique: dict[tuple[str, str], tuple[str, str]] = {}
    for source in sources:
        for run, techniques in _wordings(source).items():
            for technique, wording in techniques.items():
                first, before = wordings_by_technique.setdefault(
                    (run, technique), (wording, source)
                )
                if first != wording:
                    raise InputError(
                        f"'{technique}' has another wording than in {before}, in one run {run}",
                        source,
                        remedy="Give one of the two sources, or rename the technique and repeat "
                        "the run",
                    )


def _wordings(source: str) -> Mapping[str, Mapping[str, str]]:
    if not source.endswith(".parquet"):
        return wordings_in(source)
    stored_wordings: Mapping[str, Mapping[str, str]] = json.loads(
        pl.read_parquet_metadata(source).get(_WORDINGS, "{}")
    )
    return stored_wordings


def together(frames: Iterable[pl.DataFrame]) -> pl.DataFrame:
    """Concatenate turns tables of several sources; the first source of a turn counts."""
    table = pl.DataFrame(schema=SCHEMA)
    for frame in frames:
        # a log directory and the table in it contain the same turns
        new = frame.join(table, on=TURN_KEY, how="anti", maintain_order="left")
        table = pl.concat([table, new])
    return table


class WrittenTurns(Written):
    """Turns that this process has logged itself, so that their logs need not be read again."""

    def __init__(self) -> None:
        """Create an empty store."""
        super().__init__(_LOG_SCHEMA, TEXTS)

    def note(self, log: EvalLog, sample: EvalSample) -> None:
        """Store the turns of a sample that was just logged."""
        rows = _rows("", log, sample, text=True)
        name, key = log_name(log.location), (sample.id, sample.epoch)
        self.add(name, key, rows, is_finished=sample.error is None)


def write_turns(
    log_dir: str, *, text: bool = True, written_logs: Written | None = None
) -> tuple[str, pl.DataFrame]:
    """Compute the turns table of a log directory and write it there.

    Args:
        log_dir: a local folder or any fsspec URL.
        text: whether to include prompts and replies.
        written_logs: logs that need not be read.

    Returns:
        Path of the table, and the table without texts.
    """
    origin = _origin(Path(log_dir))  # before reading, so that a later log makes the table stale
    headers = logs_in(log_dir, whole=True, known_logs=written_logs.finished if written_logs else ())
    written_logs = written_logs or WrittenTurns()
    frame = _of_log_dir(headers, log_dir, text=text, written_logs=written_logs)
    lacking = json.dumps(
        [asdict(lacking_study) for lacking_study in unfinished(headers, written_logs)]
    )
    about = {
        _ORIGIN: origin,
        _UNFINISHED_KEY: lacking,
        _TEXT: json.dumps(text),
        _WORDINGS: json.dumps(wordings(headers)),
    }
    whole = written_logs.with_texts(frame) if text else frame.lazy()
    path = put_table(whole.select(*SCHEMA), log_dir, FILE_NAME, about)
    return path, frame.select(*SCHEMA).drop(TEXTS)


def write_audit(labels: pl.DataFrame, source: str) -> str:
    """Write people's labels (``AUDIT``) next to the logs or into a turns table; return the path."""
    if not source.endswith(".parquet") and not logs_in(source):
        source = f"{source}/{FILE_NAME}"
    if source.endswith(".parquet"):
        whole = labelled(_table(Path(source), text=True), labels)
        return put_table(whole.lazy(), *os.path.split(source))
    path = put_table(labels.lazy().select(*AUDIT), source, AUDIT_FILE)
    write_turns(source, text=_about(Path(source)).get(_TEXT, "true") == "true")
    return path


def unfinished_runs(sources: Iterable[str]) -> list[Unfinished]:
    """Return the unfinished runs of log directories; logs and turns tables do not record them."""
    lacking_studies: list[Unfinished] = []
    for source in sources:
        if source.endswith((".parquet", ".eval")):
            continue
        if "://" not in source and _is_current(Path(source)):
            lacking_text = _about(Path(source)).get(_UNFINISHED_KEY, "[]")
            lacking_studies += [Unfinished(**fields) for fields in json.loads(lacking_text)]
        else:
            lacking_studies += unfinished(logs_in(source))
    return lacking_studies


def _source(source: str, *, text: bool) -> pl.DataFrame:
    path = Path(source)
    if source.endswith(".parquet"):
        return _table(path, text=text)
    if source.endswith(".eval"):
        if "://" not in source and not os.path.isfile(source):
            raise InputError("no such log", source, remedy="Check the path")
        return _logs([whole_header(source)], text=text).select(*SCHEMA)
    # ``Path.is_dir`` raises an error for a name that is too long
    if "://" not in source and not os.path.isdir(source):
        raise InputError("no such log directory", source, remedy="Check the path")
    if _is_current(path, text=text):  # and undamaged
        return _load_table(path / FILE_NAME, text=text)
    headers = logs_in(source, whole=True) if "://" not in source else _remote_logs(source)
    if headers:
        _check_table(path)
        return _of_log_dir(headers, source, text=text).select(*SCHEMA)
    if (path / FILE_NAME).is_file():
        return _table(path / FILE_NAME, text=text)
    raise InputError(
        "has no holdfast logs", source, remedy=f"Run a protocol with --log-dir {source} first"
    )


def _remote_logs(url: str) -> list[EvalLog]:
    try:
        return logs_in(url, whole=True)
    except InputError:
        raise
    except Exception as error:  # each file system raises other errors
        problem = f"cannot be reached ({in_one_line(error)})"
        raise InputError(problem, url, remedy="Check the URL") from error


def _origin(log_dir: Path) -> str:
    """Return the origin of a local log directory's table: this version, and files with their times.

    Comparing file times is faster than reading the logs.
    """
    beside = (LABELS_FILE, READINGS_FILE, AUDIT_FILE)
    files = [file for name in ("*.eval", *beside) for file in log_dir.glob(name)]
    stats = sorted((file.name, file.stat().st_size, file.stat().st_mtime_ns) for file in files)
    return json.dumps([version("holdfast"), list(SCHEMA), stats])


def _is_current(log_dir: Path, *, text: bool = False) -> bool:
    """Whether the table in a log directory matches its logs, and has texts if required."""
    about = _about(log_dir)
    return (not text or about.get(_TEXT) == "true") and about.get(_ORIGIN) == _origin(log_dir)


def _about(log_dir: Path) -> dict[str, str]:
    """Return the metadata of the table in a log directory, empty without a complete table."""
    path = log_dir / FILE_NAME
    try:
        with reading_table(str(path), "cannot be read", remedy=""):
            return pl.read_parquet_metadata(path) if is_whole(path) else {}
    except InputError:  # the logs count
        return {}


def _check_table(log_dir: Path) -> None:
    """Warn about a damaged table in a log directory, whose logs are read instead."""
    path = log_dir / FILE_NAME
    if path.is_file() and is_whole(path) is False:
        _log.warning(
            "Warning: %s: %s, so the logs were read instead. Run 'holdfast score %s' to replace "
            "it.", path, DAMAGE_NOTE, log_dir,
        )  # fmt: skip


def _table(path: Path, *, text: bool) -> pl.DataFrame:
    with _reading(path):
        if is_whole(path) is False:
            remedy = "Give the log directory that the table was written in, or an intact copy"
            raise InputError(DAMAGE_NOTE, str(path), remedy=remedy)
    return _load_table(path, text=text)


def _reading(path: Path) -> AbstractContextManager[None]:
    return reading_table(str(path), "cannot be read as a turns table", "Check the file")


def _load_table(path: Path, *, text: bool) -> pl.DataFrame:
    with _reading(path):
        scan = pl.scan_parquet(path, glob=False)
        frame = (scan if text else scan.drop(TEXTS, strict=False)).collect()
    if missing := sorted(set(SCHEMA) - set(OPTIONAL) - set(frame.columns)):
        remedy = "Give a turns table written by this version of holdfast"
        raise InputError("is missing", str(path), field=missing[0], remedy=remedy)
    frame = first_readings(frame)
    absent = {name: pl.lit("none" if name == "defence" else None)
              for name in OPTIONAL if name not in frame.columns}  # fmt: skip
    return frame.with_columns(**absent).select(*SCHEMA).cast(SCHEMA)


def _of_log_dir(
    headers: list[EvalLog], log_dir: str, *, text: bool, written_logs: Written | None = None
) -> pl.DataFrame:
    """Return the rows of a log directory, with the newer readings and labels next to its logs."""
    turns_read = with_readings(
        _logs(headers, text=text, written_logs=written_logs), log_dir
    ).select(*SCHEMA, ROW)
    return with_labels(with_people_labels(turns_read, log_dir), log_dir, STRATA)


def _logs(
    headers: list[EvalLog], *, text: bool, written_logs: Written | None = None
) -> pl.DataFrame:
    """Return the rows of several logs, with each question of a run once."""
    frames = [_run(run, logs, written_logs, text=text) for run, logs in runs_in(headers)]
    return pl.concat(frames) if frames else pl.DataFrame(schema=_LOG_SCHEMA)


def _run(
    run: str, logs: list[EvalLog], written_logs: Written | None, *, text: bool
) -> pl.DataFrame:
    """Return the rows of a run from its logs, newest first."""
    order = question_order(logs)
    frames = [pl.DataFrame(schema=_LOG_SCHEMA)]
    for log, keys in chosen_records(logs, order, written_logs):
        if written_logs and log_name(log.location) in written_logs.finished:
            frames.append(written_logs.of(log_name(log.location), keys, order))
            continue
        for _, samples in read_records(log, keys):
            # one frame for each batch, because the texts of a whole study as dicts exceed the
            # memory
            rows = [row for sample in samples for row in _rows(run, log, sample, text=text)]
            frames.append(pl.DataFrame(rows, schema=_LOG_SCHEMA, orient="row"))
    empty_texts = [] if text else [pl.lit(None, pl.String).alias(name) for name in TEXTS]
    names = {"run": pl.lit(run, pl.String), "model": pl.lit(tested_name(logs), pl.String)}
    table = pl.concat(frames).with_columns(*empty_texts, **names)
    if len(logs) == 1:
        return table  # already in order; sorting would copy every text
    table = table.with_row_index("_row")
    # if answers decide what is asked next, turns with different readings are of different
    # conversations
    last_reading = pl.col("_read").filter("_finished").first().over("question", "epoch")
    ending = pl.col("protocol").is_in(protocols(lambda protocol: protocol.stops_early))
    is_other_reading = ending & (pl.col("_read") != last_reading)
    table = table.filter(~is_other_reading.fill_null(value=False))
    table = table.sort(pl.col("status") == "error", maintain_order=True)
    # a run that has grown repeats its first turns from the cache, with or without a judge
    judgements = pl.col(JUDGE_COLUMNS).drop_nulls().first().over(TURN_KEY)
    table = table.with_columns(judgements).unique(TURN_KEY, keep="first", maintain_order=True)
    place = pl.col("question").replace_strict(order, return_dtype=pl.Int64)
    return table.sort(place, "epoch", "_row").drop("_row")


def turns_in(sample: EvalSample) -> list[dict[str, Any]]:
    """Return the turns of a logged sample, by column."""
    turns: list[dict[str, Any]] = json_value(sample.store.get("turns", "[]"))
    return turns


def _rows(run: str, log: EvalLog, sample: EvalSample, *, text: bool) -> list[dict[str, Any]]:
    metadata, spec = log.eval.metadata or {}, log.eval
    keys_seen: set[str] = set()
    rows: list[dict[str, Any]] = []
    for turn in turns_in(sample):
        # if an option is withheld, another option is right
        gold = turn.get("gold") or sample.metadata["gold"]
        turn = as_recorded(turn)
        row = {name: turn.get(name) for name in SCHEMA} | {
            "_mark": mark(turn),
            "_read": repr([turn.get(name) for name in READ_BY]),
            "_finished": sample.error is None,
            "run": run,
            "protocol": metadata["protocol"],
            "protocol_version": int(spec.task_version),
            "model": spec.model,
            "defence": (metadata.get("defence") or ["none"])[0],
            "dataset": spec.dataset.name,
            "seed": spec.task_args.get("seed"),
            "epoch": sample.epoch,
            "question": str(sample.id),
            "gold": gold,
            "correct": turn["answer"] == gold,
            # the first turn with a conversation, in log order, asked it; later turns share it
            "shared": turn["key"] in keys_seen,
            **{stratum: sample.metadata.get(stratum) for stratum in STRATA},
        }
        if not text:
            row |= dict.fromkeys(TEXTS)
        keys_seen.add(turn["key"])
        rows.append(row)
    return rows
