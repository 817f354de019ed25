"""Runs: the settings that fix a run's prompts and replies, and the logs that contain it."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from struct import unpack
from typing import IO, TYPE_CHECKING, Any
from zipfile import BadZipFile, ZipFile, ZipInfo

import polars as pl

from holdfast.errors import HoldfastError, InputError
from holdfast.simulation import MADE_OF, name_in_results
from holdfast.simulation import is_simulated as is_simulated

if TYPE_CHECKING:
    from inspect_ai.log import EvalLog

ASIDE = ".damaged"
"""Suffix of the name of a damaged log that was renamed."""


_END, _END_64, _IN_LONGER = 22, 76, 0xFFFF
"""Sizes of the last records of an archive, and the marker that refers to the longer record."""


@contextmanager
def reading(log: str) -> Iterator[None]:
    """Context for reading a log that raises an ``InputError`` if the log cannot be read."""
    try:
        yield
    except HoldfastError:
        raise
    except Exception as error:  # from the archive, its compression, or its content
        raise InputError(
            f"is damaged and cannot be read ({type(error).__name__}: {str(error)[:200]})",
            log.removeprefix("file://"),
            remedy="Replace it with an intact copy, or repeat the command of its run: this "
            "renames the log and resumes from the cached generations",
        ) from error


def whole_header(log: str) -> EvalLog:
    """Return the header of a log after checking that the whole log can be read."""
    return _header(log, samples=True)


def set_aside(log_dir: str) -> list[str]:
    """Rename the damaged logs of a log directory, so that their run can resume.

    No other process may write there. Returns a sentence on each renamed log.
    """
    import fsspec
    from inspect_ai.log import list_eval_logs

    notes = []
    for info in list_eval_logs(log_dir, formats=["eval"], recursive=False):
        if info.size == 0:  # killed before its first write
            continue
        try:
            whole_header(info.name)
        except InputError as error:
            files, path = fsspec.core.url_to_fs(info.name)
            if "://" in log_dir:
                files.mv(path, path + ASIDE)
            else:  # unlike a move, a rename never moves it into a folder of that name
                os.replace(path, path + ASIDE)
            notes.append(f"{error.file} {error.fault}: renamed to {path}{ASIDE}")
    return notes


SHARD = "shard"
"""Metadata key of a log with part of a run's questions: their shard and positions."""

PLACE = "place"
"""Metadata key of a log: position of its run among the runs of the command."""

CONTEXTS = "content of contexts"
"""Setting with a digest of the context texts, by length."""

NO_CONTEXTS = hashlib.sha256(b"[]").hexdigest()[:16]
"""Value for a length without contexts."""

IMPORTED_PREFIX = "imported-"
"""Prefix of the id of an imported run."""

TECHNIQUES = "content of techniques"
"""Setting with the wordings of all techniques asked, by id."""

OWN_TECHNIQUES = "content of own_techniques"
"""Setting with the wordings of the techniques that the user added."""

INPUTS = "inputs"
"""Metadata key of a log: settings that name inputs, which are identified by their content."""

GROWS = "grows"
"""Metadata key of a log: names of settings (``run_settings``) for how much is asked or read.

A run can grow by a larger value and stays the same run.
"""

RUNTIME = (
    "max_connections", "adaptive_connections", "max_retries", "timeout", "attempt_timeout",
    "cache_prompt", "batch",
)  # fmt: skip
"""Generation settings that cannot change a reply, so they do not distinguish runs."""


DEFENCE = "content of defence"
"""Setting with the name and wording of a defence."""

_VERIFIER = "--model-role verifier"

_PLUS = "+"
"""Separator before the defence in the id of a run."""


def run_id(header: EvalLog) -> str:
    """Return the digest of all settings that fix a run's prompts and replies.

    Equal settings have the same id. The id of a defended model's run extends the id of the run
    without the defence.
    """
    return _id(_fixed_settings(header))


def defence_of(run: object) -> str:
    """Return the name of the defence in the id of a run, empty without one."""
    return str(run).partition(_PLUS)[2].rpartition("-")[0]


def system_of(row: Mapping[str, Any]) -> str:
    """Return a readable name of a row's system: its model, and the defence that wraps it.

    Args:
        row: row with ``model`` and ``run``.
    """
    defence = defence_of(row["run"])
    return f"{row['model']} + {defence}" if defence else str(row["model"])


def by_system(turns: pl.DataFrame) -> pl.DataFrame:
    """Return a turns table in which a defended model is a separate model."""
    system_name = pl.concat_str("model", pl.lit(" + "), "defence")
    behind = pl.col("defence").fill_null("none") != "none"
    return turns.with_columns(model=pl.when(behind).then(system_name).otherwise("model"))


def undefended(run: object) -> str:
    """Return the id of the run without the defence."""
    return str(run).partition(_PLUS)[0]


def _id(settings: Mapping[str, Any]) -> str:
    identity = {name: value for name, value in settings.items() if name not in (DEFENCE, _VERIFIER)}
    if DEFENCE not in settings:
        return _digest(identity)
    about = {name: settings.get(name) for name in (DEFENCE, _VERIFIER)}
    return f"{_digest(identity)}{_PLUS}{settings[DEFENCE][0]}-{_digest(about)[:4]}"


def run_ids(headers: Sequence[EvalLog]) -> list[str]:
    """Return the run of each log of a log directory.

    A run that started without contexts is the same run as with contexts, which only add turns.
    Techniques that the user adds later do not change the run either. The techniques that a run
    started with are part of its identity.
    """
    runs = _settings_as_begun(headers)
    with_contexts: dict[str, str] = {}
    for settings in runs:
        if settings.get(CONTEXTS, NO_CONTEXTS) != NO_CONTEXTS:
            with_contexts.setdefault(_without_contexts(settings), _id(settings))
    return [
        with_contexts.get(_without_contexts(settings), _id(settings))
        if settings.get(CONTEXTS) == NO_CONTEXTS
        else _id(settings)
        for settings in runs
    ]


def _settings_as_begun(headers: Sequence[EvalLog]) -> list[dict[str, Any]]:
    """Return the settings that fix the run of each log, with the techniques of its first log."""
    runs = [_fixed_settings(header) for header in headers]
    grown_groups: dict[str, list[tuple[dict[str, str], dict[str, str]]]] = {}
    techniques = [settings.pop(OWN_TECHNIQUES, {}) for settings in runs]
    # for logs of the same second, the log with fewer techniques came first, because runs grow
    starts = [
        (log.eval.created, len(run_techniques))
        for log, run_techniques in zip(headers, techniques, strict=True)
    ]
    for place in sorted(range(len(runs)), key=starts.__getitem__):
        run_techniques = techniques[place]
        alike = grown_groups.setdefault(_without_contexts(runs[place]), [])
        grows = next((group for group in alike if _agree(group[0], run_techniques)), None)
        if grows is None:
            grows = ({}, run_techniques)
            alike.append(grows)
        wordings, first = grows
        wordings |= run_techniques
        if first:
            runs[place] = dict(sorted({**runs[place], OWN_TECHNIQUES: first}.items()))
    return runs


def _agree(first: Mapping[str, object], second: Mapping[str, object]) -> bool:
    """Whether the fields that both have are equal."""
    return all(first[name] == second[name] for name in first.keys() & second.keys())


def growing(header: EvalLog) -> tuple[str, ...]:
    """Return the settings that may grow within a run."""
    return (*_list_metadata(header, GROWS), TECHNIQUES)


def _list_metadata(header: EvalLog, key: str) -> list[str]:
    names = (header.eval.metadata or {}).get(key)
    return [str(name) for name in names] if isinstance(names, list) else []


def _fixed_settings(header: EvalLog) -> dict[str, Any]:
    grows = growing(header)
    settings = {name: value for name, value in run_settings(header).items() if name not in grows}
    if isinstance(contexts := settings.get(CONTEXTS), dict):
        settings[CONTEXTS] = contexts.get("")  # an ablation adds other lengths
    return settings


def _without_contexts(settings: Mapping[str, Any]) -> str:
    return _id({k: v for k, v in settings.items() if k != CONTEXTS})


def _digest(settings: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(settings, default=str).encode()).hexdigest()[:12]


def tested_name(headers: Sequence[EvalLog]) -> str:
    """Return the name of a run's model in results, from the headers of its logs."""
    inputs = (part for log in headers for part in (log.eval.metadata or {}).get(MADE_OF, ()))
    return name_in_results(headers[0].eval.model, dict.fromkeys(inputs))


def is_imported(run: object) -> bool:
    """Whether the turns of a run were imported, not collected by holdfast."""
    return str(run).startswith(IMPORTED_PREFIX)


def run_settings(header: EvalLog) -> dict[str, Any]:
    """Return the settings behind ``run_id`` by name, sorted.

    Inputs are identified by their content (in the log's metadata), not by their path.
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
        models_listed = models if isinstance(models, list) else [models]
        settings[f"--model-role {role}"] = ", ".join(config.model for config in models_listed)
    inputs = _list_metadata(header, INPUTS)
    settings |= {f"-T {k}": v for k, v in spec.task_args.items() if k not in inputs}
    settings |= {k: v for k, v in config.items() if k not in RUNTIME}
    content = (spec.metadata or {}).items()
    # without file names, shards, positions, and descriptions of settings
    apart = (SHARD, PLACE, GROWS, INPUTS)
    settings |= {
        f"content of {k}": v for k, v in content if not k.endswith("_from") and k not in apart
    }
    return dict(sorted(settings.items()))


def is_ours(header: EvalLog, kind: str = "protocol") -> bool:
    """Whether a log was written by a protocol of holdfast, or by its preparations."""
    return bool(header.eval.metadata and kind in header.eval.metadata)


def logs_in(
    log_dir: str,
    *,
    kind: str = "protocol",
    whole: bool = False,
    known_logs: Container[str] = (),
    below: bool = False,
) -> list[EvalLog]:
    """Return the headers of holdfast's logs in a log directory, newest first.

    Logs of interrupted processes are included.

    Args:
        log_dir: a local folder or any fsspec URL.
        kind: ``protocol``, or ``preparation`` for logs of generated contexts and labels.
        whole: whether to check every log. If not, logs that cannot be read are skipped, such as a
            log that another process writes.
        known_logs: names of logs that need no check, because this process wrote them.
        below: whether to include logs in subfolders.

    Raises:
        InputError: ``whole`` is set and a log is damaged.
    """
    from inspect_ai.log import list_eval_logs

    infos = list_eval_logs(log_dir, formats=["eval"], recursive=below, descending=True)
    headers: list[EvalLog] = []
    for info in infos:
        try:
            check = whole and log_name(info.name) not in known_logs
            headers.append((whole_header if check else header_of)(info.name))
        except InputError:
            if whole and info.size:  # an empty log was killed before its first write
                raise
    return [header for header in headers if is_ours(header, kind)]


def log_name(location: str) -> str:
    """Return the name of a log, which identifies it if its folder moves."""
    return location.rpartition("/")[2]


def header_of(log: str) -> EvalLog:
    """Return the header of a log, even if its samples cannot be read."""
    return _header(log, samples=False)


def _header(log: str, *, samples: bool) -> EvalLog:
    import fsspec
    from inspect_ai.log import read_eval_log

    with reading(log):
        with fsspec.open(log, "rb") as file, ZipFile(file) as archive:
            _check_contents(file, archive)
            for part in archive.infolist():
                if samples or not part.filename.startswith("samples/"):
                    _check_part(archive, part)
        return read_eval_log(log, header_only=True)


def _check_contents(file: IO[bytes], archive: ZipFile) -> None:
    """Check the number of parts against the archive's last record; ``zipfile`` does not."""
    file.seek(-min(_END + _END_64, file.seek(0, os.SEEK_END)), os.SEEK_END)
    last = file.read()
    end, longer = last[-_END:], last[:-_END]
    (parts,) = unpack("<H", end[10:12])
    if parts == _IN_LONGER:
        (parts,) = unpack("<Q", longer[32:40])
    if not end.startswith(b"PK\5\6") or parts != len(archive.namelist()):
        raise BadZipFile("its table of contents is damaged")


def _check_part(archive: ZipFile, part: ZipInfo) -> None:
    """Read a part of a log to its end, so that its checksum is verified, which Inspect does not."""
    with archive.open(part) as content:  # by entry, because damage can give two parts the same name
        while content.read(2**20):
            pass
