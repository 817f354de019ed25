"""Designs: numbers of questions and epochs that detect a difference, or decide a gate.

No formula covers epochs and families of techniques. Studies are therefore simulated, and tested as
in ``compare``, the tables and ``gate``. Simulated conversations are drawn from the outcomes of a
pilot, with probabilities tilted to the requested figure. With some probability, an epoch repeats
the common draw of its question. Thus epochs correlate as in the pilot, separately for first answers
and for the outcomes after each first answer.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from holdfast.errors import InputError, did_you_mean
from holdfast.stats.intervals import Counts, Floats, effective_n, outside
from holdfast.stats.pvalues import each_against_one, sign_flips
from holdfast.stats.scores import difference_statistic, outcomes_of

from .comparison_sides import listed, names_of
from .epochs import variances
from .first_answers import BASELINE, apart
from .flows import CHALLENGED_ARMS, IS_MITIGATED
from .power import questions_needed
from .sequential import growth, scaled

EPOCHS = (1, 3, 5, 10)
"""Numbers of epochs to try."""

MOST_QUESTIONS = 3_000
"""Largest number of questions to simulate; above it, the normal distribution is as good."""

_WIDE, _NARROW = ((0.75, 1.0, 1.3), 600), ((0.92, 0.96, 1.0, 1.04, 1.08), 3_000)
"""Numbers of questions relative to a guess, and the number of studies to draw for each."""

_ROUNDS = 3
_LEAST_QUESTIONS = 8
_NORMAL = NormalDist()

Kind = Literal["difference", "drop", "share"]
"""Test of a paired difference, gate on a drop, or gate on the share of the second side."""


@dataclass(frozen=True)
class Pilot:
    """Outcomes of conversations, with one element for each outcome.

    Attributes:
        first: right answers of the first side.
        second: right answers of the second side.
        trials: number of answers of each side, such as the techniques of a family.
        weights: share of the conversations with each outcome.
        correlation: correlation of the tested values between epochs of a question. None with one
            epoch.
        side_correlations: correlation for the first side, and for the second side after each
            outcome of the first side. None if unknown; then ``correlation`` applies to both sides.
        one_first: whether one first answer is compared with several techniques.
        questions: number of questions asked.
        calls: replies per conversation.
        cost: cost per conversation in dollars, None if no price is known.
    """

    first: Floats
    second: Floats
    trials: int
    weights: Floats
    correlation: float | None
    one_first: bool = False
    questions: int = 0
    calls: float = 2.0
    cost: float | None = None
    side_correlations: tuple[float, Mapping[float, float]] | None = None

    def values(self, kind: Kind) -> Floats:
        """Return the tested value of each outcome: the drop, or the share of the second side."""
        off = self.second if kind == "share" else self.first - self.second
        return np.asarray(off / self.trials)


@dataclass(frozen=True)
class Design:
    """Number of questions at a number of epochs, with calls and cost."""

    epochs: int
    questions: int
    calls: int
    cost: float | None


@dataclass(frozen=True)
class Designs:
    """Designs that detect a figure, or decide a gate.

    Attributes:
        pilot: outcomes of conversations.
        kind: kind of test.
        effect: true value of the figure, as a share.
        bound: limit of the gate, as a share.
        designs: a design for each number of epochs.
        sequential: for a gate, the numbers of questions at which half of the sequential verdicts
            are decided, and 90%. None above ``MOST_QUESTIONS``.
    """

    pilot: Pilot
    kind: Kind
    effect: float
    bound: float
    designs: list[Design]
    sequential: tuple[int | None, int | None] | None = None


def stated(
    baseline: float, difference: float, discordant: float | None, correlation: float | None
) -> Pilot:
    """Build the pilot of one answer compared with another, from stated values.

    Args:
        baseline: accuracy of the first side, 0 to 1.
        difference: accuracy of the first side less accuracy of the second side.
        discordant: share of the conversations in which the sides differ. None assumes that the
            sides err independently.
        correlation: correlation of the differences between epochs of a question.
    """
    accuracy_after = baseline - difference
    of_all = (
        baseline * (1 - accuracy_after) + accuracy_after * (1 - baseline)
        if discordant is None
        else discordant
    )
    lost_share, gained_share = (of_all + difference) / 2, (of_all - difference) / 2
    weights = np.array(
        [baseline - lost_share, lost_share, gained_share, 1 - baseline - gained_share]
    )
    first, second = np.array([1.0, 1, 0, 0]), np.array([1.0, 0, 1, 0])
    return Pilot(first, second, 1, np.maximum(weights, 0), correlation)


def fitted(
    turns: pl.DataFrame,
    kind: Kind,
    path: str | None = None,
    model: str | None = None,
    against: str | None = None,
    price: Callable[[str], tuple[float, float] | None] = lambda _: None,
) -> Pilot:
    """Fit the pilot of a challenge or family compared with first answers, or of two models.

    Args:
        turns: a turns table with one study.
        kind: kind of test.
        path: a technique or a family. None means first answers.
        model: model under test, if there are several.
        against: second model, compared with the first.
        price: function from a model to its prices in dollars per million input and output tokens,
            or None if unknown.

    Raises:
        InputError: a name is unknown, there are several studies, or the test has no first side.
    """
    turns = _add_prices(turns, price)
    answers, trials = _answers(turns, path, model, "--model")
    on = ["question", "epoch"]
    if against is not None:
        rival_answers, of_other = _answers(turns, path, against, "--against")
        if of_other != trials:
            raise InputError("the models were asked different questions", field="--path")
        pairs = answers.rename({"right": "first"}).join(
            rival_answers.rename({"right": "second"}), on=on
        )
        pairs = pairs.with_columns(pl.col(name) + pl.col(f"{name}_right") for name in _COST_COLUMNS)
    elif path is not None:
        firsts, _ = _answers(turns, None, model, "--model")
        pairs = answers.rename({"right": "second"}).join(firsts.rename({"right": "first"}), on=on)
        pairs = pairs.with_columns(
            pl.col("first") * trials,
            *(pl.col(name) + pl.col(f"{name}_right") for name in _COST_COLUMNS),
        )
    elif kind == "share":
        pairs = answers.with_columns(first=pl.col("right"), second=pl.col("right"))
    else:
        raise InputError(
            "this figure needs a path", field="--path", remedy="Name a technique or a family"
        )
    if pairs.height < _LEAST_QUESTIONS:
        raise InputError(f"{pairs.height} conversations are too few", remedy="Ask more questions")
    value = pl.col("second") if kind == "share" else pl.col("first") - pl.col("second")
    valued_pairs = pairs.with_columns(value=value / trials, _all=pl.lit(0))
    components = variances(valued_pairs, ["_all"]).row(0, named=True)
    total = None if components["within"] is None else components["between"] + components["within"]
    correlation = None if total is None else components["between"] / total if total > 0 else 1.0
    side_correlations = None
    if correlation is not None and kind != "share":
        behind = {first: _correlation(group, "second")
                  for (first,), group in pairs.group_by("first", maintain_order=True)}  # fmt: skip
        side_correlations = (
            _correlation(pairs, "first"),
            {float(str(at)): icc for at, icc in behind.items()},
        )
    kinds = pairs.group_by("first", "second", maintain_order=True).len().sort("first", "second")
    # half a conversation for each extreme outcome, because unseen outcomes are possible
    ends = np.array([(trials, 0), (0, trials)]).T
    counts = np.append(kinds["len"].to_numpy(), [0.5, 0.5])
    return Pilot(
        np.append(kinds["first"].to_numpy(), ends[0]).astype(float),
        np.append(kinds["second"].to_numpy(), ends[1]).astype(float),
        trials, counts / counts.sum(), correlation,
        one_first=against is None and trials > 1,
        questions=pairs["question"].n_unique(),
        calls=float(pairs["calls"].mean()),  # type: ignore[arg-type]
        cost=None if pairs["cost"].null_count() else pairs["cost"].mean(),  # type: ignore[arg-type]
        side_correlations=side_correlations,
    )  # fmt: skip


def _correlation(conversations: pl.DataFrame, side: str) -> float:
    """Compute the correlation of one side between epochs of a question, 0 to 1; 0 if unknown."""
    valued_conversations = conversations.with_columns(value=pl.col(side), _all=pl.lit(0))
    components = variances(valued_conversations, ["_all"])
    if components.is_empty() or components["within"][0] is None:
        return 0.0
    between, within = components.row(0, named=True)["between"], components["within"][0]
    return float(np.clip(between / (between + within), 0, 1)) if between + within > 0 else 1.0


_COST_COLUMNS = ("calls", "cost")


def _add_prices(
    turns: pl.DataFrame, price: Callable[[str], tuple[float, float] | None]
) -> pl.DataFrame:
    """Add the cost of each turn in dollars, null if no price is known."""
    prices = {model: price(model) for model in names_of(turns, "model")}
    price_rows = [(model, *model_price) for model, model_price in prices.items() if model_price]
    schema = {"model": pl.String, "_in": pl.Float64, "_out": pl.Float64}
    priced_turns = turns.join(
        pl.DataFrame(price_rows, schema, orient="row"), on="model", how="left"
    )
    tokens = (pl.col(f"{name}_tokens") for name in ("input", "output"))
    dollars = sum(n * pl.col(at) for n, at in zip(tokens, ("_in", "_out"), strict=True)) / 1e6
    return priced_turns.with_columns(cost=pl.coalesce(dollars, "cost") * ~pl.col("shared"))


def _answers(
    turns: pl.DataFrame, path: str | None, model: str | None, option: str
) -> tuple[pl.DataFrame, int]:
    """Return right answers and costs of complete conversations, and the answers of each.

    Runs with a defence are skipped.
    """
    turns = turns.filter(pl.col("defence").fill_null("none") == "none")
    if model is not None:
        if model not in (names := names_of(turns, "model")):
            problem = f"the results have no model '{model}'"
            raise InputError(problem, field=option, remedy=did_you_mean(model, names))
        turns = turns.filter(pl.col("model") == model)
    answered_turns = turns.filter(~apart(), pl.col("status") != "error")
    challenged_turns = answered_turns.filter(pl.col("arm").is_in(CHALLENGED_ARMS), ~IS_MITIGATED)
    if path is None:
        side_turns = answered_turns.filter(pl.col("arm") == BASELINE)
    else:
        side_turns = challenged_turns.filter(pl.col("path") == path)
        side_turns = (
            challenged_turns.filter(pl.col("family") == path)
            if side_turns.is_empty()
            else side_turns
        )
    if side_turns.is_empty():
        paths_known = {*challenged_turns["path"], *challenged_turns["family"].drop_nulls()}
        problem = (
            f"the results have no technique or family '{path}'"
            if path
            else "the results have no first answers"
        )
        raise InputError(problem, field="--path", remedy=did_you_mean(path or "", paths_known))
    for column in ("protocol", "dataset", "model", "run"):
        if len(ambiguous := names_of(side_turns, column)) > 1:
            problem = f"the results have {len(ambiguous)} {column}s: {listed(ambiguous)}"
            remedy = (
                f"Choose one with {option}"
                if column == "model"
                else f"Give a log directory or log with one {column}"
            )
            raise InputError(problem, field=option if column == "model" else None, remedy=remedy)
    conversations = side_turns.group_by("question", "epoch", maintain_order=True).agg(
        right=pl.col("correct").sum().cast(pl.Float64),
        n=pl.len(),
        calls=pl.col("calls").fill_null(1).filter(~pl.col("shared")).sum(),
        cost=pl.when(pl.col("cost").is_not_null().all()).then(pl.col("cost").sum()),
    )
    trials = int(conversations["n"].max())  # type: ignore[arg-type]
    return conversations.filter(pl.col("n") == trials).drop("n"), trials


def designs(
    pilot: Pilot,
    kind: Kind,
    effect: float | None = None,
    bound: float = 0.0,
    *,
    power: float = 0.8,
    alpha: float = 0.05,
    tests: int = 1,
    epochs: Sequence[int] = EPOCHS,
) -> Designs:
    """Compute the number of questions for each number of epochs.

    Args:
        pilot: outcomes of conversations.
        kind: kind of test.
        effect: true value of the figure, as a share. Defaults to the pilot's value.
        bound: limit of the gate, as a share.
        power: probability of detecting the effect, or of a decision.
        alpha: probability of a false detection, two-sided.
        tests: number of tests. Each test has level ``alpha / tests``.
        epochs: numbers of epochs to try. Only 1 is tried if the pilot has no correlation of epochs.

    Raises:
        InputError: a share is out of range, or no number of questions can detect the effect.
    """
    for field, value in (("power", power), ("alpha", alpha)):
        if not 0 < value < 1:
            raise InputError(f"{value} is not between 0 and 1", field=field)
    values = pilot.values(kind)
    true = float(pilot.weights @ values) if effect is None else effect
    if abs(true - bound) < 1e-3:
        problem = "no number of questions can detect so small a difference"
        raise InputError(problem, remedy="Give a figure further from the limit")
    tilted_pilot = tilted(pilot, kind, true)
    level = alpha / tests
    study_designs = []
    for number in epochs if pilot.correlation is not None else (1,):
        questions = _find_questions(tilted_pilot, kind, bound, number, power, level)
        calls = math.ceil(questions * number * pilot.calls)
        cost = None if pilot.cost is None else questions * number * pilot.cost
        study_designs.append(Design(number, questions, calls, cost))
    sequential = (
        None if kind == "difference" else verdict_questions(tilted_pilot, kind, bound, level)
    )
    return Designs(pilot, kind, true, bound, study_designs, sequential)


def verdict_questions(
    pilot: Pilot, kind: Kind, bound: float, alpha: float, studies: int = 400, seed: int = 42
) -> tuple[int | None, int | None]:
    """Simulate the numbers of questions at which half of the verdicts are decided, and 90%.

    The simulation asks each question once, has one rule, and checks the rule after every question.
    """
    rng = np.random.default_rng(seed)
    draws = np.searchsorted(np.cumsum(pilot.weights)[:-1], rng.random((studies, MOST_QUESTIONS)))
    first, second = (side[draws] / pilot.trials for side in (pilot.first, pilot.second))
    if kind == "share":
        values, limit = second, bound
    else:
        values, limit = scaled("max_drop_points", first, second, bound)
    up = float(pilot.weights @ pilot.values(kind)) > bound
    stopping_points = []
    for values_of_study in values:
        crossings = np.flatnonzero(growth(values_of_study, limit, up=up) >= math.log(2 / alpha))
        stopping_points.append(int(crossings[0]) + 1 if len(crossings) else MOST_QUESTIONS + 1)
    half, upper = np.quantile(stopping_points, [0.5, 0.9], method="higher").tolist()
    return (half if half <= MOST_QUESTIONS else None), (upper if upper <= MOST_QUESTIONS else None)


def tilted(pilot: Pilot, kind: Kind, to: float) -> Pilot:
    """Return the pilot with the nearest probabilities at which the figure has a given value."""
    values = pilot.values(kind)
    if not values.min() < to < values.max():
        raise InputError(f"a figure of {100 * to:g} is impossible with these answers")
    low, high = -60.0, 60.0
    for _ in range(80):
        tilt = (low + high) / 2
        weights = pilot.weights * np.exp(tilt * (values - to))
        low, high = (tilt, high) if weights @ (values - to) < 0 else (low, tilt)
    return replace(pilot, weights=weights / weights.sum())


def simulated_power(
    pilot: Pilot,
    kind: Kind,
    bound: float,
    questions: int,
    epochs: int,
    *,
    alpha: float = 0.05,
    studies: int = 2_000,
    seed: int = 42,
) -> float:
    """Simulate the share of studies that detect the difference, or decide the gate correctly.

    A gate decides correctly if its verdict matches the pilot's figure.
    """
    rng = np.random.default_rng([seed, questions, epochs])
    trials = np.full(questions, float(pilot.trials * epochs))
    above = float(pilot.weights @ pilot.values(kind)) > bound
    detections, left = 0, studies
    while left:
        size = min(left, max(1, 2_000_000 // questions))
        shape = size, questions
        sums = np.zeros((2, *shape))
        for draws in _draw_epochs(pilot, rng, shape, epochs):
            sums += pilot.first[draws], pilot.second[draws]
        pairs = [((a, trials), (b, trials)) for a, b in zip(*sums, strict=True)]
        detections += _count_detections(
            pairs, kind, bound, alpha, above=above, one_first=pilot.one_first
        )
        left -= size
    return detections / studies


def _draw_epochs(
    pilot: Pilot, rng: np.random.Generator, shape: tuple[int, int], epochs: int
) -> Iterator[NDArray[np.int64]]:
    """Draw the outcome of each epoch of each question, as the number of the outcome."""
    outcomes = np.arange(len(pilot.weights))
    side_correlations = pilot.side_correlations if epochs > 1 else None
    if side_correlations is None:
        yield from _draw_correlated(rng, shape, epochs, outcomes, pilot.weights, pilot.correlation)
        return
    of_first, behind = side_correlations
    values = np.unique(pilot.first)
    shares = np.array([pilot.weights[pilot.first == value].sum() for value in values])
    first = _draw_correlated(rng, shape, epochs, np.arange(len(values)), shares, of_first)
    then = [
        _draw_correlated(rng, shape, epochs, outcomes[pilot.first == value],
               pilot.weights[pilot.first == value], behind.get(float(value), 0.0))
        for value in values
    ]  # fmt: skip
    for first_outcomes, *second_outcomes in zip(first, *then, strict=True):
        yield np.choose(first_outcomes, second_outcomes)


def _draw_correlated(
    rng: np.random.Generator,
    shape: tuple[int, int],
    epochs: int,
    outcomes: NDArray[np.int64],
    weights: Floats,
    correlation: float | None,
) -> Iterator[NDArray[np.int64]]:
    """Draw outcomes of each epoch that correlate within a question."""
    shared_loading = math.sqrt(min(max(correlation or 0.0, 0.0), 1.0))
    ends = np.cumsum(weights / weights.sum())[:-1]

    def draw() -> NDArray[np.int64]:
        return outcomes[np.searchsorted(ends, rng.random(shape))]

    common = draw()
    for _ in range(epochs):
        yield np.where(rng.random(shape) < shared_loading, common, draw()) if epochs > 1 else common


def _count_detections(
    pairs: Sequence[tuple[Counts, Counts]], kind: Kind, bound: float, alpha: float, *,
    above: bool, one_first: bool,
) -> int:  # fmt: skip
    """Count the studies in which the test detects the effect."""
    if kind == "share":
        return sum(
            outside(float(hits.sum() / n.sum()), effective_n(hits, n), len(n), bound, 1 - alpha)
            == (1 if above else -1)
            for _, (hits, n) in pairs
        )
    if kind == "drop":
        # an interval excludes the values that its test rejects
        off = difference_statistic(outcomes_of(pairs), bound) * (1 if above else -1)
        return int((off > _NORMAL.inv_cdf(1 - alpha / 2)).sum())
    if one_first:
        p = each_against_one([(second, first) for first, second in pairs])
    else:
        p = [sign_flips((a - b).astype(np.int64)) for (a, _), (b, _) in pairs]
    return sum(p_value <= alpha for p_value in p)


def _find_questions(
    pilot: Pilot, kind: Kind, bound: float, epochs: int, power: float, alpha: float
) -> int:
    """Find the smallest number of questions, by interpolation between simulated numbers."""
    values = pilot.values(kind)
    true = float(pilot.weights @ values)
    if kind == "difference" and pilot.trials == 1 and epochs == 1:
        baseline, differ = (float(pilot.weights @ side) for side in (pilot.first, values**2))
        return questions_needed(baseline, true, differ, power, alpha)
    correlation = min(max(pilot.correlation or 0.0, 0.0), 1.0)
    variance = float(pilot.weights @ (values - true) ** 2) * (
        correlation + (1 - correlation) / epochs
    )
    # the test uses the variance at the bound, which differs
    at_bound = variance + (true - bound) ** 2 * (kind != "share")
    if kind == "share":
        at_bound *= bound * (1 - bound) / max(true * (1 - true), 1e-9)
    z = _NORMAL.inv_cdf(power)
    root = _NORMAL.inv_cdf(1 - alpha / 2) * math.sqrt(at_bound) + z * math.sqrt(variance)
    guess = max(_LEAST_QUESTIONS, math.ceil((root / (true - bound)) ** 2))
    for spread, studies in (*[_WIDE] * _ROUNDS, _NARROW):
        if guess > MOST_QUESTIONS:
            break
        numbers = sorted({max(_LEAST_QUESTIONS, round(guess * times)) for times in spread})
        powers = [
            simulated_power(pilot, kind, bound, n, epochs, alpha=alpha, studies=studies)
            for n in numbers
        ]
        if len(numbers) == 1 or min(powers) == 1:
            return numbers[0]
        # scores are nearly linear in the square root of the number
        scores = [_NORMAL.inv_cdf(min(max(p, 1e-3), 1 - 1e-3)) for p in powers]
        slope, start = np.polyfit(np.sqrt(numbers), scores, 1)
        at = ((z - start) / slope) ** 2 if slope > 0 and z > start else 2 * guess
        guess = math.ceil(min(max(at, guess / 3, _LEAST_QUESTIONS), 3 * guess))
    return guess
