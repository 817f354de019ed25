"""The options of ``holdfast run``, resolved: where they are given, and in every shard's process."""

from collections.abc import Mapping, Sequence
from typing import Any

from inspect_ai.model import GenerateConfig, Model
from pydantic import ValidationError

from holdfast.errors import InputError
from holdfast.models import Lean

from . import settings
from .running import Running

_ALIKE = (
    "top_p", "frequency_penalty", "presence_penalty", "reasoning_effort", "reasoning_tokens",
    "reasoning_summary", "verbosity", "effort", "cache_prompt", "batch",
)  # fmt: skip

_GENERATION = {
    "temperature": "temperature",
    "max_output_tokens": "max_tokens",
    "max_connections": "max_connections",
    "max_retries": "max_retries",
    "timeout": "timeout",
    "attempt_timeout": "attempt_timeout",
    **{name: name for name in _ALIKE},
}
"""Inspect's setting of generation, by option."""

_NOT_LEAN = (
    "reasoning_tokens", "reasoning_summary", "verbosity", "effort", "cache_prompt", "batch",
)  # fmt: skip
"""What ``lean/MODEL`` has no name for."""

_BATCH_SECONDS = 2 * 24 * 3600
"""An attempt that waits for a batch: providers take up to a day."""


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
        generation=_generation(given, models),
        max_calls=given["max_calls"],
        max_tokens=given["max_tokens"],
        max_cost=given["max_cost"],
        text=not given["no_text"],
    )


def _generation(given: Mapping[str, Any], models: Sequence[Model]) -> dict[str, Any]:
    """Settings of generation that are given, by Inspect's names.

    Raises:
        InputError: one is none of the values that Inspect knows, or a model cannot be sent it.
    """
    found = {
        setting: given[option]
        for option, setting in _GENERATION.items()
        if given[option] is not None
    }
    if "cache_prompt" in found:
        found["cache_prompt"] = settings.typed(found["cache_prompt"])
    try:
        GenerateConfig.model_validate(found)
    except ValidationError as error:
        fault = error.errors()[0]
        raise InputError(
            f"'{fault['input']}' does not do",
            field=_option(str(fault["loc"][0])),
            remedy=fault["msg"],
        ) from error
    unsent = [name for name in _NOT_LEAN if name in found]
    for model in models:
        if unsent and isinstance(model.api, Lean):
            raise InputError(
                f"'{model}' cannot be sent it",
                field=_option(unsent[0]),
                remedy="Give -M NAME=VALUE as the server calls it, or another provider",
            )
    if "batch" in found:
        found.setdefault("attempt_timeout", _BATCH_SECONDS)
    return found


def _option(setting: str) -> str:
    return f"--{setting.replace('_', '-')}"
