"""Runs: what fixes a run's prompts and replies, and the logs that hold them."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

from holdfast.errors import InputError

from .damaged import reading, whole_header

if TYPE_CHECKING:
    from inspect_ai.log import EvalLog

SHARD = "shard"
"""In the metadata of a log that holds some of a run's questions: which, and their places."""

IMPORTED = "imported-"
"""How the run of turns begins that holdfast has not asked, but read from a file."""

INPUTS = (
    "questions", "contexts", "challenges", "fields", "distractors", "suggest", "graph",
    "exemplars", "attacks",
)  # fmt: skip
"""Settings that name inputs; what counts of them is their content."""

EXTENSIBLE = (
    "-T techniques", "-T chains", "-T lengths", "-T biases", "-T mitigations",
    "-T attempts", "-T controls", "-T samples", "content of techniques", "--model-role judge",
    "--model-role reader", "--model-role reader-all",
)  # fmt: skip
"""Settings that say how much is asked or read, not how: with more a run grows and stays itself."""

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


def logs_in(log_dir: str, *, kind: str = "protocol", whole: bool = False) -> list[EvalLog]:
    """Headers of holdfast's logs in a log dir, newest first; those cut short by a kill too.

    Args:
        log_dir: a local folder or any fsspec URL.
        kind: ``protocol``, or ``preparation`` for what contexts and labels were made in.
        whole: whether all of them must be readable; else one that another process writes, or a
            kill has left empty, is passed over.

    Raises:
        InputError: one is damaged.
    """
    from inspect_ai.log import list_eval_logs

    infos = list_eval_logs(log_dir, formats=["eval"], recursive=False, descending=True)
    headers: list[EvalLog] = []
    for info in infos:
        try:
            header = (whole_header if whole else _header)(info.name)
        except InputError:
            if whole and info.size:  # an empty one was killed before its first write
                raise
            continue
        if is_ours(header, kind):
            headers.append(header)
    return headers


def _header(log: str) -> EvalLog:
    from inspect_ai.log import read_eval_log

    with reading(log):
        return read_eval_log(log, header_only=True)
