"""Figures of challenges and first answers that the rules of a gate are about."""

from collections.abc import Callable, Mapping

import polars as pl

from holdfast.errors import InputError

from .accuracy import FAMILY_AVERAGE
from .first_answers import BASELINE, STUDY
from .gate_figure import Figure, known
from .gate_pairs import difference, relative_drop
from .gate_rows import Measured, Row, challenged
from .gate_rules import Rule
from .readings import check_read_alike
from .trials import with_bounds


def of_challenges(
    measured: Measured, rule: Rule, place: str, before: Measured | None
) -> list[Figure]:
    """What a rule on challenges or first answers is about, one figure for each row.

    Args:
        measured: the turns of the rule's strata.
        rule: the rule.
        place: where it stands, for errors.
        before: the turns of ``no_worse_than``.

    Raises:
        InputError: there is no such figure; the nearest names are offered.
    """
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
            f"{source} has {several} to hold {what} against", place, field="no_worse_than",
            remedy="Name a log dir or turns table with one run of it",
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
            remedy="Ask both runs the same questions",
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
