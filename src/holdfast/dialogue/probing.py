"""The first request of a study, sent alone: what is wrong for all of them is told at once."""

from contextvars import ContextVar
from dataclasses import dataclass

from holdfast.errors import HoldfastError

from .lasting import UNVOUCHED, VOUCHING, status_of

_UNREACHED = ("ConnectError", "ConnectTimeout", "APIConnectionError", "ClientConnectorError")
_TLS = (UNVOUCHED, "ClientConnectorSSLError", "ClientSSLError")  # a server is there


@dataclass
class Probe:
    """What became of the first request.

    Attributes:
        error: what its only attempt raised, None while it has raised nothing.
        answered: whether a reply came, which is kept.
    """

    error: Exception | None = None
    answered: bool = False


class ProbedError(HoldfastError):
    """The first request has ended; no further one is made."""


probing: ContextVar[Probe | None] = ContextVar("probing", default=None)
"""Set around the first request of a study."""


def is_unreached(error: BaseException) -> bool:
    """Whether no connection was made, which may be different in a moment."""
    names = {base.__name__ for base in type(error).__mro__}
    return not names.isdisjoint(_UNREACHED) and names.isdisjoint(_TLS)


def fault_of_all(error: BaseException, model: str, url: str | None) -> tuple[str, str] | None:
    """What is wrong with every request to a model, and the remedy; None where one may pass.

    Args:
        error: what a single attempt raised.
        model: its name.
        url: the base URL, None for the provider's own.
    """
    where = url or "the provider"
    told, status = str(error).lower(), status_of(error)
    if type(error).__name__ == UNVOUCHED:
        return f"CERTIFICATE_VERIFY_FAILED at {where}", VOUCHING
    if is_unreached(error):
        return f"no server answers at {where}", "Start it, or check the base URL"
    unknown = "not found" in told or "not exist" in told or "unknown" in told
    if status in (400, 404) and "model" in told and unknown:
        return f"'{model}' is not known at {where}", "Give a model that the server lists"
    if status == 404:
        remedy = "Check the base URL" if "/v1" in where else "Is /v1 missing at its end?"
        return f"nothing is there at {where} (404)", remedy
    if status in (401, 403):
        return (
            f"the key for '{model}' is refused at {where} ({status})",
            "Set the key in the provider's environment variable",
        )
    return None
