"""Target files: how an assistant behind HTTP is asked, and where its reply stands."""

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
"""Keys that no prompt and no reply hangs on."""

_TEXT = 'A "quoted" line, a \\ and {{ braces }}.\nAnd <another>, é'
"""A text that a template of JSON does not survive if it is not escaped there."""

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
"""Stands in the name of a header or variable whose value is a secret."""

_EXPRESSION = re.compile(r"\{\{.*?\}\}|\{%.*?%\}|\{#.*?#\}", re.DOTALL)


class _Block(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Call(_Block):
    """A request, each text of which may hold expressions and variables of the environment."""

    url: str
    """Where the request goes. Values in it are encoded."""
    method: str = "POST"
    """Method of HTTP."""
    headers: dict[str, str] = Field(default_factory=dict)
    """Headers by name. A secret stands there as ``${VARIABLE}``, never itself."""
    body: dict[str, Any] | list[Any] | str | None = None
    """A table or list, which becomes JSON, or a text: ``{{ last | tojson }}`` in a text of JSON."""

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
        """Everything that may hold expressions."""
        return [self.url, self.headers, self.body]

    def origin(self, values: Values) -> str:
        """Scheme, host and port, which no expression changes."""
        return _origin(fill(_EXPRESSION.sub("", self.url), URL, values))

    def filled(self, values: Values) -> tuple[str, dict[str, str], bytes | None]:
        """URL, headers and body of one request.

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
    """A request that opens a session."""

    id: str | None = None
    """JSONPath of the session's id in its reply."""


class Session(_Block):
    """How the assistant knows a conversation of which each request brings the newest turn."""

    id: str | None = None
    """JSONPath of the session's id in the first reply. Without it and without ``open``, holdfast
    makes the id."""
    open: OpeningCall | None = None
    """A call that opens a session, with ``id``, the JSONPath of the session's id in its reply."""
    close: Call | None = None
    """A call that closes it."""
    expired: list[int] = Field(default=[404, 410, 440])
    """HTTP statuses that say that a session is gone. The conversation is begun anew."""


class Document(_Block):
    """Where a document is put that the assistant is to retrieve."""

    file: str
    """A file below the folder of the target file. It exists during a call alone, one call at a
    time."""

    @field_validator("file")
    @classmethod
    def _check_file(cls, file: str) -> str:
        path = Path(file)
        if path.is_absolute() or ".." in path.parts or not path.name:
            raise ValueError("leads out of the folder of the target file")
        return file


class Target(Call):
    """A target file."""

    reply: str | None = None
    """JSONPath of the reply's text. Without it the whole body is the reply."""
    session: Session | None = None
    """Sessions, where a request brings the newest message alone."""
    document: Document | None = None
    """Where a document goes that does not go into the body as ``{{ document }}``."""
    timeout: float | None = Field(None, gt=0)
    """Seconds that a call may take; 600."""
    connections: int = Field(8, ge=1, le=100_000)
    """Calls in flight."""
    rate: float | None = Field(None, gt=0)
    """Calls a second."""
    again: list[int] = Field(default=[429, *TRANSIENT])
    """HTTP statuses after which the call is repeated."""
    refused: list[int] = Field(default=[])
    """HTTP statuses that are a refusal to answer, a verdict. Any other one is a malfunction."""

    @cached_property
    def calls(self) -> Sequence[Call]:
        """The requests, that for a reply first."""
        session = self.session or Session()
        return [self, *(call for call in (session.open, session.close) if call)]

    @cached_property
    def names(self) -> set[str]:
        """What the expressions of the request for a reply use."""
        return set().union(*map(used_names, self.texts))

    @property
    def is_stateful(self) -> bool:
        """Whether the assistant remembers, and is sent the newest turn alone."""
        return "messages" not in self.names

    @property
    def takes_system(self) -> bool:
        """Whether a system message is sent."""
        return not self.is_stateful or "system" in set().union(
            *(used_names(text) for call in self.calls for text in call.texts)
        )

    @property
    def takes_documents(self) -> bool:
        """Whether a document can be put where the assistant's retrieval would."""
        return self.document is not None or "document" in self.names

    @cached_property
    def variables(self) -> Variables:
        """The variables of the environment that it names."""
        names = VARIABLE.findall(json.dumps([call.texts for call in self.calls]))
        headers = [item for call in self.calls for item in call.headers.items()]
        secret_headers = " ".join(value for header, value in headers if _SECRET.search(header))
        secrets = {*VARIABLE.findall(secret_headers), *filter(_SECRET.search, names)}
        return Variables(tuple(dict.fromkeys(names)), secrets)

    def values(self, **values: Any) -> Values:
        """Values for templates; what is not given is empty."""
        return {**dict.fromkeys(NAMES), **values, "variables": self.variables}

    @cached_property
    def origins(self) -> list[str]:
        """Scheme, host and port of all requests; variables must be set."""
        return list(dict.fromkeys(call.origin(self.values()) for call in self.calls))

    @cached_property
    def fingerprint(self) -> str:
        """Digest of all that prompts and replies hang on (hex, 16 characters); no secret is in it.

        Variables count by their names, but for those that name a host.
        """
        fields = self.model_dump(mode="json", exclude=_LIMITS)
        text = json.dumps([fields, self.origins], sort_keys=True)
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]

    @cached_property
    def reply_path(self) -> JSONPath | None:
        """Where the reply stands."""
        return parse(self.reply) if self.reply else None

    @cached_property
    def id_path(self) -> JSONPath | None:
        """Where the id of a session stands, in the reply to the call that begins it."""
        if self.session is None:
            return None
        path = self.session.open.id if self.session.open else self.session.id
        return parse(path) if path else None

    def describe(self) -> str:
        """Where requests go, and which variables of the environment they carry."""
        named = ", ".join(self.variables.names)
        return f"sends to {', '.join(self.origins)}" + (
            f" with the environment variable{'s' * (len(self.variables) > 1)} {named}"
            if named
            else ", without any environment variable"
        )

    def check_environment(self, file: str) -> None:
        """Refuse variables that are not set, and URLs that no request can be sent to.

        Raises:
            InputError: there is such a one.
        """
        for name in self.variables:
            if not os.environ.get(name):
                raise InputError(
                    f"the environment variable '{name}' is not set", file, remedy=f"Set {name}"
                )
        for call in self.calls:
            _check_url(call, self.values(**_EXAMPLE), file)


def read_target(file: str) -> Target:
    """Read a target file; no variable of the environment is looked at.

    Raises:
        InputError: it cannot be read, or a key or value of it cannot be used.
    """
    data = toml_in(text_of(named_path(file), "Check --target"), file)
    try:
        target = Target.model_validate(data)
    except ValidationError as error:
        raise _invalid(error, file) from error
    for field, path in _paths(target):
        try:
            parse(path)
        except Exception as error:  # its parsers raise their own kinds
            reason = f"'{path}' is no JSONPath ({in_one_line(error)})"
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
    """Fill the texts of a call once, with an example."""
    for key, text in (("url", call.url), ("headers", call.headers), ("body", call.body)):
        try:
            unknown = used_names(text) - {*NAMES, "variables"}
        except TemplateFaultError as error:
            raise InputError(
                f"is no template ({in_one_line(error)})", file, field=key, remedy="Correct it"
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
                f"becomes no JSON ({in_one_line(error, 100)})", file, field="body",
                remedy="Write {{ last | tojson }} without quotes around it, or make the body a "
                "table",
            ) from error  # fmt: skip


def _check_memory(target: Target, file: str) -> None:
    """Refuse a target that forgets: it is sent the newest turn alone, without a session."""
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
    except ValueError:  # brackets, a port
        fits = False
    except TemplateFaultError as error:
        raise InputError(
            f"cannot be filled ({in_one_line(error)})", file, remedy="Correct the expression"
        ) from error
    if not fits:
        raise InputError("is no URL", file, field="url", remedy="Write http://HOST:PORT/PATH")
    if "@" in parts.netloc:
        raise InputError(
            "contains a password", file, field="url",
            remedy='Write headers = { Authorization = "Basic ${APP_BASIC}" }',
        )  # fmt: skip
    for name, value in headers.items():
        if not name.isascii() or not value.isprintable():
            raise InputError(f"'{name}' is no header", file, field="headers", remedy="Correct it")


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


_named: dict[str, tuple[Target, str]] = {}
"""The targets that the user of this process has named, and their files, by fingerprint."""


def name_target(file: str) -> Target:
    """Read a target file that the user has named; providers of this process may use it.

    A log knows a target by its fingerprint alone, so no log can name one.

    Raises:
        InputError: the file cannot be used, or a variable of the environment is not set.
    """
    target = read_target(file)
    target.check_environment(file)
    _named[target.fingerprint] = target, file
    return target


def named_target(fingerprint: str) -> tuple[Target, str] | None:
    """The target of that fingerprint and its file; None where the user has named none."""
    return _named.get(fingerprint)
