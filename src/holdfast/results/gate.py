"""The gate: rules held against intervals; a rule passes, fails or is undecided."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol

import polars as pl

from holdfast.errors import InputError

from .comparison_sides import questions_of_both
from .first_answers import BASELINE, FAMILY_AVERAGE, STUDY
from .gate_figures import (
    Figure,
    Measured,
    Row,
    bounds_at,
    challenged,
    difference,
    drop_bounds,
    further,
    matching,
    of_audit,
    of_pairs,
    pooled_difference,
    share,
    share_of_turns,
    within,
)
from .gate_rules import GATES, Rule, Rules
from .readings import check_read_alike, missing
from .runs import by_system, defence_of
from .turns import turns_table

Outcome = Literal["pass", "fail", "undecided"]

_EXACT = 1e-12
"""What rounding may take from a bound."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Verdict(Figure):
    """What became of one rule at one figure, whose interval is that at the level of the rules.

    Attributes:
        rule: the rule.
        outcome: ``pass`` where the whole interval does what the rule asks, ``fail`` where none of
            it does, else ``undecided``.
        threshold: what the figure is held against, in the same unit.
        further: of an undecided one, how many further questions would decide at the same figure;
            None where no number would.
        several: whether the model has several runs like this one, which only the id tells apart.
        unfinished: whether the run lacks questions, so that nothing is decided.
        missing: whether it would pass, but does not with missing replies counted against the
            model, so that it is undecided.
    """

    rule: Rule
    outcome: Outcome
    threshold: float
    further: int | None
    several: bool = False
    unfinished: bool = False
    missing: bool = False


def gate(turns: pl.DataFrame, rules: Rules) -> list[Verdict]:
    """Hold every rule against the figures that it is about.

    The interval decides, not the figure: it is that of the tables, at the level of the rules. A
    rule on a family is about its average, one on a technique about that technique put on its own,
    one on neither about the first answers, in each run that matches.

    A rule passes only if it passes with missing replies counted against the model too: who refuses
    or hedges has not held. Where they decide, it is undecided.

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
    studies = by_system(turns).select(STUDY).unique(maintain_order=True)
    counts = studies.group_by(STUDY[1:]).len()
    several = {row[:-1] for row in counts.iter_rows() if row[-1] > 1}
    measured: dict[tuple[str, str], Measured] = {}

    def read(source: str, frame: pl.DataFrame | None, rule: Rule, place: str) -> Measured:
        key = (source, repr((rule.strata, rule.worst)))
        if key not in measured:
            frame = turns_table([source], text=False) if frame is None else frame
            measured[key] = Measured(within(frame, rule, place), worst=rule.worst)
        return measured[key]

    def decided(rule: Rule, place: str) -> list[Verdict]:
        own = read("", turns, rule, place)
        before = read(rule.no_worse_than, None, rule, place) if rule.no_worse_than else None
        figures = (
            _of_studies(own, rule, place)
            if rule.key in GATES
            else _of_challenges(own, rule, place, before)
        )
        return [
            _verdict(
                rule, figure, rules.level,
                (figure.system, figure.dataset, figure.protocol) in several,
            )
            for figure in figures
        ]  # fmt: skip

    verdicts = []
    for number, rule in enumerate(rules.rule):
        place = rules.place(number)
        found = decided(rule, place)
        if any(one.outcome == "pass" for one in found) and not (rule.worst or rule.audited):
            against = decided(rule.model_copy(update={"missing": "worst"}), place)
            passing = {_about(one) for one in against if one.outcome == "pass"}
            found = [
                replace(one, outcome="undecided", missing=True)
                if one.outcome == "pass" and _about(one) not in passing
                else one
                for one in found
            ]
        verdicts += found
    return verdicts


def _about(verdict: Verdict) -> tuple[str, ...]:
    return (verdict.run, verdict.model, verdict.dataset, verdict.protocol, verdict.of)


def undecided_where_unfinished(
    verdicts: Sequence[Verdict], unfinished: Collection[str]
) -> list[Verdict]:
    """The verdicts, undecided on the runs (by id) that lack questions, whatever their figures."""
    return [
        replace(verdict, outcome="undecided", further=None, unfinished=True)
        if verdict.run in unfinished
        else verdict
        for verdict in verdicts
    ]


class Decided(Protocol):
    """What was decided of a rule, by an interval or question by question."""

    @property
    def outcome(self) -> Outcome:
        """What became of it."""


def overall(verdicts: Iterable[Decided]) -> Outcome:
    """``fail`` if any failed, else ``undecided`` if any is, else ``pass``."""
    outcomes = {verdict.outcome for verdict in verdicts}
    return "fail" if "fail" in outcomes else "undecided" if "undecided" in outcomes else "pass"


def _verdict(rule: Rule, figure: Figure, level: float, several: bool) -> Verdict:
    low, high = bounds_at(figure, level)
    outcome = _outcome(rule, low, high)
    more = further(figure, rule.threshold, level) if outcome == "undecided" else None
    return Verdict(
        **vars(figure) | {"low": low, "high": high},
        rule=rule,
        outcome=outcome,
        threshold=rule.threshold,
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


def _of_challenges(
    measured: Measured, rule: Rule, place: str, before: Measured | None
) -> Iterator[Figure]:
    """What a rule on challenges or first answers is about, one figure for each row."""
    for row in challenged(measured.accuracy, rule, place).iter_rows(named=True):
        own = measured.counted(rule.key, row)
        about = {**{name: row[name] for name in STUDY}, "of": of_challenge(row)}
        if rule.audited:
            yield of_audit(about, row, rule.key, measured, place)
        elif before is None:
            yield _figure(rule, row, about, own)
        else:
            yield _against(row, about, own, before, rule, place)


def _figure(rule: Rule, row: Row, about: Row, own: pl.DataFrame) -> Figure:
    """The figure of a rule, from its row of ``accuracy`` and the turns behind it."""
    known = own.filter(pl.col("first_correct").is_not_null())
    pairs = known.select("path", "question", first="first_correct", second="correct")
    match rule.key:
        case "min_accuracy":
            found = [row[name] for name in ("accuracy", "low", "high")]
            return share(about, found, own.height, own["question"].n_unique())
        case "max_flip_rate":
            return share_of_turns(about, own, own.filter("right"), pl.col("lost"))
        case "min_retention":
            return share_of_turns(about, own, own.filter("right"), pl.col("correct"))
        case "max_unparsed":
            return share_of_turns(about, own, own, missing())
        case "max_relative_drop":
            change = row["change_worst_low" if rule.worst else "relative_change"]
            return of_pairs(about, pairs, None if change is None else -change, drop_bounds)
        case _:
            return difference(about, pairs)


def _against(
    row: Row, about: Row, own: pl.DataFrame, before: Measured, rule: Rule, place: str
) -> Figure:
    """Accuracy less that of the run before, over the questions that both have."""
    source = str(rule.no_worse_than)
    same = ("protocol", "dataset", "arm", "family", "path")
    rows = before.accuracy.filter(pl.col(name).eq_missing(row[name]) for name in same)
    rows = rows.filter(pl.col("model") == row["model"]) if row["model"] in rows["model"] else rows
    alike = [defence_of(run) == defence_of(row["run"]) for run in rows["run"]]
    rows = rows.filter(alike) if any(alike) else rows
    what = f"{row['protocol']} on {row['dataset']}, {about['of']}"
    if rows.height != 1:
        several = "several runs or models" if rows.height else "nothing"
        raise InputError(
            f"{source} has {several} to compare {what} with", place, field="no_worse_than",
            remedy="Name a log dir or turns table with a single run",
        )  # fmt: skip
    other = before.behind(rows.row(0, named=True))
    study = {(row["protocol"], row["dataset"]): row["dataset"]}
    try:
        common, _ = questions_of_both(own, other, study)
    except InputError as error:
        told = f"{what}: {error.what}"
        raise InputError(told, place, field="no_worse_than", remedy=error.remedy) from None
    unlike = own.join(other, on="question", how="semi").join(common, on="question", how="anti")
    own, other = (turns.join(common, on="question", how="semi") for turns in (own, other))
    key = ["path", "question"]
    here, there = own.join(other, on=key, how="semi"), other.join(own, on=key, how="semi")
    check_read_alike({"this run": here, source: there}, place, "no_worse_than")
    # what is missing of the run before is for it, and so against this one
    hit = pl.col("correct") | (pl.lit(rule.worst) & missing())
    pairs = pl.concat(
        [here.select(*key, first="correct"), there.select(*key, second=hit)], how="diagonal"
    )
    found = difference(about, pairs, n=pairs["first"].count())
    return replace(found, left_out=unlike["question"].n_unique())


def of_challenge(row: Row) -> str:
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


def _of_studies(measured: Measured, rule: Rule, place: str) -> Iterator[Figure]:
    """What a rule on a column of a table is about, one figure for each study."""
    table, asked = GATES[rule.key]
    turns = measured.of_tables.filter(pl.col("protocol").is_in(asked.protocols))
    rows = asked.rows(table(turns), rule.k).with_columns(_of=asked.of)
    if "protocol" not in rows.columns:
        rows = rows.with_columns(protocol=pl.lit(asked.protocols[0]))
    if not rows.height:
        at = "" if rule.k is None else f" at k = {rule.k}"
        raise InputError(
            f"matches no figure{at} in these runs", place, field=rule.key,
            remedy=f"It is one of {' and '.join(asked.protocols)}",
        )  # fmt: skip
    for name in ("protocol", "dataset", "model"):
        rows = matching(rows, name, getattr(rule, name), place)
    columns = (asked.value, f"{asked.bounds}low", f"{asked.bounds}high")
    for row in rows.iter_rows(named=True):
        about = {**{name: row[name] for name in STUDY}, "of": row["_of"]}
        own = turns.filter(pl.col(name) == row[name] for name in STUDY)
        if asked.sides is not None:
            yield pooled_difference(about, asked.sides(own))
        else:
            found = [row[name] for name in columns]
            figure = share(about, found, row[asked.n], own["question"].n_unique())
            yield replace(figure, paired=asked.paired(own)) if asked.paired else figure
