"""What all servers have in common: their errors, how long these are waited for, and proxies."""

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
from tenacity import RetryCallState
from tenacity.wait import wait_base

from holdfast.errors import InputError

TRANSIENT = (408, 409, 425, 500, 502, 503, 504, 529)
"""HTTP statuses of faults that pass."""

_FIRST_WAIT, _LONGEST_WAIT = 0.5, 300.0

MAX_REPLY = "LEAN_MAX_REPLY_MIB"
"""In the environment: the largest reply that is read, in MiB, once unpacked."""

_MAX_REPLY_MIB = 64


class ServerError(Exception):
    """The server answered with an error, or with something that is no chat completion."""

    def __init__(
        self,
        status: int,
        message: str,
        retry_after: float | None = None,
        remedy: str | None = None,
    ) -> None:
        """Keep what decides whether to try again.

        Args:
            status: of the HTTP reply, 0 where it is no reason to give up.
            message: what the server says, or what is wrong with its reply.
            retry_after: seconds that the server asks to wait.
            remedy: what has to change, where trying again would not help.
        """
        super().__init__(f"HTTP {status}: {message}" if status else message)
        self.status = status
        self.retry_after = retry_after
        self.remedy = remedy


_LONGEST_ERROR = 2**20
"""Bytes of an error that are looked at."""


@cache
def at_most(seconds: float) -> aiohttp.ClientTimeout:
    """Timeouts of a request of so many seconds."""
    return aiohttp.ClientTimeout(total=seconds, sock_connect=30)


def environment_speaks_of(url: str) -> bool:
    """Whether the environment names a proxy for the server, or ``.netrc`` a password.

    Asked once: where it may, aiohttp looks for both again in every request, in a thread.
    """
    parts = urlsplit(url)
    host = parts.hostname or ""
    if parts.scheme in getproxies() and not proxy_bypass(host):
        return True
    name = "_netrc" if os.name == "nt" else ".netrc"
    try:
        passwords = netrc.netrc(os.environ.get("NETRC") or Path.home() / name)
        return passwords.authenticators(host) is not None
    except (OSError, RuntimeError, netrc.NetrcParseError):  # no file, no home, no sense in it
        return False


class RetryWait(wait_base):
    """Waits for what ``Retry-After`` says, if it says more than the backoff."""

    def __call__(self, retry_state: RetryCallState) -> float:
        """Seconds to wait."""
        error = retry_state.outcome.exception() if retry_state.outcome else None
        retry_after = error.retry_after if isinstance(error, ServerError) else None
        backoff = _FIRST_WAIT * 3.0 ** min(retry_state.attempt_number - 1, 9)
        # those refused together must not come back together; no result hangs on it
        wait = backoff * (1 + random.random() / 2)
        return min(max(retry_after or 0.0, wait), _LONGEST_WAIT)


def retry_seconds(retry_after: str | None) -> float | None:
    """Seconds that a ``Retry-After`` header names, as a number or a date; at most five minutes."""
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
    """What an error reply says, in a line, and its code."""
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
    """MiB that a reply may have.

    Raises:
        InputError: the environment names no such number.
    """
    limit = os.environ.get(MAX_REPLY) or str(_MAX_REPLY_MIB)
    if not limit.isdecimal() or not int(limit):
        raise InputError(f"is '{limit}'", field=MAX_REPLY, remedy="Give a whole number of MiB")
    return int(limit)
