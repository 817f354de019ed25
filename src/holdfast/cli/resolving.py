"""The options of ``holdfast run``, resolved: where they are given, and in every shard's process."""

from collections.abc import Mapping
from typing import Any

from . import settings
from .running import Running

_GENERATION = {
    "temperature": "temperature",
    "max_output_tokens": "max_tokens",
    "max_connections": "max_connections",
    "max_retries": "max_retries",
    "timeout": "timeout",
    "attempt_timeout": "attempt_timeout",
}
"""Inspect's setting of generation, by option."""


def resolved(given: Mapping[str, Any]) -> Running:
    """The run that options name.

    Args:
        given: value by option, by the names of the parameters of ``run``.

    Raises:
        InputError: an option names something unknown, or a file cannot be used.
    """
    log_dir = settings.as_log_dir(given["log_dir"])
    settings.load_prices(given["prices"])
    protocols = given["protocols"]
    roles = settings.roles(
        settings.role_arguments(
            given["model_role"],
            given["generator"],
            given["reader"],
            reader_all=given["reader_all"],
        )
    )
    common = {
        name: given[name]
        for name in (
            "contexts", "distractors", "exemplars", "seed", "shuffle", "stratify", "challenges",
            "fields",
        )
    }  # fmt: skip
    common = settings.generating(protocols, common, "generator" in roles)
    studies = settings.planned(protocols, given["questions"], common, given["task_args"] or [])
    settings.check_roles(studies, roles)
    models = settings.models(
        given["model"],
        base_url=given["model_base_url"],
        model_args=given["model_args"] or [],
    )
    settings.check_readers(roles, models)
    return Running(
        studies=studies,
        roles=roles,
        labels=given["labels"],
        models=models,
        log_dir=log_dir,
        limit=given["limit"],
        epochs=given["epochs"],
        generation={
            setting: given[option]
            for option, setting in _GENERATION.items()
            if given[option] is not None
        },
        max_calls=given["max_calls"],
        max_tokens=given["max_tokens"],
        max_cost=given["max_cost"],
        text=not given["no_text"],
    )
