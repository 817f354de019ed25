"""Errors of providers: errors that persist, and the first request, which is sent alone.

A persistent error of all requests of a study is reported at once.
"""

import re
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from holdfast.errors import HoldfastError, redirected

LASTING = "A retry will not help"
"""Part of every error that the same command would produce again."""

_REFUSALS = {
    401: "Give a key that the server accepts",
    403: "Give a key with access to this model",
    404: "Check the model's name and the base URL, which ends in /v1",
}
_UNUSABLE = (400, 405, 413, 414, 415, 422, 501)
_TOO_LONG = (
    "context length", "context_length", "context window", "context size", "maximum context",
    "prompt is too long", "too many tokens", "max_seq_len", "max_model_len",
)  # fmt: skip
_NO_SYSTEM = re.compile(
    r"\bsystem\W+(?:role|message|prompt|instruction)s?\b.{0,40}\bnot (?:supported|allowed|enabled)"
    r"|not (?:support|allow)(?:ed)? .{0,20}\bsystem\b"
    r"|only user(?:,| and) assistant|roles must alternate|developer instruction is not enabled",
    re.IGNORECASE,
)
"""Messages of servers and chat templates for models without a system role."""

_WITHOUT_SYSTEM = "Give -T system_prompt=none"

UNVERIFIED_CERTIFICATE = "ClientConnectorCertificateError"
"""Name of aiohttp's error for a certificate without a trusted authority."""

VOUCHING = "Set SSL_CERT_FILE to the certificate authority of the server"
"""Remedy for this error."""


def what_to_change(error: BaseException) -> str:
    """Return the change that a request needs before it can succeed, as sentences to append.

    Args:
        error: an error of a provider.

    Returns:
        Empty if a retry may succeed.
    """
    status = status_of(error)
    remedy = (
        getattr(error, "remedy", None)
        or ". ".join(_redirect(error) or ())
        or (VOUCHING if type(error).__name__ == UNVERIFIED_CERTIFICATE else None)
        or _REFUSALS.get(status)
    )
    if _lacks_system_role(error):
        remedy = f"The model accepts no system message. {_WITHOUT_SYSTEM}"
    elif status in _UNUSABLE:
        long = any(words in str(error).lower() for words in _TOO_LONG)
        remedy = (
            "The conversation is longer than the model's context. Serve the model with a "
            "longer context, or lower max_tokens in --generate-config"
            if long
            else "The server rejects the request. Change the setting that it names"
        )
    return f". {LASTING}: {remedy}" if remedy else ""


def _lacks_system_role(error: BaseException) -> bool:
    return status_of(error) in _UNUSABLE and bool(_NO_SYSTEM.search(str(error)))


def _redirect(error: BaseException) -> tuple[str, str] | None:
    """Return fault and remedy if a server redirects a request."""
    if not 300 <= status_of(error) < 400:
        return None
    if remedy := getattr(error, "remedy", None):
        return str(error), remedy
    response: Any = getattr(error, "response", None)  # of httpx, in the errors of its clients
    location = getattr(response, "headers", {}).get("Location")
    return redirected(str(response.url), location) if location else None


def refused_request(error: BaseException) -> bool:
    """Whether the server refuses the content of the request."""
    return status_of(error) in (*_UNUSABLE, 403)


def status_of(error: BaseException) -> int:
    """Return the HTTP status of an error, 0 without one."""
    for name in ("status", "status_code", "code"):
        if isinstance(status := getattr(error, name, None), int):
            return status
    return 0


_NO_CONNECTION = ("ConnectError", "ConnectTimeout", "APIConnectionError", "ClientConnectorError")
_TLS = (UNVERIFIED_CERTIFICATE, "ClientConnectorSSLError", "ClientSSLError")  # a server is there


@dataclass
class Probe:
    """Result of the first request.

    Attributes:
        error: error of its only attempt, None without an error.
        seconds: duration of the stored reply, None without a reply.
    """

    error: Exception | None = None
    seconds: float | None = None


class ProbedError(HoldfastError):
    """The first request has ended, and no other is made."""


probing: ContextVar[Probe | None] = ContextVar("probing", default=None)
"""Current probe, set during the first request of a study."""


def is_unreached(error: BaseException) -> bool:
    """Whether no connection was made, which may be temporary."""
    names = {base.__name__ for base in type(error).__mro__}
    return not names.isdisjoint(_NO_CONNECTION) and names.isdisjoint(_TLS)


def fault_of_all(error: BaseException, model: str, url: str | None) -> tuple[str, str] | None:
    """Return fault and remedy of every request to a model, None if the error may be temporary.

    Args:
        error: error of a single attempt.
        model: name of the model.
        url: the base URL, None for that of the provider.
    """
    if redirect := _redirect(error):
        return redirect
    if getattr(error, "concerns_all", False):
        return str(error), getattr(error, "remedy", None) or "Check the assistant"
    if _lacks_system_role(error):
        words = " ".join(str(error).split())[:200]
        return f"the model accepts no system message ({words})", _WITHOUT_SYSTEM
    where = url or "the provider"
    message, status = str(error).lower(), status_of(error)
    if type(error).__name__ == UNVERIFIED_CERTIFICATE:
        return f"CERTIFICATE_VERIFY_FAILED at {where}", VOUCHING
    if is_unreached(error):
        return f"no server answers at {where}", "Start the server, or check the base URL"
    unknown = "not found" in message or "not exist" in message or "unknown" in message
    if status in (400, 404) and "model" in message and unknown:
        return f"'{model}' is unknown at {where}", "Give a model that the server lists"
    if status == 404:
        remedy = "Check the base URL" if "/v1" in where else "Does it end in /v1?"
        return f"nothing was found at {where} (404)", remedy
    if status in (401, 403):
        return (
            f"the key for '{model}' was rejected at {where} ({status})",
            "Set the key in the provider's environment variable",
        )
    return None
