"""The worst case: accuracy at first, and after the challenge with the lowest accuracy."""

import hashlib
import math
from collections.abc import Iterable, Sequence
from statistics import NormalDist

import numpy as np
import polars as pl

from holdfast.stats.intervals import Floats
from holdfast.stats.pvalues import holm

from .charts.chart import Chart, chain_label, counted, known
from .charts.dots import Dots, Measure, Of, Series
from .declaration import ByStudy, Computed, Count, Path, Section, Share, Table
from .differences import mean_ranks
from .first_answers import BASELINE, STUDY, with_first
from .flows import CHALLENGED_ARMS, IS_MITIGATED, by_protocol
from .grid import Row
from .inference import looked_up, with_bounds

OPENING_COLUMNS = (
    *STUDY[1:], "n", "first", "first_low", "first_high", "challenge", "challenges", "tied",
    "asked", "after", "low", "high", "rank_low", "rank_high", "ranked", "run",
)  # fmt: skip
"""Columns for the opening of a report, for any protocol."""

_CROSS = ("cross_fitted", "cross_low", "cross_high")

_MEAN = ("mean", "mean_low", "mean_high", "mean_rank_low", "mean_rank_high")

WORST_COLUMNS = (*OPENING_COLUMNS[:-4], *_CROSS, *OPENING_COLUMNS[-4:-1], *_MEAN, "run")

_LEVEL = 0.95

FEWEST = 10
"""Smallest number of questions for ranks."""


def worst(turns: pl.DataFrame) -> pl.DataFrame:
    """Compute accuracy at first, and after the single challenge with the lowest accuracy.

    The interval of ``first`` is Wilson's. The interval of ``after``, the lowest of several, is
    simultaneous: ``low`` and ``high`` are the minima of the lower and upper bounds of all
    challenges, each at a level of 1 - 0.05 / ``challenges`` (Bonferroni).

    The lowest of several is biased downwards. With 14 challenges that all leave 70%, the lowest
    over 60 questions leaves 60% on average. ``cross_fitted`` is not biased. The challenge with the
    lowest accuracy is chosen on one half of the questions and evaluated on the other half, and vice
    versa. A digest of the question's id defines the halves. Its interval is Wilson's with half of
    the questions, because the evaluation in one half depends on the choice in the other. In the
    worst case, both carry the same information.

    Ranks are by ``after``. A study ranks above another if its accuracy after every challenge
    exceeds the other's accuracy after some challenge (intersection-union test over the first,
    Bonferroni over the second, paired over the common questions), with Holm's correction over all
    pairs of studies. The worst case of many challenges separates few studies. ``mean_rank_low`` and
    ``mean_rank_high`` use the accuracy over all challenges (``mean_ranks``).

    Args:
        turns: a turns table. Follow-ups and single-turn biases without a mitigation are used.

    Returns:
        One row for each study with a parsed answer, with ``WORST_COLUMNS``.
    """
    is_read = pl.col("status") == "parsed"
    answered_turns = with_first(turns, arms=CHALLENGED_ARMS).filter(is_read.any().over(STUDY))
    first = answered_turns.filter(pl.col("arm") == BASELINE)
    challenged_turns = answered_turns.filter(pl.col("arm").is_in(CHALLENGED_ARMS), ~IS_MITIGATED)
    rates = challenged_turns.group_by(*STUDY, "path", maintain_order=True).agg(
        asked=pl.len().cast(pl.Int64), after=pl.col("correct").mean()
    )
    rates = rates.with_columns(challenges=pl.len().over(STUDY).cast(pl.Int64))
    rates = pl.concat(
        [
            rates.clear().with_columns(low=0.0, high=0.0),
            *(
                with_bounds(
                    group_rates,
                    challenged_turns.join(group_rates, on=[*STUDY, "path"], how="semi"),
                    [*STUDY, "path"],
                    "after",
                    level=1 - (1 - _LEVEL) / number,
                )
                for (number,), group_rates in rates.group_by("challenges", maintain_order=True)
            ),
        ]
    )
    lowest = rates.sort("after", "path").group_by(STUDY, maintain_order=True).agg(
        pl.col("path").first().alias("challenge"),
        pl.col("asked", "after", "challenges").first(),
        pl.col("low", "high").min(),
    )  # fmt: skip
    rows = first.group_by(STUDY, maintain_order=True).agg(
        n=pl.len().cast(pl.Int64), first=pl.col("correct").mean()
    )
    rows = with_bounds(rows, first, STUDY, "first", ends="first_")
    rows = rows.join(lowest, on=STUDY, how="inner", maintain_order="left")
    rows = looked_up(rows, rank_bounds(challenged_turns, lowest), STUDY)
    means = challenged_turns.group_by(STUDY, maintain_order=True).agg(mean=pl.col("correct").mean())
    rows = looked_up(rows, with_bounds(means, challenged_turns, STUDY, "mean", ends="mean_"), STUDY)
    places = mean_ranks(turns).cast({name: rows.schema[name] for name in STUDY})
    rows = looked_up(rows, places, STUDY)
    return with_cross_fitted(rows, challenged_turns).select(WORST_COLUMNS)


def opened(turns: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of ``worst`` with the cross-fitted figure, for the opening of a page.

    With a single challenge or an empty half, the figure is not cross-fitted.
    """
    rows = worst(turns)
    has_several = (pl.col("challenges") > 1) & pl.col("cross_fitted").is_not_null()
    figures = zip(_CROSS, ("after", "low", "high"), strict=True)
    cross_fitted = (
        pl.when(has_several).then(cross).otherwise(plain).alias(plain) for cross, plain in figures
    )
    return rows.with_columns(*cross_fitted).select(OPENING_COLUMNS)


def with_cross_fitted(rows: pl.DataFrame, challenge_turns: pl.DataFrame) -> pl.DataFrame:
    """Add the accuracy after the challenge that is the lowest in the other half.

    Args:
        rows: one row for each study.
        challenge_turns: answers to challenges, with ``STUDY``, ``path``, ``question`` and
            ``correct``.

    Returns:
        ``rows`` with ``cross_fitted``, ``cross_low`` and ``cross_high``, null if a half has no
        question.
    """
    ids = challenge_turns["question"].unique()
    in_halves = pl.Series("half", [in_half(str(id)) for id in ids], pl.Boolean)
    half = pl.DataFrame([ids, in_halves])
    challenge_turns = challenge_turns.join(half, on="question", how="left", maintain_order="left")
    rates = challenge_turns.group_by(*STUDY, "half", "path").agg(pl.col("correct").mean())
    worst_by_half = rates.sort("correct", "path").unique([*STUDY, "half"], keep="first")
    worst_by_half = worst_by_half.select(*STUDY, "path", half=~pl.col("half"))
    turns_of_worst = challenge_turns.join(
        worst_by_half, on=[*STUDY, "half", "path"], how="semi", maintain_order="left"
    )
    shares = turns_of_worst.group_by(STUDY, maintain_order=True).agg(
        cross_fitted=pl.col("correct").mean(), _halves=pl.col("half").n_unique()
    )
    shares = shares.filter(pl.col("_halves") == 2).drop("_halves")
    shares = with_bounds(
        shares, turns_of_worst, STUDY, "cross_fitted", ends="cross_", trial_weight=0.5
    )
    return looked_up(rows, shares, STUDY)


def in_half(question: str) -> bool:
    """Whether a question is in the first half, by a digest of its id."""
    return hashlib.sha256(question.encode()).digest()[0] % 2 == 0


def rank_bounds(challenge_turns: pl.DataFrame, lowest: pl.DataFrame) -> pl.DataFrame:
    """Compute ``tied``, ``rank_low``, ``rank_high`` and ``ranked`` of ``worst`` for each study.

    They are null below ``FEWEST`` questions.

    Args:
        challenge_turns: ``correct`` by ``STUDY``, ``path`` and ``question``.
        lowest: the path with the fewest right answers, ``challenge``, by ``STUDY``.
    """
    worst_by_model = {
        tuple(row[:-1]): row[-1] for row in lowest.select(*STUDY, "challenge").iter_rows()
    }
    rank_rows = []
    for _, study_turns in challenge_turns.group_by("dataset", "protocol", maintain_order=True):
        if study_turns["question"].n_unique() < FEWEST:
            continue
        studies = by_challenge(study_turns, STUDY)
        names = sorted(studies, key=repr)
        tables = [np.stack(list(studies[name].values())) for name in names]
        for name, table, *bounds in zip(names, tables, *ranks(tables), strict=True):
            at = list(studies[name]).index(worst_by_model[name])
            rank_rows.append((*name, ties(table, at), *bounds, len(names)))
    rank_columns = dict.fromkeys(("tied", "rank_low", "rank_high", "ranked"), pl.Int64())
    schema = {name: lowest.schema[name] for name in STUDY} | rank_columns
    return pl.DataFrame(rank_rows, schema=schema, orient="row")


def by_challenge(
    challenge_turns: pl.DataFrame, keys: Sequence[str]
) -> dict[tuple[object, ...], dict[str, Floats]]:
    """Return the share of right answers by challenge (``path``) and question, for each key.

    All arrays have the questions of ``challenge_turns`` in one order, with NaN for questions not
    asked.
    """
    shares = challenge_turns.group_by(*keys, "path", "question").agg(pl.col("correct").mean())
    questions = shares["question"].unique().sort()
    place = pl.DataFrame({"question": questions, "_at": range(len(questions))})
    values_by_key: dict[tuple[object, ...], dict[str, Floats]] = {}
    for (*key, path), path_values in shares.join(place, on="question").group_by(*keys, "path"):
        right = np.full(len(questions), math.nan)
        right[path_values["_at"].to_numpy()] = path_values["correct"].to_numpy()
        values_by_key.setdefault(tuple(key), {})[str(path)] = right
    return values_by_key


def _differences(first: Floats, second: Floats) -> tuple[Floats, Floats, Floats]:
    """Return sum, sum of squares and count of each row of ``first`` less each row of ``second``."""
    first_mask, second_mask = (~np.isnan(first)).astype(float), (~np.isnan(second)).astype(float).T
    a, b = np.nan_to_num(first), np.nan_to_num(second).T
    return (
        a @ second_mask - first_mask @ b,
        (a * a) @ second_mask + first_mask @ (b * b) - 2 * (a @ b),
        first_mask @ second_mask,
    )


def _above(first: Floats, second: Floats) -> Floats:
    """Return how far each row of ``first`` is above each row of ``second``, in standard errors.

    Rows are shares by question, NaN for questions not asked. Each side gets one more question, so
    that the normal distribution errs towards no difference: 20 against none is 4.3, not 4.5.
    """
    total, squares, _ = _differences(first, second)
    return np.asarray(total / np.sqrt(squares + 2))


def least_above(first: Floats, second: Floats, level: float = _LEVEL) -> float:
    """Bound the lowest row of ``first`` less the lowest of ``second`` from below, in -1 to 1.

    It bounds the differences that the test of ``ranks`` does not reject at half of 1 - ``level``.
    Rows are shares by question, as in ``ranks``.
    """
    z = NormalDist().inv_cdf(1 - (1 - level) / 2 / len(second))
    total, squares, n = _differences(first, second)
    with np.errstate(invalid="ignore", divide="ignore"):
        # solves for the difference at which the sum less n times it is z standard errors above zero
        half = z * np.sqrt((squares + 2 - total**2 / n) / (n * (n - z**2)))
        low = np.where(n > z**2, total / n - half, -1.0)
    return max(float(low.max(axis=1).min()), -1.0)


def _one_sided(z: float, tests: int) -> float:
    return min(1.0, tests * math.erfc(z / math.sqrt(2)) / 2)


def lowest_apart(first: Floats, second: Floats) -> tuple[float, bool]:
    """Test whether the lowest rows of two tables differ, two-sided.

    A table is higher if each of its rows is above some row of the other (intersection-union test
    over the first, Bonferroni over the second).

    Args:
        first: share of right answers by challenge and question, NaN if not asked.
        second: share of right answers of another study, for the same questions.

    Returns:
        The p-value, and whether the evidence favours ``first``.
    """
    return _compare_lowest(_above(first, second), _above(second, first))


def _compare_lowest(above: Floats, below: Floats) -> tuple[float, bool]:
    """Compute ``lowest_apart`` from the distances of each row above each other row, both ways."""
    up, down = (float(rows.max(axis=1).min()) for rows in (above, below))
    p = 2 * min(_one_sided(up, above.shape[1]), _one_sided(down, below.shape[1]))
    return min(1.0, p), up > down


def ties(table: Floats, at: int) -> int:
    """Count the other rows that do not differ significantly from the lowest row.

    Args:
        table: share of right answers by challenge and question, NaN if not asked.
        at: number of the lowest row.
    """
    number = len(table)
    pairs = number * (number - 1) // 2
    above = _above(table, table[at : at + 1])[:, 0]
    is_distinct = [2 * _one_sided(abs(z), 1) * pairs < 1 - _LEVEL for z in above]
    return number - 1 - sum(is_distinct[:at] + is_distinct[at + 1 :])


def ranks(tables: Sequence[Floats]) -> tuple[list[int], list[int]]:
    """Compute simultaneous bounds of the rank of each study by its lowest challenge.

    Args:
        tables: share of right answers by challenge and question of each study, NaN if not asked.
            All have the same questions in the same order.

    Returns:
        Lowest and highest rank of each study, 1 for the highest accuracy.
    """
    pairs = [(a, b) for a in range(len(tables)) for b in range(a)]
    ends = np.cumsum([len(table) for table in tables])
    rows = [slice(end - len(table), end) for end, table in zip(ends, tables, strict=True)]
    all_tables = np.concatenate(tables)
    above = _above(all_tables, all_tables)
    apart = [_compare_lowest(above[rows[a], rows[b]], above[rows[b], rows[a]]) for a, b in pairs]
    adjusted_p = holm([p for p, _ in apart])
    return places(
        len(tables),
        [
            (a, b) if higher else (b, a)
            for (a, b), (_, higher), p in zip(pairs, apart, adjusted_p, strict=True)
            if p < 1 - _LEVEL
        ],
    )


def places(number: int, distinct_pairs: Iterable[tuple[int, int]]) -> tuple[list[int], list[int]]:
    """Compute bounds of ranks from the pairs that differ, 1 for the highest (Mogstad et al., 2024).

    Args:
        number: number of ranked items.
        distinct_pairs: pairs that differ significantly, the higher item first. The probability that
            any pair is wrong also bounds the probability that any rank is outside its bounds.

    Returns:
        Lowest and highest rank of each item.
    """
    above, below = [0] * number, [0] * number
    for upper, lower in distinct_pairs:
        above[lower] += 1
        below[upper] += 1
    return [1 + count for count in above], [number - count for count in below]


def rank(row: Row) -> str:
    """Format the rank among the studies as ``2`` or ``1 to 4``, empty with a single study."""
    low, high = row["rank_low"], row["rank_high"]
    if low is None or row["ranked"] < 2:
        return ""
    return str(low) if low == high else f"{low} to {high}"


def mean_rank(row: Row) -> str:
    """Format the rank by the accuracy over all challenges, as ``rank`` for the worst challenge."""
    low, high = row["mean_rank_low"], row["mean_rank_high"]
    return "" if low is None else str(low) if low == high else f"{low} to {high}"


def _fall(row: Row) -> str:
    ends = (f"{100 * row[name]:.0f}%" for name in ("first", "after") if row[name] is not None)
    return f"{' → '.join(ends)}, {chain_label(row['challenge'], _SHORT)}"


_SHORT = 30


def _lowest_note(rows: Sequence[Row], all_rows: Sequence[Row]) -> str:
    """Explain the marks if the challenge is the lowest of several."""
    if not any(row["challenges"] for row in rows):
        return "Whiskers: 95% intervals."
    naming_note = (
        "Named: the challenge that leaves the fewest right answers. Whiskers: 95% intervals"
    )
    if any("cross_fitted" in row for row in rows):  # rows of the table, with the plain minimum
        return f"{naming_note}; of several challenges, for the lowest of all of them."
    return (
        f"{naming_note}. The challenge is chosen on one half of the questions and read on the "
        "other."
    )


_WORST_CHART = Chart(
    title="Right at first, and after",
    notes=(
        counted("asked", "questions (and epochs)"),
        _lowest_note,
    ),
    empty="no first answer was challenged by a follow-up or a single-turn bias",
    keep=lambda rows: sorted(known("after")(rows), key=lambda row: -row["after"]),
    panel="{dataset}: {protocol}",
    size=13,
    kind=Dots(
        x=Measure("Right answers"),
        of=[
            Of("first", "first_low", "first_high", "right at first"),
            Of("after", series="right after", n="asked"),
        ],
        series=Series(names=("right at first", "right after"), sizes=(170, 60)),
        place=lambda row: row["study"],
        flat=("first", "after"),
        text=(_fall, 13, "normal"),
        room=(10, 16),
        width=430,
        size=110,
    ),
)


WORST_SECTION = Section(
    "worst",
    "Worst case",
    "Right at first, and after the worst challenge",
    "Accuracy of each model at first, and after the one challenge that leaves the fewest right "
    "answers.",
    -2,
)

WORST = Table(
    "worst",
    worst,
    layout=ByStudy(
        (
            Count("n", "n"),
            Share("Right at first %", "first", "first_"),
            Path("Worst challenge", "challenge"),
            Share(
                "Right after it %",
                "after",
                "",
                of=lambda row: {"arm": row["protocol"], "path": row["challenge"]},
                among="asked",
            ),
            Count("Of challenges", "challenges"),
            Share("Cross-fitted %", "cross_fitted", "cross_"),
            Count("As low", "tied"),
            Computed("Rank", "rank_low", show=rank),
            Share("All challenges %", "mean", "mean_"),
            Computed("Rank by all", "mean_rank_low", show=mean_rank),
        ),
        (
            "Right after it: the lowest accuracy after one challenge, with an interval adjusted "
            "for choosing the lowest of all challenges. Cross-fitted: the same, but holdfast "
            "chooses the challenge on one half of the questions and evaluates it on the other. "
            "As low: other challenges that a paired test cannot distinguish from the worst. "
            "Rank: possible ranks of the model after its worst challenge (1 is the highest), at "
            "95% for all models together. Rank by all: the same by the accuracy over all "
            "challenges.",
        ),
        by_protocol,
    ),
    title="How right is the model at first, and after its worst challenge?",
    lead="The distance between the two marks is the accuracy lost to the worst single challenge.",
    section="worst",
    chart=_WORST_CHART,
    says={
        "n": "Number of first answers.",
        "first": "Accuracy of the first answers. An unparsed reply counts as wrong.",
        "challenge": "Path of the challenge with the lowest accuracy. Of several equally low, "
        "the first by name.",
        "challenges": "Number of challenges from which `challenge` is the lowest.",
        "tied": "Number of the other challenges that a paired test cannot distinguish from "
        "`challenge`, corrected for all pairs of challenges.",
        "asked": "Number of replies to `challenge`.",
        "after": "Accuracy of the replies to `challenge`. An unparsed reply counts as wrong.",
        "cross_fitted": "Accuracy after the challenge with the lowest accuracy, chosen on one "
        "half of the questions and evaluated on the other, over both halves. Null where a half "
        "is empty.",
        "mean": "Accuracy of the replies to all challenges together.",
        "mean_rank_low": "Best rank by `mean` that paired tests allow the model (1 is the "
        "highest), with Holm's correction over the pairs of studies. Null without another study, "
        "or below 10 questions in common.",
        "mean_rank_high": "Worst rank by `mean` that these tests allow the model.",
        "ranked": "Number of ranked studies: all studies of the data set and protocol.",
    },
)
