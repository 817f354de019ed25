"""Models that options name, and their prices."""

import inspect
import json
import math
import os
import re
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml
from inspect_ai.model import (
    GenerateConfig,
    Model,
    ModelAPI,
    ModelCost,
    ModelInfo,
    get_model,
    get_model_info,
    set_model_info,
)

from holdfast.errors import HoldfastError, InputError, did_you_mean, in_one_line
from holdfast.files import named_path, text_of
from holdfast.protocols.installed import roles as of_protocols
from holdfast.protocols.protocol import JUDGE, READER, READER_ALL
from holdfast.registry import PROVIDERS, named

SUGGESTED_PROVIDERS = (
    "anthropic", "azureai", "bedrock", "deepseek", "fireworks", "google", "grok", "groq", "hf",
    "mistral", "mockllm", "ollama", "openai", "openai-api", "openrouter", "sglang", "together",
    "vllm", *PROVIDERS,
)  # fmt: skip
"""Providers that errors suggest; Inspect has more."""

OFFLINE = ("simulated/", "lexical/", "recorded/")
"""Models that need neither a key nor a network."""


FUNCTION = "python:"
"""Begins the name of a function that is an assistant."""

TARGET = "http/"
"""Begins the name of an assistant that is asked as a target file says."""

_ASSISTANTS = ("http", "python")
"""Providers of assistants, which take neither a base URL nor arguments."""

_IN_PROCESS = ("hf/", "vllm/", "sglang/", "transformer_lens/", "nnterp/", "llama-cpp-python/")
"""Providers that load weights, or start such a server, as soon as a model is created."""

_FREE_PROVIDERS = (
    *OFFLINE, *_IN_PROCESS, TARGET, "python/", "lean/", "mockllm/", "ollama/",
)  # fmt: skip
"""Providers without prices."""


def models(
    names: Sequence[str],
    *,
    base_url: str | None = None,
    model_args: Mapping[str, Any] | Sequence[str] = (),
    target: str | None = None,
) -> list[Model]:
    """Create the named models.

    Args:
        names: names as in Inspect, ``http/NAME`` or ``python:FILE.py:FUNCTION``.
        base_url: base URL of the models' API.
        model_args: arguments of the provider.
        target: target file of ``http/NAME``.
    """
    names = _with_target(names, target)
    if not names:
        raise InputError(
            "no model given",
            field="--model",
            remedy="Name one, such as --model openai/gpt-4.1 or --model simulated/sycophant",
        )
    args = arguments(model_args)
    return [
        _assistant(name, target, base_url, args)
        if name.startswith((TARGET, FUNCTION))
        else _model(name, base_url, args)
        for name in dict.fromkeys(names)
    ]


def _with_target(names: Sequence[str], target: str | None) -> Sequence[str]:
    """The models, with the one that a target file is for."""
    if target is None:
        return names
    of_target = [name for name in dict.fromkeys(names) if name.startswith(TARGET)]
    if len(of_target) > 1 or (names and not of_target):
        raise InputError(
            f"is for one model, and the command names {' and '.join(of_target or names)}",
            field="--target",
            remedy="Give --model http/NAME once, or leave out --model",
        )
    return names or [f"{TARGET}{Path(target).stem}"]


def stateful_names(names: Sequence[str], target: str | None) -> list[str]:
    """The models that are sent earlier turns again, because they remember a conversation."""
    from holdfast.models.target import read_target  # slow to import

    is_stateful = target is not None and read_target(target).is_stateful
    return [name for name in names if is_stateful and name.startswith(TARGET)]


def _assistant(
    name: str, target: str | None, base_url: str | None, args: Mapping[str, Any]
) -> Model:
    """An assistant of the user's: by its target file, or a function."""
    check_server(name, base_url, args)
    # slow to import, and seldom needed
    from holdfast.models.function import function_name, name_function
    from holdfast.models.target import name_target

    if name.startswith(FUNCTION):
        digest = name_function(name)
        return get_model(function_name(name), memoize=False, function=digest)
    if target is None:
        return get_model(name, memoize=False)  # which tells what it lacks
    described = name_target(target)
    config = GenerateConfig(max_connections=described.connections)
    return get_model(name, config=config, memoize=False, target=described.fingerprint)


def arguments(source: Mapping[str, Any] | Sequence[str] | None) -> dict[str, Any]:
    """Return the arguments of a provider by name."""
    if isinstance(source, Mapping):
        return {_check_arg(name): value for name, value in source.items()}
    return dict(_model_arg(argument) for argument in source or ())


def check_server(name: str, base_url: str | None, args: Mapping[str, Any]) -> None:
    """Refuse a base URL or provider arguments that a model cannot be created with.

    Raises:
        InputError: the URL is none or holds a secret, or the model takes no such option.
    """
    provider = _provider(name)
    if provider in _ASSISTANTS:
        if base_url or args:
            option = "--model-base-url" if base_url else "-M"
            elsewhere = (
                "Write it into the target file" if provider == "http" else f"Remove {option}"
            )
            raise InputError(f"does not apply to '{name}'", field=option, remedy=elsewhere)
        return
    if base_url:
        _check_url(name, base_url, "--model-base-url")
    else:
        variable = f"{provider.upper().replace('-', '_')}_BASE_URL"
        _check_url(name, os.environ.get(variable, ""), variable)
    check_arguments(args)


def _provider(name: str) -> str:
    """Return the provider of a model or assistant: text before ``/``, or ``:`` of a function."""
    return re.split("[/:]", name)[0]


def _model(name: str, base_url: str | None, args: Mapping[str, Any]) -> Model:
    check_server(name, base_url, args)
    provider = name.partition("/")[0]
    try:
        model_args = {**_chat(provider, base_url), **args}
        if "responses_api" in model_args:
            _as_chat_model(name)
        return get_model(name, base_url=base_url, memoize=False, **model_args)
    except HoldfastError:
        raise
    except Exception as error:  # each provider raises other errors for an invalid name
        # Inspect formats these errors with console markup
        plain = re.sub(r"(\\?)\[([a-z#/@][^\[]*?)\]", _render_markup, str(error)).removeprefix(
            "ERROR: "
        )
        reason = " ".join(plain.split())[:300].rstrip(".")
        is_known = provider in SUGGESTED_PROVIDERS
        raise InputError(
            f"'{name}' cannot be used ({reason})",
            field="--model",
            remedy="Correct the setting that it names"
            if is_known
            else "Write PROVIDER/MODEL. " + did_you_mean(provider, SUGGESTED_PROVIDERS),
        ) from error


def _render_markup(markup: re.Match[str]) -> str:
    """Return markup as a console shows it: nothing, unless a backslash precedes it."""
    return f"[{markup[2]}]" if markup[1] else ""


def listed_roles(role_source: Mapping[str, Any] | Sequence[str] | None) -> list[str]:
    """Return ``ROLE=MODEL`` for each role, also from a mapping."""
    if isinstance(role_source, Mapping):
        return [
            f"{role}={model if isinstance(model, str) else json.dumps(model)}"
            for role, model in role_source.items()
        ]
    return list(role_source or [])


def check_arguments(args: Mapping[str, Any], option: str = "-M") -> None:
    """Raise an error for a secret, which every log would contain."""
    for name, value in args.items():
        words = re.findall(r"[a-z]+", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", str(name)).lower())
        if name not in _OPEN and _SECRET.intersection(words):
            raise InputError(
                f"'{name}' sounds like a secret, and logs store it",
                field=option,
                remedy="Give the key in the provider's environment variable, such as "
                "OPENAI_API_KEY or LEAN_API_KEY",
            )
        if isinstance(value, Mapping):
            check_arguments(value, option)


_SECRET = frozenset(
    {
        "token", "password", "passwd", "passphrase", "secret", "secrets", "key", "keys", "apikey",
        "authorization", "auth", "bearer", "credential", "credentials", "header", "headers",
        "cookie", "cookies",
    }
)  # fmt: skip
"""Words in the name of an argument with a secret value."""

_OPEN = ("api_key", "prompt_cache_key")
"""Arguments that match these words but are not logged, or are not secret."""


def _check_url(model: str, url: str, option: str) -> None:
    """Raise an error for an invalid base URL, or for a secret in it, which logs would contain."""
    elsewhere = (
        "Give the key in the provider's environment variable, or use lean/MODEL with user and "
        "password in LEAN_BASE_URL"
    )
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # invalid brackets or port
        usable = False
    if url and "@" in url and option.startswith("-"):
        fault, remedy = "contains a password, and logs store base URLs", elsewhere
    elif "?" in url or "#" in url:
        fault, remedy = "contains a query, and logs store base URLs", elsewhere
    elif url and (not usable or any(not c.isprintable() or c.isspace() for c in url)):
        fault, remedy = "is not a URL", "Write http://HOST:PORT/v1"
    else:
        return
    raise InputError(f"{fault} (model '{model}')", field=option, remedy=remedy)


def role_names(role_source: Sequence[str]) -> dict[str, str]:
    """Return the name of the model by role."""
    return {role: spec["model"] for role, spec in _role_specs(role_source).items()}


def roles(role_source: Sequence[str]) -> dict[str, Model]:
    """Return the model by role; ``{model: NAME, base_url: URL}`` sets its server."""
    return {
        role: _model(
            spec["model"],
            spec.get("base_url"),
            {name: value for name, value in spec.items() if name not in _ROLE_KEYS},
        )
        for role, spec in _role_specs(role_source).items()
    }


_ROLE_KEYS = ("model", "base_url")


def _role_specs(role_source: Sequence[str]) -> dict[str, dict[str, Any]]:
    # the model under test never replaces a missing helper
    role_names_known = ("generator", *of_protocols(), JUDGE, READER, READER_ALL)
    specs: dict[str, dict[str, Any]] = {}
    for argument in role_source:
        role, equals, value = argument.partition("=")
        if not equals or role not in role_names_known:
            raise InputError(
                f"'{argument}' is not ROLE=MODEL" if not equals else f"unknown role '{role}'",
                field="--model-role",
                remedy=did_you_mean(role, role_names_known),
            )
        if role in specs:
            raise InputError(
                f"the role '{role}' is given twice", field="--model-role", remedy="Give it once"
            )
        try:
            spec = yaml.safe_load(value) if value.startswith("{") else {"model": value}
            wrong = [name for name in _ROLE_KEYS if not isinstance(spec.get(name, ""), str)]
            if wrong or "model" not in spec or _NOT_THE_PROVIDERS & spec.keys() - {*_ROLE_KEYS}:
                raise TypeError(value)
            if str(spec["model"]).startswith((TARGET, FUNCTION)):
                raise InputError(
                    f"'{spec['model']}' is an assistant, and '{role}' a helper",
                    field="--model-role",
                    remedy=f"Write {role}=PROVIDER/MODEL",
                )
            specs[role] = spec
        except (yaml.YAMLError, AttributeError, TypeError, RecursionError) as error:
            raise InputError(
                f"'{value[:200]}' is not a model",
                field="--model-role",
                remedy=f"Write {role}=PROVIDER/MODEL or {role}='{{model: NAME, base_url: URL}}'",
            ) from error
    if READER in specs and READER_ALL in specs:
        raise InputError(
            "has a model both as 'reader' and as 'reader-all'",
            field="--model-role",
            remedy="Give one of them",
        )
    return specs


def _chat(provider: str, base_url: str | None) -> dict[str, Any]:
    """Use chat completions for the user's own server, unlike Inspect's default for OpenAI."""
    address = base_url or os.environ.get("OPENAI_BASE_URL")
    return {"responses_api": False} if provider == "openai" and address else {}


def _as_chat_model(name: str) -> None:
    """Make Inspect treat an unknown name as a chat model.

    Otherwise, Inspect assumes an unpublished OpenAI model, drops the temperature and sends the
    system message as a developer message.
    """
    model_info = get_model_info(name)
    if model_info is None or model_info.organization is None:
        info = (model_info or ModelInfo()).model_copy(update={"family": "gpt-4"})
        set_model_info(name, info)


def checked_names(names: Sequence[str], target: str | None = None) -> list[str]:
    """Check and return model names without creating models, which may need a key or package."""
    # slow to import
    from holdfast.models.function import function_name
    from holdfast.models.target import read_target

    names = _with_target(names, target)
    if target is not None:
        read_target(target)
    for name in names:
        if name.startswith(_IN_PROCESS) or (name.startswith(TARGET) and target is not None):
            continue
        if name.startswith(FUNCTION):  # its file is not run
            function_name(name)
            continue
        try:
            models([name])
        except InputError as error:
            if name.startswith(OFFLINE) or "not recognized" in error.fault:
                raise
    names_of_results = (
        function_name(name) if name.startswith(FUNCTION) else name for name in names
    )
    return list(dict.fromkeys(names_of_results)) or [str(model) for model in models(names)]


def provider_class(name: str) -> type[ModelAPI] | None:
    """Return the class of a model by its name, None for a provider of Inspect."""
    place = PROVIDERS.get(_provider(name))
    provider: type[ModelAPI] | None = named(place) if place else None
    return provider


_NOT_THE_PROVIDERS = frozenset(inspect.signature(get_model).parameters) - {"api_key"}
"""Parameters of ``get_model`` itself."""


def _model_arg(argument: str, option: str = "-M") -> tuple[str, Any]:
    name, equals, value = argument.partition("=")
    if not equals:
        raise InputError(f"'{argument}' is not NAME=VALUE", field=option, remedy="Add a value")
    return _check_arg(name, option), value if name == "api_key" else typed(value)


def _check_arg(name: str, option: str = "-M") -> str:
    if name in _NOT_THE_PROVIDERS or not name.isidentifier():
        raise InputError(
            f"'{name}' is not a provider argument",
            field=option,
            remedy="Give it with the option of that name, or remove it",
        )
    return name


def load_prices(path: str | None) -> None:
    """Register the user's prices with Inspect."""
    if path is None:
        return
    try:
        prices = yaml.safe_load(text_of(named_path(path), "Check --prices"))  # YAML includes JSON
        for model, price in prices.items():
            cache = {"input_cache_write": price["input"], "input_cache_read": price["input"]}
            if not all(0 <= dollars < math.inf for dollars in price.values()):
                raise ValueError(f"{price} are not prices of '{model}'")
            base_info = _info(model) or ModelInfo()
            cost = ModelCost.model_validate({**cache, **price})
            # Inspect has no entry for a model of the user's own server
            set_model_info(model, base_info.model_copy(update={"cost": cost}))
            _PRICED_MODELS.add(model)
    except InputError:
        raise
    except (
        yaml.YAMLError, AttributeError, TypeError, KeyError, ValueError, RecursionError
    ) as error:  # fmt: skip
        raise InputError(
            f"is not a price list ({in_one_line(error)})",
            path,
            remedy='Write {"openai/gpt-4.1": {"input": 2.0, "output": 8.0}}, dollars a million',
        ) from error


_PRICED_MODELS: set[str] = set()
"""Models with a price from the user."""


def price_of(model: Model | str) -> ModelCost | None:
    """Return the price in dollars per million tokens, None if unknown."""
    info = _info(model)
    return info.cost if info else None


def price_without_building(name: str) -> ModelCost | None:
    """Return the price of a model by name, without creating its provider."""
    # ``mockllm`` sends nothing, and Inspect looks the price up by name
    info = get_model_info(get_model(f"mockllm/{name}", memoize=False))
    return info.cost if info else None


def _info(model: Model | str) -> ModelInfo | None:
    """Return Inspect's information on a model, which may read its database or load weights."""
    if str(model).startswith(_FREE_PROVIDERS) and str(model) not in _PRICED_MODELS:
        return None
    return get_model_info(model)


def check_prices(models: Sequence[Model], cost_limit: float | None) -> None:
    """Raise an error for a limit in dollars if a model has no known price."""
    for model in models:
        if cost_limit is not None and price_of(model) is None:
            raise InputError(
                f"the price of '{model}' is unknown, so a budget in dollars cannot be enforced",
                field="--cost-limit",
                remedy='Give --prices FILE with {"MODEL": {"input": 2.0, "output": 8.0}}',
            )


def typed(value: str) -> Any:
    """Convert a provider's argument as Inspect's ``-M`` does: YAML, with commas for lists."""
    try:
        parsed_value = yaml.safe_load(value)
    except (yaml.YAMLError, ValueError, RecursionError):
        return value
    if isinstance(parsed_value, date):  # a version that YAML parses as a date
        return value
    if isinstance(parsed_value, str):
        parts = parsed_value.split(",")
        return parts if len(parts) > 1 else parsed_value
    return parsed_value
