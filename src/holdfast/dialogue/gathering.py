"""Branches side by side: one that fails lets its siblings finish."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio
from anyio.abc import TaskGroup

from holdfast.errors import BudgetExceededError, HoldfastError

from .sitting import branch as span_of

_LONGEST_LIST = 3
"""Names of branches that failed alike, in a message."""


class BranchesFailedError(HoldfastError):
    """Some branches could not be finished; the question is errored and can be resumed."""


@dataclass
class Branches:
    """Starts branches; their failures are kept until all have ended."""

    group: TaskGroup
    failures: list[tuple[str, Exception]] = field(default_factory=list)

    def start(self, name: str, branch: Callable[..., Awaitable[Any]], *args: Any) -> None:
        """Run ``branch(*args)`` beside the others, in a log span of that name."""

        async def run() -> None:
            try:
                async with span_of(name):
                    await branch(*args)
            except Exception as error:
                self.failures.append((name, error))

        self.group.start_soon(run)


@asynccontextmanager
async def gather() -> AsyncIterator[Branches]:
    """Wait for every branch started inside, then raise once for those that failed.

    Raises:
        BudgetExceededError: the budget was spent in one of them.
        BranchesFailedError: any other failure, with every branch's reason.
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
        if not isinstance(error, BranchesFailedError):  # that one names its own branches
            names.append(name)
    reasons_by_name = (
        f"{_join_names(names)}: {why}" if names else why for why, names in reasons.items()
    )
    raise BranchesFailedError("; ".join(reasons_by_name)) from branches.failures[0][1]


def _join_names(names: Sequence[str]) -> str:
    more = f" and {len(names) - _LONGEST_LIST} more" if len(names) > _LONGEST_LIST else ""
    return ", ".join(names[:_LONGEST_LIST]) + more
