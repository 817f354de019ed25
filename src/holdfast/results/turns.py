"""The turns table: one row for each assistant turn, derived from the logs alone."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from holdfast.errors import InputError

from .labels import LABELS_FILE, with_labels

if TYPE_CHECKING:  # Inspect takes two seconds to import; a table that is there needs none of it
    from inspect_ai.log import EvalLog, EvalSample

SCHEMA = pl.Schema(
    {
        "run": pl.String(),
        "protocol": pl.String(),
        "protocol_version": pl.Int64(),
        "model": pl.String(),
        "dataset": pl.String(),
        "seed": pl.Int64(),
        "epoch": pl.Int64(),
        "question": pl.String(),
        "arm": pl.String(),
        "path": pl.String(),
        "turn": pl.Int64(),
        "technique": pl.String(),
        "family": pl.String(),
        "axis": pl.String(),
        "depth": pl.String(),
        "suggested": pl.String(),
        "shown": pl.String(),
        "target": pl.String(),
        "gold": pl.String(),
        "answer": pl.String(),
        "status": pl.String(),
        "rule": pl.String(),
        "correct": pl.Boolean(),
        "cue": pl.Boolean(),
        "stance": pl.String(),
        "cue_judged": pl.Boolean(),
        "stance_judged": pl.String(),
        "characteristics": pl.String(),
        "mentioned": pl.String(),
        "mentioned_judged": pl.String(),
        "review": pl.Int64(),
        "words": pl.Int64(),
        "attacked_run": pl.String(),
        "p_gold": pl.Float64(),
        "p_suggested": pl.Float64(),
        "p_answer": pl.Float64(),
        "step": pl.String(),
        "system": pl.String(),
        "specialty": pl.String(),
        "subject": pl.String(),
        "input_tokens": pl.Int64(),
        "output_tokens": pl.Int64(),
        "cached_tokens": pl.Int64(),
        "reasoning_tokens": pl.Int64(),
        "cost": pl.Float64(),
        "latency": pl.Float64(),
        "stop": pl.String(),
        "answered_by": pl.String(),
        "sent_otherwise": pl.String(),
        "shared": pl.Boolean(),
        "prompt": pl.String(),
        "reply": pl.String(),
    }
)
"""Columns of the turns table with their types, in order."""

TEXTS = ("prompt", "reply")
CUES = ("cue", "stance", "cue_judged", "stance_judged")
ATTACKS = (
    "characteristics", "mentioned", "mentioned_judged", "review", "words", "attacked_run",
)  # fmt: skip
JUDGED = ("cue_judged", "stance_judged", "mentioned_judged", "review")
"""Columns that a judge fills, who may come to a run later."""
ENDING = ("stop", "answered_by", "sent_otherwise")
OPTIONAL = (*TEXTS, *CUES, *ATTACKS, *ENDING, "shown")
"""Columns that a turns table may lack, and is then read without."""

STRATA = ("step", "system", "specialty", "subject")

SHARD = "shard"
"""In the metadata of a log that holds some of a run's questions: which, and their places."""

IMPORTED = "imported-"
"""How the run of turns begins that holdfast has not asked, but read from a file."""

FILE_NAME = "turns.parquet"
"""Name of the turns table in a log dir."""

_UNREAD = {
    "choices", "messages", "output", "events", "attachments", "timelines", "model_usage",
    "role_usage", "events_data", "scores",
}  # fmt: skip
"""Fields of a logged sample that the table has no use for."""

_ORIGIN = "holdfast_origin"
"""In the metadata of a turns table: which logs it was derived from."""

_SAMPLES_AT_ONCE = 50
_ROWS_AT_ONCE = 4096

_TURN = ("question", "epoch", "arm", "path", "turn")
"""What tells the turns of a run apart."""

_Key = tuple[str | int, int]
"""Id and epoch of a logged sample."""

INPUTS = (
    "questions", "contexts", "challenges", "fields", "distractors", "suggest", "graph",
    "exemplars", "attacks",
)  # fmt: skip
"""Settings that name inputs; what counts of them is their content."""

EXTENSIBLE = (
    "-T techniques", "-T chains", "-T lengths", "-T biases", "-T mitigations",
    "-T attempts", "-T controls", "-T samples", "content of techniques", "--model-role judge",
)  # fmt: skip
"""Settings that say how much is asked, not how: with more of it a run grows and stays itself."""

RUNTIME = (
    "max_connections", "adaptive_connections", "max_retries", "timeout", "attempt_timeout",
    "cache_prompt", "batch",
)  # fmt: skip
"""Generation settings that cannot change a reply and so do not tell runs apart."""


def run_id(header: EvalLog) -> str:
    """Digest of everything that fixes a run's prompts and replies: the same settings, the same id.

    Args:
        header: an Inspect log; its samples are not looked at.
    """
    settings = {k: v for k, v in run_settings(header).items() if k not in EXTENSIBLE}
    contexts = settings.get("content of contexts")
    if isinstance(contexts, dict):  # those of other lengths come as an ablation is added
        settings["content of contexts"] = contexts.get("")
    return hashlib.sha256(json.dumps(settings, default=str).encode()).hexdigest()[:12]


def is_simulated(model: str) -> bool:
    """Whether a model's name says that its replies are simulated."""
    return model.startswith("simulated/") or "[simulated]" in model


def is_imported(run: object) -> bool:
    """Whether the turns of a run were not asked by holdfast, but made elsewhere and imported."""
    return str(run).startswith(IMPORTED)


def run_settings(header: EvalLog) -> dict[str, Any]:
    """The settings behind ``run_id`` by name, sorted.

    Inputs count by their content (in the log's metadata), not by the path they were read from.
    """
    spec = header.eval
    config = spec.model_generate_config.model_dump(exclude_none=True) | (
        header.plan.config.model_dump(exclude_none=True)
    )
    settings: dict[str, Any] = {
        "task": spec.task,
        "version": spec.task_version,
        "model": spec.model,
        "dataset": spec.dataset.name,
    }
    settings |= {f"-M {name}": value for name, value in (spec.model_args or {}).items()}
    for role, models in (spec.model_roles or {}).items():
        named = models if isinstance(models, list) else [models]
        settings[f"--model-role {role}"] = ", ".join(config.model for config in named)
    settings |= {f"-T {k}": v for k, v in spec.task_args.items() if k not in INPUTS}
    settings |= {k: v for k, v in config.items() if k not in RUNTIME}
    settings |= {
        f"content of {k}": v
        for k, v in (spec.metadata or {}).items()
        if not k.endswith("_from") and k != SHARD  # the name of a file; who asked
    }
    return dict(sorted(settings.items()))


def is_ours(header: EvalLog, kind: str = "protocol") -> bool:
    """Whether a log was written by one of holdfast's protocols, or its preparations."""
    return bool(header.eval.metadata and kind in header.eval.metadata)


def logs_in(log_dir: str, *, kind: str = "protocol") -> list[EvalLog]:
    """Headers of holdfast's logs in a log dir, newest first; those cut short by a kill too.

    Args:
        log_dir: a local folder or any fsspec URL.
        kind: ``protocol``, or ``preparation`` for what contexts and labels were made in.
    """
    from inspect_ai.log import list_eval_logs, read_eval_log

    infos = list_eval_logs(log_dir, formats=["eval"], recursive=False, descending=True)
    headers: list[EvalLog] = []
    for info in infos:
        try:
            header = read_eval_log(info, header_only=True)
        except Exception:  # killed before its first write: nothing in it to read
            continue
        if is_ours(header, kind):
            headers.append(header)
    return headers


def turns_table(sources: Iterable[str], *, text: bool = True) -> pl.DataFrame:
    """The turns of log dirs, logs and turns tables, concatenated.

    Args:
        sources: log dirs (local or any fsspec URL), ``.eval`` logs, ``.parquet`` turns tables.
        text: whether prompts and replies are read.

    Returns:
        One row a turn, columns as in ``SCHEMA``; rows in the order of source, run, question,
        epoch, path. Of a question logged twice by one run, the newest finished record counts; of
        one that stands in several sources, that of the first.

    Raises:
        InputError: a source does not exist or holds no turns, or a table lacks a column.
    """
    turn = ["run", *_TURN]
    table = pl.DataFrame(schema=SCHEMA)
    for source in sources:
        frame = _source(source, text=text)
        # a log dir and the table in it hold the same turns: each counts once
        table = pl.concat([table, frame.join(table, on=turn, how="anti", maintain_order="left")])
    return table


def write_turns(log_dir: str, *, text: bool = True) -> tuple[str, pl.DataFrame]:
    """Derive the turns table of a log dir and leave it there.

    Returns:
        Its path, and the table without texts.
    """
    origin = _origin(Path(log_dir))  # before the logs are read, so that a later one makes it stale
    frame = with_labels(_logs(logs_in(log_dir), text=text), log_dir, STRATA)
    if "://" in log_dir:
        url = f"{log_dir.rstrip('/')}/{FILE_NAME}"
        import fsspec

        with fsspec.open(url, "wb") as file:
            frame.write_parquet(file, compression="zstd", row_group_size=_ROWS_AT_ONCE)
        return url, frame.drop(TEXTS)
    path = Path(log_dir) / FILE_NAME
    partial = path.with_name(f".{FILE_NAME}.partial")
    frame.write_parquet(
        partial, compression="zstd", row_group_size=_ROWS_AT_ONCE, metadata={_ORIGIN: origin}
    )
    partial.replace(path)
    return str(path), frame.drop(TEXTS)


def _source(source: str, *, text: bool) -> pl.DataFrame:
    path = Path(source)
    if source.endswith(".parquet"):
        return _table(path, text=text)
    if source.endswith(".eval"):
        if "://" not in source and not os.path.isfile(source):
            raise InputError("no such log", source, remedy="Check the path")
        from inspect_ai.log import read_eval_log

        return _logs([read_eval_log(source, header_only=True)], text=text)
    if "://" not in source and not os.path.isdir(
        source
    ):  # Path's own raises where a name is too long
        raise InputError("no such log dir", source, remedy="Check the path")
    if not text and _is_current(path):
        return _table(path / FILE_NAME, text=False)
    headers = logs_in(source) if "://" not in source else _remote_logs(source)
    if headers:
        return with_labels(_logs(headers, text=text), source, STRATA)
    if (path / FILE_NAME).is_file():
        return _table(path / FILE_NAME, text=text)
    raise InputError(
        "holds no log of holdfast", source, remedy=f"Run a protocol with --log-dir {source} first"
    )


def _remote_logs(url: str) -> list[EvalLog]:
    try:
        return logs_in(url)
    except Exception as error:  # each store raises its own
        raise InputError(
            f"cannot be reached ({' '.join(str(error).split())[:200]})", url, remedy="Check the URL"
        ) from error


def _origin(log_dir: Path) -> str:
    """What a local log dir's table is derived from: this version, and every file by name and time.

    Reading logs takes seconds; looking whether one has changed does not.
    """
    files = [*log_dir.glob("*.eval"), *log_dir.glob(LABELS_FILE)]
    stats = sorted((file.name, file.stat().st_size, file.stat().st_mtime_ns) for file in files)
    return json.dumps([version("holdfast"), list(SCHEMA), stats])


def _is_current(log_dir: Path) -> bool:
    """Whether the table in a log dir is of the logs as they are."""
    try:
        written = pl.read_parquet_metadata(log_dir / FILE_NAME).get(_ORIGIN)
        return written == _origin(log_dir)
    except (OSError, pl.exceptions.PolarsError):  # none there, or not to be read: the logs count
        return False


def _table(path: Path, *, text: bool) -> pl.DataFrame:
    try:
        scan = pl.scan_parquet(path, glob=False)
        frame = (scan if text else scan.drop(TEXTS, strict=False)).collect()
    except (OSError, pl.exceptions.PolarsError) as error:
        raise InputError(
            f"cannot be read as a turns table ({error})", str(path), remedy="Check the file"
        ) from error
    required = set(SCHEMA) - set(OPTIONAL)
    missing = sorted(required - set(frame.columns))
    if missing:
        raise InputError(
            "is missing",
            str(path),
            field=missing[0],
            remedy="Give a turns table written by this version of holdfast",
        )
    absent = [
        pl.lit(None, SCHEMA[name]).alias(name) for name in OPTIONAL if name not in frame.columns
    ]
    return frame.with_columns(absent).select(*SCHEMA).cast(SCHEMA)


def _logs(headers: list[EvalLog], *, text: bool) -> pl.DataFrame:
    """The rows of several logs, each question of a run once."""
    runs: dict[str, list[EvalLog]] = {}
    begun: dict[str, str] = {}  # when each process began: of its logs any may be the first
    for header in headers:
        runs.setdefault(run_id(header), []).append(header)
        at = header.eval.created
        begun[header.eval.run_id] = min(at, begun.get(header.eval.run_id, at))
    ordered = sorted(runs.items(), key=partial(_first_written, begun=begun))
    frames = [_run(run, logs, text=text) for run, logs in ordered]
    return pl.concat(frames) if frames else pl.DataFrame(schema=SCHEMA)


def _first_written(run: tuple[str, list[EvalLog]], begun: Mapping[str, str]) -> tuple[str, str]:
    id, logs = run
    return min(begun[log.eval.run_id] for log in logs), id


def _run(run: str, logs: list[EvalLog], *, text: bool) -> pl.DataFrame:
    """The rows of one run from its logs, newest first."""
    from inspect_ai.log import read_eval_log_samples_by_id

    order = _order(logs)
    frames = [pl.DataFrame(schema=SCHEMA)]
    for extent in _extents(logs):
        for key_log, keys in _by_log(_chosen(extent), order):
            for start in range(0, len(keys), _SAMPLES_AT_ONCE):
                # one open file and one event loop for many samples: half the time of one by one;
                # and a frame for these few: as dicts, the texts of a whole study fill the memory
                samples = read_eval_log_samples_by_id(
                    key_log.location, keys[start : start + _SAMPLES_AT_ONCE], exclude_fields=_UNREAD
                )
                rows = [row for sample in samples for row in _rows(run, key_log, sample, text=text)]
                frames.append(pl.DataFrame(rows, schema=SCHEMA, orient="row"))
    table = pl.concat(frames)
    if len(logs) == 1:
        return table  # in order already; sorting would copy every text
    failed = pl.col("status") == "error"
    table = table.with_row_index("_row").with_columns(failed.alias("_failed"))
    table = table.sort("_failed", maintain_order=True)
    # a run that has grown has put its first turns again, from the cache; with a judge or without
    judged = pl.col(JUDGED).drop_nulls().first().over(_TURN)
    table = table.with_columns(judged).unique(_TURN, keep="first", maintain_order=True)
    place = pl.col("question").replace_strict(order, return_dtype=pl.Int64)
    return table.sort(place, "epoch", "_row").drop("_failed", "_row")


def _order(logs: list[EvalLog]) -> dict[str, int]:
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
        asked = {name: run_settings(log).get(name) for name in EXTENSIBLE}
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
    chosen: dict[_Key, tuple[bool, EvalLog]], order: dict[str, int]
) -> list[tuple[EvalLog, list[_Key]]]:
    """For each log, the records to read from it, in the order of the questions."""
    logs: dict[str, tuple[EvalLog, list[_Key]]] = {}
    for key in sorted(chosen, key=lambda key: (order[str(key[0])], key[1])):
        log = chosen[key][1]
        logs.setdefault(log.location, (log, []))[1].append(key)
    return list(logs.values())


def turns_in(sample: EvalSample) -> list[dict[str, Any]]:
    """The turns that a logged sample holds, by the names of the columns."""
    turns: list[dict[str, Any]] = json.loads(sample.store.get("turns", "[]"))
    return turns


def _rows(run: str, log: EvalLog, sample: EvalSample, *, text: bool) -> list[dict[str, Any]]:
    metadata, spec = log.eval.metadata or {}, log.eval
    seen: set[str] = set()
    rows: list[dict[str, Any]] = []
    for turn in turns_in(sample):
        # where an option is withheld, another one is right
        gold = turn.get("gold") or sample.metadata["gold"]
        row = dict.fromkeys(SCHEMA) | {name: turn[name] for name in SCHEMA.keys() & turn.keys()}
        row |= {
            "run": run,
            "protocol": metadata["protocol"],
            "protocol_version": int(spec.task_version),
            "model": spec.model,
            "dataset": spec.dataset.name,
            "seed": spec.task_args.get("seed"),
            "epoch": sample.epoch,
            "question": str(sample.id),
            "gold": gold,
            "correct": turn["answer"] == gold,
            # in log order the first turn with a conversation asked it, later ones share it
            "shared": turn["key"] in seen,
            **{stratum: sample.metadata.get(stratum) for stratum in STRATA},
        }
        if not text:
            row |= dict.fromkeys(TEXTS)
        seen.add(turn["key"])
        rows.append(row)
    return rows
