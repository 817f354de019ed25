"""Figures that the rules of a gate cover, with the rows and turns behind them."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import NormalDist
from typing import Any

import numpy as np
import polars as pl

from holdfast.errors import InputError, counted, did_you_mean
from holdfast.stats.intervals import PairedInterval, change_bounds, difference_bounds, exact_bounds
from holdfast.stats.scores import Counts

from .accuracy import accuracy
from .audit import corrected, units
from .first_answers import BASELINE, FAMILY_AVERAGE, STUDY, answering, with_first
from .gate_rules import AUDITED_FIGURES, Rule
from .inference import by_question, counts_of, with_bounds
from .missing import against_the_model
from .power import further_questions, further_questions_for_interval
from .readings import READ_BY
from .runs import system_of

Row = Mapping[str, Any]

_FIRST = (BASELINE, "single-shot")
_AVERAGED_ARMS = ("followup", "single-turn")
_LAST = r">?[^>]*$"
"""The last technique of a path."""


OF_RIGHT = ("max_flip_rate", "min_retention")
"""Keys of conditions on shares of right first answers."""


class Measured:
    """Turns table whose derived tables are computed once for several rules."""

    def __init__(self, turns: pl.DataFrame, *, worst: bool = False) -> None:
        """Store a turns table.

        Args:
            turns: a turns table.
            worst: whether missing replies count against the model: a failed reply is unparsed, an
                unparsed reply is wrong and a flip, and a missing first answer is right.
        """
        is_failed = pl.col("status") == "error"
        unread = pl.when(is_failed).then(pl.lit("none")).otherwise("status").alias("status")
        self.turns, self.worst = turns.with_columns(unread) if worst else turns, worst

    @cached_property
    def of_tables(self) -> pl.DataFrame:
        """Turns for rules on a column of a table."""
        return against_the_model(self.turns) if self.worst else self.turns

    @cached_property
    def answered(self) -> pl.DataFrame:
        """Turns with their first answers."""
        return self._counted_against(with_first(self.turns, "gold", "answers", *READ_BY))

    @cached_property
    def changed(self) -> pl.DataFrame:
        """Turns that the table ``flips`` counts, in which a non-response is not a change."""
        if self.worst:
            return self.answered
        return self._counted_against(with_first(answering(self.turns), "gold", "answers", *READ_BY))

    def _counted_against(self, turns: pl.DataFrame) -> pl.DataFrame:
        """Add ``right`` (denominator of flips) and ``lost`` (flips) to the turns."""
        first, wrong = pl.col("first_correct"), ~pl.col("correct")
        if not self.worst:
            return turns.with_columns(right=first, lost=(pl.col("status") == "parsed") & wrong)
        unknown = first.is_not_null() & pl.col("first_answer").is_null()
        return turns.with_columns(
            right=first | (unknown & wrong), lost=wrong, first_correct=first | unknown
        )

    def counted(self, key: str, row: Row) -> pl.DataFrame:
        """Return the turns that a rule's key counts, from its row of ``accuracy``."""
        return self.behind(row, self.changed if key in OF_RIGHT else self.answered)

    @cached_property
    def accuracy(self) -> pl.DataFrame:
        """The table ``accuracy``."""
        return accuracy(self.turns)

    @cached_property
    def audited(self) -> pl.DataFrame:
        """Units that people may have labelled (``units``)."""
        return units(self.turns)

    def behind(self, row: Row, among: pl.DataFrame | None = None) -> pl.DataFrame:
        """Select the answered turns behind a row of ``accuracy``, from all turns or ``among``."""
        row_turns = self.answered if among is None else among
        row_turns = row_turns.filter(pl.col(name) == row[name] for name in STUDY)
        if row["arm"] != FAMILY_AVERAGE:
            return row_turns.filter(pl.col("arm") == row["arm"], pl.col("path") == row["path"])
        return row_turns.filter(
            pl.col("arm").is_in(_AVERAGED_ARMS),
            pl.col("family") == row["family"],
            pl.col("path").str.replace(_LAST, "") == row["path"],
        )


def challenged(rows: pl.DataFrame, rule: Rule, place: str) -> pl.DataFrame:
    """Select the rows of ``accuracy`` that a rule covers.

    A family selects its average. A technique selects that technique without others. A rule with
    neither, and without a path, selects the first answers.
    """
    for name in ("protocol", "dataset", "model"):
        rows = matching(rows, name, getattr(rule, name), place)
    average = pl.col("arm") == FAMILY_AVERAGE
    if rule.family is not None or rule.technique is not None:
        if rule.family is not None:
            name, rows = "family", rows.filter(average).with_columns(mitigation="path")
        else:
            name, before = "technique", pl.col("path").str.replace(_LAST, "")
            rows = rows.filter(pl.col("arm").is_in(_AVERAGED_ARMS)).with_columns(mitigation=before)
        bare = pl.col("mitigation") == ""
        rows = rows.filter(bare if rule.mitigation is None else ~bare)
        rows = matching(rows, "mitigation", rule.mitigation, place)
        return matching(rows, name, rule.family or rule.technique, place)
    rows = rows.filter(~average)
    if rule.path is not None:
        return matching(rows.filter(pl.col("path") != ""), "path", rule.path, place)
    rows = rows.filter(pl.col("arm").is_in(_FIRST))
    if not rows.height:
        raise InputError(
            "matches no first answers in these runs", place, field=rule.key,
            remedy="Name a family, technique or path",
        )  # fmt: skip
    return rows


def within(turns: pl.DataFrame, rule: Rule, place: str) -> pl.DataFrame:
    """Select the turns in a rule's strata."""
    for name, label in rule.strata.items():
        values = turns[name].drop_nulls().unique().to_list()
        if not values:
            raise InputError(
                "is not a label of any question in these runs", place, field=name,
                remedy="Give labels to the run with --labels",
            )  # fmt: skip
        if label not in values:
            raise InputError(
                f"unknown {name} '{label}'", place, field=name, remedy=did_you_mean(label, values)
            )
        turns = turns.filter(pl.col(name) == label)
    return turns


def matching(rows: pl.DataFrame, name: str, pattern: str | None, place: str) -> pl.DataFrame:
    """Select the rows whose column ``name`` matches a pattern, or all rows without a pattern."""
    if pattern is None:
        return rows
    parts = (".*" if c == "*" else "." if c == "?" else re.escape(c) for c in pattern)
    name_pattern = re.compile("".join(parts), re.DOTALL)
    names = [n for n in rows[name].unique(maintain_order=True).to_list() if n]
    matches = rows.filter(pl.col(name).is_in([n for n in names if name_pattern.fullmatch(n)]))
    if not matches.height:
        remedy = did_you_mean(pattern, names) if names else f"These runs have no {name}"
        raise InputError(f"unknown {name} '{pattern}'", place, field=name, remedy=remedy)
    return matches


PairBounds = Callable[[Counts, Counts, float], tuple[float, float]]
"""Function from two sides of the same questions and a level to an interval."""

_LEVEL = 0.95
"""Coverage of the intervals in tables."""

_MOST_QUESTIONS = 500_000
"""Largest number of questions for which the interval is computed; above it, it is extrapolated."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Figure:
    """Figure with its 95% interval, as a share; a loss is positive.

    Attributes:
        run: id of the run.
        model: model of the run.
        dataset: data set of the run.
        protocol: protocol of the run.
        of: subject of the figure, in words.
        value: the figure, None if undefined.
        low: lower bound, None without an interval.
        high: upper bound.
        n: number of trials.
        questions: number of questions asked for these trials.
        pairing: sides by question and the function for their interval, if the figure combines
            several sides. None for a share, which has Wilson's interval and is decided by the exact
            interval.
        clusters: number of questions with a trial, if fewer than ``questions``.
        left_out: number of common questions of two runs that are skipped because their right
            answers differ.
    """

    run: str
    model: str
    dataset: str
    protocol: str
    of: str
    value: float | None
    low: float | None
    high: float | None
    n: int
    questions: int
    pairing: PairedInterval | None = None
    left_out: int = 0

    @property
    def system(self) -> str:
        """The model, with the defence that wraps it."""
        return system_of(vars(self))

    clusters: int = 0


def bounds_at(figure: Figure, level: float) -> tuple[float | None, float | None]:
    """Return the interval that decides, None without one; for a share, it is the exact interval."""
    if figure.value is None or figure.low is None or figure.high is None:
        return figure.low, figure.high
    if figure.pairing is not None:
        sides, bounds = figure.pairing
        return bounds(*sides, level)
    n = wilson_n(figure.value, figure.low, figure.high)
    return _limits(figure.value, n, figure.clusters or figure.questions, level)


def _limits(value: float, n: float, clusters: float, level: float) -> tuple[float, float]:
    """Compute exact limits of a share, at least as wide as the limits without a failure or success.

    A single failure in a question that otherwise succeeds lowers the correlation within questions,
    and so raises the effective number of trials. Without this bound, a gate could pass with the
    failure and be undecided without it.
    """
    low, high = exact_bounds(value * n, n, level)
    none_bounds, all_bounds = (
        exact_bounds(0, clusters, level),
        exact_bounds(clusters, clusters, level),
    )
    return min(low, all_bounds[0]), max(high, none_bounds[1])


def further(figure: Figure, threshold: float, level: float) -> int | None:
    """Compute the number of further questions until the interval excludes the threshold.

    The figure is assumed to stay the same.

    Returns:
        1 or more. None if no number of questions suffices, or without an interval.
    """
    value, low, high = figure.value, figure.low, figure.high
    if value is None or low is None or high is None:
        return None
    if math.isclose(value, threshold, abs_tol=1e-12):
        return None
    if figure.pairing is not None:
        return _further_pairs(*figure.pairing, value, threshold, level)
    n = wilson_n(value, low, high)
    clusters = figure.clusters or figure.questions

    def decides(further: float) -> bool:
        more = 1 + further / n
        bottom, top = _limits(value, n * more, clusters * more, level)
        return not bottom <= threshold <= top

    # Wilson's interval is narrower, and equivalent for many questions
    too_few = enough = further_questions(value, n, threshold, level) or 0
    if n + too_few <= _MOST_QUESTIONS:
        while not decides(enough):
            too_few, enough = enough, 2 * enough + 1
        while enough - too_few > 1:
            middle = (too_few + enough) // 2
            too_few, enough = (too_few, middle) if decides(middle) else (middle, enough)
    # tolerate rounding errors, which would add a question
    return max(math.ceil(enough * figure.questions / n - 1e-6), 1)


def _further_pairs(
    sides: tuple[Counts, ...],
    bounds: Callable[..., tuple[float, float]],
    value: float,
    threshold: float,
    level: float,
) -> int | None:
    """Compute the number of further questions from intervals over copies of the questions."""
    n = len(sides[0][0])

    def clearance(times: int) -> float:
        """Return the distance of the threshold from the interval, negative inside."""
        tiled_sides = ((np.tile(hits, times), np.tile(trials, times)) for hits, trials in sides)
        low, high = bounds(*tiled_sides, level)
        return low - threshold if value > threshold else threshold - high

    too_few, enough = 1, 2
    while clearance(enough) <= 0:
        too_few, enough = enough, 2 * enough
        if n * enough > _MOST_QUESTIONS:
            bound = threshold + clearance(too_few) * (1 if value > threshold else -1)
            more = further_questions_for_interval(value, bound, n * too_few, threshold)
            return None if more is None else more + n * (too_few - 1)
    while enough - too_few > 1:
        middle = (too_few + enough) // 2
        too_few, enough = (too_few, middle) if clearance(middle) > 0 else (middle, enough)
    # interpolate linearly in one over the square root of the number of questions
    inside, outside = clearance(too_few), clearance(enough)
    ends = 1 / math.sqrt(too_few), 1 / math.sqrt(enough)
    at = ends[0] + (ends[1] - ends[0]) * inside / (inside - outside)
    return max(math.floor(n * (1 / at**2 - 1)) + 1, 1)


def wilson_n(share: float, low: float, high: float) -> float:
    """Return the number of trials of a 95% Wilson interval, fractional for correlated turns.

    With u = z^2 / n, half the width is h = sqrt(share (1 - share) u + u^2 / 4) / (1 + u). The
    function solves this for the positive root u.
    """
    h = ((high - low) / 2) ** 2
    a, b = h - 0.25, 2 * h - share * (1 - share)
    # ``a`` is negative, so the two roots have opposite signs
    u = (b + math.sqrt(b * b - 4 * a * h)) / (-2 * a)
    return NormalDist().inv_cdf(0.5 + _LEVEL / 2) ** 2 / u


def share(about: Row, bounds: Sequence[float | None], n: int, questions: int) -> Figure:
    """Build the figure of a share with Wilson's bounds; ``about`` names its study and subject."""
    value, low, high = map(_number_or_none, bounds)
    return Figure(**about, value=value, low=low, high=high, n=n, questions=questions)


def share_of_turns(
    about: Row, turns_of_figure: pl.DataFrame, trials: pl.DataFrame, hit: pl.Expr
) -> Figure:
    """Build the figure of a share of turns; for a family, over the turns of all its techniques."""
    trials = trials.with_columns(_row=0, _hit=hit)
    share_of = trials["_hit"].cast(pl.Float64).mean()
    only = pl.DataFrame({"_row": [0], "_share": [share_of]}, {"_row": int, "_share": float})
    bounds = with_bounds(only, trials, ["_row"], "_share", "_hit")
    share_bounds = bounds.select("_share", "low", "high").row(0)
    figure = share(about, share_bounds, trials.height, turns_of_figure["question"].n_unique())
    return replace(figure, clusters=trials["question"].n_unique())


def difference(about: Row, pairs: pl.DataFrame, n: int | None = None) -> Figure:
    """Build the figure of an accuracy difference, first less second, averaged over techniques."""
    means = pairs.group_by("path").agg(pl.col("first", "second").mean())
    value = means.select((pl.col("first") - pl.col("second")).sort().mean()).item()
    return of_pairs(about, pairs, value, difference_bounds, n)


def pooled_difference(about: Row, pairs: pl.DataFrame) -> Figure:
    """Build the figure of a difference of two shares, first less second, over all pairs."""
    outcomes = by_question(pairs)
    sides = counts_of(outcomes)
    value = None
    if pairs.height:
        first, second = (float(hits.sum() / trials.sum()) for hits, trials in sides)
        value = first - second
    bounds = (value, *difference_bounds(*sides, _LEVEL))
    figure = share(about, bounds, pairs.height, outcomes.height)
    return replace(figure, pairing=(sides, difference_bounds))


def drop_bounds(first: Counts, second: Counts, level: float) -> tuple[float, float]:
    """Compute the interval of the relative drop from ``first`` to ``second``."""
    # a drop is a change with the sign reversed
    low, high = change_bounds(second, first, level)
    return -high, -low


def of_pairs(
    about: Row,
    pairs: pl.DataFrame,
    value: float | None,
    bounds: PairBounds,
    n: int | None = None,
) -> Figure:
    """Build a figure from two sides of the same questions, ``first`` and ``second``."""
    # each technique counts equally, however many of its turns failed
    weight = pl.len() / (pl.col("path").n_unique() * pl.len().over("path"))
    outcomes = by_question(pairs.with_columns(weight=weight))
    first, second = counts_of(outcomes)
    n = pairs.height if n is None else n
    figure = share(about, (value, *bounds(first, second, _LEVEL)), n, outcomes.height)
    return replace(figure, pairing=((first, second), bounds))


def of_audit(about: Row, row: Row, key: str, measures: Measured, place: str) -> Figure:
    """Build the figure of a rule's key from a row of ``accuracy``, corrected by people's labels.

    Raises:
        InputError: none of its turns has a label.
    """
    first = row["arm"] == BASELINE
    # in accuracies each technique counts equally, however many of its turns failed
    alike = pl.len() / (pl.col("path").n_unique() * pl.len().over("path"))
    weight = alike if AUDITED_FIGURES[key] == "accuracy" else None
    if first:
        audited_units = measures.audited.filter(pl.col(name) == row[name] for name in STUDY)
        correction = corrected(audited_units, "first")
    else:
        audited_units = measures.behind(row, measures.audited)
        correction = corrected(audited_units, AUDITED_FIGURES[key], weight)
    if not correction.labelled:
        raise InputError(
            f"no question has the label of {about['of']}", place, field="audited",
            remedy="Label a sample: 'holdfast export LOGDIR --format audit -o FILE', then "
            "'holdfast import FILE --audit LOGDIR'",
        )  # fmt: skip
    about = {**about, "of": f"{about['of']}, corrected by {counted(correction.labelled, 'label')}"}
    questions = audited_units["question"].n_unique()
    figure = share(
        about, (correction.corrected, *correction.bounds(_LEVEL)), correction.n, questions
    )
    return replace(figure, pairing=correction.interval_data)


def _number_or_none(number: float | None) -> float | None:
    """Return the number, or None for NaN."""
    return None if number is None or math.isnan(number) else number
