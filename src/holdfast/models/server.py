"""Errors, waiting times and proxies of all model servers."""

import json
import math
import netrc
import os
import random
import time
from email.utils import parsedate_to_datetime
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
from inspect_ai.model import RetryDecision
from tenacity import RetryCallState
from tenacity.wait import wait_base

from holdfast.errors import InputError

TRANSIENT = (408, 409, 425, 500, 502, 503, 504, 529)
"""HTTP statuses of temporary errors."""

_FIRST_WAIT, _LONGEST_WAIT = 0.5, 300.0

MAX_REPLY = "LEAN_MAX_REPLY_MIB"
"""Environment variable with the maximum size of a decompressed response, in MiB."""

_MAX_REPLY_MIB = 64


class ServerError(Exception):
    """The server returned an error, or something other than a chat completion."""

    def __init__(
        self,
        status: int,
        message: str,
        retry_after: float | None = None,
        remedy: str | None = None,
    ) -> None:
        """Store the message and what decides about a retry.

        Args:
            status: HTTP status of the response. 0 if the status is not the reason.
            message: message of the server, or what is wrong with its response.
            retry_after: waiting time that the server asks for, in seconds.
            remedy: what the user has to change if a retry cannot help.
        """
        super().__init__(f"HTTP {status}: {message}" if status else message)
        self.status = status
        self.retry_after = retry_after
        self.remedy = remedy
        self.is_repeated = remedy is None and status in (0, 429, *TRANSIENT)

    def decision(self) -> RetryDecision:
        """Return whether to retry, and after how many seconds."""
        if not self.is_repeated:
            return RetryDecision.no()
        if self.status == 429:
            return RetryDecision.rate_limit(retry_after=self.retry_after)
        return RetryDecision.transient(retry_after=self.retry_after)


_LONGEST_ERROR = 2**20
"""Maximum number of bytes of an error response that are read."""


@cache
def at_most(seconds: float) -> aiohttp.ClientTimeout:
    """Return the timeouts of a request that may take this many seconds."""
    return aiohttp.ClientTimeout(total=seconds, sock_connect=30)


def environment_speaks_of(url: str) -> bool:
    """Return whether the environment names a proxy for the server, or ``.netrc`` a password.

    This is checked once, because aiohttp with ``trust_env`` checks both in every request, in a
    thread.
    """
    parts = urlsplit(url)
    host = parts.hostname or ""
    if parts.scheme in getproxies() and not proxy_bypass(host):
        return True
    name = "_netrc" if os.name == "nt" else ".netrc"
    try:
        passwords = netrc.netrc(os.environ.get("NETRC") or Path.home() / name)
        return passwords.authenticators(host) is not None
    except (
        OSError,
        RuntimeError,
        netrc.NetrcParseError,
    ):  # no file, no home directory, or an invalid file
        return False


class RetryWait(wait_base):
    """Waiting time of a retry: the longer one of ``Retry-After`` and the backoff."""

    def __call__(self, retry_state: RetryCallState) -> float:
        """Return the seconds to wait."""
        error = retry_state.outcome.exception() if retry_state.outcome else None
        retry_after = error.retry_after if isinstance(error, ServerError) else None
        backoff = _FIRST_WAIT * 3.0 ** min(retry_state.attempt_number - 1, 9)
        # jitter separates the retries of requests that were rejected together
        wait = backoff * (1 + random.random() / 2)
        return min(max(retry_after or 0.0, wait), _LONGEST_WAIT)


def retry_seconds(retry_after: str | None) -> float | None:
    """Return the seconds of a ``Retry-After`` header, a number or a date, at most five minutes."""
    if not retry_after:
        return None
    try:
        seconds = float(retry_after)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(retry_after).timestamp() - time.time()
        except (ValueError, TypeError, OverflowError):
            return None
    return min(max(0.0, seconds), _LONGEST_WAIT) if math.isfinite(seconds) else None


def error_message(content: bytearray) -> tuple[str, str]:
    """Return the message of an error response, on one line, and its code."""
    text, code = content[:_LONGEST_ERROR].decode("utf-8", "replace"), ""
    try:
        error = json.loads(text)["error"]
        if isinstance(error, dict):
            text, code = str(error.get("message", error)), str(error.get("code") or "")
        else:
            text = str(error)
    except (ValueError, KeyError, TypeError, RecursionError):
        pass
    return " ".join(text.split())[:500], code


def largest_reply() -> int:
    """Return the maximum size of a response, in MiB.

    Raises:
        InputError: the environment variable is not a positive whole number.
    """
    limit = os.environ.get(MAX_REPLY) or str(_MAX_REPLY_MIB)
    if not limit.isdecimal() or not int(limit):
        raise InputError(f"is '{limit}'", field=MAX_REPLY, remedy="Give a whole number of MiB")
    return int(limit)
