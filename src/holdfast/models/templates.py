"""Templates of a target file, with expressions and environment variables."""

import json
import os
import re
from collections.abc import Callable, Mapping, Set
from typing import Any
from urllib.parse import quote

from jinja2 import StrictUndefined, TemplateError, meta
from jinja2.sandbox import ImmutableSandboxedEnvironment

VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
"""Matches an environment variable."""

NAMES = ("messages", "last", "system", "session", "document")
"""Names that an expression may use."""

_ALONE = re.compile(r"\s*\{\{((?:(?!\}\}|\{\{).)*)\}\}\s*", re.DOTALL)
"""Matches a text that consists of one expression."""

SHORTEST = 4
"""Minimum length of a masked value, because shorter values would be masked in ordinary words."""


class Variable(str):
    """Value of an environment variable, which is put into a template without encoding."""

    __slots__ = ()


class Variables(Mapping[str, str]):
    """Environment variables that a target file names. No others can be read."""

    def __init__(self, names: tuple[str, ...], secrets: Set[str]) -> None:
        """Store the names of the variables and of the secret ones. Values are read on use."""
        self.names, self.secrets = names, secrets

    def __getitem__(self, name: str) -> str:
        if name not in self.names:
            raise KeyError(name)
        return Variable(os.environ.get(name, ""))

    def __iter__(self) -> Any:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)

    def masked(self, text: str) -> str:
        """Replace the values of variables, in every encoding, by ``${NAME}``.

        A word or number that is not secret, such as the name of a tenant, stays, because replies
        contain such words.
        """
        values = sorted(((self[name], name) for name in self.names), key=lambda v: -len(v[0]))
        for value, name in values:
            is_word = value.isalpha() or value.isdecimal()
            if len(value) >= SHORTEST and (name in self.secrets or not is_word):
                for spelling in {value, quote(value, safe=""), quote(value), _in_json(value)}:
                    text = text.replace(spelling, f"${{{name}}}")
        return text


def _in_json(text: object) -> str:
    return json.dumps(str(text))[1:-1]


def _in_url(value: object) -> str:
    return value if isinstance(value, Variable) else quote(str(value), safe="")


def _in_body(value: object) -> str:
    return _in_json(value) if isinstance(value, Variable) else str(value)


def _environment(finalize: Callable[[object], str]) -> ImmutableSandboxedEnvironment:
    return ImmutableSandboxedEnvironment(
        undefined=StrictUndefined, finalize=finalize, keep_trailing_newline=True, autoescape=False
    )


URL, PLAIN, JSON = _environment(_in_url), _environment(str), _environment(_in_body)
"""Environments by encoding: URL-encoded, unchanged, and JSON-escaped."""

Values = Mapping[str, Any]
"""Values by name: ``NAMES`` and ``variables``."""


class TemplateFaultError(Exception):
    """A text is not a template, or cannot be filled."""


def used_names(value: object) -> set[str]:
    """Return the names used by the expressions in a text, mapping or list."""
    if isinstance(value, Mapping):
        return set().union(*(used_names(inner) for inner in (*value, *value.values())), set())
    if isinstance(value, list):
        return set().union(*map(used_names, value), set())
    if not isinstance(value, str):
        return set()
    try:
        return meta.find_undeclared_variables(PLAIN.parse(_with_variables(value)))
    except TemplateError as error:
        raise TemplateFaultError(str(error)) from error


def fill(text: str, environment: ImmutableSandboxedEnvironment, values: Values) -> str:
    """Fill the expressions of a text.

    Raises:
        TemplateFaultError: the text is not a template, or an expression has no value.
    """
    try:
        return environment.from_string(_with_variables(text)).render(values)
    except (TemplateError, TypeError, ValueError, ArithmeticError, LookupError) as error:
        raise TemplateFaultError(f"{type(error).__name__}: {error}") from error


def fill_all(value: Any, values: Values) -> Any:
    """Fill the expressions of a mapping, list or text. A single expression keeps its type."""
    if isinstance(value, Mapping):
        return {fill(key, PLAIN, values): fill_all(inner, values) for key, inner in value.items()}
    if isinstance(value, list):
        return [fill_all(inner, values) for inner in value]
    if not isinstance(value, str):
        return value
    if (alone := _ALONE.fullmatch(_with_variables(value))) is None:
        return fill(value, PLAIN, values)
    try:
        expression = PLAIN.compile_expression(alone[1], undefined_to_none=False)
        result = expression(values)
    except (TemplateError, TypeError, ValueError, ArithmeticError, LookupError) as error:
        raise TemplateFaultError(f"{type(error).__name__}: {error}") from error
    if isinstance(result, StrictUndefined):
        raise TemplateFaultError(f"'{alone[1].strip()}' has no value")
    return result


def _with_variables(text: str) -> str:
    """Return the template with environment variables as expressions."""
    return VARIABLE.sub(r"{{ variables['\1'] }}", text)
