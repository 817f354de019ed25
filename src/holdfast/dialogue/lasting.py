"""Errors that asking again does not mend, and what has to change instead."""

LASTING = "It will not pass by itself"
"""Stands in every error that the same command would meet again."""

_REFUSED = {
    401: "Give a key that the server takes",
    403: "Give a key that may ask this model",
    404: "Check the model's name and the base URL, which goes up to and with /v1",
}
_UNUSABLE = (400, 405, 413, 414, 415, 422, 501)
_TOO_LONG = (
    "context length", "context_length", "context window", "context size", "maximum context",
    "prompt is too long", "too many tokens", "max_seq_len", "max_model_len",
)  # fmt: skip
UNVOUCHED = "ClientConnectorCertificateError"
"""What aiohttp raises where nobody vouches for a server's certificate."""

VOUCHING = "Name the authority that vouches for the server in SSL_CERT_FILE"
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
        or (VOUCHING if type(error).__name__ == UNVOUCHED else None)
        or _REFUSED.get(status)
    )
    if status in _UNUSABLE:
        long = any(words in str(error).lower() for words in _TOO_LONG)
        remedy = (
            "The conversation is longer than the model's context: serve it with a longer one, or "
            "lower --max-output-tokens"
            if long
            else "The server cannot use the request: change what it names"
        )
    return f". {LASTING}: {remedy}" if remedy else ""


def refused_request(error: BaseException) -> bool:
    """Whether the server has refused the request for what it asks."""
    return status_of(error) in (*_UNUSABLE, 403)


def status_of(error: BaseException) -> int:
    """The HTTP status of an error, 0 where it has none."""
    for name in ("status", "status_code", "code"):
        if isinstance(status := getattr(error, name, None), int):
            return status
    return 0
