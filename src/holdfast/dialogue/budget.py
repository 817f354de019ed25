"""A budget for a whole run: how many calls, tokens and dollars it may spend."""

import shutil
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass

import anyio
from inspect_ai.model import ModelUsage

from holdfast.errors import BudgetExceededError

ROOM = 64 * 2**20
"""Bytes that must be free where replies are kept, so that what is in flight still fits."""


@dataclass
class Budget:
    """Counts what is spent and refuses a request that would go past a limit.

    Only requests that reach a provider count; cached ones are free. Calls are held exactly.
    What a request will cost in tokens or dollars is not known before, so each in flight is
    reckoned at the dearest so far, and the first goes alone: such a budget is held to within
    about one request.

    Attributes:
        call_limit: most requests, None for no limit.
        token_limit: most input and output tokens together.
        cost_limit: most US dollars, by Inspect's prices for the model.
        folder: where replies are kept, None to ask on whatever room there is. What is answered
            and cannot be kept would be paid for twice, so nothing is asked on a full disk.
        on_turn: called after every answered request, cached or not.
        estimated: calls whose tokens are estimated, because the server told none.
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
        """Whether there is a limit of any kind."""
        return any(
            limit is not None for limit in (self.call_limit, self.token_limit, self.cost_limit)
        )

    async def admit(self, calls: int = 1) -> None:
        """Wait until one request more may be made; ``settle`` is called when it has ended.

        Args:
            calls: replies that it takes.

        Raises:
            BudgetExceededError: the budget is spent, or the disk is full. It is no
                LimitExceededError of Inspect's, which would score an unfinished sample as
                complete.
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
        """An admitted request has ended."""
        self._in_flight -= calls
        if self._waiting is not None:
            self._waiting.set()
            self._waiting = None

    def count(
        self, usage: ModelUsage, *, from_cache: bool, is_estimated: bool, calls: int = 1
    ) -> None:
        """Count a request that was answered.

        Args:
            usage: what it took, in tokens and dollars.
            calls: replies that it took.
            from_cache: whether it was not asked, but kept.
            is_estimated: whether the usage is an estimate, because the server told none.
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
"""The budget of the run under way; None where there is no limit and nobody counts."""
