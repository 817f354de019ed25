"""Errors of providers: what asking again does not mend, and the first request, sent alone.

What is wrong for all requests of a study is told at once.
"""

import re
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from holdfast.errors import HoldfastError, redirected

LASTING = "A retry will not help"
"""Stands in every error that the same command would meet again."""

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
"""What servers and chat templates say where a model has no system role."""

_WITHOUT_SYSTEM = "Give -T system_prompt=none"

UNVERIFIED_CERTIFICATE = "ClientConnectorCertificateError"
"""What aiohttp raises where nobody vouches for a server's certificate."""

VOUCHING = "Set SSL_CERT_FILE to the certificate authority of the server"
"""What to change then."""


def what_to_change(error: BaseException) -> str:
    """What has to change before the same request can be answered, as a sentence after the error.

    Args:
        error: a provider's own error.

    Returns:
        Empty where the request may be answered the next time.
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
    """What is wrong where a server redirects a request, and the remedy."""
    if not 300 <= status_of(error) < 400:
        return None
    if remedy := getattr(error, "remedy", None):
        return str(error), remedy
    response: Any = getattr(error, "response", None)  # of httpx, in the errors of its clients
    location = getattr(response, "headers", {}).get("Location")
    return redirected(str(response.url), location) if location else None


def refused_request(error: BaseException) -> bool:
    """Whether the server has refused the request for what it asks."""
    return status_of(error) in (*_UNUSABLE, 403)


def status_of(error: BaseException) -> int:
    """The HTTP status of an error, 0 where it has none."""
    for name in ("status", "status_code", "code"):
        if isinstance(status := getattr(error, name, None), int):
            return status
    return 0


_NO_CONNECTION = ("ConnectError", "ConnectTimeout", "APIConnectionError", "ClientConnectorError")
_TLS = (UNVERIFIED_CERTIFICATE, "ClientConnectorSSLError", "ClientSSLError")  # a server is there


@dataclass
class Probe:
    """What became of the first request.

    Attributes:
        error: what its only attempt raised, None while it has raised nothing.
        seconds: that the reply took, which is kept; None while there is none.
    """

    error: Exception | None = None
    seconds: float | None = None


class ProbedError(HoldfastError):
    """The first request has ended; no further one is made."""


probing: ContextVar[Probe | None] = ContextVar("probing", default=None)
"""Set around the first request of a study."""


def is_unreached(error: BaseException) -> bool:
    """Whether no connection was made, which may be different in a moment."""
    names = {base.__name__ for base in type(error).__mro__}
    return not names.isdisjoint(_NO_CONNECTION) and names.isdisjoint(_TLS)


def fault_of_all(error: BaseException, model: str, url: str | None) -> tuple[str, str] | None:
    """What is wrong with every request to a model, and the remedy; None where one may pass.

    Args:
        error: what a single attempt raised.
        model: its name.
        url: the base URL, None for the provider's own.
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
