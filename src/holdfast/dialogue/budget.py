"""Budget of a run: limits on calls, tokens and dollars."""

import shutil
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass

import anyio
from inspect_ai.model import ModelUsage

from holdfast.errors import BudgetExceededError

ROOM = 64 * 2**20
"""Free disk space required where replies are stored, in bytes, so that pending replies fit."""


@dataclass
class Budget:
    """Count of spending, which refuses requests beyond a limit.

    Only requests to a provider count, not cached ones. The limit on calls is exact. The tokens and
    dollars of a request are unknown in advance. Each pending request is estimated at the largest
    one so far, and the first request is sent alone. These limits are therefore exact to about one
    request.

    Attributes:
        call_limit: maximum number of requests, None for no limit.
        token_limit: maximum number of input and output tokens together.
        cost_limit: maximum cost in US dollars, by Inspect's prices for the model.
        folder: folder of the stored replies. No request is sent if its disk is full, because
            replies that cannot be stored would have to be paid for again. None skips this check.
        on_turn: callback after every answered request, cached or not.
        estimated: number of calls with estimated tokens, because the server reports none.
    """

    call_limit: int | None = None
    token_limit: int | None = None
    cost_limit: float | None = None
    folder: str | None = None
    on_turn: Callable[["Budget"], None] | None = None
    calls: int = 0
    cached: int = 0
    tokens: int = 0
    cost: float = 0.0
    estimated: int = 0
    _largest: tuple[int, float] = (0, 0.0)
    _in_flight: int = 0
    _waiting: anyio.Event | None = None

    @property
    def is_limited(self) -> bool:
        """Whether any limit is set."""
        return any(
            limit is not None for limit in (self.call_limit, self.token_limit, self.cost_limit)
        )

    async def admit(self, calls: int = 1) -> None:
        """Wait until another request is allowed; call ``settle`` once it has ended.

        Args:
            calls: replies that it takes.

        Raises:
            BudgetExceededError: the budget is spent, or the disk is full. It does not derive from
                Inspect's LimitExceededError, which would score an unfinished sample as complete.
        """
        while self._in_flight and self._at_limit(self._in_flight, calls):
            self._waiting = self._waiting or anyio.Event()
            await self._waiting.wait()
        if self._at_limit(0, calls):
            raise BudgetExceededError(self._describe_spending())
        if self.folder is not None and shutil.disk_usage(self.folder).free < ROOM:
            raise BudgetExceededError(
                f"Less than {ROOM // 2**20} MiB are free at {self.folder}. Free some space"
            )
        self._in_flight += calls

    def settle(self, calls: int = 1) -> None:
        """Record the end of an admitted request."""
        self._in_flight -= calls
        if self._waiting is not None:
            self._waiting.set()
            self._waiting = None

    def count(
        self, usage: ModelUsage, *, from_cache: bool, is_estimated: bool, calls: int = 1
    ) -> None:
        """Count an answered request.

        Args:
            usage: its usage in tokens and dollars.
            from_cache: whether the reply was stored before.
            is_estimated: whether the usage is an estimate, because the server reports none.
            calls: number of replies that it took.
        """
        if from_cache:
            self.cached += calls
        else:
            tokens, cost = usage.total_tokens, usage.total_cost or 0.0
            self.calls += calls
            self.estimated += calls * is_estimated
            self.tokens += tokens
            self.cost += cost
            largest_tokens, largest_cost = self._largest
            self._largest = (
                max(largest_tokens, -(-tokens // calls)),
                max(largest_cost, cost / calls),
            )
        if self.on_turn:
            self.on_turn(self)

    def _at_limit(self, ahead: int, calls: int) -> bool:
        tokens, cost = self._largest
        needs_usage = self.token_limit is not None or self.cost_limit is not None
        return (
            (self.call_limit is not None and self.calls + ahead + calls > self.call_limit)
            or (self.token_limit is not None and self.tokens + ahead * tokens >= self.token_limit)
            or (self.cost_limit is not None and self.cost + ahead * cost >= self.cost_limit)
            or (needs_usage and ahead > 0 and self.calls == 0)
        )

    def _describe_spending(self) -> str:
        limits = [
            f"{amount} of {limit} {unit}"
            for amount, limit, unit in (
                (self.calls, self.call_limit, "calls"),
                (self.tokens, self.token_limit, "tokens"),
                (f"{self.cost:.4f}", self.cost_limit, "dollars"),
            )
            if limit is not None
        ]
        return f"The budget is spent: {', '.join(limits)}"


run_budget: ContextVar[Budget | None] = ContextVar("run_budget", default=None)
"""Budget of the current run. None without limits and counts."""
