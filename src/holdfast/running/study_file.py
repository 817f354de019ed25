"""Study file: options of ``holdfast run`` in TOML, with the names of the options."""

import math
import os.path
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

from holdfast.errors import InputError, did_you_mean
from holdfast.files import named_path, text_of, toml_in
from holdfast.protocols.installed import PROTOCOLS, named_protocols
from holdfast.protocols.installed import SUFFIX as PROTOCOL_FILE

from . import models
from .generation import Generation
from .provider_options import Option, RunOptions, options_of
from .resolved import OF_PROTOCOLS
from .studies import named_args

SUFFIX = ".toml"
"""Suffix of a study file."""

SETTINGS = "settings"
"""Table of protocol settings, ``-T`` on the command line."""

UNTIL = "until"
"""Key for a file of rules that end the run."""

_RECORDED_PREFIX = "recorded/"
"""Prefix of the name of a model that is a file."""

_LIST_KEYS = ("protocols", "model", "questions", "defence")
_TABLES = (SETTINGS, "model_args", "model_role")
_KEYS = {
    **dict.fromkeys(_LIST_KEYS[:3], Option("")),
    SETTINGS: Option(""),
    UNTIL: Option("", file=True),
    **{
        name: value_option
        for name, (_, value_option) in options_of(RunOptions).items()
        if name != "task_args"
    },
}
"""Keys of a study file."""


def with_study_file(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a run, merged with the study file given as its protocols.

    Options given separately override the file, and so do single settings, arguments or roles.

    Args:
        arguments: given values of ``protocols``, ``model``, ``questions``, ``until`` and
            ``RunOptions``.

    Raises:
        InputError: the file cannot be read, or one of its keys or values cannot be used.
    """
    protocols = list(arguments.get("protocols") or ())
    files = [name for name in protocols if name.endswith(SUFFIX)]
    if not files:
        return dict(arguments)
    if len(protocols) > 1:
        problem, remedy = "stands alone", "Name the other protocols in the file"
        raise InputError(problem, files[0], field="protocols", remedy=remedy)
    beside = {name: value for name, value in arguments.items() if name != "protocols"}
    return _merge_options(_read(files[0]), beside, files[0])


def _read(file: str) -> dict[str, Any]:
    """Return the checked keys of the file; a single text becomes a list if the key needs one."""
    study = toml_in(text_of(named_path(file)), file)
    for key, value in study.items():
        if key not in _KEYS:
            problem = f"unknown key '{key[:200]}'"
            raise InputError(problem, file, field=key[:200], remedy=did_you_mean(key, _KEYS))
        if wrong := _find_fault(key, value):
            raise InputError(wrong, file, field=key, remedy="See docs/reference/command-line.md")
    if not study.get("protocols"):
        raise InputError(
            "is missing", file, field="protocols", remedy='Write protocols = ["followup"]'
        )
    return {
        key: [value] if key in _LIST_KEYS and isinstance(value, str) else value
        for key, value in study.items()
    }


def _find_fault(key: str, value: Any) -> str | None:
    """Return why a key does not accept a value, None if it does."""
    texts = isinstance(value, list) and all(isinstance(text, str) for text in value)
    if key in _LIST_KEYS:
        return None if texts or isinstance(value, str) else "is neither text nor a list of texts"
    if key in _TABLES:
        return None if isinstance(value, dict) else "is not a table"
    if key == "generate_config":
        return None if isinstance(value, dict | str) else "is neither a table nor a file"
    kinds = () if key == UNTIL else get_args(options_of(RunOptions)[key][0])
    if options_of(RunOptions).get(key, (None,))[0] is bool:
        return None if isinstance(value, bool) else "is not true or false"
    if int in kinds or float in kinds:
        fits = isinstance(value, int | float if float in kinds else int)
        if not fits or isinstance(value, bool) or not math.isfinite(value):
            return f"is not a {'whole ' if int in kinds else ''}number"
        return _KEYS[key].refusal(value)
    return None if isinstance(value, str) else "is not text"


def _merge_options(study: dict[str, Any], beside: Mapping[str, Any], file: str) -> dict[str, Any]:
    """Merge the options of a file with those given separately."""
    study = _locate_paths(study, Path(file).parent)
    options = {key: value for key, value in study.items() if key != SETTINGS}
    given_options = {name: value for name, value in beside.items() if value is not None}
    settings = dict(study.get(SETTINGS, {}))
    for name in OF_PROTOCOLS:
        if name in given_options:
            settings.pop(name, None)
    options["task_args"] = settings | named_args(given_options.pop("task_args", ()))
    options["model_args"] = study.get("model_args", {}) | models.arguments(
        given_options.pop("model_args", ())
    )
    roles = models.listed_roles(given_options.pop("model_role", ()))
    roles_taken = {role.partition("=")[0] for role in roles}
    of_file = {
        role: model
        for role, model in study.get("model_role", {}).items()
        if role not in roles_taken
    }
    options["model_role"] = [*models.listed_roles(of_file), *roles]
    options["generate_config"] = Generation.read(given_options.pop("generate_config", None)).over(
        Generation.read(study.get("generate_config"), file)
    )
    return {**options, **given_options}


def _locate_paths(study: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Return the study with its relative paths resolved against its folder."""
    located_study = dict(study)
    for key, option in _KEYS.items():
        if option.file and key in located_study:
            located_study[key] = _place_path(located_study[key], folder)
    located_study["protocols"] = [
        _place_path(name, folder) if name.endswith(PROTOCOL_FILE) else name
        for name in located_study["protocols"]
    ]
    for key in ("questions", "defence"):
        if key in located_study:
            located_study[key] = [_if_path(value, folder) for value in located_study[key]]
    if "model" in located_study:
        located_study["model"] = [_model(name, folder) for name in located_study["model"]]
    if isinstance(located_study.get("generate_config"), str):
        located_study["generate_config"] = _place_path(located_study["generate_config"], folder)
    if SETTINGS in located_study:
        inputs = _inputs(located_study["protocols"])
        located_study[SETTINGS] = {
            name: _if_path(value, folder) if name in inputs and isinstance(value, str) else value
            for name, value in located_study[SETTINGS].items()
        }
    return located_study


def _inputs(protocols: Sequence[str]) -> set[str]:
    """Return the settings of protocols that name inputs."""
    protocol_names: Iterable[str] = (
        name for name in named_protocols(protocols) if name in PROTOCOLS
    )
    return {setting for name in protocol_names for setting in PROTOCOLS[name].input_settings}


def _if_path(value: str, folder: Path) -> str:
    """Resolve the value if it is a path; a name has neither a suffix nor a folder."""
    is_path = re.search(r"/|\.\w+(\+\w+)?$", value) and not re.search(r"[:=,]", value)
    return _place_path(value, folder) if is_path else value


def _model(name: str, folder: Path) -> str:
    if name.startswith(models.FUNCTION):
        raise InputError(
            f"'{name}' would run a file",
            str(folder),
            field="model",
            remedy=f"Name it on the command line: --model {name}",
        )
    if not name.startswith(_RECORDED_PREFIX):
        return name
    return _RECORDED_PREFIX + _place_path(name.removeprefix(_RECORDED_PREFIX), folder)


def _place_path(path: str, folder: Path) -> str:
    if "://" in path or path.startswith("~"):
        return path
    return os.path.normpath(folder / path)
