"""The gate: rules held against intervals; a rule passes, fails or is undecided."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import polars as pl

from holdfast.errors import InputError

from .first_answers import STUDY
from .gate_challenges import of_challenges
from .gate_figure import Figure, bounds_at, further
from .gate_rows import Measured, within
from .gate_rules import Rule, Rules
from .gate_studies import OF_STUDIES, of_studies
from .turns import turns_table

Outcome = Literal["pass", "fail", "undecided"]

_EXACT = 1e-12
"""What rounding may take from a bound."""


@dataclass(frozen=True)
class Verdict:
    """What became of one rule at one figure.

    Attributes:
        rule: the rule.
        outcome: ``pass`` where the whole interval does what the rule asks, ``fail`` where none of
            it does, else ``undecided``.
        run: id of the run.
        model: its model.
        dataset: its data set.
        protocol: its protocol.
        of: what of the run the figure is of.
        value: the figure, a share; None where there is none.
        low: lower bound at the level of the rules, None where there is no interval.
        high: upper bound.
        threshold: what it is held against, in the same unit.
        n: trials that it is of.
        questions: questions asked for them.
        further: of an undecided one, how many further questions would decide at the same figure;
            None where no number would.
        several: whether the model has several runs like this one, which only the id tells apart.
        unfinished: whether the run lacks questions, so that nothing is decided.
    """

    rule: Rule
    outcome: Outcome
    run: str
    model: str
    dataset: str
    protocol: str
    of: str
    value: float | None
    low: float | None
    high: float | None
    threshold: float
    n: int
    questions: int
    further: int | None
    several: bool = False
    unfinished: bool = False


def gate(turns: pl.DataFrame, rules: Rules) -> list[Verdict]:
    """Hold every rule against the figures that it is about.

    The interval decides, not the figure: it is that of the tables, at the level of the rules. A
    rule on a family is about its average, one on a technique about that technique put on its own,
    one on neither about the first answers, in each run that matches.

    Args:
        turns: a turns table.
        rules: from ``read_rules``; paths in them are relative to the working directory.

    Returns:
        Verdicts in the order of the rules, one or more for each.

    Raises:
        InputError: there are no turns, a rule is about nothing that is there (the nearest names
            are offered), or what it compares with cannot be used.
    """
    if not turns.height:
        raise InputError("holds no turns: nothing to decide on", remedy="Run a protocol first")
    studies = turns.select(STUDY).unique(maintain_order=True)
    counts = studies.group_by(STUDY[1:]).len()
    several = {row[:-1] for row in counts.iter_rows() if row[-1] > 1}
    measured: dict[tuple[str, str], Measured] = {}

    def read(source: str, frame: pl.DataFrame | None, rule: Rule, place: str) -> Measured:
        key = (source, repr(rule.strata))
        if key not in measured:
            frame = turns_table([source], text=False) if frame is None else frame
            measured[key] = Measured(within(frame, rule, place))
        return measured[key]

    verdicts = []
    for number, rule in enumerate(rules.rule):
        place = rules.place(number)
        own = read("", turns, rule, place)
        before = read(rule.no_worse_than, None, rule, place) if rule.no_worse_than else None
        found = (
            of_studies(own, rule, place)
            if rule.key in OF_STUDIES
            else of_challenges(own, rule, place, before)
        )
        for figure in found:
            study = tuple(figure.study[name] for name in STUDY[1:])
            verdicts.append(_verdict(rule, figure, rules.level, study in several))
    return verdicts


def undecided_where_unfinished(
    verdicts: Sequence[Verdict], unfinished: Collection[str]
) -> list[Verdict]:
    """The verdicts, those on runs that lack questions undecided, whatever their figures.

    Args:
        verdicts: of a gate.
        unfinished: ids of such runs.
    """
    return [
        replace(verdict, outcome="undecided", further=None, unfinished=True)
        if verdict.run in unfinished
        else verdict
        for verdict in verdicts
    ]


def overall(verdicts: Sequence[Verdict]) -> Outcome:
    """``fail`` if any failed, else ``undecided`` if any is, else ``pass``."""
    outcomes = {verdict.outcome for verdict in verdicts}
    return "fail" if "fail" in outcomes else "undecided" if "undecided" in outcomes else "pass"


def _verdict(rule: Rule, figure: Figure, level: float, several: bool) -> Verdict:
    low, high = bounds_at(figure, level)
    outcome = _outcome(rule, low, high)
    more = further(figure, rule.threshold, level) if outcome == "undecided" else None
    return Verdict(
        rule=rule,
        outcome=outcome,
        **figure.study,
        of=figure.of,
        value=figure.value,
        low=low,
        high=high,
        threshold=rule.threshold,
        n=figure.n,
        questions=figure.questions,
        further=more,
        several=several,
    )


def _outcome(rule: Rule, low: float | None, high: float | None) -> Outcome:
    if low is None or high is None:
        return "undecided"
    at = rule.threshold
    if rule.condition.sense == "most":
        low, high, at = -high, -low, -at
    if low >= at - _EXACT:
        return "pass"
    return "fail" if high < at - _EXACT else "undecided"
