"""A run in shards: the questions are dealt to processes that write into one log dir."""

import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from rich.text import Text

from holdfast.challenges import GENERATE
from holdfast.dialogue import Budget
from holdfast.errors import HoldfastError, InputError, InterruptedRunError, counted, printable
from holdfast.results import write_turns

from .evaluating import missing_told, progress, shortfall, without_damaged
from .labels import keep_labels
from .log_dir_lock import holding
from .outcome import Outcome
from .resolving import resolved
from .running import Running
from .shard import WHOLE, Shard
from .shard_lock import check_shards_free, holding_shard

TRIES = 3
"""Times that a shard is put whose process is lost."""


@dataclass(frozen=True)
class Report:
    """What a shard's process has to tell at its end.

    Attributes:
        shard: which.
        calls: requests that reached a provider.
        cached: requests that the cache answered.
        tokens: input and output tokens.
        cost: US dollars.
        estimated: calls whose tokens are estimated.
        missing: questions that are not finished.
        reasons: why, with their numbers.
    """

    shard: Shard
    calls: int = 0
    cached: int = 0
    tokens: int = 0
    cost: float = 0.0
    estimated: int = 0
    missing: int = 0
    reasons: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, shard: Shard, budget: Budget) -> "Report":
        """What a shard has spent so far."""
        return cls(shard, budget.calls, budget.cached, budget.tokens, budget.cost, budget.estimated)

    @property
    def unfinished(self) -> str:
        """What is missing, in words; empty when nothing is."""
        return missing_told(self.missing, Counter(self.reasons))

    def print(self, *, as_json: bool) -> None:
        """To standard output, for people or for machines."""
        if as_json:
            told = asdict(self) | {"shard": str(self.shard), "complete": not self.missing}
            sys.stdout.write(json.dumps(told, indent=2, ensure_ascii=False) + "\n")
        else:
            sys.stdout.write(f"{self}\n")

    def plus(self, more: "Report") -> "Report":
        """What a later process over the same shard tells, with what this one has spent."""
        return replace(
            more,
            calls=self.calls + more.calls,
            cached=self.cached + more.cached,
            tokens=self.tokens + more.tokens,
            cost=self.cost + more.cost,
            estimated=self.estimated + more.estimated,
        )

    def __str__(self) -> str:
        """One line."""
        spent = f"{counted(self.calls, 'call')}, {self.cached} from the cache"
        left = f", {counted(self.missing, 'question')} unfinished" if self.missing else ""
        return f"Shard {self.shard} done: {spent}{left}"


@dataclass(frozen=True)
class Lost:
    """A shard whose process ended without a word.

    Attributes:
        shard: which.
        how: what is known of its end.
        again: whether it is put again.
    """

    shard: Shard
    how: str
    again: bool = False

    def __str__(self) -> str:
        """One line."""
        told = f"Shard {self.shard} was lost ({self.how})"
        return f"{told}; it goes on in another process" if self.again else told


Put = Callable[
    [Mapping[str, Any], Sequence[Shard], int, Callable[[Report], None]],
    Iterator[Report | Lost | HoldfastError],
]
"""Puts shards to processes: options, shards, tries, what to call on progress; their ends."""


def put(
    running: Running,
    shard: Shard,
    *,
    on_turn: Callable[[Budget], None] | None = None,
    alone: bool = True,
) -> Report:
    """Ask a shard's questions in this process, or go on with them.

    Args:
        running: the whole run.
        shard: which of its questions.
        on_turn: called after every answered request, instead of drawing progress.
        alone: whether no other process has made what a generator is to make, and keeps the log
            dir meanwhile.

    Raises:
        InputError: as ``Running.run``, or a generator's work is not there.
        InterruptedRunError: the user stopped it.
    """
    if alone:
        _check_inputs_there(running)
    budget = shard.budget(running.budget())
    with holding_shard(running.log_dir, shard, alone=alone):
        evaluation = running.evaluation(running.with_inputs_there(), budget)
        logs = replace(evaluation, shard=shard, on_turn=on_turn).run()
    if any(log.status == "cancelled" for log in logs):
        raise InterruptedRunError
    missing, reasons = shortfall(logs)
    return replace(Report.of(shard, budget), missing=missing, reasons=dict(reasons))


def put_apart(
    given: Mapping[str, Any], shard: Shard, on_turn: Callable[[Budget], None] | None = None
) -> Report | HoldfastError:
    """The same in a process that another one has started for it: a report, or what went wrong."""
    try:
        return put(resolved(given), shard, on_turn=on_turn, alone=False)
    except HoldfastError as error:
        return error


def _check_inputs_there(running: Running) -> None:
    for study in running.studies:
        for setting, name in study.protocol.generated.items():
            if study.args.get(setting) == GENERATE and study.study.needs(setting):
                raise InputError(
                    f"cannot generate {name}, which all shards need",
                    field="--shard",
                    remedy=f"Make a file with 'holdfast {name} build', and give that",
                )


@dataclass(frozen=True)
class Sharding:
    """A run about to be made in shards.

    Attributes:
        running: the run.
        given: its options, with which each process resolves it for itself.
        shards: into how many.
        ray: address of a Ray cluster; None for processes on this machine.
    """

    running: Running
    given: Mapping[str, Any]
    shards: int
    ray: str | None = None

    def run(self) -> Outcome:
        """Make the run, or go on with it; a lost process's shard is put again.

        Under a budget it is not: what it has spent is not known.

        Raises:
            InputError: as ``Running.run``.
            IncompleteRunError: contexts or wrong options could not be finished.
        """
        running = self.running
        put = self._put()
        budget, labels = running.budget(), running.labels_read()  # as in Running.run
        with holding(running.log_dir):
            check_shards_free(running.log_dir)
            without_damaged(running.log_dir)
            studies, prepared = running.with_inputs(budget)
            evaluation = running.evaluation(studies, budget)
            total = evaluation.generations(list(evaluation.rests(WHOLE)))
            evaluation.probe()
            ends: list[Report | Lost] = []
            interrupted = False
            try:
                ends = self._ends(put, budget, total)
            except InterruptedRunError:
                interrupted = True
            keep_labels(labels, running.log_dir)
            turns = write_turns(running.log_dir, text=running.text)
            reasons: Counter[str] = Counter()
            for end in ends:
                reasons.update({str(end): 1} if isinstance(end, Lost) else end.reasons)
            left = sum(len(rest.places) for rest in evaluation.rests(WHOLE))
            told = missing_told(left, reasons)
            outcome = running.outcome(studies, budget, prepared, turns, told)
            return replace(outcome, interrupted=interrupted)

    def _ends(self, put: Put, budget: Budget, total: int) -> list[Report | Lost]:
        """Put all shards; what they spend is added to the budget."""
        ends: list[Report | Lost] = []
        wrong: list[HoldfastError] = []
        spent: dict[Shard, Report] = {}
        before = replace(budget)

        def advance(report: Report) -> None:
            spent[report.shard] = report
            for name in ("calls", "cached", "tokens", "cost", "estimated"):
                of_shards = sum(getattr(one, name) for one in spent.values())
                setattr(budget, name, getattr(before, name) + of_shards)
            if budget.on_turn:
                budget.on_turn(budget)

        limited = [budget.max_calls, budget.max_tokens, budget.max_cost]
        tries = TRIES if limited == [None, None, None] else 1
        # standard output is for results alone, and Ray speaks on it
        with redirect_stdout(sys.stderr), progress(budget, total) as drawn:
            for end in put(self._left(budget), Shard.all(self.shards), tries, advance):
                if isinstance(end, HoldfastError):
                    wrong.append(end)
                    continue
                if isinstance(end, Report):
                    advance(end)
                if isinstance(end, Report) or not end.again:
                    ends.append(end)
                drawn.console.print(Text(printable(str(end))), soft_wrap=True)
        if wrong:
            raise wrong[0]
        return ends

    def _left(self, budget: Budget) -> dict[str, Any]:
        """The options, with what preparing has left of the budget."""
        left = dict(self.given)
        for name, used in (("calls", budget.calls), ("tokens", budget.tokens)):
            if left[f"max_{name}"] is not None:
                left[f"max_{name}"] = max(0, left[f"max_{name}"] - used)
        if left["max_cost"] is not None:
            left["max_cost"] = max(0.0, left["max_cost"] - budget.cost)
        return left

    def _put(self) -> Put:
        if self.ray is None:
            from .shard_processes import put_on_this_machine

            return put_on_this_machine
        from functools import partial

        from .shard_ray import check_installed, put_on_ray

        check_installed()
        return partial(put_on_ray, self.ray)
