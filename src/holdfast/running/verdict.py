"""Sequential verdict: batches of questions until every rule is decided."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Any

from holdfast.challenges.catalogue import load_catalogue
from holdfast.errors import IncompleteRunError, InputError, InterruptedRunError, did_you_mean
from holdfast.protocols.followup.protocol import DOCUMENT
from holdfast.results.gate_rules import Rule, Rules
from holdfast.results.sequential import (
    Looked,
    check_record,
    check_rules,
    drawn_orders,
    keep_record,
    look,
    looks,
)
from holdfast.results.turns import WrittenTurns

from .resolved import Outcome, Running
from .studies import named_args

_BUDGETS = {"call_limit": "calls", "token_limit": "tokens", "cost_limit": "cost"}


@dataclass
class Verdicts:
    """Result of a sequential verdict.

    Attributes:
        level: coverage of the confidence sequences.
        looked: results for each rule and study, in the order of the rules.
        questions: number of questions asked.
        calls: number of requests that reached a provider.
        cost: cost in dollars, from known prices.
        ended: reason for an undecided end: ``questions`` or ``budget``. Empty if all is decided.
        outcome: result of the last batch.
    """

    level: float
    looked: list[Looked] = field(default_factory=list)
    questions: int = 0
    calls: int = 0
    cost: float = 0.0
    ended: str = ""
    outcome: Outcome | None = None


def verdict(
    resolve: Callable[[Mapping[str, Any]], Running],
    rules: Rules,
    protocols: Sequence[str],
    arguments: Mapping[str, Any],
    batch_size: int,
) -> Verdicts:
    """Ask in batches, evaluate the rules after each, and stop once every rule is decided.

    A follow-up technique is asked only while a rule on it is undecided.

    Args:
        resolve: function from options to a run.
        rules: rules, fixed at the first look.
        protocols: protocols of the study.
        arguments: options of the run. ``limit`` is the maximum number of questions.
        batch_size: number of questions between two looks.

    Raises:
        InputError: a rule cannot be decided question by question, or the log directory has a
            verdict by other rules.
        IncompleteRunError: a batch could not be finished, and the budget is not the reason.
        InterruptedRunError: the user stopped it.
    """
    log_dir = str(arguments.get("log_dir") or "runs")
    # reject invalid rules before any request
    check_rules(rules)
    for place, record in looks([log_dir]).items():
        check_record(record, rules, place)
    drawn_orders([log_dir])
    arguments = dict(arguments)
    limit = arguments.pop("limit", None)
    settings = named_args(arguments.get("task_args") or ())
    if list(protocols) == ["followup"]:
        check_named(rules, settings.get("challenges"))
    if arguments.get("shuffle") is None and settings.get("shuffle") is None:
        seed = settings.get("seed", arguments.get("seed"))
        arguments["shuffle"] = 42 if seed is None else int(seed)
    left = {name: arguments[name] for name in _BUDGETS if arguments.get(name) is not None}
    verdicts = Verdicts(rules.level)
    n, open_rules, written_turns = 0, list(rules.rule), WrittenTurns()
    while True:
        asked_before, n = n, n + batch_size if limit is None else min(n + batch_size, limit)
        running = resolve({**_add_needed(arguments, protocols, open_rules), **left, "limit": n})
        outcome = replace(running, after=asked_before).run(written_turns)
        verdicts.outcome = outcome
        if outcome.interrupted:
            raise InterruptedRunError
        verdicts.calls += outcome.budget.calls
        verdicts.cost += outcome.budget.cost
        left = {name: most_left - getattr(outcome.budget, _BUDGETS[name])
                for name, most_left in left.items()}  # fmt: skip
        is_spent = any(amount <= 0 for amount in left.values())
        if outcome.unfinished and not is_spent:
            raise IncompleteRunError(outcome.unfinished)
        orders = drawn_orders([log_dir])
        verdicts.questions = max(map(len, orders.values()), default=0)
        if not verdicts.questions:
            verdicts.ended = "budget"
            return verdicts
        verdicts.looked = look(outcome.table, rules, orders)
        keep_record(log_dir, rules, verdicts.looked, stops=True)
        still = {id(result.rule) for result in verdicts.looked if result.outcome == "undecided"}
        open_rules = [rule for rule in rules.rule if id(rule) in still]
        if not open_rules:
            return verdicts
        if is_spent:
            verdicts.ended = "budget"
            return verdicts
        if verdicts.questions < n or n == limit:
            verdicts.ended = "questions"
            return verdicts


def check_named(rules: Rules, challenges: str | None) -> None:
    """Raise an error for rules on families and techniques that follow-ups do not have.

    Raises:
        InputError: a rule has an unknown name.
    """
    techniques = load_catalogue(challenges)
    names_by_kind = {
        "family": {*(technique.family for technique in techniques.values()), DOCUMENT.family},
        "technique": {*techniques, DOCUMENT.id},
    }
    for number, rule in enumerate(rules.rule):
        for name, pattern in (("family", rule.family), ("technique", rule.technique)):
            if pattern and not any(
                fnmatchcase(known_name, pattern) for known_name in names_by_kind[name]
            ):
                raise InputError(
                    f"unknown {name} '{pattern}'",
                    rules.place(number),
                    field=name,
                    remedy=did_you_mean(pattern, names_by_kind[name]),
                )


def needed(rules: Sequence[Rule], challenges: str | None) -> str:
    """Return the techniques that rules on follow-ups need, as a value of ``techniques``.

    It is ``all`` if a rule covers a chain, whose parts are asked separately too.
    """
    followup_rules = [rule for rule in rules if fnmatchcase("followup", rule.protocol or "*")]
    if any(rule.path is not None and ">" in rule.path for rule in followup_rules):
        return "all"
    names = [
        id
        for id, technique in load_catalogue(challenges).items()
        if any(
            pattern is not None and fnmatchcase(name, pattern)
            for rule in followup_rules
            for name, pattern in (
                (technique.family, rule.family),
                (id, rule.technique),
                (id, rule.path),
            )
        )
    ]
    return ",".join(names) or "none"


def _add_needed(
    arguments: Mapping[str, Any], protocols: Sequence[str], rules: Sequence[Rule]
) -> dict[str, Any]:
    """Return the options of a run with the techniques that the rules need, unless they are set."""
    args = named_args(arguments.get("task_args") or ())
    if list(protocols) == ["followup"]:
        args.setdefault("techniques", needed(rules, args.get("challenges")))
        # no rule that is decided question by question needs a control
        args.setdefault("controls", False)
    return {**arguments, "task_args": args}
