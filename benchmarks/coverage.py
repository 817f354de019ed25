"""Coverage and one-sided errors of the 95% intervals, for the page of the documentation.

``python benchmarks/coverage.py > benchmarks/coverage.md``
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta, binom

from holdfast.stats.intervals import detection_bounds, mean_bounds, mean_difference_bounds, wilson
from holdfast.stats.scores import Outcomes, design_effect, paired_change, paired_difference

Floats = NDArray[np.float64]

SIZES = (20, 60, 200, 1273)
MANY, STUDIES = 20_000, 2_000

LEAST, MOST = 0.94, 0.03
"""What an interval has to hold on both sides, and may miss on one."""

REASONS = {
    "Wilson": "of tables, good on average over shares; a gate decides by the exact limits",
    "mean |": "a skewed value of fewer than 20 questions; no gate decides by it",
    "relative change | 0.9, drop 80%": "nearly all is lost of fewer than 20 questions",
    "d'": "the log-linear correction draws d' toward zero in few questions; no gate decides by it",
}
"""Why a method may be outside the limits, by the beginning of its name and setting."""


@dataclass(frozen=True)
class Held:
    """How often an interval held the truth, and how often that was below or above it."""

    method: str
    setting: str
    questions: int
    below: float
    above: float
    studies: int | None = None

    @property
    def coverage(self) -> float:
        """Share of the studies whose interval held the truth."""
        return 1 - self.below - self.above

    @property
    def fails(self) -> bool:
        """Whether it is outside the limits beyond what chance leaves open (99%)."""

        def chance(share: float) -> float:
            return 2.576 * math.sqrt(share * (1 - share) / self.studies) if self.studies else 1e-9

        worst = max(self.below, self.above)
        return self.coverage + chance(LEAST) < LEAST or worst - chance(MOST) > MOST

    @property
    def reason(self) -> str | None:
        """Why it may fail, None where it may not."""
        told = f"{self.method} | {self.setting}"
        return next((why for name, why in REASONS.items() if told.startswith(name)), None)


def measured(questions: int) -> Iterator[Held]:
    """Every method in every setting at one size."""
    for of in (_single, _clustered, _pairs, _several, _others):
        yield from of(questions)


def simulated(
    rng: np.random.Generator, questions: int, shares: Sequence[float], alike: float
) -> NDArray[np.int64]:
    """Right (1) and wrong of turns with these accuracies, shape (studies, questions, turns)."""
    thresholds = [NormalDist().inv_cdf(share) for share in shares]
    right = np.empty((STUDIES, questions, len(shares)), np.int64)
    for study in right:
        easy = rng.standard_normal((questions, 1))
        own = rng.standard_normal(study.shape)
        study[:] = math.sqrt(alike) * easy + math.sqrt(1 - alike) * own < thresholds
    return right


def _single(questions: int) -> Iterator[Held]:
    hits = np.arange(questions + 1.0)
    low, high = wilson(hits, np.full(questions + 1, float(questions)))
    exact = _exact(hits, np.full(questions + 1, float(questions))).T
    for share in (0.5, 0.8, 0.95, 0.99):
        chances = binom.pmf(hits, questions, share)
        for method, bounds in (("Wilson", (low, high)), ("exact limits", exact)):
            below, above = chances[share < bounds[0]].sum(), chances[share > bounds[1]].sum()
            yield Held(method, f"share {share:g}", questions, float(below), float(above))


def _exact(hits: Floats, n: Floats) -> Floats:
    """``exact_bounds`` of many shares (a test holds that against this library)."""
    with np.errstate(invalid="ignore"):
        low = np.where(hits > 0, beta.ppf(0.025, hits, n - hits + 1), 0.0)
        high = np.where(hits < n, beta.ppf(0.975, hits + 1, n - hits), 1.0)
    return np.stack([low, high], axis=1)


def _clustered(questions: int) -> Iterator[Held]:
    for turns, share, alike in ((14, 0.98, 0.9), (14, 0.98, 0.5), (4, 0.9, 0.5), (5, 0.7, 0.8)):
        rng = np.random.default_rng([1, questions, turns, round(100 * alike)])
        hits = simulated(rng, questions, [share] * turns, alike).sum(axis=2, dtype=float)
        effect = design_effect(hits, np.full_like(hits, turns), np.ones_like(hits))
        n, seen = questions * turns / effect, hits.mean(axis=1) / turns
        setting = f"{turns} turns, share {share:g}, correlation {alike:g}"
        bounds = np.stack(wilson(seen * n, n), axis=1)
        yield _missed("Wilson, effective n", setting, questions, share, bounds)
        yield _missed("exact limits, effective n", setting, questions, share, _exact(seen * n, n))


PAIRS = (
    (0.95, 0.05, 0.0),
    (0.95, 0.05, 0.03),
    (0.9, 0.1, 0.01),
    (0.7, 0.2, 0.1),
    (0.95, 0.0, 0.03),
)
"""Right first, relative drop, and share of the questions gained."""


def _pairs(questions: int) -> Iterator[Held]:
    for first, drop, gained in (*PAIRS, (0.9, 0.8, 0.0)):
        rng = np.random.default_rng([2, questions, round(100 * drop), round(100 * gained)])
        lost = first * drop + gained
        chances = (first - lost, lost, gained, 1 - first - gained)
        drawn, times = np.unique(
            rng.multinomial(questions, chances, MANY), axis=0, return_counts=True
        )
        right, before, one = (
            np.tile(np.array(side, float), (len(drawn), 1))
            for side in ((1, 0, 1, 0), (1, 1, 0, 0), (1, 1, 1, 1))
        )
        of = Outcomes(right, before, one, drawn.astype(float))
        setting = f"{first:g}, drop {drop:.0%}, gained {gained:.0%}"
        yield from _scored(of, setting, questions, first, first * (1 - drop), times)


SEVERAL: tuple[tuple[str, list[float], list[float], float], ...] = (
    ("3 epochs", [0.9] * 3, [0.85] * 3, 0.5),
    ("3 epochs", [0.95] * 3, [0.93] * 3, 0.9),
    ("14 techniques", [0.95], [0.9] * 14, 0.2),
    ("14 techniques", [0.99], [0.98] * 14, 0.5),
    ("14 techniques", [0.9], [0.85] * 14, 0.9),
    ("5 techniques", [0.95], [0.95, 0.9, 0.85, 0.8, 0.6], 0.5),
)


def _several(questions: int) -> Iterator[Held]:
    for name, firsts, then, alike in SEVERAL:
        rng = np.random.default_rng([3, questions, len(then), round(100 * alike)])
        right = simulated(rng, questions, [*firsts, *then], alike)
        second = right[:, :, : len(firsts)].sum(axis=2) * (len(then) // len(firsts))
        first = right[:, :, len(firsts) :].sum(axis=2)
        most = len(then) + 1
        # how often each outcome was seen in each study
        kinds, places = np.unique(first * most + second, return_inverse=True)
        seen = np.zeros((STUDIES, len(kinds)))
        np.add.at(seen, (np.arange(STUDIES)[:, None], places.reshape(first.shape)), 1)
        after, before, turns = (
            np.tile(side.astype(float), (STUDIES, 1))
            for side in (kinds // most, kinds % most, np.full(len(kinds), len(then)))
        )
        of = Outcomes(after, before, turns, seen)
        one, other = sum(firsts) / len(firsts), sum(then) / len(then)
        setting = f"{name}, {one:g} to {other:g}, correlation {alike:g}"
        yield from _scored(of, setting, questions, one, other)


def _others(questions: int) -> Iterator[Held]:
    rng = np.random.default_rng([4, questions])
    one = np.ones(questions)
    means, differences = [], []
    for _ in range(STUDIES):
        common, own = rng.beta(2, 1, questions), rng.beta(2, 1, (2, questions))
        means.append(mean_bounds((common, one)))
        first, second = (common + own) / 2
        differences.append(mean_difference_bounds((first, one), (second, one)))
    yield _missed("mean", "of a value in 0 to 1, skewed", questions, 2 / 3, np.array(means))
    yield _missed("difference of means", "the same, paired", questions, 0, np.array(differences))
    for rates in ((0.9, 0.45), (0.6, 0.4)):
        right = simulated(rng, questions, rates, 0.5).astype(float)
        truth = NormalDist().inv_cdf(rates[0]) - NormalDist().inv_cdf(rates[1])
        found = [detection_bounds((study[:, 0], one), (study[:, 1], one))[0] for study in right]
        setting = f"rates {rates[0]:g} and {rates[1]:g}"
        yield _missed("d'", setting, questions, truth, np.array(found))


def _scored(
    of: Outcomes,
    setting: str,
    questions: int,
    first: float,
    then: float,
    times: NDArray[np.int64] | None = None,
) -> Iterator[Held]:
    both: tuple[tuple[str, Callable[[Outcomes, float], tuple[Floats, Floats]], float], ...] = (
        ("difference in pairs", paired_difference, then - first),
        ("relative change", paired_change, then / first - 1),
    )
    for method, bounds, truth in both:
        found = np.stack(bounds(of, 0.95), axis=1)
        yield _missed(method, setting, questions, truth, found, times)


def _missed(
    method: str,
    setting: str,
    questions: int,
    truth: float,
    bounds: Floats,
    times: NDArray[np.int64] | None = None,
) -> Held:
    weights = np.ones(len(bounds)) if times is None else times
    n = int(weights.sum())
    below, above = (
        float(weights[side].sum() / n)
        for side in (truth < bounds[:, 0] - 1e-9, truth > bounds[:, 1] + 1e-9)
    )
    return Held(method, setting, questions, below, above, n)


def cell(one: Held) -> str:
    """Coverage, and the errors below and above, in percent."""
    mark = "*" if one.fails else ""
    return f"{one.coverage:.1%} ({one.below:.1%}, {one.above:.1%}){mark}".replace("%", "")


def table(found: Sequence[Held]) -> str:
    """The figures in Markdown: a line for each method and setting, sizes beside one another."""
    cells: dict[tuple[str, str], dict[int, str]] = {}
    for one in found:
        cells.setdefault((one.method, one.setting), {})[one.questions] = cell(one)
    lines = [f"| interval | setting | {' | '.join(f'{size:,}' for size in SIZES)} |"]
    lines.append("|---|---|" + "---:|" * len(SIZES))
    for (method, setting), row in sorted(cells.items(), key=lambda item: item[0][0]):
        lines.append(f"| {method} | {setting} | {' | '.join(row[size] for size in SIZES)} |")
    return "\n".join(lines)


INTRODUCTION = """# Coverage

How often a 95% interval contained the truth, by number of questions, and in brackets how often the
truth was below and above it (nominal: 2.5 each), in percent. Single shares are enumerated in full,
pairs of one turn a question are 20,000 simulated studies, all else is 2,000. Questions are easy or
hard for all of their turns (correlation of the normal variable behind them).
"""

MARKED = """`*`: coverage below 94% or one side above 3%, beyond chance (99%). The reasons:
"""


if __name__ == "__main__":
    figures = [one for size in SIZES for one in measured(size)]
    print(INTRODUCTION)
    print(table(figures))
    print()
    print(MARKED)
    for method, why in REASONS.items():
        if any(one.fails and one.reason == why for one in figures):
            print(f"- {method}: {why}.")
