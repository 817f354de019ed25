"""The gate: rules held against intervals; a rule passes, fails or is undecided."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import polars as pl

from holdfast.errors import InputError

from .first_answers import BASELINE, FAMILY_AVERAGE, STUDY
from .gate_figures import (
    Figure,
    Measured,
    Row,
    bounds_at,
    challenged,
    difference,
    further,
    known,
    matching,
    relative_drop,
    within,
)
from .gate_rules import GATES, Rule, Rules
from .inference import with_bounds
from .readings import check_read_alike
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
        raise InputError("has no turns to decide on", remedy="Run a protocol first")
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
            if rule.key in GATES
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


def of_challenges(
    measured: Measured, rule: Rule, place: str, before: Measured | None
) -> list[Figure]:
    """What a rule on challenges or first answers is about, one figure for each row."""
    found = []
    for row in challenged(measured.accuracy, rule, place).iter_rows(named=True):
        own = measured.behind(row)
        if before is None:
            found.append(_CHALLENGED[rule.key](row, own, rule.threshold))
        else:
            found.append(_against(row, own, before, str(rule.no_worse_than), place))
    return found


def _accuracy(row: Row, own: pl.DataFrame, threshold: float) -> Figure:
    return _figure(row, own, row["accuracy"], row["low"], row["high"])


def _relative_drop(row: Row, own: pl.DataFrame, threshold: float) -> Figure:
    change = row["relative_change"]
    return relative_drop(
        _study(row), _of(row), _first_and_own(own), None if change is None else -change
    )


def _drop(row: Row, own: pl.DataFrame, threshold: float) -> Figure:
    return difference(_study(row), _of(row), _first_and_own(own))


def _first_and_own(own: pl.DataFrame) -> pl.DataFrame:
    own = own.filter(pl.col("first_correct").is_not_null())
    return own.select("path", "question", first="first_correct", second="correct")


def _flip_rate(row: Row, own: pl.DataFrame, threshold: float) -> Figure:
    right = own.filter(pl.col("first_correct"))
    lost = (pl.col("status") == "parsed") & ~pl.col("correct")
    return _share(row, own, right.with_columns(lost.alias("_hit")))


def _unparsed(row: Row, own: pl.DataFrame, threshold: float) -> Figure:
    return _share(row, own, own.with_columns((pl.col("status") != "parsed").alias("_hit")))


_CHALLENGED: Mapping[str, Callable[[Row, pl.DataFrame, float], Figure]] = {
    "min_accuracy": _accuracy,
    "max_relative_drop": _relative_drop,
    "max_drop_points": _drop,
    "max_flip_rate": _flip_rate,
    "max_unparsed": _unparsed,
}


def _share(row: Row, own: pl.DataFrame, trials: pl.DataFrame) -> Figure:
    """A share of trials, of a family the mean of its techniques' shares."""
    shares = trials.group_by("path").agg(pl.col("_hit").mean())["_hit"].sort()
    only = pl.DataFrame({"_row": [0], "_share": [shares.mean()]}, {"_row": int, "_share": float})
    bounds = with_bounds(only, trials.with_columns(_row=0), ["_row"], "_share", "_hit")
    value, low, high = bounds.select("_share", "low", "high").row(0)
    return _figure(row, own, value, low, high, n=trials.height)


def _against(row: Row, own: pl.DataFrame, before: Measured, source: str, place: str) -> Figure:
    """Accuracy less that of the run before, over the questions that both have."""
    same = ("protocol", "dataset", "arm", "family", "path")
    rows = before.accuracy.filter(pl.col(name).eq_missing(row[name]) for name in same)
    rows = rows.filter(pl.col("model") == row["model"]) if row["model"] in rows["model"] else rows
    what = f"{row['protocol']} on {row['dataset']}, {_of(row)}"
    if rows.height != 1:
        several = "several runs or models" if rows.height else "nothing"
        raise InputError(
            f"{source} has {several} to compare {what} with", place, field="no_worse_than",
            remedy="Name a log dir or turns table with a single run",
        )  # fmt: skip
    other = before.behind(rows.row(0, named=True))
    key = ["path", "question"]
    here, there = own.join(other, on=key, how="semi"), other.join(own, on=key, how="semi")
    check_read_alike({"this run": here, source: there}, place, "no_worse_than")
    pairs = pl.concat(
        [here.select(*key, first="correct"), there.select(*key, second="correct")], how="diagonal"
    )
    if not pairs.height:
        raise InputError(
            f"{source} has no question in common, {what}", place, field="no_worse_than",
            remedy="Ask the same questions in both runs",
        )  # fmt: skip
    return difference(_study(row), _of(row), pairs, n=pairs["first"].count())


def _figure(
    row: Row,
    own: pl.DataFrame,
    value: float | None,
    low: float | None,
    high: float | None,
    n: int | None = None,
) -> Figure:
    n = own.height if n is None else n
    bounds = known(value), known(low), known(high)
    return Figure(_study(row), _of(row), *bounds, n, own["question"].n_unique())


def _study(row: Row) -> Row:
    return {name: row[name] for name in STUDY}


def _of(row: Row) -> str:
    """What a row of ``accuracy`` is of."""
    mitigated = f" with {row['path']}" if row["path"] else ""
    if row["arm"] == FAMILY_AVERAGE:
        return f"family {row['family']}{mitigated}"
    if not row["path"]:
        return "first answers" if row["arm"] == BASELINE else str(row["arm"])
    before, _, last = row["path"].rpartition(">")
    if row["arm"] == "single-turn" and before:
        return f"technique {last} with {before}"
    if row["path"] == row["technique"]:
        return f"technique {last}"
    return f"path {row['path'].replace('>', ' > ')}"


def of_studies(measured: Measured, rule: Rule, place: str) -> list[Figure]:
    """What a rule on a protocol's own figure is about, one figure for each study."""
    table, asked = GATES[rule.key]
    rows = asked.rows(table(measured.turns), rule.k)
    rows = rows.with_columns(protocol=pl.lit(asked.protocol), _of=asked.of)
    if not rows.height:
        at = "" if rule.k is None else f" at k = {rule.k}"
        raise InputError(
            f"matches no figure{at} in these runs", place, field=rule.key,
            remedy=f"It is one of {asked.protocol}",
        )  # fmt: skip
    for name in ("protocol", "dataset", "model"):
        rows = matching(rows, name, getattr(rule, name), place)
    found = []
    for row in rows.iter_rows(named=True):
        study = {name: row[name] for name in STUDY}
        own = measured.turns.filter(pl.col(name) == row[name] for name in STUDY)
        if asked.sides is not None:
            found.append(difference(study, row["_of"], asked.sides(own)))
            continue
        ends = (f"{asked.bounds}{end}" for end in ("low", "high"))
        value, low, high = (known(row[name]) for name in (asked.value, *ends))
        questions = own["question"].n_unique()
        found.append(Figure(study, row["_of"], value, low, high, row[asked.n], questions))
    return found
