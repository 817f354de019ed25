"""Texts of a target file: expressions in them, and variables of the environment."""

import json
import os
import re
from collections.abc import Callable, Mapping, Set
from typing import Any
from urllib.parse import quote

from jinja2 import StrictUndefined, TemplateError, meta
from jinja2.sandbox import ImmutableSandboxedEnvironment

VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
"""A variable of the environment."""

NAMES = ("messages", "last", "system", "session", "document")
"""What an expression may use."""

_ALONE = re.compile(r"\s*\{\{((?:(?!\}\}|\{\{).)*)\}\}\s*", re.DOTALL)
"""A text that is one expression."""

SHORTEST = 4
"""Values of variables with fewer characters are no secrets, and would be masked all over."""


class Variable(str):
    """Value of a variable of the environment, which stands in a template as it is."""

    __slots__ = ()


class Variables(Mapping[str, str]):
    """The variables of the environment that a target file names, and nothing else of it."""

    def __init__(self, names: tuple[str, ...], secrets: Set[str]) -> None:
        """Name them, and those whose values are secrets; they are looked up when they are used."""
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
        """The text with ``${NAME}`` where it holds the value of a variable, however it is coded.

        A word or a number that is no secret, such as the name of a tenant, stays: replies contain
        such words.
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
"""How values are written: encoded in a URL, as they are, variables escaped in a text of JSON."""

Values = Mapping[str, Any]
"""Values by the names of ``NAMES``, and ``variables``."""


class TemplateFaultError(Exception):
    """A text is no template, or cannot be filled."""


def used_names(value: object) -> set[str]:
    """The names that the expressions of a text, or of all texts in a mapping or list, use."""
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
    """The text with the values of its expressions.

    Raises:
        TemplateFaultError: it is no template, or an expression has no value.
    """
    try:
        return environment.from_string(_with_variables(text)).render(values)
    except (TemplateError, TypeError, ValueError, ArithmeticError, LookupError) as error:
        raise TemplateFaultError(f"{type(error).__name__}: {error}") from error


def fill_all(value: Any, values: Values) -> Any:
    """A mapping, list or text with its expressions filled; one that stands alone keeps its type."""
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
    """A template in which a variable of the environment is an expression."""
    return VARIABLE.sub(r"{{ variables['\1'] }}", text)
