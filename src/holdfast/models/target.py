"""Target files, which describe the requests to an assistant and where its reply is."""

import hashlib
import json
import os
import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from jsonpath_ng import JSONPath
from jsonpath_ng.ext.parser import parse
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from holdfast.encoding import json_bytes, json_value
from holdfast.errors import InputError, did_you_mean, in_one_line
from holdfast.files import named_path, text_of, toml_in

from .server import TRANSIENT
from .templates import (
    JSON,
    NAMES,
    PLAIN,
    URL,
    VARIABLE,
    TemplateFaultError,
    Values,
    Variables,
    fill,
    fill_all,
    used_names,
)

_METHODS = ("POST", "PUT", "PATCH", "GET", "DELETE")

_LIMITS = {"timeout", "connections", "rate", "again", "refused"}
"""Keys that do not affect prompts or replies."""

_TEXT = 'A "quoted" line, a \\ and {{ braces }}.\nAnd <another>, é'
"""Example text that makes a JSON template invalid if it is not escaped."""

_EXAMPLE: Values = {
    "messages": [
        {"role": "user", "content": _TEXT},
        {"role": "assistant", "content": _TEXT},
        {"role": "user", "content": _TEXT},
    ],
    "last": _TEXT,
    "system": _TEXT,
    "session": "0123456789abcdef",
    "document": _TEXT,
}

_SECRET = re.compile(r"auth|key|token|secret|passw|cookie|credential", re.IGNORECASE)
"""Matches the name of a header or variable whose value is secret."""

_EXPRESSION = re.compile(r"\{\{.*?\}\}|\{%.*?%\}|\{#.*?#\}", re.DOTALL)


class _Block(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Call(_Block):
    """Request, whose texts may contain expressions and environment variables."""

    url: str
    """URL of the request. Values in it are URL-encoded."""
    method: str = "POST"
    """HTTP method."""
    headers: dict[str, str] = Field(default_factory=dict)
    """Headers by name. Write a secret as ``${VARIABLE}``, never its value."""
    body: dict[str, Any] | list[Any] | str | None = None
    """Table or list, sent as JSON, or a text. Write ``{{ last | tojson }}`` in a JSON text."""

    @field_validator("method")
    @classmethod
    def _check_method(cls, method: str) -> str:
        if method.upper() not in _METHODS:
            raise ValueError(f"is '{method}', not {', '.join(_METHODS)}")
        return method.upper()

    @field_validator("headers")
    @classmethod
    def _check_headers(cls, headers: dict[str, str]) -> dict[str, str]:
        for name, value in headers.items():
            if _SECRET.search(name) and value and not VARIABLE.search(value):
                raise ValueError(
                    f"'{name}' holds a secret. Set an environment variable, and write its name: "
                    f'{name} = "${{APP_KEY}}"'
                )
        return headers

    @property
    def is_json(self) -> bool:
        """Whether the body is JSON."""
        kinds = [v for name, v in self.headers.items() if name.lower() == "content-type"]
        return self.body is not None and all("json" in kind.lower() for kind in kinds)

    @property
    def texts(self) -> list[Any]:
        """Texts that may contain expressions."""
        return [self.url, self.headers, self.body]

    def origin(self, values: Values) -> str:
        """Return scheme, host and port, which expressions cannot change."""
        return _origin(fill(_EXPRESSION.sub("", self.url), URL, values))

    def filled(self, values: Values) -> tuple[str, dict[str, str], bytes | None]:
        """Return the URL, headers and body of a request.

        Raises:
            TemplateFaultError: an expression has no value, or changes the host.
        """
        url = fill(self.url, URL, values)
        if _origin(url) != self.origin(values):
            raise TemplateFaultError("an expression changes the host of the URL")
        headers = {name: fill(text, PLAIN, values) for name, text in self.headers.items()}
        if self.body is None:
            return url, headers, None
        if self.is_json and not any(name.lower() == "content-type" for name in headers):
            headers["Content-Type"] = "application/json"
        if not isinstance(self.body, str):
            return url, headers, json_bytes(fill_all(self.body, values))
        text = fill(self.body, JSON if self.is_json else PLAIN, values)
        return url, headers, text.encode("utf-8", "replace")


class OpeningCall(Call):
    """Request that opens a session."""

    id: str | None = None
    """JSONPath of the session id in the response."""


class Session(_Block):
    """Sessions of an assistant that stores the conversation."""

    id: str | None = None
    """JSONPath of the session id in the first response. Without it and without ``open``, holdfast
    generates the id."""
    open: OpeningCall | None = None
    """Request that opens a session, with ``id``, the JSONPath of the session id in its response."""
    close: Call | None = None
    """Request that closes the session."""
    expired: list[int] = Field(default=[404, 410, 440])
    """HTTP statuses of an expired session. The conversation is repeated in a new one."""


class Document(_Block):
    """Place of a document that the assistant retrieves."""

    file: str
    """File in the folder of the target file. It exists only during a request, and requests with a
    document are sent one at a time."""

    @field_validator("file")
    @classmethod
    def _check_file(cls, file: str) -> str:
        path = Path(file)
        if path.is_absolute() or ".." in path.parts or not path.name:
            raise ValueError("leads out of the folder of the target file")
        return file


class Target(Call):
    """Target file."""

    reply: str | None = None
    """JSONPath of the reply in the response. Without it, the whole body is the reply."""
    session: Session | None = None
    """Sessions, if requests contain only the newest message."""
    document: Document | None = None
    """Place of a document, if the body does not contain ``{{ document }}``."""
    timeout: float | None = Field(None, gt=0)
    """Maximum duration of a request, in seconds. Default: ``attempt_timeout``, otherwise 600."""
    connections: int = Field(8, ge=1, le=100_000)
    """Maximum number of concurrent requests."""
    rate: float | None = Field(None, gt=0)
    """Maximum number of requests a second."""
    again: list[int] = Field(default=[429, *TRANSIENT])
    """HTTP statuses after which a request is retried."""
    refused: list[int] = Field(default=[])
    """HTTP statuses of a refusal to answer. All others count as errors."""

    @cached_property
    def calls(self) -> Sequence[Call]:
        """All requests, beginning with the request for a reply."""
        session = self.session or Session()
        return [self, *(call for call in (session.open, session.close) if call)]

    @cached_property
    def names(self) -> set[str]:
        """Names used by the expressions of the request for a reply."""
        return set().union(*map(used_names, self.texts))

    @property
    def is_stateful(self) -> bool:
        """Whether the assistant stores the conversation and is sent only the newest turn."""
        return "messages" not in self.names

    @property
    def takes_system(self) -> bool:
        """Whether requests include a system message."""
        return not self.is_stateful or "system" in set().union(
            *(used_names(text) for call in self.calls for text in call.texts)
        )

    @property
    def takes_documents(self) -> bool:
        """Whether the file has a place for a retrieved document."""
        return self.document is not None or "document" in self.names

    @cached_property
    def variables(self) -> Variables:
        """Environment variables that the file names."""
        names = VARIABLE.findall(json.dumps([call.texts for call in self.calls]))
        headers = [item for call in self.calls for item in call.headers.items()]
        secret_headers = " ".join(value for header, value in headers if _SECRET.search(header))
        secrets = {*VARIABLE.findall(secret_headers), *filter(_SECRET.search, names)}
        return Variables(tuple(dict.fromkeys(names)), secrets)

    def values(self, **values: Any) -> Values:
        """Return the values for templates. Missing values are empty."""
        return {**dict.fromkeys(NAMES), **values, "variables": self.variables}

    @cached_property
    def origins(self) -> list[str]:
        """Scheme, host and port of all requests. The variables must be set."""
        return list(dict.fromkeys(call.origin(self.values()) for call in self.calls))

    @cached_property
    def fingerprint(self) -> str:
        """Digest of everything that affects prompts and replies (hex, 16 characters).

        It includes the names of variables but not their values, except in hosts.
        """
        fields = self.model_dump(mode="json", exclude=_LIMITS)
        text = json.dumps([fields, self.origins], sort_keys=True)
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]

    @cached_property
    def reply_path(self) -> JSONPath | None:
        """Parsed path of the reply."""
        return parse(self.reply) if self.reply else None

    @cached_property
    def id_path(self) -> JSONPath | None:
        """Parsed path of the session id in the response that begins the session."""
        if self.session is None:
            return None
        path = self.session.open.id if self.session.open else self.session.id
        return parse(path) if path else None

    def describe(self) -> str:
        """Return the hosts of the requests and the environment variables that they use."""
        named = ", ".join(self.variables.names)
        return f"sends to {', '.join(self.origins)}" + (
            f" with the environment variable{'s' * (len(self.variables) > 1)} {named}"
            if named
            else ", without any environment variable"
        )

    def check_environment(self, file: str) -> None:
        """Check that all variables are set and all URLs are valid.

        Raises:
            InputError: a variable is not set, or a URL is not valid.
        """
        for name in self.variables:
            if not os.environ.get(name):
                raise InputError(
                    f"the environment variable '{name}' is not set", file, remedy=f"Set {name}"
                )
        for call in self.calls:
            _check_url(call, self.values(**_EXAMPLE), file)


def read_target(file: str) -> Target:
    """Read a target file, without reading environment variables.

    Raises:
        InputError: the file cannot be read, or has an invalid key or value.
    """
    data = toml_in(text_of(named_path(file), "Check --target"), file)
    try:
        target = Target.model_validate(data)
    except ValidationError as error:
        raise _invalid(error, file) from error
    for field, path in _paths(target):
        try:
            parse(path)
        except Exception as error:  # its parsers raise various exceptions
            reason = f"'{path}' is not a JSONPath ({in_one_line(error)})"
            raise InputError(reason, file, field=field, remedy="Write $.answer") from error
    for call in target.calls:
        _check_texts(call, target, file)
    _check_memory(target, file)
    return target


def _paths(target: Target) -> Iterator[tuple[str, str]]:
    session = target.session or Session()
    paths = {
        "reply": target.reply,
        "session.id": session.id,
        "session.open.id": session.open.id if session.open else None,
    }
    return ((field, path) for field, path in paths.items() if path is not None)


def _invalid(error: ValidationError, file: str) -> InputError:
    fault = error.errors()[0]
    field = ".".join(str(part) for part in fault["loc"] if not str(part).startswith(("dict[", "l")))
    reason = fault["msg"].removeprefix("Value error, ")
    remedy = "See the guide to your own assistant"
    if fault["type"] == "extra_forbidden":
        reason, remedy = f"unknown key '{field}'", did_you_mean(field, Target.model_fields)
    elif fault["type"] == "missing":
        reason, remedy = "is missing", 'Write url = "https://..."'
    return InputError(reason.rstrip("."), file, field=field, remedy=remedy)


def _check_texts(call: Call, target: Target, file: str) -> None:
    """Raise an error if the texts of a request cannot be filled with an example."""
    for key, text in (("url", call.url), ("headers", call.headers), ("body", call.body)):
        try:
            unknown = used_names(text) - {*NAMES, "variables"}
        except TemplateFaultError as error:
            raise InputError(
                f"is not a template ({in_one_line(error)})", file, field=key, remedy="Correct it"
            ) from error
        if unknown:
            name = min(unknown)
            raise InputError(
                f"unknown name '{name}'", file, field=key, remedy=did_you_mean(name, NAMES)
            )
    if call.is_json and isinstance(call.body, str):
        try:
            json_value(fill(call.body, JSON, target.values(**_EXAMPLE)))
        except (TemplateFaultError, ValueError) as error:
            raise InputError(
                f"is not valid JSON once filled ({in_one_line(error, 100)})", file, field="body",
                remedy="Write {{ last | tojson }} without quotes around it, or make the body a "
                "table",
            ) from error  # fmt: skip


def _check_memory(target: Target, file: str) -> None:
    """Raise an error if requests contain only the newest turn and there is no session."""
    if not target.is_stateful:
        return
    if target.session is None and "session" not in target.names:
        raise InputError(
            "sends the newest message alone, and there is no session", file, field="body",
            remedy="Send {{ messages }}, or add [session]",
        )  # fmt: skip
    session = target.session or Session()
    begins = session.open is not None or session.id is not None
    if "session" not in target.names and not begins:
        raise InputError(
            "no request names the session", file, field="session",
            remedy="Write {{ session }} into url, headers or body",
        )  # fmt: skip


def _check_url(call: Call, values: Values, file: str) -> None:
    try:
        url, headers, _ = call.filled(values)
        parts = urlsplit(url)
        fits = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # invalid brackets or port
        fits = False
    except TemplateFaultError as error:
        raise InputError(
            f"cannot be filled ({in_one_line(error)})", file, remedy="Correct the expression"
        ) from error
    if not fits:
        raise InputError("is not a URL", file, field="url", remedy="Write http://HOST:PORT/PATH")
    if "@" in parts.netloc:
        raise InputError(
            "contains a password", file, field="url",
            remedy='Write headers = { Authorization = "Basic ${APP_BASIC}" }',
        )  # fmt: skip
    for name, value in headers.items():
        if not name.isascii() or not value.isprintable():
            raise InputError(
                f"'{name}' is not a header", file, field="headers", remedy="Correct it"
            )


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


_named: dict[str, tuple[Target, str]] = {}
"""Targets that the user of this process has named, and their files, by fingerprint."""


def name_target(file: str) -> Target:
    """Read a target file that the user has named, and make it available to providers.

    A log contains only the fingerprint, so a received log cannot name a target.

    Raises:
        InputError: the file is invalid, or an environment variable is not set.
    """
    target = read_target(file)
    target.check_environment(file)
    _named[target.fingerprint] = target, file
    return target


def named_target(fingerprint: str) -> tuple[Target, str] | None:
    """Return the target with this fingerprint and its file, None if the user has named none."""
    return _named.get(fingerprint)
