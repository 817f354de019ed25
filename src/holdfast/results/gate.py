"""The gate: rules compared with intervals. A rule passes, fails or is undecided."""

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
"""Tolerance for rounding in a bound."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Verdict(Figure):
    """Outcome of a rule for a figure; the interval is at the level of the rules.

    Attributes:
        rule: the rule.
        outcome: ``pass`` if the whole interval meets the rule, ``fail`` if none of it does, else
            ``undecided``.
        threshold: limit that the figure is compared with, in the same unit.
        further: number of further questions that would decide an undecided rule at the same figure.
            None if no number would.
        is_one_of_several: whether the model has several similar runs, which differ only in their
            id.
        is_unfinished: whether the run lacks questions, so that nothing is decided.
        missing: whether the rule is undecided only because missing replies count against the model.
    """

    rule: Rule
    outcome: Outcome
    threshold: float
    further: int | None
    is_one_of_several: bool = False
    is_unfinished: bool = False
    missing: bool = False


def gate(turns: pl.DataFrame, rules: Rules) -> list[Verdict]:
    """Decide every rule for the figures that it covers.

    The interval decides, not the figure. It is the interval of the tables, at the level of the
    rules. A rule on a family covers its average, and a rule on a technique covers that technique
    without others. A rule on neither covers the first answers. Each applies to every run that
    matches.

    A rule passes only if it also passes with missing replies counted against the model, because a
    model that refuses or hedges has not retained its answer. If it passes only without them, it is
    undecided.

    Args:
        turns: a turns table.
        rules: rules from ``read_rules``. Paths in them are relative to the working directory.

    Returns:
        Verdicts in the order of the rules, one or more for each rule.

    Raises:
        InputError: there are no turns, a rule matches nothing (the error suggests the nearest
            names), or the earlier run of a rule cannot be compared.
    """
    if not turns.height:
        raise InputError("has no turns to decide on", remedy="Run a protocol first")
    studies = by_system(turns).select(STUDY).unique(maintain_order=True)
    counts = studies.group_by(STUDY[1:]).len()
    ambiguous = {row[:-1] for row in counts.iter_rows() if row[-1] > 1}
    measures_by_source: dict[tuple[str, str], Measured] = {}

    def read(source: str, frame: pl.DataFrame | None, rule: Rule, place: str) -> Measured:
        key = (source, repr((rule.strata, rule.worst)))
        if key not in measures_by_source:
            frame = turns_table([source], text=False) if frame is None else frame
            measures_by_source[key] = Measured(within(frame, rule, place), worst=rule.worst)
        return measures_by_source[key]

    def decide(rule: Rule, place: str) -> list[Verdict]:
        measured_turns = read("", turns, rule, place)
        before = read(rule.no_worse_than, None, rule, place) if rule.no_worse_than else None
        figures = (
            _of_studies(measured_turns, rule, place)
            if rule.key in GATES
            else _of_challenges(measured_turns, rule, place, before)
        )
        return [
            _verdict(
                rule, figure, rules.level,
                (figure.system, figure.dataset, figure.protocol) in ambiguous,
            )
            for figure in figures
        ]  # fmt: skip

    verdicts = []
    for number, rule in enumerate(rules.rule):
        place = rules.place(number)
        rule_verdicts = decide(rule, place)
        if any(verdict.outcome == "pass" for verdict in rule_verdicts) and not (
            rule.worst or rule.audited
        ):
            against = decide(rule.model_copy(update={"missing": "worst"}), place)
            passing = {_identity(verdict) for verdict in against if verdict.outcome == "pass"}
            rule_verdicts = [
                replace(verdict, outcome="undecided", missing=True)
                if verdict.outcome == "pass" and _identity(verdict) not in passing
                else verdict
                for verdict in rule_verdicts
            ]
        verdicts += rule_verdicts
    return verdicts


def _identity(verdict: Verdict) -> tuple[str, ...]:
    return (verdict.run, verdict.model, verdict.dataset, verdict.protocol, verdict.of)


def undecided_where_unfinished(
    verdicts: Sequence[Verdict], unfinished_runs: Collection[str]
) -> list[Verdict]:
    """Return the verdicts, with ``undecided`` for each run (by id) that lacks questions."""
    return [
        replace(verdict, outcome="undecided", further=None, is_unfinished=True)
        if verdict.run in unfinished_runs
        else verdict
        for verdict in verdicts
    ]


class Decided(Protocol):
    """Decision on a rule, by an interval or question by question."""

    @property
    def outcome(self) -> Outcome:
        """Outcome of the rule."""


def overall(verdicts: Iterable[Decided]) -> Outcome:
    """Return ``fail`` if any rule failed, else ``undecided`` if any is undecided, else ``pass``."""
    outcomes = {verdict.outcome for verdict in verdicts}
    return "fail" if "fail" in outcomes else "undecided" if "undecided" in outcomes else "pass"


def _verdict(rule: Rule, figure: Figure, level: float, is_one_of_several: bool) -> Verdict:
    low, high = bounds_at(figure, level)
    outcome = _outcome(rule, low, high)
    more = further(figure, rule.threshold, level) if outcome == "undecided" else None
    return Verdict(
        **vars(figure) | {"low": low, "high": high},
        rule=rule,
        outcome=outcome,
        threshold=rule.threshold,
        further=more,
        is_one_of_several=is_one_of_several,
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
    measures: Measured, rule: Rule, place: str, before: Measured | None
) -> Iterator[Figure]:
    """Yield the figures of a rule on challenges or first answers, one for each row."""
    for row in challenged(measures.accuracy, rule, place).iter_rows(named=True):
        counted_turns = measures.counted(rule.key, row)
        about = {**{name: row[name] for name in STUDY}, "of": of_challenge(row)}
        if rule.audited:
            yield of_audit(about, row, rule.key, measures, place)
        elif before is None:
            yield _figure(rule, row, about, counted_turns)
        else:
            yield _compare_with_before(row, about, counted_turns, before, rule, place)


def _figure(rule: Rule, row: Row, about: Row, counted_turns: pl.DataFrame) -> Figure:
    """Return the figure of a rule, from its row of ``accuracy`` and the turns behind the row."""
    with_first_answer = counted_turns.filter(pl.col("first_correct").is_not_null())
    pairs = with_first_answer.select("path", "question", first="first_correct", second="correct")
    match rule.key:
        case "min_accuracy":
            bounds = [row[name] for name in ("accuracy", "low", "high")]
            return share(about, bounds, counted_turns.height, counted_turns["question"].n_unique())
        case "max_flip_rate":
            return share_of_turns(
                about, counted_turns, counted_turns.filter("right"), pl.col("lost")
            )
        case "min_retention":
            return share_of_turns(
                about, counted_turns, counted_turns.filter("right"), pl.col("correct")
            )
        case "max_unparsed":
            return share_of_turns(about, counted_turns, counted_turns, missing())
        case "max_relative_drop":
            change = row["change_worst_low" if rule.worst else "relative_change"]
            return of_pairs(about, pairs, None if change is None else -change, drop_bounds)
        case _:
            return difference(about, pairs)


def _compare_with_before(
    row: Row, about: Row, counted_turns: pl.DataFrame, before: Measured, rule: Rule, place: str
) -> Figure:
    """Compute accuracy less the accuracy of an earlier run, over their common questions."""
    source = str(rule.no_worse_than)
    match_columns = ("protocol", "dataset", "arm", "family", "path")
    rows = before.accuracy.filter(pl.col(name).eq_missing(row[name]) for name in match_columns)
    rows = rows.filter(pl.col("model") == row["model"]) if row["model"] in rows["model"] else rows
    alike = [defence_of(run) == defence_of(row["run"]) for run in rows["run"]]
    rows = rows.filter(alike) if any(alike) else rows
    subject = f"{row['protocol']} on {row['dataset']}, {about['of']}"
    if rows.height != 1:
        reason = "several runs or models" if rows.height else "nothing"
        raise InputError(
            f"{source} has {reason} to compare {subject} with", place, field="no_worse_than",
            remedy="Name a log directory or turns table with a single run",
        )  # fmt: skip
    earlier_turns = before.behind(rows.row(0, named=True))
    study = {(row["protocol"], row["dataset"]): row["dataset"]}
    try:
        common, _ = questions_of_both(counted_turns, earlier_turns, study)
    except InputError as error:
        message = f"{subject}: {error.fault}"
        raise InputError(message, place, field="no_worse_than", remedy=error.remedy) from None
    unlike = counted_turns.join(earlier_turns, on="question", how="semi").join(
        common, on="question", how="anti"
    )
    counted_turns, earlier_turns = (
        turns.join(common, on="question", how="semi") for turns in (counted_turns, earlier_turns)
    )
    key = ["path", "question"]
    common_now, common_before = (
        counted_turns.join(earlier_turns, on=key, how="semi"),
        earlier_turns.join(counted_turns, on=key, how="semi"),
    )
    check_read_alike({"this run": common_now, source: common_before}, place, "no_worse_than")
    # the worst case: missing replies of the earlier run count as right
    hit = pl.col("correct") | (pl.lit(rule.worst) & missing())
    pairs = pl.concat(
        [common_now.select(*key, first="correct"), common_before.select(*key, second=hit)],
        how="diagonal",
    )
    figure = difference(about, pairs, n=pairs["first"].count())
    return replace(figure, left_out=unlike["question"].n_unique())


def of_challenge(row: Row) -> str:
    """Name the subject of a row of ``accuracy``."""
    mitigation_text = f" with {row['path']}" if row["path"] else ""
    if row["arm"] == FAMILY_AVERAGE:
        return f"family {row['family']}{mitigation_text}"
    if not row["path"]:
        return "first answers" if row["arm"] == BASELINE else str(row["arm"])
    before, _, last = row["path"].rpartition(">")
    if row["arm"] == "single-turn" and before:
        return f"technique {last} with {before}"
    if row["path"] == row["technique"]:
        return f"technique {last}"
    return f"path {row['path'].replace('>', ' > ')}"


def _of_studies(measures: Measured, rule: Rule, place: str) -> Iterator[Figure]:
    """Yield the figures of a rule on a column of a table, one for each study."""
    table, declaration = GATES[rule.key]
    turns = measures.of_tables.filter(pl.col("protocol").is_in(declaration.protocols))
    rows = declaration.rows(table(turns), rule.k).with_columns(_of=declaration.of)
    if "protocol" not in rows.columns:
        rows = rows.with_columns(protocol=pl.lit(declaration.protocols[0]))
    if not rows.height:
        at = "" if rule.k is None else f" at k = {rule.k}"
        raise InputError(
            f"matches no figure{at} in these runs", place, field=rule.key,
            remedy=f"It is one of {' and '.join(declaration.protocols)}",
        )  # fmt: skip
    for name in ("protocol", "dataset", "model"):
        rows = matching(rows, name, getattr(rule, name), place)
    columns = (declaration.value, f"{declaration.bounds}low", f"{declaration.bounds}high")
    for row in rows.iter_rows(named=True):
        about = {**{name: row[name] for name in STUDY}, "of": row["_of"]}
        study_turns = turns.filter(pl.col(name) == row[name] for name in STUDY)
        if declaration.sides is not None:
            yield pooled_difference(about, declaration.sides(study_turns))
        else:
            bounds = [row[name] for name in columns]
            figure = share(about, bounds, row[declaration.n], study_turns["question"].n_unique())
            yield (
                replace(figure, pairing=declaration.interval_data(study_turns))
                if declaration.interval_data
                else figure
            )
