"""Generation settings, from a file or values with Inspect's names."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike, fspath
from typing import Any

import yaml
from inspect_ai.model import GenerateConfig, Model, ModelAPI
from pydantic import ValidationError

from holdfast.errors import InputError, did_you_mean, in_one_line
from holdfast.files import named_path, text_of

from .models import check_arguments
from .provider_options import LARGEST, MOST_COUNT, RETRIES

OPTION = "--generate-config"

UNSENT = ("max_connections", "max_retries", "timeout", "attempt_timeout", "stream_idle_timeout")
"""Settings for how requests are made, which are not sent to providers."""

_ELSEWHERE = {
    "seed": "Give --seed",
    "system_message": "Give -T system_prompt=TEXT",
    "reasoning_history": "Give -T reasoning_history=none, all, last or auto",
    "cache": "Remove it: a log directory keeps every reply",
    "adaptive_connections": "Give --max-connections",
    "num_choices": "Remove it: only the first reply would be parsed",
    "best_of": "Remove it: the server would choose among several replies",
}  # fmt: skip
"""Inspect settings that a run or a protocol sets, with the remedy for each."""

_RANGES: Mapping[str, tuple[float, float]] = {
    "temperature": (0, 100),
    "max_tokens": (1, MOST_COUNT),
    "top_p": (0, 1),
    "top_k": (1, MOST_COUNT),
    "frequency_penalty": (-2, 2),
    "presence_penalty": (-2, 2),
    "reasoning_tokens": (0, MOST_COUNT),
    "batch": (1, MOST_COUNT),
    "max_connections": (1, 100_000),
    "max_retries": (0, 1000),
    "timeout": (1, MOST_COUNT),
    "attempt_timeout": (1, MOST_COUNT),
    "stream_idle_timeout": (1, MOST_COUNT),
}
"""Range of each numeric setting."""

_BATCH_SECONDS = 2 * 24 * 3600
"""Time limit of an attempt in a batch, because providers take up to a day."""

GenerateInput = Mapping[str, Any] | GenerateConfig | PathLike[str] | str | None
"""Values by name, or a file with them."""


@dataclass(frozen=True)
class Generation:
    """Generation settings from a user.

    Attributes:
        values: values by Inspect's names.
        files: file that sets a value, by name.
    """

    values: Mapping[str, Any] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, source: "GenerateInput | Generation", file: str | None = None) -> "Generation":
        """Read the settings from a file, a mapping, or a mapping as YAML text.

        Args:
            source: value of the option.
            file: file that contains the mapping.

        Raises:
            InputError: the file cannot be read, or Inspect has no such setting or value.
        """
        if isinstance(source, Generation):
            return source
        if isinstance(source, GenerateConfig):
            source = source.model_dump(exclude_none=True)
        if isinstance(source, str | PathLike):
            source, file = _load_settings(fspath(source))
        values = {str(name): value for name, value in (source or {}).items() if value is not None}
        generation = cls(values, dict.fromkeys(values, file) if file else {})
        return cls(generation._validate_values(), generation.files)

    def over(self, under: "Generation") -> "Generation":
        """Merge with other settings, which this object overrides."""
        of_file = {name: file for name, file in under.files.items() if name not in self.values}
        return Generation({**under.values, **self.values}, {**of_file, **self.files})

    def settings(
        self, tested_models: Sequence[Model], max_connections: int | None
    ) -> dict[str, Any]:
        """Return the settings for requests.

        Args:
            tested_models: models that must support the settings.
            max_connections: overrides the setting with this name.

        Raises:
            InputError: a provider of holdfast would ignore a setting.
        """
        for model in tested_models:
            self.check_supported(str(model), type(model.api))
        values = {"max_retries": RETRIES, **self.values}
        if max_connections is not None:
            values["max_connections"] = max_connections
        if "batch" in values:
            values.setdefault("attempt_timeout", _BATCH_SECONDS)
        return values

    def _validate_values(self) -> dict[str, Any]:
        """Validate the values and convert them to the types that Inspect expects."""
        for name, value in self.values.items():
            if name not in GenerateConfig.model_fields:
                nearest = did_you_mean(name, GenerateConfig.model_fields)
                raise self._input_error(name, f"unknown setting '{name[:200]}'", nearest)
            if name in _ELSEWHERE:
                raise self._input_error(name, "cannot be set here", _ELSEWHERE[name])
            if isinstance(value, Mapping):
                check_arguments({name: value}, OPTION)
        try:
            config = GenerateConfig.model_validate(self.values)
        except (ValidationError, RecursionError) as error:
            raise self._not_valid(error) from error
        typed_values = config.model_dump(exclude_unset=True)
        for name, value in typed_values.items():
            minimum, maximum = _RANGES.get(name, (-LARGEST, LARGEST))
            if type(value) in (int, float) and not minimum <= value <= maximum:  # false for NaN
                raise self._input_error(name, f"is {value}", f"Give {minimum} to {maximum}")
        return typed_values

    def _not_valid(self, error: ValidationError | RecursionError) -> InputError:
        fault = error.errors()[0] if isinstance(error, ValidationError) else None
        name = str(fault["loc"][0]) if fault and fault["loc"] else next(iter(self.values))
        remedy = fault["msg"] if fault else "Give settings of Inspect's GenerateConfig"
        return self._input_error(name, f"is {str(self.values.get(name))[:200]!r}", remedy)

    def check_supported(self, model: str, provider: type[ModelAPI] | None) -> None:
        """Refuse settings that a provider of holdfast would ignore.

        Args:
            model: name of the model.
            provider: class of the model, None for a provider of Inspect.

        Raises:
            InputError: the provider does not send a setting.
        """
        sent_as = getattr(provider, "sent_as", None)
        if sent_as is None:  # a provider of Inspect
            return
        for name in self.values:
            if name not in sent_as and name not in UNSENT:
                raise self._input_error(
                    name,
                    f"'{model}' does not support it",
                    "Remove it: the replies of this model do not depend on it"
                    if getattr(provider, "offline", False)
                    else "Set it in the assistant, or write it into the body of its target file"
                    if hasattr(provider, "describe")
                    else "Give -M NAME=VALUE with the server's own name, or use another provider",
                )

    def _input_error(self, name: str, problem: str, remedy: str) -> InputError:
        file = self.files.get(name)
        return InputError(problem, file, field=name if file else f"{OPTION} {name}", remedy=remedy)


def _load_settings(text: str) -> tuple[Mapping[str, Any], str | None]:
    """Return the settings in a file or in YAML text, and the file."""
    written_out = text.lstrip().startswith("{")
    try:
        settings = yaml.safe_load(
            text if written_out else text_of(named_path(text))
        )  # YAML includes JSON
        if not isinstance(settings, Mapping):
            raise TypeError("it names no settings")
    except InputError:
        raise
    except (yaml.YAMLError, TypeError, ValueError, RecursionError) as error:
        raise InputError(
            f"is not a mapping of settings ({in_one_line(error)})",
            None if written_out else text,
            field=OPTION,
            remedy='Write {"temperature": 0.5, "max_tokens": 800}',
        ) from error
    return settings, None if written_out else text
