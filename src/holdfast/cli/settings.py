"""The studies and models that options name."""

import inspect
import math
import os
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any
from urllib.parse import urlsplit

import fsspec
import yaml
from inspect_ai import Task
from inspect_ai.log import EvalLog
from inspect_ai.model import Model, ModelCost, ModelInfo, get_model, get_model_info, set_model_info
from pydantic import TypeAdapter, ValidationError
from rich.text import Text

from holdfast.challenges import GENERATE
from holdfast.errors import HoldfastError, InputError, did_you_mean
from holdfast.files import named_path, text_of
from holdfast.protocols import (
    ATTACKER,
    JUDGE,
    MEDFUZZ_TEST,
    PREPARATIONS,
    PROTOCOLS,
    READER,
    READER_ALL,
    Protocol,
    Study,
    check_reader,
    resolved,
)
from holdfast.results import INPUTS

from .options import LARGEST

PROVIDERS = (
    "anthropic", "azureai", "bedrock", "deepseek", "fireworks", "google", "grok", "groq", "hf",
    "lean", "lexical", "mistral", "mockllm", "ollama", "openai", "openai-api", "openrouter",
    "recorded", "sglang", "simulated", "together", "vllm",
)  # fmt: skip
"""Providers offered when a name is not known; Inspect has more."""

ROLES = ("generator", ATTACKER, JUDGE, READER, READER_ALL)
"""Models that help with a study; one that is not bound is never the model under test."""

OFFLINE = ("simulated/", "lexical/", "recorded/")
"""Models that need neither key nor network."""


@dataclass(frozen=True)
class Planned:
    """A protocol with its settings resolved.

    Attributes:
        name: the protocol's name.
        protocol: its task and study.
        args: settings given, by parameter name.
        study: the settings resolved.
    """

    name: str
    protocol: Protocol
    args: Mapping[str, Any]
    study: Study

    def settings(self) -> dict[str, Any]:
        """Every setting but the inputs, given or default, by the name of ``run_settings``."""
        parameters = inspect.signature(self.protocol.task).parameters
        return {
            f"-T {name}": self.args.get(name, parameter.default)
            for name, parameter in parameters.items()
            if name not in INPUTS
        }

    def task(self) -> Task:
        """The study's Inspect task."""
        with resolved(self.study):
            return self.protocol.task(**self.args)

    def with_args(self, **args: Any) -> "Planned":
        """The same protocol with other settings."""
        return _resolved(self.name, self.protocol, {**self.args, **args})


def planned(
    protocols: Sequence[str],
    questions: Sequence[str],
    common: Mapping[str, Any],
    task_args: Sequence[str],
) -> list[Planned]:
    """Resolve the settings of each protocol on each question set.

    Args:
        protocols: names of protocols.
        questions: question sets.
        common: further settings that have an option of their own; None where not given.
        task_args: ``NAME=VALUE`` settings.

    Raises:
        InputError: an unknown protocol or setting, a setting that cannot be used, or question
            sets that cannot be told apart.
    """
    found = []
    parsed = _parsed(protocols, task_args)
    source: dict[str, str] = {}
    for name in dict.fromkeys(protocols):
        protocol = PROTOCOLS[name]
        known = inspect.signature(protocol.task).parameters
        args = {k: v for k, v in {**common, **parsed}.items() if k in known and v is not None}
        for asked in dict.fromkeys(questions):
            study = _resolved(name, protocol, {"questions": asked, **args})
            called = study.study.questions.name
            if source.setdefault(called, asked) != asked:
                raise InputError(
                    f"'{source[called]}' and '{asked}' are both called '{called}' in the tables",
                    field="--questions",
                    remedy="Rename a file",
                )
            found.append(study)
    return found


def _resolved(name: str, protocol: Protocol, args: Mapping[str, Any]) -> Planned:
    return Planned(name, protocol, args, protocol.study(**args))


def _parsed(protocols: Sequence[str], task_args: Sequence[str]) -> dict[str, Any]:
    """The settings given by ``-T``, each of which some protocol must know."""
    parameters: dict[str, inspect.Parameter] = {}
    for name in protocols:
        if name not in PROTOCOLS:
            raise InputError(
                f"unknown protocol '{name}'", field="PROTOCOL", remedy=did_you_mean(name, PROTOCOLS)
            )
        parameters |= inspect.signature(PROTOCOLS[name].task).parameters
    parsed: dict[str, Any] = {}
    for argument in task_args:
        name, equals, value = argument.partition("=")
        if not equals:
            raise InputError(f"'{argument}' is not NAME=VALUE", field="-T", remedy="Add a value")
        if name not in parameters:
            raise InputError(
                f"unknown setting '{name}'", field="-T", remedy=did_you_mean(name, parameters)
            )
        if name in parsed:
            raise InputError(f"'{name}' is given twice", field="-T", remedy="Give it once")
        parsed[name] = _of_type(value, parameters[name])
    return parsed


def check_roles(studies: Sequence[Planned], bound: Collection[str]) -> None:
    """Refuse studies that lack a helper.

    Raises:
        InputError: a required role is not bound.
    """
    for study in studies:
        for role in study.study.required:
            if role not in bound:
                raise InputError(
                    f"{study.name} needs the role '{role}', and it is not bound",
                    field="--model-role",
                    remedy=f"Give --model-role {role}=MODEL; it is never the model under test",
                )


def check_readers(bound: Mapping[str, object], tested: Iterable[object]) -> None:
    """Refuse a reader that would read its own replies.

    Args:
        bound: models, or their names, by role.
        tested: the models under test, or their names.

    Raises:
        InputError: it is among them.
    """
    for role in (READER, READER_ALL):
        if role in bound:
            check_reader(str(bound[role]), [str(model) for model in tested])


def preparation(name: str, args: Mapping[str, Any]) -> Planned:
    """A preparation with those of the settings that it knows.

    Raises:
        InputError: a setting that cannot be used.
    """
    known = inspect.signature(PREPARATIONS[name].task).parameters
    args = {k: v for k, v in args.items() if k in known and v is not None}
    return _resolved(name, PREPARATIONS[name], args)


def generating(
    protocols: Sequence[str], common: Mapping[str, Any], generator: bool
) -> dict[str, Any]:
    """The common settings, with what a generator is to make where it is bound and needed.

    Args:
        protocols: names of protocols.
        common: settings that have an option of their own.
        generator: whether a generator is bound.

    Raises:
        InputError: contexts or wrong options are to be generated, but no generator is bound.
    """
    settings = dict(common)
    for name in protocols:
        for setting in PROTOCOLS[name].generated if name in PROTOCOLS else ():
            if generator and settings.get(setting) in (None, "auto"):
                settings[setting] = GENERATE
            if settings.get(setting) == GENERATE and not generator:
                raise InputError(
                    "the role 'generator' is not bound",
                    field=setting,
                    remedy="Give --generator MODEL, or a file",
                )
    return settings


def _of_type(value: str, parameter: inspect.Parameter) -> Any:
    try:
        typed = TypeAdapter(parameter.annotation).validate_python(value)
        if isinstance(typed, int) and abs(typed) > LARGEST:
            raise InputError(
                f"{parameter.name} is '{value}'", field="-T", remedy=f"Give {LARGEST} at the most"
            )
        return typed
    except ValidationError as error:
        expected = error.errors()[0]["type"].partition("_")[0]
        kind = {"int": "a whole number", "bool": "true or false"}.get(expected, expected)
        raise InputError(
            f"{parameter.name} is '{value}', not {kind}", field="-T", remedy=f"Give {kind}"
        ) from None


def models(
    names: Sequence[str],
    *,
    base_url: str | None = None,
    model_args: Sequence[str] = (),
) -> list[Model]:
    """The models named.

    Raises:
        InputError: Inspect knows no such provider, or it cannot be set up (package, key).
    """
    if not names:
        raise InputError(
            "no model given",
            field="--model",
            remedy="Name one, such as --model openai/gpt-4.1 or --model simulated/sycophant",
        )
    args = dict(_model_arg(argument) for argument in model_args)
    return [_model(name, base_url, args) for name in dict.fromkeys(names)]


def _model(name: str, base_url: str | None, args: Mapping[str, Any]) -> Model:
    provider = name.partition("/")[0]
    if base_url:
        _check_base_url(name, base_url, "--model-base-url")
    else:
        named = f"{provider.upper().replace('-', '_')}_BASE_URL"
        _check_base_url(name, os.environ.get(named, ""), named)
    _check_arguments(args)
    try:
        given = {**_chat(provider, base_url), **args}
        if "responses_api" in given:
            _as_chat_model(name)
        return get_model(name, base_url=base_url, memoize=False, **given)
    except HoldfastError:
        raise
    except Exception as error:  # each provider raises its own kinds for a name it can't serve
        # Inspect words these for its own console
        plain = Text.from_markup(str(error)).plain.removeprefix("ERROR: ")
        reason = " ".join(plain.split())[:300].rstrip(".")
        known = provider in PROVIDERS
        raise InputError(
            f"'{name}' cannot be used ({reason})",
            field="--model",
            remedy="Mend what it names"
            if known
            else "Write PROVIDER/MODEL. " + did_you_mean(provider, PROVIDERS),
        ) from error


def role_arguments(
    given: Sequence[str] | None,
    generator: str | None = None,
    reader: str | None = None,
    *,
    reader_all: bool = False,
) -> list[str]:
    """``ROLE=MODEL`` of ``--model-role`` and of the options that stand for it.

    Raises:
        InputError: every reply is to be read, and there is no reader.
    """
    short = [f"{role}={model}" for role, model in (("generator", generator), (READER, reader))
             if model]  # fmt: skip
    arguments = [*short, *(given or [])]
    if not reader_all:
        return arguments
    if not any(argument.startswith((f"{READER}=", f"{READER_ALL}=")) for argument in arguments):
        raise InputError(
            "no reader is given", field="--reader-all", remedy="Give --reader MODEL beside it"
        )
    return [re.sub(f"^{READER}=", f"{READER_ALL}=", argument) for argument in arguments]


def _check_arguments(args: Mapping[str, Any]) -> None:
    """Refuse a secret where every log would repeat it.

    Raises:
        InputError: the name of an argument says that it is one.
    """
    for name, value in args.items():
        words = re.findall(r"[a-z]+", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", str(name)).lower())
        if name not in _OPEN and _SECRET.intersection(words):
            raise InputError(
                f"'{name}' sounds like a secret, and logs hold it",
                field="-M",
                remedy="Give the key in the provider's environment variable, such as "
                "OPENAI_API_KEY or LEAN_API_KEY",
            )
        if isinstance(value, Mapping):
            _check_arguments(value)


_SECRET = frozenset(
    {
        "token", "password", "passwd", "passphrase", "secret", "secrets", "key", "keys", "apikey",
        "authorization", "auth", "bearer", "credential", "credentials", "header", "headers",
        "cookie", "cookies",
    }
)  # fmt: skip
"""Words in the name of an argument that say that its value is a secret."""

_OPEN = ("api_key", "prompt_cache_key")
"""Arguments that no log holds, or that are none."""


def _check_base_url(model: str, url: str, given: str) -> None:
    """Refuse a base URL that no request can be sent to, or a secret where every log repeats it.

    Args:
        model: whose it is.
        url: the URL; empty for that of the provider.
        given: the option or the variable of the environment that names it.

    Raises:
        InputError: it is no URL, or holds a query, or in an option a password. None is repeated.
    """
    elsewhere = (
        "Give the key in the provider's environment variable, or use lean/MODEL with user and "
        "password in LEAN_BASE_URL"
    )
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # brackets, a port
        usable = False
    if url and "@" in url and given.startswith("-"):
        fault, remedy = "holds a password, and logs hold base URLs", elsewhere
    elif "?" in url or "#" in url:
        fault, remedy = "holds a query, and logs hold base URLs", elsewhere
    elif url and (not usable or any(not c.isprintable() or c.isspace() for c in url)):
        fault, remedy = "is no URL", "Write http://HOST:PORT/v1"
    else:
        return
    raise InputError(f"the one of '{model}' {fault}", field=given, remedy=remedy)


def role_names(given: Sequence[str]) -> dict[str, str]:
    """Model name by role.

    Args:
        given: as ``role_arguments`` has them.

    Raises:
        InputError: a part is not ``ROLE=MODEL``, or names an unknown role or one twice.
    """
    return {role: spec["model"] for role, spec in _role_specs(given).items()}


def roles(given: Sequence[str]) -> dict[str, Model]:
    """Model by role; ``{model: NAME, base_url: URL}`` names a server of its own.

    Raises:
        InputError: as ``role_names`` and ``models``.
    """
    return {
        role: _model(
            spec["model"],
            spec.get("base_url"),
            {name: value for name, value in spec.items() if name not in _OWN},
        )
        for role, spec in _role_specs(given).items()
    }


_OWN = ("model", "base_url")


def _role_specs(given: Sequence[str]) -> dict[str, dict[str, Any]]:
    specs: dict[str, dict[str, Any]] = {}
    for argument in given:
        role, equals, value = argument.partition("=")
        if not equals or role not in ROLES:
            raise InputError(
                f"'{argument}' is not ROLE=MODEL" if not equals else f"unknown role '{role}'",
                field="--model-role",
                remedy=did_you_mean(role, ROLES),
            )
        if role in specs:
            raise InputError(
                f"the role '{role}' is given twice", field="--model-role", remedy="Give it once"
            )
        try:
            spec = yaml.safe_load(value) if value.startswith("{") else {"model": value}
            wrong = [name for name in _OWN if not isinstance(spec.get(name, ""), str)]
            if wrong or "model" not in spec or _NOT_THE_PROVIDERS & spec.keys() - {*_OWN}:
                raise TypeError(value)
            specs[role] = spec
        except (yaml.YAMLError, AttributeError, TypeError, RecursionError) as error:
            raise InputError(
                f"'{value[:200]}' is no model",
                field="--model-role",
                remedy=f"Write {role}=PROVIDER/MODEL or {role}='{{model: NAME, base_url: URL}}'",
            ) from error
    if READER in specs and READER_ALL in specs:
        raise InputError(
            "is bound twice, as 'reader' and as 'reader-all'",
            field="--reader",
            remedy="Give one of them",
        )
    return specs


def _chat(provider: str, base_url: str | None) -> dict[str, Any]:
    """A server of the user's own speaks chat completions, whatever OpenAI itself prefers."""
    own = base_url or os.environ.get("OPENAI_BASE_URL")
    return {"responses_api": False} if provider == "openai" and own else {}


def _as_chat_model(name: str) -> None:
    """Have a name that Inspect does not know asked like a chat model.

    It would take one for a model of OpenAI's that is not published yet, drop the temperature and
    send the system message as a developer's.
    """
    known = get_model_info(name)
    if known is None or known.organization is None:
        info = (known or ModelInfo()).model_copy(update={"family": "gpt-4"})
        set_model_info(name, info)


def checked_names(names: Sequence[str]) -> list[str]:
    """Model names for a command that calls none, so that it needs neither key nor package.

    Raises:
        InputError: Inspect knows no such provider, or there is no such offline model.
    """
    for name in names:
        try:
            models([name])
        except InputError as error:
            if name.startswith(OFFLINE) or "not recognized" in error.what:
                raise
    return list(dict.fromkeys(names)) or [str(model) for model in models(names)]


_NOT_THE_PROVIDERS = frozenset(inspect.signature(get_model).parameters) - {"api_key"}
"""What ``get_model`` takes for itself."""


def _model_arg(argument: str, option: str = "-M") -> tuple[str, Any]:
    name, equals, value = argument.partition("=")
    if not equals:
        raise InputError(f"'{argument}' is not NAME=VALUE", field=option, remedy="Add a value")
    if name in _NOT_THE_PROVIDERS or not name.isidentifier():
        raise InputError(
            f"'{name}' is no argument of a provider",
            field=option,
            remedy="Give it with the option of that name, or leave it out",
        )
    return name, value if name == "api_key" else typed(value)


def load_prices(path: str | None) -> None:
    """Tell Inspect what models cost.

    Raises:
        InputError: the file cannot be read, or an entry is no price.
    """
    if path is None:
        return
    try:
        prices = yaml.safe_load(text_of(named_path(path), "Check --prices"))  # JSON is YAML
        for model, price in prices.items():
            cache = {"input_cache_write": price["input"], "input_cache_read": price["input"]}
            if not all(0 <= dollars < math.inf for dollars in price.values()):
                raise ValueError(f"{price} of '{model}' are no prices")
            known = get_model_info(model) or ModelInfo()
            cost = ModelCost.model_validate({**cache, **price})
            # a model of the user's own server is in no database of Inspect's
            set_model_info(model, known.model_copy(update={"cost": cost}))
    except InputError:
        raise
    except (
        yaml.YAMLError, AttributeError, TypeError, KeyError, ValueError, RecursionError
    ) as error:  # fmt: skip
        raise InputError(
            f"is no price list ({' '.join(str(error).split())[:200]})",
            path,
            remedy='Write {"openai/gpt-4.1": {"input": 2.0, "output": 8.0}}, dollars a million',
        ) from error


def price_of(model: Model | str) -> ModelCost | None:
    """Dollars per million tokens, None where no price is known."""
    info = get_model_info(model)
    return info.cost if info else None


def check_prices(models: Sequence[Model], max_cost: float | None) -> None:
    """Refuse a budget in dollars where a model's price is not known.

    Raises:
        InputError: a price is missing.
    """
    for model in models:
        if max_cost is not None and price_of(model) is None:
            raise InputError(
                f"no price is known for '{model}', so a budget in dollars cannot be held",
                field="--max-cost",
                remedy='Give --prices FILE with {"MODEL": {"input": 2.0, "output": 8.0}}',
            )


def recorded_model(header: EvalLog) -> Model:
    """The model of a log, as it was asked.

    Raises:
        InputError: it cannot be set up here.
    """
    spec = header.eval
    return _model(spec.model, spec.model_base_url, spec.model_args)


def recorded_roles(header: EvalLog) -> dict[str, Model]:
    """The helpers of a log, as they were asked.

    Raises:
        InputError: one cannot be set up here.
    """
    found: dict[str, Model] = {}
    for role, config in (header.eval.model_roles or {}).items():
        one = config[0] if isinstance(config, list) else config
        found[role] = _model(one.model, one.base_url, one.args)
    return found


def attack_test(args: Mapping[str, Any]) -> Planned:
    """The permutation test with its settings.

    Raises:
        InputError: a setting that cannot be used.
    """
    return _resolved("medfuzz-test", MEDFUZZ_TEST, args)


def typed(value: str) -> Any:
    """A provider's argument as Inspect types those of ``-M``: as YAML, lists by commas."""
    try:
        found = yaml.safe_load(value)
    except (yaml.YAMLError, ValueError, RecursionError):
        return value
    if isinstance(found, date):  # a version, not a day
        return value
    if isinstance(found, str):
        parts = found.split(",")
        return parts if len(parts) > 1 else found
    return found


def _remote(log_dir: str) -> str:
    protocol = log_dir.partition("://")[0]
    try:
        fsspec.get_filesystem_class(protocol)
    except (ValueError, ImportError) as error:
        raise InputError(
            f"no log dir can be at '{protocol}://' ({error})",
            field="--log-dir",
            remedy="Name a folder, or a URL that fsspec knows",
        ) from error
    return log_dir


def as_log_dir(text: str) -> str:
    """The log dir in the one spelling that everything downstream understands.

    Raises:
        InputError: it holds a character that log file names cannot carry.
    """
    log_dir = text.removeprefix("file://") if text.startswith("file:///") else text
    if "://" in log_dir:
        return _remote(log_dir)
    if found := [c for c in log_dir if c in "#?%" or not c.isprintable()]:
        raise InputError(
            f"'{text}' holds '{found[0]}'", field="--log-dir", remedy="Name a folder without it"
        )
    if not log_dir.strip():
        raise InputError("is empty", field="--log-dir", remedy="Name a folder")
    return str(named_path(log_dir))
