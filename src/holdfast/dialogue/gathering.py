"""Concurrent branches: if one fails, its siblings continue."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio
from anyio.abc import TaskGroup

from holdfast.errors import BudgetExceededError, HoldfastError

from .sitting import branch as span_of

_LONGEST_LIST = 3
"""Maximum number of branches that a message names for one reason."""


class BranchesFailedError(HoldfastError):
    """Some branches did not finish; the question has an error and can be resumed."""


@dataclass
class Branches:
    """Group of concurrent branches whose failures are raised after all have ended."""

    group: TaskGroup
    failures: list[tuple[str, Exception]] = field(default_factory=list)

    def start(self, name: str, branch: Callable[..., Awaitable[Any]], *args: Any) -> None:
        """Run ``branch(*args)`` concurrently, in a log span with this name."""

        async def run() -> None:
            try:
                async with span_of(name):
                    await branch(*args)
            except Exception as error:
                self.failures.append((name, error))

        self.group.start_soon(run)


@asynccontextmanager
async def gather() -> AsyncIterator[Branches]:
    """Wait for all branches started inside, then raise a single error for those that failed.

    Raises:
        BudgetExceededError: a branch spent the budget.
        BranchesFailedError: other failures, with the reason of every branch.
    """
    async with anyio.create_task_group() as group:
        branches = Branches(group)
        yield branches
    if not branches.failures:
        return
    for _, error in branches.failures:
        if isinstance(error, BudgetExceededError):
            raise error
    reasons: dict[str, list[str]] = {}
    for name, error in branches.failures:
        names = reasons.setdefault(str(error) or repr(error), [])
        if not isinstance(error, BranchesFailedError):  # a nested error names its branches itself
            names.append(name)
    reasons_by_name = (
        f"{_join_names(names)}: {why}" if names else why for why, names in reasons.items()
    )
    raise BranchesFailedError("; ".join(reasons_by_name)) from branches.failures[0][1]


def _join_names(names: Sequence[str]) -> str:
    more = f" and {len(names) - _LONGEST_LIST} more" if len(names) > _LONGEST_LIST else ""
    return ", ".join(names[:_LONGEST_LIST]) + more
