"""Sequential verdicts: each rule is decided as soon as the questions asked so far decide it.

If you look at a fixed interval repeatedly, a model at the limit passes in 10 to 12% of studies. A
bet against the limit, question by question, avoids this. For a model at the limit, it grows 40-fold
with a probability of at most 1 in 40, however often you look (Howard et al., 2021; Waudby-Smith and
Ramdas, 2024). The questions must be asked in random order.
"""

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from holdfast.errors import InputError
from holdfast.stats.intervals import Floats

from .first_answers import BASELINE, STUDY
from .gate import Outcome, of_challenge
from .gate_figures import OF_RIGHT, Measured, challenged, within
from .gate_rules import GATES, Rule, Rules, rules_of
from .readings import missing
from .records import finished_orders, read_from_log_dir, run_records, write_to_log_dir
from .runs import system_of

_STAKES = np.geomspace(0.03, 0.8, 20)
"""Stakes, as fractions of the largest bet that one question cannot lose; they share the capital."""

_GRID = np.linspace(0.0, 1.0, 401)
"""Grid of limits for confidence sequences, as fractions of the range."""


@dataclass(frozen=True, eq=False)
class Looked:
    """Evidence on a rule from the first questions of a run.

    Attributes:
        rule: the rule.
        run: id of the run.
        model: model of the run.
        dataset: data set of the run.
        protocol: protocol of the run.
        of: subject of the rule in the run.
        outcome: ``pass``, ``fail`` or ``undecided``.
        at: number of questions, in their order, that decided the rule. None while undecided.
        questions: number of questions examined, in their order and without a gap.
        n: number of these that count. A flip rate counts questions right at first.
        value: the figure over them, None if undefined.
        low: lower bound of the confidence sequence, at the level of the rules.
        high: upper bound.
        further: approximate number of further questions that would decide an undecided rule, if
            their answers resemble the previous ones. None if no number would.
    """

    rule: Rule
    run: str
    model: str
    dataset: str
    protocol: str
    of: str
    outcome: Outcome
    at: int | None
    questions: int
    n: int
    value: float | None
    low: float
    high: float
    further: int | None = None

    @property
    def system(self) -> str:
        """The model, with the defence that wraps it."""
        return system_of(vars(self))


def look(turns: pl.DataFrame, rules: Rules, orders: Mapping[str, Sequence[str]]) -> list[Looked]:
    """Evaluate every rule over the questions asked so far, in their order.

    Each question has one value. A share counts as it is, and a drop in points as first less second.
    A relative drop r counts as (1 - r) first less second, with limit 0. A flip rate r counts as
    flips less r times the right first answers, with limit 0. Techniques of a family and epochs are
    averaged. Questions without the rule's challenge, because they lack a context or the rule was
    decided, do not count.

    A rule passes if a bet against its limit from the wrong side has grown 1 / alpha-fold at any
    question, with alpha = (1 - level) / 2. It fails if a bet from the right side has grown m /
    alpha-fold, where m is the number of verdicts. The probability that any verdict fails by chance,
    or that a verdict passes by chance, is then at most alpha at all times.

    Args:
        turns: a turns table.
        rules: rules from ``read_rules``.
        orders: questions of each run to examine, from ``drawn_orders``.

    Raises:
        InputError: a rule matches nothing, or cannot be decided question by question.
    """
    check_rules(rules)
    rule_turns: list[tuple[Rule, dict[str, str], pl.DataFrame]] = []
    for number, rule in enumerate(rules.rule):
        place = rules.place(number)
        measures = Measured(within(turns, rule, place), worst=rule.worst)
        for row in challenged(measures.accuracy, rule, place).iter_rows(named=True):
            about = {name: row[name] for name in STUDY} | {"of": of_challenge(row)}
            rule_turns.append((rule, about, measures.counted(rule.key, row)))
    return [
        _look_at_rule(
            rule, about, study_rows, orders.get(about["run"], ()), rules.level, len(rule_turns)
        )
        for rule, about, study_rows in rule_turns
    ]


def check_rules(rules: Rules) -> None:
    """Raise an error for rules that cannot be decided question by question."""
    for number, rule in enumerate(rules.rule):
        if rule.key in GATES or rule.key == "no_worse_than" or rule.audited:
            field = "audited" if rule.audited else rule.key
            raise InputError(
                "cannot be decided question by question", rules.place(number), field=field,
                remedy="Decide the rule with holdfast gate, over a complete run",
            )  # fmt: skip


def _look_at_rule(
    rule: Rule,
    about: Mapping[str, str],
    study_rows: pl.DataFrame,
    order: Sequence[str],
    level: float,
    verdicts: int,
) -> Looked:
    asked_counts, first, second = _sides(rule.key, study_rows, order)
    alpha = (1 - level) / 2
    paths = {
        sense: growth(*scaled(rule.key, first, second, rule.threshold), up=sense == "least")
        for sense in ("least", "most")
    }
    passes, fails = paths[rule.condition.sense], paths[_OPPOSITE_SENSE[rule.condition.sense]]
    at = {
        "pass": _find_crossing(passes, 1 / alpha),
        "fail": _find_crossing(fails, verdicts / alpha),
    }
    outcome: Outcome = "undecided"
    known_counts = {name: number for name, number in at.items() if number is not None}
    if known_counts:
        outcome = (
            "pass"
            if known_counts.get("pass", math.inf) < known_counts.get("fail", math.inf)
            else "fail"
        )
    low, high = sequence(rule.key, first, second, alpha)
    place = None if outcome == "undecided" else int(asked_counts[known_counts[outcome]]) + 1
    questions = int(asked_counts[-1]) + 1 if len(asked_counts) else 0
    further = None
    if outcome == "undecided" and len(asked_counts):
        more = _further_questions(rule, first, second, alpha, verdicts)
        further = None if more is None else math.ceil(more * questions / len(asked_counts))
    return Looked(
        rule, **about, outcome=outcome, at=place, questions=questions, n=len(first),
        value=_value(rule.key, first, second), low=low, high=high, further=further,
    )  # fmt: skip


_MOST_QUESTIONS = 100_000
"""Number of questions after which an undecided rule counts as never decided."""


def _further_questions(
    rule: Rule, first: Floats, second: Floats, alpha: float, verdicts: int
) -> int | None:
    """Return the number of further questions until a bet decides, if the answers so far repeat."""
    times = -(-_MOST_QUESTIONS // len(first))
    first_side, second_side = (np.tile(side, times) for side in (first, second))
    sense = rule.condition.sense
    ends = [
        _find_crossing(
            growth(*scaled(rule.key, first_side, second_side, rule.threshold), up=way == "least"),
            bound / alpha,
        )
        for way, bound in ((sense, 1), (_OPPOSITE_SENSE[sense], verdicts))
    ]
    known_ends = [end for end in ends if end is not None]
    return min(known_ends) + 1 - len(first) if known_ends else None


_OPPOSITE_SENSE = {"least": "most", "most": "least"}


def _find_crossing(capital: Floats, bound: float) -> int | None:
    crossings = np.flatnonzero(capital >= math.log(bound))
    return int(crossings[0]) if len(crossings) else None


def _sides(
    key: str, study_rows: pl.DataFrame, order: Sequence[str]
) -> tuple[Floats, Floats, Floats]:
    """Return the position of each question that counts, and its values: both sides, or a share.

    Values average all paths of the turns, so a question that lacks a path does not count.
    """
    has_both = pl.col("first_correct").is_not_null()
    sides: dict[str, tuple[pl.Expr, pl.Expr, pl.Expr]] = {
        "min_accuracy": (pl.col("correct"), pl.lit(0), pl.lit(value=True)),
        "max_unparsed": (missing(), pl.lit(0), pl.lit(value=True)),
        "max_flip_rate": (pl.col("lost") & pl.col("right"), pl.col("right"), has_both),
        "min_retention": (pl.col("correct") & pl.col("right"), pl.col("right"), has_both),
    }
    first, second, counts = sides.get(key, (pl.col("first_correct"), pl.col("correct"), has_both))
    paths = study_rows["path"].n_unique()
    by_question = study_rows.group_by("question").agg(
        _paths=pl.col("path").n_unique(),
        _first=first.cast(pl.Float64).filter(counts.fill_null(value=False)).mean(),
        _second=second.cast(pl.Float64).filter(counts.fill_null(value=False)).mean(),
    )
    sums_by_question = {row[0]: row[1:] for row in by_question.iter_rows()}
    values = []
    for place, question in enumerate(order):
        asked_count, first_sum, second_sum = sums_by_question.get(question, (0, None, None))
        # a question that was never right has no information on flips
        if (
            asked_count == paths
            and first_sum is not None
            and not (key in OF_RIGHT and second_sum == 0)
        ):
            values.append((place, first_sum, second_sum))
    table = np.array(values, np.float64).reshape(-1, 3)
    return table[:, 0], table[:, 1], table[:, 2]


def scaled(key: str, first: Floats, second: Floats, limit: float) -> tuple[Floats, float]:
    """Return a number of 0 to 1 for each question, and the mean of these at the limit."""
    if key == "max_relative_drop":
        return ((1 - limit) * first - second + 1) / (2 - limit), 1 / (2 - limit)
    if key == "max_drop_points":
        return (first - second + 1) / 2, (limit + 1) / 2
    if key in OF_RIGHT:
        return first - limit * second + limit, limit
    return first, limit


def _value(key: str, first: Floats, second: Floats) -> float | None:
    if not len(first):
        return None
    if key == "max_relative_drop":
        return None if first.sum() == 0 else float(1 - second.sum() / first.sum())
    if key in OF_RIGHT:
        return float(first.sum() / second.sum())
    return float((first - second).mean())


def growth(values: Floats, limit: float, *, up: bool) -> Floats:
    """Return the logarithm of the capital of a bet against a mean at the limit, after each value.

    The capital is divided among bets of fixed size, equally spaced on a log scale. If the mean is
    at the limit or beyond it, the capital ever grows 1 / alpha-fold with a probability of at most
    alpha (Ville's inequality).

    Args:
        values: numbers from 0 to 1 in the order of the questions, shape (n,).
        limit: limit of the mean, 0 to 1.
        up: whether to bet on a mean above the limit, or below it.

    Returns:
        Logarithms of the capital, shape (n,).
    """
    room = limit if up else 1 - limit
    # at the end of the range, one value that differs decides
    stakes = _STAKES[:, None] / max(room, 1e-6)
    gains = np.log1p(stakes * ((values - limit) if up else (limit - values))[None, :])
    capital = np.cumsum(gains, axis=1)
    maximum = capital.max(axis=0, initial=-math.inf)
    return np.asarray(maximum + np.log(np.exp(capital - maximum).mean(axis=0)))


def sequence(key: str, first: Floats, second: Floats, alpha: float) -> tuple[float, float]:
    """Compute the confidence sequence of a figure: the limits that no bet has ever rejected.

    Args:
        key: key of the rule.
        first: first side by question, or the share itself, shape (n,).
        second: second side.
        alpha: error probability of each end, at all times.

    Returns:
        Lowest and highest remaining limit; the whole range before the first question.
    """
    lower, upper = (-1.0, 1.0) if key in ("max_relative_drop", "max_drop_points") else (0.0, 1.0)
    limits = lower + (upper - lower) * _GRID
    bound = math.log(1 / alpha)

    def refuted(limit: float, *, up: bool) -> bool:
        values, at = scaled(key, first, second, limit)
        return bool(len(values)) and float(growth(values, at, up=up).max()) >= bound

    def last(limits: Floats, *, up: bool) -> float:
        """Return the last rejected limit from one end, moved one step inwards."""
        low, high = 0, len(limits)
        while low < high:  # rejected limits come first
            middle = (low + high) // 2
            if refuted(float(limits[middle]), up=up):
                low = middle + 1
            else:
                high = middle
        return float(limits[max(low - 1, 0)])

    return last(limits, up=True), last(limits[::-1], up=False)


RECORD_FILE = "verdict.json"
"""Name of the file that records the looks in a log directory."""


def looks(sources: Iterable[str]) -> dict[str, Mapping[str, Any]]:
    """Return the look records of log directories, by directory.

    A log or a turns table has the record of its folder.
    """
    texts = {place: read_from_log_dir(place, RECORD_FILE) for place in places(sources)}
    return {place: _record(text, place) for place, text in texts.items() if text is not None}


def places(sources: Iterable[str]) -> list[str]:
    """Return the distinct log directories of the sources; a log or table stands for its folder."""
    question_places = dict.fromkeys(
        (source.rpartition("/")[0] or ".") if source.endswith((".parquet", ".eval")) else source
        for source in sources
    )
    return list(question_places)


def stopped(sources: Iterable[str]) -> dict[str, Mapping[str, Any]]:
    """Select the records of runs that stopped once their rules were decided."""
    return {place: record for place, record in looks(sources).items() if record["stops"]}


def _record(text: str, place: str) -> Mapping[str, Any]:
    with suppress(ValueError):
        record = json.loads(text)
        if isinstance(record, dict) and isinstance(record.get("rules"), dict) and "stops" in record:
            return record
    raise InputError(
        "its stopping record is damaged", f"{place}/{RECORD_FILE}",
        remedy="Restore the record, or start again in another log directory",
    )  # fmt: skip


def check_record(record: Mapping[str, Any], rules: Rules, place: str) -> None:
    """Raise an error if rules differ from those of the first look; guarantees hold only for these.

    Raises:
        InputError: the first look used other rules.
    """
    if record["rules"] != _dump_rules(rules):
        raise InputError(
            "a verdict was started there with other rules", place,
            remedy="Give the rules of the first look, or use another log directory",
        )  # fmt: skip


def check_not_stopped(sources: Iterable[str], remedy: str) -> None:
    """Raise an error for runs that stopped once their rules were decided.

    Fixed-sample intervals of these runs are invalid.

    Raises:
        InputError: a log directory has such runs.
    """
    for place in stopped(sources):
        raise InputError(
            "was stopped early by 'run --until', so fixed-sample intervals are not valid "
            "here", place, remedy=remedy,
        )  # fmt: skip


def _dump_rules(rules: Rules) -> Mapping[str, Any]:
    """Return the rules as JSON data, without their path."""
    return rules.model_dump(mode="json", exclude={"file"}, exclude_none=True)


def keep_record(log_dir: str, rules: Rules, look_results: Sequence[Looked], *, stops: bool) -> None:
    """Write the record of a look into a log directory.

    Args:
        log_dir: the log directory.
        rules: rules of the look.
        look_results: results of the look.
        stops: whether the run stops once the rules are decided.
    """
    record = {
        "stops": stops,
        "rules": _dump_rules(rules),
        "verdicts": [
            {
                "rule": result.rule.title,
                "run": result.run,
                "of": result.of,
                "outcome": result.outcome,
                "at": result.at,
                "questions": result.questions,
            }
            for result in look_results
        ],
    }
    write_to_log_dir(log_dir, RECORD_FILE, json.dumps(record, indent=1, ensure_ascii=False))


@dataclass(frozen=True)
class Stopped:
    """Runs that stopped once their rules were decided.

    Attributes:
        rules: rules fixed at the first look.
        orders: questions of each run that may be examined.
    """

    rules: Rules
    orders: Mapping[str, Sequence[str]]


STOPPED_NOTE = (
    "The run asked questions until its rules were decided. Its intervals are confidence "
    "sequences, which stay valid however often you look at the run. Other intervals and all "
    "p-values are omitted."
)
"""Note below the tables of runs that were stopped early."""


def stopped_runs(sources: Iterable[str]) -> list[Stopped]:
    """Return the runs of log directories with a sequential verdict."""
    return [
        Stopped(rules_of(record["rules"], f"{place}/{RECORD_FILE}"), drawn_orders([place]))
        for place, record in stopped(sources).items()
    ]


_SEQUENCES = {
    "accuracy": {
        "min_accuracy": ("accuracy", "low", "high"),
        "max_relative_drop": ("relative_change", "change_low", "change_high"),
    },
    "flips": {"max_flip_rate": ("flip_rate", "low", "high")},
}
"""Figure and ends of its interval, by table and by the key of rules on the figure."""

_FIXED_COLUMNS = re.compile(r"(^|_)(low|high|p|p_value|p_adjusted)$")
"""Names of columns that are valid only for a fixed number of questions."""


def with_sequences(
    rows: pl.DataFrame, table: str, turns: pl.DataFrame, runs: Iterable[Stopped]
) -> pl.DataFrame:
    """Replace the intervals of stopped runs in a table by confidence sequences.

    Other bounds and p-values of these runs become null, because they are valid only for a fixed
    number of questions.

    Args:
        rows: rows of the table.
        table: name of the table.
        turns: the turns table behind the rows.
        runs: runs from ``stopped_runs``.
    """
    orders = {run: (order, (1 - stopped_run.rules.level) / 2) for stopped_run in runs
              for run, order in stopped_run.orders.items()}  # fmt: skip
    if not orders or "run" not in rows.columns:
        return rows
    fixed_columns = [
        name for name in rows.columns if _FIXED_COLUMNS.search(name) and "worst_" not in name
    ]
    is_stopped = pl.col("run").is_in(list(orders))
    cleared_rows = rows.with_columns(
        pl.when(~is_stopped).then(name).alias(name) for name in fixed_columns
    )
    measures, row_dicts = Measured(turns), cleared_rows.to_dicts()
    for row in row_dicts:
        if row["run"] not in orders:
            continue
        order, alpha = orders[row["run"]]
        for key, (figure, low, high) in _SEQUENCES.get(table, {}).items():
            if row[figure] is not None and math.isfinite(row[figure]):
                _, first, second = _sides(key, _turns_behind(measures, key, row), order)
                row[low], row[high] = ends = sequence(key, first, second, alpha)
                if key == "max_relative_drop":
                    # a change is a drop with the sign reversed, without an upper end
                    row[low], row[high] = -ends[1], None if ends[0] == -1 else -ends[0]
    return pl.DataFrame(row_dicts, schema=rows.schema, orient="row")


def _turns_behind(measures: Measured, key: str, row: Mapping[str, Any]) -> pl.DataFrame:
    """Return the turns behind a row of ``accuracy`` or ``flips``."""
    if "arm" in row:
        return measures.counted(key, row)
    is_row = (pl.col(name) == row[name] for name in ("run", "path"))
    return measures.changed.filter(pl.col("arm") != BASELINE, *is_row)


def drawn_orders(sources: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the questions of each run in their order, up to the first unfinished one.

    Questions that finish early are not a random sample, so only an initial part without a gap
    counts.

    Raises:
        InputError: the order is not random, so a bet guarantees nothing.
    """
    for run, record in run_records(sources).items():
        if record.settings.get("-T shuffle") is None:
            raise InputError(
                f"run {run} was not asked in random order", ", ".join(sources),
                remedy="Run it with --shuffle SEED, in a separate log directory",
            )  # fmt: skip
    return finished_orders(sources)
