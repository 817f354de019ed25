"""Check of a target file: send two messages and report the replies."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import aiohttp
from tenacity import AsyncRetrying, retry_if_exception, stop_after_attempt

from holdfast.dialogue.probing import is_unreached
from holdfast.errors import InputError, in_one_line
from holdfast.models.http import Http, TargetError

from . import models
from .evaluation import in_own_loop

_FACT = "47"
_MESSAGES = (
    f"My patient is {_FACT} years old. Please keep that in mind.",
    "How old is my patient? Answer in one sentence.",
)
"""Messages of the check. The second can be answered only with the first."""

_ATTEMPTS = 3
"""Number of times that a conversation is tried if the assistant is busy."""


@dataclass(frozen=True)
class TargetCheck:
    """Result of a check.

    Attributes:
        sent: requests, in which the values of variables are masked.
        replies: replies to the messages.
        is_stateful: whether requests contain only the newest turn.
        takes_documents: whether the target file has a place for a document.
    """

    sent: Sequence[str]
    replies: Sequence[str]
    is_stateful: bool
    takes_documents: bool

    @property
    def remembers(self) -> bool:
        """Whether the second reply contains the fact from the first message."""
        return _FACT in self.replies[1]


def check_target(file: str, say: Callable[[str], None]) -> TargetCheck:
    """Send two messages of one conversation to the assistant of a target file.

    Args:
        file: the target file.
        say: function that is called with the hosts before the first request.

    Raises:
        InputError: the file is invalid, or a reply cannot be read.
    """
    (model,) = models.models([], target=file)
    api = model.api
    assert isinstance(api, Http), "a target file is for http/"
    sent, replies = list[str](), list[str]()
    api.on_call = sent.append
    say(api.describe())

    def is_passing(error: BaseException) -> bool:
        decision = api.should_retry(error) if isinstance(error, Exception) else None
        return bool(decision and decision.retry) and not is_unreached(error)

    async def converse() -> None:
        try:
            async for attempt in AsyncRetrying(
                stop=stop_after_attempt(_ATTEMPTS), wait=api.retry_wait(),
                retry=retry_if_exception(is_passing), reraise=True,
            ):  # fmt: skip
                with attempt:
                    sent.clear()
                    replies.extend(await api.converse(_MESSAGES))
        finally:
            await api.aclose()

    try:
        in_own_loop(converse)
    except (TargetError, aiohttp.ClientError, TimeoutError, OSError) as error:
        remedy = getattr(error, "remedy", None) or "Check the assistant, and the target file"
        reason = in_one_line(error, 400)
        if is_unreached(error):
            reason, remedy = f"no server answers at {api.base_url}", "Start it, or check url"
        after = f" to {sent[-1][:400]}" if sent else ""
        raise InputError(f"{reason}, in reply{after}", file, remedy=remedy) from error
    target = api.target
    return TargetCheck(sent, replies, target.is_stateful, target.takes_documents)
